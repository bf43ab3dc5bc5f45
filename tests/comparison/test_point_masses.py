"""Opinions that are numbers on record: thresholds are bracketed, and draws are what is predicted."""

from __future__ import annotations

import numpy as np
import pytest

from tests.comparison._studies import ExactProblem, candidate, fit, interval, meetings, named, ruled


def _bounded(own: float, said: float, *_: object) -> float:
    return own + 0.3 * (said - own) if abs(said - own) <= 1.2 else own


def test_two_thousand_updates_bracket_the_threshold_and_return_mu() -> None:
    problem = ExactProblem(ruled(meetings(20, 10, 100, 1), _bounded, 0.0, 1, exact=True))
    best = fit(problem, named("deffuant")[0])
    assert best.values["epsilon"] == pytest.approx(1.2, abs=0.005)
    assert best.values["mu"] == pytest.approx(0.3, abs=1e-3)
    low, high = interval(problem, best, "epsilon")
    assert low <= 1.2 <= high
    assert high - low <= 0.01


def test_updates_without_a_number_before_or_in_the_message_say_nothing() -> None:
    study = ruled(meetings(2, 3, 10, 2), _bounded, 0.0, 2, exact=True)
    value = study.value.copy()
    value[[4, 25]] = np.nan
    problem = ExactProblem(study.of_values(value))
    found = problem.by_turn(candidate("deffuant"), {"epsilon": 1.2, "mu": 0.3, "jump": 0.01, "stay": 0, "log_sd": -5.0})
    known = ~np.isnan(problem.study.held) & ~np.isnan(problem.study.said) & problem.study.updated
    # What an agent held just before its next update is not on record either, where the outcome of one is missing.
    assert study.agent[25] == study.agent[27]
    known[27] = False
    assert found[5] == 0
    assert (found != 0).tolist() == known.tolist()


@pytest.mark.parametrize("model", ["deffuant", "friedkin-johnsen", "voter"])
def test_what_is_drawn_is_what_is_predicted(model: str) -> None:
    parameters = {"epsilon": 1.2, "mu": 0.3, "susceptibility": 0.6, "self_weight": 1.0}
    values = {**parameters, "jump": 0.05, "stay": 0.2, "pull": 0.1, "towards": 1.0, "log_sd": -3.0}
    problem = ExactProblem(ruled(meetings(10, 6, 60, 3), _bounded, 0.0, 3, exact=True))
    one = candidate(model)
    drawn = ExactProblem(problem.redrawn(one, values, np.random.default_rng(4)))
    np.testing.assert_array_equal(np.isnan(drawn.study.value), np.isnan(problem.study.value))
    best = drawn.objective(one, values)
    for name, other in (("jump", 0.2), ("stay", 0.5), ("pull", 0.2), ("towards", 0.0), ("log_sd", -2.5)):
        assert drawn.objective(one, {**values, name: other}) < best - 1, name
