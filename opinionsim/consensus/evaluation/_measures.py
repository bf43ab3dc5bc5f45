"""Measures of ratings: reliability of raters, agreement, consent, win rates, exclusion; and their export.

All evaluation functions take a long table of ratings, one row per rating, with these columns:

- group: the run; one group of citizens with one question
- round: 0 for statements based only on opinions, then the critique rounds; -1 for ratings before opinions are stated
- citizen: the rater; equal names in two groups are the same person only if you set `pooled`
- candidate: the statement; ``position`` for the position statement of the question
- policy: the drafter; ``position`` for the position statement
- pass: 1, 2, ... if statements are rated more than once
- agreement: 1 (strongly disagree) to 4 (neutral) to 7 (strongly agree); NaN if missing
- quality: 1 to 7, if rated

Some functions use further columns: predicted_agreement, rank (1 for the best), left_out (the citizen whose opinion the
drafter did not read; missing if it read all), question. A citizen's passes are averaged first, except for reliability.
Intervals resample groups, because ratings within a group are not independent. These functions do not know whether
ratings come from people, models or the scripted model; if you show a table, state its evidence.

The measures are those of Bakker et al. 2022, appendix (D3, D6, D7).
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
    """Refuse ratings that lack columns, are off the scale or occur twice."""
    needed = list(dict.fromkeys((*_COLUMNS, *further)))
    lacking = [name for name in needed if name not in ratings]
    if lacking or not len(ratings):
        raise MeasurementError(
            f"ratings need at least one row and the columns {', '.join(needed)}; lacking: "
            f"{', '.join(lacking) or 'rows'}"
        )
    if not ratings.columns.is_unique:
        raise MeasurementError(f"ratings have two columns {ratings.columns[ratings.columns.duplicated()][0]}")
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
    """Mean of a column, and its percentile interval over resampled groups.

    Parameters
    ----------
    table : DataFrame
        A table with a column ``group``, such as those of this module.
    column : str
        Column of numbers or truth values; missing values are left out.
    level : float
        Confidence level, between 0 and 1.
    seed : int
        Seed of the resampling, >= 0.

    Returns
    -------
    BootstrapMean
        All rows have equal weight; whole groups are drawn with replacement.
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
        One minus the ratio of the mean distance between passes to the distance expected by chance. 1 for equal passes;
        NaN if the expected distance is 0, as for a rater who always gives the same rating, and without ratings.
    """
    one, two = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != two.shape:
        raise MeasurementError(f"first and second must have the same shape; got {one.shape} and {two.shape} ratings")
    by_chance = np.abs(one[:, None] - two).mean() if one.size else 0.0
    return float(1 - np.abs(one - two).mean() / by_chance) if by_chance > 0 else math.nan


def reliability(ratings: pd.DataFrame, pooled: bool = False, value: str = "agreement") -> pd.DataFrame:
    """Agreement of raters with themselves in two passes (D3).

    Parameters
    ----------
    ratings : DataFrame
        Ratings in at least two passes; only the first two count, whatever their numbers.
    pooled : bool
        Whether equal names in all groups are the same person, whose ratings are combined.
    value : str
        The column to compare.

    Returns
    -------
    DataFrame
        group (unless pooled), citizen; n, the number of statements rated in both passes; kappa, by
        :func:`weighted_kappa`; and reliable, whether kappa is at least 0.6 (false if undefined).
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
    """The ratings of raters who are reliable by :func:`reliability`."""
    found = reliability(ratings, pooled, value)
    kept = found.loc[found["reliable"], [name for name in ("group", "citizen") if name in found]]
    return ratings.merge(kept, how="inner")


# -- agreement within groups -----------------------------------------------------------------------------------------


