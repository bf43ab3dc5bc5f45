"""Initial opinions: draws from named distributions, and given opinions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic.kernels._random import keyed_words, uniforms
from opinionsim.errors import SpecError, meant, whole_number

Span = tuple[float, float]


class _Law(NamedTuple):
    """A distribution: the names of its parameters with their defaults, and its draw.

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
INITIAL: Mapping[str, _Law] = {
    "uniform": _Law({"low": None, "high": None}, _uniform),
    "normal": _Law({"mean": None, "sd": None}, _normal),
    "beta": _Law({"a": 2.0, "b": 2.0}, _beta),
    "share": _Law({"high": 0.5}, _share),
    "even": _Law({}, _even),
    "levels": _Law({"count": 2.0}, _levels),
}


def is_distribution(initial: Any) -> bool:
    """Whether initial opinions are a distribution, not numbers."""
    return isinstance(initial, (str, Mapping))


def _poisson(u: np.ndarray, traits: int, mean: float) -> np.ndarray:
    from scipy.special import pdtr

    if mean <= 0:
        raise SpecError(f"initial: mean must be above 0; got {mean:g}")
    # Cut off at the last trait.
    return np.searchsorted(pdtr(np.arange(traits - 1), mean), u, side="right").astype(np.float64)


#: Distributions of traits, each from 0, by name.
TRAITS: Mapping[str, _Law] = {
    "uniform": _Law({}, lambda u, traits: np.floor(u * traits)),
    "poisson": _Law({"mean": 1.0}, _poisson),
}


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
    name, kind, settings = _named(initial, INITIAL)
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


def _named(initial: str | Mapping[str, Any], kinds: Mapping[str, _Law]) -> tuple[str, _Law, dict[str, Any]]:
    """The distribution that is named, and the parameters that are set."""
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


def draw_opinions(
    initial: str | Mapping[str, Any], n: int, span: Span, rng: np.random.Generator, *, discrete: bool = False
) -> np.ndarray:
    """Draw initial opinions (n,) as :func:`draw_initial` does, from a generator."""
    return draw_initial(initial, rng.random(n), span, discrete=discrete)


def drawn_rows(
    initial: str | Mapping[str, Any], n: int, span: Span, seed: int, replicates: Sequence[int], *, discrete: bool
) -> np.ndarray:
    """Draw initial opinions (R, n) of replicates. A row depends only on the seed and the replicate.

    With ``dimensions`` in the mapping, they are (R, n, D), and all dimensions have the same distribution.
    """
    settings = dict(initial) if isinstance(initial, Mapping) else {"kind": initial}
    dimensions = settings.pop("dimensions", 1)
    whole_number("initial: dimensions", dimensions, 1)
    u = uniforms(keyed_words(seed, "initial opinions", replicates, n * int(dimensions)))
    if dimensions == 1:
        return draw_initial(settings, u, span, discrete=discrete)
    drawn = draw_initial(settings, u.reshape(len(u), -1, n), span, discrete=discrete)
    return np.ascontiguousarray(np.moveaxis(drawn, 1, 2))


def drawn_traits(
    initial: str | Mapping[str, Any], n: int, features: int, traits: int, seed: int, replicates: Sequence[int]
) -> np.ndarray:
    """Draw initial traits (R, n, features) of replicates, whole numbers from 0 to `traits` - 1.

    Parameters
    ----------
    initial : str or mapping
        ``uniform``, all traits equally likely; or ``{kind: poisson, mean: m}``, cut off at the last trait.
    n, features, traits : int
        Number of agents, of features per agent, and of traits per feature.
    seed : int
        Root seed of all random numbers.
    replicates : sequence of int
        Numbers of the replicates.
    """
    _, kind, settings = _named(initial, TRAITS)
    u = uniforms(keyed_words(seed, "initial opinions", replicates, n * features)).reshape(-1, n, features)
    return kind.draw(u, traits, **{**kind.defaults, **settings})
