"""Declared experiments: specification, sweep, plan, runner, manifest, replay, tables.

Names that need pandas are loaded when first used: planning and running an experiment do without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from opinionsim.experiments._assembly import Parts, assemble
from opinionsim.experiments._forecast import Actual, Compared, ModelForecast, compare_forecast, spell_seconds
from opinionsim.experiments._loaded import LoadedParts
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._model_spec import models_of
from opinionsim.experiments._plan import Forecast, Preview, count_calls, plan, preview
from opinionsim.experiments._replay import Replayed, replay
from opinionsim.experiments._run import default_store, run, under_way
from opinionsim.experiments._runner import Progress, Summary, Sweep
from opinionsim.experiments._spec import ExperimentSpec, json_schema
from opinionsim.experiments._sweep import Cell, Experiment, PlannedRun, load_experiment

if TYPE_CHECKING:
    from opinionsim.experiments._tables import Table, table, tables
    from opinionsim.experiments._transcript import transcript

__all__ = [
    "Actual",
    "Cell",
    "Compared",
    "Experiment",
    "ExperimentSpec",
    "Forecast",
    "LoadedParts",
    "ModelForecast",
    "Parts",
    "PlannedRun",
    "Preview",
    "Progress",
    "Replayed",
    "Summary",
    "Sweep",
    "Table",
    "assemble",
    "compare_forecast",
    "count_calls",
    "default_store",
    "json_schema",
    "load_experiment",
    "manifest",
    "models_of",
    "plan",
    "preview",
    "replay",
    "run",
    "spell_seconds",
    "table",
    "tables",
    "transcript",
    "under_way",
]

_LATER = {**dict.fromkeys(("Table", "table", "tables"), "_tables"), "transcript": "_transcript"}


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
