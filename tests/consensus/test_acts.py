"""Replies in a session that looks for a consensus, and what is read from them: statements, rankings and ratings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.consensus import ConsensusInteraction
from opinionsim.errors import Rejected
from opinionsim.messages import Message, numbers_in


def parse_of(act: str, **fields: Any) -> Any:
    """How an act of a session reads its replies."""
    fields = {"kind": "consensus", "ballot": "rating", "rule": "nash", **fields}
    return ConsensusInteraction.model_validate(fields, strict=False).acts[act].parse


RANK, RATE, PREDICT, PREDICT_RATING = map(parse_of, ("rank", "rate", "predict", "predict-rating"))
DRAFT = parse_of("draft")
COMPLETION = parse_of("draft", drafters=({"count": 2, "style": "completion"},))
#: Labels of statements: A to Z, AA to ZZ.
LABELS = [*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2))]


def shown(n: int, first: int = 10) -> tuple[Message, ...]:
    """An opinion and n statements, of the turns from `first` on."""
    opinion = Message("I like it here.", agent=0, act="state", turn=0)
    drafts = [Message(f"Statement {turn}", agent=5, act="draft", turn=turn) for turn in range(first, first + n)]
    return (opinion, *drafts)


def ranks(text: str, n: int) -> list[int]:
    """Ranks that a reply gives the n statements shown, in their order."""
    said = RANK("reply", text, shown(n))
    assert numbers_in(said.text) == said.decision, "what is published says other numbers than were decided"
    return [said.decision[turn]["rank"] for turn in range(10, 10 + n)]


# -- rankings


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<ranking>B > A = C</ranking>", [2, 1, 2]),
        ("<ranking>\n  b>a >  c \n</ranking>", [2, 1, 3]),
        ("<RANKING>Statement B > Statement A > Statement C.</RANKING>", [2, 1, 3]),
        ("A and C say the same.\n\n**Final ranking:** **B** > A = C", [2, 1, 2]),
        ("final ranking: C > B > A", [3, 2, 1]),
        ("Ranking:\nC > B > A", [3, 2, 1]),
        ("**Ranking:**\n\nC &gt; B &gt; A", [3, 2, 1]),
        ("My ranking: C > B > A. The last one is too vague.", [3, 2, 1]),
        ("C > B > A", [3, 2, 1]),
        ("A = B = C", [1, 1, 1]),
        ("Ranking: C > B > A\nThe opposite ranking: A > B > C. That would be wrong.", [3, 2, 1]),
        ("My final ranking: C > B > A", [3, 2, 1]),
        ("First I thought A > B > C.\nThen:\nB > A > C", [2, 1, 3]),
        ("Some find A > B, which is wrong. <ranking>C > B > A</ranking>", [3, 2, 1]),
        ("<ranking>C > B > A", [3, 2, 1]),
        ("<ranking>C > B > A</ranking> Again: <ranking>C>B>A</ranking>", [3, 2, 1]),
        ("Der zweite Vorschlag überzeugt mich am meisten. <ranking>B > A > C</ranking>", [2, 1, 3]),
        ("我最同意第二个。<ranking>B > A > C</ranking>", [2, 1, 3]),
        ("1. B\n2. C\n3. A", [3, 1, 2]),
        ("My ranking:\n2. A / 1. C / 3. B", [2, 3, 1]),
        ("<ranking>1. **Statement C**: plain\n2. Statement B - vague\n3. A</ranking>", [3, 2, 1]),
        ("1) A, 2) B, 3) C", [1, 2, 3]),
        ("It would be INCORRECT to put A first.\n<ranking>B > A > C</ranking>", [2, 1, 3]),
        ("Ranking: B > A > C, and nothing here is INCORRECT or > else\n<ranking>B > A > C</ranking>", [2, 1, 3]),
    ],
)
def test_a_ranking_is_found_where_a_model_puts_it(reply: str, expected: list[int]) -> None:
    assert ranks(reply, 3) == expected


@pytest.mark.parametrize(
    ("reply", "n", "why"),
    [
        ("C > A", 2, "names 'C'; the statements are A to B"),
        ("<ranking>C > A</ranking>", 2, "names 'C'"),
        ("<ranking>A > B > A</ranking>", 2, "names statement A twice"),
        ("<ranking>A = A > B</ranking>", 2, "names statement A twice"),
        ("<ranking>B > A</ranking>", 3, "leaves out C"),
        ("<ranking>B > A</ranking> or <ranking>A > B</ranking>", 2, "contradict each other"),
        ("Ranking: A > B\nFinal ranking: B > A", 2, "contradict each other"),
        ("Not this ranking: A > B > C. I prefer C.", 3, "names 'Not this"),
        ("<ranking></ranking>", 2, "names ''"),
        ("<ranking>A > > B</ranking>", 2, "names ''"),
        ("", 2, "the reply is blank"),
        ("  \n ", 2, "the reply is blank"),
        ("I agree with all of them.", 2, "names 'I agree"),
        ("A, B", 2, "names 'A, B'"),
        ("<ranking>Vorschlag B > Vorschlag A</ranking>", 2, "names 'Vorschlag B'"),
        ("<ranking>1 > 2</ranking>", 2, "names '1'"),
        ("1. A\n2. B", 3, "leaves out C"),
        ("1. A park is green.\n2. B", 2, "leaves out A"),
    ],
)
def test_a_ranking_that_is_none_is_refused_and_says_why(reply: str, n: int, why: str) -> None:
    with pytest.raises(Rejected, match=why):
        ranks(reply, n)


@given(st.data(), st.integers(2, 60))
def test_any_ranking_of_any_number_of_statements_is_read_as_it_is_written(data: st.DataObject, n: int) -> None:
    order = data.draw(st.permutations(range(n)))
    signs = data.draw(st.lists(st.sampled_from([" > ", " = ", ">", "=\n"]), min_size=n - 1, max_size=n - 1))
    names = LABELS
    text, expected, rank = names[order[0]], {order[0]: 1}, 1
    for place, (sign, each) in enumerate(zip(signs, order[1:], strict=True), 2):
        rank = place if ">" in sign else rank
        expected[each] = rank
        text += sign + names[each]
    assert ranks(f"<ranking>{text}</ranking>", n) == [expected[each] for each in range(n)]


def test_letters_go_on_after_z() -> None:
    assert ranks("<ranking>" + " > ".join(reversed(LABELS[:30])) + "</ranking>", 30) == list(range(30, 0, -1))
    assert LABELS[25:28] == ["Z", "AA", "AB"]


@given(st.text(max_size=80), st.integers(2, 5))
def test_any_text_is_read_or_refused(text: str, n: int) -> None:
    parsers: Sequence[Any] = (RANK, PREDICT, RATE, PREDICT_RATING, DRAFT)
    for parse in (*parsers, COMPLETION):
        with suppress(Rejected):
            assert parse("reply", text, shown(n)).text.strip()


def test_labels_follow_what_was_received_not_the_turns() -> None:
    opinion, first, second, third = shown(3)
    said = RANK("reply", "<ranking>A > B > C</ranking>", (opinion, third, first, second))
    assert said.decision == {12: {"rank": 1}, 10: {"rank": 2}, 11: {"rank": 3}}


# -- ratings


def rating(reply: str) -> dict[str, int]:
    """What a citizen's reply says of the statement of turn 10."""
    said = RATE("reply", reply, shown(1))
    assert numbers_in(said.text) == said.decision
    return dict(said.decision[10])


