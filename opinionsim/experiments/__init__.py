"""Declared experiments: specification, sweep, plan, runner, manifest, tables."""

from opinionsim.experiments._assembly import Parts, assemble
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._plan import Forecast, Preview, plan, preview
from opinionsim.experiments._runner import (
    Instruments,
    Progress,
    Summary,
    Sweep,
    default_store,
    drain,
    run,
    start,
)
from opinionsim.experiments._spec import ExperimentSpec, json_schema
from opinionsim.experiments._sweep import Cell, Experiment, PlannedRun, load_experiment
from opinionsim.experiments._transcript import transcript

__all__ = [
    "Cell",
    "Experiment",
    "ExperimentSpec",
    "Forecast",
    "Instruments",
    "Parts",
    "PlannedRun",
    "Preview",
    "Progress",
    "Summary",
    "Sweep",
    "assemble",
    "default_store",
    "drain",
    "json_schema",
    "load_experiment",
    "manifest",
    "plan",
    "preview",
    "run",
    "start",
    "transcript",
]
