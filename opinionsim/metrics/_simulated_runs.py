"""Simulated opinions over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opinionsim.networks import Network


def setting_text(value: Any) -> str:
    """Spell a parameter or another setting in a few characters."""
    if np.ndim(value):
        return "by agent"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class SimulatedRuns:
    """Opinions over time that are in no store: R runs of N agents with the same settings, at K moments.

    Figures over time take them beside the runs of a store.

    Attributes
    ----------
    model : str
        Name of the model.
    parameters, scheme : dict
        Every parameter, and every option of how agents are updated.
    range : (float, float)
        Range of opinions.
    network : Network
        Who hears whom.
    seed : int
        Root seed of all random numbers.
    times : ndarray (K,) of int
        Steps after which opinions were recorded.
    opinions : ndarray (R, K, N)
        Opinions at each moment.
    """

    model: str
    parameters: dict[str, Any] = field(repr=False)
    scheme: dict[str, Any] = field(repr=False)
    range: tuple[float, float]
    network: Network = field(repr=False)
    seed: int
    times: np.ndarray = field(repr=False)
    opinions: np.ndarray = field(repr=False)

    #: What the numbers rest on, as in the frames of a store.
    evidence = "equation"

    @property
    def settings(self) -> dict[str, str]:
        """Parameters, scheme and seed as short texts."""
        settings = {**self.parameters, **self.scheme, "seed": self.seed}
        return {name: setting_text(value) for name, value in settings.items()}

    @property
    def told(self) -> Mapping[str, Any]:
        """The parameters that have an effect."""
        return self.parameters

    @property
    def discrete(self) -> bool:
        """Whether no other opinions than a few can arise, each of which is drawn by itself."""
        return False
