"""Figures in a report: those that fit an experiment, and how."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from opinionsim.metrics import condition_axes
from opinionsim.store import Results

#: Steps with opinions up to which these are not drawn over time.
_STEPS = 3


class Shown(NamedTuple):
    """A figure as a report shows it."""

    name: str
    """File name without suffix."""
    caption: str = ""
    """A sentence before the caption of the figure; empty where that says what the figure shows."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Arguments of its function beside the results."""


def conditions(results: Results) -> list[str] | None:
    """Columns of the runs that make conditions; as in tables, topics make none where anything else varies."""
    return [axis for axis in condition_axes(results.runs) if axis != "topic"] or None


def over_time(results: Results) -> bool:
    """Whether opinions were measured at steps enough to be drawn over time."""
    return bool(results.opinions["step"].nunique() > _STEPS)
