"""The contract of a text classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.messages import Ask
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.topics import Claim

if TYPE_CHECKING:
    from opinionsim.llm import Endpoint

__all__ = ["AskingClassifier", "Classifier", "asks", "check_inputs"]


class Classifier(Protocol):
    """Codes an author's opinion of a claim from a text.

    Text classifiers are deterministic, independent of batch composition, and free to code equal inputs
    once. The scale is an argument of the constructor.
    """

    name: str
    """Name under which :func:`opinionsim.load_classifier` builds it."""
    scale: OpinionScale
    """The scale it codes on."""

    @property
    def options(self) -> dict[str, Any]:
        """Everything beside name and scale that can change a result, as JSON values; enters identities."""
        ...

    def classify(self, claims: Sequence[Claim], texts: Sequence[str]) -> OpinionEstimates:
        """Code one opinion a text.

        Parameters
        ----------
        claims : sequence of Claim, length n
            The claim each text is about.
        texts : sequence of str, length n
            What the author wrote.

        Returns
        -------
        OpinionEstimates
            n rows.
        """
        ...


class AskingClassifier(Classifier, Protocol):
    """A classifier that asks a chat model.

    Inside a run it is called by :meth:`rate` alone, so that its questions are calls of the run: journalled, within
    slots and budget, and never asked twice. It codes every text by itself, equal ones included: a chat model need
    not answer alike. `options` hold the name of the model under ``model``.
    """

    endpoint: Endpoint
    """Who answers."""

    async def rate(self, ask: Ask, claim: Claim, text: str) -> OpinionEstimates:
        """Code the opinion one text expresses.

        Parameters
        ----------
        ask : Ask
            The way to its model. Names of parts are ``judge``, and ``judge.2``, ``judge.3``, ... for more.
        claim : Claim
            What the text is about.
        text : str
            What the author wrote.

        Returns
        -------
        OpinionEstimates
            One row.
        """
        ...


def asks(classifier: Classifier | None) -> TypeGuard[AskingClassifier]:
    """Whether a classifier asks a chat model."""
    return hasattr(classifier, "rate")


def check_inputs(claims: Sequence[Claim], texts: Sequence[str]) -> None:
    """Refuse what :meth:`Classifier.classify` is not made for.

    Raises
    ------
    SpecError
        If a claim is no Claim, or a text no str.
    MeasurementError
        If there are not as many claims as texts.
    """
    for what, given, kind in (("claims", claims, Claim), ("texts", texts, str)):
        if isinstance(given, str | Claim):
            raise SpecError(f"classify: {what} must be a sequence with one entry for each text; got {given!r}")
        wrong = [entry for entry in given if not isinstance(entry, kind)]
        if wrong:
            how = "Claim objects, such as topic.claim('truth')" if kind is Claim else "texts (str)"
            raise SpecError(f"classify: {what} must be {how}; got {wrong[0]!r}")
    if len(claims) != len(texts):
        raise MeasurementError(f"classify needs one claim for each text; got {len(claims)} claims, {len(texts)} texts")
