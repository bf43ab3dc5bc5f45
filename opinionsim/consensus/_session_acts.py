"""Acts of consensus finding, and functions that read their replies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from string import ascii_uppercase
from types import MappingProxyType
from typing import Any

from opinionsim.errors import Rejected, quoted
from opinionsim.foundation.forms import Form
from opinionsim.messages import Message, Said
from opinionsim.schedules import ActSpec, act, asked_of_persons

#: Roles beside the citizens.
MEDIATOR, PREDICTOR = "mediator", "predictor"
#: Variable of what predicts the agreement of an opinion's author with a statement.
PREDICTED = "predicted_agreement"
#: Points of agreement and quality: 4 is neutral (Bakker et al.; D3).
LIKERT = tuple(range(1, 8))
#: What these numbers mean, from the lowest to the highest (D3; table S4 of the source).
LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Agreement": (
            *("strongly disagree", "disagree", "somewhat disagree", "neutral"),
            *("somewhat agree", "agree", "strongly agree"),
        ),
        "Quality": ("terrible", "poor", "somewhat poor", "neutral", "somewhat good", "good", "excellent"),
    }
)
#: Beginnings of the names of acts whose texts are statements that citizens rank and rate.
_STATEMENTS = ("draft", "revise", "put")

_STATEMENT = re.compile(r"<statement>(.*?)(?:</statement>|(?=<statement>)|\Z)", re.DOTALL | re.IGNORECASE)
_TAGGED = re.compile(r"<ranking>(.*?)(?:</ranking>|\Z)", re.DOTALL | re.IGNORECASE)
_ANNOUNCED = re.compile(
    r"^[^\w\n]*(?:(?:here|is|my|the|own|final|overall|predicted)\s+)*ranking[^\w\n:]*:\W*(.+)",
    re.IGNORECASE | re.MULTILINE,
)
#: An item of a numbered list that names a statement, as in ``1. A / 2. Statement B: ...``.
_ITEM = re.compile(
    r"(?:^|[/;,>\n])[ \t*_#(\[-]*(\d{1,3})[.):][ \t*_\[(]*(?:[Ss]tatement[ \t]+)?[*_]*([A-Z]{1,2})"
    r"(?=[*_ \t]*(?:$|[\n/;,.:>)\]]|[-\u2013\u2014] ))"
)
_LABEL = re.compile(r"(?:statement\s+)?\W*([A-Z]{1,2})\W*", re.IGNORECASE)
#: What says no rating on its line: an aside such as ``(1 is strongly disagree)``, the end of the scale in ``5 / 7``.
_NO_RATING = re.compile(r"\([ \d]*[^\s\d()][^()\n]*\)|(?<=\d)\s*(?:/|out of)\s*7\b", re.IGNORECASE)
#: What follows the name of a rating on its line: the number at once or behind a colon, and no other number.
_RATING = re.compile(
    r"""(?:[^\d:=]*[:=])?(?:\W|_|\b(?:is|rating|score)\b)*?"""
    r"""(?<![^\s*_"'`:=(\[|])(-?\d+(?:\.\d+)?)(?![^\s*_"'`)\]}|.,;:!])\D*""",
    re.IGNORECASE,
)
#: Most statements that have labels.
MOST_LABELS = 26 + 26**2


def labels(n: int) -> list[str]:
    """Labels of n statements: A to Z, then AA, AB, ..."""
    letters = [*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2))]
    return letters[:n]


def statements(received: Iterable[Message]) -> list[Message]:
    """Select the statements to judge, in the order of their labels; they come after any critique."""
    found: list[Message] = []
    for message in received:
        found = [] if message.act == CRITICISE.name else [*found, message]
    return [message for message in found if message.act.startswith(_STATEMENTS)]


