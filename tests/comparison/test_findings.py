"""Every finding on a small study of which the truth is known, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opinionsim.errors import SpecError
from tests.comparison._studies import (
    BASELINES,
    MARGIN,
    Comparison,
    Explained,
    Fit,
    Problem,
    Trust,
    Updates,
    _counted,
    _explained,
    _lacking,
    _noise,
    fit,
    meetings,
    misreading,
    named,
    no_more_than,
    rated,
    repulsion,
    ruled,
    strength,
    unrated,
)

_NOISE = 0.1


def _found(study: Updates, noise: Any = _NOISE, threads: int = 2, models: Sequence[str] = ("voter",)) -> Explained:
    candidates = named(models)
    return _explained(_counted(study, candidates), candidates, noise, MARGIN, 0, threads, lambda stage: None)


@pytest.fixture(scope="module")
def influenced() -> Explained:
    """Agents that adopt every second message."""
    return _found(rated(meetings(8, 6, 30, 1), "voter", {"stay": 0.5}, _NOISE, 1))


def _told(found: Explained) -> tuple[str, str]:
    """Finding and statement."""
    row = Comparison({"cell": found}, None, MARGIN).findings.iloc[0]  # type: ignore[arg-type]
    return row["finding"], row["statement"]


def test_influence_is_found(influenced: Explained) -> None:
    finding, statement = _told(influenced)
    assert finding == "influence"
    assert statement.startswith("Agents respond to what they read (+")
    assert statement.endswith("the best model is voter.")
    assert influenced.trust.recovered >= 0.8


def test_pull_to_a_point_needs_no_interaction() -> None:
    finding, statement = _told(_found(rated(meetings(8, 6, 30, 2), None, {"pull": 0.1, "towards": 1.0}, _NOISE, 2)))
    assert finding == "no interaction needed"
    assert statement.startswith("No interaction is needed: attractor predicts updates as well")


def test_agents_that_never_change_are_persistent() -> None:
    finding, statement = _told(_found(rated(meetings(8, 6, 30, 3), None, {}, 0.0, 3), noise=0.0))
    assert finding == "persistence"
    assert statement.startswith("Agents keep their opinions")


def test_agents_with_points_of_their_own_need_no_interaction() -> None:
    """Seven in ten are drawn back to where they began, which a model that goes back to its start takes for its own."""
    found = _found(rated(meetings(8, 6, 40, 2), BASELINES[3], {"back": 0.6, "anchored": 0.7, "jump": 0.2}, _NOISE, 2))
    finding, statement = _told(found)
    assert finding == "no interaction needed"
    assert statement.startswith("No interaction is needed: anchored predicts updates as well")
    values = found.fits[found.best].values
    assert (values["anchored"], values["back"]) == (pytest.approx(0.7, abs=0.1), pytest.approx(0.6, abs=0.1))


@pytest.mark.parametrize("models", [("voter",), ("voter", "degroot")])
def test_missing_ratings_leave_persistence_as_it_is(models: tuple[str, ...]) -> None:
    """A tenth of reports is not rated, so that some ratings follow two messages or three."""
    study = unrated(rated(meetings(8, 6, 30, 3), None, {}, 0.0, 3), 0.1, 3)
    found = _found(study, 0.0, models=models)
    finding, statement = _told(found)
    assert finding == "persistence", statement
    assert not found.unfit
    single = "Scored on 225 of 231 updates, those with one message (degroot: no others)."
    assert statement.endswith(single) is ("degroot" in models)
    assert found.study.updated.sum() == (225 if "degroot" in models else 231)


@pytest.mark.whole
def test_what_no_candidate_says_leaves_none_adequate() -> None:
    finding, statement = _told(_found(ruled(meetings(8, 6, 60, 5), repulsion, _NOISE, 5)))
    assert finding == "none adequate"
    assert statement.startswith("No candidate is adequate")


def test_few_blocks_give_no_verdict() -> None:
    found = _found(rated(meetings(4, 5, 20, 6), None, {}, 0.0, 6))
    finding, statement = _told(found)
    assert finding == "withheld"
    assert "there are 4 blocks, and a finding needs 8" in statement
    script = replace(found, study=replace(found.study, evidence="scripted"))
    assert _told(script)[1].endswith("This result describes the script.")


def test_results_are_the_same_on_any_number_of_threads(influenced: Explained) -> None:
    two, three = (
        Comparison({"cell": each}, None, MARGIN)  # type: ignore[arg-type]
        for each in (influenced, _found(influenced.study, threads=3))
    )
    for name in ("fits", "scores", "findings", "trust", "free_runs"):
        assert getattr(two, name).to_csv() == getattr(three, name).to_csv(), name


# -- absence -----------------------------------------------------------------------------------------------


def test_rare_and_large_moves_are_as_strong_as_they_are() -> None:
    # One in five messages is adopted: a fifth of the way, in which no single update goes.
    problem = Problem(rated(meetings(20, 8, 60, 8), "voter", {"stay": 0.8}, 0.0, 8), _noise(0.0, 5)[0])
    linear: Fit = fit(problem, named("degroot")[0])
    assert strength(linear.values) == pytest.approx(0.2, abs=0.05)
    assert not no_more_than(problem, linear, 0.15)
    assert no_more_than(problem, linear, 0.4)


def test_absence_is_shown_only_where_data_suffice() -> None:
    for runs, shown in ((1, False), (20, True)):
        problem = Problem(rated(meetings(runs, 8, 20 * max(runs // 10, 1), 9), None, {}, 0.3, 9), _noise(0.3, 5)[0])
        assert no_more_than(problem, fit(problem, named("degroot")[0]), 0.1) is shown


def test_a_gap_below_zero_may_be_more_than_chance_makes() -> None:
    drawn = np.random.default_rng(1).normal(-0.25, 0.01, 20)
    calm = np.full(21, 0.1) + np.arange(21) * 1e-3

    def adequate(gap: float, drift: float = 0.1) -> bool:
        drifts = np.append(drift, calm[1:])
        return Trust(None, (), 0.0, 1.0, np.append(gap, drawn), drifts).adequate  # type: ignore[arg-type]

    assert adequate(-0.25)
    assert adequate(-0.9)
    assert not adequate(-0.1)
    assert not adequate(-0.25, drift=0.3)


# -- refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (1.0, "noise must be a rate of errors"),
        (-0.1, "noise must be a rate of errors"),
        (float("nan"), "noise must be a rate of errors"),
        ((0.1, 0.2), "noise must be a rate of errors"),
        ("abc", "or 'audit'; got 'abc'"),
        ([0.1, None], "noise must be a rate of errors"),
        (np.eye(4), "a matrix of 5 by 5 shares"),
        (np.full((5, 5), 0.3), "each row of a misclassification matrix"),
        (np.full((5, 5), np.nan), "each row of a misclassification matrix"),
    ],
)
def test_noise_that_is_none_is_refused(noise: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        _noise(noise, 5)


def test_one_block_is_not_compared() -> None:
    assert _lacking(meetings(2, 4, 5, 1), named("voter")) == ""
    assert _lacking(meetings(1, 4, 5, 1), named("voter")).startswith("it has one block")


def test_a_matrix_may_have_the_ends_of_its_interval() -> None:
    three = np.array([misreading(5, rate, 0.8) for rate in (0.2, 0.1, 0.3)])
    matrix, ends = _noise(three, 5)
    np.testing.assert_allclose([matrix, *ends], three, atol=1e-3)


def test_ratings_that_a_matrix_rules_out_are_unlikely_not_impossible() -> None:
    study = rated(meetings(3, 4, 10, 1), None, {}, 0.3, 1)
    for noise in (0.0, np.eye(5)):
        problem = Problem(study, _noise(noise, 5)[0])
        assert np.isfinite(problem.objective(named("voter")[0], {"jump": 0.01, "stay": 0.5}))
