"""DeGroot, Friedkin-Johnsen, Altafini, biased assimilation: steps, limits, reductions, refusals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from opinionsim.classic import friedkin_johnsen_equilibrium, influence_matrix, simulate, transition
from opinionsim.errors import SpecError

_RNG = np.random.default_rng(2)
_HEARD = _RNG.integers(0, 4, (9, 9)) * (1.0 - np.eye(9)) + np.eye(9, k=1) + np.eye(9, k=-1)
_START = _RNG.random(9)
_OWN = _RNG.random(9)


def _rows(heard, own) -> np.ndarray:
    matrix = heard + np.diag(np.broadcast_to(own, len(heard)))
    return matrix / np.abs(matrix).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("own", [0.0, 1.0, _OWN], ids=["none", "one", "each"])
@pytest.mark.parametrize("network", [_HEARD, 9], ids=["weighted", "complete"])
def test_degroot_is_its_matrix(network, own) -> None:
    heard = np.ones((9, 9)) - np.eye(9) if isinstance(network, int) else network
    matrix = _rows(heard, own)
    np.testing.assert_allclose(influence_matrix(network, own).toarray(), matrix, rtol=0, atol=1e-15)
    found = simulate("degroot", network, _START, 5, self_weight=own).opinions[0]
    expected = [np.linalg.matrix_power(matrix, step) @ _START for step in range(6)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("network", [_HEARD, 9], ids=["weighted", "complete"])
@pytest.mark.parametrize("model", ["degroot", "friedkin-johnsen", "altafini"])
def test_dimensions_go_their_own_ways(model, network) -> None:
    options = {"susceptibility": np.linspace(0.1, 0.9, 9)} if model == "friedkin-johnsen" else {}
    start = np.stack([_START, 1 - _START**2], axis=1)
    both = simulate(model, network, start, 6, self_weight=_OWN, **options).opinions[0]
    for d in range(2):
        alone = simulate(model, network, start[:, d], 6, self_weight=_OWN, **options).opinions[0]
        np.testing.assert_allclose(both[:, :, d], alone, rtol=0, atol=1e-14)


@pytest.mark.parametrize("model", ["degroot", "friedkin-johnsen", "altafini", "biased-assimilation"])
def test_transition_says_what_the_kernel_does(model) -> None:
    signs = np.where(np.indices((9, 9)).sum(axis=0) % 3 == 0, -1.0, 1.0) if model == "altafini" else 1.0
    heard = _HEARD * signs
    start = 4 * _START - 1
    messages = np.where(heard != 0, start, np.nan)
    found = simulate(model, heard, start, 1, self_weight=_OWN, range=(-1, 3)).opinions[0, 1]
    expected = transition(model, start, messages, heard, self_weight=_OWN, range=(-1, 3)).values[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_friedkin_johnsen_at_its_ends() -> None:
    np.testing.assert_array_equal(
        simulate("friedkin-johnsen", _HEARD, _START, 5, susceptibility=1.0).opinions,
        simulate("degroot", _HEARD, _START, 5).opinions,
    )
    still = simulate("friedkin-johnsen", _HEARD, _START, 5, susceptibility=0.0).opinions[0]
    assert (still == _START).all()


def test_the_equilibrium_is_where_the_simulation_ends() -> None:
    susceptibility = np.array([1, 1, 0.9, 0.5, 0, 1, 0.2, 0.7, 1])
    for start in (_START, np.stack([_START, _START**2], axis=1)):
        limit = friedkin_johnsen_equilibrium(_HEARD, start, susceptibility, _OWN)
        end = simulate("friedkin-johnsen", _HEARD, start, 400, susceptibility=susceptibility, self_weight=_OWN).final[0]
        np.testing.assert_allclose(end, limit, rtol=0, atol=1e-12)
    influence = friedkin_johnsen_equilibrium(_HEARD, np.eye(9), susceptibility, _OWN)
    np.testing.assert_allclose(influence.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(influence @ _START, friedkin_johnsen_equilibrium(_HEARD, _START, susceptibility, _OWN))


def test_an_equilibrium_without_anchor_is_refused() -> None:
    # 0 and 1 hear each other alone; 2 hears them and is stubborn.
    heard = np.array([[0.0, 1, 0], [1, 0, 0], [1, 1, 0]])
    with pytest.raises(SpecError, match="agent 0 depends on no initial opinion"):
        friedkin_johnsen_equilibrium(heard, [0, 1, 0.5], [1, 1, 0.5])
    assert friedkin_johnsen_equilibrium(heard, [0, 1, 0.5], [0.5, 1, 1]).tolist() == pytest.approx([0, 0, 0])
    with pytest.raises(SpecError, match="susceptibility must be a number"):
        friedkin_johnsen_equilibrium(heard, [0, 1, 0.5], 2)
    with pytest.raises(SpecError, match="one opinion for each of the 3 agents"):
        friedkin_johnsen_equilibrium(heard, [0, 1])
    with pytest.raises(SpecError, match="no negative weights"):
        friedkin_johnsen_equilibrium(-heard, [0, 1, 0.5])


def test_altafini_without_foes_is_degroot() -> None:
    found = simulate("altafini", _HEARD, 2 * _START - 1, 6).opinions
    np.testing.assert_allclose((found + 1) / 2, simulate("degroot", _HEARD, _START, 6).opinions, rtol=0, atol=1e-15)


def test_only_altafini_takes_foes() -> None:
    foes = np.array([[0.0, -1], [-1, 0]])
    found = simulate("altafini", foes, [0.5, 0.5], 1, self_weight=0).opinions[0, 1]
    assert found.tolist() == [-0.5, -0.5]
    for model in ("degroot", "friedkin-johnsen", "biased-assimilation"):
        with pytest.raises(SpecError, match="weights must not be negative"):
            simulate(model, foes, [0.5, 0.5])


@pytest.mark.parametrize("network", [_HEARD, 9], ids=["weighted", "complete"])
def test_unbiased_assimilation_is_degroot(network) -> None:
    found = simulate("biased-assimilation", network, _START, 8, b=0, self_weight=_OWN).opinions
    np.testing.assert_allclose(found, simulate("degroot", network, _START, 8, self_weight=_OWN).opinions, atol=1e-14)


def test_bias_of_ones_own() -> None:
    b = np.linspace(0, 3, 9)
    found = simulate("biased-assimilation", 9, _START, 1, b=b).opinions[0, 1]
    for agent in range(9):
        alone = simulate("biased-assimilation", 9, _START, 1, b=float(b[agent])).opinions[0, 1, agent]
        assert found[agent] == pytest.approx(alone, abs=1e-15)


def test_extremists_who_hear_only_what_they_do_not_believe_stay() -> None:
    ends = [0.0, 1.0]
    found = simulate("biased-assimilation", nx.path_graph(2), ends, 3, b=1, self_weight=0).opinions[0]
    assert (found == ends).all()


def test_rounding_leads_nobody_out_of_the_range() -> None:
    # Thirds and sevenths of one add up to a little more, or less, than one.
    heard = np.random.default_rng(0).random((30, 30)) * (1 - np.eye(30))
    for model in ("degroot", "friedkin-johnsen", "biased-assimilation", "altafini"):
        end = simulate(model, heard, np.ones(30), 50).final[0]
        assert end.max() <= 1
        simulate(model, heard, end, 1)
