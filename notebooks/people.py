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
# People rate a statement, read a post, rate it again. Agents take their places: the same first opinion, the same post.
# Are they like the people? One table has people, their twins and simple equations side by side.
#
# **These people are made up.** Their ratings are drawn below from attitudes that are stated, so that it is known what
# should be found; the twins are played by the scripted stand-in. Nothing here is a finding about anybody. Put a table
# of your own in the place of the made-up one, with [consent](../docs/people.md#consent).

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
# ## 1. People out of stated numbers
#
# An attitude is drawn for each person. A rating is the attitude with an error, rounded to the scale from -2 to 2. The
# second one is made after the attitude has moved a third of the way to the post. A quarter of an hour passes for the
# `again` rating, in which nothing is read: it differs from the first by error alone.

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
# A mapping says which column is what. From here on the record is an experiment like any other.

# %%
mapping = PanelMapping(
    name="made-up-panel",
    person="person",
    rating=("before", "after"),
    retest="again",
    read=("post",),
    attributes=("age",),
    claims={"made-up-panel": {"for": "the square should be free of cars"}},
    source="MADE UP: drawn from stated numbers, nobody was asked",
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
# ## 4. Side by side
#
# What should be found: *asked again* is what people change by error alone, and the difference to the first column is
# what the post did. *Persistence*, which predicts no change, does well wherever people change little. Twins move by the
# rule of the stand-in, not by a third, and make no errors of rating: their share that changed is too low.

# %%
table = people_table(twins)
print(table.to_text())
figure = people_figure(table)
figure.text(0.995, 0.005, "MADE-UP PEOPLE, evidence of nothing", ha="right", va="bottom", weight="bold")
show(figure, "1_people")

# %% [markdown]
# Read on: [people](../docs/people.md) for tables of other shapes, [compare](../docs/compare.md) for agents that read
# one another, [ethics](../docs/ethics.md).
