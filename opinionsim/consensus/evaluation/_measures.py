"""What ratings of statements show: reliability of raters, agreement, consent, win rates, exclusion; their export.

All functions of evaluation take a long table of ratings, one row per rating, with these columns:

- group: the run; one group of citizens with one question
- round: 0 for statements on opinions alone, then the critique rounds; -1 for what is rated before opinions are stated
- citizen: who rates; the same name in two groups is the same person only where a function is told so
- candidate: the statement; ``position`` for the position statement of the question
- policy: who drafted it; ``position`` for the position statement
- pass: 1, 2, ... where statements are rated more than once
- agreement: 1 (strongly disagree) to 4 (neutral) to 7 (strongly agree); NaN where missing
- quality: 1 to 7, where rated

Some take further columns: predicted_agreement, rank (1 for the best), left_out (the citizen whose opinion the drafter
did not read, missing where it read all), question. A citizen's passes are averaged first, except for reliability.
Intervals resample groups, since ratings within a group are not independent. Nothing here knows whether ratings are of
people, of models or scripted: who shows a table states its evidence.

Measures are those of Bakker et al. 2022, appendix (D3, D6, D7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from opinionsim.consensus.voting import power_mean
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.spreadsheets import write_csv
from opinionsim.foundation.streams import stream

#: Ends and middle of the scale of agreement and quality.
LOWEST, NEUTRAL, HIGHEST = 1, 4, 7
#: Candidate and policy of the position statement.
POSITION = "position"
#: Policy of statements of other groups.
CONTROL = "control"
#: Weighted kappa from which a rater counts as reliable (D3).
RELIABLE = 0.6

_STATEMENT = ["group", "round", "candidate", "policy"]
_COLUMNS = [*_STATEMENT, "citizen", "pass", "agreement"]
#: Resamples of an interval, and weights of groups held at a time.
_RESAMPLES, _BATCH = 10_000, 4_000_000
#: Differences that are rounding.
_ROUNDING = 1e-9


def checked(ratings: pd.DataFrame, *further: str) -> pd.DataFrame:
    """The ratings, once they have their columns, stay on their scale, and are given once each."""
    needed = list(dict.fromkeys((*_COLUMNS, *further)))
    lacking = [name for name in needed if name not in ratings]
    if lacking or not len(ratings):
        raise MeasurementError(
            f"ratings need at least one row and the columns {', '.join(needed)}; lacking: "
            f"{', '.join(lacking) or 'rows'}"
        )
    if not ratings.columns.is_unique:
        raise MeasurementError(f"ratings have a column twice: {ratings.columns[ratings.columns.duplicated()][0]}")
    for name in (*_STATEMENT, "citizen", "pass"):
        if (unknown := ratings[name].isna().to_numpy()).any():
            raise MeasurementError(f"ratings need {name} in each row; row {int(unknown.argmax()) + 1} has none")
    for name in {"agreement", "quality"} & set(ratings):
        try:
            ratings = ratings.assign(**{name: ratings[name].astype(float)})
        except (TypeError, ValueError) as error:
            raise MeasurementError(f"{name} contains a value that is not a number: {error}") from None
        off = ratings[name].notna() & ~ratings[name].between(LOWEST, HIGHEST)
        if off.any():
            place = ratings.loc[off].iloc[0]
            raise MeasurementError(
                f"{name} is rated from {LOWEST} to {HIGHEST}; got {place[name]:g} of citizen {place['citizen']} in "
                f"group {place['group']}"
            )
    twice = ratings.duplicated([*_STATEMENT, "citizen", "pass"])
    if twice.any():
        place = ratings.loc[twice].iloc[0]
        raise MeasurementError(
            f"citizen {place['citizen']} of group {place['group']} rates candidate {place['candidate']} twice in pass "
            f"{place['pass']} of round {place['round']}"
        )
    return ratings


def by_citizen(ratings: pd.DataFrame, *values: str) -> pd.DataFrame:
    """Values of each citizen for each statement, means over passes; rows that lack one are left out."""
    known = ratings.dropna(subset=list(values))
    return known.groupby([*_STATEMENT, "citizen"], sort=False, observed=True)[list(values)].mean().reset_index()


# -- uncertainty -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BootstrapMean:
    """A mean with its bootstrap interval.

    Attributes
    ----------
    value : float
        Mean over all rows with a value; NaN without one.
    low, high : float
        Ends of the interval; NaN with fewer than two groups.
    n, n_groups : int
        Rows with a value, and groups with such a row.
    """

    value: float
    low: float
    high: float
    n: int
    n_groups: int


def estimate(table: pd.DataFrame, column: str, level: float = 0.95, seed: int = 0) -> BootstrapMean:
    """Mean of a column of a table with a column group, and its percentile interval over resampled groups.

    Parameters
    ----------
    table : DataFrame
        Rows of groups, such as a table of this module.
    column : str
        Numbers or truth values; missing ones are left out.
    level : float
        Confidence level, between 0 and 1.
    seed : int
        Seed of the resamples, >= 0.

    Returns
    -------
    BootstrapMean
        Every row counts the same; groups are drawn whole, with replacement.
    """
    if not 0 < level < 1:
        raise MeasurementError(f"level must be between 0 and 1; got {level!r:.60}")
    values = table[column].astype(float)
    found = values[values.notna()].groupby(table["group"], sort=False, observed=True).agg(["sum", "count"])
    sums, counts, groups = found["sum"].to_numpy(), found["count"].to_numpy(), len(found)
    n, low, high = int(counts.sum()), math.nan, math.nan
    if groups > 1:
        rng, resampled, batch = stream(seed, "bootstrap of groups"), [], max(1, _BATCH // groups)
        for first in range(0, _RESAMPLES, batch):
            weights = rng.multinomial(groups, np.full(groups, 1 / groups), min(batch, _RESAMPLES - first))
            resampled.append(weights @ sums / (weights @ counts))
        low, high = (float(end) for end in np.quantile(np.concatenate(resampled), [(1 - level) / 2, (1 + level) / 2]))
    return BootstrapMean(float(sums.sum() / n) if n else math.nan, low, high, n, groups)


def interval(found: BootstrapMean, name: str) -> dict[str, Any]:
    return {name: found.value, "low": found.low, "high": found.high, "n": found.n, "n_groups": found.n_groups}


# -- reliability -----------------------------------------------------------------------------------------------------


def weighted_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Linearly weighted kappa of Cohen (1968) between two passes of ratings.

    Parameters
    ----------
    first, second : array_like (N,)
        Ratings of the same statements.

    Returns
    -------
    float
        One minus the mean distance of the passes over that expected by chance. 1 for equal passes; NaN where chance
        leaves no distance, for a rater who gives one rating alone, and without ratings.
    """
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != two.shape:
        raise MeasurementError(f"two passes rate the same statements; got {one.shape} and {two.shape} ratings")
    by_chance = np.abs(one[:, None] - two).mean() if one.size else 0.0
    return float(1 - np.abs(one - two).mean() / by_chance) if by_chance > 0 else math.nan


