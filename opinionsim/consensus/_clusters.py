"""Topics of questions, found by clustering their texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from opinionsim.errors import MeasurementError, SpecError, packages, whole_number
from opinionsim.foundation.streams import stream

#: Phrases that nearly every question of the source has (Bakker et al. 2022; D2): of its government, and four names of
#: its country.
BRITISH_GOVERNMENT = (
    "should the government", "should we", "government", "United Kingdom", "Great Britain", "Britain", "UK",
)  # fmt: skip
#: Numbers of clusters that the source tried.
_KS = range(5, 301, 5)
#: What needs packages of an extra.
_WHAT = "clustering of questions"
#: Makes vectors of texts: a function, or the folder of a model.
Encoder: TypeAlias = Callable[[list[str]], Any] | str | Path


@dataclass(frozen=True, eq=False)
class Clusters:
    """Questions by cluster."""

    labels: np.ndarray
    """The cluster of each question, from 0; shape (n,)."""
    k: int
    """Number of clusters with the largest silhouette, the smallest in case of ties."""
    silhouettes: Mapping[int, float]
    """Mean silhouette, -1 to 1, for each number of clusters tried."""
    vectors: np.ndarray
    """Vector of each question; shape (n, d)."""


def cluster_questions(
    questions: Sequence[str],
    *,
    encoder: Encoder | None = None,
    ks: Iterable[int] | None = None,
    restarts: int = 10,
    without: Sequence[str] = (),
    seed: int = 0,
) -> Clusters:
    """Cluster questions by k-means, choosing the number of clusters by silhouette (D2).

    Parameters
    ----------
    questions : sequence of str, length n
        The questions.
    encoder : callable, str or Path, optional
        Takes the list of texts and returns vectors (n, d), such as the method `encode` of a sentence encoder; or the
        folder of a model of ``transformers``, whose last layer is averaged over the tokens of a text (extra ``local``).
        Default TF-IDF of single words. The source used a sentence encoder with d = 512.
    ks : iterable of int, optional
        Numbers of clusters to try: at least 2, and fewer than there are different vectors. Default those of 5, 10, ...
        300 that meet this condition.
    restarts : int
        Number of k-means starts for each number of clusters, >= 1; the start with the least sum of squares counts. The
        source used 100.
    without : sequence of str
        Phrases to remove from the texts beforehand regardless of case, longer ones first, such as
        :data:`BRITISH_GOVERNMENT`.
    seed : int
        Seed of the starts.

    Returns
    -------
    Clusters
        Euclidean distances throughout.

    Raises
    ------
    SpecError
        If there are too few questions, an argument is not valid, or the folder cannot be used.
    MeasurementError
        If the extra ``consensus``, or for a folder ``local``, is not installed, or the encoder does not return one
        vector of finite numbers for each text.
    """
    if isinstance(questions, str) or not all(isinstance(each, str) and each.strip() for each in questions):
        raise SpecError("questions: must be non-blank texts")
    whole_number("restarts", restarts, 1, SpecError)
    vectors = question_vectors(questions, encoder, without)
    different = len({row.tobytes() for row in vectors})
    tried = [k for k in _KS if k < different] if ks is None else sorted(set(ks))
    for k in tried or [0]:
        if not 2 <= whole_number("ks", k, 0, SpecError) < different:
            raise SpecError(
                f"ks: from 2 to {different - 1} is valid, as {different} questions differ; got {k or 'none'}"
            )
    start = int(stream(seed, "clusters of questions").integers(2**31))
    cluster, measures = packages(_WHAT, "consensus", "sklearn.cluster", "sklearn.metrics")
    found = {k: cluster.KMeans(k, n_init=restarts, random_state=start).fit_predict(vectors) for k in tried}
    silhouettes = {k: float(measures.silhouette_score(vectors, labels)) for k, labels in found.items()}
    best = max(tried, key=silhouettes.__getitem__)
    return Clusters(found[best], best, silhouettes, vectors)


def question_vectors(questions: Sequence[str], encoder: Encoder | None = None, without: Sequence[str] = ()) -> Any:
    """Vectors of questions for distances, shape (n, d); see :func:`cluster_questions`."""
    phrases = "|".join(map(re.escape, sorted(without, key=len, reverse=True)))
    apart = re.compile(rf"(?<!\w)(?:{phrases})(?!\w)|\s" if phrases else r"\s", re.IGNORECASE)
    texts = [" ".join(filter(None, apart.split(each))) for each in questions]
    found = (encoder if callable(encoder) else _tf_idf if encoder is None else partial(_averaged, Path(encoder)))(texts)
    vectors = np.asarray(found, dtype=float)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise MeasurementError(
            f"encoder: needs one vector of finite numbers for each of {len(texts)} texts; got shape {vectors.shape}"
        )
    return vectors


def _tf_idf(texts: list[str]) -> Any:
    (text,) = packages(_WHAT, "consensus", "sklearn.feature_extraction.text")
    try:
        return text.TfidfVectorizer().fit_transform(texts).toarray()
    except ValueError:  # of an empty vocabulary
        raise SpecError("questions: contain no usable words") from None


def _averaged(folder: Path, texts: list[str]) -> np.ndarray:
    """The last layer of a local model, averaged over the tokens of each text."""
    if not folder.is_dir():
        raise SpecError(f"encoder: {str(folder)!r} is not a folder; give that of a transformers model, or a callable")
    _, transformers = packages(_WHAT, "local", "torch", "transformers")
    try:
        read = transformers.pipeline("feature-extraction", model=str(folder))
        return np.array([np.mean(layer[0], axis=0) for layer in read(texts, truncation=True)])
    except Exception as error:  # each file format has errors of its own
        raise SpecError(f"encoder: {str(folder)!r} cannot be used: {' '.join(str(error).split())[:200]}") from error
