"""Classifies replies of models, finds signs in addition to an answer in role, and decides how to handle them."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.conduct._look import Looked as Looked, look as look
    from opinionsim.conduct._signs import (
        RULES as RULES,
        SIGNS as SIGNS,
        Sign as Sign,
        names_of as names_of,
        stripped as stripped,
    )
    from opinionsim.conduct._treatment import CutOff as CutOff, NoAnswer as NoAnswer, ReplyPolicy as ReplyPolicy

__getattr__, __dir__ = on_first_use(__name__)
