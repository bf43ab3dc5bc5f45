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
# Does confirmation bias keep opinions apart? This notebook answers with one specification and six runs, and then asks
# what every study has to answer: what agents said, what the result is, how certain it is, and how to reproduce it.
#
# The agents are **scripted**: a stand-in of the package that needs no key and follows a rule that you can read. The
# answer is therefore about that rule. To use a real model, change its name; everything else stays the same.

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
# A specification is a file, or a mapping with the same fields. `sweep` lists the conditions to compare. Conditions
# share their initial opinions and who meets whom, so a difference between them comes from the treatment.

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
# ## 2. Run it, and read before you count
#
# If you run it again, it completes what is missing and repeats nothing. The transcript shows what one agent read and
# wrote:

# %%
results = osim.run(experiment, store="results/first_study.sqlite")
print(osim.transcript(results, run=0, agent=3)[:1500])

# %% [markdown]
# ## 3. The results
#
# The figures show the opinions of the agents in one run, and diversity, the standard deviation of opinions in a run,
# over all runs of a condition. The band is a 95 % interval of the mean.

# %%
show(osim.plots.trajectories(results, run=0), "1_one_run")
show(osim.plots.ribbons(results, "diversity", band="mean", level=0.95), "2_diversity")

# %% [markdown]
# ## 4. How certain is the result?
#
# Agents of one run have read one another and are not independent. The unit is the block: the runs of both conditions
# with the same initial opinions. Six blocks are therefore six observations, whatever the number of agents and posts.

# %%
print(table(results.runs, results.metrics).to_text())

# %% [markdown]
# ## 5. Frames
#
# Tidy frames, joined by ids, contain all of the data, for any analysis that is not built in.

# %%
opinions = results.opinions.merge(results.runs[["run_id", "confirmation_bias"]], on="run_id")
print(opinions.groupby(["confirmation_bias", "value"]).size().unstack(fill_value=0))

# %% [markdown]
# Read on: [the first hour](../docs/tutorial.md) does the same on the command line, [statistics](../docs/statistics.md)
# explains the intervals, and [frames](../docs/frames.md) describes every column.
