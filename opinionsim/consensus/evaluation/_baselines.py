"""Baselines of predicted agreement, which need no model of opinions."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from opinionsim.classifiers import Item, PairClassifier
from opinionsim.errors import SpecError, meant, packages, whole_number
from opinionsim.foundation.streams import digest, stream
from opinionsim.opinions import OpinionScale
from opinionsim.registry import part

#: A score of a statement and an opinion.
_Score = Callable[[str, str], float]
#: A word: letters and digits of any script. For English texts these are the words of the package rouge-score.
_WORD = re.compile(r"[^\W_]+")


@part("classifier", name="baseline")
class BaselineClassifier(PairClassifier):
    """Predicts how far the author of an opinion agrees with a statement, by a simple rule.

    The text of an item is the statement, and the second text (`about`) is the opinion. A trained model or language
    model should predict better than these baselines.

    Parameters
    ----------
    scale : OpinionScale, optional
        The scale; default -2 to 2. Scores are real numbers with their own range, not points of the scale, so
        probabilities of points are NaN.
    method : {"tfidf", "longest", "rouge1", "rouge2", "rougeL", "bleu", "random"}
        The score:

        - ``tfidf``: cosine of the words' tf-idf weights, in [0, 1]. The inverse document frequency uses only these two
          texts and is smoothed: 1 for words of both, 1 + log 1.5 for words of one. A score therefore depends only on
          its pair.
        - ``longest``: number of characters of the statement.
        - ``rouge1``, ``rouge2``, ``rougeL``: F1 of the words, pairs of words or longest common subsequence of words
          that both texts have, in [0, 1].
        - ``bleu``: BLEU of the statement with the opinion as its reference, in [0, 1]: one sentence, tokens of 13a,
          exponential smoothing, without orders for which the statement is too short.
        - ``random``: uniform in [0, 1), drawn from the two texts and `seed`.

    seed : int
        Seed of ``random``, 0 or more; no other method takes it.

    Raises
    ------
    SpecError
        If the method is unknown, or the seed is not valid or would be ignored.
    MeasurementError
        If the method needs a package of the extra ``consensus`` that is not installed.

    Notes
    -----
    The baselines of Bakker et al. 2022 (D5) and of the Habermas Machine (longest statement, D8), and a random one.
    """

    name = "baseline"

    def __init__(self, scale: OpinionScale | None = None, *, method: str, seed: int = 0) -> None:
        if method not in list(_METHODS):
            raise SpecError(f"method: unknown {method!r}{meant(method, _METHODS)}; valid: {', '.join(_METHODS)}")
        whole_number("seed", seed, 0)
        if seed and method != "random":
            raise SpecError(f"seed: the method {method!r} makes no draws; leave out seed, or use method random")
        super().__init__(scale)
        self._options = {"method": method, **({"seed": seed} if method == "random" else {})}
        self._method = _METHODS[method](method, seed)

    def _score(self, item: Item) -> float:
        return self._method(item.text, str(item.about))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _tfidf(method: str, _: int) -> _Score:
    extraction = _library("sklearn.feature_extraction.text", method)

    def score(statement: str, opinion: str) -> float:
        if not _words(statement) or not _words(opinion):
            return 0.0
        # Rows have the length 1, so that their product is the cosine.
        rows = extraction.TfidfVectorizer(analyzer=_words).fit_transform([statement, opinion])
        return min(1.0, float((rows[0] @ rows[1].T).toarray()[0, 0]))

    return score


def _rouge(method: str, _: int) -> _Score:
    # The package's own tokenizer knows the letters a to z alone.
    words = SimpleNamespace(tokenize=_words)
    scorer = _library("rouge_score.rouge_scorer", method).RougeScorer([method], tokenizer=words)
    return lambda statement, opinion: float(scorer.score(opinion, statement)[method].fmeasure)


def _bleu(method: str, _: int) -> _Score:
    metric = _library("sacrebleu.metrics", method).BLEU(effective_order=True)
    return lambda statement, opinion: min(1.0, float(metric.sentence_score(statement, [opinion]).score) / 100)


_METHODS: dict[str, Callable[[str, int], _Score]] = {
    "tfidf": _tfidf,
    "longest": lambda *_: lambda statement, opinion: float(len(statement.strip())),
    "rouge1": _rouge,
    "rouge2": _rouge,
    "rougeL": _rouge,
    "bleu": _bleu,
    "random": lambda _, seed: lambda *texts: float(stream(seed, "random baseline", 0, *map(digest, texts)).random()),
}


def _library(module: str, method: str) -> Any:
    what, otherwise = f"classifier 'baseline' with the method {method!r}", "; the methods longest and random need none"
    return packages(what, "consensus", module, otherwise=otherwise)[0]
