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
from opinionsim.schedules._acts import ABOUT, PROBE, SELF_REPORT
from opinionsim.schedules._turns import ActSpec, Labelling

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

_SHOWN: Labelling = "named"


def _of_people(name: str, kind: str, form: Form, person: str, **others: Any) -> ActSpec:
    """An act that is a person's alone: what people are asked stands for a template of models too."""
    fixed: dict[str, Any] = {"memory": "none", "labelling": _SHOWN, "after": "none", "formal": True}
    asked = {"text": person, "person": person, "form": form, "parse": read_answer}
    return ActSpec(name, name.partition(".")[0], kind, **{**fixed, **asked, **others})


#: A person agrees to take part, on the terms that it was shown.
CONSENT = _of_people(
    "consent", "consent", Form("choice", ("yes", "no")), "Do you agree to take part, on the terms that you were shown?"
)
#: A person says what the room is to talk about.
PROPOSE = _of_people("propose", "topic", Form(), "What should the room talk about? Put it as a question or a claim.")
#: A person says what it wants out of turn; most often nothing.
SIGNAL = _of_people(
    "signal", "signal", Form("signal", optional=True),
    "Nothing, or what you want, each on a line of its own: analysis (to have one made), pause, end, or harm: and what "
    "happened.", parse=read_signals,
)  # fmt: skip
#: A person who has paused the room goes on.
RESUME = _of_people(
    "resume", "signal", Form("choice", ("go on", "end")), "The room waits for you. Go on when you like, or end it."
)
#: A report of harm is put on record.
HARM = ActSpec("harm", template="", kind="harm", memory="none", draws=0)
#: The moderator opens with scope, criteria, timeline and roles.
OPEN_ROOM = ActSpec(
    "open", "open", "moderation", memory="none", labelling=_SHOWN,
    person=ABOUT + "You are the moderator. Open the discussion: its scope, criteria, time and roles.",
)  # fmt: skip
#: The moderator remarks on what was said, or not, and proposes who speaks next.
MODERATE = ActSpec(
    "moderate-room", "moderate-room", "moderation", memory="none", labelling=_SHOWN, parse=read_move, after="none",
    formal=True, person=ABOUT + "You are the moderator. Write a remark or none, and a last line such as `Next: NAME`.",
)  # fmt: skip
#: The moderator closes the room.
CLOSE = replace(OPEN_ROOM, name="close", template="close", person="You are the moderator. Close the discussion.")
#: A speaker has a turn.
SPEAK = ActSpec("speak", "speak", "speech", labelling=_SHOWN, person=ABOUT + "It is your turn. What do you say?")
#: A speaker says whether the room has come to the end that the moderator declares.
CONFIRM = ActSpec(
    "confirm", "confirm", "vote", memory="fork", labelling=_SHOWN, parse=read_vote, after="none", formal=True,
    form=Form("choice", ("yes", "no")),
    person=ABOUT + "The moderator says that the discussion has come to its end. Do you agree?",
)  # fmt: skip
#: The analyzer reads the whole dialogue; nobody waits for it.
ANALYZE = ActSpec(
    "analyze", "analyze", "analysis", memory="none", labelling=_SHOWN, after="none", formal=True, background=True
)
#: How the room ended is put on record.
END = ActSpec("end", template="", kind="ending", memory="none", draws=0)
#: A person rates the room.
QUESTIONNAIRE = _of_people(
    "questionnaire", "questionnaire",
    Form("ratings", tuple(RATED), tuple(RATED.values()), LIKERT, ("strongly disagree", "strongly agree")),
    "How far do you agree with each of these?", parse=read_questionnaire,
)  # fmt: skip
#: A person says in words of its own what it thinks of the room.
COMMENTS = tuple(
    _of_people(f"comment.{name}", "comment", Form(optional=True), "{{ asked }}", values={"asked": asked})
    for name, asked in OPEN.items()
)
#: A person is told what it should know afterwards.
DEBRIEF = _of_people(
    "debrief", "debriefing", Form("choice", ("read",)), "Thank you for taking part. Please read this before you leave."
)


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
    asked = [replace(each, labelling=_SHOWN) for each in (PROBE, SELF_REPORT)]
    people = [CONSENT, PROPOSE, SIGNAL, RESUME, HARM, END, QUESTIONNAIRE, *COMMENTS, DEBRIEF]
    return [*(replace(act, values=told) for act in worded), *asked, *people]
