"""What was frozen before a study was carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opinionsim.store import Results


@dataclass(frozen=True)
class History:
    """What was frozen, and what was tried."""

    frozen: Mapping[str, Any] | None = None
    deviations: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()


def history(results: Results) -> History:
    """The history of an experiment; so far nothing is frozen."""
    return History()
