"""What speakers and moderators do in addition to speaking: they propose speakers, declare ends, vote and signal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from opinionsim.errors import Rejected, quoted
from opinionsim.messages import Message, Said

#: How a room can end.
Ending = Literal["turns", "resolution", "deadlock", "person", "vacated"]
ENDINGS: tuple[Ending, ...] = get_args(Ending)


@dataclass(frozen=True, slots=True)
class Move:
    """A moderator's decision in one turn.

    Attributes
    ----------
    speaker : str
        Name of the next speaker; empty if the moderator names none.
    declared : {"resolution", "deadlock"} or None
        The outcome, if the moderator declares that the discussion has ended.
    """

    speaker: str = ""
    declared: Literal["resolution", "deadlock"] | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """The wishes that a person signals outside turns.

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
    r"(?<=[.!?*\"])[ \t]*[*_]*next(?:[ \t]+speaker)?[ \t*_]*:(?P<told>(?P<said>[^\n]+))$", re.IGNORECASE | re.MULTILINE
)
#: A name with words behind it that are no part of it.
_NAME_AND_WORDS = re.compile(r"(.+?)[.!?;,][*_ \t]+((?:\S+[ \t]+){2,}\S.*)")
_DECLARED = re.compile(
    r"^[^\w\n]*(?P<how>resolution|deadlock)[ \t*_`\"]*[:\u2013\u2014][^\w\n]*(?P<why>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
#: A label with the marks around it; those that go on around the words behind it stay.
_REMARK = re.compile(
    r"(?im)^[^\w\n]*?(?<![*_])([*_]*)(?:remark|message|moderator)[ \t]*(?:\1[ \t]*:|:[ \t]*\1|:())[ \t]*"
)
#: Words after such a label that say that there is nothing.
_NOTHING = frozenset(("", "none", "no", "n/a", "nobody", "not yet", "nothing", "no remark"))


def read_move(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read a moderator's remark and its decision: the next speaker, or the end of the discussion.

    A line such as ``Next: NAME`` names the next speaker. A line such as ``Resolution: WHY`` or ``Deadlock: WHY``
    declares the end and is part of the remark. If there are several such lines, the last one counts.

    Raises
    ------
    Rejected
        If there is no such line.
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
    words = _REMARK.sub(lambda label: label[1] * (label[2] == ""), words)
    kept = [line for line in words.splitlines() if not _empty_line(line)]
    remark = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Said("" if _nothing(remark) else remark, Move(name, declared))


def _nothing(words: str) -> bool:
    return words.strip(_AROUND).casefold() in _NOTHING


def _empty_line(line: str) -> bool:
    """Whether a line declares no end, such as ``Deadlock: none``, or contains only punctuation."""
    found = _DECLARED.match(line)
    return bool(line.strip() and not line.strip(_AROUND)) or (found is not None and _nothing(found["why"]))


def speaker_called(name: str, names: Mapping[int, str]) -> int | None:
    """Find the speaker with this name, or the only speaker whose name occurs in it."""
    spelled, wanted = {agent: each.casefold() for agent, each in names.items()}, name.casefold().strip()
    exact = [agent for agent, each in spelled.items() if each == wanted]
    inside = [agent for agent, each in spelled.items() if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", wanted)]
    # The longest name in a phrase is meant: "Ann Lee", not "Ann".
    longest = [one for one in inside if not any(one != two and spelled[one] in spelled[two] for two in inside)]
    found = exact or longest
    return found[0] if len(found) == 1 else None


_YES_NO = re.compile(
    r"\W*(?:(?:answer|vote|decision)\W+)?(?:i\s+(?:say|vote)\W+)?(yes|no)\b"
    r"(?P<both>\W+(?:and|or|but)\W+(?!\1)(?:yes|no)\b|[\s,/&*_-]+(?!\1)(?:yes|no)\b(?!\s+\w))?",
    re.IGNORECASE,
)


def read_vote(call: str, text: str, received: tuple[Message, ...]) -> bool:
    """Read whether a speaker agrees to end the discussion, from yes or no at the beginning of its reply.

    Raises
    ------
    Rejected
        If the reply begins with neither, or with both, as in "Yes and no: ...".
    """
    found = _YES_NO.match(text)
    if found is None:
        raise Rejected("the reply must begin with yes or no")
    if found["both"]:
        raise Rejected("the reply must begin with yes or no, and it begins with both; one of them holds for the whole")
    return found[1].lower() == "yes"


def read_signals(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read a person's wishes, one per line: ``analysis``, ``pause``, ``end`` or ``harm: TEXT``; may be empty.

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
            raise Rejected(f"{quoted(line)} is none of: analysis, pause, end, harm: TEXT")
    return Said("\n".join([*wants, *(f"harm: {each}" for each in harm)]), Signals(frozenset(wants), tuple(harm)))
