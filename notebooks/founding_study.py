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
# confirmation bias and two memories. Their tables 1 and 2 report the mean opinion and diversity of these 180 runs. This
# notebook uses a smaller version of the design: 4 topics, 40 steps instead of 100, 48 runs.
#
# The agents are **scripted**, so the tables have the published layout but none of the published findings. To run all
# 180 runs, use `opinionsim run chuang2024/tables`; a real model needs two more options, which the file names.

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
# ## 1. The smaller design
#
# The experiment comes with the package; two fields are changed. Topics are drawn from three categories because table 2
# reports by category.

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
# Mean opinion is *bias*: 0 would be neutral. Errors in these layouts are computed as in the paper, as the standard
# deviation over topics divided by the square root of their number. [Statistics](../docs/statistics.md) explains whether
# you can read them as intervals.

# %%
for each in tables(results.runs, results.metrics, as_published=True)[:2]:
    print(each.to_text())
    print()

# %% [markdown]
# ## 3. A closer look at one condition
#
# The figure shows the distribution of opinions over time, by framing and strength of confirmation bias.

# %%
show(osim.plots.density(results, where={"memory": "cumulative", "topic": "flat-earth"}), "1_density")

# %% [markdown]
# Read on: [what is reproduced, and where it differs](../docs/chuang2024.md), [controls](../docs/controls.md).
