"""Splits of questions that hold out whole topics."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.spatial.distance import pdist, squareform

from opinionsim.consensus._clusters import question_vectors
from opinionsim.consensus._question_turns import same_question
from opinionsim.errors import SpecError, whole_number
from opinionsim.foundation.streams import stream

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: The sides of a split, under the names of the published questions: of known topics, and of topics held out.
TRAIN, TEST, HELD_OUT = "train", "iid_test", "ood_test"


def split_questions(
    questions: Sequence[str],
    topics: Sequence[object] | np.ndarray,
    vectors: ArrayLike | None = None,
    *,
    held_out: int = 300,
    test: float = 0.2,
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Split questions into training questions, test questions, and questions of held-out topics (D2).

    Each draw takes topics in random order until they have `held_out` questions. The function chooses the draw whose
    mean distance between held-out topics is closest to the mean distance between the others. The position of a topic is
    the mean vector of its questions.

    Parameters
    ----------
    questions : sequence of str, length n
        The questions, all different.
    topics : sequence, length n
        The topic of each question, such as the labels of :func:`cluster_questions`.
    vectors : array_like (n, d), optional
        Vector of each question, such as those of :func:`cluster_questions`; default TF-IDF.
    held_out : int
        Minimum number of questions in held-out topics, >= 1.
    test : float
        Share of the other questions to test on, in [0, 1); one question of each topic is always for training.
    draws : int
        Number of draws, >= 1.
    seed : int
        Seed of the draws.

    Returns
    -------
    DataFrame
        ``question, topic, split``, in the order given; split is ``train``, ``iid_test`` or ``ood_test``.

    Raises
    ------
    SpecError
        If an argument is not valid, a question occurs twice, or no draw has two topics on each side.
    """
    least, n_draws = whole_number("held_out", held_out, 1, SpecError), whole_number("draws", draws, 1, SpecError)
    if not 0 <= test < 1:
        raise SpecError(f"test: must be a share in [0, 1); got {test!r}")
    places = question_vectors(questions) if vectors is None else np.asarray(vectors, dtype=float)
    if not len(questions) == len(topics) == len(places) or places.ndim != 2:
        raise SpecError(
            "split: needs one topic and one vector per question; got "
            f"{len(questions)} questions, {len(topics)} topics and vectors of shape {places.shape}"
        )
    table = pd.DataFrame({"question": list(questions), "topic": list(topics), "split": TRAIN})
    check_split(table)
    if (twice := table["question"].map(same_question).duplicated()).any():
        raise SpecError(f"questions: {table['question'][twice].iloc[0]!r:.80} is there twice")
    topic, _ = pd.factorize(table["topic"])
    rng = stream(seed, "split of questions")
    held = np.isin(topic, _held_out(places, topic, least, n_draws, rng))
    order = rng.permutation(np.flatnonzero(~held))
    first = np.unique(topic[order], return_index=True)[1]
    tested = np.delete(order, first)[: round(test * len(order))]
    table.loc[held, "split"], table.loc[tested, "split"] = HELD_OUT, TEST
    return table


def _held_out(places: np.ndarray, topic: np.ndarray, least: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """The topics of the draw that counts."""
    sizes = np.bincount(topic)
    distances = squareform(pdist([places[topic == each].mean(axis=0) for each in range(len(sizes))]))
    best, found = np.inf, None
    for _ in range(draws):
        order = rng.permutation(len(sizes))
        n = int(np.searchsorted(np.cumsum(sizes[order]), least)) + 1
        if 2 <= n <= len(sizes) - 2:
            inside, outside = (distances[np.ix_(part, part)].sum() / (len(part) * (len(part) - 1)) for part in
                               (order[:n], order[n:]))  # fmt: skip
            if abs(inside - outside) < best:
                best, found = abs(inside - outside), order[:n]
    if found is None:
        raise SpecError(f"held_out: {least} of {len(topic)} leave one side with fewer than two of {len(sizes)} topics")
    return found


def check_split(table: pd.DataFrame, whole: Collection[str] = (HELD_OUT,)) -> None:
    """Refuse a split with a question, or a topic that must stay whole, on two sides.

    Parameters
    ----------
    table : DataFrame
        Rows of any kind, such as ratings, with columns ``question`` and ``split``, and ``topic`` if topics must stay
        whole. Questions, and topics, that differ only in case and spaces count as one.
    whole : collection of str
        Values of ``split`` that share no topic with any other; default ``ood_test``.

    Raises
    ------
    SpecError
        If a column or one of its values is missing, or a question or topic is on two sides; the message names it.
    """
    for column in (columns := ["question", "split", *(["topic"] if "topic" in table.columns else [])]):
        if column not in table.columns or table[column].isna().any():
            raise SpecError(f"split: needs the column {column}, with a value in each row")
    sides = table["split"].astype(str)
    of_topics = sides.where(sides.isin([whole] if isinstance(whole, str) else list(whole)), "all others")
    for column in (each for each in columns if each != "split"):
        units = table[column].astype(str).map(same_question)
        several = (sides if column == "question" else of_topics).groupby(units.to_numpy(), sort=False).nunique()
        for unit in several.index[several > 1]:
            found = " and ".join(sides[(units == unit).to_numpy()].unique())
            raise SpecError(f"split: the {column} {unit!r:.80} is on the sides {found}; keep it on one side")
