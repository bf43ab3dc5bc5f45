"""What the scripted model says in groups: in sessions that look for a consensus, and in moderated rooms.

In a session it reads a position off every text as off any post, and follows it: a draft states the mean of the
positions that it was shown, a ballot orders statements by their distance from one position, a rating falls with that
distance. In a room its sentences are those of ``room.toml``, and of all scripted posts.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from opinionsim.llm import phrases
from opinionsim.llm._scripted_words import Draws

_LETTERED = re.compile(r"^Statement ([A-Z]{1,2}):$", re.MULTILINE)
#: Levels from the one end of the scale to the other, in steps of points of agreement.
_POINTS_A_LEVEL = 1.5


def _statement(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """A statement at the mean of the positions shown, with noise."""
    known = [level for level in received if level is not None] or [0]
    level = round(min(max(sum(known) / len(known) + spread * draws.normal(), -2), 2))
    stance = draws.pick(phrases.POSTS[level]).replace("{x}", "the claim")
    return f"<statement>{draws.pick(phrases.STATEMENTS)}: {phrases.capitalised(stance)}</statement>"


def _distances(received: Sequence[int | None], n: int) -> list[float]:
    """Distances of the last n texts from the first one; a position that cannot be read counts as neutral."""
    levels = [0 if level is None else level for level in received]
    return [abs(level - levels[0]) for level in levels[-n:]]


def _ranking(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """All statements by their distance from the opinion shown, those at one distance tied or in any order."""
    letters = _LETTERED.findall(told)
    noisy = [each + spread * draws.normal() for each in _distances(received, len(letters))]
    order = sorted(zip(noisy, letters, strict=True))
    groups = [" = ".join(letter for _, letter in group) for _, group in groupby(order, lambda each: each[0])]
    return f"<ranking>{' > '.join(groups)}</ranking>"


def _agreement(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """Agreement that falls with the distance from the opinion shown."""
    (distance,) = _distances(received, 1)
    return f"Agreement: {min(max(round(7 - _POINTS_A_LEVEL * distance + spread * draws.normal()), 1), 7)}"


def _rating(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """Agreement, and a quality that has nothing to do with it."""
    return f"{_agreement(told, received, spread, draws)}\nQuality: {3 + int(draws.uniform() * 4)}"


def _critique(told: str, received: Sequence[int | None], spread: float, draws: Draws) -> str:
    """Where the own position stands, seen from the statement."""
    own, level = received[0] or 0, received[-1] or 0
    stance = draws.pick(phrases.REPORTS[own]).replace("{x}", "the claim")
    asked = draws.pick(phrases.CRITIQUES[0 if own == level else 1 if own > level else -1])
    return f"{asked}. {phrases.capitalised(stance)}"


#: What is said to a task, by its template: from the text of the prompt outside messages, the positions of the messages
#: shown, the noise, and draws.
REPLIES: Mapping[str, Callable[[str, Sequence[int | None], float, Draws], str]] = MappingProxyType(
    {
        "draft": _statement,
        "revise": _statement,
        "rank": _ranking,
        "predict": _ranking,
        "rate": _rating,
        "predict-rating": _agreement,
        "criticise": _critique,
    }
)


# -- a moderated room ------------------------------------------------------------------------------------------

_SAID: Mapping[str, list[str]] = tomllib.loads(Path(__file__).with_name("room.toml").read_text(encoding="utf-8"))
_SPEAKER = re.compile(r"^- (.+?)(?: \(you\))?$", re.MULTILINE)
_TURNS, _MOST, _TURN = re.compile(r"about (\d+) turns"), re.compile(r"at most (\d+)"), re.compile(r"Turn (\d+), (.+)")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]")
#: Shares of turns with a remark, and of turns in which the moderator may and does declare an end.
_REMARKING, _ENDING = 0.6, 0.25


class Scene(NamedTuple):
    """What the prompt of a task in a room says, and what is to be expressed."""

    told: str
    """The text outside messages."""
    messages: Sequence[tuple[str, str]]
    """The line before each message, without its colon, and its text."""
    level: int
    """Intensity to express, -2 to 2."""
    claim: bool
    """Whether there is a claim."""

    @property
    def notes(self) -> str:
        """The notes among the messages."""
        return "\n".join(text for author, text in self.messages if author == "Note")

    @property
    def authors(self) -> list[str]:
        """Authors of the messages, without the reader, the moderator and notes."""
        return [author for author, _ in self.messages if author not in ("Note", "You", "Moderator")]


def scene(task: str, delimiters: tuple[str, str], told: str, level: int, *, claim: bool) -> Scene:
    """The scene of a prompt, from the text of its task with messages between delimiters."""
    opening, closing = map(re.escape, delimiters)
    shown = re.compile(rf"^([^\n]*):\n{opening}\n(.*?)\n{closing}", re.MULTILINE | re.DOTALL)
    return Scene(told, shown.findall(task), level, claim)


def _pick(kind: str, draws: Draws, name: str = "") -> str:
    return draws.pick(_SAID[kind]).replace("{name}", name)


def _open(seen: Scene, draws: Draws) -> str:
    """Scope, criteria, timeline and roles."""
    turns = _TURNS.search(seen.told)
    parts = [_pick(kind, draws) for kind in ("scope", "criteria", "timeline", "roles")]
    return "\n\n".join(parts).replace("{n}", turns[1] if turns else "a few")


def _moderate(seen: Scene, draws: Draws) -> str:
    """A remark or none, and a name or an end."""
    names = [name for name in _SPEAKER.findall(seen.notes) if f"{name} has just spoken" not in seen.notes]
    names = [name for name in names if f"{name} is next" in seen.notes] or names
    authors = seen.authors
    remark = _pick("remarks", draws, authors[-1]) if authors and draws.uniform() < _REMARKING else ""
    if "may declare" in seen.notes and draws.uniform() < _ENDING:
        return f"{remark}\n{_pick('ends', draws)}"
    return f"{remark}\nNext: {draws.pick(names or ['nobody'])}"


def _speak(seen: Scene, draws: Draws) -> str:
    """An answer to the last speaker, a stance where there is a claim, and a reason."""
    authors = seen.authors
    first = _pick("replies", draws, authors[-1]) if authors else _pick("first_words", draws)
    stance = draws.pick(phrases.POSTS[seen.level]).replace("{x}", phrases.PLAIN)
    said = [first, *([phrases.capitalised(stance)] if seen.claim else []), draws.pick(phrases.ANSWERS)]
    return " ".join(said)


def _analyze(seen: Scene, draws: Draws) -> str:
    """An analysis as JSON, of sentences of the dialogue: what two have said, what is asked, stances with reasons."""
    bound = _MOST.search(seen.told)
    most = int(bound[1]) if bound else 1
    authors: dict[str, set[str]] = {}
    questions: list[str] = []
    stances: list[tuple[int, int, str, str]] = []
    turns = [(int(head[1]), head[2], text) for label, text in seen.messages if (head := _TURN.fullmatch(label))]
    for turn, author, text in turns:
        sentences = [each.strip() for each in _SENTENCE.findall(text)]
        levels = [phrases.stated(each) for each in sentences]
        for sentence, level in zip(sentences, levels, strict=True):
            authors.setdefault(sentence, set()).add(author)
            questions += [sentence] if sentence.endswith("?") and sentence not in questions else []
            if level is not None and sentence not in [each[3] for each in stances]:
                stances.append((turn, level, sentences[-1], sentence))
    argument_map = []
    for turn, level, premise, sentence in stances[:most]:
        against = [other for _, place, _, other in stances if place * level < 0][:1]
        counter = [{"counterargument": each} for each in against]
        argument_map.append({"claim": sentence, "turns": [turn], "premises": [premise], "counterarguments": counter})
    who = list(dict.fromkeys(author for _, author, _ in turns if author != "Moderator"))
    told = {
        "summary": f"{' and '.join(who) or 'Nobody'} said {len(turns)} things. {turns[-1][2] if turns else ''}".strip(),
        "points_of_agreement": [each for each, by in authors.items() if len(by) > 1][:most],
        "open_questions": questions[:most],
        "argument_map": argument_map,
    }
    return json.dumps(told)


#: What is said to a task of a room, by its template.
DISCUSSION: Mapping[str, Callable[[Scene, Draws], str]] = MappingProxyType(
    {
        "open": _open,
        "moderate-room": _moderate,
        "speak": _speak,
        "confirm": lambda seen, draws: _pick("votes", draws),
        "close": lambda seen, draws: _pick("closing", draws),
        "analyze": _analyze,
    }
)
