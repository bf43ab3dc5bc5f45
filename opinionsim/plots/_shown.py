"""Figures in a report: which ones fit an experiment, and how they are shown."""

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
    """A sentence before the caption of the figure; empty if the caption already says what the figure shows."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Arguments of its function beside the results."""


def conditions(results: Results) -> list[str] | None:
    """Columns of the runs that define conditions. As in tables, topics define none if anything else varies."""
    return [axis for axis in condition_axes(results.runs) if axis != "topic"] or None


def over_time(results: Results) -> bool:
    """Whether opinions were measured at enough steps to draw them over time."""
    return bool(results.opinions["step"].nunique() > _STEPS)
