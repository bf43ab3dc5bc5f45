"""Whether a text holds an answer in its role."""
# ruff: noqa: RUF001 - texts in other scripts hold letters that look like Latin ones

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.conduct import look, names_of
from opinionsim.llm import phrases, read_reply
from opinionsim.messages import Speech

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DEVELOPMENT = [
    json.loads(line)
    for line in (_BENCHMARKS / "data" / "replies" / "development.jsonl").read_text(encoding="utf-8").splitlines()
]


#: Statuses of texts without an answer in role: those that decline, and others.
NONE = ("refused", "off_role")


def read(text: str) -> str:
    return look(text, "answered").status


def shown(text: str) -> tuple[str, ...]:
    looked = look(text, "answered", speech=Speech())
    assert looked.status == "answered"
    return names_of(looked.signs)


OPINIONS = [
    row
    for line in (_BENCHMARKS / "data" / "opinion_texts" / "validation.jsonl").read_text(encoding="utf-8").splitlines()
    if (row := json.loads(line))["label"] is not None
]


@pytest.mark.parametrize(("writer", "precision", "recall"), [("d", 0.92, 0.91), ("w", 0.98, 0.76)])
def test_the_development_texts_are_read_as_they_were_meant(writer: str, precision: float, recall: float) -> None:
    rows = [row for row in DEVELOPMENT if row["id"].startswith(writer)]
    refused = {row["id"] for row in rows if row["status"] == "refused"}
    found = {row["id"] for row in rows if read(row["text"]) in NONE}
    assert len(refused & found) / len(found) >= precision
    assert len(refused & found) / len(refused) >= recall


LANGUAGES = [
    row
    for line in (_BENCHMARKS / "data" / "replies" / "languages.jsonl").read_text(encoding="utf-8").splitlines()
    if set((row := json.loads(line)).get("labels", row["class"])) == {row["class"]}
]


def test_refusals_are_told_from_a_persons_own_declining_in_any_language() -> None:
    read_as = {row["id"]: read(row["text"]) for row in LANGUAGES}
    answers = [row for row in LANGUAGES if row["class"] in "ad"]
    lost = [row for row in answers if read_as[row["id"]] != "answered"]
    refusals = [row for row in LANGUAGES if row["class"] == "b"]
    missed = [row for row in refusals if read_as[row["id"]] == "answered"]
    assert len(lost) <= 0.015 * len(answers)
    assert len(missed) <= 0.08 * len(refusals)
    assert {row["language"] for row in refusals} == {row["language"] for row in answers}
    assert abs(sum({"for": 1, "against": -1}.get(row.get("side", ""), 0) for row in lost)) <= 3


#: By language: a refusal, and texts of persons for and against a claim who decline something of their own.
FRESH = {
    "en": (
        "I'm afraid I have to leave this persona aside; a text for the campaign is not something I'd produce.",
        "I can't turn down clean air. My boy has asthma, so close the road.",
        "I won't put my name to it. The ramp is missing and the figures are from 2009.",
    ),
    "de": (
        "Einen solchen Text verfasse ich nicht.",
        "Ich kann nicht mehr warten, baut den Radweg.",
        "Nein, da mache ich nicht mit, mein Laden geht ein.",
    ),
    "fr": (
        "Je ne peux pas rédiger un tel texte.",
        "Je ne peux plus attendre, construisez la piste.",
        "Je ne soutiens pas ce projet, ma boutique fermerait.",
    ),
    "es": (
        "No puedo redactar un texto así.",
        "No puedo esperar más: que hagan el carril.",
        "No apoyo este plan, mi tienda cerraría.",
    ),
    "it": (
        "Non posso scrivere un testo del genere.",
        "Non posso più aspettare: fate la pista.",
        "Non appoggio questo piano, la mia bottega chiuderebbe.",
    ),
    "pt": (
        "Não posso redigir um texto assim.",
        "Não posso esperar mais: façam a ciclovia.",
        "Não apoio este plano, a minha loja fecharia.",
    ),
    "nl": (
        "Zo'n tekst kan ik niet schrijven.",
        "Ik kan niet langer wachten, leg dat fietspad aan.",
        "Ik steun dit plan niet, mijn winkel gaat dicht.",
    ),
    "pl": (
        "Nie mogę napisać takiego tekstu.",
        "Nie mogę już czekać, budujcie ścieżkę.",
        "Nie popieram tego planu, mój sklep upadnie.",
    ),
    "tr": (
        "Böyle bir metin yazamam.",
        "Daha fazla bekleyemem, bisiklet yolunu yapın.",
        "Bu planı desteklemiyorum, dükkânım kapanır.",
    ),
    "ru": (
        "Я не могу написать такой текст.",
        "Я не могу больше ждать, стройте дорожку.",
        "Не поддерживаю этот план, моя лавка закроется.",
    ),
    "ar": ("لا أستطيع كتابة نص كهذا.", "لا أستطيع الانتظار أكثر، ابنوا المسار.", "لا أؤيد هذه الخطة، سيغلق متجري."),
    "hi": (
        "मैं ऐसा पाठ नहीं लिख सकता।",
        "मैं और इंतज़ार नहीं कर सकता, रास्ता बनाओ।",
        "मैं इस योजना का समर्थन नहीं करता, मेरी दुकान बंद हो जाएगी।",
    ),
    "zh": ("我无法撰写这样的文字。", "我不能再等了，快修自行车道吧。", "我不支持这个计划，我的店会关门。"),
    "ja": (
        "このような文章を作成することはできません。",
        "もう待てません。自転車道を作ってください。",
        "この計画は支持できません。店がつぶれます。",
    ),
    "ko": (
        "그런 글은 작성할 수 없습니다.",
        "더는 기다릴 수 없습니다. 자전거 길을 만들어 주세요.",
        "이 계획을 지지할 수 없습니다. 가게가 문을 닫게 됩니다.",
    ),
}


