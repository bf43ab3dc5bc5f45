from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from opinionsim.classifiers import is_abstention, parse_closed, read_closed
from opinionsim.errors import Rejected
from opinionsim.llm import phrases
from opinionsim.opinions import OpinionScale
from tests.support.tables import coded_texts

FIVE = OpinionScale()
AGREE = OpinionScale((1, 2, 3), ("disagree", "unsure", "agree"))
SCALES = st.sampled_from(
    [FIVE, AGREE, OpinionScale.of_size(2), OpinionScale.of_size(7), OpinionScale((0, 50, 100), ("low", "mid", "high"))]
)
FORMS = (
    "{}",
    " {}\n",
    "{}.",
    "Answer: {}",
    "answer={}",
    "My answer is **{}**.",
    "I would rate it {}",
    "`{}`",
    '{{"answer": {}}}',
    "<answer>{}</answer>",
    "I thought about it for a while.\n\n{}",
    "Final answer:\n{}\n",
)


@pytest.mark.parametrize(
    ("claim", "text", "point"), [*coded_texts("closed answer"), ("", "", None), ("", "9" * 5000, None)]
)
def test_reads_what_is_said_and_never_guesses(claim: str, text: str, point: float | None) -> None:
    assert parse_closed(text, FIVE) == point


def test_neutral_is_a_point_only_where_it_is_an_anchor() -> None:
    assert parse_closed("neutral", FIVE) == 0
    assert parse_closed("neutral", AGREE) is None
    assert parse_closed("neutral", OpinionScale.of_size(2)) is None


def test_an_anchor_is_not_found_inside_another() -> None:
    assert parse_closed("disagree", AGREE) == 1
    assert parse_closed("Agree", AGREE) == 3
    nested = OpinionScale((0, 1), ("agree", "agree strongly"))
    assert parse_closed("agree strongly", nested) == 1
    assert parse_closed("level 2", OpinionScale((1, 2), ("level 1", "level 2"))) == 2


@given(st.data())
def test_every_point_is_read_in_every_form(data: st.DataObject) -> None:
    scale = data.draw(SCALES)
    point = data.draw(st.sampled_from(scale.points))
    spelled = data.draw(
        st.sampled_from(
            [
                str(point),
                f"{point:+d}",
                str(point).replace("-", "\u2212"),
                scale.label(point),
                scale.label(point).title(),
            ]
        )
    )
    assert parse_closed(data.draw(st.sampled_from(FORMS)).format(spelled), scale) == point


@given(st.data())
def test_two_points_are_none(data: st.DataObject) -> None:
    scale = data.draw(SCALES)
    one, other = data.draw(st.permutations(scale.points))[:2]
    first, second = (data.draw(st.sampled_from([str(p), scale.label(p)])) for p in (one, other))
    joined = data.draw(st.sampled_from(["{} or {}", "{}, {}", "{} ({})", "{}\n{}"])).format(first, second)
    assert parse_closed(joined, scale) is None


@given(st.text(max_size=60), SCALES)
def test_any_text_gives_a_point_of_the_scale_or_none(text: str, scale: OpinionScale) -> None:
    assert parse_closed(text, scale) in (None, *scale.points)


@given(st.integers(), SCALES)
def test_numbers_off_the_scale_are_none(number: int, scale: OpinionScale) -> None:
    assert parse_closed(f"Answer: {number}", scale) == (number if number in scale.points else None)


@pytest.mark.parametrize("text", ["N", "n.", " N\n", "Answer: N", "**N**", "N/A", "None", "No opinion."])
def test_abstentions(text: str) -> None:
    assert is_abstention(text)
    assert parse_closed(text, FIVE) is None


@pytest.mark.parametrize("text", ["", "-1", "No", "Not sure", "None of these", "nothing", *phrases.REFUSALS])
def test_other_answers_are_no_abstentions(text: str) -> None:
    assert not is_abstention(text)


@pytest.mark.parametrize("text", phrases.REFUSALS)
def test_refusals_name_no_point(text: str) -> None:
    assert parse_closed(text, FIVE) is None


@pytest.mark.parametrize("text", ["0.5", "I think so", "1 / 2", "-1: slightly positive", "19 This is a lie."])
def test_what_names_no_one_point_is_rejected_with_the_reason(text: str) -> None:
    with pytest.raises(Rejected, match=f"one of -2, -1, 0, 1, 2 is needed and nothing else; '{text}' is none, or"):
        read_closed(OpinionScale(), "reply", text, ())
    with pytest.raises(Rejected, match=r"; 'I would say: I would say: I would say: I\.\.\.' is none, or"):
        read_closed(OpinionScale(), "reply", 9 * "I would say: ", ())


@pytest.mark.parametrize(("text", "point"), [("-1: slightly negative", -1), ("2", 2), ("No opinion.", None)])
def test_a_point_or_an_abstention_is_an_answer(text: str, point: int | None) -> None:
    assert read_closed(OpinionScale(), "reply", text, ()) == point
