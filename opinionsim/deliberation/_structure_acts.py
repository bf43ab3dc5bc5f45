"""The acts of structures and interviews."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from opinionsim.schedules import act, asked_of_persons

_act = partial(act, memory="none", asked=asked_of_persons(Path(__file__).with_name("persons.toml")))

#: An agent answers the task, after reading what others answered.
RESPOND = _act("respond", "response")
#: An agent answers the questions of an interview.
INTERVIEW = _act("interview", "interview", formal=True, opinion="may", audience="nobody")
