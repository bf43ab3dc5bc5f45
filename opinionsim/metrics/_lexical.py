"""Lexical diversity of texts: type-token ratios and HD-D of n-grams, and their first principal component."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError, whole_number
from opinionsim.metrics._opinion_rows import by_participants, require

#: Lengths of the n-grams that are measured.
_LENGTHS = range(1, 6)
#: Names of the ten measures: type-token ratio, then HD-D, of 1-grams to 5-grams.
LEXICAL = tuple(f"{measure}_{n}" for measure in ("ttr", "hdd") for n in _LENGTHS)
#: Counts of a corpus.
_COUNTED = ("n_texts", "n_missing", "n_words")
#: Tokens that HD-D draws, as McCarthy and Jarvis (2010) set it.
_SAMPLE = 42
#: A number with its commas and points, or letters and digits with the apostrophes between them.
_TOKEN = re.compile(r"\d+(?:[.,]\d+)+(?![^\W_])|[^\W_]+(?:'[^\W_]+)*")
#: Spellings of the apostrophe.
_APOSTROPHES = str.maketrans({"\N{RIGHT SINGLE QUOTATION MARK}": "'", "\N{MODIFIER LETTER APOSTROPHE}": "'"})
#: Measures that differ by less than this are equal except for rounding.
_ROUNDING = 1e-12


def tokenise(text: str) -> list[str]:
    """Split a text into its words, in lower case and in their order.

    Parameters
    ----------
    text : str
        Any text with separated words.

    Returns
    -------
    list of str
        A word is a sequence of letters and digits. A curly or straight apostrophe between two of them belongs to the
        word ("don't" is one word); a hyphen separates words ("well-known" is two). A number keeps the commas and points
        between its digits ("1,200.5" is one word). Other punctuation, symbols and emoji are ignored.

    Notes
    -----
    Texts are first converted to the normal form NFC. The function cannot split scripts without spaces (such as Chinese)
    or scripts whose vowels are combining marks (such as Devanagari) into words. For these, pass your own words to
    :func:`type_token_ratio` and :func:`hdd`.
    """
    return _TOKEN.findall(unicodedata.normalize("NFC", text).translate(_APOSTROPHES).lower())


def type_token_ratio(tokens: Sequence[str], n: int = 1) -> float:
    """Number of different n-grams over the number of n-grams.

    Parameters
    ----------
    tokens : sequence of str
        The words of a text in their order, as :func:`tokenise` gives them.
    n : int
        Words in an n-gram, at least 1.

    Returns
    -------
    float
        In (0, 1]; 1 if no n-gram occurs twice, NaN for fewer than n words.

    Raises
    ------
    MeasurementError
        If `tokens` is a text, or n is not a whole number of at least 1.

    Notes
    -----
    The ratio falls as a text gets longer, so compare texts of equal length or use :func:`hdd`.
    """
    return _ratio(_counts([_words(tokens)], n))


def hdd(tokens: Sequence[str], n: int = 1, sample: int = _SAMPLE) -> float:
    r"""HD-D: the expected type-token ratio of a random sample of the n-grams of a text.

    .. math:: \mathrm{HD\text{-}D} = \frac{1}{s} \sum_g \left[ 1 - \binom{N - f_g}{s} \bigg/ \binom{N}{s} \right]

    for the types g of N n-grams, which occur :math:`f_g` times each, and s n-grams drawn without replacement.

    Parameters
    ----------
    tokens : sequence of str
        The words of a text in their order, as :func:`tokenise` gives them.
    n : int
        Words in an n-gram, at least 1.
    sample : int
        n-grams drawn, s >= 1.

    Returns
    -------
    float
        In (0, 1], exact except for rounding; 1 if no n-gram occurs twice. NaN if there are fewer n-grams than `sample`.

    Raises
    ------
    MeasurementError
        If `tokens` is a text, or n or `sample` is not a whole number of at least 1.

    Notes
    -----
    McCarthy and Jarvis 2010, doi 10.3758/BRM.42.2.381, after their paper of 2007. Their sum of contributions is the
    same number. The measure does not depend on the length of the text, except that longer texts cover more topics.
    """
    return _expected_ratio(_counts([_words(tokens)], n), sample)


def lexical_diversity(texts: Iterable[str], sample: int = _SAMPLE) -> dict[str, float]:
    """The ten measures of lexical diversity of a corpus: type-token ratio and HD-D of 1-grams to 5-grams.

    Parameters
    ----------
    texts : iterable of str
        Texts to pool. :func:`tokenise` splits them into words; n-grams do not cross from one text into the next.
    sample : int
        n-grams that HD-D draws, at least 1.

    Returns
    -------
    dict of str to float
        ``ttr_1, ..., ttr_5, hdd_1, ..., hdd_5`` (:data:`LEXICAL`), each in (0, 1]. A type-token ratio is NaN without
        n-grams, and HD-D is NaN with fewer n-grams than `sample`.

    Raises
    ------
    MeasurementError
        If `texts` is a single text, or `sample` is not a whole number of at least 1.

    Notes
    -----
    The measures of the first case study of Plurals (Ashkinaze et al. 2024, appendix C; B8).
    """
    if isinstance(texts, str):
        raise MeasurementError("texts must be several texts, as in [text]; got a single one")
    return _measures([tokenise(text) for text in texts], sample)


def _measures(words: Sequence[Sequence[str]], sample: int) -> dict[str, float]:
    """The ten measures of texts given by their words."""
    counts = [_counts(words, n) for n in _LENGTHS]
    found = [*(_ratio(each) for each in counts), *(_expected_ratio(each, sample) for each in counts)]
    return dict(zip(LEXICAL, found, strict=True))


def _words(tokens: Sequence[str]) -> list[str]:
    """Tokens as a list; refuses anything except words."""
    if isinstance(tokens, str):
        raise MeasurementError("tokens must be a sequence of words, as tokenise(text) gives them; got a text")
    return list(tokens)


def _counts(texts: Sequence[Sequence[str]], n: int) -> np.ndarray:
    """How often each n-gram occurs in several texts together, one number per type."""
    whole_number("n", n, 1, MeasurementError)
    found = Counter(chain.from_iterable(zip(*(words[start:] for start in range(n)), strict=False) for words in texts))
    return np.fromiter(found.values(), dtype=np.int64, count=len(found))


def _ratio(counts: np.ndarray) -> float:
    """Types over tokens."""
    return len(counts) / int(counts.sum()) if len(counts) else float("nan")


def _expected_ratio(counts: np.ndarray, sample: int) -> float:
    """Expected types over tokens of a sample."""
    total, drawn = int(counts.sum()), whole_number("sample", sample, 1, MeasurementError)
    if total < drawn:
        return float("nan")
    # Types of one frequency have one probability of being drawn.
    frequency, types = np.unique(counts, return_counts=True)
    missed = np.zeros(len(frequency))
    with np.errstate(divide="ignore"):
        for before in range(drawn):
            # A type that is more frequent than the tokens left is drawn for certain: log 0.
            missed += np.log1p(-np.minimum(frequency / (total - before), 1.0))
    return min(1.0, float(types @ -np.expm1(missed)) / drawn)


def lexical_frame(
    runs: pd.DataFrame, turns: pd.DataFrame, kind: str = "response", sample: int = _SAMPLE
) -> pd.DataFrame:
    """Lexical diversity of the participants' texts in every run.

    Parameters
    ----------
    runs, turns : DataFrame
        Frames of a store; only runs in `runs` are used, whatever their status.
    kind : str
        Kind of text, as in column ``kind`` of `turns`.
    sample : int
        n-grams that HD-D draws, at least 1.

    Returns
    -------
    DataFrame
        One row per cell and run: ``run_id, cell, replicate, block, kind, n_texts, n_missing, n_words``, the ten
        measures of :func:`lexical_diversity` over the ``n_texts`` texts pooled, ``evidence``. ``n_missing`` turns were
        refused, empty, cut off or skipped and are not part of the corpus. The corpus contains only texts of
        participants.

    Raises
    ------
    MeasurementError
        If a frame lacks a column, or `sample` is not a whole number of at least 1.

    Notes
    -----
    Treat each run as one observation because its texts answer each other. Do not compare type-token ratios of cells
    whose texts differ in length.
    """
    require(runs, "runs", ("run_id", "cell", "replicate", "block", "n_agents", "evidence"))
    require(turns, "turns", ("run_id", "turn", "agent", "kind", "status", "message"))
    heads = runs.drop_duplicates(["run_id", "cell"]).reset_index(drop=True)
    own = turns[(turns["kind"] == kind) & by_participants(turns, runs)]
    told = own[own["status"] == "answered"].sort_values("turn", kind="stable")
    texts = told.groupby("run_id")["message"].agg(list).to_dict()
    asked = own.groupby("run_id").size()
    found: dict[str, dict[str, float]] = {}
    for run_id in heads["run_id"].unique():
        words = [tokenise(text) for text in texts.get(run_id, [])]
        found[run_id] = {
            "n_texts": len(words),
            "n_missing": int(asked.get(run_id, 0)) - len(words),
            "n_words": sum(map(len, words)),
            **_measures(words, sample),
        }
    measured = pd.DataFrame([found[run_id] for run_id in heads["run_id"]], columns=[*_COUNTED, *LEXICAL])
    keys = heads[["run_id", "cell", "replicate", "block"]].assign(kind=kind)
    return pd.concat([keys, measured], axis="columns").assign(evidence=heads["evidence"].array)


@dataclass(frozen=True, eq=False)
class DiversityComponent:
    """First principal component of the ten measures of lexical diversity.

    Attributes
    ----------
    scores : Series
        Score of each corpus, higher where it is more diverse; mean 0; NaN where a measure is missing.
    explained : float
        Share of the variance of the standardised measures that the component explains, in (0, 1].
    loadings : Series
        Weight of each measure, by name. The squared weights sum to 1, and a measure that is equal in all corpora has
        weight 0.
    """

    scores: pd.Series[float]
    explained: float
    loadings: pd.Series[float]


def diversity_component(measures: pd.DataFrame) -> DiversityComponent:
    """Compute one score of lexical diversity, the first principal component of the ten standardised measures.

    Parameters
    ----------
    measures : DataFrame
        One row per corpus with the columns :data:`LEXICAL`, as :func:`lexical_frame` gives them; other columns are
        ignored.

    Returns
    -------
    DiversityComponent
        Scores have the index of `measures`. Measures are standardised with their standard deviation (ddof 0) over the
        corpora that have all measures. The loadings have a positive sum, so a higher score means more diversity.

    Raises
    ------
    MeasurementError
        If a column is missing, fewer than two corpora have all ten measures, or no measure differs between them.

    Notes
    -----
    Ashkinaze et al. 2024, appendix C (B8). Scores depend on all corpora in the call, so compute them for all cells
    together and do not compare scores from different calls.
    """
    require(measures, "measures", LEXICAL)
    table = measures[list(LEXICAL)].astype(float)
    known = table.notna().all(axis="columns").to_numpy()
    values = table.to_numpy()[known]
    if len(values) < 2:
        raise MeasurementError(
            f"a component needs at least two corpora with all ten measures; {len(values)} of {len(table)} have them. "
            "HD-D is missing in corpora with fewer n-grams than `sample`; you can lower it"
        )
    varies = np.ptp(values, axis=0) > _ROUNDING
    if not varies.any():
        raise MeasurementError(f"no measure differs between the {len(values)} corpora, so there is no component")
    standard = (values[:, varies] - values[:, varies].mean(axis=0)) / values[:, varies].std(axis=0)
    _, singular, axes = np.linalg.svd(standard, full_matrices=False)
    first = axes[0] * (1.0 if axes[0].sum() >= 0 else -1.0)
    loadings = np.zeros(len(LEXICAL))
    loadings[varies] = first
    scores = np.full(len(table), np.nan)
    scores[known] = standard @ first
    return DiversityComponent(
        pd.Series(scores, index=measures.index, name="diversity"),
        float(singular[0] ** 2 / (singular**2).sum()),
        pd.Series(loadings, index=pd.Index(LEXICAL, name="measure"), name="loading"),
    )
