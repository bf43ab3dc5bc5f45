"""Choices of rules from ratings: sensitivity to single citizens, quality of predictions, and welfare advantage.

For the ratings, see :mod:`opinionsim.consensus.evaluation._measures`. Candidates of one group and round stand for
election together, without the position statement, even if it stood for election in its session.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.consensus.evaluation import _measures as measures
from opinionsim.consensus.voting import Rule, elect
from opinionsim.errors import MeasurementError

AnyRule = str | Mapping[str, Any] | Rule


def _elections(ratings: pd.DataFrame, *columns: str, least: int = 1) -> list[tuple[Any, list[pd.DataFrame]]]:
    """Ballots, citizens by candidates, by each column, for every group and round with enough complete ones.

    Incomplete ballots are missing. There are at least two candidates, and `least` complete ballots by each column.
    """
    own = measures.whole(ratings)[lambda each: ~each["policy"].isin([measures.POSITION, measures.CONTROL])]
    drafts: Any = own[["group", "round", "candidate", "policy"]].drop_duplicates()
    if (twice := drafts.duplicated(["group", "round", "candidate"])).any():
        place = drafts[twice].iloc[0]
        raise MeasurementError(
            f"candidate {place['candidate']} of round {place['round']} in group {place['group']} is of two policies; "
            "candidates of one election need different names"
        )
    means = own.groupby(["group", "round", "citizen", "candidate"], sort=False, observed=True)[list(columns)].mean()
    found = []
    for key, part in means.groupby(["group", "round"], sort=False, observed=True):
        wide = [part[name].droplevel([0, 1]).unstack(sort=False).astype(float) for name in columns]
        ballots = [each.where(each.notna().all(axis=1)) for each in wide]
        if len(wide[0].columns) > 1 and all(len(each.dropna()) >= least for each in ballots):
            # Ranks are counted anew without the position statement, and after several passes.
            ranked = [each.rank(axis=1, method="dense").where(np.isfinite(each)) for each in ballots]
            kinds = zip(columns, ranked, ballots, strict=True)
            found.append((key, [ranks if name == "rank" else values for name, ranks, values in kinds]))
    if not found:
        raise MeasurementError(
            f"no group has two candidates and a citizen with a value for each of them in {' and '.join(columns)}"
        )
    return found


def sensitivity(
    ratings: pd.DataFrame, rule: AnyRule = "schulze", value: str = "agreement", **options: Any
) -> pd.DataFrame:
    """Test whether the set of winners changes when one citizen's ballot is left out.

    Parameters
    ----------
    ratings : DataFrame
        The ratings.
    rule, **options
        As for :func:`opinionsim.consensus.voting.elect`.
    value : str
        Column with the ballots; ``rank`` contains ranks, any other column scores.

    Returns
    -------
    DataFrame
        One row per citizen with a complete ballot, in groups and rounds with at least two of them: group, round,
        citizen; winners and winners_without, the candidates in first place with and without the citizen's ballot
        (several if tied); and changed, whether the ballot changed the set of winners, including a change from a tie (9,
        11) to 9 alone.
    """
    chosen, rows = Rule.of(rule, **options), []
    for key, (ballots,) in _elections(measures.checked(ratings, value), value, least=2):
        kept = ballots.dropna()
        without = np.repeat(kept.to_numpy()[None], len(kept) + 1, axis=0)
        without[np.arange(len(kept)), np.arange(len(kept))] = math.nan
        first = elect(without, chosen, scores=value != "rank").ranks == 0
        winners = [tuple(kept.columns[each]) for each in first]
        rows += [
            [*key, citizen, winners[-1], other, other != winners[-1]]
            for citizen, other in zip(kept.index, winners, strict=False)
        ]
    return pd.DataFrame(rows, columns=["group", "round", "citizen", "winners", "winners_without", "changed"])


# -- predicted and stated agreement ----------------------------------------------------------------------------------


def _rank_correlation(pairs: pd.DataFrame) -> float:
    """Spearman's of two columns; NaN where either is constant."""
    return float(pairs.corr(method="spearman").to_numpy()[0, 1])


