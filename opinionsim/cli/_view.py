"""The command view: a store in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opinionsim.cli._console import note, say
from opinionsim.cli._options import DesignNumber, ExperimentName, StorePath
from opinionsim.errors import SpecError


def view(
    store: StorePath,
    experiment: ExperimentName = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
    no_browser: bool = False,
    design: DesignNumber = None,
    run: str | None = None,
    export: Path | None = None,
) -> None:
    """Look at the experiments of a store in a browser, while they are carried out or later.

    Parameters
    ----------
    port : N
        Port; 0 takes a free one. Default: 8710, if it is free.
    no_browser
        Print the link and open no browser.
    run : N|ID
        The run that --export writes (see: status --runs).
    export : FILE
        Write one run as an HTML file that opens without a host.
    """
    if (run is None) != (export is None):
        raise SpecError("--run and --export go together: the run, and the file that it is written to")
    if export is not None:
        return _exported(store, experiment, design, str(run), export)
    from opinionsim.web import view as shown

    shown(store, experiment, port=port, browser=not no_browser)


def _exported(store: str, experiment: str | None, design: int | None, run: str, path: Path) -> None:
    """Write one run as a file."""
    from opinionsim.store import find_design, open_store
    from opinionsim.watching import row_of
    from opinionsim.web import export

    with open_store(store, write=False) as opened:
        chosen, _ = find_design(opened, experiment, design)
        run_ids = [cell.run_id for cell in chosen.rows]
        row = row_of(chosen.name, run_ids, run)
        note(f"writing run {row}; a long one takes a minute")
        for left_out in export(opened, run_ids[row], path, row):
            note(left_out)
    say(f"{path}: {path.stat().st_size / 1e6:,.1f} MB; it opens by a double click, without a network")
