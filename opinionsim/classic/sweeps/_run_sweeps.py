"""Carry out classic sweeps in a store or in memory, on threads or on a cluster. You can resume them at any time."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from opinionsim.classic.points import (
    STREAMS,
    Cache,
    Point,
    RunOfPoint,
    Task,
    carried_out,
    frame_of_runs,
    gather,
    on_threads,
    processors,
    run_point,
    shared,
    tasks_of,
)
from opinionsim.classic.sweeps._points_table import SCAN
from opinionsim.classic.sweeps._sweep_fields import Sweep
from opinionsim.errors import StoreError, whole_number
from opinionsim.foundation import background
from opinionsim.registry import find
from opinionsim.running import Cluster
from opinionsim.store import DesignRow, Store, UnitRow, load, open_store
from opinionsim.study import design_of

if TYPE_CHECKING:
    import pandas as pd

#: What a unit holds beside its measures.
TIME, STOPPED = "time", "stopped"
#: The dimension that a measure is of, as in ``bias[0]`` and ``bias[0]@10``.
_DIMENSION = re.compile(r"\[\d+\](?=@|$)")
#: Seconds between two transactions, unless so many rows are waiting.
_SAVE_S, _ROWS = 0.3, 5000
#: Seconds that the pilot of a plan takes for a size of its runs, about.
_PILOT_S = 0.2
#: Numbers of agents of which a plan tries runs, at most.
_SIZES = 5
#: Tasks under way on a cluster for each thread of its workers.
_AHEAD = 2


@dataclass(frozen=True)
class SweepProgress:
    """Progress of a sweep.

    Attributes
    ----------
    total, already, made, failed : int
        Total number of runs; runs that the store already had; runs carried out so far; and failures among these.
    """

    total: int
    already: int
    made: int = 0
    failed: int = 0


@dataclass(frozen=True)
class SweepSummary:
    """Result of a sweep.

    Attributes
    ----------
    progress : SweepProgress
        Number of runs by status.
    errors : dict of str to str
        The first error of each point that failed, by the values of the point.
    stopped : bool
        Whether the sweep was stopped before its end.
    seconds : float
        Duration of the sweep.
    frame : DataFrame
        The runs, as in :attr:`opinionsim.store.Results.units`.
    """

    progress: SweepProgress
    errors: Mapping[str, str]
    stopped: bool
    seconds: float
    frame: pd.DataFrame

    @property
    def complete(self) -> bool:
        """Whether every run is finished."""
        return self.progress.already + self.progress.made - self.progress.failed == self.progress.total


def default_sweep_store(sweep: Sweep) -> str:
    """Return the address of the default store of a sweep: ``sqlite:///results/NAME.sqlite``."""
    return f"sqlite:///results/{sweep.spec.name}.sqlite"


def run_sweep(
    sweep: Sweep,
    store: str | None = None,
    *,
    threads: int | None = None,
    cluster: str | None = None,
    watch: Callable[[SweepProgress], object] = lambda progress: None,
    stopping: Callable[[], bool] = lambda: False,
) -> SweepSummary:
    """Carry out the missing runs of a sweep.

    Parameters
    ----------
    sweep : Sweep
        From :func:`load_sweep`.
    store : str, optional
        Path or address of a store, which keeps runs as they finish. If you run the sweep again, it continues where it
        stopped, and you can add replicates, values and measures. By default, runs are kept in memory.
    threads : int, optional
        Number of threads of this process, by default one per processor. It does not change results.
    cluster : str, optional
        Address of a Dask scheduler whose workers carry out the runs. This process writes them to any store.
    watch : callable
        Called with the progress several times a second.
    stopping : callable
        Called several times a second; returns whether to start no further run. Runs in progress are finished and kept.

    Returns
    -------
    SweepSummary
        Summary of the sweep, even if runs failed. A failed run stops only its point, and the next call tries it again.

    Raises
    ------
    SpecError
        If the cluster cannot be used.
    StoreError
        If the store cannot be read or written.
    """
    began = time.monotonic()
    if threads is not None:
        whole_number("threads", threads, 1)
    rows: list[RunOfPoint] = []
    with ExitStack() as closing:
        workers = None if cluster is None else closing.enter_context(Cluster(cluster))
        opened = None if store is None else closing.enter_context(open_store(store))
        if opened is not None:
            opened.save_design(_design(sweep))
        missing = [range(sweep.spec.replicates)] * len(sweep.points) if opened is None else _missing(sweep, opened)
        progress = SweepProgress(sweep.total, sweep.total - sum(map(len, missing)))
        watch(progress)
        saver = closing.enter_context(_Saver(opened, rows))
        work = tasks_of(sweep.points, missing)
        parts = (
            on_threads(work, sweep.measures, threads or processors(), stopping)
            if workers is None
            else _on_cluster(work, sweep.measures, workers, stopping)
        )

        def told(made: int, failed: int) -> None:
            nonlocal progress
            progress = replace(progress, made=made, failed=failed)
            watch(progress)

        errors = gather(parts, saver.add, told)
    errors = {where or sweep.spec.name: error for where, error in errors.items()}
    frame = frame_of_runs(sweep.points, rows) if store is None else load(store, sweep.spec.name).units
    frame.attrs["replicates"] = sweep.spec.replicates
    left = progress.total - progress.already - progress.made
    return SweepSummary(
        progress,
        errors,
        left > 0 and stopping(),
        time.monotonic() - began,
        frame,
    )


