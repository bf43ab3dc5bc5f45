"""The demonstration: the two presets of the scripted model side by side."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opinionsim.cli._console import Force, columns, note, say
from opinionsim.cli._run import carry_out
from opinionsim.foundation.outputs import Made, begins, require_free
from opinionsim.foundation.spreadsheets import has_columns
from opinionsim.watching import spelled

if TYPE_CHECKING:
    from opinionsim.store import Results

_EXPERIMENT = "demo"
_CAUTION = (
    "The scripted stand-in plays all agents. Its replies follow two fixed rules of this package,\n"
    "so these results say nothing about people or language models."
)


def demo(
    out: Path = Path("results/demo"),
    force: Force = False,
) -> None:
    """Run a small experiment, print its table, draw its figures and write its report, without a key or a network.

    Parameters
    ----------
    out : DIR
        Folder for the files.
    """
    from opinionsim.errors import Interrupt
    from opinionsim.report import write_page
    from opinionsim.running import Invocation
    from opinionsim.specification import load_experiment
    from opinionsim.store import load

    experiment = load_experiment(_EXPERIMENT)
    _require_free(out, force=force)
    url = f"sqlite:///{out / 'demo.sqlite'}"
    # Results of an earlier version of the package are replaced.
    summary = carry_out(Invocation(experiment, url, fresh=True))
    if summary.stopped:
        raise Interrupt
    note(f"{summary.made:,} calls made, {summary.answered:,} answered by the store, {summary.seconds:.1f} s\n")
    results = load(url, experiment.spec.name)
    table, written = _write(results, out)
    page = out / "report.html"
    write_page(results, page, force=force)
    say(table)
    say(f"{_CAUTION}\n\nWritten:")
    for path in [out / "demo.sqlite", *written, page]:
        say(f"  {path}")
    say("\nNext, read what the agents said, then create your own study:")
    for command in (f"show {spelled(url)}", "new my-study"):
        say(f"  opinionsim {command}")


def _require_free(out: Path, *, force: bool) -> None:
    """Refuse a folder in which a file that the demonstration did not write would be lost."""
    from opinionsim.metrics import evidence_statement
    from opinionsim.plots import require_figure
    from opinionsim.report import is_page

    text = partial(begins, start=evidence_statement(["scripted"]).encode())
    table = partial(has_columns, columns=("evidence",))
    made: dict[str, Made] = {"table.csv": table, "table.txt": text, "report.html": is_page}
    for name, own in made.items():
        require_free(out / name, own, force=force)
    for path in (out / "panels.png", *out.glob("trajectories-*.png")):
        require_figure(path, force=force)


def _write(results: Results, out: Path) -> tuple[str, list[Path]]:
    """The table as text, and the files of table and figures."""
    from opinionsim.analysis import tables
    from opinionsim.plots import panels, save, trajectories

    (made,) = tables(results.ordered_runs, results.metrics)
    text = made.to_text(columns(100))
    text_file = out / "table.txt"
    text_file.write_text(text, encoding="utf-8")
    written = [text_file, made.to_csv(out / "table.csv"), save(panels(results), out / "panels.png", caption=True)]
    for row in results.runs[results.runs["replicate"] == 0].index:
        label = results.runs["sweep.model"].iloc[row]
        written.append(save(trajectories(results, int(row)), out / f"trajectories-{label}.png", caption=True))
    return text, [*written, *(path.with_suffix(".txt") for path in written if path.suffix == ".png")]
