"""Why runs are not complete: errors of one cause told once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Where in a run an error arose, as errors begin with it.
_PLACE = re.compile(r"run [0-9a-f]+(?:, step -?\d+, agent \d+ \([\w-]+\))?: ")
#: What differs between errors of one cause: digests of prompts, and who was asked.
_PARTICULAR = re.compile(r"prompt [0-9a-f]+|agent \d+|act '[\w-]+'")


class Reason(NamedTuple):
    """A cause for which runs are not complete."""

    runs: int
    """How many of them there are."""
    error: str
    """What one of them says of it."""
    alike: bool
    """Whether all of them say just that."""

    def __str__(self) -> str:
        count = "1 run" if self.runs == 1 else f"{self.runs:,} runs"
        return f"{count}{':' if self.alike else ', for instance'} {self.error}"


def reasons(errors: Iterable[str]) -> list[Reason]:
    """Causes of errors, an error a run, the most frequent first."""
    causes: dict[str, list[str]] = {}
    for error in errors:
        causes.setdefault(_PARTICULAR.sub("", _PLACE.sub("", error, count=1)), []).append(error)
    found = [Reason(len(alike), alike[0], len(set(alike)) == 1) for alike in causes.values()]
    return sorted(found, key=lambda reason: reason.runs, reverse=True)


def reason_lines(found: Sequence[Reason], shown: int, rest: str) -> list[str]:
    """The first reasons, each a line, and a line that counts the runs of the others and says where to find those."""
    hidden = sum(reason.runs for reason in found[shown:])
    return [*map(str, found[:shown]), *([f"and {hidden:,} more ({rest})"] if hidden else [])]
