"""Optima: what is nested never fits better, parameters are found again, and bad searches are errors."""

from __future__ import annotations

import numpy as np
import pytest

from opinionsim.classic import MODELS
from opinionsim.errors import SpecError
from tests.comparison._studies import (
    BASELINES,
    DEFAULT,
    POINTS,
    ExactProblem,
    Fit,
    Grid,
    Problem,
    _counted,
    among,
    fit,
    meetings,
    misreading,
    named,
    rated,
    refit,
    repulsion,
    ruled,
    special_cases,
    unrated,
)

TRUTHS: dict[str, dict[str, float]] = {
    "voter": {"stay": 0.5},
    "degroot": {"self_weight": 3.0},
    "deffuant": {"epsilon": 1.2, "mu": 0.3},
}


def _all(problem: Problem, names: list[str], seed: int = 0) -> list[Fit]:
    fits: list[Fit] = []
    for each in [*BASELINES, *named(names)]:
        fits.append(fit(problem, each, special_cases(each, fits), seed))
    return fits


@pytest.mark.parametrize(
    ("truth", "error", "exact"),
    [pytest.param("deffuant", 0.3, False, marks=pytest.mark.whole), ("voter", 0.0, False), (None, 0.0, True)],
)
def test_a_larger_model_never_fits_worse(truth: str | None, error: float, exact: bool) -> None:
    study = meetings(3, 4, 20, 1)
    if exact:
        problem: Problem = ExactProblem(ruled(study, repulsion, 0.0, 1, exact=True))
    else:
        parameters = TRUTHS[truth] if truth else {"pull": 0.1, "towards": 1.0}
        problem = Problem(rated(study, truth, parameters, error, 1))
    fits = _all(problem, list(TRUTHS))
    for each in fits:
        for smaller in special_cases(each.candidate, fits):
            assert each.objective >= smaller.objective - 0.05, (each.candidate.name, smaller.candidate.name)


@pytest.mark.parametrize("truth", ["voter", pytest.param("deffuant", marks=pytest.mark.whole)])
def test_parameters_are_found_again(truth: str) -> None:
    problem = Problem(rated(meetings(12, 10, 50, 3), truth, TRUTHS[truth], 0.1, 3))
    attractor = fit(problem, BASELINES[2])
    found = fit(problem, named(truth)[0], [attractor])
    assert found.objective > attractor.objective + 10
    assert found.values["error"] == pytest.approx(0.1, abs=0.04)
    assert found.values["pull"] < 0.05
    for name, value in TRUTHS[truth].items():
        assert found.values[name] == pytest.approx(value, abs=0.1), name


def test_known_noise_is_not_fitted() -> None:
    study = rated(meetings(10, 8, 40, 4), "degroot", {"self_weight": 1.0}, 0.2, 4)
    found = fit(Problem(study, misreading(5, 0.2, 0.8)), named("degroot")[0])
    assert set(found.values) == {"self_weight", "stay", "jump", "pull", "towards"}


def test_a_parameter_that_is_held_stays() -> None:
    problem = Problem(rated(meetings(6, 6, 30, 5), "deffuant", TRUTHS["deffuant"], 0.1, 5))
    best = fit(problem, named("deffuant")[0])
    held = refit(problem, best.candidate, best.values, {"mu": 0.02})
    assert held.values["mu"] == 0.02
    assert held.objective < best.objective


def test_a_search_that_ends_below_a_special_case_is_an_error() -> None:
    problem = Problem(rated(meetings(4, 5, 20, 6), "voter", {}, 0.1, 6))
    smaller = fit(problem, BASELINES[2])
    better = Fit(smaller.candidate, smaller.values, smaller.objective + 1000.0)
    with pytest.raises(SpecError, match="optimiser failed for voter: it fits worse than attractor"):
        fit(problem, named("voter")[0], [better])


