"""Pure functions of dialogues: who may speak next, what a moderator decides, and what an analyzer writes."""

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
    Ending as Ending,
    Move as Move,
    Signals as Signals,
    read_answer as read_answer,
    read_move as read_move,
    read_signals as read_signals,
    read_vote as read_vote,
    speaker_called as speaker_called,
)
from opinionsim.dialogue._questionnaire import (
    LIKERT as LIKERT,
    OPEN as OPEN,
    RATED as RATED,
    read_questionnaire as read_questionnaire,
)
