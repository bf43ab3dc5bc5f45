"""Tables from outside: CSV files that users provide, with a log line on how they were read.

Delimiter and encoding are detected. Guesses that could be wrong unnoticed are not made: a doubtful row is refused
with its line, and cells stay texts until a reader asks for numbers.
"""

from __future__ import annotations

import codecs
import csv
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from pathlib import Path
from typing import NoReturn

from opinionsim.errors import SpecError, meant
from opinionsim.foundation.documents import normal, read_bytes

_log = logging.getLogger(__name__)

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[+\-\N{MINUS SIGN}]?\d*,\d+", re.ASCII)
#: Digits that a number would not keep: zeros at the beginning, or more than a float holds.
_CODE = re.compile(r"[+-]?(?:0\d+|\d{16,})", re.ASCII)
#: What a spreadsheet has made of a long number, whose last digits are gone.
_SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+(?:1[1-9]|[2-9]\d)", re.ASCII)
#: Two or three bytes that are one sign in UTF-8: in a file that is no UTF-8 they speak against Windows-1252.
_TWO_ENCODINGS = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
#: Cells of a column of texts, and folded ones of a column of numbers, that are missing. "None" may be an answer.
_NO_TEXT = frozenset({"", "NA", "NaN"})
_NO_NUMBER = frozenset({"", "na", "n/a", "nan", "null", "."})
#: Likeness from which a heading is taken for a misspelt one: a letter more, less or other in a word of seven.
_ALIKE = 0.8
#: Bytes that a table may have.
_MOST_BYTES = 1 << 30
#: Columns that a line names.
_MOST_TOLD = 20


_Rows = list[tuple[int, list[str]]]


def tell(text: str) -> None:
    """Log how a table was read; commands print it."""
    _log.info("%s", text)


def number_in(text: str, *, comma: bool = False) -> float | None:
    """The number that a text spells, infinite if it is too large; None for any other text.

    Parameters
    ----------
    text : str
        The text, without white space around it. A minus may be the mathematical one.
    comma : bool
        Whether the decimal separator is a comma instead of a point.
    """
    if comma:
        text = text.replace(".", " ").replace(",", ".")
    text = text.replace("\N{MINUS SIGN}", "-")
    return float(text) if _NUMBER.fullmatch(text) else None


def table_text(path: str | Path) -> tuple[str, str]:
    """The text of a table in normal form, and a remark on its encoding.

    Raises
    ------
    SpecError
        If the file cannot be read, or is not text in UTF-8, UTF-16 with its mark, or Windows-1252.
    """
    content = read_bytes(path, _MOST_BYTES)
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    problem = f"{path}: not a text file in UTF-8, UTF-16 or Windows-1252; save it as UTF-8"
    try:
        text = content.decode(encoding)
        if "\0" in text:
            raise SpecError(problem)
        return normal(text), ""
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        # In the languages of this encoding signs beyond ASCII stand alone or in pairs.
        if encoding != "utf-8" or re.search("[\0\ufffd]|[^\0-\x7f]{3}", text):
            raise SpecError(problem) from None
        if found := _TWO_ENCODINGS.search(content):
            line = content.count(b"\n", 0, found.start()) + 1
            raise SpecError(f"{path}:{line}: mixes UTF-8 with another encoding; save the file as UTF-8") from None
        return normal(text), "read as Windows-1252"


def split_rows(name: str, text: str, choices: Iterable[str] = tuple(_DELIMITERS)) -> tuple[_Rows, str]:
    """The rows of a table that are not blank, and the delimiter, which is the one that splits the first row most.

    Each row has the number of its first line. Cells have no white space around them, and empty rows at the end
    are left out.

    Raises
    ------
    SpecError
        If quotation marks do not match.
    """
    if stated := re.match(r"sep=(.)\r?(?=\n)", text):
        text, choices = text[stated.end() :], [stated[1]]

    def width(delimiter: str) -> int:
        try:
            return len(next(_rows(name, text, delimiter), (0, []))[1])
        except SpecError:
            return 0

    delimiter = max(choices, key=width)
    rows = list(_rows(name, text, delimiter))
    while rows and not any(rows[-1][1]):
        rows.pop()
    return rows, delimiter


