"""Draws classic.png: four classic models from the same start on the same network.

Run: python docs/images/classic.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import opinionsim as osim

#: Models with the settings that show what is typical of each, in units of a range from -1 to 1.
MODELS: dict[str, dict[str, Any]] = {
    "friedkin-johnsen": {"susceptibility": 0.85, "steps": 20},
    "deffuant": {"epsilon": 0.4, "steps": 40},
    "weighted-linear": {"mu": 0.2, "h": 3.0, "steps": 40},
    "lorenz": {"rho": 0.9, "k": 10, "latitude": 0.15, "steps": 120},
}
AGENTS, SEED = 1000, 3
NETWORK = {"kind": "watts-strogatz", "k": 10, "p": 0.1}
#: Parts of the range that agents are counted in, and the colour of the lines of single agents.
PARTS, LINE = 40, "#D55E00"


def main() -> None:
    """Draw the picture beside this file."""
    start = np.random.default_rng(SEED).uniform(-1, 1, AGENTS)
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    for ax, (name, settings) in zip(figure.subplots(1, len(MODELS), sharey=True), MODELS.items(), strict=True):
        found = osim.classic.simulate(name, NETWORK, initial=start, seed=SEED, range=(-1, 1), **settings)
        opinions, times = found.opinions[0], found.times
        shares = np.array([np.histogram(each, PARTS, (-1, 1))[0] / AGENTS for each in opinions])
        # The darkest shade is a tenth of all agents, and more.
        shades = {"cmap": osim.plots.SHARES, "vmin": 0, "vmax": 0.1, "rasterized": True}
        ax.pcolormesh(times, np.linspace(-1, 1, PARTS + 1), shares[:-1].T, **shades)
        for agent in np.argsort(start)[[AGENTS // 8, AGENTS // 2, -AGENTS // 8]]:
            ax.plot(times, opinions[:, agent], color=LINE, linewidth=1.0)
        ax.set_title(f"{osim.classic.find_model(name).family}\n{name}", loc="left", fontsize=8)
        ax.set_xlabel("step", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("opinion", fontsize=8)
    marks = [Patch(color=osim.plots.SHARES(0.5), label="agents (darkest: 10% or more at one opinion)")]
    marks += [Line2D([], [], color=LINE, linewidth=1.0, label="three of the agents")]
    figure.legend(handles=marks, loc="outside lower left", ncols=2, frameon=False, fontsize=7.5)
    said = f"Equation-based models: {AGENTS:,} agents, the same start, the same small-world network"
    figure.suptitle(said, fontsize=8.5, x=0.01, ha="left")
    osim.plots.save(figure, Path(__file__).with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
