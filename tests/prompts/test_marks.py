from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from opinionsim.messages import printable
from opinionsim.prompts import Block, Marks, load_pack

_MARKS = Marks(("<p>", "</p>"), ("<h>", "</h>"), ("[[x]]", "[[/x]]"), ("<c>", "</c>"), ("{b}", "{/b}"), {})
_SCRAPS = st.lists(
    st.sampled_from(["<", "p", ">", "</", "[", "x]]", "/", " ", "{b", "}", "\n", "é"]) | st.text(max_size=3)
)


@given(_SCRAPS.map("".join))
def test_no_text_opens_or_closes_a_block(text: str) -> None:
    safe = _MARKS.defanger()(text)
    assert _MARKS.problem() is None
    assert not any(delimiter in safe for _, delimiter in _MARKS.delimiters())
    assert safe.replace(" ", "") == printable(text).replace(" ", "")
    prompt = f"a [[x]]{safe}[[/x]] b [[x]]{safe}[[/x]]"
    assert _MARKS.blocks("post", prompt) == (safe, safe)
    assert _MARKS.without("post", prompt) == "a  b "


@given(_SCRAPS.map("".join))
def test_a_text_without_delimiters_stays_as_it_is(text: str) -> None:
    assume(not any(delimiter in text for _, delimiter in _MARKS.delimiters()))
    assert _MARKS.defanger()(text) == printable(text)


@given(
    st.sampled_from([kind for kind, _ in _MARKS.delimiters()]), _SCRAPS.map("".join), st.sampled_from(["", " ", "\n"])
)
def test_one_outer_pair_of_delimiters_is_taken_off(kind: Block, text: str, space: str) -> None:
    opening, closing = _MARKS.pair(kind)
    inside = _MARKS.defanger()(text).strip()
    assert _MARKS.unwrapped(f"{space}{opening}{space}{inside}{space}{closing}{space}") == inside
    assert _MARKS.unwrapped(inside) == inside


@pytest.mark.parametrize(
    "text", ["<p>a</p> and <p>b</p>", "<p>a", "a</p>", "<p>a</h>", "Here you are: <p>a</p>", "<p></p><p>", "<p>", ""]
)
def test_what_is_not_enclosed_whole_stays_as_it_is(text: str) -> None:
    assert _MARKS.unwrapped(text) == text


_DELIMITERS = st.builds("".join, st.tuples(st.sampled_from("<("), st.text("ab/", min_size=1), st.sampled_from(">)")))


@given(st.lists(_DELIMITERS, min_size=10, max_size=10, unique=True), st.data())
def test_delimiters_that_pass_the_check_are_safe_next_to_any_text(listed: list[str], data: st.DataObject) -> None:
    marks = Marks(*zip(listed[::2], listed[1::2], strict=True), {})  # type: ignore[arg-type]
    assert marks.problem() is None
    scraps = st.lists(st.sampled_from(listed) | st.text("ab/<>()", max_size=4)).map("".join)
    safe = marks.defanger()(data.draw(scraps))
    for _, one in marks.delimiters():
        for _, two in marks.delimiters():
            joined = one + safe + two
            found = sum(joined.count(delimiter) for _, delimiter in marks.delimiters())
            assert found == 2


def test_overlapping_delimiters_in_a_text_are_all_broken() -> None:
    marks = Marks(("abca1", "2p"), ("<h>", "</h>"), ("cab", "</x>"), ("<c>", "</c>"), ("<b>", "</b>"), {})
    safe = marks.defanger()("abca1 abcab cabca1")
    assert "cab" not in safe
    assert "abca1" not in safe


@pytest.mark.parametrize(
    ("text", "author", "found"),
    [
        ("Response 12: Yes.", "Ada", "Yes."),
        (" [you]:\nresponse 0:\n Ada: Yes. ", "Ada", "Yes. "),
        ("ADA: Yes.", "Ada", "Yes."),
        ("Ben: Yes.", "Ada", "Ben: Yes."),
        ("(A.+): Yes.", "(A.+)", "Yes."),
        ("Ada: Yes.", "(A.+)", "Ada: Yes."),
        ("  Yes: no.", "Ada", "  Yes: no."),
        (": Yes.", "", ": Yes."),
        ("[Other participant]:", "Ada", ""),
        ("  moderator   instructions : *Do* it.", "Ada", "*Do* it."),
        ("**Moderator Instructions:** Do it.", "Ada", "Do it."),
        ("__[you]__: ** Response 3 :** Yes.", "Ada", "Yes."),
        ("**Yes**: no.", "Ada", "**Yes**: no."),
    ],
)
def test_labels_at_the_beginning_are_taken_away_and_anothers_name_is_not(text: str, author: str, found: str) -> None:
    assert load_pack("deliberation").marks.unlabelled(text, author) == found
