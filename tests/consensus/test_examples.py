"""Examples that few-shot drafters are shown: the best statements of other groups."""

from __future__ import annotations

import pandas as pd
import pytest

from opinionsim.consensus import examples
from opinionsim.errors import MeasurementError


def _ratings(size: int, statements: dict[str, tuple[list[float], float]], question: str = "Should it?") -> pd.DataFrame:
    """Ratings of statements by a group: agreement of each citizen, and the quality that all give."""
    return pd.DataFrame(
        {
            "group": f"g{size}",
            "round": 0,
            "citizen": citizen,
            "candidate": text,
            "policy": "zero-shot",
            "left_out": None,
            "pass": 1,
            "agreement": agreement[citizen],
            "quality": quality,
            "question": question,
            "opinion": f"I, {citizen}, think so.",
            "statement": text,
        }
        for text, (agreement, quality) in statements.items()
        for citizen in range(size)
    )


def test_an_example_tells_question_opinions_and_statement() -> None:
    (text,) = examples(_ratings(3, {"We may.": ([5, 5, 5], 6)}))
    assert text.split("\n") == [
        "Question: Should it?",
        "Opinion 1: I, 0, think so.",
        "Opinion 2: I, 1, think so.",
        "Opinion 3: I, 2, think so.",
        "Statement: We may.",
    ]


def test_statements_of_quality_come_in_the_order_of_welfare() -> None:
    # The three vectors of D6: the mean, and the least agreement, put another one first.
    ratings = _ratings(3, {"One.": ([7, 7, 1], 5), "Two.": ([4, 4, 4], 5), "Bad.": ([7, 7, 7], 4)})
    assert [text.split(": ")[-1] for text in examples(ratings)] == ["One.", "Two."]
    assert [text.split(": ")[-1] for text in examples(ratings, alpha=float("inf"))] == ["Two.", "One."]
    assert [text.split(": ")[-1] for text in examples(ratings, best=1)] == ["One."]


def test_groups_of_other_sizes_and_poor_statements_give_no_example() -> None:
    with pytest.raises(MeasurementError, match="no statement of a group of 3, 4 or 5 has a mean quality above 4"):
        examples(pd.concat([_ratings(2, {"Two.": ([7, 7], 7)}), _ratings(4, {"Poor.": ([7, 7, 7, 7], 3)})]))
