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
# # Does an equation describe these agents?
#
# Agents that talk change their opinions. Do they change because of what they read, or would they have changed anyway?
# This notebook is a small version of `opinionsim compare` in four steps: the recorded data, the response curve, the
# models that explain it, and the components of opinions.
#
# The agents are scripted: a stand-in that needs no key and is known to listen. All findings here are findings about a
# script. Figures are written to `results/compare/`.

# %%
import sys
from pathlib import Path

import opinionsim as osim
from opinionsim.comparison import decompose, response_curve

FIGURES = Path("results/compare")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. The recorded data
#
# The experiment measures posts as well as reports, because the comparison needs to know what agents read.

# %%
dyads = {"kind": "dyadic", "steps": 20}
shared = {
    "seed": 2026,
    "replicates": 8,
    "population": {"personas": "chuang2024", "size": 10, "initial_opinions": "uniform", "assignment": "random"},
    "topic": {"name": "flat-earth", "framing": "falsehood"},
    "interaction": dyads,
    "measurement": {"texts": ["post", "report"]},
}
experiment = osim.load_experiment({**shared, "name": "compare", "model": {"name": "scripted"}})
results = osim.run(experiment, store="results/compare.sqlite")

# %% [markdown]
# ## 2. The response, before any model
#
# How far do opinions move, depending on how far away the message was? Be careful: measurement noise alone makes such a
# curve rise, because an agent that was rated too low moves up, and other agents seem far above it. The curve is
# therefore not a finding.

# %%
found = osim.compare(results, models=["degroot"], noise=(0.02, 0.01, 0.05), seed=1, threads=2)
print(found.events.head(3).T)
print(response_curve(found.events)[["cell", "discrepancy", "change", "low", "high", "n_updates"]].round(2))

# %% [markdown]
# ## 3. Models that explain it
#
# Candidates are scored on runs that they were not fitted to. `degroot` says that agents move a share of the way towards
# what they read. The comparison always includes candidates without influence: opinions stay the same (`persistence`),
# all move in the same way (`shift`), all are drawn to one point (`attractor`), some are drawn back to where they began
# (`anchored`), or agents read messages other than those they actually read. The share of wrong ratings is given in this
# example, together with the ends of its interval, at which the finding is repeated; without it, `compare` estimates
# this share as well.

# %%
print(found.scores[["cell", "candidate", "score", "standard_error", "tie", "reached"]].round(3))
for row in found.findings.itertuples():
    print(f"{row.cell}: {row.finding}. {row.statement}")

# %% [markdown]
# The same analysis of twenty studies drawn from the fit shows how often it finds the model that generated them.

# %%
print(found.trust[["cell", "candidate", "parameter", "truth", "mean", "sd", "recovered"]].round(3))
show(found.plot(), "comparison")

# %% [markdown]
# ## 4. The components of opinions
#
# Cells that differ in one thing share pairs and initial opinions, so their difference within blocks is the effect of
# that thing.

# %%
kinds = [
    dyads,
    {"kind": "placebo", "steps": 20},
    {"kind": "remembered", "steps": 20},
    {"kind": "independent", "reports": 3},
]
sweep = {"interaction": kinds, "topic.framing": ["truth", "falsehood"]}
parts = osim.load_experiment(
    {**shared, "name": "parts", "replicates": 4, "model": {"name": "scripted"}, "sweep": sweep}
)
print(decompose(osim.run(parts, store="results/parts.sqlite")).to_text())

# %% [markdown]
# Read on: [how findings are reached](../docs/compare.md). `opinionsim run compare_quickstart` includes equations among
# the agents, and `opinionsim compare results/compare-quickstart.sqlite` finds them.
