"""Voting rules by name, with their requirements and tallies; paths of defeats, and social welfare."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.consensus.voting._ballots import Portion
from opinionsim.errors import MeasurementError, SpecError, meant, whole_number

#: Transforms of scores to positive ones.
TRANSFORMS = ("shift", "exp")
#: Exponents closer to 0 than this are that of the geometric mean: the difference is below the precision of floats.
_GEOMETRIC = 1e-12
#: Decimal places of welfare that may be near 0, where rounding is no share of it.
_DIGITS = 12


class RuleKind(NamedTuple):
    """A kind of rule.

    Attributes
    ----------
    about : str
        The candidate that it elects, in a sentence.
    tally : callable
        Takes a portion of elections and the rule; returns values of the candidates, (candidates, elections); higher
        is better.
    scores : bool
        Whether it needs scores; other rules take ranks or scores.
    options : tuple of str
        Options that it takes.
    """

    about: str
    tally: Callable[[Portion, Rule], np.ndarray]
    scores: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A voting rule with its options, checked.

    Attributes
    ----------
    kind : str
        One of :data:`RULES`.
    alpha : float, optional
        For ``power-mean``: aversion to inequality, from 0 (utilitarian) over 1 (Nash) to infinity (egalitarian).
    transform : {"shift", "exp"}, optional
        For power means, which need positive scores: how to make scores positive. ``shift`` adds a number that makes the
        lowest score of the election 1; a candidate's welfare then depends on the lowest score, even if it belongs to an
        unpopular candidate. ``exp`` takes the exponential, for scores of a reward model trained on pairs: their
        differences are log odds of being preferred, so the exponential is the strength in the Bradley-Terry model, and
        a constant added to all rewards has no effect. By default, scores do not change.
    threshold : float, optional
        For ``approval``: a ballot approves of candidates with scores above it (4 on a scale from 1 to 7).
    top : int, optional
        For ``approval``: a ballot approves of candidates with fewer than this many others above them. Give either this
        or a threshold.
    """

    kind: str
    alpha: float | None = None
    transform: str | None = None
    threshold: float | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in RULES:
            raise SpecError(f"unknown rule {self.kind!r:.60}{meant(self.kind, RULES)}; valid: {', '.join(RULES)}")
        taken = RULES[self.kind].options
        for name in self.options:
            if name not in taken:
                raise SpecError(f"the rule {self.kind} has no option {name}; its options: {', '.join(taken) or 'none'}")
        if self.kind == "power-mean":
            number("alpha", self.alpha, 0)
        if self.transform not in (None, *TRANSFORMS):
            raise SpecError(f"transform must be one of {', '.join(TRANSFORMS)}; got {self.transform!r:.60}")
        if self.kind == "approval" and len(self.options) != 1:
            raise SpecError("the rule approval needs either threshold (it approves of higher scores) or top (a rank)")
        if self.top is not None:
            whole_number("top", self.top, 1)
        if self.threshold is not None:
            number("threshold", self.threshold)

    @classmethod
    def of(cls, rule: str | Mapping[str, Any] | Rule, **options: Any) -> Rule:
        """Return the rule given by a name or by a mapping with the key ``kind``.

        Raises
        ------
        SpecError
            If the rule or an option is unknown, not valid, or missing.
        """
        if isinstance(rule, Rule):
            rule = {"kind": rule.kind, **rule.options}
        given = {**rule, **options} if isinstance(rule, Mapping) else {"kind": rule, **options}
        names = [each.name for each in fields(cls)]
        if not isinstance(given.get("kind"), str) or not given.keys() <= set(names):
            raise SpecError(f"a rule has the key kind and the options {', '.join(names[1:])}; got {given!r:.80}")
        return cls(**given)

    @property
    def options(self) -> dict[str, Any]:
        """Its options by name, without those not given."""
        given = ((each.name, getattr(self, each.name)) for each in fields(self)[1:])
        return {name: value for name, value in given if value is not None}

    @property
    def needs_scores(self) -> bool:
        """Whether it needs scores instead of ranks."""
        return RULES[self.kind].scores or self.threshold is not None

    @property
    def label(self) -> str:
        """The kind with its options, such as ``power-mean alpha=2``."""
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.options.items())])

    def tally(self, portion: Portion) -> np.ndarray:
        """Values of the candidates of a portion, (candidates, elections); higher is better.

        Raises
        ------
        MeasurementError
            If the rule needs scores but gets ranks, or needs positive scores but gets others.
        """
        if self.needs_scores and not portion.scores:
            raise MeasurementError(f"the rule {self.label} needs scores; the ballots are ranks")
        return RULES[self.kind].tally(portion, self)


def widest_paths(preferences: ArrayLike) -> np.ndarray:
    """Strength of the strongest path between each two candidates, for Schulze's rule.

    Parameters
    ----------
    preferences : array_like (candidates, candidates, ...)
        Number of ballots that place the first candidate above the second.

    Returns
    -------
    ndarray (candidates, candidates, ...)
        A path is a chain of defeats. The strength of a defeat is the number of winning votes, and that of a path is its
        weakest defeat. 0 without a path, and on the diagonal.
    """
    wins = np.asarray(preferences)
    found = wins * (wins > wins.swapaxes(0, 1))
    over = np.empty_like(found)
    for middle in range(len(found)):  # Floyd and Warshall
        np.minimum(found[:, middle, None], found[None, middle], out=over)
        np.maximum(found, over, out=found)
    found[np.arange(len(found)), np.arange(len(found))] = 0
    return found


def number(name: str, value: Any, least: float = -math.inf) -> float:
    """An option that is a number of at least `least`; raises a SpecError for others."""
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= least:
        raise SpecError(f"{name} must be a number{f' of at least {least:g}' * (least > -math.inf)}; got {value!r:.60}")
    return float(value)


