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
# # Looking for a consensus
#
# Five citizens say what they think of a question; a mediator drafts statements from their opinions; ballots pick one;
# citizens criticise it, and the mediator revises. Would another voting rule have picked another statement?
#
# Citizens and mediator are **scripted**: what they draft and vote follows set positions. The process is the one of the
# Habermas Machine, and says nothing about people or models here.

# %%
import sys
from pathlib import Path

import opinionsim as osim
from opinionsim import consensus

FIGURES = Path("results/consensus")


def show(figure, name):
    """Save a figure, and show it where this runs as a notebook."""
    path = osim.plots.save(figure, FIGURES / f"{name}.png", dpi=110)
    if "ipykernel" in sys.modules:
        from IPython.display import Image, display

        display(Image(path))


# %% [markdown]
# ## 1. A session
#
# The packaged file: five citizens, eight drafts, ballots that citizens state and ballots predicted from their opinions.

# %%
results = osim.run(osim.load_experiment("consensus_quickstart"), store="results/consensus.sqlite")
statements = consensus.statements(results)
print(len(statements), "statements, the position statement and the revisions among them; the winners of each round:")
for row in statements[statements["winner"]].itertuples():
    print(f"round {row.round}, statement {row.turn}: {row.statement}")

# %% [markdown]
# ## 2. What every rule would have chosen
#
# One row an election and rule; `first` are all statements at the first place. Where rules agree, the choice of a rule
# needs no defence; where they do not, or where a tie was broken, it does.

# %%
rules = consensus.other_rules(results)
print(rules[["round", "ballots", "rule", "winner", "first", "tied", "same"]].to_string(index=False))
show(consensus.session_figure(results), "1_session")

# %% [markdown]
# Read on: [consensus finding](../docs/consensus.md), [questions for groups](../docs/questions.md).