def test_first_ratings_say_where_agents_begin() -> None:
    problem = Problem(rated(meetings(20, 10, 40, 7), None, {}, 0.0, 7, start=(0.0, 2.0)))
    assert problem.prior.sum() == pytest.approx(1.0)
    assert problem.prior[Grid(POINTS).nodes < -0.6].sum() < 0.02


# -- candidates --------------------------------------------------------------------------------------------


def test_every_default_model_is_applicable_and_its_parameters_are_those_of_its_step() -> None:
    grid, study = Grid(POINTS), rated(meetings(2, 5, 10, 8), None, {}, 0.1, 8)
    free = {each.name: [one.name for one in each.bounds(grid, noise=False)] for each in named(None)}
    assert [each.unfit(study) for each in named(None)] == [""] * len(DEFAULT)
    assert free["voter"] == ["stay", "jump", "pull", "towards"]
    assert free["deffuant"][:2] == ["epsilon", "mu"]
    assert free["degroot"][:1] == ["self_weight"]
    assert set(free["friedkin-johnsen"][:2]) == {"susceptibility", "self_weight"}
    assert free["jager-amblard"][:3] == ["u", "t", "mu"]


def test_models_that_cannot_have_produced_updates_say_why() -> None:
    study = rated(meetings(2, 5, 10, 8), None, {}, 0.1, 8)
    reasons = {each.name: each.unfit(study) for each in named(list(MODELS))}
    assert "two states" in reasons["noisy-voter"]
    assert "traits" in reasons["axelrod"]
    assert "ties change" in reasons["holme-newman"]
    assert "more than an opinion" in reasons["activity-driven"]
    assert "several messages at once" in reasons["sznajd"]
    assert not reasons["jager-amblard"]
    assert all(reason == "" or len(reason.split()) > 3 for reason in reasons.values())


@pytest.mark.parametrize(
    ("models", "share", "exact", "single"),
    [
        (["voter", "degroot"], 0.3, False, True),
        (["voter", "degroot"], 0.8, False, False),
        (["voter"], 0.3, False, False),
        (["degroot"], 0.8, False, True),
        (["voter"], 0.8, True, True),
        (["voter", "degroot"], 0.0, False, False),
    ],
)
def test_candidates_are_scored_on_updates_that_all_can_predict(
    models: list[str], share: float, exact: bool, single: bool
) -> None:
    spoken_to = among(np.array([(0, 1 + step % 4) for step in range(80)]), np.tile(np.arange(1, 41), 2), 2, 5)
    study = unrated(ruled(spoken_to, repulsion, 0.0, 8, exact=exact), share, 8)
    one, every = study.by_one
    found = _counted(study, named(models))
    assert found.one_message is single
    # An update of numbers counts if the number just before it is on record, too.
    assert found.updated.sum() == (2 if exact else one if single else every)
    reasons = [each.unfit(found) for each in named(models)]
    assert any(reasons) is (share == 0.8 and len(models) > 1)
    assert reasons[-1] in ("", f"it reads all messages of an update at once, and {one} of {every} updates follow one")


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (["nonsense"], "nonsense"),
        ([], "models must name at least one model"),
        (["voter", "voter"], "'voter' is given twice"),
        ({"deffuant": {"size": 3}}, "deffuant has no parameter 'size'; valid: "),
    ],
)
def test_unknown_models_and_parameters_are_errors(models: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        named(models)  # type: ignore[arg-type]


@pytest.mark.parametrize("mu", [5.0, "much"])
def test_a_given_parameter_that_is_not_valid_is_an_error(mu: object) -> None:
    with pytest.raises(SpecError, match="mu must be"):
        named({"deffuant": {"mu": mu}})[0].unfit(meetings(2, 5, 10, 8))


def test_parameters_that_are_given_are_not_fitted() -> None:
    one = named({"deffuant": {"mu": 0.5}})[0]
    names = [each.name for each in one.bounds(Grid(POINTS), noise=True)]
    assert names == ["epsilon", "stay", "jump", "pull", "towards", "error", "near"]
    assert np.isfinite([each.low for each in one.bounds(Grid(POINTS), noise=True)]).all()