def power_mean(scores: ArrayLike, alpha: float, axis: int = -1) -> Any:
    r"""Power mean of positive scores, :math:`(\frac1n \sum_i r_i^{1-\alpha})^{1/(1-\alpha)}`.

    Parameters
    ----------
    scores : array_like
        Positive numbers; NaN is ignored.
    alpha : float
        Aversion to inequality, at least 0. 0 gives the arithmetic mean (utilitarian), 1 the geometric mean
        (Bernoulli-Nash; same order as the product), and infinity the minimum (egalitarian, Rawlsian).
    axis : int
        Axis of the voters.

    Returns
    -------
    float or ndarray
        On the scale of the scores; NaN without any.

    Raises
    ------
    SpecError
        If alpha is negative or not a number.
    MeasurementError
        If a score is not positive and finite.

    Notes
    -----
    For a given alpha, it orders candidates like the isoelastic welfare :math:`\sum_i r_i^{1-\alpha}/(1-\alpha)`, on
    which the functions of Bakker et al. 2022 are based (appendix; D6). It is linear in scale: scores times c give the
    welfare times c.
    """
    values = np.asarray(scores, dtype=float)
    if not ((values > 0) & (values < np.inf) | np.isnan(values)).all():
        raise MeasurementError("the power mean needs positive finite scores")
    alpha = number("alpha", alpha, 0)
    if alpha in (0.0, np.inf):
        found = arithmetic(values, axis) if alpha == 0.0 else np.fmin.reduce(values, axis=axis)
    else:
        found = np.exp(log_power_mean(np.log(values), alpha, axis))
    return found if np.ndim(found) else float(found)


def arithmetic(values: np.ndarray, axis: int) -> Any:
    """Mean of the values that are not NaN; NaN without any."""
    known = ~np.isnan(values)
    n = np.count_nonzero(known, axis=axis)
    return np.where(known, values, 0.0).sum(axis=axis) / np.where(n > 0, n, np.nan)


def log_power_mean(logs: np.ndarray, alpha: float, axis: int) -> Any:
    """Logarithm of the power mean of scores with these logarithms; never overflows, as powers stay in [0, 1]."""
    power = 1.0 - alpha
    if abs(power) < _GEOMETRIC:
        return arithmetic(logs, axis)
    # The largest power is that of the largest score, or of the smallest one where the exponent is negative.
    leading = (np.fmax if power > 0 else np.fmin).reduce(logs, axis=axis, keepdims=True)
    if power == -np.inf:
        return np.squeeze(leading, axis=axis)
    total = arithmetic(np.expm1(power * (logs - leading)), axis)
    return np.squeeze(leading, axis=axis) + np.log1p(total) / power


def _schulze(portion: Portion, rule: Rule) -> np.ndarray:
    paths = widest_paths(portion.wins)
    # Each candidate has a path to itself that is as strong as itself.
    return np.asarray(np.count_nonzero(paths >= paths.swapaxes(0, 1), axis=1) - 1)


def _copeland(portion: Portion, rule: Rule) -> np.ndarray:
    beaten = portion.wins > portion.wins.swapaxes(0, 1)
    won, lost = (np.count_nonzero(beaten, axis=axis) for axis in (1, 0))
    return np.asarray((won - lost + len(beaten) - 1) / 2)


def _approval(portion: Portion, rule: Rule) -> np.ndarray:
    if rule.threshold is not None:
        return np.asarray(np.count_nonzero(portion.values > rule.threshold, axis=0))
    found = np.zeros(portion.values.shape[1:], dtype=np.int64)
    for ballot, present in zip(portion.places, portion.present, strict=True):
        found += (np.count_nonzero(ballot[:, None] > ballot[None], axis=1) < rule.top) & present
    return found


def _power_mean(portion: Portion, rule: Rule, alpha: float | None = None) -> np.ndarray:
    values, alpha = portion.values, number("alpha", rule.alpha if alpha is None else alpha)
    if rule.transform == "exp":
        # The logarithm of the power mean of exponentials is on the scale of the scores given.
        return np.asarray(np.round(log_power_mean(values, alpha, 0), _DIGITS))
    if rule.transform == "shift":
        added = 1.0 - np.fmin.reduce(values, axis=(0, 1))
        return np.asarray(np.round(power_mean(values + added, alpha, axis=0) - added, _DIGITS))
    if (values <= 0).any():
        raise MeasurementError(
            f"the rule {rule.label} needs positive scores; got {np.nanmin(values):g}. Set transform to shift, or to "
            "exp for scores of a reward model"
        )
    return np.asarray(power_mean(values, alpha, axis=0))


_TRANSFORM = ("transform",)

#: The rules by name.
RULES: Mapping[str, RuleKind] = MappingProxyType({
    "schulze": RuleKind("most weak wins by the strongest path of winning votes (Schulze 2011)", _schulze),
    "borda": RuleKind("most candidates placed below, ties count half, over all ballots", lambda part, _: part.points),
    "copeland": RuleKind("most candidates beaten by a majority, ties count half", _copeland),
    "plurality": RuleKind("most first places, shared between ties on a ballot", lambda part, _: part.tops),
    "approval": RuleKind("most approving ballots", _approval, False, ("threshold", "top")),
    "utilitarian": RuleKind("highest mean score", partial(_power_mean, alpha=0.0), True, _TRANSFORM),
    "nash": RuleKind("highest product of scores", partial(_power_mean, alpha=1.0), True, _TRANSFORM),
    "egalitarian": RuleKind("highest lowest score", partial(_power_mean, alpha=math.inf), True, _TRANSFORM),
    "power-mean": RuleKind("highest power mean of scores", _power_mean, True, ("alpha", *_TRANSFORM)),
})  # fmt: skip
