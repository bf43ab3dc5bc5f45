"""Opinions of runs over time, in one form for the frames of a store and for simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from opinionsim import metrics
from opinionsim.drawing import point_name
from opinionsim.errors import SpecError, whole_number
from opinionsim.networks import Network
from opinionsim.opinions import OpinionScale
from opinionsim.plots._inputs import HasFrames, acts_of, has_frames, pick_kind, pick_run, runs_to_draw
from opinionsim.store import Mark, marks_of

#: Most conditions of one figure.
_MOST_CELLS = 12
#: Most distinct whole numbers that are drawn as the points of a discrete model.
_MOST_POINTS = 12


#: Sources of figures over time.
Source = HasFrames | metrics.SimulatedRuns | Sequence[metrics.SimulatedRuns] | Mapping[str, metrics.SimulatedRuns]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Opinions of the N agents of one run at K moments.

    Attributes
    ----------
    run_id, cell : str
        The run, and the condition it belongs to.
    times : ndarray (K,)
        Steps, increasing.
    values : ndarray (K, N)
        Opinions, NaN for an agent that has none yet.
    measured : ndarray (K, N) of bool
        True where the opinion was measured at this moment; elsewhere it is carried forward.
    evidence : str
        Kind of evidence the run is.
    block : str
        The block of the run; runs of one block share their random draws.
    network : Network or None
        Who hears whom, of a simulation.
    events : tuple of Mark
        Steps at which events of the run begin, and their names.
    assigned : ndarray (N,) or None
        Opinion that each agent was assigned at the start, NaN for none; None for a simulation.
    discrete : bool
        Whether a simulation has a few opinions, each of which is drawn by itself.
    """

    run_id: str
    cell: str
    times: np.ndarray
    values: np.ndarray
    measured: np.ndarray
    evidence: str
    block: str
    network: Network | None = None
    events: tuple[Mark, ...] = ()
    assigned: np.ndarray | None = None
    discrete: bool = False


@dataclass(frozen=True, eq=False)
class TrajectorySet:
    """All runs a figure is drawn from.

    Attributes
    ----------
    cells : dict of str to list of Trajectory
        Runs of each condition, in the order to show them.
    span : (float, float)
        Range of opinions.
    scale : OpinionScale or None
        The scale of the instruments of stance; None for a model whose opinions are plain numbers.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, and the validation of the instruments.
    factors : DataFrame
        One row per condition, whose name is the index, with its level of each factor in words; empty for
        simulations.
    """

    cells: dict[str, list[Trajectory]]
    span: tuple[float, float]
    scale: OpinionScale | None
    evidence: str
    notes: tuple[str, ...]
    factors: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def averaged(self) -> str:
        """The number of runs of each condition, in words."""
        counts = [len(runs) for runs in self.cells.values()]
        low, high = min(counts), max(counts)
        said = f"mean of {low}" if low > 1 else "1"
        said += f" to {high} runs" if low != high else " runs" if low > 1 else " run"
        return said + (" per condition" if len(counts) > 1 else "")


def trajectories_of(
    source: Source,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    by: str | Sequence[str] | None = None,
    wording: str | None = None,
) -> TrajectorySet:
    """Opinions over time of the runs of a store or of simulations.

    Parameters
    ----------
    source : Results, Frames, SimulatedRuns, sequence or mapping of SimulatedRuns
        Frames of a store, of which only complete runs and their participants count; or simulations. Each simulation
        is a condition, named by its model and the settings that differ, or by its key in a mapping.
    kind : str, optional
        Kind of text the opinions were coded from; default the first that was measured, in the order of the column
        `texts` of runs. Only for a store, like the next three.
    where : mapping, optional
        Column of ``runs`` to the value it must have.
    by : str or sequence of str, optional
        Columns of ``runs`` that define a condition; topics may differ within one. Default: each cell is a condition.
    wording : str, optional
        Wording of the prompts whose runs are drawn, as for :func:`opinionsim.metrics.one_wording`; default that of
        the run that began last. Notes say how many runs of other wordings are left out.

    Raises
    ------
    SpecError
        If there is nothing to draw, a column, level or wording does not exist, conditions would be mixed, simulations
        count time differently, or opinions are vectors.
    """
    if isinstance(source, metrics.SimulatedRuns):
        source = [source]
    if has_frames(source):
        taken, left_out = runs_to_draw(source, kind, where or {}, wording)
        runs, factors, notes = metrics.named_conditions(taken, by, _MOST_CELLS)
        return replace(of_runs(source, runs, kind, [*notes, *left_out]), factors=factors)
    given = {"kind": kind, "where": where, "by": by, "wording": wording}
    idle = [name for name, value in given.items() if value]
    if idle:
        raise SpecError(f"{' and '.join(idle)} choose runs of a store; simulations are drawn whole")
    return _of_simulations(source)


