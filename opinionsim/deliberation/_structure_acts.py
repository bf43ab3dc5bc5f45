"""The acts of structures and interviews."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from opinionsim.errors import Rejected
from opinionsim.foundation.forms import Form
from opinionsim.messages import Message, Said
from opinionsim.schedules import act, asked_of_persons

_ASKED = asked_of_persons(Path(__file__).with_name("persons.toml"))
_act = partial(act, memory="none", asked=_ASKED)
_BOTH = Form("choice", ("A", "B"), ("A, the first text", "B, the second text"))
_CLOSED: dict[str, Any] = {"formal": True, "after": "none", "opinion": "none", "audience": "nobody"}
_LETTER = re.compile(r"^\W*(?:(?:answer|choice|option|text)\W+)?([AB])\W*$", re.IGNORECASE | re.MULTILINE)


def read_choice(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read the letter of the chosen text, A or B, from a separate line.

    Raises
    ------
    Rejected
        If there is no such line, or both letters have one.
    """
    found = {each.upper() for each in _LETTER.findall(text)}
    if len(found) != 1:
        raise Rejected(f"the letter A or B is needed on a line of its own; the reply has {'both' if found else 'none'}")
    return Said(letter := found.pop(), letter)


#: An agent answers the task, after reading what others answered.
RESPOND = _act("respond", "response")
#: An agent answers the questions of an interview.
INTERVIEW = _act("interview", "interview", formal=True, opinion="may", audience="nobody")
#: A judge chooses one of two texts.
CHOOSE = _act(
    "choose", "choice", text=_ASKED["choose-model"], scripted="choose", parse=read_choice, form=_BOTH, **_CLOSED
)
