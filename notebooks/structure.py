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
# # A structure: chain, rounds, nobody
#
# Ten agents discuss a claim in a chain, where each is shown all answers before its own, in rounds on a ring, where each
# sees its two neighbours, and in an ensemble, where nobody sees anything. What does deliberation change, and what would
# have changed without it?
#
# The agents are **scripted**: a rule moves them toward what they read. A real model is another value of `model.name`.

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
# Opinions are asked off the record, before and after. The personas, their opinions at the start, and the number of
# answers of each are the same in all three.

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
# ## 2. What a speaker was shown
#
# The first lines of a transcript: who speaks, after reading whom.

# %%
print(osim.transcript(results, run=0)[:1800])

# %% [markdown]
# ## 3. Before and after
#
# Left, each line leads from the opinions before to those after; right, how far agents moved by the order in which they
# spoke. Without deliberation agents move as well, by noise alone: the dashed line. What is above it is the structure's.

# %%
show(osim.plots.before_after(results, by="interaction"), "1_before_after")

# %% [markdown]
# ## 4. A script of one's own
#
# The same structures as objects, for a task that is no experiment.

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
# [Plurals](../docs/coming_from.md#plurals), whose names the objects have.
