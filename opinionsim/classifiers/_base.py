"""The contract of a text classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.topics import Claim

__all__ = ["Classifier"]


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
