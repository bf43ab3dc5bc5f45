"""Before anything is spent: what an experiment takes, what its prompts say, what a specification may hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import aligned, say, say_json
from opinionsim.cli._options import AsJson, Changes, Prompts, Slots, Spec, read_spec
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.experiments import Experiment, Forecast

__all__ = ["plan", "preview", "schema"]


def plan(
    spec: Spec,
    changes: Changes = None,
    prompts: Prompts = None,
    max_concurrency: Slots = None,
    latency: Annotated[
        float, typer.Option("--latency", metavar="SECONDS", min=0.0, help="Time one model call takes.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Check a specification; print its calls, critical path and least time. Makes no call."""
    from opinionsim.experiments import Instruments
    from opinionsim.experiments import plan as forecast_of

    if not math.isfinite(latency):
        raise SpecError(f"--latency must be a finite number of seconds; got {latency}")
    experiment = read_spec(spec, changes, prompts)
    forecast = forecast_of(experiment, max_concurrency=max_concurrency)
    if as_json:
        say_json(_forecast_json(experiment, forecast, latency))
    else:
        say(_forecast_text(experiment, forecast, latency))
    # After the forecast, which a missing package or key for a model should not hide.
    Instruments(experiment)


def _forecast_json(experiment: Experiment, forecast: Forecast, latency: float) -> dict[str, Any]:
    return {
        "experiment": experiment.spec.name,
        "models": _models(experiment),
        "cells": forecast.cells,
        "runs": forecast.runs,
        "calls": forecast.calls,
        "texts": forecast.texts,
        "longest_path": forecast.longest_path,
        "width": forecast.width,
        "slots": forecast.slots,
        "rounds": forecast.rounds,
        "speedup": forecast.speedup,
        "latency_s": latency,
        "least_s": forecast.rounds * latency,
        "sequential_s": forecast.calls * latency,
    }


def _models(experiment: Experiment) -> list[str]:
    return list(dict.fromkeys(cell.spec.model.name for cell in experiment.cells))


def _forecast_text(experiment: Experiment, forecast: Forecast, latency: float) -> str:
    path = forecast.longest_path
    chain = "known only as the run goes: each step waits for measured opinions" if path is None else f"{path:,}"
    alone, least = forecast.calls * latency, forecast.rounds * latency
    rows = [
        ("model", ", ".join(_models(experiment)), ""),
        ("cells", f"{forecast.cells:,}", "combinations of conditions"),
        ("runs", f"{forecast.runs:,}", "distinct runs, replicates counted"),
        ("model calls", f"{forecast.calls:,}", "if no reply is rejected"),
        ("coded texts", f"{forecast.texts:,}", ""),
        ("longest path", chain, "" if path is None else "calls that must follow one another: the critical path"),
        ("width", f"{forecast.width:,.1f}", "calls in flight on average, had you slots without end"),
        ("slots", f"{forecast.slots:,}", "calls in flight at most (--max-concurrency)"),
        ("speed-up", f"{forecast.speedup:,.1f}x", "at most, over one call at a time"),
        ("time", _spell_seconds(least), f"at least, at {latency:g} s a call; one at a time: {_spell_seconds(alone)}"),
    ]
    return f"{experiment.spec.name}\n\n{aligned(rows)}"


def _spell_seconds(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def preview(
    spec: Spec,
    changes: Changes = None,
    prompts: Prompts = None,
    run: Annotated[int, typer.Option("--run", metavar="N", min=0, help="Which of the planned runs, from 0.")] = 0,
) -> None:
    """Print the first prompt of each kind of turn, as a model would get it. Makes no call."""
    from opinionsim.experiments import preview as rendered

    experiment = read_spec(spec, changes, prompts)
    found = rendered(experiment, run)
    say(f"{experiment.spec.name}: run {run} of {len(experiment.runs)}, {found.cell}")
    for act, messages in found.prompts.items():
        say(f"\n===== {act} =====")
        for message in messages:
            say(f"\n[{message.role}]\n{message.content}")
    if not found.prompts:
        say("\nNothing happens in this run: it has no step and no probe, so no prompt is sent.")


def schema() -> None:
    """Print the JSON Schema of specifications, for editors and other tools."""
    from opinionsim.experiments import json_schema

    say_json(json_schema())
