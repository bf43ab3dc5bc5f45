"""What the rules read from texts; every example was written for these tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.classifiers import Item, items_of, load_classifier
from opinionsim.classifiers._lexicon_text import clauses, stem, tokens
from opinionsim.foundation.data import data_folder
from opinionsim.llm import phrases
from opinionsim.opinions import OpinionScale, ambiguous
from opinionsim.topics import Claim, load_topics
from tests.support.tables import coded_texts

LEXICON = load_classifier("lexicon")
_ROOT = Path(__file__).parents[2]


def code(claim: str, text: str) -> float | None:
    value = LEXICON.classify([Item(text, Claim(claim, "topic", "truth"))]).value[0]
    return None if np.isnan(value) else value


#: Both orders of the two claims of each topic: the claim asked about, and the other side.
SIDES = [
    pair
    for topic in load_topics(data_folder("topics") / "chuang2024.yaml").values()
    for pair in (tuple(topic.claims.values()), tuple(topic.claims.values())[::-1])
]


def wrong(kind: str, claim: str = "", lead: str = "") -> list[tuple[str, float | None]]:
    """Texts of a kind that are coded otherwise than they are meant, each with its code."""
    coded = [(text, code(own or claim, lead + text), meant) for own, text, meant in coded_texts(kind)]
    return [(text, found) for text, found, meant in coded if found != meant]


@pytest.mark.parametrize(("template", "side"), [row[1:] for row in coded_texts("template")])
def test_the_side_is_right_for_every_topic_in_both_framings(template: str, side: float) -> None:
    claims = [Claim(x, "topic", "truth") for x, _ in SIDES]
    coded = LEXICON.classify(items_of([template.format(x=x, y=y) for x, y in SIDES], claims)).value
    assert [(x, value) for (x, _), value in zip(SIDES, coded, strict=True) if np.sign(value) != side] == []


@pytest.mark.parametrize("name", ["Theory XYZ", "XYZ", "the theory"])
def test_the_side_is_right_under_a_masked_name(name: str) -> None:
    said = [(template.format(x=name), side) for _, template, side in coded_texts("masked template")]
    assert [text for text, side in said if np.sign(code("fire is cold", text) or 0.0) != side] == []


@pytest.mark.parametrize("claim", ["fire is cold", "the Earth is flat", "US astronauts never landed on the moon"])
def test_sentences_about_something_else_or_in_other_languages_have_no_value(claim: str) -> None:
    assert wrong("elsewhere", claim) == []


@pytest.mark.parametrize(
    "text",
    [
        "I believe Theory XYZ is true. I reject Theory XYZ.",
        "I reject Theory XYZ. I believe Theory XYZ is true.",
        "I strongly support Theory XYZ. I strongly oppose Theory XYZ.",
    ],
)
def test_two_stances_against_each_other_are_ambiguous(text: str) -> None:
    claim = Claim("fire is cold", "fire", "falsehood")
    probabilities = LEXICON.classify(items_of([text, text.partition(".")[0]], claim)).probabilities
    assert ambiguous(probabilities).tolist() == [True, False]


def test_a_change_of_mind_is_not_ambiguous() -> None:
    claim = Claim("fire is cold", "fire", "falsehood")
    text = "At first I strongly supported Theory XYZ. Now I strongly oppose it."
    estimates = LEXICON.classify(items_of([text], claim))
    assert estimates.value.tolist() == [-2]
    assert not ambiguous(estimates.probabilities)[0]


@pytest.mark.parametrize(
    "lead", ["", "Having read this, I, Ann Lee, will go step by step through what I believe:\n\n1. "]
)
def test_verdicts_in_the_manner_of_chat_models(lead: str) -> None:
    assert wrong("verdict", "the Earth is flat", lead) == []


@pytest.mark.parametrize("claim", ["fire is cold", "the museum should not charge an entry fee"])
def test_texts_that_call_the_claim_by_its_masked_name_or_do_not_answer(claim: str) -> None:
    assert wrong("masked", claim) == []


def test_texts_that_restate_contradict_or_discuss_what_the_claim_says() -> None:
    assert wrong("content") == []


@pytest.mark.parametrize("name", [phrases.MASKED, phrases.MASKED_AGAIN, phrases.PLAIN])
def test_scripted_stances_are_read_as_meant(name: str) -> None:
    said = [
        (level, phrases.capitalised(sentence.format(x=name)))
        for bank in (phrases.POSTS, phrases.REPORTS)
        for level, sentences in bank.items()
        for sentence in sentences
    ]
    before = f"I, Maya Jackson, asked myself where I stand on {name}. So this is my answer."
    for frame in ("{}", before + " {} How do you see it?"):
        assert [text for level, text in said if code("fire is cold", frame.format(text)) != level] == []


def test_scripted_refusals_are_no_answer() -> None:
    assert [text for text in phrases.REFUSALS if code("fire is cold", text) is not None] == []


@pytest.mark.parametrize(
    ("size", "text", "opinion"),
    [
        (2, "I strongly support XYZ.", 1),
        (2, "I lean slightly against XYZ.", -1),
        (3, "I am neutral on XYZ.", 0),
        (3, "I strongly support XYZ.", 1),
        (4, "I lean slightly in favour of XYZ.", 1),
        (4, "I reject XYZ outright.", -2),
        (7, "I am completely certain that XYZ is wrong.", -3),
        (7, "I am neutral on XYZ.", 0),
    ],
)
def test_other_scales(size, text, opinion):
    scale = OpinionScale.of_size(size)
    claim = Claim("fire is cold", "fire", "falsehood")
    assert load_classifier("lexicon", scale).classify([Item(text, claim)]).value[0] == opinion


def test_scale_without_zero_in_the_middle():
    classifier = load_classifier("lexicon", OpinionScale((1, 2, 3, 4, 5)))
    claim = Claim("fire is cold", "fire", "falsehood")
    texts = ["I strongly support XYZ.", "I am neutral on XYZ.", "I reject XYZ outright."]
    assert classifier.classify(items_of(texts, claim)).value.tolist() == [5, 3, 1]


def test_framing_turns_the_sign():
    text = "Of course bikes have two wheels."
    assert code("a bicycle usually has two wheels", text) == 2
    assert code("a bicycle usually has four wheels", text) == -2


@given(st.text(max_size=300), st.text(max_size=80))
def test_any_text_is_coded(text, claim):
    estimates = LEXICON.classify([Item(text, Claim(claim, "topic", "truth"))])
    assert len(estimates) == 1


def test_a_date_is_no_number():
    assert code("a bicycle usually has two wheels", "Of course bikes have two wheels, as on 24.12.2024.") == 2


@given(st.text(alphabet=" aeinotxyz.,;!?'\"#-0149%", max_size=200))
def test_clauses_hold_no_empty_words(text):
    for clause in clauses(text):
        assert clause.words
        assert all(clause.words)
        assert all(0 <= mark.start < mark.end <= len(clause.words) for mark in clause.marks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I can't say it's flat.", ["i", "can", "not", "say", "it", "is", "flat", "."]),
        ("**View.** I agree.", ["view", ":", "i", "agree", "."]),
        ("forty percent", ["40", "%"]),
        ("the U.S. and the US", ["the", "usa", "and", "the", "usa"]),
        ("T. rex co-existed", ["trex", "coexist"]),
        ("#FlatEarth @you https://example.org", ["flat", "earth"]),
        ("version 6.0.1 of 24.12.2024, 1,000.5 times", ["version", "of", ",", "1,000.5", "times"]),
    ],
)
def test_tokens(text, words):
    assert tokens(text) == words


@pytest.mark.parametrize(
    "forms", [("believe", "believes", "believed", "believing"), ("deny", "denies", "denied"), ("stop", "stopped")]
)
def test_forms_of_a_word_share_a_stem(forms):
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("code", ["[0m ", "\x1b[31m", "\x1b[1;31m ", "[31m"])
def test_terminal_colours_say_nothing(code: str) -> None:
    claim = Claim("the Earth is flat", "flat-earth", "falsehood")
    items = items_of(["I reject XYZ.", f"{code}I reject XYZ."], claim)
    plain, coloured = load_classifier("lexicon").classify(items).value
    assert plain == coloured == -2


@pytest.mark.whole
def test_the_words_load_fast() -> None:
    # It takes some 25 ms; the bound is loose for a busy machine.
    code = (
        "import time, opinionsim.classifiers._base, numpy; start = time.process_time();"
        "import opinionsim.classifiers._lexicon; print(time.process_time() - start)"
    )
    took = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=_ROOT)
    assert float(took.stdout) < 0.2


@pytest.mark.parametrize(
    "text",
    [
        "{x}",
        "Theory XYZ, the theory that {x}.",
        'Post: the claim "{x}"',
        "I'm here to discuss the claim that {x}.",
        "Today I want to talk about Theory XYZ, the theory that {x}",
        "I am not ready to share anything about Theory XYZ.",
    ],
)
@pytest.mark.parametrize("claim", ["fire is cold", "the Earth is flat", "US astronauts never landed on the moon"])
def test_a_text_that_only_names_the_claim_has_no_value(claim: str, text: str) -> None:
    assert code(claim, text.format(x=claim)) is None
    assert code(claim, f"{text.format(x=claim)} I believe that {claim}.") == 2
    assert code(claim, f"{text.format(x=claim)} I reject the idea that {claim}.") == -2
