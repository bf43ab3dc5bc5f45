"""All experiments of a store, and one of them with its runs."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opinionsim.evidence import evidence_statement
from opinionsim.metrics import METRICS
from opinionsim.watching._experiments import Seen, look
from opinionsim.watching._places import design_of, plain
from opinionsim.watching._runs import cells_of, count_points, spelled, state_of

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, StoreReader


def experiments(reader: StoreReader) -> dict[str, Any]:
    """All experiments of a store as they are now, each by the design run last; the one run last is the first.

    Returns
    -------
    dict of JSON values
        How far each is, what it has paid, and what kind of evidence it is.
    """
    with reader.moment() as moment:
        own: dict[str, list[DesignRow]] = {}
        for design in moment.designs():
            own.setdefault(design.experiment_id, []).append(design)
        ordered = sorted(own.values(), key=lambda designs: designs[-1].saved_at, reverse=True)
        listed = [_told(moment, designs[-1], sorted(each.design for each in designs))[0] for designs in ordered]
    return {"store": spelled(reader.url), "at": time.time(), "experiments": listed}


def experiment(reader: StoreReader, experiment_id: str, *, design: int | None = None) -> dict[str, Any]:
    """An experiment as it is now, with each of its runs.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    experiment_id : str
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
        row, designs = design_of(moment, experiment_id, design)
        told, seen = _told(moment, row, designs)
        found = {
            **told,
            "reasons": [each._asdict() for each in seen.reasons],
            "doing": list(seen.doing),
            "last_reply_s": seen.last_reply_s,
        }
        return {**found, **(_points(moment, row) if told["swept"] else _runs(moment, row))}


def _told(reader: StoreReader, design: DesignRow, designs: Sequence[int]) -> tuple[dict[str, Any], Seen]:
    """What is told of an experiment, and what was seen of it."""
    seen, points = look(reader, design), count_points(reader, [design])
    registered = reader.registered(run.run_id for run in design.runs).values()
    evidence = {"equation"} if points else {row.evidence for row in registered}
    told = {
        "id": design.experiment_id,
        "name": design.name,
        "design": design.design,
        "designs": list(designs),
        "saved_at": design.saved_at,
        "stamp": evidence_statement(evidence) if evidence else "",
        "counts": points or dict(seen.counts),
        **{name: getattr(seen, name) for name in ("calls", "expected", "rate", "left_s")},
        "paid": {name: list(amounts) for name, amounts in seen.paid.items()},
        "over": not points["pending"] if points else seen.over,
        "swept": bool(points),
    }
    return told, seen


def _label(level: Any) -> str:
    """A level of a swept axis as a text."""
    return level if isinstance(level, str) else json.dumps(level, ensure_ascii=False)


def _axes(listed: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Swept axes with their levels, in order of appearance; `listed` has the labels of each row."""
    names = dict.fromkeys(name for labels in listed for name in labels)
    return [
        {"name": name, "levels": list(dict.fromkeys(labels[name] for labels in listed if name in labels))}
        for name in names
    ]


def _runs(reader: StoreReader, design: DesignRow) -> dict[str, Any]:
    """The runs of an experiment, its axes, and the metrics by which they can be coloured."""
    cells = cells_of(design)
    run_ids = [cell.run_id for cell in cells]
    states, progress = reader.states(run_ids), reader.progress(run_ids)
    alive = reader.under_way(states)
    known = {row.cell: row for row in design.runs}
    labels = {name: {axis: _label(level) for axis, level in run.axes.items()} for name, run in known.items()}
    rows = {(each["run_id"], each["cell"], each["instrument_id"]): each for each in reader.cells(design)}
    listed = []
    for number, cell in enumerate(cells):
        state, run = states[cell.run_id], rows[cell.run_id, cell.cell, cell.instrument_id]
        listed.append(
            {
                "row": number,
                "run_id": cell.run_id,
                "cell": cell.cell,
                "replicate": cell.replicate,
                "block": cell.block,
                "state": "trial" if run["status"] == "trial" else state_of(cell.run_id, state, alive),
                "stamp": evidence_statement([run["evidence"]]),
                "evidence": run["evidence"],
                "axes": labels[cell.cell],
                "calls": progress[cell.run_id].paid.calls,
                "expected": state.expected,
                "error": state.error,
                "instrument": cell.instrument_id,
                "interaction": run["interaction"],
                "trial": run["status"] == "trial",
            }
        )
    measured = [{"name": name, "meaning": metric.meaning} for name, metric in METRICS.items() if metric.needs <= _GIVEN]
    return {
        "axes": _axes([labels[run.cell] for run in design.runs]),
        "metrics": measured,
        "runs": listed,
        "points": None,
    }


#: What metrics of recorded runs can be given.
_GIVEN = {"range", "network", "truth"}


def _points(reader: StoreReader, design: DesignRow) -> dict[str, Any]:
    """The points of a classic sweep with the means of their measures."""
    points = {
        name: {axis: _label(level) for axis, level in values.items()} for name, values in design.manifest["points"]
    }
    sums: dict[str, dict[str, list[float]]] = {name: {} for name in points}
    failed = dict.fromkeys(points, 0)
    for row in reader.points(points):
        failed[row.point_id] += bool(row.error)
        for name, value in row.measures.items():
            if math.isfinite(value):
                sums[row.point_id].setdefault(name, []).append(value)
    counted = reader.point_counts(points)
    names = dict.fromkeys(name for own in sums.values() for name in own)
    listed = [
        {
            "axes": axes,
            "measures": {name: plain(sum(values) / len(values)) for name, values in sums[point_id].items()},
            "runs": sum(counted.get(point_id, (0, 0))),
            "failed": failed[point_id],
        }
        for point_id, axes in points.items()
    ]
    meanings = {
        name: METRICS[base].meaning if (base := name.partition("@")[0].partition("[")[0]) in METRICS else ""
        for name in names
    }
    metrics = [{"name": name, "meaning": meaning} for name, meaning in meanings.items()]
    return {"axes": _axes(list(points.values())), "metrics": metrics, "runs": [], "points": listed}
