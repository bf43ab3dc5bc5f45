"""The contract of a text classifier, and the items it codes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.messages import Ask, Prompt
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.topics import Claim

if TYPE_CHECKING:
    from opinionsim.llm import Endpoint


@dataclass(frozen=True, slots=True)
class Context:
    """The context in which a text was written. The classifier does not receive empty fields.

    Attributes
    ----------
    received : tuple of str
        Texts that the author read in that turn, in order.
    persona : tuple of (str, str)
        Attributes of the author as pairs of name and value.
    assigned_opinion : float or None
        The opinion that was assigned to the author at the start.

    Raises
    ------
    SpecError
        If an attribute has another type.
    """

    received: tuple[str, ...] = ()
    persona: tuple[tuple[str, str], ...] = ()
    assigned_opinion: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.received, tuple) or not all(isinstance(text, str) for text in self.received):
            raise SpecError(f"Context: received must be a tuple of texts (str); got {self.received!r}")
        if not isinstance(self.persona, tuple) or not all(map(_is_attribute, self.persona)):
            raise SpecError(
                f"Context: persona must be a tuple of pairs of str, such as (('name', 'Ann'),); got {self.persona!r}"
            )
        held = self.assigned_opinion
        if held is not None and not (isinstance(held, Real) and not isinstance(held, bool) and math.isfinite(held)):
            raise SpecError(f"Context: assigned_opinion must be a finite number or None; got {held!r}")


@dataclass(frozen=True, slots=True)
class Item:
    """A text for a classifier to code, with the claim, second text and context that the classifier needs.

    Attributes
    ----------
    text : str
        The author's text.
    claim : Claim or None
        The claim that the text is about, if any.
    about : str or None
        A second text, which the first answers or refers to, for classifiers that judge two texts together.
    context : Context or None
        The context of writing, if the instrument asks for it.
    fork : Prompt or None
        The messages that the author saw, possibly with its own text, for a classifier that asks the author.

    Raises
    ------
    SpecError
        If an attribute has another type.
    """

    text: str
    claim: Claim | None = None
    about: str | None = None
    context: Context | None = None
    fork: Prompt | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise SpecError(f"Item: text must be a text (str); got {self.text!r}")
        if self.claim is not None and not isinstance(self.claim, Claim):
            raise SpecError(f"Item: claim must be a Claim, such as topic.claim('truth'), or None; got {self.claim!r}")
        if self.about is not None and not isinstance(self.about, str):
            raise SpecError(f"Item: about must be a second text (str) or None; got {self.about!r}")
        if self.context is not None and not isinstance(self.context, Context):
            raise SpecError(f"Item: context must be a Context or None; got {self.context!r}")


def _is_attribute(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) for part in given)


def items_of(texts: Sequence[str], claims: Claim | Sequence[Claim] | None = None) -> list[Item]:
    """Items of texts, for :meth:`Classifier.classify`.

    Parameters
    ----------
    texts : sequence of str, length n
        The authors' texts.
    claims : Claim, or sequence of Claim, length n, optional
        One claim for all texts, or one for each text; default none.

    Returns
    -------
    list of Item
        n, in order.

    Raises
    ------
    SpecError
        If a text is not a str or a claim is not a Claim.
    MeasurementError
        If the numbers of claims and texts differ.
    """
    if isinstance(texts, str | Claim):
        raise SpecError(f"items_of: texts must be a sequence with one text for each item; got {texts!r}")
    if isinstance(claims, str):
        raise SpecError(
            f"items_of: claims must be a Claim, such as topic.claim('truth'), or a sequence; got {claims!r}"
        )
    if claims is None or isinstance(claims, Claim):
        return [Item(text, claims) for text in texts]
    if len(claims) != len(texts):
        raise MeasurementError(f"items_of needs one claim for each text; got {len(claims)} claims, {len(texts)} texts")
    return [Item(text, claim) for text, claim in zip(texts, claims, strict=True)]


class Classifier(Protocol):
    """Reads an author's opinion of a claim, or another variable that its scale measures, from a text.

    Classifiers that compute are deterministic and independent of batch composition. They may code equal items once.
    The scale is an argument of the constructor.
    """

    name: str
    """Name for :func:`opinionsim.load_classifier`."""
    scale: OpinionScale
    """The scale it codes on."""
    needs_claim: bool
    """Whether an item without a claim is an error."""
    reads_context: bool
    """Whether it reads :attr:`Item.context`; otherwise, the context cannot change a result."""
    reads_about: bool
    """Whether it reads :attr:`Item.about`."""

    @property
    def options(self) -> dict[str, Any]:
        """All settings except name and scale that can change a result, as JSON values; they are part of identities."""
        ...

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Code items, one row each.

        Parameters
        ----------
        items : sequence of Item, length n
            Items to code; :func:`items_of` makes them from texts and claims.

        Returns
        -------
        OpinionEstimates
            n rows.

        Raises
        ------
        SpecError
            If an entry is not an Item, or lacks a claim that the classifier needs.
        """
        ...