def reliability(ratings: pd.DataFrame, pooled: bool = False, value: str = "agreement") -> pd.DataFrame:
    """Agreement of raters with themselves (D3).

    Parameters
    ----------
    ratings : DataFrame
        Of two passes or more; the first two count, whatever their numbers.
    pooled : bool
        Whether a citizen's name is the same person in all groups, whose ratings are taken together.
    value : str
        The column compared.

    Returns
    -------
    DataFrame
        group (unless pooled), citizen; n, the statements rated in both passes; kappa, of :func:`weighted_kappa`; and
        reliable, whether it is at least 0.6, which an undefined one is not.
    """
    known = checked(ratings, value).dropna(subset=[value])
    keys = [*_STATEMENT, "citizen"]
    first, second, *_ = (*sorted(known["pass"].unique()), None, None)
    one, two = (known.loc[known["pass"] == each, [*keys, value]] for each in (first, second))
    both = one.merge(two, on=keys, suffixes=("", " again"))
    who = ["citizen"] if pooled else ["group", "citizen"]
    rows = []
    for name, own in ratings[who].drop_duplicates().merge(both, on=who, how="left").groupby(who, sort=False):
        kept = own.dropna(subset=[value])
        kappa = weighted_kappa(kept[value], kept[f"{value} again"])
        rows.append([*name, len(kept), kappa, kappa >= RELIABLE])
    return pd.DataFrame(rows, columns=[*who, "n", "kappa", "reliable"])


