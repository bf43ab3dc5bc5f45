"""Populations as assembled for the replicates of an experiment."""

from __future__ import annotations

from collections import Counter

import pytest

from opinionsim.experiments import assemble, load_experiment


@pytest.mark.parametrize(
    ("size", "initial"), [(5, "uniform"), (7, "uniform"), (10, "skewed-positive"), (12, "personas")]
)
def test_a_latin_square_gives_every_agent_every_place_once(size: int, initial: str) -> None:
    """Also where personas are sampled or repeated, and where opinions do not divide evenly."""
    experiment = load_experiment(
        {
            "name": "square",
            "replicates": size,
            "topic": {"name": "global-warming"},
            "population": {"size": size, "initial_opinions": initial, "assignment": "latin-square"},
            "interaction": {"kind": "dyadic", "steps": 1},
        }
    )
    populations = [assemble(run, experiment.resources).population for run in experiment.runs]
    assert all(population.personas == populations[0].personas for population in populations)
    held = [Counter(population.opinions[agent] for population in populations) for agent in range(size)]
    assert all(counts == held[0] for counts in held)
    assert held[0] == Counter(populations[0].opinions)
