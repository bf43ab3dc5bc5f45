"""Sweeps of a classic model in memory, and frames of their runs."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._declaration import ClassicModel
from opinionsim.classic._simulate import processors
from opinionsim.classic._simulated import Metrics, plain
from opinionsim.classic.points._points import Point, cell, described, points_of
from opinionsim.classic.points._runs import RunOfPoint, gather, on_threads, tasks_of
from opinionsim.errors import SpecError, whole_number

if TYPE_CHECKING:
    import pandas as pd


def sweep(
    model: str | ClassicModel,
    over: Mapping[str, Any],
    network: Any = None,
    initial: ArrayLike | str = "uniform",
    steps: int = 100,
    seed: int = 0,
    *,
    n: int | None = None,
    replicates: int = 1,
    metrics: Metrics = ("bias", "diversity"),
    until: Any = None,
    at: Any = (),
    range: tuple[float, float] | None = None,
    isolates: str = "error",
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """Simulate a model for every combination of values, and measure where each run ends.

    Parameters
    ----------
    model : str or ClassicModel
        The model or its name.
    over : mapping
        Values of each axis: a parameter or scheme option, ``n``, ``network``, ``network.FIELD`` of a network given by a
        mapping, ``initial``, ``initial.FIELD`` of a distribution, or ``range``. Give values as a list; as a text range
        that includes its ends, ``0.05:0.5:0.05``; or as ``{"from": 10, "to": 10000, "number": 7, "scale": "log"}``.
    network, initial, steps, seed, n, range, isolates, threads
        As in :func:`opinionsim.classic.simulate`; initial opinions are (N,) or (N, D). A random network is drawn for
        each replicate. Replicate r has the same network, initial opinions and random stream at every point with equal
        network and N, so contrasts between points are paired.
    replicates : int
        Runs of each point.
    metrics : sequence of str, or mapping of str to callable
        Names in :data:`opinionsim.metrics.METRICS`, or functions of opinions (N,) or (N, D).
    until : str or mapping, optional
        Event that ends a run before its limit of `steps`: ``frozen``, ``consensus`` or ``{"change": 1e-4}``.
    at : sequence of int, range or mapping
        Steps after which metrics are computed in addition to the end; ``{"log": 20}`` for 20 logarithmically spaced
        ones.
    progress : callable, optional
        Called with the number of finished runs and the total.
    **settings
        Parameters and scheme options that do not vary.

    Returns
    -------
    DataFrame
        One row per run: ``model``, a column for each name in `over`, ``replicate``, a column per metric (``bias[0]``,
        ``bias[1]``, ... where opinions have several dimensions; ``bias@10`` after 10 steps), ``time`` (steps carried
        out), ``stopped`` (whether the run ended before its limit), and ``evidence``. Its ``attrs`` contain the fixed
        settings: model, parameters, scheme, range, n, steps, seed and replicates. ``delta`` is the gap that separates
        clusters if it differs from the default of the metrics.

    Raises
    ------
    SpecError
        If anything is unknown or out of range; every point is checked before the first run. Also if a run fails.

    Notes
    -----
    Opinions are discarded after each run, so memory grows only with the number of metrics. For larger, resumable sweeps
    in a store, write a specification: ``opinionsim abm SPEC.yaml``.
    """
    threads = processors() if threads is None else whole_number("threads", threads, 1)
    points = points_of(
        model,
        over,
        network=network,
        initial=initial,
        n=n,
        range=range,
        isolates=isolates,
        settings=settings,
        steps=steps,
        until=until,
        at=at,
        seed=seed,
        replicates=replicates,
        metrics=metrics,
    )
    rows: list[RunOfPoint] = []

    def keep(found: list[tuple[Point, RunOfPoint]]) -> None:
        for point, run in found:
            if run.error:
                raise SpecError(f"{described(point.values)}replicate {run.replicate}: {run.error}")
            rows.append(run)

    def watch(made: int, failed: int) -> None:
        if made and progress is not None:
            progress(made, len(points) * replicates)

    gather(on_threads(tasks_of(points, [builtins.range(replicates)] * len(points)), metrics, threads), keep, watch)
    frame = frame_of_runs(points, rows)
    frame.attrs["replicates"] = replicates
    return frame.drop(columns="error")


def shared(points: Sequence[Point]) -> dict[str, Any]:
    """Return the settings that all points share, as JSON values, without options that have no effect."""
    first, over = points[0].key, points[0].values
    found: dict[str, Any] = {"model": first["model"]}
    setup = points[0].setup(points[0].network_of(0))
    told = setup.model.told(setup.parameters)
    found["parameters"] = {name: plain(value) for name, value in told.items() if name not in over}
    found["scheme"] = {name: value for name, value in setup.scheme.items() if name not in over}
    for name, value in (("range", first["range"]), ("n", points[0].n)):
        if all(point.key[name] == first[name] for point in points):
            found[name] = value
    if setup.until is not None:
        found["until"] = setup.until.plain
    differ = [point.key["delta"] is None for point in points]
    if not all(differ):
        where = " where all can meet" if any(differ) else ""
        found["delta"] = f"epsilon in runs at rest{where}, else 0.01"
    return found | {"steps": points[0].steps, "seed": points[0].seed}


def frame_of_runs(points: Sequence[Point], rows: Iterable[RunOfPoint]) -> pd.DataFrame:
    """Make the frame of runs in memory; `rows` are as in :func:`sweep_frame`."""
    return sweep_frame([(point.id, point.values) for point in points], rows, shared(points))


def sweep_frame(
    points: Sequence[tuple[str, Mapping[str, Any]]], rows: Iterable[Any], attrs: Mapping[str, Any]
) -> pd.DataFrame:
    """Make the frame of a sweep's runs.

    Parameters
    ----------
    points : sequence of (str, mapping)
        Identity and values of each point, in the order of rows.
    rows : iterable of RunOfPoint
        Runs, in any order, or rows of a store.
    attrs : mapping
        Settings that all points share, including ``model``.

    Returns
    -------
    DataFrame
        One row per run, sorted by point and replicate, with the columns of :func:`sweep` and ``error``, which is empty
        if the run did not fail. Measures of failed runs are NaN.
    """
    import pandas as pd

    place = {identity: number for number, (identity, _) in enumerate(points)}
    runs = sorted(rows, key=lambda run: (place[run.point_id], run.replicate))
    axes = list(dict.fromkeys(name for _, values in points for name in values))
    names = sorted(dict.fromkeys(name for run in runs for name in run.measures), key=_step)
    columns: dict[str, Any] = {"model": [attrs["model"]] * len(runs)}
    cells = {name: [cell(values.get(name)) for _, values in points] for name in axes}
    for name in axes:
        columns[name] = [cells[name][place[run.point_id]] for run in runs]
    columns["replicate"] = np.array([run.replicate for run in runs], dtype=np.int64)
    for name in names:
        columns[name] = np.array([run.measures.get(name, np.nan) for run in runs], dtype=np.float64)
    columns["time"] = np.array([run.time for run in runs], dtype=np.int64)
    columns["stopped"] = np.array([run.stopped for run in runs], dtype=np.bool_)
    columns["error"] = pd.Series([run.error for run in runs], dtype="str")
    columns["evidence"] = "equation"
    frame = pd.DataFrame(columns)
    frame.attrs.update(attrs)
    return frame


def _step(name: str) -> int:
    """Step of a measure that is taken on the way; -1 for one of the end."""
    _, at, step = name.rpartition("@")
    return int(step) if at and step.isdecimal() else -1