def prediction(ratings: pd.DataFrame, predicted: str = "predicted_agreement") -> pd.DataFrame:
    """Measure how well predicted agreement matches stated agreement; report this before any claim about a rule.

    Parameters
    ----------
    ratings : DataFrame
        With a column of predictions.
    predicted : str
        Its name.

    Returns
    -------
    DataFrame
        One row per group that has both: group; n ratings of citizens and statements; rank_correlation over all of them
        (Spearman); within_citizens, the mean over citizens of the rank correlation over their own ratings, which
        matters for elections; and mean_absolute_error, NaN if a prediction lies off the scale of agreement.
        Correlations are NaN if one side is constant. For means over groups with intervals, use :func:`estimate`.
    """
    rows = []
    known = measures.by_citizen(measures.checked(ratings, predicted), "agreement", predicted)
    for group, part in known.groupby("group", sort=False):
        stated, guess = part["agreement"].to_numpy(), part[predicted].to_numpy(dtype=float)
        pairs = part[["agreement", predicted]].astype(float)
        own = [_rank_correlation(each) for _, each in pairs.groupby(part["citizen"], sort=False)]
        within = float(pd.Series(own).mean())
        error = (
            np.abs(stated - guess).mean()
            if ((guess >= measures.LOWEST) & (guess <= measures.HIGHEST)).all()
            else math.nan
        )
        rows.append([group, len(part), _rank_correlation(pairs), within, error])
    return pd.DataFrame(rows, columns=["group", "n", "rank_correlation", "within_citizens", "mean_absolute_error"])


def picked(ratings: pd.DataFrame, rules: Iterable[AnyRule], predicted: str = "predicted_agreement") -> pd.DataFrame:
    """Ratings of the statements that each rule picks by predicted agreement, with the rule as policy (D6).

    Parameters
    ----------
    ratings : DataFrame
        With a column of predictions.
    rules : iterable
        As for :func:`opinionsim.consensus.voting.elect`.
    predicted : str
        The column of predictions.

    Returns
    -------
    DataFrame
        Rows of the ratings. A statement's rows appear once for each rule that picks it; if a rule leaves several
        statements tied, the rows of all of them appear.
    """
    found: list[pd.DataFrame] = []
    for (group, number), (guess,) in _elections(measures.checked(ratings, predicted), predicted):
        own = ratings[(ratings["group"] == group) & (ratings["round"] == number)]
        for rule in map(Rule.of, rules):
            first = guess.columns[elect(guess, rule, scores=True).ranks == 0]
            found.append(own[own["candidate"].isin(first)].assign(policy=rule.label))
    return pd.concat(found, ignore_index=True)


def welfare_advantage(
    ratings: pd.DataFrame,
    rules: Iterable[AnyRule] = ("utilitarian", "nash", "egalitarian"),
    predicted: str = "predicted_agreement",
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Test whether statements that a welfare function picks by predictions are better by its own criterion (D6).

    Parameters
    ----------
    ratings : DataFrame
        With a column of predictions.
    rules : iterable
        Welfare functions. Each picks by predicted agreement and serves as a criterion of stated agreement.
    predicted : str
        The column of predictions. Picking by stated agreement would show an advantage by construction.
    level, seed
        As for :func:`estimate`.

    Returns
    -------
    DataFrame
        One row per ordered pair of functions: criterion; other; advantage, by the criterion, of its own function's
        picks over the other's, in points of agreement; its low and high; n elections of n_groups groups. If predictions
        leave candidates tied, their mean welfare counts.
    """
    if predicted == "agreement":
        raise MeasurementError("predicted must differ from the column agreement, which measures advantages")
    chosen, welfare, groups = [Rule.of(each) for each in rules], [], []
    for (group, _), (guess, stated) in _elections(measures.checked(ratings, predicted), predicted, "agreement"):
        groups.append(group)
        first = [elect(guess, rule, scores=True).ranks == 0 for rule in chosen]
        judged = [elect(stated, replace(rule, transform=None), scores=True).scores for rule in chosen]
        welfare.append([[scores[picked].mean() for picked in first] for scores in judged])
    by, rows = np.array(welfare), []
    for own, other in permutations(range(len(chosen)), 2):
        gain = pd.DataFrame({"group": groups, "gain": by[:, own, own] - by[:, own, other]})
        found = measures.interval(measures.estimate(gain, "gain", level, seed), "advantage")
        rows.append({"criterion": chosen[own].label, "other": chosen[other].label, **found})
    return pd.DataFrame(rows, columns=["criterion", "other", "advantage", "low", "high", "n", "n_groups"])


def advantage_statement(advantages: pd.DataFrame) -> str:
    """Summarise a table of :func:`welfare_advantage` in a sentence to print below it."""
    over = advantages["criterion"] + " over " + advantages["other"]
    under = advantages["other"] + " over " + advantages["criterion"]
    shown, against = over[advantages["low"] > 0].tolist(), under[advantages["high"] < 0].tolist()
    if not shown:
        found = "No welfare function has the predicted advantage by its own criterion: no interval is above 0"
    else:
        found = f"By their own criteria, only these have an advantage: {', '.join(shown)}"
    if against:
        found += f"; by the other's criterion: {', '.join(against)}"
    return f"{found}. Bakker et al. 2022 found none among the utilitarian, Nash and egalitarian functions."
