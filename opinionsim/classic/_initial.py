"""Initial opinions and traits of replicates, drawn from keyed streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opinionsim.classic.kernels._random import keyed_words, uniforms
from opinionsim.errors import SpecError, whole_number
from opinionsim.opinions import Law, Span, draw_initial, named_law


def _poisson(u: np.ndarray, traits: int, mean: float) -> np.ndarray:
    from scipy.special import pdtr

    if mean <= 0:
        raise SpecError(f"initial: mean must be above 0; got {mean:g}")
    # Cut off at the last trait.
    return np.searchsorted(pdtr(np.arange(traits - 1), mean), u, side="right").astype(np.float64)


#: Distributions of traits, each from 0, by name.
TRAITS: Mapping[str, Law] = {
    "uniform": Law({}, lambda u, traits: np.floor(u * traits)),
    "poisson": Law({"mean": 1.0}, _poisson),
}


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
    _, kind, settings = named_law(initial, TRAITS)
    u = uniforms(keyed_words(seed, "initial opinions", replicates, n * features)).reshape(-1, n, features)
    return kind.draw(u, traits, **{**kind.defaults, **settings})
