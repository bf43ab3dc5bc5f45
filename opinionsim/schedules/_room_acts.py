"""The acts of a room, and how what is said in them is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args

from opinionsim.arguments import read_analysis
from opinionsim.errors import Rejected
from opinionsim.forms import Form
from opinionsim.messages import Message, Said
from opinionsim.schedules._acts import PROBE, SELF_REPORT
from opinionsim.schedules._turns import ActSpec, Labelling

#: Role of the analyzer.
ANALYZER = "analyzer"
#: How a room can end.
Ending = Literal["turns", "resolution", "deadlock", "person", "vacated"]
ENDINGS: tuple[Ending, ...] = get_args(Ending)
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


@dataclass(frozen=True, slots=True)
class Move:
    """What a moderator decides in one turn.

    Attributes
    ----------
    speaker : str
        The next speaker as it is called; empty where nobody is.
    declared : {"resolution", "deadlock"} or None
        How the moderator declares the room to have ended.
    """

    speaker: str = ""
    declared: Literal["resolution", "deadlock"] | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """What a person wants out of turn.

    Attributes
    ----------
    wants : frozenset of str
        ``analysis``, ``pause`` or ``end``.
    harm : tuple of str
        Reports of harm.
    """

    wants: frozenset[str] = frozenset()
    harm: tuple[str, ...] = ()


#: What may stand around a name or a label in a reply of a chat model.
_AROUND = " \t*_`'\"()[]<>#-.,:;!\u201c\u201d\u2018\u2019\u00ab\u00bb\u2013\u2014"
_NEXT = re.compile(
    r"^[^\w\n]*(?:(?:the|our)[ \t]+)?next(?:[ \t]+(?:speaker|turn|up|to[ \t]+speak))?"
    r"(?:[ \t*_`\"]*[:=\u2013\u2014-]+(?P<told>.+)|[ \t]+(?:is|goes[ \t]+to)\b[ \t]*:?(?P<said>.{1,40}))$",
    re.IGNORECASE | re.MULTILINE,
)
#: The same at the end of a line of other words.
_NEXT_INSIDE = re.compile(
    r"(?<=[.!?*\"])[ \t*_]*next(?:[ \t]+speaker)?[ \t*_]*:(?P<told>(?P<said>[^\n]+))$", re.IGNORECASE | re.MULTILINE
)
#: A name with words behind it that are no part of it.
_NAME_AND_WORDS = re.compile(r"(.+?)[.!?;,][*_ \t]+((?:\S+[ \t]+){2,}\S.*)")
_DECLARED = re.compile(
    r"^[^\w\n]*(?P<how>resolution|deadlock)[ \t*_`\"]*[:\u2013\u2014][^\w\n]*(?P<why>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_REMARK = re.compile(r"^[^\w\n]*(?:remark|message|moderator)[ \t*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE)
#: Words after such a label that say that there is nothing.
_NOTHING = frozenset(("", "none", "no", "n/a", "nobody", "not yet", "nothing", "no remark"))


def read_move(part: str, text: str, received: tuple[Message, ...]) -> Said:
    """A moderator's remark as its words, and what it decides: the next speaker, or that the room has come to its end.

    The next speaker stands on a line such as ``Next: NAME``, an end on one such as ``Resolution: WHY`` or ``Deadlock:
    WHY``, which is part of the remark. Of several the last counts.

    Raises
    ------
    Rejected
        If there is neither.
    """
    named = [*_NEXT.finditer(text)] or [*_NEXT_INSIDE.finditer(text)]
    ends = [each for each in _DECLARED.finditer(text) if not _nothing(each["why"])]
    declared: Any = ends[-1]["how"].lower() if ends else None
    name, words = "", text
    for each in reversed(named):
        told = each["told"] or each["said"]
        beside = _NAME_AND_WORDS.fullmatch(told)
        words = f"{words[: each.start()]}{beside[2] if beside else ''}{words[each.end() :]}"
        name = name or (beside[1] if beside else told).strip(_AROUND)
    name = "" if _nothing(name) else name
    if not (name or declared):
        raise Rejected("a line such as `Next: NAME` is needed, or one that begins with `Resolution:` or `Deadlock:`")
    kept = [line for line in _REMARK.sub("", words).splitlines() if not _empty_line(line)]
    remark = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Said("" if _nothing(remark) else remark, Move(name, declared))


def _nothing(words: str) -> bool:
    return words.strip(_AROUND).casefold() in _NOTHING


def _empty_line(line: str) -> bool:
    """Whether a line declares no end, such as ``Deadlock: none``, or holds nothing but signs."""
    found = _DECLARED.match(line)
    return bool(line.strip() and not line.strip(_AROUND)) or (found is not None and _nothing(found["why"]))


def speaker_called(name: str, names: Mapping[int, str]) -> int | None:
    """The speaker that is meant by a name: the one so called, or the only one whose name stands in it."""
    spelled, wanted = {agent: each.casefold() for agent, each in names.items()}, name.casefold().strip()
    exact = [agent for agent, each in spelled.items() if each == wanted]
    inside = [agent for agent, each in spelled.items() if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", wanted)]
    # Of "Ann" and "Ann Lee" in one phrase the longer name is meant.
    longest = [one for one in inside if not any(one != two and spelled[one] in spelled[two] for two in inside)]
    found = exact or longest
    return found[0] if len(found) == 1 else None


_YES_NO = re.compile(r"\W*(?:(?:answer|vote|decision)\W+)?(?:i\s+(?:say|vote)\W+)?(yes|no)\b", re.IGNORECASE)


def read_vote(part: str, text: str, received: tuple[Message, ...]) -> bool:
    """Whether a speaker agrees that the room ends: the word yes or no at the beginning of its reply.

    Raises
    ------
    Rejected
        If it begins with neither.
    """
    found = _YES_NO.match(text)
    if found is None:
        raise Rejected("the reply must begin with yes or no")
    return found[1].lower() == "yes"


def read_signals(part: str, text: str, received: tuple[Message, ...]) -> Said:
    """What a person wants, one thing a line: ``analysis``, ``pause``, ``end``, ``harm: TEXT``, or nothing.

    Raises
    ------
    Rejected
        If a line is none of these.
    """
    wants, harm = list[str](), list[str]()
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, said = line.partition(":")
        if word.casefold() == "harm" and said.strip():
            harm.append(said.strip())
        elif line.casefold() in ("analysis", "pause", "end"):
            wants.append(line.casefold())
        else:
            raise Rejected(f"{line!r:.40} is none of: analysis, pause, end, harm: TEXT")
    return Said("\n".join([*wants, *(f"harm: {each}" for each in harm)]), Signals(frozenset(wants), tuple(harm)))


def read_answer(part: str, text: str, received: tuple[Message, ...]) -> Said:
    """What was answered, and the same in lower case as a decision; saying nothing is an answer."""
    return Said(text.strip(), text.strip().casefold())


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
    "Nothing, or one thing a line: analysis, pause, end, harm: and what happened.", parse=read_signals,
)  # fmt: skip
#: A person who has paused the room goes on.
RESUME = _of_people(
    "resume", "signal", Form("choice", ("go on", "end")), "The room waits for you. Go on when you like, or end it."
)
#: A report of harm is put on record.
HARM = ActSpec("harm", template="", kind="harm", memory="none", draws=0)
#: The moderator opens with scope, criteria, timeline and roles.
OPEN_ROOM = ActSpec("open", "open", "moderation", memory="none", labelling=_SHOWN)
#: The moderator remarks on what was said, or not, and proposes who speaks next.
MODERATE = ActSpec(
    "moderate-room", "moderate-room", "moderation", memory="none", labelling=_SHOWN, parse=read_move, after="none",
    formal=True,
)  # fmt: skip
#: The moderator closes the room.
CLOSE = replace(OPEN_ROOM, name="close", template="close")
#: A speaker has a turn.
SPEAK = ActSpec("speak", "speak", "speech", labelling=_SHOWN)
#: A speaker says whether the room has come to the end that the moderator declares.
CONFIRM = ActSpec(
    "confirm", "confirm", "vote", memory="fork", labelling=_SHOWN, parse=read_vote, after="none", formal=True,
    form=Form("choice", ("yes", "no")),
    person="The moderator says that the discussion has come to its end. Do you agree?",
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
        As for :func:`read_analysis`.
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