def of_runs(
    results: HasFrames,
    runs: pd.DataFrame,
    kind: str | None,
    notes: Sequence[str] = (),
    among: pd.DataFrame | None = None,
) -> TrajectorySet:
    """Opinions of the participants of the given runs over time.

    Column ``condition`` holds the name of each run's condition. Runs of a condition keep their order. A note on a
    single run states its levels of everything that varies `among` some runs.
    """
    keys = ["run_id", "cell", "instrument_id"]
    opinions = metrics.stance_rows(runs, results.opinions).merge(runs[keys], on=keys)
    by_cell = dict(list(opinions.groupby("cell", sort=False)["kind"]))
    of_cells = runs.groupby("cell", sort=False)
    kinds = {cell: pick_kind(kind, by_cell.get(cell, ()), own) for cell, own in of_cells}
    found: dict[tuple[str, str], pd.DataFrame] = {}
    for chosen in dict.fromkeys(kinds.values()):
        own = runs[runs["cell"].map(kinds) == chosen]
        texts, turns = opinions[opinions["cell"].isin(own["cell"])], acts_of(results)
        frame = metrics.trajectories(own, results.agents, texts, chosen, turns)
        # A figure of one run draws agents; others are of numbers, which a run with few measured ones lacks.
        frame["value"] = frame["value"].mask(frame["withheld"] & (among is None))
        found.update(((str(run_id), str(cell)), part) for (run_id, cell), part in frame.groupby(["run_id", "cell"]))
    cells: dict[str, list[Trajectory]] = {}
    for _, run in runs.iterrows():
        run_id, cell, name, evidence, block = map(str, run[["run_id", "cell", "condition", "evidence", "block"]])
        part = found[run_id, cell]
        values, measured = (part[name].to_numpy().reshape(run["n_agents"], -1).T for name in ("value", "measured"))
        held, events = part["assigned_opinion"].to_numpy(float)[:: len(values)], marks_of(run.to_dict())
        times = np.arange(len(values))
        trajectory = Trajectory(run_id, name, times, values, measured, evidence, block, None, events, held)
        cells.setdefault(name, []).append(trajectory)
    few = sum(bool(part["withheld"].iloc[-1]) for part in found.values())
    withheld = [f"{few} of {len(runs)} runs withheld at the end: too few agents measured"] if few else []
    scale = metrics.scale_of_all(opinions)
    return TrajectorySet(
        cells,
        (scale.lowest, scale.highest),
        scale,
        metrics.evidence_statement(runs["evidence"]),
        (*_told(runs, [kinds[cell] for cell in runs["cell"]], among), *withheld, *notes),
    )


def one_trajectory(source: Source, run: str | int | None, kind: str | None) -> tuple[Trajectory, TrajectorySet]:
    """Return one run and the set it belongs to, with notes on the run.

    Parameters
    ----------
    source : Results, Frames, SimulatedRuns, or a sequence or mapping with one SimulatedRuns
        Source of the run.
    run : str or int, optional
        Identity of a store's run or its position in ``runs``, default the first complete one of the lowest
        replicate; for a simulation the replicate, default 0.
    kind : str, optional
        Kind of text, for a store.

    Raises
    ------
    SpecError
        If there is no such run, or several simulations are given.
    """
    if has_frames(source):
        own = pick_run(source, run)
        row = own.runs.iloc[0]
        replicates = source.runs.loc[source.runs["cell"] == row["cell"], "replicate"].nunique()
        drawn = of_runs(own, own.runs.assign(condition="run"), kind, [metrics.provenance(row, replicates)], source.runs)
        return drawn.cells["run"][0], drawn
    drawn = trajectories_of(source, kind)
    if len(drawn.cells) > 1:
        raise SpecError(f"one simulation is drawn at a time; got {len(drawn.cells)}: {', '.join(drawn.cells)}")
    (runs,) = drawn.cells.values()
    position = 0 if run is None else run
    if isinstance(position, str) or not 0 <= position < len(runs):
        raise SpecError(f"run must be a replicate from 0 to {len(runs) - 1}; got {run!r}")
    told = f"replicate {position} (of {len(runs)})" if len(runs) > 1 else "one run"
    return runs[position], replace(drawn, notes=(*drawn.notes, told))


