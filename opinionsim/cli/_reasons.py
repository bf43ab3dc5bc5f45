"""Errors of runs, grouped by cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opinionsim.cli._console import counted

#: Beginning of an error: the place in the run.
_PLACE = re.compile(r"run [0-9a-f]+(?:(?:, step -?\d+)?, turn \d+, agent \d+ \([\w-]+\))?: ")
#: Details in which errors of one cause differ: digests of prompts, agents and acts.
_PARTICULAR = re.compile(r"prompt [0-9a-f]+|agent \d+|act '[\w-]+'")


class Reason(NamedTuple):
    """A cause of errors."""

    runs: int
    """Number of runs with this cause."""
    error: str
    """The error of one of them."""
    alike: bool
    """Whether all of them have that same error."""

    def __str__(self) -> str:
        return f"{counted(self.runs, 'run')}{':' if self.alike else ', for instance'} {self.error}"


def reasons(errors: Iterable[str]) -> list[Reason]:
    """Causes of errors, the most frequent first; `errors` has one error a run."""
    causes: dict[str, list[str]] = {}
    for error in errors:
        causes.setdefault(_PARTICULAR.sub("", _PLACE.sub("", error, count=1)), []).append(error)
    found = [Reason(len(alike), alike[0], len(set(alike)) == 1) for alike in causes.values()]
    return sorted(found, key=lambda reason: reason.runs, reverse=True)


def reason_lines(found: Sequence[Reason], shown: int, rest: str) -> list[str]:
    """The first `shown` reasons, a line each, and a line with the number of other runs and the hint `rest`."""
    hidden = sum(reason.runs for reason in found[shown:])
    return [*map(str, found[:shown]), *([f"and {hidden:,} more ({rest})"] if hidden else [])]
