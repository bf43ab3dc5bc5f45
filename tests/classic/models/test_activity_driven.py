"""Activity-driven echo chambers: who meets whom, integration, what a network of contacts restricts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opinionsim.classic import MODELS, ClassicModel, ClassicModelContract, simulate, transition
from opinionsim.errors import SpecError

pytestmark = pytest.mark.long

_START = np.array([-0.8, -0.5, -0.1, 0.2, 0.4, 0.9])
_N = len(_START)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("heun", 2), ("rk4", 4)])
def test_integration_is_of_its_order(method, order) -> None:
    # Everybody active hears all others: no chance is left, and halving dt divides the error by 2^order.
    def end(dt: float, method: str) -> np.ndarray:
        options = {"activity": 1.0, "m": _N - 1, "K": 0.7, "alpha": 1.5, "dt": dt, "method": method}
        return simulate("activity-driven", _N, _START, round(1.6 / dt), **options).final[0]

    exact = end(0.00625, "rk4")
    coarse, fine = (np.abs(end(dt, method) - exact).max() for dt in (0.1, 0.05))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("method", ["euler", "heun", "rk4"])
def test_transition_of_one_who_hears_what_does_not_change(method) -> None:
    # Agent 0 alone hears; the others' opinions are 0 and stay so where nobody speaks to them.
    options = {"K": np.full(_N, 2.0), "alpha": 1.3, "dt": 0.1, "method": method}
    activity = np.zeros(_N)
    still = simulate("activity-driven", _N, _START, 1, activity=activity, r=0, **options).opinions[0, 1]
    expected = transition("activity-driven", _START, np.full((_N, 1), np.nan), **options).values[:, 0]
    np.testing.assert_allclose(still, expected, rtol=0, atol=1e-15)
    kept = {"euler": 0.9, "heun": 0.905, "rk4": sum((-0.1) ** k / math.factorial(k) for k in range(5))}[method]
    np.testing.assert_allclose(still, kept * _START, rtol=0, atol=1e-15)
    if method == "euler":
        activity[0] = 1.0
        found = simulate("activity-driven", _N, _START, 1, activity=activity, r=0, m=_N - 1, **options).opinions[0, 1]
        heard = transition("activity-driven", _START[:1], _START[None, 1:], K=2.0, alpha=1.3, dt=0.1).values[0, 0]
        assert found[0] == pytest.approx(heard, abs=1e-15)


def test_default_opinions_are_between_minus_one_and_one() -> None:
    found = simulate("activity-driven", 500, steps=0, seed=1).opinions[0, 0]
    assert found.min() >= -1
    assert found.max() <= 1
    assert found.std() == pytest.approx(1 / np.sqrt(3), abs=0.05)


@pytest.mark.parametrize(("contact", "moved"), [("hears", [0]), ("speaks", [1, 2])])
def test_a_contact_moves_whom_it_is_said_to(contact: str, moved: list[int]) -> None:
    found = simulate(
        "activity-driven", 3, [0.5, 0.5, 0.5], 1, activity=[1, 0, 0], m=2, r=0, K=10, dt=0.1, contact=contact
    ).final[0]
    # Everybody decays alike; only those who hear somebody are pushed on.
    assert np.flatnonzero(found > 0.5).tolist() == moved


class TestInertia(ClassicModelContract):
    """The contract where agents carry a velocity from step to step."""

    settings = {"m": 2, "inertia": True, "reluctance": 0.5, "friction": 0.3, "method": "heun"}  # noqa: RUF012

    @property
    def model(self) -> ClassicModel:
        return MODELS["activity-driven"]


def test_reluctance_divides_the_drift() -> None:
    options = {"m": 2, "dt": 0.02, "seed": 3}
    one = simulate("activity-driven", _N, _START, 1, **options).final[0] - _START
    slow = simulate("activity-driven", _N, _START, 1, reluctance=[1, 2, 4, 5, 8, 10], **options).final[0] - _START
    np.testing.assert_allclose(slow * [1, 2, 4, 5, 8, 10], one, rtol=0, atol=1e-15)


@pytest.mark.parametrize("inertia", [False, True])
def test_bots_never_change_and_reach_as_many_as_their_own_m(inertia: bool) -> None:
    start = np.full(_N, 0.1)
    start[0] = 5.0
    options = {"activity": [1, 0, 0, 0, 0, 0], "beta": 0, "contact": "speaks", "r": 0, "K": 10, "inertia": inertia}
    for m in (1, 3, 5):
        mine = [m, 1, 1, 1, 1, 1]
        steps = 2 if inertia else 1
        runs = simulate(
            "activity-driven", _N, start, steps, zealot=[1, 0, 0, 0, 0, 0], m=mine, replicates=40, **options
        )
        assert (runs.opinions[:, :, 0] == 5.0).all()
        pushed = (runs.opinions[:, -1, 1:] > 0.1).sum(axis=1)
        assert (pushed >= m).all()
        if not inertia:
            assert (pushed == m).all()
    free = simulate("activity-driven", _N, start, 2, m=5, **options).final[0, 0]
    assert free < 5.0


def test_reluctance_and_zealots_in_the_transition() -> None:
    options = {"K": 2.0, "alpha": 1.3, "dt": 0.1, "reluctance": [1.0, 2.0, 2.0], "zealot": [0, 0, 1]}
    found = transition("activity-driven", [0.5, 0.5, 0.5], [[0.8], [0.8], [0.8]], **options).values[:, 0]
    drift = 2.0 * np.tanh(1.3 * 0.8) - 0.5
    np.testing.assert_allclose(found, [0.5 + 0.1 * drift, 0.5 + 0.05 * drift, 0.5], rtol=0, atol=1e-15)
    with pytest.raises(SpecError, match="the next opinion depends on a velocity"):
        transition("activity-driven", [0.5], [[0.8]], inertia=True)


def test_heavy_friction_is_the_model_without_inertia_in_slow_motion() -> None:
    # x'' + f x' = drift: for a large f, x' = drift / f, as with a reluctance of f.
    options = {"activity": 1.0, "m": _N - 1, "K": 0.7, "alpha": 1.5, "dt": 0.005, "method": "rk4", "steps": 4000}
    slow = simulate("activity-driven", _N, _START, reluctance=40.0, **options).final[0]
    heavy = simulate("activity-driven", _N, _START, inertia=True, friction=40.0, **options).final[0]
    np.testing.assert_allclose(heavy, slow, rtol=0, atol=5e-3)
    assert np.abs(slow - _START).max() > 0.1


def test_opinions_that_never_rest_have_no_frozen_state() -> None:
    with pytest.raises(SpecError, match="decay and are pushed on for ever"):
        simulate("activity-driven", _N, _START, until="frozen")
