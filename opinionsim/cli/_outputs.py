"""Results as tables, figures and files."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import note, say, say_json
from opinionsim.cli._figures import Figures, check_options, draw, numbers
from opinionsim.cli._options import AsJson, DesignNumber, ExperimentName, StorePath, TextKind
from opinionsim.cli._stores import note_standing, read_results, row_of
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.experiments import Table
    from opinionsim.store import Results

__all__ = ["export", "plot", "table"]

Kind = Annotated[
    TextKind | None,
    typer.Option(
        "--kind", help="Kind of text to read opinions from. Default: the first there is, in this order.",
        show_default=False,
    ),
]  # fmt: skip
Wording = Annotated[
    str | None,
    typer.Option(
        "--wording",
        metavar="HASH",
        help="Where several runs enter: the wording of the prompts they have, by column wording of the runs or a start "
        "of its hash. Default: that of the run begun last.",
        show_default=False,
    ),
]
Ddof = Annotated[int, typer.Option("--ddof", min=0, max=1, help="Correction of the standard deviation.")]


def table(
    store: StorePath,
    experiment: ExperimentName = None,
    design: DesignNumber = None,
    kind: Kind = None,
    wording: Wording = None,
    ddof: Ddof = 0,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Also save the unrounded numbers.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print bias and diversity of final opinions by condition."""
    from opinionsim.experiments import tables
    from opinionsim.metrics import run_metrics

    results = read_results(store, experiment, design)
    measured = run_metrics(results.runs, results.opinions, results.agents, ddof)
    made = tables(results.runs, measured, None if kind is None else kind.value, wording)
    if as_json:
        say_json([_table_json(each) for each in made])
    else:
        say("\n".join(each.to_text() for each in made).rstrip("\n"))
    if csv is not None:
        for position, each in enumerate(made, start=1):
            target = csv if len(made) == 1 else csv.with_stem(f"{csv.stem}-{position}")
            note(f"wrote {each.to_csv(target)}")


def _table_json(made: Table) -> dict[str, Any]:
    rows = json.loads(made.frame.to_json(orient="records", double_precision=15))
    return {"title": made.title, "notes": list(made.notes), "rows": rows}


