"""The acts of a room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from opinionsim.dialogue import (
    LIKERT,
    OPEN,
    RATED,
    read_analysis,
    read_answer,
    read_move,
    read_questionnaire,
    read_signals,
    read_vote,
)
from opinionsim.forms import Form
from opinionsim.messages import Parse
from opinionsim.schedules._acts import PROBE, SELF_REPORT
from opinionsim.schedules._turns import PERSONS, ActSpec

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

_UNREMEMBERED: dict[str, Any] = {"memory": "none", "labelling": "named", "after": "none", "formal": True}
_YES_NO = Form("choice", ("yes", "no"))


def _of_people(
    name: str, kind: str, form: Form, parse: Parse = read_answer, values: Mapping[str, str] | None = None
) -> ActSpec:
    """An act that is a person's alone: what people are asked stands for a template of models too."""
    template = name.partition(".")[0]
    return ActSpec(
        name, template, kind, PERSONS[template], values=values or {}, form=form, parse=parse, **_UNREMEMBERED
    )


#: A person agrees to take part, on the terms that it was shown.
CONSENT = _of_people("consent", "consent", _YES_NO)
#: A person says what the room is to talk about.
PROPOSE = _of_people("propose", "topic", Form())
#: A person says what it wants out of turn; most often nothing.
SIGNAL = _of_people("signal", "signal", Form("signal", optional=True), read_signals)
#: A person who has paused the room goes on.
RESUME = _of_people("resume", "signal", Form("choice", ("go on", "end")))
#: A report of harm is put on record.
HARM = ActSpec("harm", template="", kind="harm", memory="none", draws=0)
#: The moderator opens with scope, criteria, timeline and roles.
OPEN_ROOM = ActSpec("open", "open", "moderation", memory="none", labelling="named")
#: The moderator remarks on what was said, or not, and proposes who speaks next.
MODERATE = ActSpec("moderate-room", "moderate-room", "moderation", parse=read_move, **_UNREMEMBERED)
#: The moderator closes the room.
CLOSE = replace(OPEN_ROOM, name="close", template="close")
#: A speaker has a turn.
SPEAK = ActSpec("speak", "speak", "speech", labelling="named")
#: A speaker says whether the room has come to the end that the moderator declares.
CONFIRM = ActSpec("confirm", "confirm", "vote", parse=read_vote, form=_YES_NO, **_UNREMEMBERED)
#: The analyzer reads the whole dialogue; nobody waits for it.
ANALYZE = ActSpec("analyze", "analyze", "analysis", background=True, **_UNREMEMBERED)
#: How the room ended is put on record.
END = ActSpec("end", template="", kind="ending", memory="none", draws=0)
_AGREEING = Form("ratings", tuple(RATED), tuple(RATED.values()), LIKERT, ("strongly disagree", "strongly agree"))
#: A person rates the room.
QUESTIONNAIRE = _of_people("questionnaire", "questionnaire", _AGREEING, read_questionnaire)
#: A person says in words of its own what it thinks of the room.
COMMENTS = [
    _of_people(f"comment.{name}", "comment", Form(optional=True), values={"asked": asked})
    for name, asked in OPEN.items()
]
#: A person is told what it should know afterwards.
DEBRIEF = _of_people("debrief", "debriefing", Form("choice", ("read",)))


def acts_of(told: Mapping[str, str], most: int, *, remember: bool) -> list[ActSpec]:
    """The acts of a room.

    Parameters
    ----------
    told : mapping of str to str
        Variables of its templates.
    most : int
        As for :func:`opinionsim.dialogue.read_analysis`.
    remember : bool
        Whether speakers remember what they read and said.
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
    return [*(replace(act, values=told) for act in worded), *asked, *people]