@pytest.mark.parametrize(
    "reply",
    [
        "Agreement: 6\nQuality: 2",
        "**Agreement:** 6\n**Quality:** 2",
        "- agreement = 6\n- quality = 2",
        "Agreement: 6/7\nQuality: 2 out of 7",
        "Agreement (1-7): 6\nQuality (1-7): 2",
        "Agreement: (1 is strongly disagree, 4 is neither, 7 is strongly agree) 6\nQuality: (1 is terrible) 2",
        "Agreement: 6 (I agree with 2 of 3 points)\nQuality: 2 (1 is terrible)",
        "My view.\n\nAgreement: 6.0\n\nQuality: 2\nNothing in it is INCORRECT.",
        "Agreement: 6\nQuality: 2\nAgreement: 6",
        "Quality: 2\nAgreement: (6)",
        "Agreement with the statement: **6**, mostly.\nQuality rating is 2",
        '{"agreement": 6,\n"quality": 2}',
        "| Agreement | 6 |\n| Quality | `2` |",
    ],
)
def test_a_rating_is_the_one_number_on_its_line(reply: str) -> None:
    assert rating(reply) == {"agreement": 6, "quality": 2}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Agreement: 0\nQuality: 2", "agreement 0 is off the scale; valid: whole numbers from 1 to 7"),
        ("Agreement: 6\nQuality: 8", "quality 8 is off the scale"),
        ("Agreement: -3\nQuality: 2", "agreement -3 is off the scale"),
        ("Agreement: 5.5\nQuality: 2", "agreement 5.5 is off the scale"),
        ("Agreement: 5,5\nQuality: 2", "several numbers"),
        ("Agreement: 5-6\nQuality: 2", "several numbers"),
        ("Agreement: 6 on a scale of 1 to 7\nQuality: 2", "several numbers"),
        ("Agreement: 6\nAgreement: 5\nQuality: 2", "several numbers"),
        *(
            (f"Agreement: {each}\nQuality: 2", "one that is no rating")
            for each in ("\u22125", ".5", "5%", "5\u00b2", "<5", "5/10", "not 5", "five, for 3 reasons")
        ),
        ("Agreement: 6", "a line such as `Quality: 5` is needed; the reply has none"),
        ("Agreement: six\nQuality: 2", "the reply has none"),
        ("I agree, 6.\nThe quality is 2.", "the reply has none"),
        ("", "the reply has none"),
    ],
)
def test_a_rating_that_is_none_is_refused_and_says_why(reply: str, why: str) -> None:
    with pytest.raises(Rejected, match=why.replace("`", ".")):
        rating(reply)


