"""The acts of a room."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from opinionsim.dialogue._arguments import read_analysis
from opinionsim.dialogue._moves import read_move, read_signals, read_vote
from opinionsim.errors import Rejected
from opinionsim.foundation.forms import Form
from opinionsim.messages import Message, Said
from opinionsim.schedules import CONSENT, PROBE, SELF_REPORT, ActSpec, act, asked_of_persons, read_answer

#: Role of the analyzer.
ANALYZER = "analyzer"
#: Lines of guidance on reasoning, each of which can be left out; after the rules of pragma-dialectics.
Guideline = Literal[
    "freedom",
    "burden-of-proof",
    "standpoint",
    "relevance",
    "unexpressed-premises",
    "starting-points",
    "argument-schemes",
    "validity",
    "closure",
    "clarity",
]

#: What pages say: words by name, by what they are about.
PAGES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("pages.toml").read_text(encoding="utf-8")
)
#: Points of the questionnaire.
LIKERT = tuple(range(1, 6))
#: What people rate after a room, and what they are asked in words of their own.
RATED, OPEN = PAGES["rated"], PAGES["open"]
_ASKED = asked_of_persons(Path(__file__).with_name("persons.toml"))
_act = partial(act, asked=_ASKED)
_FORMAL: dict[str, Any] = {"opinion": "none", "memory": "none", "labelling": "named", "after": "none", "formal": True}
_PRIVATE: dict[str, Any] = {**_FORMAL, "audience": "nobody"}
_PUBLIC: dict[str, Any] = {**_FORMAL, "audience": "room"}
_OF_MODERATOR: dict[str, Any] = {"memory": "none", "labelling": "named", "opinion": "may", "audience": "room"}
_YES_NO = Form("choice", ("yes", "no"))


def _of_people(name: str, kind: str, form: Form, **how: Any) -> ActSpec:
    """An act that is a person's alone: what people are asked stands for a template of models too."""
    return _act(name, kind, text=_ASKED[name], form=form, **{"parse": read_answer, **_PRIVATE, **how})


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


#: A person says what the room is to talk about.
PROPOSE = _of_people("propose", "topic", Form(), audience="room")
#: A person says what it wants out of turn; most often nothing.
SIGNAL = _of_people("signal", "signal", Form("signal", optional=True), parse=read_signals)
#: A person who has paused the room goes on.
RESUME = _of_people("resume", "signal", Form("choice", ("go on", "end")))
#: A report of harm is put on record.
HARM = ActSpec("harm", "", "harm", draws=0, **{**_PRIVATE, "audience": "owner"})
#: The moderator opens with scope, criteria, timeline and roles.
OPEN_ROOM = _act("open", "moderation", **_OF_MODERATOR)
#: The moderator remarks on what was said, or not, and proposes who speaks next.
MODERATE = _act("moderate-room", "moderation", parse=read_move, **{**_PUBLIC, "opinion": "may"})
#: The moderator closes the room.
CLOSE = _act("close", "moderation", **_OF_MODERATOR)
#: A speaker has a turn.
SPEAK = _act("speak", "speech", labelling="named", audience="room")
#: A speaker says whether the room has come to the end that the moderator declares.
CONFIRM = _act("confirm", "vote", parse=read_vote, form=_YES_NO, **_PUBLIC)
#: The analyzer reads the whole dialogue; nobody waits for it.
ANALYZE = ActSpec("analyze", "analyze", "analysis", background=True, **_PRIVATE)
#: How the room ended is put on record.
END = ActSpec("end", "", "ending", draws=0, **_PUBLIC)
_ENDS = ("strongly disagree", *[""] * (len(LIKERT) - 2), "strongly agree")
_AGREEING = Form("ratings", tuple(RATED), tuple(RATED.values()), LIKERT, (_ENDS,) * len(RATED))
#: A person rates the room.
QUESTIONNAIRE = _of_people("questionnaire", "questionnaire", _AGREEING, parse=read_questionnaire)
_COMMENT = _of_people("comment", "comment", Form(optional=True))
#: A person says in words of its own what it thinks of the room.
COMMENTS = [replace(_COMMENT, name=f"comment.{name}", values={"asked": asked}) for name, asked in OPEN.items()]
#: A person is told what it should know afterwards.
DEBRIEF = _of_people("debrief", "debriefing", Form("choice", ("read",)))


def acts_of(told: Mapping[str, str], most: int, *, remember: bool) -> list[ActSpec]:
    """The acts of a room.

    Parameters
    ----------
    told : mapping of str to str
        Variables of its templates.
    most : int
        As for :func:`read_analysis`.
    remember : bool
        Whether speakers remember the messages that they read and wrote.
    """
    worded = [
        OPEN_ROOM,
        MODERATE,
        CLOSE,
        replace(SPEAK, memory="keep" if remember else "none"),
        replace(CONFIRM, memory="fork" if remember else "none"),
        replace(ANALYZE, parse=partial(read_analysis, most)),
    ]
    asked = [replace(each, labelling="named") for each in (PROBE, SELF_REPORT)]
    people = [CONSENT, PROPOSE, SIGNAL, RESUME, HARM, END, QUESTIONNAIRE, *COMMENTS, DEBRIEF]
    return [*(replace(each, values=told) for each in worded), *asked, *people]
