"""Commands that show results: table and plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from opinionsim.cli import _console as console
from opinionsim.cli._options import AsJson, DesignNumber, allow, assignments
from opinionsim.cli._plot_settings import check_arguments
from opinionsim.cli._stores import note_left_out, note_standing, read_results
from opinionsim.errors import SpecError
from opinionsim.registry import find, names
from opinionsim.watching import row_of

if TYPE_CHECKING:
    from opinionsim.analysis import Table
    from opinionsim.registry import Part
    from opinionsim.store import Results

Estimand = Literal["topics-like-these", "these-topics"]
TableForm = Literal["text", "csv", "markdown", "latex"]


def _valid(kind: str) -> str:
    """The names of tables or figures that a command takes, in words."""
    return f"{', '.join(names(kind))}, or the import path of your own, package.module:NAME"


def _argument(kind: str, usual: str) -> Any:
    """The argument that names a table or a figure."""
    text = f"Name of the {kind}: {_valid(kind)}. Default: {usual}. See also: opinionsim list {kind}s."
    return typer.Argument(metavar=f"[{kind.upper()}]", help=text)


TableName = Annotated[list[str] | None, _argument("table", "all tables that fit")]
FigureName = Annotated[list[str] | None, _argument("figure", "outcome")]


def _named(kind: str, given: Sequence[str] | None, store: str, *, allow_parts: bool) -> Part | None:
    """Find the table or figure that a command names before its store; None where it names a store alone.

    Raises
    ------
    SpecError
        If there is no such table or figure, several are named, or the only argument is no store.
    """
    if not given:
        if "://" in store or Path(store).exists():
            return None
        raise SpecError(
            f"there is no store at {store}; give the path of a store, or a {kind} and then a store; "
            f"valid {kind}s: {_valid(kind)}"
        )
    if len(given) > 1:
        raise SpecError(f"give one {kind} and then one store; got {', '.join([*given, store])}")
    allow(given[0], kind, allow_parts)
    return find(kind, given[0])


def table(
    *,
    named: TableName = None,
    store: str,
    experiment: str | None = None,
    design: DesignNumber = None,
    kind: str | None = None,
    instrument: str | None = None,
    wording: str | None = None,
    ddof: Annotated[int, typer.Option(min=0, max=1)] = 0,
    estimand: Estimand | None = None,
    as_published: bool = False,
    form: TableForm = "text",
    csv: Path | None = None,
    force: console.Force = False,
    allow_parts: bool = False,
    as_json: AsJson = False,
) -> None:
    """Print opinions by condition with intervals, contrasts, missing values, other variables and metrics.

    Parameters
    ----------
    instrument : NAME
        Instrument of stance whose readings count as opinions: the name of its classifier, or the start of its id.
        Default: the one in the specification.
    ddof
        Delta degrees of freedom of standard deviations: 0 for the population, 1 for a sample.
    as_published
        Use the standard errors, layout and tests of Chuang et al. 2023.
    form
        Format to print. csv has the unrounded numbers.
    """
    from opinionsim.report import tables_of

    console.require_table(csv, force=force)
    only = _named("table", named, store, allow_parts=allow_parts)
    results = read_results(store, experiment, design, allow_parts=allow_parts)
    if instrument is not None:
        from opinionsim.analysis import read_by

        results = read_by(results, instrument)
    rows = results.study.rows(results)
    units = [] if csv is None or rows is None else [(csv, rows)]
    console.require_tables(units, force=force)
    if rows is not None and as_json:
        console.say_rows(rows.drop(columns="error"))
    else:
        try:
            what = only.name if only else None
            made = tables_of(results, kind, wording, ddof, estimand, as_published=as_published, what=what)
        finally:
            note_left_out(results, only)
        print_tables(made, csv if rows is None else None, form, force=force, as_json=as_json)
    console.write_frames(units)


def print_tables(
    made: Sequence[Table], csv: Path | None, form: TableForm = "text", *, force: bool = False, as_json: bool
) -> None:
    """Print tables in a form, and save each in a file if one is named."""
    names, before, files = [each.name for each in made], Counter[str](), []
    for each in made:
        before[each.name] += 1
        number = before[each.name] if names.count(each.name) > 1 else ""
        if csv is not None:
            files.append((console.beside(csv, "".join(f"-{part}" for part in (each.name, number) if part)), each.frame))
    console.require_tables(files, force=force)
    if as_json:
        console.say_json(
            [{"title": each.title, "notes": each.notes, "rows": console.records(each.frame)} for each in made]
        )
    else:
        console.say("\n".join(each.to_form(form, console.columns(100)) for each in made).rstrip("\n"))
    console.write_frames(files)


#: Suffixes that mark ``--out`` as a picture and not a folder.
_IMAGES = frozenset(
    (".png", ".svg", ".pdf", ".svgz", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".webp", ".bmp", ".eps", ".ps", ".pgf")
)


#: File formats of figures.
Format = Literal["png", "svg", "pdf"]
#: Places of captions.
Caption = Literal["beside", "in", "none"]


def plot(
    *,
    named: FigureName = None,
    store: str,
    experiment: str | None = None,
    design: DesignNumber = None,
    run: str | None = None,
    where: list[str] | None = None,
    by: list[str] | None = None,
    metric: list[str] | None = None,
    x: str | None = None,
    y: str | None = None,
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
    allow_parts: bool = False,
    kind: str | None = None,
    wording: str | None = None,
    csv: Path | None = None,
    out: Path | None = None,
    force: console.Force = False,
    width: float | None = None,
    font_size: float | None = None,
    caption: Caption = "beside",
    file_format: Annotated[Format | None, typer.Option("--format")] = None,
) -> None:
    """Draw a figure into a file and print its path.

    Parameters
    ----------
    run : NAME|ID
        Run to draw, for figures of one run. Default: the first complete run.
    where : COLUMN=VALUE
        Draw only runs with this value, for figures of several runs. You can repeat the option.
    by : COLUMN
        Column of the runs whose values make the conditions. You can repeat the option. Default: one condition per cell.
    metric : NAME
        Metric to draw. You can repeat the option if the figure has a panel for each. Default: that of the figure.
    x : COLUMN
        Swept column on the horizontal axis.
    y : COLUMN
        A second swept column, for a map.
    settings : NAME=VALUE
        Any other argument of the figure's Python function, such as --set color_by=model or --set steps=[0,5]. You can
        repeat the option.
    csv : FILE
        Also save the numbers that the figure shows, if it counts any.
    out : DIR|FILE
        Folder to write to, or a file that ends in .png, .svg or .pdf. Default: the folder figures next to the store.
    width : MM
        Width in millimetres: 84 fits a journal column, 174 a page. Default: that of the figure.
    font_size : PT
        Font size of titles and axis labels in points. Default: 9.
    caption
        Where the caption goes: beside writes it to a .txt file of the same name, in puts it into the image, none
        leaves it out.
    file_format
        File format. Default: png, or the format of the file that --out names.
    """  # fmt: skip
    from opinionsim.plots import caption_of, check_numbers, drawn, numbers, paper, require_figure, save

    figure = _named("figure", named, store, allow_parts=allow_parts) or find("figure", "outcome")
    options = {
        "where": assignments(where, "--where", "COLUMN=VALUE"),
        "by": by,
        "value" if "value" in figure.arguments() else "metric": metric[0] if metric and len(metric) == 1 else metric,
        "x": x,
        "y": y,
        "kind": kind,
        "wording": wording,
        "run": run,
    }
    arguments: dict[str, Any] = {name: value for name, value in options.items() if value not in (None, [], {})}
    chosen = assignments(settings, "--set")
    if both := [name for name in chosen if name in arguments]:
        raise SpecError(f"--set {both[0]} is also given as an option")
    arguments |= chosen
    check_arguments(figure, arguments)
    if csv is not None:
        check_numbers(figure)
    measured = arguments.get("value", arguments.get("metric", ()))
    for each in [measured] if isinstance(measured, str) else measured:
        allow(each, "--metric", allow_parts)
    file = _file_named(out, file_format)
    console.require_table(csv, force=force)
    results = read_results(store, experiment, design, allow_parts=allow_parts)
    told = arguments if design is None else {**arguments, "design": design}
    if arguments.get("run") is not None:
        row, name = _row(results, str(arguments["run"]))
        arguments, told = arguments | {"run": row}, told | {"run": name}
    if file is None:
        folder = out or Path(results.url.removeprefix("sqlite:///")).parent / "figures"
        file = folder / f"{results.name}-{figure.name.replace(':', '.')}{_suffix(told)}.{file_format or 'png'}"
    own_file = caption == "beside"
    require_figure(file, caption=own_file, force=force)
    if csv in (file, file.with_suffix(".txt")):
        raise SpecError(f"--csv {csv} is the file of the figure or of its caption; give another name")
    files = [] if csv is None else [(csv, numbers(results, figure, arguments))]
    console.require_tables(files, force=force)
    note_left_out(results, figure)
    if figure.name == "outcome" and (own := results.extras("figures")) and results.runs["instrument_id"].isna().all():
        raise SpecError(f"no stance was measured, so there is no outcome to draw; valid: plot {' or '.join(own)} STORE")
    with paper(width, font_size, "in" if caption == "in" else None):
        made = drawn(figure, results, arguments)
        console.say(str(save(made, file, caption=own_file)))
    if own_file and caption_of(made):
        console.note(f"wrote {file.with_suffix('.txt')}")
    console.write_frames(files)


def _row(results: Results, run: str) -> tuple[int, str]:
    """Row and name of a run, with a note where it is not complete."""
    from opinionsim.store import find_design, open_store

    with open_store(results.url, write=False) as opened:
        rows = find_design(opened, results.name, results.design)[0].rows
        row = row_of(results.name, rows, run)
        note_standing(opened, rows[row])
    return row, rows[row].name


def _file_named(out: Path | None, file_format: Format | None) -> Path | None:
    """The file that ``--out`` names; None where it is a folder or left out.

    Raises
    ------
    SpecError
        If it names an image format that figures cannot be saved in, or another one than ``--format``.
    """
    from opinionsim.plots import check_suffix

    suffix = "" if out is None else out.suffix.lower()
    if out is None or suffix not in _IMAGES or out.is_dir():
        return None
    check_suffix(out)
    if file_format is not None and suffix != f".{file_format}":
        raise SpecError(f"--out {out} and --format {file_format} contradict each other; leave --format out")
    return out


def _suffix(arguments: Mapping[str, Any]) -> str:
    """What tells the file of a figure from those of other arguments; a name is left out where its value says enough."""
    parts = [
        _spelled(value) if name in ("where", "by", "metric", "value", "x", "y") else f"{name}-{_spelled(value)}"
        for name, value in arguments.items()
    ]
    text = "".join(f"-{part}" for part in parts)
    return "".join(character if character.isalnum() or character in "-_." else "_" for character in text)


def _spelled(value: Any) -> str:
    """A value in few characters."""
    if isinstance(value, Mapping):
        return "-".join(f"{name}-{_spelled(each)}" for name, each in value.items())
    return "-".join(map(_spelled, value)) if isinstance(value, list) else str(value)