def reliable(ratings: pd.DataFrame, pooled: bool = False, value: str = "agreement") -> pd.DataFrame:
    """The ratings of those raters whom :func:`reliability` calls reliable."""
    found = reliability(ratings, pooled, value)
    kept = found.loc[found["reliable"], [name for name in ("group", "citizen") if name in found]]
    return ratings.merge(kept, how="inner")


# -- agreement within groups -----------------------------------------------------------------------------------------


def candidate_table(ratings: pd.DataFrame) -> pd.DataFrame:
    """Agreement of its group with each statement (D7).

    Returns
    -------
    DataFrame
        One row per statement:

        - group, round, candidate, policy
        - n, missing: citizens who rated it, and others of the group, whose consent is not known
        - mean, median, nash, egalitarian: of their agreement; the two last are the geometric mean and the minimum (D6)
        - above, below: how many of them rate it above and below neutral
        - consent: p = above / (above + below); NaN where all are neutral
        - internal_agreement: ``|(1/2 - p) 2|``, 1 where all lean the same way, unanimous rejection included, and 0 for
          an even split; NaN where all are neutral
        - divisive: 1.0 where internal agreement is below 1, else 0.0; of the position statement, whether the question
          is divisive; NaN where all are neutral
        - unanimous: whether every citizen who rated it is above neutral
        - less_divisive: 1.0 where its consent is higher than max(p, 1 - p) of the position statement, else 0.0. NaN
          where the question is not divisive or the position statement was not rated, and for that statement itself.
          The consent of a statement is signed and its source compares it with a divisiveness that is not, hence the
          maximum.

        A position statement that was rated in several rounds is compared as rated in the first.
    """
    one = by_citizen(ratings := checked(ratings), "agreement")
    if one.empty:
        raise MeasurementError("no rating of agreement is known")
    one = one.assign(above=one["agreement"] > NEUTRAL, below=one["agreement"] < NEUTRAL)
    by = one.groupby(_STATEMENT, sort=False, observed=True)
    nash = partial(power_mean, alpha=1.0)
    counts = by["agreement"].agg(n="size", mean="mean", median="median", nash=nash, egalitarian="min")
    found: pd.DataFrame = counts.join(by[["above", "below"]].sum()).reset_index()
    found["missing"] = found["group"].map(ratings.groupby("group")["citizen"].nunique()) - found["n"]
    leaning = found["above"] + found["below"]
    found["consent"] = found["above"] / leaning.where(leaning > 0)
    found["internal_agreement"] = (1 - 2 * found["consent"]).abs()
    found["divisive"] = (found["internal_agreement"] < 1).astype(float).where(leaning > 0)
    found["unanimous"] = found["above"] == found["n"]
    position = found[found["policy"] == POSITION].sort_values("round", kind="stable").drop_duplicates("group")
    bar = position.assign(bar=position["consent"].clip(lower=1 - position["consent"]))[position["divisive"] == 1]
    bars = found["group"].map(bar.set_index("group")["bar"]).where(found["policy"] != POSITION)
    less = (found["consent"] > bars + _ROUNDING).astype(float)
    found["less_divisive"] = less.where(bars.notna() & found["consent"].notna())
    return found


#: Columns of candidate_table whose means policy_table gives.
MEASURES = ("mean", "consent", "internal_agreement", "divisive", "unanimous", "less_divisive")


