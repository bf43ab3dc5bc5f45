"""Curation of questions: what a person decides in a file, to and fro, and what is refused."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from opinionsim.consensus import EXCLUSIONS, read_curation, write_curation
from opinionsim.errors import SpecError
from tests.support.examples import examples

ASKED = ["Should bells ring at night?", "=Should(1) it run?", "'-Should it, too?"]


def _edited(path: Path, edit: Callable[[list[list[str]]], None]) -> Path:
    """The file after a person has edited its cells."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    edit(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def _decided(path: Path, asked: list[str], edit: Callable[[list[list[str]]], None] = lambda rows: None) -> Path:
    """A file in which Ann keeps all questions, edited further."""
    write_curation(asked, path)

    def decide(rows: list[list[str]]) -> None:
        for row in rows[1:]:
            row[-1] = "Ann"
        edit(rows)

    return _edited(path, decide)


def test_there_are_seven_reasons_and_a_column_for_each(tmp_path: Path) -> None:
    write_curation(ASKED, tmp_path / "q.csv")
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["question", *EXCLUSIONS, "decided_by"]
    assert len(EXCLUSIONS) == 7
    # No spreadsheet runs a question.
    assert [row[0] for row in rows[1:]] == [ASKED[0], f"'{ASKED[1]}", f"'{ASKED[2]}"]
    assert {cell for row in rows[1:] for cell in row[1:]} == {""}


def test_what_a_person_decided_is_read_back(tmp_path: Path) -> None:
    def edit(rows: list[list[str]]) -> None:
        rows[1][2], rows[2][1], rows[2][7], rows[3][3] = " Yes", "x", "1", "no"

    found = read_curation(_decided(tmp_path / "q.csv", ASKED, edit))
    assert list(found.columns) == ["question", *EXCLUSIONS, "decided_by", "kept"]
    assert list(found["question"]) == ASKED
    assert list(found["kept"]) == [False, False, True]
    assert [tuple(reason for reason in EXCLUSIONS if row[reason]) for _, row in found.iterrows()] == [
        ("jargon",), ("nonsensical", "presupposition"), (),
    ]  # fmt: skip
    assert {found[reason].dtype.kind for reason in EXCLUSIONS} == {"b"}
    assert set(found["decided_by"]) == {"Ann"}


@examples(50)
@given(
    asked=st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip),
        min_size=1,
        unique_by=lambda text: " ".join(text.split()).casefold(),
    )
)
def test_any_question_survives(tmp_path_factory: pytest.TempPathFactory, asked: list[str]) -> None:
    path = _decided(tmp_path_factory.mktemp("any") / "q.csv", asked)
    assert list(read_curation(path)["question"]) == asked


def _set(row: int, column: int, text: str) -> Callable[[list[list[str]]], None]:
    def edit(rows: list[list[str]]) -> None:
        rows[row][column] = text

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_set(2, 1, "maybe"), "row 2, nonsensical: must be yes, x, 1, no, 0 or empty; got 'maybe'"),
        (_set(3, 8, " "), "row 3, decided_by: lacks the name of the person who decided; give a name"),
        (_set(1, 0, " "), "row 1, question: must not be blank"),
        (_set(3, 0, "should BELLS  ring at night?"), "row 3, question: is there twice"),
        (
            _set(0, 3, "extreme"),
            "the columns must be question, nonsensical, .*; got question, nonsensical, jargon, ext",
        ),
        (lambda rows: rows[2].append("too much"), "cannot be read"),
        (lambda rows: rows.clear(), "cannot be read"),
    ],
)
def test_a_file_that_says_something_else(tmp_path: Path, edit: Callable[[list[list[str]]], None], said: str) -> None:
    path = _decided(tmp_path / "q.csv", ASKED, edit)
    with pytest.raises(SpecError, match=said):
        read_curation(path)


def test_files_that_are_there_or_not(tmp_path: Path) -> None:
    write_curation(ASKED, tmp_path / "q.csv")
    with pytest.raises(SpecError, match="exists and may contain decisions"):
        write_curation(ASKED, tmp_path / "q.csv")
    with pytest.raises(SpecError, match="cannot be read"):
        read_curation(tmp_path / "none.csv")
    for asked in ([], [" "], [ASKED[0], 3]):
        with pytest.raises(SpecError, match="needs at least one, and no blank ones"):
            write_curation(asked, tmp_path / "new.csv")  # type: ignore[arg-type]
