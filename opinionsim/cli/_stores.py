"""Stores and runs as they are named on the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.store import Results

__all__ = ["row_of", "spelled"]

#: Longest number that is taken for a row; an id may consist of digits.
_ROW_DIGITS = 7


def spelled(url: str) -> str:
    """A store's address as one would type it, without its password."""
    from opinionsim.store import shown

    address = shown(url)
    path = address.removeprefix("sqlite:///")
    return shlex.quote(path if path.endswith((".sqlite", ".sqlite3", ".db")) else address)


def row_of(results: Results, run: str) -> int:
    """Row of ``results.runs`` that a number or the beginning of an id stands for.

    Raises
    ------
    SpecError
        If it stands for none, or for several runs.
    """
    runs = results.runs
    if not len(runs):
        raise SpecError(f"--run {run}: the experiment {results.name!r} has no runs on record")
    if run.isdecimal() and len(run) <= _ROW_DIGITS:
        if int(run) < len(runs):
            return int(run)
        raise SpecError(f"--run {run}: there is no such run; valid: 0 to {len(runs) - 1}, or a run id")
    found = runs.index[runs["run_id"].str.startswith(run)]
    if len(found) == 0 or runs["run_id"].iloc[found].nunique() > 1:
        raise SpecError(
            f"--run {run}: {runs['run_id'].iloc[found].nunique()} runs have such an id; give a number from 0 to "
            f"{len(runs) - 1} or the beginning of one id (see: opinionsim status STORE --runs)"
        )
    return int(found[0])
