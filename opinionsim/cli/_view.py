"""The command view: a store in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from opinionsim.cli._options import ExperimentName, StorePath


def view(
    store: StorePath,
    experiment: ExperimentName = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65_535, help="Port; 0 takes a free one. Default: 8710, if it is free."
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link and open no browser.")] = False,
) -> None:
    """Look at the experiments of a store in a browser, while they are carried out or later."""
    from opinionsim.web import view as shown

    shown(store, experiment, port=port, browser=not no_browser)
