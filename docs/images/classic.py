"""Draws classic.png: four classic models from the same start on the same network.

Run: python docs/images/classic.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import opinionsim as osim

#: Models with the settings that show what is typical of each, in units of a range from -1 to 1.
MODELS: dict[str, dict[str, Any]] = {
    "friedkin-johnsen": {"susceptibility": 0.85, "steps": 20},
    "deffuant": {"epsilon": 0.4, "steps": 40},
    "weighted-linear": {"mu": 0.2, "h": 3.0, "steps": 40},
    "lorenz": {"rho": 0.9, "k": 10, "latitude": 0.15, "steps": 120},
}
AGENTS, SEED = 120, 3
NETWORK = {"kind": "watts-strogatz", "k": 10, "p": 0.1}


def main() -> None:
    """Draw the picture beside this file."""
    start = np.random.default_rng(SEED).uniform(-1, 1, AGENTS)
    figure = Figure(figsize=(10.5, 2.9), layout="constrained")
    for ax, (name, settings) in zip(figure.subplots(1, len(MODELS), sharey=True), MODELS.items(), strict=True):
        found = osim.classic.simulate(name, NETWORK, initial=start, seed=SEED, range=(-1, 1), **settings)
        osim.plots.trajectories(found, ax=ax)
        model = osim.classic.find_model(name)
        ax.set_title(f"{model.family}\n{name}", loc="left", fontsize=9)
        ax.set_ylabel("opinion" if ax.get_subplotspec().is_first_col() else "", fontsize=9)
    figure.suptitle(
        f"Evidence: equation. {AGENTS} agents, the same start, the same small-world network",
        fontsize=9.5,
        x=0.01,
        ha="left",
    )
    osim.plots.save(figure, Path(__file__).with_suffix(".png"), dpi=96)


if __name__ == "__main__":
    main()
