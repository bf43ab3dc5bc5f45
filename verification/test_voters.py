"""Time to consensus of voters, and the tricritical point of q-voters with independence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

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


def _times(network: Any, n: int, runs: int) -> np.ndarray:
    """Steps to consensus from half of the agents on either side."""
    steps = 400 * n
    start = {"kind": "share", "high": 0.5}
    found = simulate(
        "voter", network, start, steps, 1, n=n, replicates=runs, until="consensus", record_every=steps, dtype="float32"
    )
    assert (found.ended > 0).all()
    return found.ended


def _exact(n: int) -> float:
    """Mean steps to consensus on the complete graph: a birth-death chain of as likely steps up and down."""
    high = np.arange(1, n)
    moves = high * (n - high) / (n * (n - 1))
    inner = np.diag(2 * moves) - np.diag(moves[:-1], 1) - np.diag(moves[1:], -1)
    return float(np.linalg.solve(inner, np.ones(n - 1))[n // 2 - 1] / n)


def test_consensus_takes_n_steps_on_the_complete_graph_and_n_log_n_on_the_square_lattice(figures) -> None:
    sizes, runs = np.array([64, 144, 256, 576]), 1500
    # A walker comes to a point of a torus after N ln N / pi + 0.195 N steps on average (Montroll 1969), and two meet
    # after half of it; on the complete graph they meet after N / 2: a lattice is as if there were that many agents (Cox
    # 1989).
    effective = {"complete": sizes, "lattice": sizes * (np.log(sizes) / np.pi + 0.195)}
    figure, axes = plt.subplots()
    slopes = {}
    for network, alike in effective.items():
        times = np.array([_times(network, int(n), runs) for n in sizes])
        mean, error = times.mean(axis=1), times.std(axis=1, ddof=1) / np.sqrt(runs)
        theory = np.log(2) * alike
        if network == "complete":
            theory = np.array([_exact(int(n)) for n in sizes])
            assert theory[-1] == pytest.approx(np.log(2) * sizes[-1], rel=0.02)
        # An end is noticed at the end of a step, or a little later. That the lattice is like a complete graph is a law
        # of large N, from which it is 4 % away here.
        off = 0.06 if network == "lattice" else 0.0
        assert (np.abs(mean - theory) < 4 * error + 1 + off * theory).all(), network
        slopes[network] = np.polyfit(np.log(sizes), mean / sizes, 1, w=sizes / error)
        line = axes.errorbar(sizes, mean / sizes, error / sizes, fmt="o", capsize=2, label=network)[0]
        axes.semilogx(sizes, theory / sizes, "--", color=line.get_color())
    axes.set(xlabel="agents N", ylabel="steps to consensus / N", title="Voter model; dashed: theory")
    axes.legend()
    figure.savefig(figures / "voter_consensus.png", dpi=120)
    assert slopes["complete"][0] == pytest.approx(0, abs=0.03)
    assert slopes["lattice"][0] == pytest.approx(np.log(2) / np.pi, abs=0.05)


def _independence(c: Any, q: int) -> Any:
    """The independence at which a share c at the high end is at rest, on the complete graph."""
    against = ((1 - c) * c**q - c * (1 - c) ** q) / (c - 0.5)
    return against / (1 + against)


def test_q_voters_turn_at_once_above_five(figures) -> None:
    # Nyczka, Sznajd-Weron & Cislo 2012: continuous up to q = 5, with a range of two stable states above.
    n, steps = 20_000, 400
    shares = np.linspace(0.5001, 0.9999, 5000)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for place, q in enumerate((4, 8)):
        turning = (q - 1) / (q - 1 + 2 ** (q - 1))
        law = _independence(shares, q)
        last = law.max()
        axes[place].plot(law, 2 * shares - 1, "C3", label="mean field")
        grid = np.linspace(0.6 * turning, last + 0.25 * turning, 9)
        order = {}
        for name, high in (("from agreement", 1.0), ("from halves", 0.5)):
            start = {"kind": "share", "high": high}
            finals = [
                simulate("q-voter", n, start, steps, 7, record_every=steps // 4, q=q, independence=float(p)).opinions[0]
                for p in grid
            ]
            order[name] = np.array([abs(2 * each[-2:].mean() - 1) for each in finals])
            axes[place].plot(grid, order[name], "o", label=name, alpha=0.7)
        axes[place].axvline(turning, color="0.6", ls="--")
        axes[place].set(xlabel="independence p", title=f"q = {q}")
        # The outer branch of rest, which a population in agreement falls to.
        peak = int(np.argmax(law))
        stable = np.interp(-grid, -law[peak:], 2 * shares[peak:] - 1)
        clear = np.abs(grid / last - 1) > 0.08
        expected = np.where(grid < last, stable, 0.0)
        assert np.abs(order["from agreement"] - expected)[clear].max() < 0.05
        between = (grid > 1.08 * turning) & (grid < 0.92 * last)
        if q <= 5:
            assert last == pytest.approx(turning, rel=1e-3)
            assert np.abs(order["from halves"] - order["from agreement"])[clear].max() < 0.08
        else:
            assert between.sum() >= 2
            assert (order["from agreement"][between] > 0.7).all()
            assert (order["from halves"][between] < 0.08).all()
    axes[0].set_ylabel("majority |2c - 1|")
    axes[0].legend()
    figure.savefig(figures / "q_voter_tricritical.png", dpi=120)
    # Where both ends of the range of two states meet: between 5 and 6.
    ranges = [_independence(shares, q).max() / ((q - 1) / (q - 1 + 2 ** (q - 1))) for q in range(2, 9)]
    assert np.round(ranges[:4], 5).tolist() == [1.0] * 4
    assert (np.array(ranges[4:]) > 1.001).all()
