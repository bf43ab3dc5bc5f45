"""Acts of the dyadic family and of people at seats, which several schedules declare."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opinionsim.foundation.forms import Form
from opinionsim.messages import Message, Said
from opinionsim.schedules._turns import ActSpec

_HERE = Path(__file__).with_name("persons.toml")


def _table(file: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def asked_of_persons(file: Path) -> dict[str, str]:
    """Templates for people at seats, which replace those for models, by name.

    Parameters
    ----------
    file : Path
        A TOML file with these texts under ``asked``. A name in <angle brackets> stands for a text under ``pieces`` in
        this file, or in ``persons.toml`` in the folder of this module.
    """
    own = _table(file)
    pieces = {**_table(_HERE)["pieces"], **own.get("pieces", {})}
    return {name: re.sub(r"<(\w+)>", lambda piece: pieces[piece[1]], text) for name, text in own["asked"].items()}


#: What persons are asked, by template.
ASKED = asked_of_persons(_HERE)


def act(name: str, kind: str, *, asked: Mapping[str, str] = ASKED, **how: Any) -> ActSpec:
    """Make an act whose template has its name; `asked` has the text of that name for people.

    `how` has further fields of the :class:`ActSpec`.
    """
    return ActSpec(name, name, kind, person=asked[name], **how)


def read_answer(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read an answer, which may be empty, and the same text in lower case as the decision."""
    return Said(text.strip(), text.strip().casefold())


#: An agent writes a post (Chuang et al. 2023, Algorithm 1; A6).
WRITE = act("write", "post", answers=False)
#: An agent reads posts and says what it believes; if all posts are refused, empty, skipped or silent, so is the turn.
REVIEW = act("review", "report", unread="skip", audience="nobody")
#: An agent says what it believes, and remembers that report (A12).
REPORT = act("report", "report", audience="nobody")
#: An agent says what it believes, without memory of earlier reports.
REPORT_ONCE = replace(REPORT, name="report-once", memory="none")
#: An agent says off the record what it believes, in its own words.
PROBE = act("probe", "probe", memory="fork", opinion="may", audience="nobody")
#: An agent states off the record what it believes, as a point of the scale.
SELF_REPORT = act("self-report", "self-report", memory="fork", opinion="may", audience="nobody")
_FORMAL: dict[str, Any] = {"opinion": "none", "memory": "none", "labelling": "named", "after": "none", "formal": True}
_AGREES: dict[str, Any] = {"form": Form("choice", ("yes", "no")), "parse": read_answer, "audience": "nobody"}
#: A person agrees to take part, on the terms that it was shown; pages that have asked for it answer themselves.
CONSENT = act("consent", "consent", text=ASKED["consent"], **_AGREES, **_FORMAL)
#: A moderator reads all answers and gives one of its own.
MODERATE = act("moderate", "moderation", memory="none", unread="skip", opinion="may")
#: A moderator writes instructions for itself from the task.
INSTRUCT = ActSpec("instruct", template="instruct", kind="instruction", memory="none", attempts=10, opinion="none")
