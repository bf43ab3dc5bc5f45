"""Analyses of a dialogue: their schema, how to read them from replies, and the ids of their items over time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from opinionsim.errors import Rejected
from opinionsim.foundation.streams import canonical_json
from opinionsim.messages import Message, Said

#: A text of an item: one that says something.
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
#: Texts of items; blank ones are left out.
_Texts = Annotated[
    tuple[_Words, ...],
    BeforeValidator(lambda told: [each for each in told if each != ""] if isinstance(told, list) else told or ()),
]
#: An item may have changed as long as it shares this part of all words of both texts.
_ALIKE = 0.5
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_CITED = re.compile(r"\[(q\d+)\]")


class _Fields(BaseModel):
    """Fields of an analysis; further fields in a reply are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Counterargument(_Fields):
    """An argument against a claim."""

    counterargument: _Words
    rebuttal: Annotated[_Words | None, BeforeValidator(lambda text: text or None)] = None


class ArgumentClaim(_Fields):
    """A claim in the dialogue, with the arguments for and against it."""

    claim: _Words
    premises: _Texts = ()
    """Reasons given for it; empty if nobody gave one."""
    counterarguments: tuple[Counterargument, ...] = ()
    turns: tuple[int, ...] = ()
    """Turns that make it; without any, nothing in the dialogue supports the claim."""


class FallacyNote(_Fields):
    """The name of a fallacy, and the turn that contains it."""

    turn: int
    fallacy: _Words
    explanation: str = ""


class AnalysisText(_Fields):
    """The analysis that an analyzer writes (ArgsBase; C3)."""

    summary: _Words
    points_of_agreement: _Texts = ()
    open_questions: _Texts = ()
    argument_map: tuple[ArgumentClaim, ...] = ()
    fallacies: tuple[FallacyNote, ...] = ()


def read_analysis(most: int, call: str, text: str, received: tuple[Message, ...]) -> Said:
    """Read the analysis in a reply and publish it as canonical JSON, ignoring words around it.

    Parameters
    ----------
    most : int
        Maximum number of sentences in the summary, and of items in each list; the rest is left out.
    call, text, received
        As for any `parse`. Cited turns that were not received are left out, and so are fallacies in them.

    Raises
    ------
    Rejected
        If the reply contains no such JSON object.
    """
    found, reason = None, "it holds no JSON object"
    for candidate in _objects(text):
        try:
            found = AnalysisText.model_validate(candidate)
            break
        except ValidationError as error:
            place = ".".join(map(str, error.errors()[0]["loc"]))
            reason = f"its {place} is missing, empty or of another form than was asked for"
    if found is None:
        raise Rejected(f"an analysis as a JSON object is needed; {reason}")
    shown = {message.turn for message in received}
    claims = []
    for claim in found.argument_map[:most]:
        turns = tuple(turn for turn in claim.turns if turn in shown)
        cut = {"premises": claim.premises[:most], "counterarguments": claim.counterarguments[:most]}
        claims.append(claim.model_copy(update={"turns": turns, **cut}))
    whole = {
        "summary": " ".join(_SENTENCE_END.split(found.summary)[:most]),
        "points_of_agreement": found.points_of_agreement[:most],
        "open_questions": found.open_questions[:most],
        "argument_map": tuple(claims),
        "fallacies": tuple(each for each in found.fallacies if each.turn in shown)[:most],
    }
    kept = found.model_copy(update=whole)
    return Said(canonical_json(kept.model_dump(mode="json", exclude_defaults=True)), kept)


def _objects(text: str) -> Iterator[Any]:
    """JSON objects in a text, in order, ignoring other text."""
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
            yield found
        except ValueError:
            end = place + 1
        place = text.find("{", end)


