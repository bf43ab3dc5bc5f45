"""Rows as the tables hold them, from those a store is given: experiments, registered runs, outcomes, opinions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, Table

from opinionsim.errors import StoreError
from opinionsim.messages import text_id
from opinionsim.store import _schema
from opinionsim.store._rows import SUMMARY, CanaryRow, ExperimentRow, ExperimentRun, OpinionRow, RunOutcome, RunRow

__all__ = ["canary_row", "experiment_row", "opinion_row", "outcome_portions", "run_row", "write"]

#: Rows of an outcome written in one transaction: some tens of milliseconds.
_PORTION = 4000

#: How rows are written, the table, and the rows.
_Write = tuple[Callable[[Connection, Table, list[dict[str, Any]]], None], Table, list[dict[str, Any]]]


def experiment_row(experiment: ExperimentRow) -> dict[str, Any]:
    """Row of an experiment, but for the moment it is saved."""
    return {
        "experiment_id": experiment.experiment_id,
        "name": experiment.name,
        "created_at": experiment.created_at,
        "spec": _schema.to_json(dict(experiment.spec), "an experiment's spec"),
        "manifest": _schema.to_json(dict(experiment.manifest), "an experiment's manifest"),
        "runs": _schema.to_json([_cell(run) for run in experiment.runs], "an experiment's runs"),
    }


def run_row(run: RunRow) -> dict[str, Any]:
    """Row of a run as it is registered: pending, and held by nobody.

    Raises
    ------
    StoreError
        If its summary is not complete or names more.
    """
    if set(run.summary) != set(SUMMARY):
        odd = ", ".join(sorted(set(run.summary) ^ set(SUMMARY)))
        raise StoreError(f"the summary of run {run.run_id} must name exactly {', '.join(SUMMARY)}; check {odd}")
    return {
        "run_id": run.run_id,
        "replicate": run.replicate,
        "block": run.block,
        "evidence": run.evidence,
        "fields": _schema.to_json(dict(run.fields), "a run's fields"),
        **run.summary,
        "status": "pending",
        "epoch": 0,
        "owner": "",
        "error": "",
        "held": 0,
    }


def opinion_row(run_id: str, row: OpinionRow) -> dict[str, Any]:
    """Row of an opinion."""
    probabilities = [_schema.to_nullable(probability) for probability in row.probabilities]
    return {
        "run_id": run_id,
        "instrument_id": row.instrument_id,
        "turn": row.turn,
        "about": _schema.to_index(row.about),
        "value": _schema.to_nullable(row.value),
        "off_scale": _schema.to_nullable(row.off_scale),
        "probabilities": _schema.to_json(probabilities, "probabilities"),
    }


def canary_row(row: CanaryRow) -> dict[str, Any]:
    """Row of an answer to a canary question."""
    named = row._asdict()
    return {"text_id": text_id(named.pop("text")), **named}


def outcome_portions(run_id: str, outcome: RunOutcome) -> Iterator[list[_Write]]:
    """Writes of a run's rows, in portions for one transaction each."""
    agents = [
        {
            "run_id": run_id,
            "agent": row.agent,
            "name": row.name,
            "role": row.role,
            "evidence": row.evidence,
            "assigned_opinion": _schema.to_nullable(row.assigned_opinion),
            "persona": _schema.to_json(dict(row.persona), "a persona"),
            "model": row.model,
        }
        for row in outcome.agents
    ]
    turns = [
        {
            "run_id": run_id,
            "turn": row.turn,
            "step": row.step,
            "agent": row.agent,
            "act": row.act,
            "kind": row.kind,
            "reads": _schema.to_json(row.reads, "a turn's reads"),
            "text_id": text_id(row.text),
            "condition": row.condition,
        }
        for row in outcome.turns
    ]
    texts = {text_id(row.text): row.text for row in outcome.turns}
    writes: list[_Write] = [
        (_schema.upsert, _schema.agents, agents),
        (_schema.upsert, _schema.edges, [{"run_id": run_id, **row._asdict()} for row in outcome.edges]),
        (_schema.insert_new, _schema.texts, [{"text_id": key, "text": texts[key]} for key in sorted(texts)]),
        (_schema.upsert, _schema.turns, turns),
        (_schema.insert_new, _schema.opinions, [opinion_row(run_id, row) for row in outcome.opinions]),
    ]
    if sum(len(rows) for _, _, rows in writes) <= _PORTION:
        yield writes
        return
    for how, table, rows in writes:
        for start in range(0, len(rows), _PORTION):
            yield [(how, table, rows[start : start + _PORTION])]


def write(portion: Iterable[_Write], connection: Connection) -> None:
    """Carry out one portion of writes."""
    for how, table, rows in portion:
        how(connection, table, rows)


def _cell(run: ExperimentRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "instrument_id": run.instrument_id,
        "replicate": run.replicate,
        "block": run.block,
        "cell": run.cell,
        "axes": dict(run.axes),
        "instruments": {instrument_id: list(kinds) for instrument_id, kinds in run.instruments.items()},
    }