def test_blank_lines_without_end_are_read_in_time_that_grows_with_their_number() -> None:
    # Time that grew with their square would be more than an hour, and the limit of a test.
    with pytest.raises(Rejected, match="has none"):
        rating("\n" * 1_000_000)


@given(st.integers(1, 7), st.integers(1, 7))
def test_every_rating_on_the_scale_is_read_as_it_is_written(agreement: int, quality: int) -> None:
    assert rating(f"Agreement: {agreement}\nQuality: {quality}") == {"agreement": agreement, "quality": quality}


@pytest.mark.parametrize("reply", ["Agreement: 5", "Predicted agreement: 5", "The citizen wavers.\nAgreement: 5 / 7"])
def test_a_predictor_says_agreement_alone(reply: str) -> None:
    assert PREDICT_RATING("reply", reply, shown(1)).decision == {10: {"predicted_agreement": 5}}


# -- statements

read = partial(DRAFT, "reply")


@pytest.mark.parametrize(
    ("reply", "statement"),
    [
        ("<statement>We agree.</statement>", "We agree."),
        ("Opinion 1 wants more.\n<Statement>\nWe agree.\n</Statement>\nThat is my draft.", "We agree."),
        ("<statement>We agree.", "We agree."),
        ("<statement>We agree.</statement> I repeat: <statement>We agree. </statement>", "We agree."),
        ("<statement>Five > four, and <b>all</b> of us agree.</statement>", "Five > four, and <b>all</b> of us agree."),
        ("<statement>It is INCORRECT that we differ.</statement>", "It is INCORRECT that we differ."),
        ("<statement>Wir sind uns einig.\n\nAlle.</statement>", "Wir sind uns einig.\n\nAlle."),
    ],
)
def test_a_statement_is_what_stands_between_its_tags(reply: str, statement: str) -> None:
    said = read(reply, ())
    assert (said.text, said.decision) == (statement, statement)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("We agree.", "the reply has none"),
        ("", "the reply has none"),
        ("<statement> \n </statement>", "is blank"),
        ("<statement>We agree.</statement><statement>We differ.</statement>", "several that differ"),
        ("I answer between <statement> tags. <statement>We agree.</statement>", "several that differ"),
        ("<statement>We <statement>agree.</statement>", "several that differ"),
    ],
)
def test_a_reply_without_one_statement_is_refused_and_says_why(reply: str, why: str) -> None:
    with pytest.raises(Rejected, match=why):
        read(reply, ())


@given(st.text(min_size=1).filter(lambda text: text.strip() and "<statement" not in text.lower()))
def test_any_statement_without_these_tags_is_read_to_the_letter(text: str) -> None:
    if "</statement>" not in text.lower():
        assert read(f"Reasoning.\n<statement>{text}</statement>", ()).text == text.strip()


@pytest.mark.parametrize(
    ("reply", "statement"),
    [
        ("\n  We agree.\nOpinion 1: and so on", "We agree."),
        ('"We agree."', "We agree."),
        ("We agree > all.", "We agree > all."),
    ],
)
def test_a_completion_is_cut_at_its_first_line(reply: str, statement: str) -> None:
    assert COMPLETION("reply", reply, ()).text == statement


def test_a_blank_completion_is_refused() -> None:
    with pytest.raises(Rejected, match="is blank"):
        COMPLETION("reply", "\n \n", ())
