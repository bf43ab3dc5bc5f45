"""Trajectories of opinions: the result of a simulation of a classic model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.metrics import SimulatedRuns
from opinionsim.networks import Network
from opinionsim.registry import loaded

if TYPE_CHECKING:
    import pandas as pd

Metrics = Sequence[str] | Mapping[str, Callable[[np.ndarray], float]]


def plain(value: Any) -> Any:
    """Convert numpy arrays and numbers to Python lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def metrics_of_runs(
    opinions: np.ndarray,
    initial: np.ndarray,
    metrics: Metrics,
    span: tuple[float, float],
    network: Network | Sequence[Network],
    delta: float | None = None,
    rests: np.ndarray | None = None,
) -> dict[str, Any]:
    """Compute metrics by name, one value per run, of opinions (R, N) or (R, N, D), by dimension or of all together.

    `initial` contains the opinions at the start of each run. `metrics` are names, or functions of opinions (N,) or
    (N, D). `network` is one network for all runs, or one for each. `delta` is the largest gap within a cluster of
    single numbers if it differs from the default of the metrics; with `rests` (R,), it applies only to runs at rest.
    """
    # Imported late: metrics of frames load pandas, which a simulation has no use for.
    from opinionsim.metrics import compute_metrics, find_metric, takes_delta

    gaps = [delta if rests is None or rest else None for rest in (opinions if rests is None else rests)]
    several = not isinstance(network, Network) and len({id(each) for each in network}) > 1
    if several or len(set(gaps)) > 1:
        ties = [network] * len(opinions) if isinstance(network, Network) else network
        runs = zip(opinions, initial, ties, gaps, strict=True)
        parts = [metrics_of_runs(now[None], then[None], metrics, span, own, gap) for now, then, own, gap in runs]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    network, delta = network if isinstance(network, Network) else network[0], gaps[0]
    if isinstance(metrics, Mapping):
        return {name: [function(each) for each in opinions] for name, function in metrics.items()}
    if isinstance(metrics, str):
        raise SpecError(f"metrics must be a list of names; got {metrics!r}")
    if opinions.ndim == 2:
        # Those of the package alone: what a user's metric makes of another option named delta is its own.
        options: dict[str, Any] = (
            {} if delta is None else {name: {"delta": delta} for name in metrics if takes_delta([name])}
        )
        return dict(compute_metrics(opinions, metrics, range=span, network=network, initial=initial, **options))
    whole = [name for name in metrics if "vectors" in find_metric(name).takes]
    found = (
        compute_metrics(opinions, whole, range=span, network=network, initial=initial, vectors=True) if whole else {}
    )
    rest = [name for name in metrics if name not in whole]
    parts = [metrics_of_runs(opinions[..., d], initial[..., d], rest, span, network) for d in range(opinions.shape[-1])]
    each = {name: {f"{name}[{d}]": part[name] for d, part in enumerate(parts)} for name in rest}
    return {label: values for name in metrics for label, values in each.get(name, {name: found.get(name)}).items()}


@dataclass(frozen=True, eq=False)
class Trajectories(SimulatedRuns):
    """Opinions over time, for R replicates of N agents at K moments.

    Attributes
    ----------
    model : str
        Name of the model.
    parameters, scheme : dict
        Every parameter and scheme option, including those with default values.
    range : (float, float)
        Range of opinions.
    network : Network
        Who hears whom.
    seed : int
        Root seed of all random numbers.
    times : ndarray (K,) of int
        Steps after which opinions were recorded, from 0. A step is one elementary update per agent, or one recorded
        pair if pairs were given.
    opinions : ndarray (R, K, N) or (R, K, N, D)
        Opinions at each moment; the first moment has the initial opinions.
    ended : ndarray (R,) of int
        Step after which the event `until` ended each run; -1 if it did not occur or was not set.
    networks : tuple of Network
        The network of each run at the last moment, for models that move ties; empty for all others.
    delta : float or None
        The largest gap within a cluster of single numbers that `metrics` uses for runs at rest. It is the confidence
        for runs until frozen on the complete graph in models whose clusters keep shrinking, which gives the clusters of
        an infinitely long run. At earlier moments, and in runs that reach their limit, metrics use their own default.
        None for other runs, and if agents differ in confidence.
    """

    ended: np.ndarray = field(repr=False)
    networks: tuple[Network, ...] = field(default=(), repr=False)
    delta: float | None = field(default=None, repr=False)

    @property
    def told(self) -> Mapping[str, Any]:
        """The parameters that have an effect."""
        model = loaded("classic_model", self.model)
        return self.parameters if model is None else model.told(self.parameters)

    @property
    def discrete(self) -> bool:
        """Whether opinions of the model are discrete."""
        model = loaded("classic_model", self.model)
        return model is not None and model.kind == "discrete"

    @property
    def final(self) -> np.ndarray:
        """Opinions at the last moment, (R, N) or (R, N, D)."""
        return np.asarray(self.opinions[:, -1])

    def metrics(self, names: Metrics, moment: int = -1) -> dict[str, Any]:
        """Compute metrics of the opinions at one of the moments, by default the last.

        Parameters
        ----------
        names : sequence of str, or mapping of str to callable
            Names in :data:`opinionsim.metrics.METRICS`, or functions of opinions (N,) or (N, D).
        moment : int
            Index into `times`.

        Returns
        -------
        dict
            One value per replicate by name. If opinions have several dimensions, names are ``bias[0]``, ``bias[1]``,
            ..., except for metrics of all dimensions together, such as ``regions``.
        """
        now, network = self.opinions[:, moment], self._at(moment, names)
        rests = (self.ended >= 0) & (self.ended <= self.times[moment])
        return metrics_of_runs(now, self.opinions[:, 0], names, self.range, network, self.delta, rests)

    def _at(self, moment: int, names: Metrics) -> Network | Sequence[Network]:
        """The network at a moment, or that of each run."""
        from opinionsim.metrics import find_metric

        place = range(len(self.times))[moment]
        if not self.networks:
            return self.network
        if place == len(self.times) - 1:
            return self.networks
        for name in () if isinstance(names, Mapping) or place == 0 else names:
            if "network" in find_metric(name).needs:
                raise SpecError(f"{name} needs the network, but {self.model} keeps only the first and the last")
        return self.network

    def frame(self) -> pd.DataFrame:
        """Return a frame with one row per replicate, moment and agent.

        Returns
        -------
        DataFrame
            Columns ``run_id`` (the replicate, as text), ``cell`` (the model), ``agent``, ``step``, ``value``,
            ``dimension`` if opinions have several, and ``evidence``.
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