def candidate_table(ratings: pd.DataFrame) -> pd.DataFrame:
    """Agreement of the group with each statement (D7).

    Returns
    -------
    DataFrame
        One row per statement:

        - group, round, candidate, policy
        - n, missing: numbers of citizens who rated it, and of others in the group, whose consent is unknown
        - mean, median, nash, egalitarian: of their agreement; the last two are the geometric mean and the minimum (D6)
        - above, below: number of citizens who rate it above and below neutral
        - consent: p = above / (above + below); NaN if all are neutral
        - internal_agreement: ``|(1/2 - p) 2|``, 1 if all lean the same way (including unanimous rejection), and 0 for
          an even split; NaN if all are neutral
        - divisive: 1.0 if internal agreement is below 1, else 0.0; for the position statement, whether the question
          is divisive; NaN if all are neutral
        - unanimous: whether every citizen who rated it is above neutral
        - less_divisive: 1.0 if its consent is higher than max(p, 1 - p) of the position statement, else 0.0. NaN if
          the question is not divisive or the position statement was not rated, and for that statement itself. The
          maximum is needed because consent has a direction, and the divisiveness in the source has none.

        If a position statement was rated in several rounds, the first round is used for comparisons.
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
    """The ratings of statements drafted from all opinions."""
    return ratings[ratings["left_out"].isna()] if "left_out" in ratings else ratings


def policy_table(ratings: pd.DataFrame, level: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Means of :func:`candidate_table` over the statements of each policy, without leave-one-out drafts.

    Returns
    -------
    DataFrame
        policy, measure; estimate, low and high, from :func:`estimate`; n statements of n_groups groups. ``divisive`` of
        the policy position is the share of divisive questions; ``less_divisive`` uses only these questions.
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
    """How often groups agree more with the statements of one policy than with those of another (D7).

    Parameters
    ----------
    ratings : DataFrame
        The ratings.
    level, seed
        As for :func:`estimate`.
    aggregates : iterable of str
        How to aggregate the agreement of a group, as in :func:`candidate_table`: ``mean`` (utilitarian welfare),
        ``median``, ``nash``, ``egalitarian``.

    Returns
    -------
    DataFrame
        One row per pair of policies, without the position statement, and aggregate:

        - policy, other
        - aggregate: as named; several statements of a policy in one round are averaged
        - win_rate: share of comparisons that the first policy wins, one per group and round, without ties
        - low, high: its interval over groups
        - n, n_groups: numbers of comparisons without ties, and of groups with one
        - ties: number of tied comparisons
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
    """Test whether predictions order pairs of statements as citizens rate them (D5).

    Parameters
    ----------
    ratings : DataFrame
        With a column of predictions.
    predicted : str
        Its name.

    Returns
    -------
    DataFrame
        One row per citizen and pair of statements of one round that the citizen rates differently, without the position
        statement: group, round, citizen; candidate, the preferred one, and other; right: 1.0, 0.0, or 0.5 if the
        predictions are equal. The mean of right, by :func:`estimate`, is the pairwise accuracy.
    """
    known = by_citizen(checked(ratings, predicted), "agreement", predicted)
    keys, known = ["group", "round", "citizen"], known[known["policy"] != POSITION]
    pairs = known.merge(known, on=keys, suffixes=("", " of other"))
    pairs = pairs[pairs["agreement"] > pairs["agreement of other"] + _ROUNDING]
    ahead = (pairs[predicted] - pairs[f"{predicted} of other"]).round(9)
    return pairs[[*keys, "candidate"]].assign(other=pairs["candidate of other"], right=(np.sign(ahead) + 1) / 2)


def exclusion(ratings: pd.DataFrame) -> pd.DataFrame:
    """Loss of a citizen's agreement if drafts leave out its own opinion instead of another's.

    Parameters
    ----------
    ratings : DataFrame
        Ratings with the column left_out.

    Returns
    -------
    DataFrame
        One row per citizen who rated drafts without its own opinion and drafts without another's:

        - group, citizen
        - excluded, drafts: mean agreement with drafts that left its own opinion out, and their number
        - other_excluded, others: the same for drafts without another random citizen's opinion: the mean over others of
          the mean over their drafts, and the number of others
        - complete: mean agreement with drafts that read all opinions; NaN without any
        - dissent: other_excluded minus excluded, the dissent caused by exclusion itself. Drafts without another citizen
          show the effect of any missing opinion. For the mean over citizens, use :func:`estimate`.
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
    """Write ratings in long form for a cumulative link mixed model in R; opinionsim does not fit it.

    Parameters
    ----------
    ratings : DataFrame
        The ratings; a column question, if present, identifies questions put to several groups.
    target : str or Path, optional
        The CSV file; by default, the function returns the text.

    Notes
    -----
    One row per known rating of agreement of a candidate: participant (group and citizen), question (of the group, or
    the group itself), model (the policy), candidate, round, pass, rating and, if rated, quality. Cells that a
    spreadsheet would run are marked as text. The model of D7, with the R package ordinal::

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
