"""The opinion scale, opinions measured on it, and distributions of initial opinions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from opinionsim.errors import MeasurementError, SpecError, meant

#: The range of opinions: its lower and upper end.
Span = tuple[float, float]

#: Least probability on each side of neutral of a text that is called ambiguous.
_EITHER_SIDE = 0.25

#: Verbal anchors by scale size. The five-point row is Chuang et al. 2023 (A2); the others follow its wording.
_LABELS: dict[int, tuple[str, ...]] = {
    2: ("negative", "positive"),
    3: ("negative", "neutral", "positive"),
    4: ("strongly negative", "slightly negative", "slightly positive", "strongly positive"),
    5: ("strongly negative", "slightly negative", "neutral", "slightly positive", "strongly positive"),
    7: (
        "strongly negative",
        "moderately negative",
        "slightly negative",
        "neutral",
        "slightly positive",
        "moderately positive",
        "strongly positive",
    ),
}


@dataclass(frozen=True)
class OpinionScale:
    """An ordered set of opinion values, each with a verbal anchor.

    Parameters
    ----------
    points : sequence of int
        The values, strictly increasing, at least two. Default -2, -1, 0, 1, 2.
    labels : sequence of str, optional
        One distinct anchor per point, lowest first. The package provides them for 2, 3, 4, 5 and 7 points.

    Raises
    ------
    SpecError
        If there are fewer than two points, points do not increase, or labels are missing, repeated or too few.

    Notes
    -----
    The default is the scale of Chuang et al. 2023, §3 (A1, A2). Any size is allowed, as the paper suggests.
    """

    points: tuple[int, ...] = (-2, -1, 0, 1, 2)
    labels: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        whole = all(isinstance(point, (int, np.integer)) for point in self.points)
        points = tuple(int(point) for point in self.points) if whole else ()
        if len(points) < 2 or any(b <= a for a, b in pairwise(points)):
            raise SpecError(f"scale.points must be two or more strictly increasing integers; got {list(self.points)}")
        labels = tuple(self.labels) or _LABELS.get(len(points), ())
        if len(labels) != len(points) or len(set(labels)) != len(labels):
            raise SpecError(
                f"scale.labels must give one distinct label for each of the {len(points)} points; "
                f"got {list(labels)} (defaults exist for 2, 3, 4, 5 and 7 points)"
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "labels", labels)

    @classmethod
    def of_size(cls, size: int) -> OpinionScale:
        """The default scale with `size` points: symmetric about 0, without 0 when `size` is even.

        Parameters
        ----------
        size : int
            2, 3, 4, 5 or 7; for other sizes, create a scale with your own labels.
        """
        half = size // 2
        points = [point for point in range(-half, half + 1) if size % 2 or point != 0]
        return cls(tuple(points))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def lowest(self) -> int:
        """The most negative point."""
        return self.points[0]

    @property
    def highest(self) -> int:
        """The most positive point."""
        return self.points[-1]

    @property
    def neutral(self) -> float:
        """The middle of the scale; a point of it when the size is odd."""
        return (self.points[0] + self.points[-1]) / 2

    @cached_property
    def values(self) -> np.ndarray:
        """The points as floats, shape (k,)."""
        return np.asarray(self.points, dtype=float)

    def index(self, value: float) -> int:
        """Position of a scale point.

        Raises
        ------
        SpecError
            If `value` is not a point of the scale.
        """
        for position, point in enumerate(self.points):
            if point == value:
                return position
        raise SpecError(f"opinion {value!r} is not on the scale; valid values are {', '.join(map(str, self.points))}")

    def label(self, value: float) -> str:
        """The verbal anchor of a scale point."""
        return self.labels[self.index(value)]

    def nearest(self, value: float) -> int:
        """The scale point closest to `value`; of two equally close, the one nearer neutral, then the lower.

        Raises
        ------
        SpecError
            If `value` is NaN.
        """
        if np.isnan(value):
            raise SpecError("NaN has no nearest scale point")
        return min(self.points, key=lambda point: (abs(point - value), abs(point - self.neutral)))


@dataclass(frozen=True, slots=True)
class OpinionEstimates:
    """Estimates of a classifier for n texts on a scale of k points.

    Attributes
    ----------
    scale : OpinionScale
        The scale of the columns of `probabilities`.
    probabilities : ndarray (n, k)
        Distribution over the scale points given that the text answers at all; a row of NaN where it
        does not. Rows sum to 1.
    off_scale : ndarray (n,)
        Probability in [0, 1] that the text is not an answer, but a refusal, off topic or empty.
    value : ndarray (n,)
        The most probable point (ties: nearer neutral, then lower); NaN where there is no answer.
    """

    scale: OpinionScale
    probabilities: np.ndarray
    off_scale: np.ndarray
    value: np.ndarray

    @classmethod
    def from_probabilities(
        cls,
        scale: OpinionScale,
        probabilities: np.ndarray | Sequence[Sequence[float]],
        off_scale: np.ndarray | Sequence[float] | None = None,
        *,
        threshold: float = 0.5,
    ) -> OpinionEstimates:
        """Derive values from probabilities.

        Parameters
        ----------
        scale : OpinionScale
            k points.
        probabilities : array_like (n, k)
            Non-negative; each row sums to 1, or is all NaN for no answer.
        off_scale : array_like (n,), optional
            Mass outside the scale, in [0, 1]; default 0.
        threshold : float
            A text with more off-scale mass than this has no value.

        Raises
        ------
        MeasurementError
            If a row is not a distribution or the shapes disagree.
        """
        p = np.asarray(probabilities, dtype=float)
        if p.shape == (0,):
            p = p.reshape(0, len(scale))
        off = np.zeros(len(p)) if off_scale is None else np.asarray(off_scale, dtype=float)
        if p.ndim != 2 or p.shape[1] != len(scale) or off.shape != (len(p),):
            raise MeasurementError(
                f"a classifier must return one distribution over the {len(scale)} points of the scale for each text; "
                f"got probabilities of shape {p.shape} and off-scale mass of shape {off.shape}"
            )
        answered = ~np.isnan(p).all(axis=1)
        rows = p[answered]
        if not ((rows >= 0).all() and np.allclose(rows.sum(axis=1), 1.0, atol=1e-6)):
            raise MeasurementError("a classifier must return non-negative probabilities that sum to 1 for each text")
        if not ((off[answered] >= 0) & (off[answered] <= 1)).all():
            raise MeasurementError("a classifier must return an off-scale mass from 0 to 1 for each text")
        off = np.where(answered, off, 1.0)
        value = np.full(len(p), np.nan)
        # Columns ordered by distance from neutral: argmax takes the first of equals.
        order = np.lexsort((scale.values, np.abs(scale.values - scale.neutral)))
        if len(rows):
            value[answered] = scale.values[order][np.argmax(np.round(rows[:, order], 12), axis=1)]
        value[off > threshold] = np.nan
        return cls(scale, p, off, value)

    @classmethod
    def from_points(cls, scale: OpinionScale, points: Sequence[int | None]) -> OpinionEstimates:
        """Estimates with all probability on one point for each text; use None for a text without an answer."""
        rows = np.full((len(points), len(scale)), np.nan)
        for row, point in zip(rows, points, strict=True):
            if point is not None:
                row[:] = scale.values == point
        return cls.from_probabilities(scale, rows)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def expectation(self) -> np.ndarray:
        """Mean of the distribution over the points, shape (n,); NaN where there is no answer."""
        return np.asarray(self.probabilities @ self.scale.values)

    @property
    def margin(self) -> np.ndarray:
        """Probability of the most probable point minus that of the second, shape (n,)."""
        ranked = np.sort(self.probabilities, axis=1)
        return np.asarray(ranked[:, -1] - ranked[:, -2])


def ambiguous(probabilities: np.ndarray | Sequence[Sequence[float]]) -> np.ndarray:
    """Whether texts are ambiguous: a probability of at least 0.25 on each side of neutral.

    Parameters
    ----------
    probabilities : array_like (n, k)
        Distributions over the points of a scale of any size, lowest first. The middle point of an odd k is on
        neither side.

    Returns
    -------
    ndarray of bool (n,)
        False where there is no answer (a row of NaN).

    Raises
    ------
    MeasurementError
        If the array does not have two dimensions.
    """
    p = np.asarray(probabilities, dtype=float)
    if p.ndim != 2:
        raise MeasurementError(f"ambiguous: probabilities must have the shape (texts, points); got {p.shape}")
    half = p.shape[1] // 2
    low, high = p[:, :half].sum(axis=1), p[:, p.shape[1] - half :].sum(axis=1)
    return np.asarray(np.minimum(low, high) >= _EITHER_SIDE)


# -- initial opinions ---------------------------------------------------------------------------------------


class Law(NamedTuple):
    """A distribution of opinions: the names of its parameters with their defaults, and its draw.

    `draw` takes uniform numbers (..., N), the range and the parameters; a default of None stands for one that the
    range gives.
    """

    defaults: Mapping[str, float | None]
    draw: Callable[..., np.ndarray]


def _uniform(u: np.ndarray, span: Span, low: float | None, high: float | None) -> np.ndarray:
    least, most = _within(span, low, high)
    return np.asarray(least + (most - least) * u)


def _normal(u: np.ndarray, span: Span, mean: float | None, sd: float | None) -> np.ndarray:
    from scipy.special import ndtri

    centre = (span[0] + span[1]) / 2 if mean is None else mean
    width = (span[1] - span[0]) / 7 if sd is None else sd
    if width <= 0:
        raise SpecError(f"initial: sd must be above 0; got {width:g}")
    # The least uniform number is 0, whose quantile has no end.
    return np.asarray(np.clip(centre + width * ndtri(np.maximum(u, 2.0**-54)), *span))


def _beta(u: np.ndarray, span: Span, a: float, b: float) -> np.ndarray:
    from scipy.special import betaincinv

    if a <= 0 or b <= 0:
        raise SpecError(f"initial: a and b must be above 0; got {a:g} and {b:g}")
    return np.asarray(span[0] + (span[1] - span[0]) * betaincinv(a, b, u))


def _share(u: np.ndarray, span: Span, high: float) -> np.ndarray:
    """So many agents, rounded, at the upper end, at random places; all others at the lower one."""
    if not 0 <= high <= 1:
        raise SpecError(f"initial: high must be from 0 to 1; got {high:g}")
    found = np.full(u.shape, span[0])
    chosen = np.argsort(u, axis=-1, kind="stable")[..., : math.floor(high * u.shape[-1] + 0.5)]
    np.put_along_axis(found, chosen, span[1], axis=-1)
    return found


def _even(u: np.ndarray, span: Span) -> np.ndarray:
    return np.broadcast_to(np.linspace(*span, u.shape[-1]), u.shape).copy()


def _levels(u: np.ndarray, span: Span, count: float) -> np.ndarray:
    """So many opinions at equal distances from end to end, each as likely."""
    if count < 2 or count != int(count):
        raise SpecError(f"initial: count must be a whole number of at least 2; got {count:g}")
    return np.asarray(np.linspace(*span, int(count))[(u * count).astype(np.int64)])


def _within(span: Span, low: float | None, high: float | None) -> Span:
    least, most = span[0] if low is None else low, span[1] if high is None else high
    if not span[0] <= least < most <= span[1]:
        ends = f"{span[0]:g} to {span[1]:g}"
        raise SpecError(
            f"initial: low and high must be in the range {ends}, low below high; got {least:g} and {most:g}"
        )
    return least, most


#: Distributions of initial opinions by name.
DISTRIBUTIONS: Mapping[str, Law] = {
    "uniform": Law({"low": None, "high": None}, _uniform),
    "normal": Law({"mean": None, "sd": None}, _normal),
    "beta": Law({"a": 2.0, "b": 2.0}, _beta),
    "share": Law({"high": 0.5}, _share),
    "even": Law({}, _even),
    "levels": Law({"count": 2.0}, _levels),
}


def is_distribution(initial: Any) -> bool:
    """Whether initial opinions are a distribution, not numbers."""
    return isinstance(initial, (str, Mapping))


def draw_initial(initial: str | Mapping[str, Any], u: np.ndarray, span: Span, *, discrete: bool = False) -> np.ndarray:
    """Draw initial opinions from a distribution.

    Parameters
    ----------
    initial : str or mapping
        ``uniform`` (with ``low`` and ``high``; default the range), ``normal`` (with ``mean`` and ``sd``; default the
        middle of the range and a seventh of it, as in Lorenz et al. 2021; cut off at the ends), ``beta`` (with ``a``
        and ``b``, over the range), ``share`` (a share ``high`` of the agents, rounded, at the upper end, all others at
        the lower one), ``even`` (from end to end at equal distances, agent 0 at the lower end), ``levels`` (``count``
        opinions at equal distances from end to end, each equally likely). To set parameters, use a mapping such as
        ``{kind: share, high: 0.3}``. ``continuous`` is another name for ``uniform``.
    u : ndarray (..., N)
        Uniform numbers in [0, 1), one for each agent.
    span : (float, float)
        Range of opinions. If it is infinite, -1 to 1 is used instead.
    discrete : bool
        Whether the model is discrete. If so, ``uniform`` draws from the two ends.

    Returns
    -------
    ndarray (..., N)

    Raises
    ------
    SpecError
        If the distribution or a parameter is unknown, or a value is not valid.
    """
    name, kind, settings = named_law(initial, DISTRIBUTIONS)
    ends = span if np.isfinite(span).all() else (-1.0, 1.0)
    if discrete and name == "uniform" and not settings:
        return np.where(u < 0.5, *ends)
    if discrete and name == "uniform":
        raise SpecError(f"initial: uniform takes no {min(settings)!r} in discrete models; it draws ends of the range")
    if discrete and name not in ("share", "levels"):
        raise SpecError(
            f"initial: this model copies opinions, but no two agents have the same opinion in {name}; valid: uniform "
            "(the two ends of the range), share, levels"
        )
    return kind.draw(u, ends, **{**kind.defaults, **settings})


def named_law(initial: str | Mapping[str, Any], kinds: Mapping[str, Law]) -> tuple[str, Law, dict[str, Any]]:
    """The distribution that is named, and the parameters that are set; raises a SpecError if one is unknown."""
    settings = dict(initial) if isinstance(initial, Mapping) else {"kind": initial}
    name = str(settings.pop("kind", None))
    name = "uniform" if name == "continuous" else name
    if name not in kinds:
        raise SpecError(f"initial must be one of {', '.join(kinds)}, or numbers; got {name!r:.60}{meant(name, kinds)}")
    kind = kinds[name]
    for key, value in settings.items():
        if key not in kind.defaults:
            raise SpecError(f"initial: {name} has no {key!r:.60}; valid: {', '.join(kind.defaults) or 'none'}")
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not np.isfinite(value):
            raise SpecError(f"initial: {key} must be a number; got {value!r:.60}")
    return name, kind, settings
