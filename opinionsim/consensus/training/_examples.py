"""Examples from other sessions for few-shot drafters."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from opinionsim.consensus.training._training_data import read_ratings, statement_examples
from opinionsim.consensus.voting import power_mean
from opinionsim.errors import MeasurementError

#: Numbers of opinions of examples, and statements of each number to draw from (Bakker et al.; D4).
_SIZES, _BEST = (3, 4, 5), 10
#: Quality that an example is to exceed: neither good nor bad.
_NEUTRAL = 4


def examples(ratings: pd.DataFrame | str | Path, alpha: float = 0.0, best: int = _BEST) -> list[str]:
    """Choose examples for few-shot drafters: the best statements of groups of 3, 4 and 5, with question and opinions.

    Parameters
    ----------
    ratings : DataFrame, str or Path
        Ratings of quality and agreement, in the format of :func:`opinionsim.consensus.ratings`, or a file of them.
    alpha : float
        Inequality aversion of the power mean of agreement that orders statements: 0 for the mean, infinity for the
        minimum.
    best : int
        Number of statements for each group size, at least 1. A session draws its examples from these.

    Returns
    -------
    list of str
        One text per example, for the field `examples` of a drafter. A session ignores examples with its own
        question.

    Raises
    ------
    SpecError
        If ratings lack columns or are not valid.
    MeasurementError
        If no statement of a group of 3, 4 or 5 has a mean quality above neutral.
    """
    table = read_ratings(ratings, "quality")
    agreed = read_ratings(ratings, "agreement").groupby(["question", "statement", "citizen"])["agreement"].mean()
    welfare = agreed.dropna().groupby(["question", "statement"]).agg(lambda each: power_mean(each.to_numpy(), alpha))
    found = []
    for size in _SIZES:
        own = [
            (welfare[each.question, each.statement], each)
            for each in statement_examples(table)
            if len(each.opinions) == size and each.quality > _NEUTRAL and (each.question, each.statement) in welfare
        ]
        for _, each in sorted(own, key=lambda pair: -pair[0])[:best]:
            opinions = [f"Opinion {number}: {text}" for number, text in enumerate(each.opinions, 1)]
            found.append("\n".join([f"Question: {each.question}", *opinions, f"Statement: {each.statement}"]))
    if not found:
        raise MeasurementError("ratings: no statement of a group of 3, 4 or 5 has a mean quality above 4")
    return found
