"""Results as tables, figures and files."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import note, say, say_json
from opinionsim.cli._options import AsJson, ExperimentName, StorePath, TextKind
from opinionsim.cli._stores import row_of
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
Ddof = Annotated[int, typer.Option("--ddof", min=0, max=1, help="Correction of the standard deviation.")]


def table(
    store: StorePath,
    experiment: ExperimentName = None,
    kind: Kind = None,
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
    from opinionsim.store import load

    results = load(store, experiment)
    measured = run_metrics(results.runs, results.opinions, results.agents, ddof)
    made = tables(results.runs, measured, None if kind is None else kind.value)
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


class Figures(StrEnum):
    """Figures that can be drawn."""

    PANELS = "panels"
    TRAJECTORIES = "trajectories"
    DISTRIBUTION = "distribution"


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
    what: Annotated[
        Figures, typer.Option("--what", help="All conditions side by side, or one run over time or at its end.")
    ] = Figures.PANELS,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="N|ID",
            help="Which run, for trajectories and distribution. Default: the first complete.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="COLUMN=VALUE", help="For panels: only such runs; may be repeated.", show_default=False
        ),
    ] = None,
    replicate: Annotated[
        int | None,
        typer.Option(
            "--replicate", metavar="N", min=0, help="For panels: which one. Default: the first.", show_default=False
        ),
    ] = None,
    kind: Kind = None,
    color_by: Annotated[
        ColourBy,
        typer.Option("--color-by", help="Colour lines by the opinion assigned to the agent, or by who plays it."),
    ] = ColourBy.OPINION,
    ddof: Ddof = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder to write to. Default: figures, beside the store.", show_default=False
        ),
    ] = None,
    file_format: Annotated[Format, typer.Option("--format", help="File format.")] = Format.PNG,
) -> None:
    """Draw a figure into a file and print its path."""  # fmt: skip
    from opinionsim.plots import save
    from opinionsim.store import load

    if what == Figures.PANELS and run is not None:
        raise SpecError(
            "--run goes with --what trajectories or distribution; panels are chosen by --where, --replicate"
        )
    if what != Figures.PANELS and (where or replicate is not None):
        raise SpecError("--where and --replicate go with --what panels; one run is chosen by --run")
    if what == Figures.DISTRIBUTION and color_by != ColourBy.OPINION:
        raise SpecError("--color-by goes with --what panels or trajectories; bars of a distribution are of one colour")
    results = load(store, experiment)
    chosen = None if kind is None else kind.value
    drawn: tuple[Figure | Axes, str]
    if what == Figures.PANELS:
        drawn = _panels(results, where or [], replicate or 0, chosen, ddof, color_by)
    else:
        drawn = _one_run(results, what, run, chosen, ddof, color_by)
    figure, suffix = drawn
    suffix += "" if color_by == ColourBy.OPINION else f"-by-{color_by}"
    folder = out or Path(results.url.removeprefix("sqlite:///")).parent / "figures"
    say(str(save(figure, folder / f"{results.name}-{what}{suffix}.{file_format}")))


def _panels(
    results: Results, where: list[str], replicate: int, kind: str | None, ddof: int, color_by: ColourBy
) -> tuple[Figure, str]:
    """The grid of conditions, and what its file's name says beyond that."""
    from opinionsim.plots import panels

    conditions = dict(_condition(text) for text in where)
    figure = panels(results, where=conditions, replicate=replicate, kind=kind, ddof=ddof, color_by=color_by.value)
    named = [str(value) for value in conditions.values()] + ([f"replicate{replicate}"] if replicate else [])
    return figure, "".join(f"-{_file_part(part)}" for part in named)


def _one_run(
    results: Results, what: Figures, run: str | None, kind: str | None, ddof: int, color_by: ColourBy
) -> tuple[Axes, str]:
    """A figure of one run, and what its file's name says beyond that."""
    from opinionsim.plots import final_distribution, trajectories

    row = None if run is None else row_of(results, run)
    suffix = "" if row is None else f"-run{row}"
    if what == Figures.TRAJECTORIES:
        return trajectories(results, row, kind, color_by=color_by.value), suffix
    return final_distribution(results, row, kind, ddof=ddof), suffix


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
) -> None:
    """Write all frames as CSV, and the manifest, into a folder."""
    from opinionsim.cli._export import write_export
    from opinionsim.store import load

    for path in write_export(load(store, experiment), folder):
        say(str(path))
