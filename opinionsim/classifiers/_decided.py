"""The instrument of decisions: the numbers that an act's reply says of the messages it was shown."""

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
    """Stands for numbers that are read with a reply, such as ranks and ratings, and classifies nothing.

    An instrument that names it has the number of its variable for each message that the author was shown
    (:class:`opinionsim.messages.Said`), NaN where the author says none.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale of the numbers; default -2 to 2.
    """

    name = DECIDED
    reads_about = True

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """Nothing: a text by itself does not say what its numbers are about.

        Raises
        ------
        MeasurementError
            Always.
        """
        raise MeasurementError(f"classifier {self.name!r} reads numbers from turns, so it codes only texts of runs")


@part("classifier", name=RECORDED)
class RecordedClassifier(DecidedClassifier):
    """Stands for ratings that people gave with their texts, and classifies nothing.

    An instrument that names it has the rating of its variable that came with a text from a table, NaN where none came.
    """

    name = RECORDED
    reads_about = False
