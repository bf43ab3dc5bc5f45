"""The classifier of agents that follow equations, which reads numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opinionsim.classifiers._base import Item, PlainClassifier, check_items
from opinionsim.opinions import OpinionEstimates
from opinionsim.registry import part


@part("classifier", name="exact")
class ExactClassifier(PlainClassifier):
    """Reads the opinion from a text that is a number, as agents of classic models write it.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2 to 2. A number need not be one of its points, so probabilities are NaN.
    """

    name = "exact"

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        """The number in each text; no opinion if the text is not a finite number."""
        check_items(items, self)
        value = np.array([_number(item.text) for item in items])
        off_scale = np.isnan(value).astype(float)
        return OpinionEstimates(self.scale, np.full((len(value), len(self.scale)), np.nan), off_scale, value)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
