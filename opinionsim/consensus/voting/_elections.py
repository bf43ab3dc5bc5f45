"""Elections: a rule applied to ballots, ties broken as asked, and rules compared over the same ballots."""

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
        Social ranking: 0 for the best, equal for those the rule leaves tied, without gaps.
    order : ndarray of int (..., candidates)
        The ranking with its ties broken as asked, every rank once; the same where ties are allowed.
    scores : ndarray (..., candidates)
        What the rule counts, of which more is better: Borda points, weak wins of Schulze's rule, welfare on the scale
        of the scores given, and so on.
    n, missing : int or ndarray of int (...)
        Ballots counted, and ballots left out.
    """

    rule: Rule
    ranks: np.ndarray
    order: np.ndarray
    scores: np.ndarray
    n: Any
    missing: Any

    @property
    def tied(self) -> np.ndarray:
        """Whether each candidate is tied with others for the first place, bool (..., candidates)."""
        first = self.ranks == 0
        return np.asarray(first & (np.count_nonzero(first, axis=-1, keepdims=True) > 1))

    @property
    def winners(self) -> np.ndarray:
        """The winner of each election, int (...); -1 where the first place is tied and ties are allowed."""
        first = self.order == 0
        return np.where(np.count_nonzero(first, axis=-1) == 1, np.argmax(first, axis=-1), -1)

    @property
    def winner(self) -> int | None:
        """The winner of a single election; None where the first place is tied and ties are allowed."""
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
        Ranks, 1 (or 0) for the best, equal for those tied, without gaps, as in 1, 2, 2, 3 or 1, 2, 2, 4; or scores. A
        missing ballot is a row of NaN: it is left out and counted. Elections with fewer voters have missing ballots.
    rule : str, mapping or Rule
        One of :data:`RULES`, as a name, as a mapping with the key ``kind``, or checked beforehand.
    scores : bool
        Whether ballots are scores, of which higher ones are better. Rules on ranks take them by their order.
    ties : {"allowed", "random", "ballots"}
        How ties in the social ranking are broken: not at all; at random; or by ballots in random order, each of
        which breaks the ties that are left, and then at random (Schulze's TBRC).
    rng : numpy.random.Generator, optional
        Draws what breaks ties; required where they are not allowed.
    **options
        Of the rule, as :class:`Rule` lists them.

    Returns
    -------
    Election
        Of one election where ballots are of one.

    Raises
    ------
    SpecError
        If the rule, an option or the treatment of ties is unknown or not valid, or a generator is lacking.
    MeasurementError
        If a ballot covers some candidates only, is no ranking or not finite; there is no ballot or a single
        candidate; the rule needs scores and has ranks, or needs positive scores and has others.

    Notes
    -----
    Counts closer to each other than rounding are tied, so that the order of voters plays no part.
    """
    chosen = Rule.of(rule, **options)
    if ties not in TIES:
        raise SpecError(f"unknown treatment of ties {ties!r:.60}{meant(ties, TIES)}; valid: {', '.join(TIES)}")
    if ties != "allowed" and rng is None:
        raise SpecError(f"ties: {ties} needs a random generator, rng")
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
    """What several rules choose in the same elections.

    Attributes
    ----------
    rules : tuple of Rule
        The rules, R of them.
    first : ndarray of bool (R, elections, candidates)
        Candidates at the first place of each rule, more than one where it leaves them tied.
    """

    rules: tuple[Rule, ...]
    first: np.ndarray

    @property
    def agreement(self) -> np.ndarray:
        """Share of elections in which two rules have the same candidates at the first place, (R, R)."""
        return np.asarray((self.first[:, None] == self.first[None]).all(axis=3).mean(axis=2))

    @property
    def overlap(self) -> np.ndarray:
        """Share of elections in which two rules have a candidate at the first place in common, (R, R)."""
        return np.asarray((self.first[:, None] & self.first[None]).any(axis=3).mean(axis=2))


def compare_rules(
    ballots: ArrayLike, rules: Iterable[str | Mapping[str, Any] | Rule] | None = None, *, scores: bool = False
) -> RuleComparison:
    """What rules choose from the same ballots, and how often they agree.

    Parameters
    ----------
    ballots, scores
        As :func:`elect` takes them.
    rules : iterable, optional
        Rules as :func:`elect` takes them; by default all that need no option and, for ranks, no scores.

    Returns
    -------
    RuleComparison

    Raises
    ------
    SpecError, MeasurementError
        As :func:`elect` does.
    """
    if rules is None:
        rules = [name for name, each in RULES.items() if set(each.options) <= {"transform"} and scores >= each.scores]
    chosen = tuple(Rule.of(each) for each in ([rules] if isinstance(rules, str) else rules))
    if not chosen:
        raise SpecError("rules must name at least one rule")
    values = read_ballots(ballots, scores)
    parts = [[dense_ranks(-rule.tally(each).T) == 0 for rule in chosen] for each in portions(values, scores)]
    return RuleComparison(chosen, np.concatenate(parts, axis=1))
