"""What a simulation of a classic model leads to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.networks import Network

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Trajectories"]


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Opinions over time, for R replicates of N agents at K moments.

    Attributes
    ----------
    model : str
        Name of the model.
    parameters, scheme : dict
        Every parameter and scheme option, those left at their defaults included.
    range : (float, float)
        Of opinions.
    network : Network
        Who hears whom.
    seed : int
        Of all random draws.
    times : ndarray (K,) of int
        Steps after which opinions were recorded, from 0: sweeps of one elementary update an agent, or recorded
        pairs where these were given.
    opinions : ndarray (R, K, N) or (R, K, N, D)
        The first moment holds the initial opinions.
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
    def final(self) -> np.ndarray:
        """Opinions at the last moment, (R, N) or (R, N, D)."""
        return np.asarray(self.opinions[:, -1])

    def frame(self) -> pd.DataFrame:
        """One row a replicate, moment and agent.

        Returns
        -------
        DataFrame
            Columns ``run_id`` (the replicate, as text), ``cell`` (the model), ``agent``, ``step``, ``value`` (and
            ``dimension``, where opinions have several), ``evidence``.
        """
        import pandas as pd

        shape = self.opinions.shape
        places = np.indices(shape).reshape(len(shape), -1)
        columns = {
            "run_id": pd.Series(places[0].astype(str), dtype="str"),
            "cell": self.model,
            "agent": places[2],
            "step": np.asarray(self.times)[places[1]],
            "value": self.opinions.reshape(-1),
            "evidence": self.evidence,
        }
        if len(shape) == 4:
            columns["dimension"] = places[3]
        return pd.DataFrame(columns).sort_values(
            ["run_id", "step", "agent"], key=lambda column: column.astype(int), kind="stable", ignore_index=True
        )