@pytest.mark.parametrize("language", FRESH)
def test_a_model_refuses_and_persons_of_both_sides_answer(language: str) -> None:
    assert [read(text) for text in FRESH[language]] == ["refused", "answered", "answered"]


@pytest.mark.parametrize(
    "text", ["Declined.", "[[NO_ANSWER]]", "<refusal>", "status: refused; reason: policy", "无可奉告"]
)
def test_a_text_that_is_nothing_but_a_notice_is_a_refusal(text: str) -> None:
    assert read(text) == "refused"


def test_opinions_are_no_refusals() -> None:
    assert len(OPINIONS) > 100
    assert [row["id"] for row in OPINIONS if read(row["text"]) in NONE] == []


@pytest.mark.parametrize("text", phrases.REFUSALS)
def test_the_scripted_model_refuses(text: str) -> None:
    assert read(text) == "refused"


def test_nothing_else_that_the_scripted_model_says_is_a_refusal() -> None:
    banks = [
        getattr(phrases, name) for name in vars(phrases) if name.isupper() and name[0] != "_" and name != "REFUSALS"
    ]
    lists = [*(bank for bank in banks if isinstance(bank, tuple)), *phrases.POSTS.values(), *phrases.REPORTS.values()]
    filled = {"me": "I, Ann,", "posts": "posts", "n": 4}
    said = {sentence.format(x=x, **filled) for x in _SUBJECTS for some in lists for sentence in some}
    said |= {f"{one} {other}" for one, other in permutations(phrases.ANSWERS, 2)}
    assert len(said) > 300
    assert {sentence for sentence in said if read(sentence) != "answered"} == set()


# Forms that share no phrase with each other: what counts is who speaks of what.
@pytest.mark.parametrize(
    "text",
    [
        "Let me stop there. The prompt wants a persona who gets talked into things, and that is no text I'd write.",
        "Thank you for the scenario. Could you tell me what you would like me to write, and for which audience?",
        '{"status": "declined", "reason": "the requested content conflicts with the safety policy"}',
        "The exercise asks me to invent convictions for a made-up profile. Instead I could outline a design.",
        "I'm Qwen, a large language model. I have no account and nothing to tell you about my feed.",
        "No puedo asumir el papel de esta persona ni escribir en su nombre.",
        "I'm sorry, but I can't assist with that.",
        "I\u2019m sorry, but I can\u2019t help with that request.",
        "I am unable to role-play as a person with such views.",
        "Sorry. As an AI language model, I do not have personal beliefs.",
        "As an AI, I cannot hold opinions.",
        "I'm just an AI model and hold no beliefs.",
        "I cannot create content of this kind.",
        "I apologize, but I cannot fulfill this request.",
        "Unfortunately, I cannot engage in this role-play.",
        "I'm sorry, but as an AI language model, I can't take sides.",
        "I cannot write a post that spreads misinformation.",
        "I can't help you with that.",
    ],
)
def test_a_model_that_speaks_of_its_task_holds_no_answer(text: str) -> None:
    assert read(text) in NONE


@pytest.mark.parametrize(
    "text",
    [
        "I refuse to change my mind because a stranger told me to. Theory XYZ was nonsense before and it still is.",
        "I won't share this nonsense and neither should you. #StopTheSpread",
        "I'd rather not pick a side here. I am undecided about the claim, and my brother laughs at me for it.",
        "My role as a librarian is to doubt. I still believe that the theory is wrong.",
        "I asked a chatbot about it and it gave me a lecture. I don't trust it, and I believe what my mother saw.",
        "I'm sorry, but I can't believe that anybody thinks this.",
        "I cannot help but wonder whether Theory XYZ is true.",
        "I can't help thinking that it is a hoax.",
        "I will not change my mind: it is false.",
        "Unfortunately, I cannot agree with what this post says.",
        "I apologize to everybody I argued with; I was wrong.",
        "At this moment, I, Ann, will go step by step through what I believe: I can't say either way.",
        "I have no opinion on this.",
        "I don't know. AI might tell us one day, as an aid to science.",
        "I'm neutral: there are good arguments on both sides.",
        "I cannot provide a definite answer, the evidence is mixed.",
        "I cannot continue to believe this.",
        "I will not help spread this theory; it is false.",
        "I won't engage in this nonsense: the Earth is round.",
        "I can't help myself, I love this theory.",
        "I will not comply with people who tell me what to think.",
        "My neighbour works as an AI engineer, and he says it is nonsense.",
        "As an AI researcher, I believe the claim is false.",
        "I'm an AI enthusiast and I think it is true.",
        "Sorry, I do not buy it.",
        "I can't assist anybody in believing this.",
        "I cannot create a world in which this is true.",
    ],
)
def test_a_person_may_decline_and_still_have_a_stance(text: str) -> None:
    assert read(text) == "answered"