def _told(runs: pd.DataFrame, kinds: Sequence[str], among: pd.DataFrame | None) -> list[str]:
    """Notes on the settings that all runs share, their instruments, and the validation of these."""
    differing = tuple(str(column) for column in runs.columns if runs[column].nunique(dropna=False) > 1)
    instruments = dict.fromkeys(
        metrics.name_instrument(kind, str(name)) for kind, name in zip(kinds, runs["classifier"], strict=True)
    )
    said = [metrics.validation_statement([text], kind) for text, kind in zip(runs["validation"], kinds, strict=True)]
    shared = metrics.describe(runs.iloc[0], without=differing, among=among)
    told = [
        f"all runs: {shared}" if shared else "",
        f"opinions are those of {', '.join(instruments)}",
        metrics.played_by(runs["model"].astype(str), runs["evidence"]),
        metrics.validation_statement(said),
        metrics.outdated([row for _, row in runs.iterrows()]),
    ]
    return [text for text in told if text]


def _of_simulations(source: Any) -> TrajectorySet:
    keyed = isinstance(source, Mapping)
    simulations = list(source.values() if keyed else source if isinstance(source, Sequence) else ())
    if not simulations or not all(isinstance(each, metrics.SimulatedRuns) for each in simulations):
        found = "nothing" if isinstance(source, Mapping | Sequence) and not source else type(source).__name__
        raise SpecError(f"figures are drawn from Results or Frames, or from simulations, one or several; got {found}")
    for each in simulations:
        if each.opinions.ndim != 3:
            raise SpecError(
                f"opinions of {each.opinions.shape[-1]} dimensions cannot be drawn on one axis; choose one, as in "
                "dataclasses.replace(found, opinions=found.opinions[..., 0])"
            )
    if len({each.scheme.get("order") == "given" for each in simulations}) > 1:
        raise SpecError("a step is one pair in some simulations and one update per agent in others; draw them apart")
    names = [str(key) for key in source] if keyed else _names(simulations)
    cells = {name: _replicates(each, name) for name, each in zip(names[:_MOST_CELLS], simulations, strict=False)}
    notes = _describe_simulations(simulations)
    if len(names) > _MOST_CELLS:
        notes.append(f"{len(names) - _MOST_CELLS} of {len(names)} conditions left out")
    return TrajectorySet(
        cells,
        (min(each.range[0] for each in simulations), max(each.range[1] for each in simulations)),
        None,
        metrics.evidence_statement(each.evidence for each in simulations),
        tuple(notes),
    )


def _replicates(simulation: metrics.SimulatedRuns, name: str) -> list[Trajectory]:
    known = np.broadcast_to(True, simulation.opinions.shape[1:])
    times = np.asarray(simulation.times)
    evidence, network, discrete = simulation.evidence, simulation.network, simulation.discrete
    return [
        Trajectory(str(r), name, times, values, known, evidence, str(r), network, discrete=discrete)
        for r, values in enumerate(simulation.opinions)
    ]


def _names(simulations: Sequence[metrics.SimulatedRuns]) -> list[str]:
    """Name of each simulation: its model, and the settings in which it differs from others of that model."""
    names = []
    for each in simulations:
        alike = [other.settings for other in simulations if other.model == each.model]
        own = each.settings
        differing = [key for key in own if len({other.get(key) for other in alike}) > 1]
        names.append(", ".join([each.model, *(f"{key} {own[key]}" for key in differing)]))
    totals = {name: names.count(name) for name in names}
    return [
        f"{name} ({names[: place + 1].count(name)})" if totals[name] > 1 else name for place, name in enumerate(names)
    ]