def _rows(name: str, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise SpecError(f"{name}:{line}: cannot be read as a row of a table: {error}") from None
        if row:
            yield line, [cell.strip() for cell in row]


@dataclass(frozen=True)
class TableFile:
    """A table from outside, as texts.

    Attributes
    ----------
    name : str
        The file, as errors name it.
    header : tuple of str
        Headings; those of known columns as the reader's caller spells them.
    rows : tuple of list of str
        Cells of each row, as many as headings.
    lines : tuple of int
        Line of the file in which each row begins.
    comma : bool
        Whether the decimal separator is a comma.
    missing : frozenset of str, or None
        Cells that count as missing, in addition to empty ones; None uses the usual ones for texts and for numbers.
    remarks : tuple of str
        Further remarks from reading the file.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[list[str], ...]
    lines: tuple[int, ...]
    comma: bool = False
    missing: frozenset[str] | None = None
    remarks: tuple[str, ...] = ()

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise a problem with a row, counted from 0."""
        raise SpecError(f"{self.name}:{self.lines[row]}: {problem}")

    def _cells(self, column: str) -> list[str]:
        place = self.header.index(column)
        for row, cells in enumerate(self.rows):
            if _SHORTENED.fullmatch(cells[place]):
                problem = f"{column!r} is {cells[place]!r}, which has lost digits; export the column as text"
                self.refuse(row, problem)
        return [cells[place] for cells in self.rows]

    def texts(self, column: str) -> list[str | None]:
        """Cells of a column; None where they are missing."""
        missing = _NO_TEXT if self.missing is None else self.missing | {""}
        return [None if cell in missing else cell for cell in self._cells(column)]

    def numbers(self, column: str) -> list[float | None]:
        """Numbers of a column; None where they are missing.

        Raises
        ------
        SpecError
            If a cell is not a number.
        """
        found: list[float | None] = []
        for row, cell in enumerate(self._cells(column)):
            given = None if self._no_number(cell) else number_in(cell, comma=self.comma)
            if given is None and not self._no_number(cell):
                self.refuse(row, f"{column!r} is {cell!r:.60}, which is not a number")
            found.append(given)
        return found

    def values(self, column: str) -> list[float | None] | list[str | None]:
        """Numbers of a column if all its cells are numbers or missing; otherwise texts, as for codes such as 01001."""
        given = [cell for cell in self._cells(column) if not self._no_number(cell)]
        if all(number_in(cell, comma=self.comma) is not None and not _CODE.fullmatch(cell) for cell in given):
            return self.numbers(column) if given else self.texts(column)
        return self.texts(column)

    def _no_number(self, cell: str) -> bool:
        return cell.casefold() in _NO_NUMBER if self.missing is None else cell in self.missing or not cell

    def tell(self, columns: Collection[str] | None = None) -> None:
        """Log in one line how columns were read: those that are used, or all."""
        chosen = list(dict.fromkeys(self.header if columns is None else columns))
        told = [f"`{column}` {_kind(self.values(column))}" for column in chosen[:_MOST_TOLD]]
        told += [f"and {len(chosen) - _MOST_TOLD} more"] if len(chosen) > _MOST_TOLD else []
        tell("; ".join([f"{self.name}: {len(self.rows):,} rows: {', '.join(told)}", *filter(None, self.remarks)]))


def _kind(values: Sequence[float | str | None]) -> str:
    """What a column holds, in words."""
    given = [value for value in values if value is not None]
    numbers = [value for value in given if isinstance(value, float)]
    kind = "empty" if not given else "text"
    if numbers:
        least, most = (f"{end:g}".replace("-", "\N{MINUS SIGN}") for end in (min(numbers), max(numbers)))
        kind = f"number {least}..{most}"
    lost = len(values) - len(given)
    return f"{kind} ({lost} missing)" if lost and given else kind


def read_table(
    path: str | Path,
    *,
    needed: Collection[str] | None = None,
    known: Collection[str] = (),
    missing: Collection[str] | None = None,
) -> TableFile:
    """Read a CSV file from outside.

    Parameters
    ----------
    path : str or Path
        The file: cells separated by commas, semicolons or tabs; UTF-8, UTF-16 or Windows-1252. If semicolons
        separate, numbers may have decimal commas.
    needed : collection of str, optional
        Headings that a mapping names; other columns are ignored. None reads all columns.
    known : collection of str
        Headings with a meaning, if all columns are read; each may be absent.
    missing : collection of str, optional
        Cells that count as missing, instead of the usual ones; empty cells always do.

    Returns
    -------
    TableFile
        Headings that differ from known ones only in case get the known spelling. Empty rows at the end are left out.

    Raises
    ------
    SpecError
        If a heading is needed and missing, doubled, or a near miss of a known one that is absent; if a row has another
        number of cells, or repeats the headings; or if rows are the second and third header of Qualtrics.
    """
    text, remark = table_text(path)
    rows, delimiter = split_rows(str(path), text)
    if not rows or not any(rows[0][1]):
        raise SpecError(f"{path}: is empty; expected a table with a header")
    check_rows(str(path), rows)
    (line, header), *rows = rows
    taken, renamed = _headings(f"{path}:{line}", header, needed, known)
    comma = has_decimal_commas(delimiter, rows)
    remarks = [remark, *renamed]
    if delimiter != ",":
        remarks.append(f"separated by {_DELIMITERS.get(delimiter, repr(delimiter))}" + ", decimal commas" * comma)
    return TableFile(
        str(path),
        tuple(taken),
        tuple(row for _, row in rows),
        tuple(line for line, _ in rows),
        comma,
        None if missing is None else frozenset(map(normal, missing)),
        tuple(remarks),
    )


def has_decimal_commas(delimiter: str, rows: _Rows) -> bool:
    """Whether the decimal separator is a comma: semicolons separate the cells, and one cell is such a number."""
    return delimiter == ";" and any(_DECIMAL_COMMA.fullmatch(cell) for _, row in rows for cell in row)


def check_rows(name: str, rows: _Rows, *, headed: bool = True) -> None:
    """Refuse rows that differ in length from the first, and headings among the data where the first has them.

    Parameters
    ----------
    name : str
        The file, as errors name it.
    rows : list of (int, list of str)
        Line and cells of each row.
    headed : bool
        Whether the first row has the headings.
    """
    (first, header), *others = rows
    folded = list(map(str.casefold, header))
    for line, row in others:
        if any(cell.startswith('{"ImportId"') for cell in row):
            raise SpecError(
                f"{name}:{line}: contains import ids of Qualtrics; delete the rows between headings and respondents"
            )
        if len(row) != len(header):
            raise SpecError(f"{name}:{line}: must have {len(header)} cells, as line {first} has; got {len(row)}")
        if headed and list(map(str.casefold, row)) == folded:
            raise SpecError(f"{name}:{line}: repeats the headings among the data; delete the row")


def _headings(
    place: str, header: list[str], needed: Collection[str] | None, known: Collection[str]
) -> tuple[list[str], list[str]]:
    """Headings with wanted ones as they are wanted, and remarks on those that were spelled otherwise."""
    wanted = {normal(name): name for name in (known if needed is None else needed)}
    found = [wanted.get(name, name) for name in header]
    remarks = []
    for name in wanted.values():
        same = [at for at, each in enumerate(found) if normal(each).casefold().strip() == normal(name).casefold()]
        exact = [at for at in same if found[at] == name]
        others = [at for at in same if found[at] not in wanted.values()]
        if len(exact) > 1 or (not exact and len(others) > 1) or (needed is None and len(same) > 1):
            spelled = ", ".join(repr(header[at]) for at in same)
            problem = f"{name!r} occurs {len(same)} times: {spelled}"
            raise SpecError(f"{place}: columns must have distinct names; {problem}")
        if not exact and others:
            remarks.append(f"`{header[others[0]]}` taken for `{name}`")
            found[others[0]] = name
    if needed is not None:
        if lacking := [name for name in needed if name not in found]:
            shown = ", ".join(header[:_MOST_TOLD]) + (", …" if len(header) > _MOST_TOLD else "")
            told = ", ".join(f"{name!r}{meant(name, header)}" for name in lacking)
            raise SpecError(f"{place}: lacks {told}, which the mapping names; it has {shown}")
        return found, remarks
    for at, name in enumerate(found):
        if not name or found.count(name) > 1:
            raise SpecError(f"{place}: columns must have distinct names, not blank; got {name!r} twice or blank")
        for other in known:
            if other not in found and _is_near(name, other):
                problem = f"unknown column {header[at]!r} (did you mean {other}?)"
                raise SpecError(f"{place}: {problem}; rename it to {other!r}, or to a name that differs more")
    if known and not set(known) & set(found) and any(number_in(name) is not None for name in found):
        raise SpecError(f"{place}: must contain the headings; got {', '.join(header)}")
    return found, remarks


def _is_near(given: str, known: str) -> bool:
    """Whether a heading is a misspelling of a known one, or has it as one of its words."""
    folded = given.casefold()
    return known in re.split(r"[\W_]+", folded) or SequenceMatcher(None, folded, known).ratio() >= _ALIKE
