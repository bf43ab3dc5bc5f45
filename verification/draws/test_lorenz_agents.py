"""The model of Lorenz, Neumann & Schroeder 2021: idiosyncrasy, agents and followers are drawn as published."""

from __future__ import annotations

import numpy as np
import pytest

from opinionsim.classic import follower_network, lorenz_agents, simulate, transition

_SIZE = 4000
_ALL_HEAR_0 = np.stack([np.zeros(_SIZE, dtype=int), np.arange(1, _SIZE + 1)], axis=1)


def test_redrawn_opinions_are_normal_and_cut_off() -> None:
    group = np.arange(_SIZE + 1) % 2
    initial = np.zeros(_SIZE + 1)
    found = simulate("lorenz", _SIZE + 1, initial, pairs=_ALL_HEAR_0, record_every=_SIZE, theta=1.0, group=group,
                     spread=3.0, sd=2.0, seed=3)  # fmt: skip
    expected = transition("lorenz", initial[:2], initial[:2], theta=1.0, group=[0, 1], spread=3.0, sd=2.0)
    grid = np.linspace(-3.5, 3.5, 2001)
    for side in (0, 1):
        ended = found.final[0, 1:][group[1:] == side]
        masses = expected.probabilities[side]
        assert expected.values[side, 1:].tolist() == [-3.5, 3.5]
        for end, mass in zip((-3.5, 3.5), masses[1:], strict=True):
            share = (ended == end).mean()
            assert abs(share - mass) < 4 * np.sqrt(mass * (1 - mass) / ended.size) + 1 / ended.size
        assert expected.density is not None
        density = np.array([expected.density(np.full(2, point))[side] for point in grid])
        cumulative = masses[1] + np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
        assert cumulative[-1] + masses[2] == pytest.approx(1, abs=1e-6)
        empirical = np.searchsorted(np.sort(ended), grid[1:-1], side="right") / ended.size
        assert np.abs(empirical - cumulative[1:-1]).max() < 2.2 / np.sqrt(ended.size)  # Kolmogorov, 1 in 10^4


def test_idiosyncrasy_has_its_probability() -> None:
    initial = np.full(_SIZE + 1, 0.5)
    for kind, start in (("redraw", None), ("initial", [0.5])):
        found = simulate("lorenz", _SIZE + 1, initial, pairs=_ALL_HEAR_0, record_every=_SIZE, theta=0.2, rho=0.0,
                         idiosyncrasy=kind)  # fmt: skip
        moved = transition("lorenz", [0.5], [0.5], start=start, theta=0.2, rho=0.0, idiosyncrasy=kind)
        share = (found.final[0, 1:] == moved.values[0, 0]).mean()
        assert moved.probabilities[0, 0] == 0.8
        assert abs(share - 0.8) < 4 * np.sqrt(0.16 / _SIZE)
        assert np.isclose(found.final[0, 1:], 0.5).mean() == pytest.approx(1 - share if kind == "initial" else 0)


def test_agents_are_all_alike_by_default() -> None:
    agents = lorenz_agents(2000, np.random.default_rng(2))
    assert (agents["alpha"], agents["rho"], agents["theta"], agents["latitude"]) == (0.2, 0.0, 0.01, 0.5)
    assert abs(agents["initial"].mean()) < 4 / np.sqrt(2000)
    assert agents["initial"].std() == pytest.approx(1, abs=4 / np.sqrt(4000))
    assert simulate("lorenz", 2000, steps=1, **agents).parameters["spread"] == 0


def test_groups_of_agents_start_apart_and_inside_the_range() -> None:
    agents = lorenz_agents(4000, np.random.default_rng(2), spread=3, range=(-1, 3))
    low, high = (agents["initial"][agents["group"] == side] for side in (0, 1))
    assert abs(low.size - 2000) < 4 * np.sqrt(1000)
    assert np.median(low) == pytest.approx(-0.5, abs=0.12)
    assert np.median(high) == pytest.approx(2.5, abs=0.12)
    assert low.min() == -1
    assert high.max() == 3


def test_differences_of_agents_have_the_moments_asked_for() -> None:
    n = 40_000
    agents = lorenz_agents(n, np.random.default_rng(2), alpha=0.3, alpha_sd=0.1, rho=0.9, rho_sd=0.05, theta=0.0,
                           theta_sd=0.1, latitude=0.5, latitude_sd=0.2)  # fmt: skip
    assert agents["theta"] == 0.0
    for name, mean, sd in (("alpha", 0.3, 0.1), ("rho", 0.9, 0.05), ("latitude", 0.5, 0.2)):
        assert agents[name].mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(n))
        assert agents[name].std() == pytest.approx(sd, rel=0.03)


def test_variance_is_kept_below_what_is_possible() -> None:
    wild = lorenz_agents(40_000, np.random.default_rng(2), rho=0.2, rho_sd=5.0)["rho"]
    assert wild.mean() == pytest.approx(0.2, abs=0.01)
    assert wild.var() == pytest.approx(0.95 * 0.16, rel=0.03)
    tiny = lorenz_agents(1000, np.random.default_rng(2), latitude_sd=50.0)
    simulate("lorenz", 1000, steps=1, **tiny)


def test_who_has_followers_gets_more() -> None:
    # Agent 2 follows one of two: 0 has a follower, 1 has none, so that 0 is twice as likely.
    chosen = [
        int(network.speakers[network.listeners == 2][0])
        for network in (follower_network(3, np.random.default_rng(s), following=1, friends=0) for s in range(900))
    ]
    assert abs(np.mean(chosen) - 1 / 3) < 4 * np.sqrt(2 / 9 / 900)