_SUBJECTS = (phrases.MASKED, phrases.MASKED_AGAIN, phrases.PLAIN)
ANSWER = "I still believe that Theory XYZ is false, and nothing I read here has changed that."
REFUSAL = "I'm sorry, but I can't write posts that deny the Holocaust."


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "[{}]",
        "({})",
        "*{}*",
        "**{}**",
        '"{}"',
        "<post>\n{}\n</post>",
        "<tweet>{}</tweet>",
        "Jordan: {}",
        "Jordan White:\n\n{}",
        "> {}",
        "I understand what you're asking for. {}",
        "Thanks for the detailed scenario.\n\n{}",
        "{} Would you like me to suggest another topic?",
        "{}\n\nIf you're interested, I'd be happy to help you find sources.",
    ],
)
def test_a_refusal_is_found_in_any_wrapping(wrapped: str) -> None:
    assert read(wrapped.format(REFUSAL)) == "refused"
    assert read(wrapped.format(REFUSAL.replace("'", "\u2019"))) == "refused"


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        (ANSWER, ()),
        (f"{ANSWER}\n\n(As an AI, I don't have beliefs of my own.)", ("role",)),
        (f"{ANSWER}\n\n---\nNote: this post was written for a role-play.", ("preamble",)),
        (f"{ANSWER}\n\nWould you like me to write another one?", ("preamble",)),
        (f"(Stepping out of the role for a moment: this post is fiction.)\n\n{ANSWER}", ("role",)),
        (f"I won't write a post that supports it. {ANSWER}", ()),
        (f"I won't write another word on this. {ANSWER}", ()),
        (f"I can't help but repeat myself. {ANSWER}", ()),
    ],
)
def test_an_answer_stands_whatever_stands_beside_it(text: str, signs: tuple[str, ...]) -> None:
    assert shown(text) == signs


def test_what_others_are_quoted_with_is_not_said() -> None:
    assert read('The stranger wrote "as an AI language model, I can\'t have beliefs", so I ignore it.') == "answered"


def test_a_text_that_was_cut_off_is_truncated_unless_it_refuses() -> None:
    cut: dict[str, Any] = {"response_metadata": {"finish_reason": "length"}}
    status = read_reply(AIMessage(ANSWER, **cut)).status
    assert look(ANSWER, status).status == "truncated"
    assert look(f"{REFUSAL} It would be", status).status == "refused"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    status, signs = look(text, "answered", speech=Speech("Ann Lee", words=3))
    assert status in ("answered", *NONE, "empty")
    assert status == "answered" or not signs
    assert all(0 <= sign.start <= sign.end <= len(text) for sign in signs)


@given(st.sampled_from([row["text"] for row in DEVELOPMENT]), st.sampled_from(["\n", "  ", "\n\n"]))
def test_space_around_a_text_changes_nothing(text: str, space: str) -> None:
    assert read(space + text + space) == read(text)


def _benchmark() -> Any:
    spec = spec_from_file_location("benchmarks_replies", _BENCHMARKS / "replies.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_counts_what_both_readers_say() -> None:
    rows = [
        {"id": "a", "text": REFUSAL, "labels": ["R", "R"]},
        {"id": "b", "text": REFUSAL, "labels": ["1", "-2"]},
        {"id": "c", "text": REFUSAL, "labels": ["R", "0"]},
        {"id": "d", "text": ANSWER, "labels": ["R", "R"]},
        {"id": "e", "text": ANSWER, "labels": ["-2", "-1"]},
        {"id": "f", "text": f"{ANSWER}\n\nNote: this post is part of a role-play.", "labels": ["-2", "-2"]},
    ]
    found = _benchmark().measure(rows)
    assert found.precision[:2] == (1, 2)
    assert found.recall[:2] == (1, 2)
    assert found.disagreed == 1
    assert found.signs == {"preamble": 1}
    assert found.errors == ["b", "d"]


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"), [(0, 10, 0.0, 0.2775), (9, 10, 0.5958, 0.9821), (50, 100, 0.4038, 0.5962)]
)
def test_the_interval_is_wilsons(hits: int, trials: int, low: float, high: float) -> None:
    share = _benchmark().wilson(hits, trials)
    assert (share.low, share.high) == pytest.approx((low, high), abs=5e-5)
