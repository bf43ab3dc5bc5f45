"""The acts of the dyadic family, which several schedules declare."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from opinionsim.schedules._turns import ActSpec

_WORDS = tomllib.loads(Path(__file__).with_name("persons.toml").read_text(encoding="utf-8"))


def asked_of(template: str) -> str:
    """What persons at seats are asked in the place of a template of models: a template too."""
    return re.sub(r"<(\w+)>", lambda piece: str(_WORDS["pieces"][piece[1]]), _WORDS["asked"][template])


def act(name: str, kind: str, **how: Any) -> ActSpec:
    """An act whose template has its name, for models and for persons; `how` as the fields of an `ActSpec`."""
    return ActSpec(name, name, kind, person=asked_of(name), **how)


#: An agent writes a post (Chuang et al. 2023, Algorithm 1; A6).
WRITE = act("write", "post", answers=False)
#: An agent reads posts and says what it believes; if all posts are refused, empty or skipped, so is the turn.
REVIEW = act("review", "report", unread="skip", audience="nobody")
#: An agent says what it believes, and remembers that report (A12).
REPORT = act("report", "report", audience="nobody")
#: An agent says what it believes, without memory of earlier reports.
REPORT_ONCE = replace(REPORT, name="report-once", memory="none")
#: An agent says off the record what it believes, in its own words.
PROBE = act("probe", "probe", memory="fork", opinion="may", audience="nobody")
#: An agent states off the record what it believes, as a point of the scale.
SELF_REPORT = act("self-report", "self-report", memory="fork", opinion="may", audience="nobody")
#: An agent answers the task, after reading what others answered.
RESPOND = act("respond", "response", memory="none")
#: A moderator reads all answers and gives one of its own.
MODERATE = act("moderate", "moderation", memory="none", unread="skip", opinion="may")
#: A moderator writes instructions for itself from the task.
INSTRUCT = ActSpec("instruct", template="instruct", kind="instruction", memory="none", attempts=10, opinion="none")
