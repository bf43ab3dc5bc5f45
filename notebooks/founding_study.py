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
# # The tables of the founding study, reduced
#
# Chuang et al. let ten role-played persons exchange posts about 15 claims in two framings, with three strengths of
# confirmation bias and two memories: 180 runs, whose mean opinion and diversity are the study's tables 1 and 2. Here
# the same design in small: 4 topics, 40 steps instead of 100, 48 runs.
#
# The agents are **scripted**, so these are the layouts of the tables and none of their findings. All 180 runs:
# `opinionsim run chuang2024/tables`, and with a real model two more options, which the file names.

# %%
import sys
from pathlib import Path

import opinionsim as osim
from opinionsim.analysis import tables

FIGURES = Path("results/founding_study")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. The design, in small
#
# The packaged file with two fields changed. Topics are drawn from three categories, for table 2 reports by category.

# %%
topics = ["flat-earth", "global-warming", "moon-landing", "sky-colour"]
experiment = osim.load_experiment(
    "chuang2024/tables", {"name": "reduced", "interaction.steps": 40, "sweep.topic.name": topics}
)
print(len(experiment.runs), "runs of", len(experiment.cells), "cells")
results = osim.run(experiment, store="results/founding_study.sqlite")

# %% [markdown]
# ## 2. The tables, as published
#
# Mean opinion is *bias*: 0 would be neutral. Errors in these layouts are those of the paper, the standard deviation
# over topics by the square root of their number. Whether it may be read as an interval is another matter: see
# [statistics](../docs/statistics.md).

# %%
for each in tables(results.runs, results.metrics, as_published=True)[:2]:
    print(each.to_text())
    print()

# %% [markdown]
# ## 3. One condition, looked at
#
# The distribution of opinions over time, by framing and strength of confirmation bias.

# %%
show(osim.plots.density(results, where={"memory": "cumulative", "topic": "flat-earth"}), "1_density")

# %% [markdown]
# Read on: [what is reproduced, and where it differs](../docs/chuang2024.md), [controls](../docs/controls.md).
