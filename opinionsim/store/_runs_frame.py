"""The rows of the frame ``runs`` of a design, without their swept axes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from opinionsim.errors import DamagedError
from opinionsim.evidence import instrument_validation
from opinionsim.store import _schema
from opinionsim.store._measured import instruments
from opinionsim.store._rows import SUMMARY, DesignRow, ExperimentRun, InstrumentRow


def cells(connection: Connection, design: DesignRow) -> list[dict[str, Any]]:
    """One row a cell and replicate, in the order of the design; columns by name, in the order of the frame."""
    run_ids = [run.run_id for run in design.runs]
    stored = {row.run_id: row for row in _schema.of_runs(connection, _schema.runs, run_ids)}
    known = {row.instrument_id: row for row in instruments(connection)}
    found = []
    for cell in design.runs:
        if cell.run_id not in stored:
            raise DamagedError(f"run {cell.run_id} of {design.name} is missing")
        stance = known.get(cell.instrument_id or "")
        if stance is None and cell.instrument_id:
            raise DamagedError(f"instrument {cell.instrument_id} is missing")
        found.append(_row(design.name, cell, stored[cell.run_id], stance))
    return found


def _row(experiment: str, cell: ExperimentRun, run: Any, stance: InstrumentRow | None) -> dict[str, Any]:
    return {
        "run_id": cell.run_id,
        "experiment": experiment,
        "cell": cell.cell,
        "replicate": cell.replicate,
        "block": cell.block,
        "status": run.status,
        "evidence": run.evidence,
        **{name: getattr(run, name) for name in SUMMARY},
        "topic_title": cell.topic_title,
        "every_report": cell.every_report,
        "instrument_id": cell.instrument_id,
        "classifier": None if stance is None else stance.classifier,
        "validation": instrument_validation(run.evidence, cell.instruments.get(cell.instrument_id or "", ())),
        "error": run.error,
        "wording": None if run.begun_at is None else run.wording,
        "begun_at": run.begun_at,
    }
