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
# # A structure: chain, rounds, alone
#
# Ten agents discuss a claim in three structures: in a chain, where each reads all earlier answers; in rounds on a ring,
# where each reads its two neighbours; and in an ensemble, where no one reads anything. What does deliberation change,
# and what would have changed without it?
#
# The agents are **scripted**: a rule moves them towards what they read. To use a real model, change `model.name`.

# %%
import sys
from pathlib import Path

import opinionsim as osim
from opinionsim.deliberation import Agent, Debate, Moderator

FIGURES = Path("results/structure")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. One sweep of structures
#
# Agents state their opinions off the record, before and after. The personas, their initial opinions, and the number of
# answers of each are the same in all three structures.

# %%
experiment = osim.load_experiment(
    {
        "name": "structure",
        "seed": 2026,
        "replicates": 5,
        "population": {"personas": "chuang2024", "initial_opinions": "uniform", "assignment": "random"},
        "topic": {"name": "global-warming", "framing": "truth"},
        "interaction": {"kind": "chain"},
        "measurement": {"classifier": "lexicon", "texts": ["response"], "probe": {"before": 1, "after": 1}},
        "sweep": {
            "interaction": [
                {"label": "chain", "kind": "chain", "cycles": 2},
                {"label": "rounds on a ring", "kind": "rounds", "network": "ring", "cycles": 2},
                {"label": "no deliberation", "kind": "ensemble", "cycles": 2},
            ]
        },
    }
)
results = osim.run(experiment, store="results/structure.sqlite")

# %% [markdown]
# ## 2. What a speaker read
#
# The first lines of a transcript show who speaks after reading whom.

# %%
print(osim.transcript(results, run=0)[:1800])

# %% [markdown]
# ## 3. Before and after
#
# On the left, each line connects the opinions before and after. The right panel shows how far agents moved, by the
# order in which they spoke. Without deliberation, agents also move, by noise alone: the dashed line. Anything above it
# is an effect of the structure.

# %%
show(osim.plots.before_after(results, by="interaction"), "1_before_after")

# %% [markdown]
# ## 4. Your own script
#
# The same structures are available as objects, for tasks that are not experiments.

# %%
debate = Debate(
    [Agent(persona="a shopkeeper"), Agent(persona="a cyclist")],
    task="Should the main street be closed to cars?",
    cycles=2,
    moderator=Moderator(persona="default"),
)
debate.process()
for response in debate.responses:
    print("-", response[:160])
print("moderator:", debate.final_response[:300])

# %% [markdown]
# Read on: [structures](../docs/structures.md), [templates](../docs/templates.md), and
# [Plurals](../docs/coming_from.md#plurals), whose names the objects use.
