"""Metrics of a run by step, and the last one of every run of an experiment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opinionsim.errors import MeasurementError
from opinionsim.metrics import METRICS, compute_metrics
from opinionsim.networks import Network
from opinionsim.watching._places import Place, design_of, instrument_of, kind_of, place_of, plain
from opinionsim.watching._runs import cells_of
from opinionsim.watching._values import values_by_step

if TYPE_CHECKING:
    from opinionsim.store import Columns, StoreReader

#: Seconds for which one answer computes colours, about.
_COMPUTE_S = 0.5

#: Last value of a metric by run, generation, number of the last row, instrument and name.
Known = MutableMapping[tuple[str, int, int, str | None, str], float | None]


def metrics_of(given: set[str]) -> list[str]:
    """Names of the metrics that need nothing beyond opinions and some of range, network and truth."""
    return [name for name, metric in METRICS.items() if metric.needs <= given]


class _Measured(NamedTuple):
    """The opinions of a run, and what metrics of them may need."""

    values: np.ndarray
    """Opinions, one row an agent, one column a step from 0."""
    given: dict[str, Any]
    """Arguments of metrics beside the network."""
    columns: Columns
    edges: list[tuple[int, int, float]]
    complete: bool

    @property
    def names(self) -> list[str]:
        """Metrics that can be computed."""
        return metrics_of({*self.given, *(("network",) if self.edges or self.complete else ())})

    def by_step(self, name: str, first: int = 0) -> np.ndarray:
        """A metric at every step from `first` on.

        Raises
        ------
        MeasurementError
            If it cannot be computed of these opinions.
        """
        if name not in self.names:
            raise MeasurementError(f"{name[:40]} cannot be computed of this run; valid: {', '.join(self.names)}.")
        parts = []
        for begin, end, network in self._networks(first) if "network" in METRICS[name].takes else self._whole(first):
            given = {**self.given, **({} if network is None else {"network": network})}
            given = {key: value for key, value in given.items() if key in METRICS[name].takes}
            with warnings.catch_warnings():
                # Steps before the first measured opinion have no value.
                warnings.simplefilter("ignore", RuntimeWarning)
                parts.append(np.atleast_1d(compute_metrics(self.values[:, begin:end].T, name, **given)[name]))
        return np.concatenate(parts)

    def _whole(self, first: int) -> Iterator[tuple[int, int, None]]:
        yield first, self.values.shape[1], None

    def _networks(self, first: int) -> Iterator[tuple[int, int, Network]]:
        """Steps with one network: the first, the one after the last, and the network."""
        n, steps = self.values.shape
        if self.complete:
            yield first, steps, Network.of(n)
            return
        ties = {(source, target): weight for source, target, weight in self.edges}
        directed = any(source > target for source, target in ties)
        begin = 0
        for row in [*self.columns.ties, None]:
            end = steps if row is None else min(row.step, steps)
            if end > max(begin, first):
                pairs = [pair for pair in ties if max(pair) < n]
                weights = [ties[pair] for pair in pairs]
                yield max(begin, first), end, Network.from_edges(pairs, n, weights, directed=directed)
            if row is not None:
                begin = end
                weight = 1.0 if row.old_source is None else ties.pop((row.old_source, row.old_target), 1.0)
                if row.source is not None:
                    ties[row.source, row.target] = weight


def _measured(
    reader: StoreReader, place: Place, instrument: str | None = None, kind: str | None = None
) -> _Measured | None:
    """The opinions of a run by an instrument and kind of text; None where nothing was measured.

    Raises
    ------
    AbsentError, SpecError
        If the run has no such instrument, or it reads no such kind of text.
    """
    run_id, cell = place.cell.run_id, place.cell
    chosen = instrument_of(reader, place, instrument)
    if chosen is None:
        return None
    columns = reader.columns(run_id)
    kind = kind_of(columns, place, chosen.instrument_id, kind)
    run = reader.registered([run_id])[run_id]
    values = values_by_step(columns, run.n_agents, run.steps, chosen.instrument_id, kind, cut_off=cell.counts_cut_off)
    truth = {} if run.truth is None else {"truth": run.truth}
    given = {"range": (min(chosen.points), max(chosen.points)), **truth}
    edges = [(each.source, each.target, each.weight) for each in reader.edges(run_id)]
    return _Measured(values, given, columns, edges, not edges and run.network == "complete")


def run_metric(
    reader: StoreReader, run_id: str, name: str, *, instrument: str | None = None, kind: str | None = None
) -> dict[str, Any]:
    """A metric of the opinions of a run by step.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run_id : str
        The run.
    name : str
        The metric; empty for the names of those that can be computed alone.
    instrument, kind : str, optional
        Whose opinions of what texts; default as for figures.

    Returns
    -------
    dict of JSON values
        Meaning, formula and values of the metric, and the names of all that can be computed of the run.

    Raises
    ------
    AbsentError
        If there is no such run or instrument.
    SpecError
        If the instrument reads no such kind of text.
    MeasurementError
        If the metric cannot be computed of the run.
    """
    with reader.moment() as moment:
        found = _measured(moment, place_of(moment, run_id), instrument, kind)
    names = [] if found is None else found.names
    if not name or found is None:
        return {"name": name, "meaning": "", "formula": "", "values": [], "names": names}
    values = [plain(value) for value in found.by_step(name).tolist()]
    metric = METRICS[name]
    return {"name": name, "meaning": metric.meaning, "formula": metric.formula, "values": values, "names": names}


def colours(
    reader: StoreReader, experiment_id: str, metric: str, *, design: int | None = None, known: Known | None = None
) -> dict[str, Any]:
    """The last value of a metric of each run, by its instrument of stance.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    experiment_id : str
        Identity or name of the experiment.
    metric : str
        Name of the metric.
    design : int, optional
        Number of the design; default the one run last.
    known : mutable mapping, optional
        Values that earlier answers have computed.

    Returns
    -------
    dict of JSON values
        Values by row, their ends, and how many runs are `left` to be computed by further questions.

    Raises
    ------
    AbsentError
        If there is no such experiment or design.
    MeasurementError
        If there is no such metric.
    """
    if metric not in METRICS:
        raise MeasurementError(f"There is no metric {metric[:40]!r}.")
    known = {} if known is None else known
    until = time.monotonic() + _COMPUTE_S
    values: dict[str, float | None] = {}
    left = 0
    with reader.moment() as moment:
        row, _ = design_of(moment, experiment_id, design)
        cells = cells_of(row)
        run_ids = [cell.run_id for cell in cells]
        states, progress = moment.states(run_ids), moment.progress(run_ids)
        for number, cell in enumerate(cells):
            run_id = cell.run_id
            key = (run_id, states[run_id].generation, progress[run_id].seq, cell.instrument_id, metric)
            if key not in known and time.monotonic() > until:
                left += 1
                continue
            if key not in known:
                known[key] = _last(moment, Place(row, cells, number), metric)
            values[str(number)] = known[key]
    present = [value for value in values.values() if value is not None]
    ends = {"low": min(present, default=None), "high": max(present, default=None)}
    return {"metric": metric, **ends, "values": values, "left": left}


def _last(reader: StoreReader, place: Place, name: str) -> float | None:
    """The last value of a metric of a run; None where it cannot be computed."""
    found = _measured(reader, place, place.cell.instrument_id)
    try:
        return None if found is None else plain(found.by_step(name, found.values.shape[1] - 1)[-1])
    except MeasurementError:
        return None
