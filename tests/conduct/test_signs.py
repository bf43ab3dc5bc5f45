"""Signs of conduct in replies, where they stand, and what is left where sure ones are taken out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import opinionsim as osim
from opinionsim.conduct import SIGNS, Looked, look, names_of, stripped
from opinionsim.llm import phrases
from opinionsim.messages import ChatMessage, Message, Prompt, Speech
from tests.test_golden import CLASSIC, NAMES, STORE, Guest, specified

SPEECH = Speech("Aisha Patel", "en", 60)
POST = "The lane takes two minutes off my ride, and it takes nothing at all off anybody else's drive."
TAKEN = ("preamble", "names", "markup", "lines")
#: Experiments that show every way in which scripted texts are read by others.
OFTEN = ("quickstart", "structures", "plurals/instructions", "room_models", "consensus_quickstart")


def looked(text: str, read: str = "", speech: Speech = SPEECH, task: str = "Write a post.") -> Looked:
    received = (Message(read, "Jordan White"),) if read else ()
    return look(text, "answered", speech=speech, prompt=Prompt.of([ChatMessage("user", task)]), received=received)


def shown(text: str, **how: str) -> tuple[str, ...]:
    return names_of(looked(text, **how).signs)


def left(text: str, author: str = "Aisha Patel") -> str:
    return stripped(text, looked(text, speech=Speech(author, "", 60)).signs, TAKEN)


@pytest.mark.parametrize(
    "text",
    [
        "I signed for the lane.\n\nLet me know if you'd like a shorter version to pass round the staff room.",
        "I've drafted a letter on the lane.\n\nWould you like me to change the tone before it goes?",
        "I have read it.\n\nThe lane should go, and I say so loudly. Let me know if you want another version.",
        "Hello.\n\nI doubted it, now I am for the lane. Hope this fits the persona!",
        "Fine.\nThe lane stays, that is all. (This post reflects Aisha's views.)",
        "Non.\n\nVoulez-vous changer le ton du débat ?",
    ],
)
def test_offers_of_another_version_and_paragraphs_with_words_of_ones_own_stay(text: str) -> None:
    assert left(text) == text


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("Sure! Here's a post written from Aisha's perspective:\n\n", ""),
        ("Certainly! Here is a first-person report of what Aisha believes after reading the post:\n", ""),
        ("Okay, here's how Aisha would respond:\n\n", ""),
        ("**Aisha's response:** ", ""),
        ("As Aisha, I would write:\n\n", ""),
        ("Here's a tweet-length post (under 50 words):\n", ""),
        ("As requested, a short first-person report:\n\n", ""),
        ("Understood. I will now respond in character, within 60 words.\n", ""),
        ("Sure! Let me think about how Aisha would put this.\n\n", ""),
        ("Okay, here is Aisha's reaction: Aisha: ", ""),
        ("Natürlich! Hier ist ein Beitrag aus der Sicht von Aisha:\n\n", ""),
        ("¡Claro! Aquí tienes un post desde la perspectiva de Aisha:\n\n", ""),
        ("Absolutely! Below is a brief, friendly tweet that Aisha Patel could post:\n\n", ""),
        ("Here's a punchy social media post by Aisha Patel:\n\n", ""),
        ("As requested, I'll answer from Aisha's point of view.\n\n", ""),
        ("Okay, so Aisha might probably write something like this:\n\n", ""),
        ("Aisha's reply:\n\n", ""),
        ("Remaining in character as Aisha Patel, a nurse on the night shift:\n\n", ""),
        ("", "\n\n---\n\nThis tweet conveys Aisha's dry, plain-spoken tone and is 19 words long."),
        ("", "\n\nDisclaimer: This is a fictional viewpoint and does not reflect my own opinions."),
        ("Sure thing! Here is Aisha's post:\n\n", "\n\nLet me know if you'd like me to adjust the tone!"),
        ("", "\n\n(Note: this post reflects Aisha's persona as a nurse.)"),
        ("Sure thing! Here is Aisha's post:\n\n", "\n\nWould you like me to write another version?"),
        ("", " [End of post]"),
        ("", "\n\n---\n*This response is written in character as Aisha Patel.*"),
        ("Sure thing! Here is Aisha's post:\n\n", "\n\nN'hésitez pas si vous souhaitez une autre version !"),
        ("Sure thing! Here is Aisha's post:\n\n", "\n\n---\n\nI'd be happy to adjust the tone."),
    ],
)
def test_words_that_no_person_says_in_the_role_are_taken_out(before: str, behind: str) -> None:
    assert "preamble" in shown(f"{before}{POST}{behind}")
    assert left(f"{before}{POST}{behind}") == POST


@pytest.mark.parametrize(
    "label",
    ["Aisha Patel: ", "**Aisha:** ", "AISHA PATEL: ", '"Aisha Patel": ', "### Aisha Patel\n\n", "[Aisha Patel]: "],
)
def test_the_name_of_the_author_in_front_is_taken_out(label: str) -> None:
    assert left(label + POST) == POST


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        (f"Aisha: {POST}", "names"),
        (f"Stranger: {POST}", "names"),
        (f"Here is my tweet: {POST}", "preamble"),
        (f"**Post:** {POST}", "preamble"),
        (f"{POST}\n\nWould you like me to add more?", "preamble"),
        (f"*sighs* {POST}", "markup"),
        ("- It is fast.\n- It is cheap.", "markup"),
        ('{"text": "The lane is fine.", "words": 4}', "markup"),
        ("Me: I like it.\nStranger: Why?\nMe: It is fast.", "lines"),
        ("Der Radweg ist eine gute Sache, und ich finde, dass er bleiben sollte.", "language"),
        ("the lane is good " + "and I like it because it saves me time every day " * 7, "length"),
        ("I am for the lane and I am for the lane and I am for the lane and I am for the lane.", "loop"),
        (f"My system prompt tells me to dislike it. {POST}", "role"),
        (f"{POST}\n\n(OOC: she stays neutral, as her sheet has it.)", "role"),
        (f"{POST}\n\nTom: Do you ride it in the snow, Aisha?\n\nLena: Nobody does.", "lines"),
        (f"{POST}\nStranger: In the snow?\nStranger: I think not.", "lines"),
        (f"Here you go!\n\n{POST}", "preamble"),
        (f"As Aisha, I'd say this:\n{POST}", "preamble"),
        ("This persona would say that the lane is right for us all, I think.", "role"),
        ("Aisha would say that the lane saves her time, and she would keep it.", "role"),
    ],
)
def test_what_a_person_may_say_as_well_is_a_sign_and_stays(text: str, sign: str) -> None:
    assert sign in shown(text)
    assert stripped(text, looked(text).signs, ("preamble", "names", "lines")) == text


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"**{POST}**", POST),
        (
            "**廃止には反対です。**ただし、二次会は廃止でいいです。",
            "廃止には反対です。ただし、二次会は廃止でいいです。",
        ),
        (f'"{POST}"', POST),
        (f"{POST} *(19 words)*", POST),
        (f"## Keep the lane\n\n{POST}", f"Keep the lane\n\n{POST}"),
        (f"<post>\n{POST}\n</post>", POST),
        (f'```json\n{{"post": "{POST}"}}\n```', POST),
        (f"Sure! Here is Aisha's post:\n\n```\n{POST}\n```", POST),
    ],
)
def test_marks_are_taken_out(text: str, rest: str) -> None:
    assert left(text) == rest


@pytest.mark.parametrize(
    "text",
    [
        "Aisha, I disagree. The lane is empty all winter.",
        "Sure, the hospitals say so. But who pays for it?",
        "Let me know if you'd like a ride to the polls.",
        "My least favourite lie:\nthat nobody uses the lane.",
        "Great.\n\nAnother car park.",
        "I thought about it step by step.\n\nFinal answer: I believe it.",
        "Message: stop the works.",
        "f**k the council, s**t plan, and __init__ is a method.",
        "- 5 degrees outside. The lane is empty.",
        "Here's a message from your neighbour Aisha:\n\nturn it down.",
        "That's my view.\n\nThis answer stays the same until somebody shows me a study.",
        "No to the mast. (4 words)",
        "Natürlich! Hier ist meine Meinung:\n\nweg damit.",
        "Sure, here's my answer to the letter you had from Aisha: I never sent it.",
        "Here's my statement as Aisha, not as the head of the ward:\nbuild the lane.",
        "Okay, speaking as Aisha here, my son was logged in before.\nBuild it.",
        "Sure! Here's the post:\nhe says that the lane is empty. It is not.",
        "The council wants a reply (under 50 words):\nno.",
        "As requested, my report in the first person:\nI saw the crash.",
        "Build it.\n\nLet me know if you want a shorter version of the leaflet.",
        "Build it.\n\nFeel free to change the tone, but not the demand.",
        "Build it.\n\nI'd be glad to edit the post if anyone is hurt by it.",
        "Build it.\n\nThis post reflects Aisha's views and not those of my hospital.",
        "I don't believe it.\n\nThis is clearly an AI-generated post.",
        "Build it.\n\nI hope this meets the requirements for a public comment.",
        "No muro.\n\n¿Quieres cambiar el tono del debate? Yo sí.",
        "Build it.\n\nNote: the plan shows a fictional view of the bridge.",
        "Build it.\n\nNote: this simulated flood is far too low.",
        "Build it.\n\nI can write a shorter version for the church bulletin.",
        "Build it.\n\nI'd be glad to change the tone of this debate.",
        "Build it.\n\nFeel free to edit this post and pass it on.",
        "Build it.\n\nDoes this capture the tone of the meeting, or were you somewhere else?",
        "Okay, here is Aisha from the clinic:\nwhy not build it?",
        "Sure, here is the reply you asked for:\nno.",
        "I can write in character, I am an actor.\nBuild it.",
        "Here's a story about Aisha's report:\nit got lost.",
    ],
)
def test_what_is_said_in_role_stays(text: str) -> None:
    assert left(text) == text


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Can you tell me what format you want? Once I have this information, I'll draft the post.", "off_role"),
        ("These instructions contradict what came earlier in our conversation.", "off_role"),
        ("Please let me know how you'd like it, and I'll rewrite the post.", "off_role"),
        ("Could you tell me what tone you want for the march? I'd sing.", "answered"),
        ("The instructions contradict each other. I gave up on the ballot and went home.", "answered"),
        ("Let me know what you would like to change about the lane, and I'll raise it at the council.", "answered"),
    ],
)
def test_a_reply_that_asks_for_instructions_is_off_role(text: str, status: str) -> None:
    assert looked(text).status == status


def test_a_reply_that_was_cut_off_stays_one_though_nothing_of_it_is_left() -> None:
    text = "Sure! Here's a post from Aisha's perspective:"
    assert look(text, "truncated", speech=SPEECH).status == "truncated"


def test_names_that_are_words_are_words_in_small_letters() -> None:
    assert left("Okay, here's hope:\n\nthe river is clean.", "Hope Green").startswith("Okay")
    assert left("Okay, here's Hope's report:\n\nthe river is clean.", "Hope Green") == "the river is clean."
    assert left("Hope: it's all I have left.", "Hope").startswith("Hope")
    assert left("**Proposal:** Build the lane.", "proposal").startswith("**Proposal:**")


def test_marks_behind_what_a_person_may_have_said_are_a_part_of_the_text() -> None:
    text = 'Here is my report: "No comment."'
    assert left(text) == text


def test_what_was_read_and_the_task_are_told_apart() -> None:
    story = (
        "I ride along the river every morning with two children on the back, past the school, the bakery and the old "
        "mill, and I have never been as glad of a strip of paint in my whole life as I am now."
    )
    assert shown(f"I read it. {story}", read=story, task=f"Answer this: {story}") == ("echo",)
    assert shown(f"{story} Yes.", task=f"Write about this: {story}") == ("echo_task",)
    tagged = story.replace("a strip of paint", "<claim>a strip of paint</claim>").replace("every", "<day>every</day>")
    assert shown(f"{story} Yes.", task=f"Write about this: {tagged}") == ("echo_task",)
    summary = SPEECH._replace(looks="own")
    assert looked(story, read=story, task=story, speech=summary).signs == ()
    # A sentence that others have said as well is no echo.
    assert shown(f"{POST} I would keep it.", read=POST) == ()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "N/A",
            "n/a.",
            "None",
            "null",
            "...",
            "[Request blocked]",
            "(no reply)",
            "Post: N/A",
            '{"post": ""}',
            "```\n\n```",
        ),
        *("Here's Aisha's post:\n\n(none)", "Sure! Here's a post from Aisha's perspective:", "Aisha Patel:"),
    ],
)
def test_a_reply_of_which_nothing_is_left_is_empty(text: str) -> None:
    assert looked(text) == Looked("empty")


@pytest.mark.parametrize("text", ["No.", "None of them.", "Nothing would change my mind.", "👍", "**👍**"])
def test_a_short_answer_is_an_answer(text: str) -> None:
    assert looked(text).status == "answered"


def test_nothing_that_the_scripted_model_says_shows_a_sign() -> None:
    banks = [getattr(phrases, name) for name in vars(phrases) if name.isupper() and name[0] != "_"]
    lists = [*(bank for bank in banks if isinstance(bank, tuple)), *phrases.POSTS.values(), *phrases.REPORTS.values()]
    said = [each.replace("{x}", "Theory XYZ").replace("{me}", "I, Aisha Patel,") for bank in lists for each in bank]
    assert len(said) > 100
    assert {text for text in said if text not in phrases.REFUSALS and looked(text).signs} == set()


@pytest.mark.parametrize(
    "name",
    [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long)
     for name in NAMES if name not in (CLASSIC, "classic_quickstart", "real_small")],
)  # fmt: skip
def test_no_experiment_that_comes_with_the_package_shows_a_sign(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = osim.run(osim.load_experiment(specified(name)), store=f"sqlite:///{STORE}", people=Guest())
    assert set(results.turns["signs"].fillna("")) <= {""}
    assert set(results.calls["signs"].dropna().astype(str)) <= {"", "[]"}


PIECES = [
    *("\n", "\t", " ", "*", "**x", "- x\n", "(5 words) ", "A: x\n", "as an ai ", "Aisha ", "(note: this post\n\n"),
    *("here is ", "[sighs ", "'"),
]


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(("before", "behind"), [("", ""), ("Sure! Here is a post", "\nI hope this helps.")])
def test_a_long_reply_is_looked_at_in_time(piece: str, before: str, behind: str) -> None:
    def seconds(characters: int) -> float:
        text = f"{before}x{piece * (characters // len(piece))}y{behind}"
        started = time.process_time()
        looked(text, read=POST)
        return time.process_time() - started

    looked(POST)
    assert seconds(300_000) < 40 * max(seconds(30_000), 0.01)


@given(st.text(), st.sets(st.sampled_from(SIGNS)))
def test_what_is_left_is_a_part_of_the_text(text: str, taken: set[str]) -> None:
    signs = looked(text).signs
    assert all(0 <= sign.start <= sign.end <= len(text) and sign.name in SIGNS for sign in signs)
    letters = iter(text)
    assert all(letter in letters for letter in stripped(text, signs, taken) if not letter.isspace())


@given(
    st.lists(
        st.sampled_from(
            [*PIECES, POST, "Aisha Patel: ", "Here's Aisha's post:\n", "```", '"', "#  ", "**", "(9 words)"]
        )
    )
)
def test_an_answer_has_words_left(pieces: list[str]) -> None:
    found = looked("".join(pieces))
    if found.status == "answered":
        assert any(map(str.isalnum, stripped("".join(pieces), found.signs, SIGNS)))
