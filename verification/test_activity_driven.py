"""Activity-driven echo chambers: decay without influence, and the instability of neutral consensus."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from opinionsim.classic import simulate

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture
def figures(tmp_path):
    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    plt.close("all")


def test_opinions_decay_without_influence() -> None:
    for method, error in (("euler", 2e-2), ("heun", 5e-5), ("rk4", 1e-9)):
        found = simulate("activity-driven", 50, steps=300, seed=1, K=0, method=method)
        expected = found.opinions[0, 0] * np.exp(-0.01 * found.times)[:, None]
        np.testing.assert_allclose(found.opinions[0], expected, rtol=0, atol=error)


def test_opinions_with_inertia_swing_as_damped_oscillators(figures) -> None:
    figure, axes = plt.subplots()
    for friction, mass in ((0.2, 0.5), (1.0, 2.0), (4.0, 0.5)):
        options = {"K": 0, "inertia": True, "friction": friction, "reluctance": mass, "dt": 0.02, "method": "rk4"}
        found = simulate("activity-driven", 50, steps=600, seed=1, **options)
        time = 0.02 * found.times
        rate = np.emath.sqrt(friction**2 / 4 - 1 / mass)
        wave = np.exp(-friction / 2 * time) * (np.cosh(rate * time) + friction / 2 / rate * np.sinh(rate * time)).real
        np.testing.assert_allclose(found.opinions[0], wave[:, None] * found.opinions[0, 0], rtol=0, atol=1e-7)
        line = axes.plot(time, found.opinions[0, :, 0], label=f"f = {friction}, reluctance {mass}")[0]
        axes.plot(time, wave * found.opinions[0, 0, 0], "--", color=line.get_color())
    axes.set(xlabel="time", ylabel="opinion", title="Inertia without influence; dashed: damped oscillator")
    axes.legend()
    figure.savefig(figures / "activity_driven_inertia.png", dpi=120)


def _growth(n: int, a: float, m: int, r: float, K: float, alpha: float) -> float:
    """Rate at which a small mean opinion grows: linear, so that its expectation is exact in every step.

    An agent hears each of n - 1 others by its own contact, by the other's, or both: each pair counts once.
    """
    once = a * m / (n - 1)
    return K * alpha * (n - 1) * (1 - (1 - once) * (1 - once * r)) - 1


@pytest.mark.parametrize("r", [0.0, 0.5, 1.0])
def test_neutral_consensus_is_unstable_where_mean_field_says(r, figures) -> None:
    n, a, m, alpha, dt, steps, runs = 200, 0.1, 4, 1.0, 0.01, 200, 40
    figure, axes = plt.subplots()
    for K in (0.5, 1 / (m * a * (1 + r)), 5.0):
        start = np.full(n, 1e-6)
        options = {"K": K, "alpha": alpha, "m": m, "r": r, "beta": 0, "activity": a, "dt": dt}
        found = simulate("activity-driven", n, start, steps, 2, replicates=runs, **options).opinions.mean(axis=2)
        rate = _growth(n, a, m, r, K, alpha)
        theory = 1e-6 * (1 + dt * rate) ** np.arange(steps + 1)
        error = found.std(axis=0, ddof=1) / np.sqrt(runs)
        assert (np.abs(found.mean(axis=0) - theory)[1:] < 5 * error[1:] + 1e-12).all()
        line = axes.semilogy(dt * np.arange(steps + 1), found.mean(axis=0), label=f"K = {K:.2f}")[0]
        axes.semilogy(dt * np.arange(steps + 1), theory, "--", color=line.get_color())
    assert _growth(10**6, a, m, r, 1 / (m * a * (1 + r)), alpha) == pytest.approx(0, abs=1e-6)
    axes.set(xlabel="time", ylabel="mean opinion", title=f"Activity-driven model, r = {r}; dashed: mean field")
    axes.legend()
    figure.savefig(figures / f"activity_driven_r{r}.png", dpi=120)


@pytest.mark.parametrize("factor", [0.6, 2.0])
def test_inertia_slows_growth_down_and_leaves_its_threshold(factor) -> None:
    # Mean opinions follow x'' = rate x / reluctance - friction x', in expectation exactly.
    n, a, m, r, alpha, dt, steps, runs = 200, 0.1, 4, 0.5, 1.0, 0.02, 300, 40
    K, friction, mass = factor / (m * a * (1 + r)), 0.8, 1.5
    options = {"K": K, "alpha": alpha, "m": m, "r": r, "beta": 0, "activity": a, "dt": dt}
    options |= {"inertia": True, "friction": friction, "reluctance": mass}
    found = simulate("activity-driven", n, np.full(n, 1e-6), steps, 2, replicates=runs, **options).opinions.mean(axis=2)
    once = np.array([[1, dt], [dt * _growth(n, a, m, r, K, alpha) / mass, 1 - dt * friction]])
    theory = [(np.linalg.matrix_power(once, k) @ [1e-6, 0])[0] for k in range(steps + 1)]
    error = found.std(axis=0, ddof=1) / np.sqrt(runs)
    assert (np.abs(found.mean(axis=0) - theory) < 5 * error + 1e-12).all()
    assert (found.mean(axis=0)[-1] > found.mean(axis=0)[steps // 2]) == (factor > 1)


def test_bots_draw_those_who_are_silent_to_where_pull_and_decay_balance(figures) -> None:
    # Two bots speak to m of the n - 1 others in every step, and nobody else does: K 2 m / (n - 1) tanh(alpha x_bot).
    n, m, K, alpha, dt, steps, place = 300, 100, 3.0, 0.5, 0.02, 300, 2.0
    start = np.random.default_rng(1).uniform(-1, 1, n)
    start[:2] = place
    bot = (np.arange(n) < 2).astype(int)
    options = {"K": K, "alpha": alpha, "m": np.where(bot, m, 1), "r": 0, "beta": 0, "dt": dt, "contact": "speaks"}
    found = simulate("activity-driven", n, start, steps, 4, activity=bot.astype(float), zealot=bot, **options)
    rest = K * 2 * m / (n - 1) * np.tanh(alpha * place)
    kept = (1 - dt) ** np.arange(steps + 1)
    theory = rest + kept * (start[2:].mean() - rest)
    mean = found.opinions[0, :, 2:].mean(axis=1)
    # A step reaches an agent or not: the variance of pulls, summed over steps that are forgotten at the rate 2 dt.
    spread = K * dt * np.tanh(alpha * place) * np.sqrt(2 * m / (n - 1) / (2 * dt) / (n - 2))
    assert np.abs(mean - theory).max() < 5 * spread
    assert abs(theory[-1] - rest) < 0.01
    assert rest > 1
    figure, axes = plt.subplots()
    axes.plot(dt * found.times, found.opinions[0, :, 2:60], color="0.7", lw=0.3)
    axes.plot(dt * found.times, mean, label="mean of all but bots")
    axes.plot(dt * found.times, theory, "C3--", label="pull and decay")
    axes.set(xlabel="time", ylabel="opinion", title="Two bots among the silent")
    axes.legend()
    figure.savefig(figures / "activity_driven_bots.png", dpi=120)


def test_activities_that_differ_bring_the_instability_forward() -> None:
    # Half the agents are ten times as active: <a> = 0.055, <a^2> = 0.00505.
    n, m, r, alpha, runs = 200, 4, 0.5, 1.0, 20
    activity = np.where(np.arange(n) < n // 2, 0.01, 0.1)
    mean, square = activity.mean(), (activity**2).mean()
    radius = m * ((1 + r) * mean + np.sqrt((1 - r) ** 2 * mean**2 + 4 * r * square)) / 2
    for K, grows in ((0.7 / (alpha * radius), False), (1.4 / (alpha * radius), True)):
        options = {"K": K, "alpha": alpha, "m": m, "r": r, "beta": 0, "activity": activity, "dt": 0.02}
        start = np.full(n, 1e-6)
        runs_of_it = simulate("activity-driven", n, start, 800, 3, replicates=runs, record_every=400, **options)
        found = runs_of_it.opinions.mean(axis=(0, 2))
        rate = np.log(found[2] / found[1]) / 8
        assert rate == pytest.approx(K * alpha * radius - 1, abs=0.06)
        assert (found[2] > found[1]) == grows


def test_homophily_parts_what_radicalises(figures) -> None:
    # The three regimes of the article: neutral consensus, radicalisation to one side, polarisation.
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.5))
    ends = []
    for place, (alpha, beta) in enumerate(((0.05, 2.0), (3.0, 0.0), (3.0, 3.0))):
        found = simulate("activity-driven", 300, steps=1000, seed=4, alpha=alpha, beta=beta, record_every=20)
        ends.append(found.final[0])
        axes[place].plot(found.times / 100, found.opinions[0], color="0.4", lw=0.3)
        axes[place].set(xlabel="time", ylabel="opinion", title=rf"$\alpha$ = {alpha:g}, $\beta$ = {beta:g}")
    figure.tight_layout()
    figure.savefig(figures / "activity_driven_regimes.png", dpi=120)
    neutral, radical, polar = ends
    assert np.abs(neutral).max() < 0.01
    assert abs(np.sign(radical).mean()) > 0.98
    assert np.median(np.abs(radical)) > 0.5
    assert 0.2 < (polar > 0).mean() < 0.8
    assert np.median(np.abs(polar)) > 0.5
