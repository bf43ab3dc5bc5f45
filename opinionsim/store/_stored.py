"""Rows as the tables hold them, from those a store is given."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, func, select

from opinionsim.errors import StoreError
from opinionsim.llm import Entry
from opinionsim.messages import text_id
from opinionsim.store import _queries, _schema
from opinionsim.store._rows import (
    SUMMARY,
    AgentRow,
    CanaryRow,
    DesignRow,
    EdgeRow,
    ExperimentRun,
    InstrumentRow,
    OpinionRow,
    RunRow,
    TieRow,
    TurnRow,
)

if TYPE_CHECKING:
    from opinionsim.store._writer import Texts

__all__ = ["canary_row", "instrument_values", "row_of", "run_row", "save_design"]

_Row = tuple[Any, ...]


def run_row(run: RunRow) -> _Row:
    """Row of a run as it is registered: pending, and held by nobody.

    Raises
    ------
    StoreError
        If its summary is not complete or names more.
    """
    if set(run.summary) != set(SUMMARY):
        odd = ", ".join(sorted(set(run.summary) ^ set(SUMMARY)))
        raise StoreError(f"the summary of run {run.run_id} must name exactly {', '.join(SUMMARY)}; check {odd}")
    fields = _schema.to_json(dict(run.fields), "a run's fields")
    identity = (run.run_id, run.replicate, run.block, run.evidence, fields)
    summary = [run.summary[name] for name in SUMMARY]
    before = (run.expected, run.inputs, run.wording, None)
    return _schema.seal(_schema.runs, (*identity, *summary, *before, "pending", 0, "", "", 0, 0, 0))


def save_design(connection: Connection, row: DesignRow) -> int:
    """Insert a design, or replace the one with its id but for runs that were begun; its number."""
    table, runs = _schema.designs, _schema.runs
    experiment = _schema.experiments
    first = _schema.seal(experiment, (row.experiment_id, row.name, time.time(), 0))
    _schema.insert_new(connection, experiment, [first])
    # Two that add designs at a time must not give them one number.
    locked = select(experiment).where(experiment.c.experiment_id == row.experiment_id).with_for_update()
    known = connection.execute(locked).one()
    own = _queries.designs(connection, row.experiment_id)
    before = next((each for each in own if each.design_id == row.design_id), None)
    number = max((each.design for each in own), default=0) + 1 if before is None else before.design
    cells = {_key(run): run for run in row.runs}
    left = [run for run in before.runs if _key(run) not in cells] if before is not None else []
    begun = set[str]()
    for some in _schema.chunks(run.run_id for run in left):
        begun.update(connection.scalars(select(runs.c.run_id).where(runs.c.run_id.in_(some), runs.c.begun_at > 0)))
    kept = [run for run in left if run.run_id in begun]
    last = connection.scalar(select(func.max(table.c.saved_at))) or 0.0
    # A coarse or set-back clock must not hide which design was saved last.
    saved_at = max(time.time(), last + 1e-6)
    spec = _schema.to_json(dict(row.spec), "an experiment's spec")
    manifest = _schema.to_json(dict(row.manifest), "an experiment's manifest")
    spelled = _schema.to_json([_cell(run) for run in (*row.runs, *kept)], "an experiment's runs")
    values = (row.experiment_id, number, row.design_id, saved_at, spec, manifest, spelled)
    names = [column.name for column in table.columns]
    _schema.upsert(connection, table, [dict(zip(names, _schema.seal(table, values), strict=True))])
    counted = _schema.seal(experiment, (known.experiment_id, known.name, known.created_at, max(known.designs, number)))
    names = [column.name for column in experiment.columns]
    _schema.upsert(connection, experiment, [dict(zip(names, counted, strict=True))])
    return number


def _key(run: ExperimentRun) -> tuple[str, str, int, str | None]:
    return (run.run_id, run.cell, run.replicate, run.instrument_id)


def instrument_values(row: InstrumentRow) -> _Row:
    """Row of an instrument."""
    options = _schema.to_json(dict(row.options), "a classifier's options")
    points = _schema.to_json(row.points, "scale points")
    labels = _schema.to_json(row.labels, "scale labels")
    values = (row.instrument_id, row.variable, row.classifier, options, points, labels, int(row.context), row.about)
    return _schema.seal(_schema.instruments, values)


def canary_row(row: CanaryRow) -> _Row:
    """Row of an answer to a canary question."""
    asked = (row.experiment_id, row.model, row.moment, row.position, row.asked_at, text_id(row.text))
    told = (row.returned_model, row.fingerprint, row.input_tokens, row.output_tokens, row.cost)
    return _schema.seal(_schema.canaries, (*asked, *told))


def row_of(table: Table, run_id: str, payer: str, number: int, content: Any, texts: Texts) -> _Row:
    """Row of something that a run leads to.

    Parameters
    ----------
    table : Table
        Which.
    run_id : str
        The run.
    payer : str
        Identity of the experiment that pays for its calls.
    number : int
        The row's place in the record of the run.
    content : Any
        What the row is of.
    texts : Texts
        Takes in the texts and prompts it refers to.
    """
    return _schema.seal(table, _VALUES[table](run_id, payer, number, content, texts))


def _entry(run_id: str, payer: str, number: int, entry: Entry, texts: Texts) -> _Row:
    if entry.prompt is not None:
        texts.prompt(entry.prompt)
    key = entry.key
    reasoning = texts.text(entry.reasoning) if entry.reasoning else None
    asked = (run_id, key.turn, key.part, key.attempt, number, payer, entry.source)
    turn = (entry.step, entry.agent, entry.act, entry.prompt_hash, texts.text(entry.text))
    outcome = (entry.outcome, entry.reason, entry.seed, entry.dropped, entry.finish_reason, entry.model)
    used = (entry.input_tokens, entry.output_tokens, entry.latency_s, entry.arrived_at, entry.condition)
    return (
        *(*asked, *turn, *outcome, *used),
        *(reasoning, entry.cached_tokens, entry.reasoning_tokens, entry.cost),
    )


def _turn(run_id: str, payer: str, number: int, row: TurnRow, texts: Texts) -> _Row:
    reads = _schema.to_json(row.reads, "a turn's reads")
    text = texts.text(row.text)
    return (run_id, row.turn, number, row.step, row.agent, row.act, row.kind, reads, text, row.condition)


def _tie(run_id: str, payer: str, number: int, content: tuple[int, TieRow], texts: Texts) -> _Row:
    change, row = content
    return (run_id, change, number, *row)


def _opinion(run_id: str, payer: str, number: int, row: OpinionRow, texts: Texts) -> _Row:
    probabilities = [_schema.to_nullable(probability) for probability in row.probabilities]
    key = (run_id, row.instrument_id, row.turn, _schema.to_index(row.about))
    value, off_scale = _schema.to_nullable(row.value), _schema.to_nullable(row.off_scale)
    return (*key, number, value, off_scale, _schema.to_json(probabilities, "probabilities"))


def _agent(run_id: str, payer: str, number: int, row: AgentRow, texts: Texts) -> _Row:
    persona = _schema.to_json(dict(row.persona), "a persona")
    opinion = _schema.to_nullable(row.assigned_opinion)
    return (run_id, row.agent, row.name, row.role, row.evidence, opinion, persona, row.model)


def _edge(run_id: str, payer: str, number: int, row: EdgeRow, texts: Texts) -> _Row:
    return (run_id, *row)


_VALUES: Mapping[Table, Callable[[str, str, int, Any, Texts], _Row]] = {
    _schema.journal: _entry,
    _schema.turns: _turn,
    _schema.ties: _tie,
    _schema.opinions: _opinion,
    _schema.agents: _agent,
    _schema.edges: _edge,
}


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
