"""What agreement costs: Krippendorff's alpha of 50,000 labels, alone and with an interval from 999 resamples.

Two coders label 25,000 texts on five points, a tenth of the labels missing; the best of five times counts.
Run: python benchmarks/audit.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from opinionsim.audit import coefficients, krippendorff_alpha

BAR_S = 1.0
POINTS = (-2, -1, 0, 1, 2)


def _seconds(work: Callable[[], object]) -> float:
    """The shortest of five times."""
    found = []
    for _ in range(5):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> int:
    """Print the times; 1 if alpha is above its bar."""
    rng = np.random.default_rng(20261125)
    true = rng.choice(POINTS, size=25_000).astype(float)
    labels = np.where(rng.random((2, 25_000)) < 0.3, rng.choice(POINTS, size=(2, 25_000)), true)
    labels[rng.random(labels.shape) < 0.1] = np.nan
    alpha = _seconds(lambda: krippendorff_alpha(labels, POINTS, "ordinal"))
    every = _seconds(lambda: coefficients(labels, POINTS))
    print(f"alpha of 50,000 labels: {alpha:.3f} s (bar {BAR_S:g} s)")
    print(f"two kappas and two alphas with intervals: {every:.3f} s")
    return int(alpha > BAR_S)


if __name__ == "__main__":
    sys.exit(main())
