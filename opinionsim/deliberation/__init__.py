"""Structured deliberation in Python, under the names of Plurals: agents, moderators, structures, interviews.

Each class here only writes a specification; the runner of experiments carries it out.
"""

from opinionsim.deliberation._agent import Agent
from opinionsim.deliberation._interview import Interview
from opinionsim.deliberation._moderator import Moderator
from opinionsim.deliberation._structures import (
    AbstractStructure,
    Chain,
    Custom,
    Debate,
    Ensemble,
    Graph,
    Rounds,
)
from opinionsim.deliberation._survey import use_survey

__all__ = [
    "AbstractStructure",
    "Agent",
    "Chain",
    "Custom",
    "Debate",
    "Ensemble",
    "Graph",
    "Interview",
    "Moderator",
    "Rounds",
    "use_survey",
]
