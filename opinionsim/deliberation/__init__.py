"""Structured deliberation in Python, under the names of Plurals: agents, moderators, structures, interviews.

Each class here only writes a specification; the runner of experiments carries it out.
"""

from opinionsim.deliberation._agent import Agent as Agent
from opinionsim.deliberation._interview import Interview as Interview
from opinionsim.deliberation._moderator import Moderator as Moderator
from opinionsim.deliberation._structures import (
    AbstractStructure as AbstractStructure,
    Chain as Chain,
    Custom as Custom,
    Debate as Debate,
    Ensemble as Ensemble,
    Graph as Graph,
    Rounds as Rounds,
)
from opinionsim.deliberation._survey import use_survey as use_survey
