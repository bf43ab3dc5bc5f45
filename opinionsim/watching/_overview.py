"""All experiments of a store, and one of them with its runs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.evidence import evidence_statement
from opinionsim.metrics import METRICS
from opinionsim.store import find_design
from opinionsim.watching._experiments import Seen, look
from opinionsim.watching._one_run import picked, plain
from opinionsim.watching._runs import by_experiment, count_points, spelled, state_of

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, StoreReader

#: What metrics of recorded runs can be given.
_GIVEN = {"range", "network", "truth"}


def experiments(reader: StoreReader) -> dict[str, Any]:
    """All experiments of a store as they are now, each by the design run last; the one run last is the first.

    Returns
    -------
    dict of JSON values
        How far each is, what it has paid, and what kind of evidence it is.
    """
    with reader.moment() as moment:
        listed = [
            _told(moment, rows[-1], [row.design for row in rows])[0]
            for rows in reversed(by_experiment(moment.designs()))
        ]
    return {"store": spelled(reader.url), "at": time.time(), "experiments": listed}


def experiment(reader: StoreReader, experiment: str, *, design: int | None = None) -> dict[str, Any]:
    """An experiment as it is now, with each of its runs.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    experiment : str
        Identity or name of the experiment.
    design : int, optional
        Number of the design; default the one run last.

    Returns
    -------
    dict of JSON values
        What :func:`experiments` tells of it, causes of errors, swept axes, metrics, and its runs; of a classic sweep
        the means of its points.

    Raises
    ------
    AbsentError
        If there is no such experiment or design.
    """
    with reader.moment() as moment:
        row, designs = find_design(moment, experiment, design)
        told, seen = _told(moment, row, designs)
        told |= {"reasons": [each._asdict() for each in seen.reasons], **picked(seen, "doing last_reply_s")}
        return {**told, **(_points(moment, row) if told["swept"] else _runs(moment, row))}


def _told(reader: StoreReader, design: DesignRow, designs: Sequence[int]) -> tuple[dict[str, Any], Seen]:
    """What is told of an experiment, and what was seen of it."""
    seen, points = look(reader, design), count_points(reader, [design])
    registered = reader.registered(run.run_id for run in design.runs).values()
    evidence = {"equation"} if points else {row.evidence for row in registered}
    told = {
        **{"id": design.experiment_id, **picked(design, "name design saved_at"), "designs": sorted(designs)},
        **{
            "stamp": evidence_statement(evidence) if evidence else "",
            **picked(seen, "calls expected rate left_s paid"),
        },
        **{"counts": points or seen.counts, "over": not points["pending"] if points else seen.over},
        "swept": bool(points),
    }
    return told, seen


def _labels(levels: Mapping[str, Any]) -> dict[str, str]:
    """Levels of swept axes as texts."""
    return {
        axis: level if isinstance(level, str) else json.dumps(level, ensure_ascii=False)
        for axis, level in levels.items()
    }


def _axes(listed: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Swept axes with their levels, in order of appearance."""
    found: dict[str, dict[str, None]] = {}
    for labels in listed:
        for axis, label in labels.items():
            found.setdefault(axis, {})[label] = None
    return [{"name": axis, "levels": list(levels)} for axis, levels in found.items()]


def _runs(reader: StoreReader, design: DesignRow) -> dict[str, Any]:
    """The runs of an experiment, its axes, and the metrics by which they can be coloured."""
    rows = design.rows
    run_ids = [cell.run_id for cell in rows]
    states, progress, alive = reader.states(run_ids), reader.progress(run_ids), reader.under_way(reader.states(run_ids))
    listed = []
    found = zip(rows, reader.cells(replace(design, runs=tuple(rows))), strict=True)
    for row, (cell, told) in enumerate(found):
        state, tried = states[cell.run_id], told["status"] == "trial"
        listed.append(
            {
                **{"row": row, **picked(cell, "run_id cell replicate block"), "axes": _labels(cell.axes)},
                **{"state": "trial" if tried else state_of(cell.run_id, state, alive), "trial": tried},
                **{"stamp": evidence_statement([told["evidence"]]), **picked(state, "expected error")},
                **{name: told[name] for name in ("evidence", "interaction")},
                **{"instrument": cell.instrument_id, "calls": progress[cell.run_id].paid.calls},
            }
        )
    metrics = [picked(metric, "name meaning") for metric in METRICS.values() if metric.needs <= _GIVEN]
    axes = _axes(_labels(cell.axes) for cell in design.runs)
    return {"axes": axes, "metrics": metrics, "runs": listed, "points": None}


def _points(reader: StoreReader, design: DesignRow) -> dict[str, Any]:
    """The points of a classic sweep with the means of their measures."""
    points = {name: _labels(levels) for name, levels in design.manifest["points"]}
    counted = reader.point_counts(points)
    found: dict[str, dict[str, list[float]]] = {name: {} for name in points}
    for row in reader.points(points):
        for name, value in row.measures.items():
            found[row.point_id].setdefault(name, []).append(value)
    listed = [
        {"axes": axes, "measures": {name: _mean(values) for name, values in found[point_id].items()}}
        | {"runs": sum(counted.get(point_id, (0, 0))), "failed": counted.get(point_id, (0, 0))[1]}
        for point_id, axes in points.items()
    ]
    names = dict.fromkeys(name for own in found.values() for name in own)
    known = {name: METRICS.get(name.partition("@")[0].partition("[")[0]) for name in names}
    metrics = [{"name": name, "meaning": "" if own is None else own.meaning} for name, own in known.items()]
    return {"axes": _axes(points.values()), "metrics": metrics, "runs": [], "points": listed}


def _mean(values: Sequence[float]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if math.isfinite(value)]
    return plain(sum(known) / len(known)) if known else None