def _describe_simulations(simulations: Sequence[metrics.SimulatedRuns]) -> list[str]:
    """Notes on what all simulations share: model, number of agents, settings."""
    first = simulations[0]
    models = list(dict.fromkeys(each.model for each in simulations))
    parts = [models[0] if len(models) == 1 else f"{len(models)} models"]
    if len({each.network.n for each in simulations}) == 1:
        parts.append(f"{first.network.n:,} agents")
    if len(models) == 1:
        shared = [each.settings for each in simulations]
        told = {name for each in simulations for name in each.told}
        parts += [
            f"{key} {shared[0][key]}"
            for key in first.parameters
            if key in told and len({each[key] for each in shared}) == 1
        ]
    return [", ".join(parts)]


@dataclass(frozen=True, eq=False)
class Bins:
    """Intervals of opinions.

    Attributes
    ----------
    edges : ndarray (k + 1,)
        Ends of the intervals.
    centres : ndarray (k,)
        Points of a scale, or middles of the intervals.
    discrete : bool
        Whether all opinions are at the centres.
    """

    edges: np.ndarray
    centres: np.ndarray
    discrete: bool

    def __len__(self) -> int:
        return len(self.centres)

    def place(self, values: np.ndarray) -> np.ndarray:
        """Number of the interval of each value, from 0; the upper end is in the last interval, NaN in the first."""
        found = np.searchsorted(self.edges, values, side="right") - 1
        return np.where(np.isnan(values), 0, np.clip(found, 0, len(self) - 1))

    @property
    def names(self) -> list[str]:
        """Short name of each interval."""
        if self.discrete:
            return [point_name(int(point)) for point in self.centres]
        minus = "\N{MINUS SIGN}"
        return [
            f"{low:.3g} to {high:.3g}".replace("-", minus)
            for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)
        ]


def bins_of(runs: Sequence[Trajectory], drawn: TrajectorySet, n: int) -> Bins:
    """Points of the scale if all opinions of the runs are on it, otherwise `n` intervals of equal width.

    Raises
    ------
    SpecError
        If `n` is not a whole number >= 2.
    """
    whole_number("bins", n, 2)
    points = _points(runs, drawn)
    if points is not None:
        middles = (points[1:] + points[:-1]) / 2
        ends = [points[0] - (middles[0] - points[0]), points[-1] + (points[-1] - middles[-1])]
        return Bins(np.array([ends[0], *middles, ends[1]]), points, discrete=True)
    if np.isfinite(drawn.span).all():
        edges = np.linspace(*drawn.span, n + 1)
    else:
        edges = np.histogram_bin_edges([(np.nanmin(run.values), np.nanmax(run.values)) for run in runs], n)
    return Bins(edges, (edges[1:] + edges[:-1]) / 2, discrete=False)


def _points(runs: Sequence[Trajectory], drawn: TrajectorySet) -> np.ndarray | None:
    """The points at which all opinions are, or None if there are no such points."""
    found: set[float] = set()
    for run in runs:
        found.update(np.unique(run.values[~np.isnan(run.values)]).tolist())
        if len(found) > _MOST_POINTS:
            return None
    if drawn.scale is not None:
        return drawn.scale.values.astype(float) if found <= set(drawn.scale.values.tolist()) else None
    found.update(end for end in drawn.span if np.isfinite(end))
    if len(found) < 2 or not all(value == int(value) for value in found):
        return None
    return np.array(sorted(found))


def stacked(runs: Sequence[Trajectory], values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All moments of several runs, (K,), and the values of the runs at them, (R, K, ...); NaN if a run lacks a moment.

    `values` has one array (K_r, ...) a run.
    """
    times = np.unique(np.concatenate([run.times for run in runs]))
    table = np.full((len(runs), len(times), *values[0].shape[1:]), np.nan)
    for row, (run, own) in enumerate(zip(runs, values, strict=True)):
        table[row, np.searchsorted(times, run.times)] = own
    return times, table