#: Suffixes by which a path is a picture, not a folder.
_IMAGES = frozenset(
    (".png", ".svg", ".pdf", ".svgz", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp", ".eps", ".ps", ".pgf")
)


class ColourBy(StrEnum):
    """What lines are coloured by."""

    OPINION = "opinion"
    MODEL = "model"


class Format(StrEnum):
    """File formats of figures."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


def plot(
    store: StorePath,
    experiment: ExperimentName = None,
    design: DesignNumber = None,
    what: Annotated[
        Figures,
        typer.Option(
            "--what",
            "--figure",
            help="All conditions side by side (panels), one run over time (trajectories, network) or at its end "
            "(distribution), conditions over time (ribbons, density), where opinions go from where they were "
            "(transitions), or where runs end over what was swept (phase).",
        ),
    ] = Figures.PANELS,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="N|ID",
            help="Which run, where one is drawn. Default: the first complete.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="COLUMN=VALUE",
            help="Where several runs are drawn: only such; may be repeated.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Column of the runs that makes a condition; may be repeated. "
            "For ribbons, density and transitions. Default: every cell.",
            show_default=False,
        ),
    ] = None,
    replicate: Annotated[
        int | None,
        typer.Option(
            "--replicate", metavar="N", min=0, help="For panels: which one. Default: the first.", show_default=False
        ),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            "--measure",
            metavar="NAME",
            help="For ribbons and phase: what is measured. Default: bias; of phase diversity.",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        list[int] | None,
        typer.Option(
            "--step",
            metavar="N",
            help="For network: a step to show; may be repeated. Default: four.",
            show_default=False,
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option("--x", metavar="COLUMN", help="For phase: what was swept.", show_default=False),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option("--y", metavar="COLUMN", help="For phase: what else was swept.", show_default=False),
    ] = None,
    kind: Kind = None,
    wording: Wording = None,
    color_by: Annotated[
        ColourBy,
        typer.Option(
            "--color-by",
            help="For panels and trajectories: colour lines by the opinion assigned to the agent, or by who plays it.",
        ),
    ] = ColourBy.OPINION,
    ddof: Ddof = 0,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Also save the numbers drawn; not for panels, trajectories, distribution.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR|FILE",
            help="Folder to write to, or a file that ends in .png, .svg or .pdf. Default: figures, beside the store.",
            show_default=False,
        ),
    ] = None,
    file_format: Annotated[
        Format | None,
        typer.Option("--format", help="File format. Default: png, or that of the file named.", show_default=False),
    ] = None,
) -> None:
    """Draw a figure into a file and print its path."""  # fmt: skip
    from opinionsim.plots import save

    check_options(
        what,
        {
            "--run": run is not None,
            "--where": bool(where),
            "--by": bool(by),
            "--wording": wording is not None,
            "--replicate": replicate is not None,
            "--color-by": color_by != ColourBy.OPINION,
            "--ddof": ddof != 0,
            "--measure": measure is not None,
            "--step": bool(step),
            "--x": x is not None,
            "--y": y is not None,
            "--csv": csv is not None,
        },
    )
    file = _file_named(out, file_format)
    results = read_results(store, experiment, design)
    row = None if run is None else _row(results, run)
    conditions = dict(_condition(text) for text in where or [])
    given = {
        "run": row,
        "where": conditions or None,
        "by": by or None,
        "wording": wording,
        "replicate": replicate,
        "value" if what == Figures.PHASE else "measure": measure,
        "steps": step or None,
        "x": x,
        "y": y,
        "kind": None if kind is None else kind.value,
        "color_by": None if color_by == ColourBy.OPINION else color_by.value,
        "ddof": ddof or None,
    }
    options = {name: value for name, value in given.items() if value is not None}
    named = [*conditions.values(), *(by or ()), *(part for part in (measure, x, y) if part)]
    named += [] if design is None else [f"design{design}"]
    named += [f"replicate{replicate}"] if replicate else []
    named += [] if wording is None else [f"wording-{wording}"]
    named += [] if row is None else [f"run{row}"]
    named += [] if color_by == ColourBy.OPINION else [f"by-{color_by}"]
    suffix = "".join(f"-{_file_part(str(part))}" for part in named)
    if file is None:
        folder = out or Path(results.url.removeprefix("sqlite:///")).parent / "figures"
        file = folder / f"{results.name}-{what}{suffix}.{file_format or Format.PNG}"
    say(str(save(draw(results, what, options), file)))
    if csv is not None:
        _write_numbers(numbers(results, what, options), csv)


def _row(results: Results, run: str) -> int:
    """The row of a run, with a note where it is not complete."""
    from opinionsim.store import open_store

    run_ids = [str(run_id) for run_id in results.runs["run_id"]]
    row = row_of(results.name, run_ids, run)
    with open_store(results.url, write=False) as opened:
        note_standing(opened, run_ids[row], row)
    return row


def _file_named(out: Path | None, file_format: Format | None) -> Path | None:
    """The file that ``--out`` names; None where it is a folder or left out.

    Raises
    ------
    SpecError
        If it names an image that figures cannot be saved as, or one of another format than ``--format``.
    """
    from opinionsim.plots import check_suffix

    suffix = "" if out is None else out.suffix.lower()
    if out is None or suffix not in _IMAGES or out.is_dir():
        return None
    check_suffix(out)
    if file_format is not None and suffix != f".{file_format}":
        raise SpecError(f"--out {out} and --format {file_format} say different things; leave --format out")
    return out


def _write_numbers(frame: pd.DataFrame, target: Path) -> None:
    """Save a frame as CSV."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(target, index=False)
    except OSError as error:
        raise SpecError(f"cannot write {target}: {error.strerror}") from error
    note(f"wrote {target}")


def _condition(text: str) -> tuple[str, Any]:
    """Column and value of ``--where COLUMN=VALUE``; the value is YAML."""
    from opinionsim.documents import parse_value

    column, equals, value = text.partition("=")
    if not equals or not column.strip():
        raise SpecError(f"--where {text!r}: must have the form COLUMN=VALUE")
    return column.strip(), parse_value(value, f"--where {column.strip()}")


def _file_part(text: str) -> str:
    """A text as part of a file's name."""
    return "".join(character if character.isalnum() or character in "-_." else "_" for character in text)


def export(
    store: StorePath,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write, new or empty.", show_default=False)],
    experiment: ExperimentName = None,
    design: DesignNumber = None,
) -> None:
    """Write all frames as CSV, and the manifest, into a folder."""
    from opinionsim.cli._export import write_export

    for path in write_export(read_results(store, experiment, design), folder):
        say(str(path))
