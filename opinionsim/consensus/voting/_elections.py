"""Elections: apply a rule to ballots, break ties, and compare rules on the same ballots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.consensus.voting._ballots import dense_ranks, portions, read_ballots
from opinionsim.consensus.voting._rules import RULES, Rule
from opinionsim.errors import SpecError, meant

#: Treatments of ties.
TIES = ("allowed", "random", "ballots")


@dataclass(frozen=True, slots=True)
class Election:
    """The result of one election, or of several with the same numbers of voters and candidates.

    Attributes
    ----------
    rule : Rule
        The rule.
    ranks : ndarray of int (..., candidates)
        Social ranking: 0 for the best, equal for ties, without gaps.
    order : ndarray of int (..., candidates)
        The ranking after breaking ties, every rank once; equal to `ranks` if ties are allowed.
    scores : ndarray (..., candidates)
        The numbers that the rule compares (higher is better), such as Borda points, weak wins of Schulze's rule, or
        welfare on the scale of the scores.
    n, missing : int or ndarray of int (...)
        Numbers of counted and of missing ballots.
    """

    rule: Rule
    ranks: np.ndarray
    order: np.ndarray
    scores: np.ndarray
    n: Any
    missing: Any

    @property
    def tied(self) -> np.ndarray:
        """Whether each candidate is tied with others for first place, bool (..., candidates)."""
        first = self.ranks == 0
        return np.asarray(first & (np.count_nonzero(first, axis=-1, keepdims=True) > 1))

    @property
    def winners(self) -> np.ndarray:
        """The winner of each election, int (...); -1 if the first place is tied and ties are allowed."""
        first = self.order == 0
        return np.where(np.count_nonzero(first, axis=-1) == 1, np.argmax(first, axis=-1), -1)

    @property
    def winner(self) -> int | None:
        """The winner of a single election; None if the first place is tied and ties are allowed."""
        found = int(self.winners)
        return found if found >= 0 else None


def elect(
    ballots: ArrayLike,
    rule: str | Mapping[str, Any] | Rule = "schulze",
    *,
    scores: bool = False,
    ties: str = "allowed",
    rng: np.random.Generator | None = None,
    **options: Any,
) -> Election:
    """Apply a voting rule to ballots.

    Parameters
    ----------
    ballots : array_like (voters, candidates) or (elections, voters, candidates)
        Ranks, 1 (or 0) for the best, equal for ties, without gaps, as in 1, 2, 2, 3 or 1, 2, 2, 4; or scores. A row of
        NaN is a missing ballot, which `missing` counts. Fill elections that have fewer voters with missing ballots.
    rule : str, mapping or Rule
        One of :data:`RULES`: its name, a mapping with the key ``kind``, or a :class:`Rule`.
    scores : bool
        Whether ballots are scores (higher is better). Rules for ranks use only the order of scores.
    ties : {"allowed", "random", "ballots"}
        How to break ties in the social ranking: leave them; at random; or by ballots in random order, each of which
        breaks the remaining ties, and then at random (Schulze's TBRC).
    rng : numpy.random.Generator, optional
        Random numbers that break ties; required unless ties are allowed.
    **options
        Options of the rule, as in :class:`Rule`.

    Returns
    -------
    Election
        Of a single election if `ballots` has two dimensions.

    Raises
    ------
    SpecError
        If the rule, an option or `ties` is not valid, or `rng` is missing.
    MeasurementError
        If a ballot lacks some candidates, is not a ranking or not finite; if there is no ballot or only one candidate;
        or if the rule needs scores but gets ranks, or needs positive scores but gets others.

    Notes
    -----
    Counts that differ only by rounding are tied, so the order of voters has no effect.
    """
    chosen = Rule.of(rule, **options)
    if ties not in TIES:
        raise SpecError(f"ties: unknown value {ties!r:.60}{meant(ties, TIES)}; valid: {', '.join(TIES)}")
    if ties != "allowed" and rng is None:
        raise SpecError(f"ties: {ties} needs random numbers; give rng")
    values = read_ballots(ballots, scores)
    parts = [(chosen.tally(each).T, each.n) for each in portions(values, scores)]
    tally, n = (np.concatenate(kind) for kind in zip(*parts, strict=True))
    ranks = dense_ranks(-tally)
    order = ranks
    if rng is not None and ties != "allowed":
        order = _untied(ranks, values if ties == "ballots" else None, scores, rng)
    found = (ranks, order, tally, n, values.shape[1] - n)
    return Election(chosen, *(each[0] for each in found)) if np.ndim(ballots) == 2 else Election(chosen, *found)


def _untied(ranks: np.ndarray, ballots: np.ndarray | None, scores: bool, rng: np.random.Generator) -> np.ndarray:
    """Social rankings (elections, candidates), ties broken by ballots in random order, if given, then at random."""
    elections, candidates = ranks.shape
    chance = rng.permuted(np.tile(np.arange(candidates), (elections, 1)), axis=1)
    if ballots is not None:
        drawn = rng.permuted(np.tile(np.arange(ballots.shape[1]), (elections, 1)), axis=1)
        for voter in drawn.T:
            # A missing ballot breaks no tie.
            ballot = np.nan_to_num(ballots[np.arange(elections), voter])
            ranks = dense_ranks(ranks * candidates + dense_ranks(-ballot if scores else ballot, 0.0))
    return dense_ranks(ranks * candidates + chance)


@dataclass(frozen=True, slots=True)
class RuleComparison:
    """The choices of several rules in the same elections.

    Attributes
    ----------
    rules : tuple of Rule
        The rules, R of them.
    first : ndarray of bool (R, elections, candidates)
        Candidates in first place under each rule, several if tied.
    """

    rules: tuple[Rule, ...]
    first: np.ndarray

    @property
    def agreement(self) -> np.ndarray:
        """Share of elections in which two rules have the same candidates in first place, (R, R)."""
        return np.asarray((self.first[:, None] == self.first[None]).all(axis=3).mean(axis=2))

    @property
    def overlap(self) -> np.ndarray:
        """Share of elections in which two rules share a candidate in first place, (R, R)."""
        return np.asarray((self.first[:, None] & self.first[None]).any(axis=3).mean(axis=2))


def compare_rules(
    ballots: ArrayLike, rules: Iterable[str | Mapping[str, Any] | Rule] | None = None, *, scores: bool = False
) -> RuleComparison:
    """Compare what rules choose from the same ballots, and how often they agree.

    Parameters
    ----------
    ballots, scores
        As for :func:`elect`.
    rules : iterable, optional
        Rules, as for :func:`elect`; by default all rules that need no option and, for ranks, no scores.

    Returns
    -------
    RuleComparison

    Raises
    ------
    SpecError, MeasurementError
        As for :func:`elect`.
    """
    if rules is None:
        rules = [name for name, each in RULES.items() if set(each.options) <= {"transform"} and scores >= each.scores]
    chosen = tuple(Rule.of(each) for each in ([rules] if isinstance(rules, str) else rules))
    if not chosen:
        raise SpecError("rules must name at least one rule")
    values = read_ballots(ballots, scores)
    parts = [[dense_ranks(-rule.tally(each).T) == 0 for rule in chosen] for each in portions(values, scores)]
    return RuleComparison(chosen, np.concatenate(parts, axis=1))
