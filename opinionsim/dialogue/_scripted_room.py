"""Answers of the scripted model in moderated rooms, from ``scripted.toml`` and the sentences of scripted posts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path

from opinionsim.llm import Draws, Scene, phrases
from opinionsim.registry import part

_SAID: Mapping[str, list[str]] = tomllib.loads(Path(__file__).with_name("scripted.toml").read_text(encoding="utf-8"))
_SPEAKER = re.compile(r"^- (.+?)(?: \(you\))?$", re.MULTILINE)
_TURNS, _MOST, _TURN = re.compile(r"about (\d+) turns"), re.compile(r"at most (\d+)"), re.compile(r"Turn (\d+), (.+)")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]")
#: Shares of turns with a remark, and of turns in which the moderator may and does declare an end.
_REMARKING, _ENDING = 0.6, 0.25


def _task(name: str) -> Callable[[Callable[[Scene, int, Draws], str]], Callable[[Scene, Draws], str]]:
    """Mark the answer to a task of a room; each draws the level that it may express before all else."""

    def mark(answer: Callable[[Scene, int, Draws], str]) -> Callable[[Scene, Draws], str]:
        @wraps(answer)
        def answered(scene: Scene, draws: Draws) -> str:
            return answer(scene, scene.level(draws), draws)

        return part("scripted", name=name)(answered)

    return mark


def _notes(scene: Scene) -> str:
    """The notes among the messages."""
    return "\n".join(text for author, text in scene.messages if author == "Note")


def _authors(scene: Scene) -> list[str]:
    """Authors of the messages, without the reader, the moderator and notes."""
    return [author for author, _ in scene.messages if author not in ("Note", "You", "Moderator")]


def _pick(kind: str, draws: Draws, name: str = "") -> str:
    return draws.pick(_SAID[kind]).replace("{name}", name)


@_task("open")
def opening(scene: Scene, level: int, draws: Draws) -> str:
    """Scope, criteria, timeline and roles."""
    turns = _TURNS.search(scene.told)
    parts = [_pick(kind, draws) for kind in ("scope", "criteria", "timeline", "roles")]
    return "\n\n".join(parts).replace("{n}", turns[1] if turns else "a few")


@_task("moderate-room")
def moderate(scene: Scene, level: int, draws: Draws) -> str:
    """A remark or none, and a name or an end."""
    notes, authors = _notes(scene), _authors(scene)
    names = [name for name in _SPEAKER.findall(notes) if f"{name} has just spoken" not in notes]
    names = [name for name in names if f"{name} is next" in notes] or names
    remark = _pick("remarks", draws, authors[-1]) if authors and draws.uniform() < _REMARKING else ""
    if "may declare" in notes and draws.uniform() < _ENDING:
        return f"{remark}\n{_pick('ends', draws)}"
    return f"{remark}\nNext: {draws.pick(names or ['nobody'])}"


@_task("speak")
def speak(scene: Scene, level: int, draws: Draws) -> str:
    """An answer to the last speaker, a stance where there is a claim, and a reason."""
    authors = _authors(scene)
    first = _pick("replies", draws, authors[-1]) if authors else _pick("first_words", draws)
    stance = draws.pick(phrases.POSTS[level]).replace("{x}", phrases.PLAIN)
    said = [first, *([phrases.capitalised(stance)] if scene.claim else []), draws.pick(phrases.ANSWERS)]
    return " ".join(said)


@_task("analyze")
def analyze(scene: Scene, level: int, draws: Draws) -> str:
    """An analysis as JSON, of sentences of the dialogue: what two have said, what is asked, stances with reasons."""
    bound = _MOST.search(scene.told)
    most = int(bound[1]) if bound else 1
    authors: dict[str, set[str]] = {}
    questions: list[str] = []
    stances: list[tuple[int, int, str, str]] = []
    turns = [(int(head[1]), head[2], text) for label, text in scene.messages if (head := _TURN.fullmatch(label))]
    for turn, author, text in turns:
        sentences = [each.strip() for each in _SENTENCE.findall(text)]
        for sentence in sentences:
            authors.setdefault(sentence, set()).add(author)
            questions += [sentence] if sentence.endswith("?") and sentence not in questions else []
            if (side := phrases.stated(sentence)) is not None and sentence not in [each[3] for each in stances]:
                stances.append((turn, side, sentences[-1], sentence))
    argument_map = []
    for turn, side, premise, sentence in stances[:most]:
        against = [other for _, place, _, other in stances if place * side < 0][:1]
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


@_task("confirm")
def confirm(scene: Scene, level: int, draws: Draws) -> str:
    """A vote on the end."""
    return _pick("votes", draws)


@_task("close")
def close(scene: Scene, level: int, draws: Draws) -> str:
    """Words at the end."""
    return _pick("closing", draws)
