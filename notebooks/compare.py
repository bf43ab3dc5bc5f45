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
# Agents that talk change their opinions. Do they change by what they read, or would they have changed anyway? A small
# version of `opinionsim compare` in four stops: what is on record, how it responds, what explains it, and what opinions
# are made of.
#
# The agents are scripted: a stand-in that needs no key, of which it is known that it listens. So findings here are
# findings about a script. Figures go to `results/compare/`.

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
# ## 1. What is on record
#
# Posts are measured as well as reports, so that it is known what was read.

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
# ## 2. How it responds, before any model
#
# How far do opinions move, by how far away the message was? Beware: noise of ratings alone makes such a curve rise, for
# who was rated too low moves up, and others seem far above. So a curve is no finding.

# %%
found = osim.compare(results, models=["degroot"], noise=(0.02, 0.01, 0.05), seed=1, threads=2)
print(found.events.head(3).T)
print(response_curve(found.events)[["cell", "discrepancy", "change", "low", "high", "n_updates"]].round(2))

# %% [markdown]
# ## 3. What explains it
#
# Candidates are scored on runs that they were not fitted to. `degroot` says that agents move a share of the way to what
# they read. Beside it always stand candidates in which nobody influences anybody: opinions stay (`persistence`), all
# move alike (`shift`), all are drawn to one point (`attractor`), some are drawn back to where they began (`anchored`),
# or agents read others' messages than they did. The share of ratings that are wrong is given here, with the ends of its
# interval, at which the finding is repeated; else it is fitted as well.

# %%
print(found.scores[["cell", "candidate", "score", "standard_error", "tie", "reached"]].round(3))
for row in found.findings.itertuples():
    print(f"{row.cell}: {row.finding}. {row.statement}")

# %% [markdown]
# The same analysis of twenty studies drawn from the fit: how often does it find what they were drawn from?

# %%
print(found.trust[["cell", "candidate", "parameter", "truth", "mean", "sd", "recovered"]].round(3))
show(found.plot(), "comparison")

# %% [markdown]
# ## 4. What opinions are made of
#
# Cells that differ in one thing share pairs and starts, and their difference by block is the effect of that thing.

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
# Read on: [how findings are reached](../docs/compare.md). `opinionsim run compare_quickstart` has equations among the
# agents, and `opinionsim compare results/compare-quickstart.sqlite` finds them.