def whole(ratings: pd.DataFrame) -> pd.DataFrame:
    """The ratings of statements that leave no citizen's opinion out."""
    return ratings[ratings["left_out"].isna()] if "left_out" in ratings else ratings


def policy_table(ratings: pd.DataFrame, level: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Means of the measures of :func:`candidate_table` over the statements of each policy that leave nobody out.

    Returns
    -------
    DataFrame
        policy, measure; estimate, low and high, as :func:`estimate` gives them; n statements of n_groups groups.
        ``divisive`` of the policy position is the share of divisive questions, ``less_divisive`` is over those.
    """
    return pd.DataFrame(
        {"policy": policy, "measure": measure, **interval(estimate(own, measure, level, seed), "estimate")}
        for policy, own in candidate_table(whole(ratings)).groupby("policy", sort=False)
        for measure in MEASURES
    )


#: Ways of making one number of the agreement of a group, as columns of candidate_table.
AGGREGATES = ("mean", "median", "nash", "egalitarian")


def win_rates(
    ratings: pd.DataFrame, level: float = 0.95, seed: int = 0, aggregates: Iterable[str] = ("mean", "median")
) -> pd.DataFrame:
    """How often a group agrees more with the statements of one policy than with those of another (D7).

    Parameters
    ----------
    ratings : DataFrame
        The ratings.
    level, seed
        As :func:`estimate` takes them.
    aggregates : iterable of str
        Ways of making one number of the agreement of a group, as :func:`candidate_table` has them: ``mean``, which is
        utilitarian welfare, ``median``, ``nash``, ``egalitarian``.

    Returns
    -------
    DataFrame
        One row per pair of policies, without the position statement, and aggregate:

        - policy, other
        - aggregate: as named; several statements of a policy in one round are averaged
        - win_rate: share of comparisons, one a group and round, that the first policy wins, without ties
        - low, high: its interval over groups
        - n, n_groups: comparisons without ties, and groups with one
        - ties: comparisons that are tied
    """
    table, rows = candidate_table(whole(ratings)), []
    table = table[table["policy"] != POSITION]
    policies = table["policy"].unique().tolist()
    for aggregate in aggregates:
        if aggregate not in AGGREGATES:
            raise SpecError(f"aggregate: unknown {aggregate!r:.60}; valid: {', '.join(AGGREGATES)}")
        wide = table.pivot_table(index=["group", "round"], columns="policy", values=aggregate)
        for policy, other in combinations(policies, 2):
            difference = (wide[policy] - wide[other]).dropna()
            tied = difference.abs() <= _ROUNDING
            won = (difference > 0).astype(float).where(~tied).rename("won").reset_index()
            found = interval(estimate(won, "won", level, seed), "win_rate")
            rows.append({"policy": policy, "other": other, "aggregate": aggregate, **found, "ties": int(tied.sum())})
    columns = ["policy", "other", "aggregate", "win_rate", "low", "high", "n", "n_groups", "ties"]
    return pd.DataFrame(rows, columns=columns)


def pairs_in_order(ratings: pd.DataFrame, predicted: str = "predicted_agreement") -> pd.DataFrame:
    """Whether predictions put two statements in the order in which a citizen rates them (D5).

    Parameters
    ----------
    ratings : DataFrame
        With a column of predictions.
    predicted : str
        Its name.

    Returns
    -------
    DataFrame
        One row per citizen and pair of statements of one round, without the position statement, that the citizen rates
        apart: group, round, citizen; candidate, which it prefers, and other; right: 1.0, 0.0, or 0.5 where the
        predictions are equal, as by the toss of a coin. Its mean, by :func:`estimate`, is the pairwise accuracy.
    """
    known = by_citizen(checked(ratings, predicted), "agreement", predicted)
    keys, known = ["group", "round", "citizen"], known[known["policy"] != POSITION]
    pairs = known.merge(known, on=keys, suffixes=("", " of other"))
    pairs = pairs[pairs["agreement"] > pairs["agreement of other"] + _ROUNDING]
    ahead = (pairs[predicted] - pairs[f"{predicted} of other"]).round(9)
    return pairs[[*keys, "candidate"]].assign(other=pairs["candidate of other"], right=(np.sign(ahead) + 1) / 2)


def exclusion(ratings: pd.DataFrame) -> pd.DataFrame:
    """What it costs a citizen in agreement that its own opinion, and not another's, was left out of drafts.

    Parameters
    ----------
    ratings : DataFrame
        With the column left_out.

    Returns
    -------
    DataFrame
        One row per citizen who rated drafts without its own opinion and drafts without another's:

        - group, citizen
        - excluded, drafts: mean agreement with drafts that left its own opinion out, and how many
        - other_excluded, others: the same for drafts without a random other's: the mean over others of the mean over
          their drafts, and how many others
        - complete: mean agreement with drafts that read all opinions; NaN without any
        - dissent: other_excluded less excluded, the dissent that exclusion itself brings about; a draft without a
          random other tells it from what any missing opinion does. Its mean over citizens is that of :func:`estimate`.
    """
    drafts = (ratings := checked(ratings, "left_out"))[["group", "candidate", "left_out"]].drop_duplicates()
    if drafts.duplicated(["group", "candidate"]).any():
        place = drafts[drafts.duplicated(["group", "candidate"])].iloc[0]
        raise MeasurementError(f"left_out names two citizens for candidate {place['candidate']} of {place['group']}")
    one = by_citizen(ratings, "agreement").merge(drafts, on=["group", "candidate"])
    who, without, own = ["group", "citizen"], one["left_out"].notna(), one["left_out"] == one["citizen"]
    excluded = one[own].groupby(who, sort=False)["agreement"].agg(excluded="mean", drafts="size")
    by_other = one[without & ~own].groupby([*who, "left_out"], sort=False)["agreement"].mean()
    other = by_other.groupby(who, sort=False).agg(other_excluded="mean", others="size")
    complete = one[~without & (one["policy"] != POSITION)].groupby(who, sort=False)["agreement"].mean()
    found = pd.concat([excluded, other], axis=1, join="inner").join(complete.rename("complete"))
    return found.assign(dissent=found["other_excluded"] - found["excluded"]).reset_index()


# -- export ----------------------------------------------------------------------------------------------------------


def write_ratings(ratings: pd.DataFrame, target: str | Path | None = None) -> str | None:
    """Write ratings in long form for a cumulative link mixed model in R, which is not fitted here.

    Parameters
    ----------
    ratings : DataFrame
        The ratings; a column question names what several groups were asked.
    target : str or Path, optional
        The CSV file; by default its text is returned.

    Notes
    -----
    One row per known rating of agreement of a candidate: participant (group and citizen), question (of the group, or
    the group itself), model (the policy), candidate, round, pass, rating and, where rated, quality. What a spreadsheet
    would run is marked as text. The model of D7, by the R package ordinal::

        d <- read.csv("ratings.csv", stringsAsFactors = TRUE)
        d$rating <- factor(d$rating, ordered = TRUE)
        clmm(rating ~ model + (1 + model | participant) + (1 + model | question), data = d)
    """
    known = (ratings := checked(ratings))[ratings["agreement"].notna() & (ratings["policy"] != POSITION)]
    group, question = known["group"].astype(str), known["question"] if "question" in known else known["group"]
    table = known.assign(
        participant=group + "/" + known["citizen"].astype(str),
        question="q " + question.astype(str),
        model=known["policy"].astype(str),
        candidate=group + "/" + known["candidate"].astype(str),
        rating=known["agreement"],
        **{name: f"{name} " + known[name].astype(str) for name in ("round", "pass")},
    )
    columns = ["participant", "question", "model", "candidate", "round", "pass", "rating", "quality"]
    return write_csv(table[[name for name in columns if name in table]], target)