class _Saver:
    """Keeps runs: in a store, some at a time, or in a list."""

    def __init__(self, store: Store | None, rows: list[RunOfPoint]) -> None:
        self._store, self._rows = store, rows
        self._waiting: list[tuple[Point, RunOfPoint]] = []
        self._saved = time.monotonic()

    def __enter__(self) -> _Saver:
        return self

    def __exit__(self, *exception: object) -> None:
        # Runs that are done are kept whatever ended the sweep.
        self._save()

    def add(self, found: list[tuple[Point, RunOfPoint]]) -> None:
        """Take runs over."""
        if self._store is None:
            self._rows += [run for _, run in found]
            return
        self._waiting += found
        if time.monotonic() - self._saved > _SAVE_S or len(self._waiting) > _ROWS:
            self._save()

    def _save(self) -> None:
        if self._store is not None and self._waiting:
            keys = {point.id: point.key for point, _ in self._waiting}
            self._store.save_units([_unit(run) for _, run in self._waiting], keys)
            self._waiting = []
        self._saved = time.monotonic()


def run_of(row: UnitRow) -> RunOfPoint:
    """A row of a store as a run."""
    held = dict(row.values)
    time, stopped = held.pop(TIME, 0), held.pop(STOPPED, False)
    measures = {name: math.nan if value is None else float(value) for name, value in held.items()}
    return RunOfPoint(row.unit_id, row.replicate, measures, time, stopped, row.error)


def _unit(run: RunOfPoint) -> UnitRow:
    """A run as a row of a store."""
    found = {} if run.error else {TIME: run.time, STOPPED: run.stopped}
    return UnitRow(run.point_id, run.replicate, {**run.measures, **found}, run.error)


def _design(sweep: Sweep) -> DesignRow:
    """The design on record: the specification, and the points with their values."""
    metrics = [each.partition("@")[0] for each in sweep.measures]
    named = [("classic_model", sweep.spec.model.classic), *(("metric", each) for each in metrics)]
    return design_of(
        SCAN,
        sweep.spec.model_dump(mode="json"),
        [(point.id, point.values) for point in sweep.points],
        "equation",
        [find(kind, name) for kind, name in named],
        shared(sweep.points),
        sweep.spec.replicates,
        streams=STREAMS,
    )


def _missing(sweep: Sweep, store: Store) -> list[range] | list[Any]:
    """Replicates of each point that are not stored with all measures."""
    replicates = sweep.spec.replicates
    wanted = {point.id: {f"{name}{at}" for name in sweep.measures for at in ("", *(f"@{step}" for step in point.at))}
              for point in sweep.points}  # fmt: skip
    have: dict[str, bytearray] = {}
    plain = cache(lambda name: _DIMENSION.sub("", name))
    for row in store.units(wanted):
        whole = wanted[row.unit_id] <= {plain(name) for name in row.values}
        if whole and not row.error and row.replicate < replicates:
            have.setdefault(row.unit_id, bytearray(replicates))[row.replicate] = 1
    return [
        range(replicates)
        if point.id not in have
        else [replicate for replicate, there in enumerate(have[point.id]) if not there]
        for point in sweep.points
    ]


