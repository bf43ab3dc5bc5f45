"""Declared experiments: specification, sweep, plan, runner, manifest, replay."""

from __future__ import annotations

from opinionsim.experiments._assembly import Parts, assemble
from opinionsim.experiments._cells import Cell, Experiment, PlannedRun, load_experiment
from opinionsim.experiments._context import Context, Progress, Summary
from opinionsim.experiments._executors import LocalExecutor
from opinionsim.experiments._forecast import Forecast, ModelForecast, spell_money, spell_seconds
from opinionsim.experiments._loaded import LoadedParts
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._plan import calls_by_run, plan
from opinionsim.experiments._preview import Preview, preview
from opinionsim.experiments._replay import Replayed, replay
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._run import default_store, run, under_way
from opinionsim.experiments._runner import Runner
from opinionsim.experiments._spec import ExperimentSpec, json_schema
from opinionsim.experiments._survey_validation import (
    SurveyValidation,
    read_validation,
    validate_survey,
    validation_experiment,
)
from opinionsim.experiments._sweep_spec import Sweep, SweepSpec, load_sweep, path_of
from opinionsim.experiments._sweeps import (
    SweepPlan,
    SweepProgress,
    SweepSummary,
    default_sweep_store,
    plan_sweep,
    run_sweep,
)

__all__ = [
    "Cell",
    "Context",
    "Experiment",
    "ExperimentSpec",
    "Forecast",
    "LoadedParts",
    "LocalExecutor",
    "ModelForecast",
    "Parts",
    "PlannedRun",
    "Preview",
    "Progress",
    "Replayed",
    "Resources",
    "Runner",
    "Summary",
    "SurveyValidation",
    "Sweep",
    "SweepPlan",
    "SweepProgress",
    "SweepSpec",
    "SweepSummary",
    "assemble",
    "calls_by_run",
    "default_store",
    "default_sweep_store",
    "json_schema",
    "load_experiment",
    "load_sweep",
    "manifest",
    "path_of",
    "plan",
    "plan_sweep",
    "preview",
    "read_validation",
    "replay",
    "run",
    "run_sweep",
    "spell_money",
    "spell_seconds",
    "under_way",
    "validate_survey",
    "validation_experiment",
]
