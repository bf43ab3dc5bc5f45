"""The moderated room: who may speak next, what a moderator decides, what an analyzer says, and its pages.

A room is an experiment with the interaction ``room``. Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.dialogue._arguments import (
        Analysis as Analysis,
        AnalysisItem as AnalysisItem,
        analyses as analyses,
        cited as cited,
        read_analysis as read_analysis,
    )
    from opinionsim.dialogue._floor import Floor as Floor
    from opinionsim.dialogue._moves import (
        ENDINGS as ENDINGS,
        Move as Move,
        Signals as Signals,
        read_move as read_move,
        read_signals as read_signals,
        read_vote as read_vote,
        speaker_called as speaker_called,
    )
    from opinionsim.dialogue._room import RoomInteraction as RoomInteraction
    from opinionsim.dialogue._room_acts import (
        ANALYZER as ANALYZER,
        OPEN as OPEN,
        RATED as RATED,
        Guideline as Guideline,
    )

__getattr__, __dir__ = on_first_use(__name__)
