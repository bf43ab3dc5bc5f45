"""Biased assimilation on two islands: the thresholds of Dandekar, Goel & Lee 2013."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from opinionsim.classic import simulate

mpl.use("Agg")
from matplotlib import pyplot as plt

_SIZE = 12


def _islands(h: int) -> np.ndarray:
    """Two islands in which what an agent hears of its own weighs `h` times as much as of the other."""
    within, between = np.ones((_SIZE, _SIZE)) - np.eye(_SIZE), np.ones((_SIZE, _SIZE))
    within *= h / (_SIZE - 1)
    between *= 1 / _SIZE
    return np.block([[within, between], [between, within]])


def _gap(h: int, b: float, rounds: int = 300) -> tuple[float, float]:
    """Distance of the islands in the end, and of the lower from its extreme.

    Islands that mirror each other go on to do so, but that state is unstable: what rounding has taken from the mirror
    image is given back every few steps.
    """
    lower, islands = 0.4, _islands(h)
    for _ in range(rounds):
        start = np.repeat([lower, 1 - lower], _SIZE)
        end = simulate("biased-assimilation", islands, start, 10, record_every=10, b=b).final[0]
        low, high = end[:_SIZE], end[_SIZE:]
        np.testing.assert_allclose(low, low[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(high, 1 - low[0], rtol=0, atol=1e-12)
        lower = (low.mean() + 1 - high.mean()) / 2
    return float(1 - 2 * lower), float(lower)


@pytest.mark.parametrize("h", [2, 4])
def test_islands_agree_disagree_or_polarise(h, tmp_path) -> None:
    threshold = 2 / (h + 1)
    for b in (0.0, 0.5 * threshold, threshold - 0.03):
        assert _gap(h, b)[0] < 1e-6, b
    for b in (threshold + 0.03, (1 + threshold) / 2):
        gap, low = _gap(h, b)
        assert 0.05 < gap < 1 - 1e-6, b
        assert low > 1e-9
        # At rest: x / (1 - x) to the power of 1 - b is s / (1 - s), of the mean s that is heard, as x_high = 1 - x_low.
        heard = (h * low + 1 - low) / (h + 1)
        assert (low / (1 - low)) ** (1 - b) == pytest.approx(heard / (1 - heard), rel=1e-6)
    for b in (1.0, 1.3):
        assert _gap(h, b)[0] > 0.999, b

    folder = Path(os.environ.get("OPINIONSIM_FIGURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    grid = np.linspace(0, 1.3, 27)
    figure, axes = plt.subplots()
    axes.plot(grid, [_gap(h, float(b), 60)[0] for b in grid], "o-", ms=3)
    axes.axvline(threshold, color="C3", ls="--", label=r"$2 / (h + 1)$")
    axes.axvline(1, color="C2", ls="--", label="1")
    axes.set(xlabel="bias b", ylabel="distance of the islands", title=f"Biased assimilation on two islands, h = {h}")
    axes.legend()
    figure.savefig(folder / f"biased_assimilation_h{h}.png", dpi=120)
    plt.close(figure)
