"""Questions to people after a room has ended, and how to read their ratings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from opinionsim.errors import Rejected
from opinionsim.messages import Message, Said

_ASKED = tomllib.loads(Path(__file__).with_name("questionnaire.toml").read_text(encoding="utf-8"))
#: Points of the questionnaire.
LIKERT = tuple(range(1, 6))
#: What people rate after a room, and what they are asked in words of their own.
RATED: Mapping[str, str] = _ASKED["rated"]
OPEN: Mapping[str, str] = _ASKED["open"]


def read_questionnaire(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read ratings of the room, one per line, such as ``easy_to_use: 4``; they refer to its last turn.

    Raises
    ------
    Rejected
        If a rating is missing or off the scale.
    """
    found = dict(re.findall(r"^\s*(\w+)\s*:\s*(\d+)\s*$", text, re.MULTILINE))
    if wrong := [name for name in RATED if found.get(name) not in [str(point) for point in LIKERT]]:
        raise Rejected(f"{wrong[0]} is missing or off the scale; valid: {LIKERT[0]} to {LIKERT[-1]}")
    turns = [message.turn for message in received if message.turn is not None]
    return Said.numbers({turns[-1]: {name: int(found[name]) for name in RATED}})
