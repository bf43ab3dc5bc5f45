"""A simulation that is in no store, with opinions as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opinionsim.metrics import SimulatedRuns
from opinionsim.networks import Network


class Discrete(SimulatedRuns):
    """A simulation whose opinions are drawn one by one."""

    @property
    def discrete(self) -> bool:
        return True


def simulated(
    opinions: Sequence[Any],
    *,
    times: Sequence[int] | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    network: Any = None,
    discrete: bool = False,
    **changes: Any,
) -> SimulatedRuns:
    """A simulation with the given opinions, (R, K, N)."""
    array = np.asarray(opinions, dtype=float)
    settings = {"model": "nudge", "parameters": {"pull": 0.2}, "scheme": {"order": "random"}, "seed": 0} | changes
    return (Discrete if discrete else SimulatedRuns)(
        range=span,
        network=Network.of(array.shape[2] if network is None else network),
        times=np.arange(array.shape[1]) if times is None else np.asarray(times),
        opinions=array,
        **settings,
    )
