"""What people are asked once a room is over, and how their ratings are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from opinionsim.errors import Rejected
from opinionsim.messages import Message, Said

#: Points of the questionnaire.
LIKERT = tuple(range(1, 6))
#: What people rate after a room (ArgsBase; C6).
RATED: Mapping[str, str] = MappingProxyType(
    {
        "easy_to_use": "The room was easy to use.",
        "natural_navigation": "I found my way around without thinking about it.",
        "would_reuse": "I would use it again.",
        "several_perspectives": "It showed me several perspectives.",
        "questions_prompted_reflection": "The open questions made me think.",
        "summaries_clarified": "The summaries made things clearer.",
        "agreements_useful": "It helped to see what had been agreed on.",
        "map_easy": "The map of arguments was easy to understand.",
        "improved_reasoning": "It improved how I reasoned.",
    }
)
#: What people are asked after it in words of their own (C6).
OPEN: Mapping[str, str] = MappingProxyType(
    {
        "helpful": "What helped you most?",
        "confusing": "What was confusing?",
        "research": "How could such a room serve research?",
        "reflection": "How could it serve your own thinking?",
        "advantage": "What did it give you that a talk with one assistant would not?",
        "other": "Is there anything else you would like to say?",
    }
)


def read_questionnaire(part: str, text: str, received: tuple[Message, ...]) -> Said:
    """Ratings of the room, one a line such as ``easy_to_use: 4``, said of the turn in which it ended.

    Raises
    ------
    Rejected
        If one is missing or off the scale.
    """
    found = dict(re.findall(r"^\s*(\w+)\s*:\s*(\d+)\s*$", text, re.MULTILINE))
    if wrong := [name for name in RATED if found.get(name) not in [str(point) for point in LIKERT]]:
        raise Rejected(f"{wrong[0]} is missing or off the scale; valid: {LIKERT[0]} to {LIKERT[-1]}")
    turns = [message.turn for message in received if message.turn is not None]
    return Said.numbers({turns[-1]: {name: int(found[name]) for name in RATED}})
