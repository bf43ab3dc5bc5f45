"""The commands of the group store: stores as a whole."""

from __future__ import annotations

import typer

from opinionsim.cli._console import say
from opinionsim.cli._options import StorePath

store = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@store.callback()
def _store() -> None:
    """Copy a store, or check everything in it."""


@store.command()
def copy(
    source: StorePath,
    target: str,
) -> None:
    """Copy a store into a new file, at any time: also while it is being written, or after a run was killed.

    Parameters
    ----------
    target : COPY
        Path of the copy, which must not exist yet.
    """
    from opinionsim.store import copy_store, shown

    copy_store(source, target)
    say(shown(target))


@store.command()
def check(store: StorePath) -> None:
    """Check everything in a store: print what is damaged or missing, with exit code 1, or that it is sound."""
    from opinionsim.store import open_store

    with open_store(store, write=False) as opened:
        found = list(opened.damage())
    for line in found:
        say(line)
    if found:
        say("The store is damaged: take it from a copy, or start the runs that are named anew with --fresh.")
        raise typer.Exit(1)
    say("The store is sound.")
