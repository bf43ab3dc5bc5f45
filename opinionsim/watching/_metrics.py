"""Metrics of a run by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import MeasurementError
from opinionsim.metrics import METRICS, compute_metrics
from opinionsim.networks import Network
from opinionsim.watching._run_view import OneRun, coded_turns, picked, plain

if TYPE_CHECKING:
    from opinionsim.store import Columns, ExperimentRun, StoreReader


def values_by_step(
    columns: Columns, n_agents: int, steps: int, cell: ExperimentRun, instrument_id: str, kind: str | None = None
) -> np.ndarray:
    """Last measured opinion of every participant at the end of every step.

    Parameters
    ----------
    columns : Columns
        Columns of a run.
    n_agents : int
        Number of participants.
    steps : int
        Minimum of the last step; texts of later steps raise it.
    cell : ExperimentRun
        Run of the experiment; determines which texts count.
    instrument_id : str
        The instrument whose opinions count; each opinion comes from one text by itself.
    kind : str, optional
        Kind of text; default any.

    Returns
    -------
    ndarray (n_agents, steps + 1)
        From step 0; NaN until an agent is first measured. If a step has several texts, the last one counts. A text
        without a value does not change the opinion.
    """
    found = [each for each in coded_turns(columns, instrument_id, kind) if each[0].agent < n_agents]
    grid = np.full((n_agents, max([steps, *(turn.step for turn, _ in found)]) + 1), np.nan)
    for turn, value in found:
        if value is not None and cell.counts(turn):
            grid[turn.agent, turn.step] = value
    source = np.maximum.accumulate(np.where(np.isnan(grid), 0, np.arange(grid.shape[1])), axis=1)
    return np.take_along_axis(grid, source, axis=1)


class _Measured:
    """The opinions of a run by an instrument and a kind of text, and the metrics of them.

    Attributes
    ----------
    values : ndarray (n_agents, steps + 1)
        As :func:`values_by_step` gives them.
    names : list of str
        Metrics that can be computed; none where nothing is measured.
    """

    def __init__(self, one: OneRun, instrument: str | None = None, kind: str | None = None) -> None:
        run, self._one, chosen = one.registered, one, one.instrument(instrument)
        name = "" if chosen is None else chosen.instrument_id
        kind = one.kind(name, kind)
        self.values = values_by_step(one.columns, run.n_agents, run.steps, one.cell, name, kind)
        n, steps = self.values.shape
        turns = [each for each in one.columns.turns if kind in (None, each.kind) and each.agent < n]
        first = np.full(n, np.inf)
        np.minimum.at(first, [each.agent for each in turns], [each.step for each in turns])
        due = (first[:, None] <= np.arange(steps)).sum(axis=0)
        #: Steps by which too few agents were measured for a number of all.
        self._withheld = (~np.isnan(self.values)).sum(axis=0) < one.cell.least_measured * due
        self._edges = one.reader.edges(one.run_id)
        given = {"truth"} if run.truth is not None else set()
        given |= {"range"} | ({"network"} if self._edges or run.network == "complete" else set())
        self._span = (min(chosen.points), max(chosen.points)) if chosen else None
        self.names = [each for each, metric in METRICS.items() if chosen and metric.needs <= given]

    def by_step(self, name: str, first: int = 0) -> np.ndarray:
        """Metric at every step from `first` on.

        Raises
        ------
        MeasurementError
            If the metric cannot be computed for these opinions.
        """
        if name not in self.names:
            raise MeasurementError(f"{name[:40]} cannot be computed for this run; valid: {', '.join(self.names)}.")
        truth, parts = self._one.registered.truth, []
        networked = "network" in METRICS[name].needs
        for begin, end, network in self._networks() if networked else [(0, self.values.shape[1], None)]:
            if (opinions := self.values[:, max(begin, first) : end].T).size:
                found = compute_metrics(opinions, name, range=self._span, network=network, truth=truth)
                parts.append(found[name])
        return np.where(self._withheld[first:], np.nan, np.concatenate(parts))

    def told(self, name: str) -> dict[str, Any]:
        """A metric by step as JSON values; without a name, the available metrics."""
        about = picked(METRICS[name], "meaning formula") if name in self.names else {"meaning": "", "formula": ""}
        values = [plain(value) for value in self.by_step(name).tolist()] if name else []
        return {"name": name, **about, "values": values, "names": self.names}

    def _networks(self) -> Iterator[tuple[int, int, Network]]:
        """Steps with one network: the first, the one after the last, and the network."""
        n, steps = self.values.shape
        ties = {(each.source, each.target): each.weight for each in self._edges}
        directed, begin = any(source > target for source, target in ties), 0
        for row in [*self._one.columns.ties, None]:
            end = steps if row is None else min(row.step, steps)
            if end > begin:
                # Others of a cast, such as a moderator, have no opinion that counts.
                own = [pair for pair in ties if max(pair) < n]
                weights = [ties[pair] for pair in own]
                yield begin, end, Network.from_edges(own, n, weights, directed=directed) if ties else Network.of(n)
                begin = end
            if row is not None:
                weight = ties.pop((row.old_source, row.old_target), 1.0)
                ties.update({(row.source, row.target): weight} if row.source is not None else {})


def run_metric(
    reader: StoreReader, run: str, *, name: str = "", instrument: str | None = None, kind: str | None = None
) -> dict[str, Any]:
    """Metric of the opinions of a run, by step.

    Parameters
    ----------
    reader, run
        As for :func:`run_record`.
    name : str
        Name of the metric; empty to get only the names of metrics that can be computed.
    instrument, kind : str, optional
        Instrument and kind of text that opinions are read from; default as for figures.

    Returns
    -------
    dict of JSON values
        Meaning, formula and values of the metric, and the names of all metrics that can be computed for the run.

    Raises
    ------
    AbsentError
        If there is no such run or instrument.
    SpecError
        If the instrument reads no such kind of text.
    MeasurementError
        If the metric cannot be computed for the run.
    """
    with reader.moment() as moment:
        return _Measured(OneRun.of(moment, run), instrument, kind).told(name)


def all_metrics(one: OneRun, instrument: str, kind: str) -> dict[str, dict[str, Any]]:
    """Metrics of a run by name, in the form that :func:`run_metric` returns."""
    found = _Measured(one, instrument, kind)
    return {name: found.told(name) for name in found.names}
