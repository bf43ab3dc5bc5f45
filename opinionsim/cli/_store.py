"""The commands of the group store: stores as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from opinionsim.cli._console import say
from opinionsim.cli._options import StorePath

store = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@store.callback()
def _store() -> None:
    """Copy a store, at any time."""


@store.command()
def copy(
    source: StorePath,
    target: Annotated[
        str,
        typer.Argument(metavar="COPY", help="Path of the copy, which must not exist yet.", show_default=False),
    ],
) -> None:
    """Copy a store into a new file, at any time: also while it is being written, or after a run was killed."""
    from opinionsim.store import copy_store, shown

    copy_store(source, target)
    say(shown(target))
