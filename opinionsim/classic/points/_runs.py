"""Runs of points: carried out in groups and measured at the end; only their measures are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic._simulated import Metrics, metrics_of_runs
from opinionsim.classic.kernels._contacts import Contacts
from opinionsim.classic.kernels._process import Batch, Setup
from opinionsim.classic.points._points import Point, by_group, described
from opinionsim.errors import OpinionSimError
from opinionsim.metrics import METRICS
from opinionsim.networks import Network

#: Numbers that the opinions of a task are, at most, unless a single run has more.
_NUMBERS = 1 << 16
#: Elementary updates of a task, at most, unless a single run has more: a sweep that is stopped waits for its tasks.
_UPDATES = 1 << 31
#: Numbers that networks kept for further points are, at most, beside those of one task.
_KEPT = 1 << 22
#: Measures whose last bit depends on the runs they are computed beside; they are computed run by run, so that results
#: do not depend on how runs are put together.
_APART = frozenset(("distinctness", "group_divergence"))
#: Bytes of a block that has the allocator of glibc keep smaller ones for later: the largest that does.
_BLOCK = (1 << 25) - (1 << 13)
#: Seconds between two looks at what is done.
_TICK_S = 0.1


class RunOfPoint(NamedTuple):
    """Record of a run; rows of a store have the same fields.

    Attributes
    ----------
    point_id : str
        Identity of the point.
    replicate : int
        Number of the replicate, from 0.
    measures : dict of str to float
        By name: ``diversity`` at the end of the run, ``diversity@10`` after 10 steps.
    time : int
        Steps carried out.
    stopped : bool
        Whether the event `until` ended the run before its limit of steps.
    error : str
        Why the run failed; empty if it did not.
    """

    point_id: str
    replicate: int
    measures: dict[str, float]
    time: int
    stopped: bool
    error: str = ""


class Task(NamedTuple):
    """Replicates of a point that one thread carries out together."""

    point: Point
    replicates: tuple[int, ...]


@dataclass(eq=False)
class _Entry:
    """A value that one thread makes while others that need it wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    size: int = 0


