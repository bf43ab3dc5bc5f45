"""The command that writes a study as a page."""

from __future__ import annotations

from pathlib import Path

from opinionsim.cli._console import note, say
from opinionsim.cli._options import DesignNumber, ExperimentName, StorePath
from opinionsim.cli._stores import read_results


def report(
    store: StorePath,
    experiment: ExperimentName = None,
    design: DesignNumber = None,
    out: Path | None = None,
) -> None:
    """Write all that is told of an experiment as one HTML file that opens without a network, and print its path.

    Parameters
    ----------
    out : FILE
        The file. Default: NAME-report.html, beside the store.
    """
    from opinionsim.report import write_page

    results = read_results(store, experiment, design)
    is_file = results.url.startswith("sqlite:///")
    folder = Path(results.url.removeprefix("sqlite:///")).parent if is_file else Path()
    path = out or folder / f"{results.name}-report.html"
    for left_out in write_page(results, path):
        note(left_out)
    say(f"{path}: {path.stat().st_size / 1e6:,.1f} MB; it opens by a double click, without a network")
