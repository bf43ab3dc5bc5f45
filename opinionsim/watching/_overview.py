"""Overview of all experiments of a store, and of one experiment with its runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.metrics import evidence_statement, kinds_in_order
from opinionsim.store import find_design
from opinionsim.watching._experiments import Seen, look
from opinionsim.watching._run_states import batch_text, by_experiment, count_units, doing_text, spelled
from opinionsim.watching._run_view import picked

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, StoreReader

#: Number of running runs whose newest texts the page shows, and number of texts of each.
_RUNS_TOLD, _TEXTS_TOLD = 3, 2


def experiments(reader: StoreReader) -> dict[str, Any]:
    """Current state of all experiments of a store, each with the design that ran last; most recent first.

    Returns
    -------
    dict of JSON values
        Progress, cost and kind of evidence of each experiment.
    """
    with reader.moment() as moment:
        listed = [
            _told(moment, rows[-1], [row.design for row in rows])[0]
            for rows in reversed(by_experiment(moment.designs()))
        ]
    return {"store": spelled(reader.url), "at": time.time(), "experiments": listed}


def experiment(reader: StoreReader, experiment: str | None = None, *, design: int | None = None) -> dict[str, Any]:
    """Current state of an experiment, with all its runs.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    experiment : str, optional
        Identity or name of the experiment; default the one that ran last.
    design : int, optional
        Number of the design; default the one that ran last.

    Returns
    -------
    dict of JSON values
        The entries of :func:`experiments`, causes of errors, open batches, swept axes, instruments, kinds of text that
        they read, the last texts of some runs under way, and runs; a study of units has none.

    Raises
    ------
    AbsentError
        If there is no such experiment or design.
    """
    with reader.moment() as moment:
        row, designs = find_design(moment, experiment, design)
        told, seen = _told(moment, row, designs)
        told["reasons"] = [each._asdict() for each in seen.reasons]
        told["doing"] = list(map(doing_text, seen.doing))
        open_batches = (each for each in moment.batches() if each.state == "open")
        told["batches"] = [batch_text(each) for each in open_batches if each.experiment_id == row.experiment_id]
        told["axes"] = _axes(row)
        told["runs"] = _runs(moment, seen)
        told["texts"] = list(_texts(moment, seen))
        used = {name: kinds for run in row.runs for name, kinds in run.instruments.items()}
        told["instruments"] = {
            each.instrument_id: f"{each.variable} by {each.classifier}"
            for each in moment.instruments()
            if each.instrument_id in used
        }
        own = {kind for kinds in used.values() for kind in kinds}
        told["kinds"] = kinds_in_order(own, [",".join(run.declared.get("texts", ())) for run in row.runs])
        return told


def _texts(reader: StoreReader, seen: Seen) -> Iterator[dict[str, Any]]:
    """The last texts of some runs under way."""
    from sqlalchemy import text

    last = text("SELECT turn FROM turns WHERE run_id = :run ORDER BY turn DESC LIMIT :most")
    for run in [run for run in seen.design.rows if run.run_id in seen.steps][:_RUNS_TOLD]:
        names = {each.agent: each.name for each in reader.agents(run.run_id)}
        with reader.reading() as connection:
            turns = connection.scalars(last, {"run": run.run_id, "most": _TEXTS_TOLD}).all()
        for turn in reader.turns(run.run_id, only=turns):
            yield {"run": run.name, "run_id": run.run_id, "name": names[turn.agent], **picked(turn, "turn step text")}


def _told(reader: StoreReader, design: DesignRow, designs: Sequence[int]) -> tuple[dict[str, Any], Seen]:
    """What is told of an experiment, and what was seen of it."""
    seen, units = look(reader, design), count_units(reader, [design])
    told = picked(seen, "calls expected rate left_s paid counts over")
    evidence = {row.evidence for row in reader.registered(run.run_id for run in design.runs).values()}
    if units:
        evidence = {str(design.manifest["evidence"])}
        told |= {"counts": units, "over": not units["pending"]}
    told |= {"id": design.experiment_id, "designs": sorted(designs), "units": bool(units)}
    told |= picked(design, "name design saved_at")
    told["stamp"] = evidence_statement(evidence) if evidence else ""
    return told, seen


def level_labels(levels: Mapping[str, Any]) -> dict[str, str]:
    """Levels of swept axes as texts."""
    return {
        axis: level if isinstance(level, str) else json.dumps(level, ensure_ascii=False)
        for axis, level in levels.items()
    }


def _axes(design: DesignRow) -> list[dict[str, Any]]:
    """Swept axes with their levels, in order of appearance."""
    found: dict[str, dict[str, None]] = {}
    for levels in (*(cell.axes for cell in design.runs), *(values for _, values in design.units)):
        for axis, label in level_labels(levels).items():
            found.setdefault(axis, {})[label] = None
    return [{"name": axis, "levels": list(levels)} for axis, levels in found.items()]


def _runs(reader: StoreReader, seen: Seen) -> list[dict[str, Any]]:
    """The runs of an experiment."""
    rows = seen.design.rows
    progress = reader.progress(cell.run_id for cell in rows)
    listed = []
    for row, frame in enumerate(reader.cells(replace(seen.design, runs=tuple(rows)))):
        cell, state = rows[row], seen.states[rows[row].run_id]
        tried = frame["status"] == "trial"
        told = {
            "row": row,
            "run": cell.name,
            **picked(cell, "run_id cell replicate block"),
            **picked(state, "expected error"),
        }
        told |= {"axes": level_labels(cell.axes), "instrument": cell.instrument_id}
        told |= {"state": "trial" if tried else seen.state(cell.run_id), "trial": tried}
        told |= {"evidence": frame["evidence"], "stamp": evidence_statement([frame["evidence"]])}
        told |= {"interaction": frame["interaction"], "calls": progress[cell.run_id].paid.calls}
        listed.append(told)
    return listed
