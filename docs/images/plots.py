"""Draws the figures of plots.md: of the demonstration and of a classic model.

Run: python docs/images/plots.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import opinionsim as osim
from opinionsim import plots
from opinionsim.networks import build_network

SEED = 1


def deffuant(n: int, replicates: int, epsilon: float, *, steps: int = 40, mu: float = 0.5) -> osim.classic.Trajectories:
    """Runs of the model of Deffuant and Weisbuch on the complete graph."""
    return osim.classic.simulate(
        "deffuant", n, steps=steps, seed=SEED, replicates=replicates, epsilon=epsilon, mu=mu
    )  # fmt: skip


def swept() -> pd.DataFrame:
    """Spread of final opinions over bound and step size, one row a run."""
    over = {"epsilon": [0.05, 0.1, 0.15, 0.2, 0.22, 0.24, 0.26, 0.28, 0.3, 0.35, 0.4, 0.5], "mu": [0.05, 0.1, 0.2, 0.5]}
    return osim.classic.sweep("deffuant", over, n=200, steps=60, seed=SEED, replicates=10, metrics=["diversity"])


def sized() -> pd.DataFrame:
    """Largest cluster over bound and number of agents, one row a run."""
    over = {"epsilon": "0.1:0.4:0.02", "n": [50, 200, 1000]}
    return osim.classic.sweep(
        "deffuant", over, steps=5000, until="frozen", seed=SEED, replicates=20, metrics=["largest_cluster"]
    )


#: The demonstration with participants that are probed before and after, and with the control beside it.
PROBED = {
    "name": "probed",
    "replicates": 5,
    "measurement": {"classifier": "lexicon", "texts": ["probe"], "probe": {"before": 1, "after": 1}},
    "sweep": {"interaction": [{"kind": "dyadic", "steps": 50}, {"kind": "remembered", "steps": 50}]},
}


def main() -> None:
    """Draw all pictures beside this file."""
    with TemporaryDirectory() as folder:
        demo = osim.run(osim.load_experiment("demo"), f"{folder}/demo.sqlite")
        probed = osim.run(osim.load_experiment("demo", PROBED), f"{folder}/probed.sqlite")
        conditions = {f"epsilon {epsilon}": deffuant(300, 10, epsilon) for epsilon in (0.15, 0.3)}
        network = build_network({"kind": "watts-strogatz", "k": 4, "p": 0.1}, 60, seed=SEED)
        small_world = osim.classic.simulate("deffuant", network, steps=60, seed=SEED, epsilon=0.3)
        drawn: dict[str, Figure | Axes] = {
            "trajectories": plots.trajectories(conditions["epsilon 0.15"]),
            "ribbons": plots.ribbons(conditions, "diversity"),
            "density": plots.density(conditions),
            "network": plots.network_snapshots(small_world, steps=[0, 5, 20, 60]),
            "transitions": plots.transition_matrix(demo),
            "phase": plots.phase_diagram(swept(), "epsilon", "mu", "diversity", show="both", contours=[0.1]),
            "phase_lines": plots.phase_diagram(sized(), "epsilon", value="largest_cluster", lines="n"),
            "before_after": plots.before_after(probed, by="interaction"),
        }
        for name, figure in drawn.items():
            plots.save(figure, Path(__file__).with_name(f"plot_{name}.png"), dpi=90)


if __name__ == "__main__":
    main()
