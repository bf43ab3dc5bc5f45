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
    """The context in which a text was written; empty fields are not given to the classifier.

    Attributes
    ----------
    received : tuple of str
        Texts the author had read in that turn, in order.
    persona : tuple of (str, str)
        Attributes of the author as pairs of name and value.
    assigned_opinion : float or None
        The opinion the author was told to hold at the start.

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
    """An item that a classifier codes: a text, with the claim, second text and context that coding needs.

    Attributes
    ----------
    text : str
        The author's text.
    claim : Claim or None
        The claim that the text is about; None where there is none.
    about : str or None
        A second text, where two are judged together: the one that the first answers or refers to.
    context : Context or None
        The context of writing, given where the instrument asks for it.
    fork : Prompt or None
        What the author was shown, and may have said, for a classifier that asks the author itself.

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
        The claim that all texts are about, or that each is about; default none.

    Returns
    -------
    list of Item
        n, in order.

    Raises
    ------
    SpecError
        If a text is no str or a claim no Claim.
    MeasurementError
        If there are not as many claims as texts.
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
    """Codes items: an author's opinion of a claim from a text, or another variable that its scale measures.

    Classifiers that compute are deterministic, independent of batch composition, and free to code equal items once.
    The scale is an argument of the constructor.
    """

    name: str
    """Name under which :func:`opinionsim.load_classifier` builds it."""
    scale: OpinionScale
    """The scale it codes on."""
    needs_claim: bool
    """Whether an item without a claim is an error."""
    reads_context: bool
    """Whether it reads :attr:`Item.context`; a context that it does not read cannot change a result."""
    reads_about: bool
    """Whether it reads :attr:`Item.about`."""

    @property
    def options(self) -> dict[str, Any]:
        """All settings beside name and scale that can change a result, as JSON values; they enter identities."""
        ...

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Code items, one row each.

        Parameters
        ----------
        items : sequence of Item, length n
            Items to code; :func:`items_of` makes them of texts and claims.

        Returns
        -------
        OpinionEstimates
            n rows.

        Raises
        ------
        SpecError
            If an entry is no Item, or has no claim where one is needed.
        """
        ...


class PlainClassifier:
    """A classifier of one text at a time without options, unless a class says otherwise.

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

    Inside a run it is called by :meth:`rate` alone, so that its questions are calls of the run: journalled, within
    slots and budget, and never asked twice. It codes every item by itself, equal ones included: a chat model need
    not answer alike. `options` hold the name of the model under ``model``.
    """

    endpoint: Endpoint | None
    """Who answers; None for the author of the text, from a fork of its context (:attr:`Item.fork`)."""

    async def rate(self, ask: Ask, item: Item) -> OpinionEstimates:
        """Code one item.

        Parameters
        ----------
        ask : Ask
            Calls its model. Names of calls are ``judge``, and ``judge.2``, ``judge.3``, ... for more. Pass it the
            `parse` that reads replies: :func:`opinionsim.messages.take_as_is` if the classifier reads them itself.
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
        If an entry is no Item, or has no claim where the classifier needs one.
    """
    if isinstance(items, str | Item):
        raise SpecError(f"classifier {classifier.name!r} takes a sequence of items; got {items!r} alone")
    for item in items:
        if not isinstance(item, Item):
            raise SpecError(
                f"classifier {classifier.name!r} takes Item objects; got {item!r}. Make items from texts with "
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
    """A classifier that scores pairs of texts by real numbers: an item's text, and its second text.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2, -1, 0, 1, 2. A score is no point of it, so that probabilities are NaN.
    """

    name: str
    reads_about = True

    @abstractmethod
    def _score(self, item: Item) -> float:
        """Score of an item neither of whose texts is blank."""

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Score pairs, equal ones once.

        Parameters
        ----------
        items : sequence of Item, length n
            The statement as text, the opinion as second text.

        Returns
        -------
        OpinionEstimates
            n rows with the scores as values. Where a text is blank, the value is NaN and the off-scale mass 1.

        Raises
        ------
        SpecError
            If an entry is no Item, or has no second text, or no claim where one is needed.
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
