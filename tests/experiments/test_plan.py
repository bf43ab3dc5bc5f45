from __future__ import annotations

from typing import Any

import pytest

import opinionsim as osim
from opinionsim.engine import critical_path
from opinionsim.experiments import assemble, load_experiment
from tests._running import SMALL, carry_out, changed, watched

INTERACTIONS: dict[str, dict[str, Any]] = {
    "dyadic": {"kind": "dyadic", "steps": 5},
    "broadcast": {"kind": "broadcast", "steps": 3},
    "similarity": {"kind": "similarity", "steps": 5},
    "independent": {"kind": "independent", "reports": 2},
    "remembered": {"kind": "remembered", "exposures": 1.5},
    "no-role-play": {"kind": "no-role-play", "reports": 2},
    "external": {"kind": "external", "steps": 4, "messages": ["One.", "Two."]},
}


@pytest.mark.parametrize("probe", [{}, {"before": 1, "after": 2}], ids=["unprobed", "probed"])
@pytest.mark.parametrize("memory", ["cumulative", "reflective"])
@pytest.mark.parametrize("kind", INTERACTIONS)
def test_the_forecast_is_what_a_run_makes(kind: str, memory: str, probe: dict[str, int]) -> None:
    spec = changed(
        SMALL,
        interaction=INTERACTIONS[kind],
        cognition={"memory": memory},
        measurement={"texts": ["report"], "probe": probe},
    )
    forecast = osim.plan(load_experiment(spec))
    model, watch = watched(latency=lambda seed: 0.0)
    results = carry_out(spec, "planned.sqlite", model)[1]
    assert forecast.calls == len(watch.asked)
    assert forecast.texts == len(results.opinions)
    assert (forecast.cells, forecast.runs) == (1, 1)


def test_no_slots_and_no_latency_beat_the_longest_path() -> None:
    experiment = load_experiment(changed(SMALL, population={"size": 10}, interaction__steps=100))
    path = critical_path(assemble(experiment.runs[0], experiment.resources).schedule)
    forecast = osim.plan(experiment)
    assert (forecast.calls, forecast.longest_path, forecast.width) == (200, path.length, path.mean_width)
    assert forecast.rounds == path.length
    assert forecast.speedup == pytest.approx(200 / path.length)
    sequential = osim.plan(experiment, max_concurrency=1)
    assert (sequential.rounds, sequential.speedup, sequential.slots) == (200, 1.0, 1)


def test_a_sweep_adds_up_and_shared_runs_count_once() -> None:
    spec = changed(
        SMALL,
        replicates=3,
        sweep={"cognition.memory": ["cumulative", "reflective"], "measurement.texts": [["report"], ["post"]]},
    )
    forecast = osim.plan(load_experiment(spec))
    assert (forecast.cells, forecast.runs, forecast.calls) == (4, 6, 3 * 12 + 3 * 24)


def test_an_adaptive_schedule_has_no_longest_path() -> None:
    forecast = osim.plan(load_experiment(changed(SMALL, interaction=INTERACTIONS["similarity"])))
    assert forecast.longest_path is None
    assert forecast.calls == 10


def test_nothing_to_do_takes_no_time() -> None:
    forecast = osim.plan(load_experiment(changed(SMALL, interaction__steps=0)))
    assert (forecast.calls, forecast.rounds, forecast.speedup, forecast.longest_path) == (0, 0, 1.0, 0)


def test_a_draw_that_cannot_be_used_counts_no_call() -> None:
    network = {"kind": "erdos-renyi", "p": 0.2}
    spec = changed(SMALL, population={"size": 3}, replicates=6, interaction__network=network)
    forecast = osim.plan(load_experiment(spec))
    summary, results = carry_out(spec, "edgeless.sqlite")
    assert forecast.runs == 6
    assert forecast.calls == len(results.calls) == 12 * summary.complete
    assert summary.complete < 6


def test_an_adaptive_sweep_is_not_promised_more_than_its_runs_side_by_side() -> None:
    interaction = {"kind": "similarity", "steps": 30}
    spec = {"name": "adaptive", "replicates": 6, "topic": {"name": "flat-earth"}, "interaction": interaction}
    forecast = osim.plan(load_experiment(spec), max_concurrency=64)
    assert (forecast.calls, forecast.longest_path, forecast.rounds) == (360, None, 60)
    assert forecast.speedup == forecast.width == 6
