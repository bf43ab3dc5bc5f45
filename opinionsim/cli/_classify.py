"""Coding texts that are not of a run."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import note, say_json
from opinionsim.cli._options import AsJson, assignments, own_modules
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.opinions import OpinionEstimates, OpinionScale


def classify(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Texts, one a line; - reads standard input.", show_default=False)
    ],
    claim: Annotated[
        str,
        typer.Option(
            "--claim",
            metavar="TEXT",
            help="The claim that the texts are about: a clause that can follow 'that'.",
            show_default=False,
        ),
    ],
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
    as_json: AsJson = False,
) -> None:
    """Code the opinion each text expresses of a claim; prints CSV."""  # fmt: skip
    from opinionsim.classifiers import items_of, load_classifier
    from opinionsim.topics import Claim, Framing

    if not claim.strip():
        raise SpecError("--claim must be a clause that can follow 'that'; got an empty text")
    texts = _texts(source)
    own_modules()
    chosen = load_classifier(classifier, **assignments(option, "--option", "KEY=VALUE"))
    about = Claim(claim.strip().rstrip("."), "", Framing.FALSEHOOD)
    rows = _rows(texts, chosen.classify(items_of([text for _, text in texts], about)), chosen.scale)
    if n_cut := getattr(chosen, "n_cut", 0):
        note(f"texts too long for the classifier, coded without their middle: {n_cut}")
    if as_json:
        say_json(rows)
    else:
        sys.stdout.write(_as_csv(rows))


def _texts(source: str) -> list[tuple[int, str]]:
    """Line numbers and texts of a file or of standard input; empty lines are left out."""
    name = "standard input" if source == "-" else source
    content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise SpecError(f"{name}: not a text file; UTF-8 is expected") from None
    texts = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not texts:
        raise SpecError(f"{name}: holds no text; one a line is expected")
    return texts


def _rows(texts: list[tuple[int, str]], found: OpinionEstimates, scale: OpinionScale) -> list[dict[str, Any]]:
    """One row a text: value, probabilities, and the text itself; None where there is no answer."""
    rows = []
    coded = zip(texts, found.value.tolist(), found.probabilities.tolist(), found.off_scale.tolist(), strict=True)
    for (number, text), value, probabilities, off_scale in coded:
        shares = zip(scale.points, probabilities, strict=True)
        rows.append(
            {
                "line": number,
                "value": _known(value),
                **{f"p_{point}": _known(share) for point, share in shares},
                "off_scale": off_scale,
                "text": text,
            }
        )
    return rows


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _as_csv(rows: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
