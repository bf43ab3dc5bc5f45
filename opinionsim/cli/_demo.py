"""The demonstration: the two presets of the scripted model side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opinionsim.cli._console import columns, note, say
from opinionsim.cli._run import carry_out
from opinionsim.watching import spelled

if TYPE_CHECKING:
    from opinionsim.store import Results

_EXPERIMENT = "demo"
_CAUTION = (
    "All agents are played by the scripted stand-in. Its replies follow two fixed rules of this package,\n"
    "so nothing here is evidence about people or language models."
)


def demo(
    out: Path = Path("results/demo"),
) -> None:
    """Run a small experiment, print its table, draw its figures and write its report; needs no key and no network.

    Parameters
    ----------
    out : DIR
        Folder to write to.
    """
    from opinionsim.errors import Interrupt
    from opinionsim.report import write_page
    from opinionsim.running import Invocation
    from opinionsim.specification import load_experiment
    from opinionsim.store import load

    experiment = load_experiment(_EXPERIMENT)
    url = f"sqlite:///{out / 'demo.sqlite'}"
    # Results of an earlier version of the package are replaced.
    summary = carry_out(Invocation(experiment, url, fresh=True))
    if summary.stopped:
        raise Interrupt
    note(f"{summary.made:,} calls made, {summary.answered:,} answered by the store, {summary.seconds:.1f} s\n")
    results = load(url, experiment.spec.name)
    table, written = _write(results, out)
    page = out / "report.html"
    write_page(results, page)
    say(table)
    say(f"{_CAUTION}\n\nWritten:")
    for path in [out / "demo.sqlite", *written, page]:
        say(f"  {path}")
    say("\nNext, look at what the agents said, then make a study of your own:")
    for command in (f"show {spelled(url)} --run 0", "new my-study"):
        say(f"  opinionsim {command}")


def _write(results: Results, out: Path) -> tuple[str, list[Path]]:
    """The table as text, and the files of table and figures."""
    from opinionsim.analysis import tables
    from opinionsim.plots import panels, save, trajectories

    (made,) = tables(results.ordered_runs, results.metrics)
    text = made.to_text(columns(100))
    text_file = out / "table.txt"
    text_file.write_text(text, encoding="utf-8")
    written = [text_file, made.to_csv(out / "table.csv"), save(panels(results), out / "panels.png")]
    for row in results.runs[results.runs["replicate"] == 0].index:
        label = results.runs["sweep.model"].iloc[row]
        written.append(save(trajectories(results, int(row)), out / f"trajectories-{label}.png"))
    return text, written