# -- clusters ------------------------------------------------------------------------------------------------

#: What the points that a worker carries out share.
_CACHE = Cache()


def carry_out_task(task: Task, metrics: tuple[str, ...]) -> list[RunOfPoint]:
    """Carry out a task on a worker of a cluster."""
    return run_point(task.point, task.replicates, metrics, _CACHE)


def _on_cluster(
    work: Iterator[Task], metrics: tuple[str, ...], workers: Cluster, stopping: Callable[[], bool]
) -> Generator[list[tuple[Point, RunOfPoint]], None, None]:
    """Runs as the workers of a cluster carry them out."""
    return carried_out(
        work,
        lambda task: background.submit(workers.call(carry_out_task, task, metrics)),
        _AHEAD * workers.n_tasks,
        stopping,
    )


# -- plans ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SweepPlan:
    """Estimated time and memory of a sweep.

    Attributes
    ----------
    points, runs, missing : int
        Number of points, of all runs, and of runs that are not stored yet.
    seconds : float
        Time for the missing runs on `threads` threads of this machine; runs that end before their limit take less.
    threads : int
        Number of threads.
    megabytes : float
        Approximate maximum memory of this process.
    """

    points: int
    runs: int
    missing: int
    seconds: float
    threads: int
    megabytes: float


def plan_sweep(sweep: Sweep, store: str | None = None, *, threads: int | None = None) -> SweepPlan:
    """Estimate time and memory of a sweep from a few runs, shortened to a fraction of a second.

    Parameters
    ----------
    sweep, store, threads
        As for :func:`run_sweep`. Nothing is written, and no store is created.
    """
    threads = threads or processors()
    missing: list[Any] = [range(sweep.spec.replicates)] * len(sweep.points)
    if store is not None:
        # A store that is not there yet, or not readable, has no runs; only carrying them out needs it.
        with suppress(StoreError), open_store(store, write=False) as opened:
            missing = _missing(sweep, opened)
    work = list(tasks_of(sweep.points, missing))
    sizes = sorted({point.size for point in sweep.points})
    costs: dict[int, float] = {}  # seconds a step and agent
    for size in {*sizes[:: -(-len(sizes) // _SIZES)], sizes[-1]}:
        alike = [point for point in sweep.points if point.size == size]
        # The first and the last differ in most parameters, some of which make steps longer.
        tried = alike if len(alike) == 1 else (alike[0], alike[-1])
        costs[size] = max(_cost(point, sweep.measures) for point in tried) / size
    seconds = 0.0
    for point, replicates in work:
        nearest = min(costs, key=lambda size: abs(size - point.size))
        seconds += costs[nearest] * point.size * max(point.steps, 1) * len(replicates)
    largest = max((len(replicates) * point.size for point, replicates in work), default=0)
    # Opinions, those at the start, a copy to measure, and what measures make of them.
    megabytes = _resident() + threads * 6 * 8 * largest / 1e6
    runs = sum(map(len, missing))
    return SweepPlan(len(sweep.points), sweep.total, runs, seconds / threads, threads, megabytes)


def _cost(point: Point, metrics: tuple[str, ...]) -> float:
    """Seconds of a step of one run, its share of the start and the measures included."""
    # A run that ends early would say nothing about those that do not.
    cache, point = Cache(), replace(point, until=None, at=())
    run_point(replace(point, steps=min(point.steps, 1)), [0], metrics, cache)  # compiles
    steps = min(point.steps, 1)
    while True:
        began = time.perf_counter()
        run_point(replace(point, steps=steps), [0], metrics, cache)
        seconds = time.perf_counter() - began
        if seconds > _PILOT_S or steps >= point.steps:
            return seconds / max(steps, 1)
        steps = min(point.steps, max(steps * 2, int(steps * _PILOT_S / max(seconds, 1e-4))))


def _resident() -> float:
    """Memory of this process at its largest so far, in megabytes."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
