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
# # A first study
#
# Does confirmation bias keep opinions apart? One specification, six runs, and everything that is then asked of a study:
# what was said, what came out, how sure that is, and whether it can be built again.
#
# The agents are **scripted**: a stand-in of the package that needs no key, and follows a rule that anybody can read. So
# the answer is about that rule. Name a real model in its place, and nothing else changes.

# %%
import sys
from pathlib import Path

import opinionsim as osim
from opinionsim.analysis import table

FIGURES = Path("results/first_study")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. Declare it
#
# A specification is a file, or a mapping with the same fields. What stands under `sweep` is compared; conditions share
# their initial opinions and who meets whom, so that a difference between them is one of treatment.

# %%
experiment = osim.load_experiment(
    {
        "name": "first-study",
        "seed": 7,
        "replicates": 6,
        "population": {"personas": "chuang2024", "initial_opinions": "uniform", "assignment": "random"},
        "topic": {"name": "flat-earth", "framing": "falsehood"},
        "interaction": {"kind": "dyadic", "steps": 50},
        "measurement": {"classifier": "lexicon", "texts": ["report"]},
        "sweep": {"cognition.confirmation_bias": ["none", "strong"]},
    }
)
print(osim.plan(experiment))

# %% [markdown]
# ## 2. Run it, and read before counting
#
# Running again finishes what is missing and repeats nothing. What one agent wrote and had read:

# %%
results = osim.run(experiment, store="results/first_study.sqlite")
print(osim.transcript(results, run=0, agent=3)[:1500])

# %% [markdown]
# ## 3. What came out
#
# Lines of the agents of one run, and diversity, the standard deviation of opinions in a run, over all runs of a
# condition. The band is a 95 % interval of the mean.

# %%
show(osim.plots.trajectories(results, run=0), "1_one_run")
show(osim.plots.ribbons(results, "diversity", band="mean", level=0.95), "2_diversity")

# %% [markdown]
# ## 4. How sure is that?
#
# Agents of one run have read one another and are not independent. The unit is the block: the runs of both conditions
# with the same start. So six blocks are six observations, whatever the number of agents and posts.

# %%
print(table(results.runs, results.metrics).to_text())

# %% [markdown]
# ## 5. Frames
#
# All of it is in tidy frames, joined by ids, for whatever is not built in.

# %%
opinions = results.opinions.merge(results.runs[["run_id", "confirmation_bias"]], on="run_id")
print(opinions.groupby(["confirmation_bias", "value"]).size().unstack(fill_value=0))

# %% [markdown]
# Read on: [the first hour](../docs/tutorial.md) has the same on the command line,
# [statistics](../docs/statistics.md) what intervals rest on, [frames](../docs/frames.md) every column.
