"""Coding texts that are not of a run."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from opinionsim.cli._console import note
from opinionsim.cli._options import AsJson, assignments, own_modules
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.classifiers import Classifier
    from opinionsim.opinions import OpinionEstimates, OpinionScale

#: Suffixes of files that hold a table.
_TABLES = (".csv", ".tsv")
#: Characters that may separate the columns of a table.
_SEPARATORS = ",;\t"


class _Text(NamedTuple):
    """A text to code, and the claim that it is about."""

    id: str | int
    """What the column of ids holds, or else the number of the line or of the row."""
    text: str
    claim: str | None


def classify(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Texts: one a line, or a CSV with a header and the option --text; - reads standard input.",
            show_default=False,
        ),
    ],
    claim: Annotated[
        list[str] | None,
        typer.Option(
            "--claim",
            metavar="TEXT",
            help="The claim that the texts are about: a clause that can follow 'that'. May be repeated: each text is "
            "then coded once a claim.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="Column of a CSV that holds the texts.", show_default=False),
    ] = None,
    claim_column: Annotated[
        str | None,
        typer.Option(
            "--claim-column",
            metavar="COLUMN",
            help="Column of a CSV that holds the claim of each text, in the place of --claim.",
            show_default=False,
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column of a CSV that is carried over as id. Default: the number of the row or line.",
            show_default=False,
        ),
    ] = None,
    classifier: Annotated[
        str,
        typer.Option("--classifier", metavar="NAME", help="Name of the classifier (see: opinionsim list classifiers)."),
    ] = "lexicon",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of the classifier, as in --option model=base; may be repeated.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write in the place of standard output.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Code the opinion each text expresses of a claim; prints CSV."""  # fmt: skip
    from opinionsim.classifiers import load_classifier

    if claim and claim_column is not None:
        raise SpecError("--claim and --claim-column: give one of them; --claim is a text, --claim-column a column")
    if output is not None and (not output.parent.is_dir() or output.is_dir()):
        raise SpecError(f"--out {output}: must be a file in a folder that exists")
    claims = [_clause(each, "--claim") for each in claim or ()]
    if text is not None or Path(source).suffix.lower() in _TABLES:
        texts = _of_table(source, text, claim_column, id_column)
    else:
        for name, column in (("--claim-column", claim_column), ("--id", id_column)):
            if column is not None:
                raise SpecError(f"{name} names a column of a CSV; give the column of the texts with --text as well")
        texts = _of_lines(source)
    if claims:
        texts = [_Text(each.id, each.text, about) for each in texts for about in claims]
    own_modules()
    chosen = load_classifier(classifier, **assignments(option, "--option", "KEY=VALUE"))
    if chosen.needs_claim and texts[0].claim is None:
        raise SpecError(
            f"classifier {chosen.name!r} needs a claim: give its text with --claim, or the column of a CSV with "
            "--claim-column"
        )
    rows = _coded(texts, chosen)
    written = _as_json(rows) if as_json else _as_csv(rows)
    if output is None:
        sys.stdout.write(written)
    else:
        output.write_text(written, encoding="utf-8", newline="")
        note(f"wrote {output}")


def _clause(claim: str, where: str) -> str:
    """A claim without white space around it and without a full stop."""
    clause = claim.strip().rstrip(".")
    if not clause:
        raise SpecError(f"{where} must be a clause that can follow 'that'; got {claim!r}")
    return clause


def _content(source: str) -> tuple[str, str]:
    """Name and text of a file, or of standard input."""
    name = "standard input" if source == "-" else source
    content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    try:
        return name, content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{name}: not a text file; UTF-8 is expected") from None


def _of_lines(source: str) -> list[_Text]:
    """The texts of a file with one a line; empty lines are left out."""
    name, content = _content(source)
    lines = enumerate(content.splitlines(), start=1)
    texts = [_Text(number, line.strip(), None) for number, line in lines if line.strip()]
    if not texts:
        raise SpecError(f"{name}: holds no text; one a line is expected")
    return texts


def _of_table(source: str, text: str | None, claim: str | None, identity: str | None) -> list[_Text]:
    """The texts of a CSV, and their claims and ids where columns of them are named."""
    name, content = _content(source)
    rows = _rows(name, content)
    _, header = next(rows, (1, []))
    valid = f"its columns are {', '.join(header) or 'none'}"
    if text is None:
        raise SpecError(f"{name}: is a CSV; name the column of the texts with --text; {valid}")
    places: dict[str, int] = {}
    for option, column in (("--text", text), ("--claim-column", claim), ("--id", identity)):
        if column is None:
            continue
        if header.count(column) != 1:
            problem = "has no column" if column not in header else "has more than one column"
            raise SpecError(f"{option} {column!r}: {name} {problem} of this name; {valid}")
        places[option] = header.index(column)
    texts: list[_Text] = []
    for number, (line, row) in enumerate(rows, start=1):
        if len(row) != len(header):
            raise SpecError(f"{name}:{line}: the row has {len(row)} columns, and the header {len(header)}")
        about = None if claim is None else _clause(row[places["--claim-column"]], f"{name}:{line}: column {claim!r}")
        texts.append(_Text(number if identity is None else row[places["--id"]], row[places["--text"]], about))
    if not texts:
        raise SpecError(f"{name}: holds no row below its header")
    return texts


def _rows(name: str, content: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV with the line that each ends in, the header first, without the blank ones.

    The separator is that of :data:`_SEPARATORS` which makes the most columns of the header.
    """
    try:
        headers = {each: next(csv.reader(io.StringIO(content, newline=""), delimiter=each), []) for each in _SEPARATORS}
        separator = max(_SEPARATORS, key=lambda each: len(headers[each]))
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
        header = True
        for row in reader:
            if row:
                yield reader.line_num, [column.strip() for column in row] if header else row
                header = False
    except csv.Error as error:
        raise SpecError(f"{name}: not a readable CSV: {error}") from None


def _coded(texts: Sequence[_Text], classifier: Classifier) -> list[dict[str, Any]]:
    """One row a text and claim; no value where the text is blank or is no answer."""
    from opinionsim.classifiers import Item
    from opinionsim.topics import Claim

    asked = [each for each in texts if each.text.strip()]
    items = [Item(each.text, None if each.claim is None else Claim(each.claim, "", "")) for each in asked]
    found = iter(_estimates(classifier.classify(items), classifier.scale))
    if n_cut := getattr(classifier, "n_cut", 0):
        note(f"texts too long for the classifier, coded without their middle: {n_cut}")
    if n_blank := len(texts) - len(asked):
        note(f"rows without a text, which have no value: {n_blank}")
    none = dict.fromkeys(["value", *(f"p_{point}" for point in classifier.scale.points), "off_scale"])
    return [
        {"id": each.id, "claim": each.claim, **(next(found) if each.text.strip() else none), "text": each.text}
        for each in texts
    ]


def _estimates(found: OpinionEstimates, scale: OpinionScale) -> list[dict[str, Any]]:
    """Value and probabilities of each text; None where there is no answer."""
    coded = zip(found.value.tolist(), found.probabilities.tolist(), found.off_scale.tolist(), strict=True)
    return [
        {
            "value": _known(value),
            **{f"p_{point}": _known(share) for point, share in zip(scale.points, probabilities, strict=True)},
            "off_scale": off_scale,
        }
        for value, probabilities, off_scale in coded
    ]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _as_json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _as_csv(rows: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
