"""Tables from outside: what is found in them, and twelve kinds of bad ones in every place that reads tables."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from opinionsim.errors import SpecError
from opinionsim.foundation.tables import read_table
from opinionsim.networks import build_network
from opinionsim.personas import load_personas
from opinionsim.surveys import SurveyColumn, SurveyMapping, load_survey

Rows = list[list[str]]


class Place(NamedTuple):
    """A place that reads tables: a good table of it, its column of ids and its column of numbers."""

    rows: Rows
    code: int
    number: int
    read: Callable[[Path], Any]


def _survey(file: Path) -> Any:
    columns = (SurveyColumn(column="zip"), SurveyColumn(column="sex"), SurveyColumn(column="born", subtract_from=2024))
    found = load_survey(file, SurveyMapping(name="t", columns=columns))
    return {name: values.tolist() for name, values in found.values.items()}


def _ties(file: Path) -> Any:
    found = build_network({"kind": "file", "path": str(file), "directed": True})
    return found.labels, [each if each is None else each.tolist() for each in found.edges]


PLACES = {
    "edge lists": Place(
        [["source", "target", "weight"], ["Ann", "Bob", "1"], ["Bob", "Cy", "-1"], ["Cy", "Ann", "0"]], 0, 2, _ties
    ),
    "surveys": Place(
        [["zip", "born", "sex"], ["a1", "1990", "F"], ["b2", "1980", "M"], ["c3", "1970", "F"]], 0, 1, _survey
    ),
    "personas": Place(
        [["name", "opinion", "job"], ["Ann", "1", "baker"], ["Bob", "-1", "clerk"], ["Cy", "0", "nurse"]],
        0,
        1,
        load_personas,
    ),
}


def _text(rows: Rows, delimiter: str = ",") -> str:
    return "".join(delimiter.join(row) + "\n" for row in rows)


def _changed(rows: Rows, line: int, column: int, cell: str) -> Rows:
    return [
        [cell if (at, place) == (line, column) else each for place, each in enumerate(row)]
        for at, row in enumerate(rows, start=1)
    ]


#: What is done to a good table, and what the error says; {code} and {number} are headings of its columns.
BAD: dict[str, tuple[Callable[[Place], str | bytes], str]] = {
    "a cell too many in every row": (
        lambda place: _text([place.rows[0], *([*row, "7"] for row in place.rows[1:])]),
        r":2: must have \d cells, as line 1 has; got \d",
    ),
    "a cell too few in one row": (
        lambda place: _text([*place.rows[:3], place.rows[3][:-1]]),
        r":4: must have \d cells, as line 1 has; got \d",
    ),
    "a doubled heading": (
        lambda place: _text([[*row, row[place.number]] for row in place.rows]),
        r":1: .*'{number}'.* occurs 2 times",
    ),
    "a doubled heading in another case": (
        lambda place: _text(
            [
                [
                    *_changed(place.rows, 1, place.number, place.rows[0][place.number].title())[0],
                    place.rows[0][place.number].upper(),
                ],
                *_more(place.rows[1:], "0"),
            ]
        ),
        r":1: .*'{number}' occurs 2 times",
    ),
    "a misspelt heading": (
        lambda place: _text(_changed(place.rows, 1, place.number, place.rows[0][place.number] + "s")),
        r":1: .*did you mean {number}",
    ),
    "headings among the data": (
        lambda place: _text([*place.rows, place.rows[0], *place.rows[1:]]),
        ":5: repeats the headings among the data; delete the row",
    ),
    "the rows of Qualtrics": (
        lambda place: _text([place.rows[0], *([f'"{{""ImportId"":""Q{n}""}}"' for n in place.rows[0]],)]),
        ":2: contains import ids of Qualtrics",
    ),
    "two encodings": (
        lambda place: _text(_more(place.rows, "Jörg")).encode() + _text(_more(place.rows[1:], "é")).encode("cp1252"),
        ":1: mixes UTF-8 with another encoding",
    ),
    "another encoding": (
        lambda place: _text(_more(place.rows, "Юрий")).encode("koi8-r"),
        "not a text file in UTF-8, UTF-16 or Windows-1252; save it as UTF-8",
    ),
    "an open quotation mark": (
        lambda place: _text(_changed(place.rows, 3, place.code, '"Bob')),
        ":3: cannot be read as a row of a table",
    ),
    "an id without its last digits": (
        lambda place: _text(_changed(place.rows, 3, place.code, "1.23457E+18")),
        ":3: '{code}' is '1.23457E.18', which has lost digits",
    ),
    "a text for a number": (
        lambda place: _text(_changed(place.rows, 3, place.number, "high")),
        "(:3: '{number}' is 'high', which is not|'{number}' of row 2 is 'high'|:3: the {number} 'high' is off)",
    ),
    "nothing": (lambda place: "", "(is empty; expected a table with a header|contains no edges)"),
}


def _more(rows: Rows, cell: str) -> Rows:
    """Rows with one cell more."""
    return [[*row, cell] for row in rows]


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", PLACES)
def test_a_bad_table_is_one_error_that_names_file_and_line(tmp_path: Path, name: str, kind: str) -> None:
    is_one_error(PLACES[name], kind, tmp_path)


def is_one_error(place: Place, kind: str, folder: Path) -> None:
    """A bad table is refused in a place that reads tables."""
    spoil, problem = BAD[kind]
    content = spoil(place)
    file = folder / "table.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    headings = {"code": place.rows[0][place.code], "number": place.rows[0][place.number]}
    for each, heading in headings.items():
        problem = problem.replace(f"{{{each}}}", heading)
    with pytest.raises(SpecError, match=problem) as caught:
        place.read(file)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


GOOD: dict[str, Callable[[Place], str | bytes]] = {
    "semicolons and decimal commas": lambda place: _text(
        [place.rows[0], *([cell + ",0" if at == place.number else cell for at, cell in enumerate(row)]
                          for row in place.rows[1:])], ";"),
    "what Excel calls Unicode": lambda place: _text(place.rows, "\t").encode("utf-16"),
    "the delimiter stated": lambda place: "sep=;\r\n" + _text(place.rows, ";"),
    "headings in capitals": lambda place: _text([[f" {cell.upper()} " for cell in place.rows[0]], *place.rows[1:]]),
    "empty rows at the end": lambda place: _text([*place.rows, [""] * len(place.rows[0]), []]),
    "a mark and old line ends": lambda place: ("\ufeff" + _text(place.rows).replace("\n", "\r")).encode(),
}  # fmt: skip


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("name", PLACES)
def test_a_table_says_the_same_however_it_is_written(tmp_path: Path, name: str, kind: str) -> None:
    plain, other = (
        [(each.name, each.opinion, {key.casefold(): told for key, told in each.attributes.items()}) for each in own]
        if name == "personas"
        else own
        for own in (getattr(each, "personas", each) for each in as_written(PLACES[name], kind, tmp_path))
    )
    assert plain == other


def as_written(place: Place, kind: str, folder: Path) -> Iterator[Any]:
    """What a place reads from a good table, written plainly and in another way."""
    for content in (_text(place.rows), GOOD[kind](place)):
        (folder / "table.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        yield place.read(folder / "table.csv")


# -- the reader ------------------------------------------------------------------------------------------------


def _written(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    (folder / "t.csv").write_text(text, encoding=encoding, newline="")
    return folder / "t.csv"


def test_one_line_says_what_was_taken_for_what(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "id;zip;Opinion;note\n1234567890123456789;01001;-1,5;\n1234567890123456788;99999;N/A;Grün\n"
    table = read_table(_written(tmp_path, text, "cp1252"), known=("opinion",))
    with caplog.at_level(logging.INFO, "opinionsim.foundation.tables"):
        table.tell()
    told = (
        "2 rows: `id` text, `zip` text, `opinion` number \N{MINUS SIGN}1.5..\N{MINUS SIGN}1.5 (1 missing), "
        "`note` text (1 missing); "
        "read as Windows-1252; `Opinion` taken for `opinion`; separated by semicolons, decimal commas"
    )
    assert caplog.messages == [f"{tmp_path / 't.csv'}: {told}"]
    assert table.values("id") == ["1234567890123456789", "1234567890123456788"]
    assert table.values("zip") == ["01001", "99999"]
    assert table.numbers("opinion") == [-1.5, None]


@pytest.mark.parametrize(
    ("cells", "missing", "expected"),
    [
        (["1", "n/a", "NULL", ".", "NaN", "2"], None, [1, None, None, None, None, 2]),
        (["a", "N/A", "null", ".", "NA", "b"], None, ["a", "N/A", "null", ".", None, "b"]),
        (["1", "-9", "", "2"], ["-9"], [1, None, None, 2]),
        (["1", "NA"], ["-9"], ["1", "NA"]),
        (["1_0", "2"], None, ["1_0", "2"]),
        (["\N{MINUS SIGN}1", "+2", "1e3"], None, [-1, 2, 1000]),
        (["1,5", "2"], None, ["1,5", "2"]),
        (["1,234.5", "2"], None, ["1,234.5", "2"]),
    ],
)
def test_what_cells_mean(tmp_path: Path, cells: list[str], missing: list[str] | None, expected: list[Any]) -> None:
    text = "a,b\n" + "".join(f'"{cell}",x\n' for cell in cells)
    assert read_table(_written(tmp_path, text), missing=missing).values("a") == expected


def test_beside_decimal_commas_a_point_is_none(tmp_path: Path) -> None:
    table = read_table(_written(tmp_path, "a;b;c\n1,5;1.500;1\n2,5;2.000;2\n"))
    assert (table.values("a"), table.values("b")) == ([1.5, 2.5], ["1.500", "2.000"])


def test_signs_with_accents_are_the_same_however_they_are_spelled(tmp_path: Path) -> None:
    apart = unicodedata.normalize("NFD", "José")
    table = read_table(_written(tmp_path, f"{apart},b\n{apart},x\nJosé,x\n"), needed=["José"])
    assert set(table.texts("José")) == {"José"}
    with pytest.raises(SpecError, match="duplicate 'José'"):
        load_personas(_written(tmp_path, f"name\n{apart}\nJosé\n"))


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("opinon,job", r"unknown column 'opinon' \(did you mean opinion\?\)"),
        ("starting_opinion,job", r"unknown column 'starting_opinion' \(did you mean opinion\?\)"),
        ("Name,name", "'name' occurs 2 times: 'Name', 'name'"),
        ("2,baker", "must contain the headings; got 2, baker"),
        ("name,", "got '' twice or blank"),
    ],
)
def test_headings_that_would_be_attributes_are_refused(tmp_path: Path, header: str, problem: str) -> None:
    with pytest.raises(SpecError, match=rf"t\.csv:1: .*{problem}"):
        load_personas(_written(tmp_path, f"{header}\n1,2\n"))


def test_attributes_that_are_unlike_known_headings_are_none(tmp_path: Path) -> None:
    found = load_personas(_written(tmp_path, "name,opinion,first_name,union,religion\nA,1,Ann,yes,none\n"))
    assert list(found.personas[0].attributes) == ["first_name", "union", "religion"]


def test_an_opinion_that_is_missing_is_an_error_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"t\.csv:3: personas\[1\]: has no opinion, but 'Ann' has one"):
        load_personas(_written(tmp_path, "name,opinion\nAnn,1\nBob,N/A\nCy,0\n"))
    assert {each.opinion for each in load_personas(_written(tmp_path, "name,opinion\nAnn,\nBob,\n")).personas} == {None}