def read_statement(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read the statement in the tagged block of a reply, ignoring the mediator's words around it.

    Raises
    ------
    Rejected
        If there is no such block, it is blank, or several blocks differ.
    """
    found = {each.strip() for each in _STATEMENT.findall(text)}
    if len(found) != 1:
        what = "several that differ" if found else "none"
        raise Rejected(f"one statement between <statement> and </statement> is needed; the reply has {what}")
    if not (statement := found.pop()):
        raise Rejected("the statement between <statement> and </statement> is blank")
    return Said(statement, statement)


def read_completion(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read the first non-blank line of a reply; a completion model may continue with other text.

    Raises
    ------
    Rejected
        If every line is blank.
    """
    first = next((line.strip().strip("\"'").strip() for line in text.splitlines() if line.strip()), "")
    if not first:
        raise Rejected("the statement is blank")
    return Said(first, first)


def read_written(call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read a statement written by a person, which needs no tags."""
    return read_statement(call, text, received) if _STATEMENT.search(text) else Said(text.strip(), text.strip())


def _ranks(text: str, n: int) -> dict[str, int]:
    """Rank of each label in a ranking such as ``B > A = C``, from 1; tied statements have equal ranks.

    Raises
    ------
    Rejected
        If a label is missing, unknown or given twice.
    """
    ranks: dict[str, int] = {}
    valid = labels(n)
    if items := _ITEM.findall(text):
        text = ">".join(label for _, label in sorted(items, key=lambda item: int(item[0])))
    # A sentence behind the ranking is no part of it.
    for group in text.strip().partition(". ")[0].strip(".").split(">"):
        rank = len(ranks) + 1
        for each in group.split("="):
            found = _LABEL.fullmatch(each.strip())
            label = found[1].upper() if found else each.strip()
            if label not in valid:
                raise Rejected(f"the ranking names {quoted(label, 20)}; the statements are {valid[0]} to {valid[-1]}")
            if label in ranks:
                raise Rejected(f"the ranking names statement {label} twice")
            ranks[label] = rank
    if missing := [label for label in valid if label not in ranks]:
        raise Rejected(f"the ranking leaves out {', '.join(missing)}; every statement is ranked once")
    return ranks


def _rankings(text: str) -> list[str]:
    """The texts of a reply that can be its ranking: in tags, a list, announced, or the last line with a sign."""
    if tagged := _TAGGED.findall(text):
        return list(tagged)
    if len(_ITEM.findall(text)) > 1:
        return [text]
    lines = [line for line in text.splitlines() if line.strip()]
    announced = _ANNOUNCED.findall(text)
    return announced or [line for line in lines if ">" in line or "=" in line][-1:] or lines[-1:]


def read_ranking(variable: str, call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read the ranking of the received statements: the rank of each under a variable, 1 for the best.

    The ranking is in a tagged block, after the word ranking and a colon, or on a separate line.

    Raises
    ------
    Rejected
        If it does not name every statement once, or if two tagged or two announced rankings differ.
    """
    shown = statements(received)
    found = [_ranks(each, len(shown)) for each in _rankings(text.replace("&gt;", ">"))]
    if not found:
        raise Rejected("a ranking such as <ranking>B > A</ranking> is needed; the reply is blank")
    if any(each != found[0] for each in found):
        raise Rejected("the reply has two rankings that contradict each other")
    ranks = zip(labels(len(shown)), shown, strict=True)
    return Said.numbers({_turn(message): {variable: found[0][label]} for label, message in ranks})


def read_ratings(names: Mapping[str, str], call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read the ratings of the one received statement, each on a line that begins with its name.

    Parameters
    ----------
    names : mapping of str to str
        Variable of each rating by the word with which its line begins.
    call, text, received
        As for any `parse`.

    Raises
    ------
    Rejected
        If a rating is missing, off the scale, one of several numbers, or does not directly follow its name.
    """
    ratings: dict[str, float] = {}
    told = _NO_RATING.sub(" ", text)
    for name, variable in names.items():
        lines = re.findall(rf"^[^\w\n]*(?:predicted[ \t]+)?{name}\b(.*\d.*)$", told, re.IGNORECASE | re.MULTILINE)
        read = [_RATING.fullmatch(line) for line in lines]
        found = {float(each[1]) for each in read if each}
        if len(found) != 1 or not all(read):
            what = "several numbers, or one that is no rating" if lines else "none"
            raise Rejected(f"a line such as `{name.capitalize()}: 5` is needed; the reply has {what}")
        if (value := found.pop()) not in LIKERT:
            raise Rejected(f"{name} {value:g} is off the scale; valid: whole numbers from {LIKERT[0]} to {LIKERT[-1]}")
        ratings[variable] = int(value)
    return Said.numbers({_turn(statements(received)[-1]): ratings})


def _turn(message: Message) -> int:
    """The turn of a statement."""
    if message.turn is None:
        raise Rejected("a statement from outside has no turn")
    return message.turn


#: Words with which ratings begin, and their variables: those of citizens, and those that a predictor says of one.
_RATED = {"agreement": "agreement", "quality": "quality"}
_PREDICTED = {"agreement": PREDICTED}


def _ranking(received: tuple[Message, ...]) -> Form:
    """The form of a ranking of the statements received, by their labels."""
    shown = tuple(message.text for message in statements(received))
    return Form("ranking", tuple(labels(len(shown))), shown)


def _ratings(*names: str) -> dict[str, Any]:
    """The form of ratings of one statement, and the same scales in words for models."""
    told = {name.lower(): ", ".join(f"{point} = {label}" for point, label in zip(LIKERT, LABELS[name], strict=True))
            for name in names}  # fmt: skip
    form = Form("ratings", names, points=LIKERT, labels=tuple(LABELS[name] for name in names))
    return {"form": form, "values": {"quality": "", **told}}


_ASKED = asked_of_persons(Path(__file__).with_name("persons.toml"))
#: What a person is told besides where opinions stand among the statements.
OWN_STAND = _ASKED["standing-opinions"]
_act = partial(act, asked=_ASKED)
_FORMAL: dict[str, Any] = {"opinion": "none", "memory": "none", "after": "none", "formal": True}
_STATED: dict[str, Any] = {"parse": read_statement, "written": read_written, **_FORMAL, "opinion": "may"}

#: A citizen states its opinion.
STATE = _act("state", "opinion", memory="none")
#: A text that was written beforehand stands for a citizen's opinion.
SUBMIT = ActSpec("submit", template="", kind="opinion", memory="none", draws=0)
#: A mediator drafts a statement from the opinions.
DRAFT = _act("draft", "statement", **_STATED)
#: A mediator revises the winner after critiques.
REVISE = _act("revise", "statement", **_STATED)
#: A mediator puts a text that it did not draft before the group, such as the position statement.
PUT = ActSpec("put", template="", kind="statement", memory="none", draws=0, opinion="may")
#: A citizen ranks all statements.
RANK = _act("rank", "ballot", parse=partial(read_ranking, "rank"), form=_ranking, **_FORMAL)
#: A citizen rates one statement.
RATE = _act("rate", "rating", parse=partial(read_ratings, _RATED), **_ratings("Agreement", "Quality"), **_FORMAL)
#: A citizen rates the position statement, for agreement alone (D3).
RATE_POSITION = replace(
    RATE,
    name="rate-position",
    parse=partial(read_ratings, {"agreement": "agreement"}),
    person=_ASKED["rate-position"],
    **_ratings("Agreement"),
)
#: A citizen rates the statement that won, once it is known.
RATE_WINNER = replace(
    RATE,
    name="rate-winner",
    template="rate-winner",
    # Its text stands here, so that the pack that all other sessions share stays as it is.
    text=Path(__file__).with_name("winner.j2").read_text(encoding="utf-8"),
    scripted="rate",
    person=_ASKED["rate-winner"],
)
#: A predictor ranks all statements as the author of one opinion would.
PREDICT = _act("predict", "prediction", parse=partial(read_ranking, "predicted_rank"), form=_ranking, **_FORMAL)
#: A predictor rates one statement as the author of one opinion would.
PREDICT_RATING = _act(
    "predict-rating", "prediction", parse=partial(read_ratings, _PREDICTED), **_ratings("Agreement"), **_FORMAL
)
#: A citizen criticises the winner.
CRITICISE = _act("criticise", "critique", memory="none", opinion="may")
#: Somebody writes a question for discussion.
QUESTION = _act("question", "question", opinion="may", audience="nobody", memory="none", after="none", formal=True)
