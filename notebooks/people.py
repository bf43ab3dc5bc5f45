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
# # A comparison with people
#
# People rate a statement, read a post, and rate the statement again. Agents take their places, with the same first
# opinion and the same post. Do they behave like the people? One table compares people, their twins and simple
# equations.
#
# **These people are made up.** Their ratings are drawn below from attitudes with stated parameters, so the correct
# result is known. The scripted stand-in plays the twins. Nothing here is a finding about anyone. If you replace the
# made-up table with your own, make sure that you have [consent](../docs/people.md#consent).

# %%
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import opinionsim as osim
from opinionsim.comparison import PanelMapping, people_figure, people_table, twins_experiment, updates

FIGURES = Path("results/people")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. People made from stated numbers
#
# An attitude is drawn for each person. A rating is the attitude with an error, rounded to the scale from -2 to 2. The
# second rating is made after the attitude has moved a third of the way to the post. The `again` rating comes a quarter
# of an hour after the first, without any reading in between, so the two differ only by error.

# %%
N_PEOPLE, MOVES, ERROR = 80, 1 / 3, 0.5
rng = np.random.default_rng(2026)
posts = {
    -2: "A car-free square would ruin every shop.",
    0: "I see both sides of a car-free square.",
    2: "A car-free square would be good for all.",
}


def rated(attitude):
    """Ratings of attitudes, with an error."""
    return np.clip(np.rint(attitude + rng.normal(0, ERROR, len(attitude))), -2, 2).astype(int)


attitude = rng.normal(0, 1.2, N_PEOPLE)
side = rng.choice(list(posts), N_PEOPLE)
made_up = pd.DataFrame(
    {
        "person": [f"P{number:02d}" for number in range(N_PEOPLE)],
        "before": rated(attitude),
        "again": rated(attitude),
        "after": rated(attitude + MOVES * (side - attitude)),
        "post": [posts[each] for each in side],
        "age": rng.integers(18, 80, N_PEOPLE),
    }
)
print(made_up.head())

# %% [markdown]
# ## 2. Into a store
#
# A mapping gives the meaning of each column. After the import, the record is an experiment like any other.

# %%
mapping = PanelMapping(
    name="made-up-panel",
    person="person",
    rating=("before", "after"),
    retest="again",
    read=("post",),
    attributes=("age",),
    claims={"made-up-panel": {"for": "the square should be free of cars"}},
    source="MADE UP: drawn from stated numbers, without real respondents",
)
people = osim.import_panel(made_up, mapping, store="results/people.sqlite")
print(updates(people)[["unit", "first", "last"]].head())

# %% [markdown]
# ## 3. Twins
#
# Each person's twin begins with the person's first rating and age, and reads the same post.

# %%
twins = osim.run(twins_experiment(people, {"model": {"name": "scripted"}}), people.url)

# %% [markdown]
# ## 4. All in one table
#
# This is the expected result: *asked again* shows how much people change by error alone, and the difference from the
# first column is the effect of the post. *Persistence*, which predicts no change, does well if people change little.
# Twins move by the rule of the stand-in, not by a third, and make no rating errors, so their share that changed is too
# low.

# %%
table = people_table(twins)
print(table.to_text())
figure = people_figure(table)
figure.text(0.995, 0.005, "MADE-UP PEOPLE, not evidence", ha="right", va="bottom", weight="bold")
show(figure, "1_people")

# %% [markdown]
# Read on: [people](../docs/people.md) for tables of other shapes, [compare](../docs/compare.md) for agents that read
# one another, [ethics](../docs/ethics.md).
