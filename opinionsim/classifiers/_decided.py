"""Instruments for numbers that come with a reply, such as ranks and ratings of messages."""

from __future__ import annotations

from collections.abc import Sequence

from opinionsim.classifiers._base import Item, PlainClassifier
from opinionsim.errors import MeasurementError
from opinionsim.opinions import OpinionEstimates
from opinionsim.registry import part

#: Names of the classifiers.
DECIDED, RECORDED = "decided", "recorded"


@part("classifier", name=DECIDED)
class DecidedClassifier(PlainClassifier):
    """Takes numbers that were read with a reply, such as ranks and ratings, instead of classifying texts.

    An instrument with this classifier contains the number of its variable for each message that the author saw
    (:class:`opinionsim.messages.Said`), or NaN if the author gave none.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale of the numbers; default -2 to 2.
    """

    name = DECIDED
    reads_about = True

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Raise an error, because a text alone does not tell what its numbers are about.

        Raises
        ------
        MeasurementError
            Always.
        """
        raise MeasurementError(f"classifier {self.name!r} reads numbers from turns, so it codes only texts of runs")


@part("classifier", name=RECORDED)
class RecordedClassifier(DecidedClassifier):
    """Takes ratings that people gave with their texts, instead of classifying texts.

    An instrument with this classifier contains the rating of its variable that a table gives with a text, or NaN if the
    table gives none.
    """

    name = RECORDED
    reads_about = False