class Cache:
    """Cache of the most recent networks that points share, and of models on them. Threads may share it."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._held = 0

    def network(self, point: Point, replicate: int) -> tuple[Network, dict[tuple[int, bool], Contacts]]:
        """Return the network of a run, and the mapping for its other forms."""
        drawn = replicate if point.drawn else 0

        def make() -> tuple[Any, int]:
            network = point.network_of(drawn)
            # Pairs, the same by listener, and the form of kernels.
            return (network, {}), 3 * network.listeners.size

        found: tuple[Network, dict[tuple[int, bool], Contacts]] = self._of(("network", point.group, drawn), make)
        return found

    def setup(self, point: Point, replicate: int) -> Setup:
        """Return the model set up on the network of a run."""
        network, forms = self.network(point, replicate)
        if point.drawn:
            return point.setup(network, forms)

        def make() -> tuple[Any, int]:
            return point.setup(network, forms), point.n

        found: Setup = self._of(("setup", point.id), make)
        return found

    def _of(self, key: Hashable, make: Callable[[], tuple[Any, int]]) -> Any:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            made = entry.value is None
            if made:
                entry.value, size = make()
        with self._lock:
            # An entry that was dropped meanwhile is not held, and its size not counted.
            if made and self._entries.get(key) is entry:
                entry.size = size
                self._held += size
            while self._held > _KEPT and len(self._entries) > 1:
                self._held -= self._entries.popitem(last=False)[1].size
        return entry.value


def tasks_of(points: Sequence[Point], missing: Sequence[Sequence[int]]) -> Iterator[Task]:
    """Group the missing runs into tasks; points that share networks take turns, replicate by replicate.

    Parameters
    ----------
    points : sequence of Point
        The points.
    missing : sequence of sequence of int
        Replicates of each point to carry out, ascending.
    """
    for members in by_group(points):
        each = max(1, min(_NUMBERS // points[place].size for place in members))
        each = min(each, *(max(1, _UPDATES // (points[place].n * max(points[place].steps, 1))) for place in members))
        most = max((missing[place][-1] for place in members if missing[place]), default=-1)
        for first in range(0, most + 1, each):
            for place in members:
                some = missing[place]
                if isinstance(some, range) and some.step == 1:
                    chosen = tuple(range(max(first, some.start), min(first + each, some.stop)))
                else:
                    chosen = tuple(replicate for replicate in some if first <= replicate < first + each)
                if chosen:
                    yield Task(points[place], chosen)


def run_point(
    point: Point,
    replicates: Sequence[int],
    metrics: Metrics,
    cache: Cache | None = None,
    *,
    halt: np.ndarray | None = None,
) -> list[RunOfPoint]:
    """Carry out and measure some replicates of a point.

    Parameters
    ----------
    point : Point
        The point.
    replicates : sequence of int
        The replicates, distinct.
    metrics : sequence of str, or mapping of str to callable
        Names in :data:`opinionsim.metrics.METRICS`, or functions of opinions (N,) or (N, D).
    cache : Cache, optional
        Keeps networks and models that points share.
    halt : ndarray (1,) of uint8, optional
        As for :class:`opinionsim.classic.Batch`.

    Returns
    -------
    list of RunOfPoint
        One per replicate. A failed run has an error and no measures.
    """
    cache = cache or Cache()
    # Replicates on one network run together.
    parts = [[replicate] for replicate in replicates] if point.drawn else [list(replicates)]
    return [run for part in parts if part for run in _run_together(point, part, metrics, cache, halt)]


def _run_together(
    point: Point, replicates: list[int], metrics: Metrics, cache: Cache, halt: np.ndarray | None
) -> list[RunOfPoint]:
    """Carry out replicates on one network; if that fails, one by one, so that the error is that of its run."""
    try:
        setup = cache.setup(point, replicates[0])
        starts = point.starts(setup, replicates)
        runs = Batch(setup, starts, point.seed, replicates, halt=halt)
        record = np.empty((len(replicates), len(point.at), *starts.shape[1:]))
        ended = runs.advance(point.steps, point.at, record)
        found = [_measured(runs.opinions, starts, metrics, setup, runs.networks, ended >= 0)]
        for place, moment in enumerate(point.at):
            rests = (ended >= 0) & (ended <= moment)
            measures = _measured(record[:, place], starts, metrics, setup, [setup.network] * len(starts), rests)
            found.append({f"{name}@{moment}": values for name, values in measures.items()})
    except CancelledError:
        raise
    except Exception as error:
        if len(replicates) > 1:
            return [run for each in replicates for run in _run_together(point, [each], metrics, cache, halt)]
        named = "" if isinstance(error, OpinionSimError) else f"{type(error).__name__}: "
        return [RunOfPoint(point.id, replicates[0], {}, 0, False, f"{named}{error}" or type(error).__name__)]
    return [
        RunOfPoint(
            point.id,
            replicate,
            {name: values[place] for measures in found for name, values in measures.items()},
            int(ended[place]) if ended[place] >= 0 else point.steps,
            bool(ended[place] >= 0),
        )
        for place, replicate in enumerate(replicates)
    ]


def _measured(
    opinions: np.ndarray,
    starts: np.ndarray,
    metrics: Metrics,
    setup: Setup,
    networks: Sequence[Network],
    rests: np.ndarray,
) -> dict[str, list[float]]:
    """Measures of opinions (R, N) or (R, N, D) by name, a value per run; `rests` says which have come to rest."""

    def of(some: slice, names: Metrics) -> dict[str, list[float]]:
        own = opinions[some], starts[some], names, setup.range, networks[some], setup.delta, rests[some]
        values = metrics_of_runs(*own)
        return {name: [float(each) for each in found] for name, found in values.items()}

    if isinstance(metrics, Mapping):
        return of(slice(None), metrics)
    joint = [name for name in metrics if _joins(name)]
    found = of(slice(None), joint) if joint else {}
    if apart := [name for name in metrics if not _joins(name)]:
        each = [of(slice(place, place + 1), apart) for place in range(len(opinions))]
        found |= {name: [values[name][0] for values in each] for name in each[0]}
    return found


def _joins(name: str) -> bool:
    """Whether a measure of several runs at a time is to the bit that of each alone."""
    return name in METRICS and name not in _APART


def carried_out(
    work: Iterable[Task],
    submit: Callable[[Task], Future[list[RunOfPoint]]],
    ahead: int,
    stopping: Callable[[], bool] = lambda: False,
) -> Generator[list[tuple[Point, RunOfPoint]], None, None]:
    """Yield runs as they finish, with at most `ahead` tasks in progress.

    Parameters
    ----------
    work : iterable of Task
        Tasks to carry out.
    submit : callable
        Starts a task.
    ahead : int
        Maximum number of tasks in progress.
    stopping : callable
        Returns whether to start no further task. Tasks in progress are finished.

    Yields
    ------
    list of (Point, RunOfPoint)
        Runs finished since the last list, at least every tenth of a second; the list can be empty. After a run of a
        point has failed, no further task of that point starts.
    """
    queue, failed = iter(work), set[str]()
    waiting: dict[Future[list[RunOfPoint]], Task] = {}
    while True:
        while len(waiting) < ahead and not stopping():
            task = next((each for each in queue if each.point.id not in failed), None)
            if task is None:
                break
            waiting[submit(task)] = task
        if not waiting:
            return
        done, _ = wait(waiting, timeout=_TICK_S, return_when=FIRST_COMPLETED)
        found: list[tuple[Point, RunOfPoint]] = []
        for future in done:
            point = waiting.pop(future).point
            runs = future.result()
            if any(run.error for run in runs):
                failed.add(point.id)
            found += [(point, run) for run in runs]
        yield found


def gather(
    parts: Generator[list[tuple[Point, RunOfPoint]], None, None],
    keep: Callable[[list[tuple[Point, RunOfPoint]]], object],
    watch: Callable[[int, int], object],
) -> dict[str, str]:
    """Pass on runs as they finish.

    Parameters
    ----------
    parts : generator
        Yields finished runs, as :func:`on_threads` does. It is closed at the end.
    keep : callable
        Takes finished runs. If it raises an error, the sweep ends.
    watch : callable
        Called several times a second with the number of finished runs and the number of failed ones.

    Returns
    -------
    dict of str to str
        The first error of each point that failed, by the values of the point.
    """
    errors: dict[str, str] = {}
    made = failed = 0
    with closing(parts):
        for found in parts:
            keep(found)
            for point, run in found:
                if run.error:
                    failed += 1
                    errors.setdefault(described(point.values).rstrip(", "), run.error)
            made += len(found)
            watch(made, failed)
    return errors


def on_threads(
    work: Iterable[Task],
    metrics: Metrics,
    threads: int,
    stopping: Callable[[], bool] = lambda: False,
) -> Generator[list[tuple[Point, RunOfPoint]], None, None]:
    """Carry out runs on threads of this process, and yield them as :func:`carried_out` does."""
    # Memory that runs give back would otherwise go to the system, which clears it before each use: a tenth of the time
    # of short runs. The block itself is never written to.
    np.empty(_BLOCK, dtype=np.uint8)
    cache, halt = Cache(), np.zeros(1, dtype=np.uint8)

    def begin(task: Task) -> Future[list[RunOfPoint]]:
        return pool.submit(run_point, *task, metrics, cache, halt=halt)

    with ThreadPoolExecutor(threads, "opinionsim-classic") as pool:
        # A task waits for each thread, so that none idles while rows are written.
        try:
            yield from carried_out(work, begin, 2 * threads, stopping)
        finally:
            # Runs that nobody waits for any more end within a step.
            halt[0] = 1
            pool.shutdown(wait=True, cancel_futures=True)
