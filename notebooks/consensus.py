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
# Five citizens give their opinions on a question, and a mediator drafts statements from these opinions. Ballots pick
# one statement, the citizens criticise it, and the mediator revises it. Would another voting rule have picked another
# statement?
#
# Citizens and mediator are **scripted**: they draft and vote from preset positions. The process is that of the Habermas
# Machine, but this example says nothing about people or models.

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
# The file comes with the package: five citizens, eight drafts, ballots stated by citizens and ballots predicted from
# their opinions.

# %%
results = osim.run(osim.load_experiment("consensus_quickstart"), store="results/consensus.sqlite")
statements = consensus.statements(results)
print(len(statements), "statements, the position statement and the revisions among them; the winners of each round:")
for row in statements[statements["winner"]].itertuples():
    print(f"round {row.round}, statement {row.turn}: {row.statement}")

# %% [markdown]
# ## 2. The choice of every rule
#
# The table has one row per election and rule; `first` lists all statements in first place. If the rules agree, you need
# not justify your choice of rule; if they disagree, or a tie was broken, you do.

# %%
rules = consensus.other_rules(results)
print(rules[["round", "ballots", "rule", "winner", "first", "tied", "same"]].to_string(index=False))
show(consensus.session_figure(results), "1_session")

# %% [markdown]
# Read on: [consensus finding](../docs/consensus.md), [questions for groups](../docs/questions.md).
