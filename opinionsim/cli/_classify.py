"""Code texts that do not come from a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from opinionsim.cli._console import Force, note, write_text
from opinionsim.cli._options import AsJson, assignments, own_modules
from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import begins, is_stream, require_free
from opinionsim.foundation.spreadsheets import has_columns, unescaped, write_csv
from opinionsim.foundation.tables import check_rows, split_rows

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.classifiers import Classifier

#: Suffixes of files that hold a table.
_TABLES = (".csv", ".tsv")


class _Text(NamedTuple):
    """A text to code, and the claim that it is about."""

    id: str | int
    """Content of the column of ids, otherwise the number of the line or row."""
    text: str
    claim: str | None


def classify(
    source: str,
    claim: list[str] | None = None,
    text: str | None = None,
    claim_column: str | None = None,
    id_column: Annotated[str | None, typer.Option("--id")] = None,
    classifier: str = "lexicon",
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
    output: Annotated[Path | None, typer.Option("--out", "-o")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Code the opinion that each text expresses of a claim, and print CSV.

    Parameters
    ----------
    source : FILE
        Texts: one per line, or a CSV file with a header and the option --text. - reads standard input.
    claim : TEXT
        The claim that the texts are about: a clause that can follow 'that'. You can repeat the option; each text is
        then coded once per claim.
    text : COLUMN
        CSV column with the texts.
    claim_column : COLUMN
        CSV column with the claim of each text, instead of --claim.
    id_column : COLUMN
        CSV column to use as id. Default: the number of the row or line.
    classifier : NAME
        Name of the classifier (see: opinionsim list classifiers).
    settings : NAME=VALUE
        An option of the classifier, such as --set model=base. You can repeat the option.
    output : FILE
        File to write instead of standard output.
    """
    from opinionsim.classifiers import load_classifier

    if claim and claim_column is not None:
        raise SpecError("--claim and --claim-column: give one of them; --claim is a text, --claim-column a column")
    if output is not None and not is_stream(output):
        require_free(output, _is_coded, force=force, read=[source])
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
    chosen = load_classifier(classifier, **assignments(settings, "--set"))
    if chosen.needs_claim and texts[0].claim is None:
        raise SpecError(
            f"classifier {chosen.name!r} needs a claim: give its text with --claim, or the column of a CSV with "
            "--claim-column"
        )
    coded = _coded(texts, chosen)
    if as_json:
        rows = coded.astype(object).where(coded.notna(), None).to_dict(orient="records")
        written = json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        written = write_csv(coded, lineterminator="\n") or ""
    write_text(output or Path("-"), written)


def _is_coded(path: Path) -> bool:
    """Whether a file holds coded texts, as CSV or JSON."""
    return has_columns(path, ("id", "claim", "value", "off_scale", "text")) or begins(path, b'[\n  {\n    "id": ')


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
        raise SpecError(f"{name}: not a text file; expected UTF-8") from None


def _of_lines(source: str) -> list[_Text]:
    """The texts of a file with one a line; empty lines are left out."""
    name, content = _content(source)
    lines = enumerate(content.splitlines(), start=1)
    texts = [_Text(number, line.strip(), None) for number, line in lines if line.strip()]
    if not texts:
        raise SpecError(f"{name}: contains no text; expected one text per line")
    return texts


def _of_table(source: str, text: str | None, claim: str | None, identity: str | None) -> list[_Text]:
    """The texts of a CSV, and their claims and ids where columns of them are named."""
    name, content = _content(source)
    rows, _ = split_rows(name, content)
    if not rows:
        raise SpecError(f"{name}: holds no row below its header")
    check_rows(name, rows)
    header, *table = ([str(unescaped(cell)) for cell in row] for _, row in rows)
    valid = f"its columns are {', '.join(header)}"
    if text is None:
        raise SpecError(f"{name}: is a CSV; name the column of the texts with --text; {valid}")
    for option, column in (("--text", text), ("--claim-column", claim), ("--id", identity)):
        if column is not None and header.count(column) != 1:
            problem = "has no column" if column not in header else "has more than one column"
            raise SpecError(f"{option} {column!r}: {name} {problem} of this name; {valid}")
    if not table:
        raise SpecError(f"{name}: holds no row below its header")
    texts = []
    for number, row in enumerate(table, start=1):
        cells = dict(zip(header, row, strict=True))
        about = None if claim is None else _clause(cells[claim], f"{name}: row {number}: column {claim!r}")
        texts.append(_Text(number if identity is None else cells[identity], cells[text], about))
    return texts


def _coded(texts: Sequence[_Text], classifier: Classifier) -> pd.DataFrame:
    """One row a text and claim; no value where the text is blank or is no answer."""
    import numpy as np
    import pandas as pd

    from opinionsim.classifiers import Item
    from opinionsim.topics import Claim

    asked = {place: each for place, each in enumerate(texts) if each.text.strip()}
    items = [Item(each.text, None if each.claim is None else Claim(each.claim, "", "")) for each in asked.values()]
    found = classifier.classify(items)
    if n_cut := getattr(classifier, "n_cut", 0):
        note(f"texts too long for the classifier, coded without their middle: {n_cut}")
    if n_blank := len(texts) - len(asked):
        note(f"rows without a text, left without a value: {n_blank}")
    numbers = pd.DataFrame(
        np.column_stack([found.value, found.probabilities, found.off_scale]),
        index=list(asked),
        columns=["value", *(f"p_{point}" for point in classifier.scale.points), "off_scale"],
    )
    given = pd.DataFrame(texts)
    return given[["id", "claim"]].join(numbers).join(given["text"])