class PlainClassifier:
    """A classifier of single texts. It has no options unless a subclass defines them.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale it codes on; default -2, -1, 0, 1, 2.
    """

    needs_claim = False
    reads_context = False
    reads_about = False

    def __init__(self, scale: OpinionScale | None = None) -> None:
        self.scale = OpinionScale() if scale is None else scale
        self._options: dict[str, Any] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Options that change results."""
        return dict(self._options)


class AskingClassifier(Classifier, Protocol):
    """A classifier that asks a chat model.

    Inside a run, the engine calls only :meth:`rate`. The questions are then calls of the run: the journal keeps them,
    slots and budget limit them, and none is asked twice. The classifier codes every item separately, including equal
    ones, because a chat model may answer them differently. `options` contain the name of the model under ``model``.
    """

    endpoint: Endpoint | None
    """The model that answers; None for the author of the text, from a fork of its context (:attr:`Item.fork`)."""

    async def rate(self, ask: Ask, item: Item) -> OpinionEstimates:
        """Code one item.

        Parameters
        ----------
        ask : Ask
            Calls the model. The calls are named ``judge``, ``judge.2``, ``judge.3``, ... Pass the `parse` function that
            reads replies, or :func:`opinionsim.messages.take_as_is` if the classifier reads them itself.
        item : Item
            The item to code.

        Returns
        -------
        OpinionEstimates
            One row.
        """
        ...


def asks(classifier: Classifier | None) -> TypeGuard[AskingClassifier]:
    """Whether a classifier asks a chat model."""
    return hasattr(classifier, "rate")


def asks_author(classifier: Classifier | None) -> bool:
    """Whether a classifier asks the author of a text itself, for the probabilities of its answers."""
    return asks(classifier) and classifier.endpoint is None


def check_items(items: Sequence[Item], classifier: Classifier) -> None:
    """Check that a classifier can code the items.

    Raises
    ------
    SpecError
        If an entry is not an Item, or lacks a claim that the classifier needs.
    """
    if isinstance(items, str | Item):
        raise SpecError(f"classifier {classifier.name!r} needs a sequence of items; got {items!r} alone")
    for item in items:
        if not isinstance(item, Item):
            raise SpecError(
                f"classifier {classifier.name!r} needs Item objects; got {item!r}. Make items from texts with "
                "opinionsim.classifiers.items_of(texts, claim)"
            )
        if item.claim is None and classifier.needs_claim:
            raise SpecError(
                f"classifier {classifier.name!r} needs a claim, but there is none for the text {item.text[:80]!r}"
            )


def claims_and_texts(items: Sequence[Item]) -> list[tuple[str, str]]:
    """Claim and text of each item, for classifiers that read neither context nor second texts."""
    return [("" if item.claim is None else item.claim.text, item.text) for item in items]


class PairClassifier(PlainClassifier, ABC):
    """A classifier that gives a real number to each pair of an item's text and its second text.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2, -1, 0, 1, 2. Scores are not points of the scale, so probabilities are NaN.
    """

    name: str
    reads_about = True

    @abstractmethod
    def _score(self, item: Item) -> float:
        """Score of an item with two texts that are not blank."""

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Score pairs, equal ones once.

        Parameters
        ----------
        items : sequence of Item, length n
            The statement as text, the opinion as second text.

        Returns
        -------
        OpinionEstimates
            n rows with the scores as values. If a text is blank, the value is NaN and the off-scale mass is 1.

        Raises
        ------
        SpecError
            If an entry is not an Item, or lacks a second text or a claim that the classifier needs.
        MeasurementError
            If an item cannot be scored.
        """
        check_items(items, self)
        for item in items:
            if item.about is None:
                raise SpecError(f"classifier {self.name!r} judges pairs; {item.text[:60]!r} has no second text (about)")
        known = {
            each: self._score(each) for each in dict.fromkeys(items) if each.text.strip() and str(each.about).strip()
        }
        value = np.array([known.get(item, math.nan) for item in items], dtype=float)
        nothing = np.full((len(value), len(self.scale)), np.nan)
        return OpinionEstimates(self.scale, nothing, np.isnan(value).astype(float), value)
