"""Structured deliberation in Python with the names of Plurals: agents, moderators, structures and interviews.

Each of these classes writes a specification, which the runner of experiments carries out. The package also has the
interactions and a contract suite that you can inherit in tests of your own structures.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.deliberation._agent import Agent as Agent
    from opinionsim.deliberation._choice_table import choices as choices
    from opinionsim.deliberation._contract import (
        NumberedReplies as NumberedReplies,
        StructureContract as StructureContract,
        play as play,
        who_saw_what as who_saw_what,
    )
    from opinionsim.deliberation._interview import Interview as Interview
    from opinionsim.deliberation._mixed_logit import mixed_logit as mixed_logit
    from opinionsim.deliberation._moderator import Moderator as Moderator
    from opinionsim.deliberation._structure import (
        Sequential as Sequential,
        Structure as Structure,
        balanced_order as balanced_order,
    )
    from opinionsim.deliberation._structure_acts import read_choice as read_choice
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

__getattr__, __dir__ = on_first_use(__name__)