Change = Literal["new", "kept", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class AnalysisItem:
    """An item of an analysis, compared with the previous analysis.

    Attributes
    ----------
    id : str
        A letter for its section and a number: ``a`` for agreements, ``q`` for open questions, ``c`` for claims. An item
        with the same or a similar text as an earlier item keeps that item's id; no two items share an id.
    text : str
        Its text.
    change : {"new", "kept", "changed", "gone"}
        How it changed since the previous analysis; an item that is gone appears once more, with its last text.
    claim : ArgumentClaim or None
        For a claim: its premises, counterarguments and turns.
    """

    id: str
    text: str
    change: Change
    claim: ArgumentClaim | None = None

    @property
    def uncited(self) -> bool:
        """Whether this is a claim that cites no turn."""
        return self.claim is not None and not self.claim.turns


@dataclass(frozen=True, slots=True)
class Analysis:
    """One valid analysis of a dialogue, with ids.

    Attributes
    ----------
    turn : int
        The analyzer's turn.
    summary : str
        The dialogue in a few sentences.
    agreements, questions, claims : tuple of AnalysisItem
        The items of each section in order, followed by those that are gone since the previous analysis.
    fallacies : tuple of FallacyNote
        The fallacies.
    """

    turn: int
    summary: str
    agreements: tuple[AnalysisItem, ...]
    questions: tuple[AnalysisItem, ...]
    claims: tuple[AnalysisItem, ...]
    fallacies: tuple[FallacyNote, ...]


def analyses(texts: Sequence[tuple[int, str]]) -> list[Analysis]:
    """The valid analyses among published texts, with ids that depend only on the texts and their order.

    Parameters
    ----------
    texts : sequence of (int, str)
        Turn and text of each turn of kind ``analysis``, in order. A text that is not a valid analysis is skipped, and
        the previous analysis stays current; its turn shows how old it is.
    """
    sections = [_Ids(letter) for letter in "aqc"]
    found = []
    for turn, text in texts:
        try:
            told = AnalysisText.model_validate_json(text)
        except ValidationError:
            continue
        said: tuple[Any, ...] = (told.points_of_agreement, told.open_questions, told.argument_map)
        agreed, asked, claims = (ids.advance(each) for ids, each in zip(sections, said, strict=True))
        found.append(Analysis(turn, told.summary, agreed, asked, claims, told.fallacies))
    return found


def cited(text: str) -> list[str]:
    """Ids of the open questions that a text cites, as in ``[q3]``, each once, in order."""
    return list(dict.fromkeys(_CITED.findall(text)))


class _Ids:
    """Assigns ids in one section, analysis by analysis."""

    def __init__(self, letter: str) -> None:
        self._letter, self._given = letter, 0
        #: Items of the last analysis by the numbers of their ids.
        self._last: dict[int, AnalysisItem] = {}

    def advance(self, said: Sequence[str | ArgumentClaim]) -> tuple[AnalysisItem, ...]:
        """The items of the next analysis."""
        texts = [each if isinstance(each, str) else each.claim for each in said]
        # Equal texts first, so that no item takes the id of another that has not changed; then those most alike.
        likeness = sorted(
            (-_likeness(text, old.text), place, number)
            for place, text in enumerate(texts)
            for number, old in self._last.items()
        )
        numbers = dict[int, int]()
        for negative, place, number in likeness:
            if -negative >= _ALIKE and place not in numbers and number not in numbers.values():
                numbers[place] = number
        before, self._last = self._last, {}
        for place, (text, each) in enumerate(zip(texts, said, strict=True)):
            claim = None if isinstance(each, str) else each
            change: Change = "new"
            if place in numbers:
                old = before.pop(numbers[place])
                change = "kept" if (old.text, old.claim) == (text, claim) else "changed"
            else:
                self._given += 1
            number = numbers.get(place, self._given)
            self._last[number] = AnalysisItem(f"{self._letter}{number}", text, change, claim)
        return (*self._last.values(), *(replace(item, change="gone") for item in before.values()))


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))


def _likeness(one: str, other: str) -> float:
    """Similarity of two texts: 2 for the same words in the same order, otherwise the share of common words."""
    left, right = _words(one), _words(other)
    if left == right:
        return 2.0
    both = set(left) | set(right)
    return len(set(left) & set(right)) / len(both) if both else 0.0
