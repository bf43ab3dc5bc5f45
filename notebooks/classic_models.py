# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Classic models of opinion dynamics
#
# In this tour you simulate a model and look at it, find a phase transition, see how networks matter, choose who is
# drawn first, compare equations with language-model agents, step a Mesa model, and ask a model for the distribution of
# a single step.
#
# Everything runs in well under a minute, without a key and without a network connection. Kernels are compiled on first
# use and cached on disk, so the second run is faster. Figures are written to `results/classic_models/`.

# %%
import sys
from pathlib import Path

import numpy as np
import yaml

import opinionsim as osim

FIGURES = Path("results/classic_models")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. Simulate and look
#
# In bounded confidence, two agents meet and move closer if their opinions are no farther apart than `epsilon`. Three
# hundred agents start anywhere between 0 and 1.

# %%
found = osim.classic.simulate("deffuant", n=300, steps=40, seed=1, epsilon=0.2)
print(found)
print("everything that was decided, defaults included:", found.parameters, found.scheme)
show(osim.plots.trajectories(found), "1_trajectories")

# %% [markdown]
# The result is an array with replicates, moments and agents, and a tidy frame.

# %%
print(found.opinions.shape)
print(found.frame().tail(3))
print("mean, which two-sided meetings conserve:", found.opinions[0, 0].mean(), found.final.mean())
print("clusters at the end, farther apart than 0.05:", int(osim.metrics.clusters(found.final[0], delta=0.05)))

# %% [markdown]
# ## 2. A phase diagram
#
# The number of remaining clusters depends on the confidence. `sweep` simulates every combination. Each replicate has
# the same initial opinions and the same random stream in all of them, so differences come only from the parameters.

# %%
table = osim.classic.sweep(
    "deffuant",
    {"epsilon": np.linspace(0.05, 0.55, 11).round(2), "mu": [0.05, 0.2, 0.5]},
    n=200,
    steps=150,
    seed=2,
    replicates=5,
    metrics=["effective_clusters"],
)
print(table.pivot_table("effective_clusters", "epsilon", "mu").round(1))
show(osim.classic.phase_diagram(table, "epsilon", "mu", "effective_clusters"), "2_phases")

# %% [markdown]
# ## 3. Networks matter
#
# The same model with the same initial opinions runs on four networks of the same size. On a ring, neighbours agree
# locally, and clusters that would have met on the complete graph never do.

# %%
start = np.random.default_rng(3).random(200)
networks = {
    "complete": "complete",
    "small world": {"kind": "watts-strogatz", "k": 6, "p": 0.1},
    "scale-free": {"kind": "barabasi-albert", "m": 3},
    "ring": {"kind": "ring", "k": 2},
}
runs = {
    name: osim.classic.simulate("deffuant", network, start, steps=150, seed=3, replicates=5, epsilon=0.35)
    for name, network in networks.items()
}
for name, run in runs.items():
    clusters = osim.metrics.compute_metrics(run.final, ["effective_clusters"])["effective_clusters"]
    print(f"{name:12} {clusters.mean():.1f} camps of equal size would be as diverse")
show(osim.plots.ribbons(runs, "diversity"), "3_networks")

# %% [markdown]
# ## 4. Who is drawn first?
#
# In this voter model on a star, the agent in the middle disagrees with ten others. Whether you draw the listener, the
# speaker or a pair first decides how often the middle wins: 1/2, 1/101 and 1/11 by the closed forms.

# %%
middle = np.eye(11)[0]
for pick in ("listener", "edge", "speaker"):
    stars = osim.classic.simulate(
        "voter", "star", middle, steps=300, seed=4, replicates=200, record_every=300, pick=pick
    )
    print(f"{pick:9} the middle wins in {stars.final[:, 0].mean():.1%} of {len(stars.final)} simulations")

# %% [markdown]
# ## 5. Equations and language-model agents
#
# In a specification, a classic model is a value of `model`. Cells that differ in nothing else share the network, the
# initial opinions, and who meets whom when. The chat model in this example is the **scripted stand-in** of the package,
# which needs no key. The result shows the design but says nothing about people or language models; for a real
# comparison, name another model.

# %%
specification = yaml.safe_load(
    """
    name: beside
    seed: 5
    replicates: 2
    population: {personas: chuang2024, size: 20, initial_opinions: uniform, assignment: random}
    topic: {name: flat-earth, framing: falsehood}
    interaction: {kind: dyadic, network: {kind: watts-strogatz, k: 6, p: 0.1}, exposures: 6}
    measurement: {texts: [report], probe: {before: 1}}
    sweep:
      model:
        - {name: scripted, label: scripted stand-in}
        - {classic: deffuant, parameters: {epsilon: 1.5, mu: 0.5}, label: Deffuant-Weisbuch}
        - {classic: voter, label: voter}
    """
)
results = osim.run(osim.load_experiment(specification), store="sqlite:///results/classic_models/beside.sqlite")
print(results.metrics[["cell", "kind", "bias", "diversity", "evidence"]])
show(osim.plots.ribbons(results, "diversity"), "5_beside")

# %% [markdown]
# ## 6. The same as a Mesa model
#
# One step is N elementary updates; agents, steps and a data collector work as in any Mesa model.

# %%
model = osim.classic.ClassicOpinionModel("hegselmann-krause", n=100, seed=6, epsilon=0.2)
for _ in range(6):
    model.step()
print(model.datacollector.get_model_vars_dataframe())
print("first three agents:", [round(agent.opinion, 3) for agent in model.agents][:3])

# %% [markdown]
# ## 7. The distribution of a single step
#
# `transition` gives the distribution of an agent's next opinion after a message. Comparisons with recorded
# conversations are based on it. This example shows the mean change of a neutral agent on a scale from -2 to 2, by the
# message it hears.

# %%
messages = np.linspace(-2, 2, 9)
neutral = np.zeros_like(messages)
for name, settings in {
    "deffuant": {"epsilon": 1.0, "mu": 0.3},
    "jager-amblard": {"u": 0.8, "t": 1.2, "mu": 0.3},
    "weighted-linear": {"mu": 0.3, "h": 3.0},
}.items():
    step = osim.classic.transition(name, neutral, messages, range=(-2, 2), **settings)
    change = (step.values * step.probabilities).sum(axis=1)
    print(f"{name:16}", "  ".join(f"{value:+.2f}" for value in change))

# %% [markdown]
# Read on: [the overview](../docs/classic/index.md) has a page for every model, and [this page](../docs/coming_from.md)
# lists the counterparts of concepts from Mesa, NetLogo, NDlib and Plurals.
