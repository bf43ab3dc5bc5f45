"""The store's content as tidy pandas frames. Their columns are documented at :class:`opinionsim.store.Results`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, FromClause, Select, func, select

from opinionsim.metrics import instrument_validation
from opinionsim.store import _schema
from opinionsim.store._measured import instruments
from opinionsim.store._rows import SUMMARY, ExperimentRow, ExperimentRun, InstrumentRow

__all__ = ["COLUMNS", "FRAMES", "agents", "calls", "edges", "opinions", "runs", "turns"]

#: Texts are kept as Python strings: models may return characters that Arrow's strings cannot hold.
_STR = pd.StringDtype("python", na_value=np.nan)

#: What the author of a text is; of the run, which may be mixed, while its agents are not stored yet.
_AUTHORS_EVIDENCE = func.coalesce(
    _schema.agents.c.evidence, _schema.runs.c.evidence, type_=_schema.runs.c.evidence.type
).label("evidence")

#: Columns of each frame that do not depend on the data, with their types.
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "runs": {
        "run_id": _STR,
        "experiment": _STR,
        "cell": _STR,
        "replicate": "int64",
        "block": _STR,
        "status": _STR,
        "evidence": _STR,
        "seed": "int64",
        "topic": _STR,
        "category": _STR,
        "framing": _STR,
        "claim": _STR,
        "truth": "float64",
        "confirmation_bias": _STR,
        "memory": _STR,
        "world": _STR,
        "model": _STR,
        "interaction": _STR,
        "network": _STR,
        "n_agents": "int64",
        "steps": "int64",
        "instrument_id": _STR,
        "classifier": _STR,
        "validation": _STR,
        "error": _STR,
    },
    "agents": {
        "run_id": _STR,
        "agent": "int64",
        "name": _STR,
        "role": _STR,
        "assigned_opinion": "float64",
        "model": _STR,
        "evidence": _STR,
    },
    "edges": {
        "run_id": _STR,
        "source": "int64",
        "target": "int64",
        "weight": "float64",
        "since": "int64",
        "until": "Int64",
        "evidence": _STR,
    },
    "turns": {
        "run_id": _STR,
        "turn": "int64",
        "step": "int64",
        "agent": "int64",
        "act": _STR,
        "kind": _STR,
        "reads": "object",
        "message": _STR,
        "condition": _STR,
        "evidence": _STR,
    },
    "opinions": {
        "run_id": _STR,
        "cell": _STR,
        "block": _STR,
        "instrument_id": _STR,
        "classifier": _STR,
        "variable": _STR,
        "scale": _STR,
        "kind": _STR,
        "turn": "int64",
        "about": "Int64",
        "step": "int64",
        "agent": "int64",
        "assigned_opinion": "float64",
        "condition": _STR,
        "value": "float64",
        "expectation": "float64",
        "margin": "float64",
        "off_scale": "float64",
        "evidence": _STR,
    },
    "calls": {
        "run_id": _STR,
        "turn": "int64",
        "part": _STR,
        "attempt": "int64",
        "step": "int64",
        "agent": "int64",
        "act": _STR,
        "outcome": _STR,
        "reason": _STR,
        "condition": _STR,
        "prompt_hash": _STR,
        "reply": _STR,
        "reasoning": _STR,
        "seed": "Int64",
        "dropped": "int64",
        "finish_reason": _STR,
        "model": _STR,
        "input_tokens": "Int64",
        "output_tokens": "Int64",
        "cached_tokens": "Int64",
        "reasoning_tokens": "Int64",
        "cost": "float64",
        "latency_s": "float64",
        "arrived_at": "float64",
        "evidence": _STR,
    },
}


def runs(connection: Connection, experiment: ExperimentRow) -> pd.DataFrame:
    """One row a cell and replicate."""
    stored = {row.run_id: row for row in _of_runs(connection, experiment, select(_schema.runs), _schema.runs)}
    known = {row.instrument_id: row for row in instruments(connection)}
    cells = [run for run in experiment.runs if run.run_id in stored]
    records = []
    for cell in cells:
        row = stored[cell.run_id]
        summary = [getattr(row, name) for name in SUMMARY]
        stance = known.get(cell.instrument_id or "")
        classifier = None if stance is None else stance.classifier
        validation = instrument_validation(row.evidence, cell.instruments.get(cell.instrument_id or "", ()))
        records.append(
            (
                *(cell.run_id, experiment.name, cell.cell, cell.replicate, cell.block, row.status, row.evidence),
                *(*summary, cell.instrument_id, classifier, validation, row.error),
            )
        )
    axes = _spread([cell.axes for cell in cells], COLUMNS["runs"], "sweep.")
    return _frame("runs", records, axes, ["cell", "replicate", "run_id", "instrument_id"])


def agents(connection: Connection, experiment: ExperimentRow) -> pd.DataFrame:
    """One row an agent of a run."""
    rows = _of_runs(connection, experiment, select(_schema.agents), _schema.agents)
    records = [
        (row.run_id, row.agent, row.name, row.role, row.assigned_opinion, row.model, row.evidence) for row in rows
    ]
    persona = _spread([json.loads(row.persona) for row in rows], COLUMNS["agents"], "persona.")
    return _frame("agents", records, persona, ["run_id", "agent"])


def edges(connection: Connection, experiment: ExperimentRow) -> pd.DataFrame:
    """One row a connection of a run's network and time it lasted."""
    table, run = _schema.edges, _schema.runs
    statement = select(table, run.c.evidence).join(run, run.c.run_id == table.c.run_id)
    rows = _of_runs(connection, experiment, statement, table)
    records = [(row.run_id, row.source, row.target, row.weight, row.since, row.until, row.evidence) for row in rows]
    return _frame("edges", records, {}, ["run_id", "source", "target", "since"])


def turns(connection: Connection, experiment: ExperimentRow) -> pd.DataFrame:
    """One row a turn."""
    table, text = _schema.turns, _schema.texts
    statement = _with_author(
        select(table, _AUTHORS_EVIDENCE, text.c.text).join(text, text.c.text_id == table.c.text_id), table
    )
    records = [
        (
            *(row.run_id, row.turn, row.step, row.agent, row.act, row.kind),
            *(tuple(json.loads(row.reads)), row.text, row.condition, row.evidence),
        )
        for row in _of_runs(connection, experiment, statement, table)
    ]
    return _frame("turns", records, {}, ["run_id", "turn"])


def calls(connection: Connection, experiment: ExperimentRow) -> pd.DataFrame:
    """One row a reply of a model."""
    table, text = _schema.calls, _schema.texts
    thoughts = text.alias()
    reasoning = func.coalesce(thoughts.c.text, "", type_=text.c.text.type).label("reasoning")
    elsewhere = {"reply": text.c.text.label("reply"), "reasoning": reasoning, "evidence": _AUTHORS_EVIDENCE}
    columns = [elsewhere[name] if name in elsewhere else table.c[name] for name in COLUMNS["calls"]]
    statement = _with_author(
        select(*columns)
        .join(text, text.c.text_id == table.c.text_id)
        .outerjoin(thoughts, thoughts.c.text_id == table.c.reasoning_id),
        table,
    )
    records = [
        # Whoever wrote the text, a model judged it.
        (*row[:-1], "model" if row.part.startswith("judge") else row.evidence)
        for row in _of_runs(connection, experiment, statement, table)
    ]
    return _frame("calls", records, {}, ["run_id", "turn", "part", "attempt"])


def opinions(connection: Connection, experiment: ExperimentRow) -> pd.DataFrame:
    """One row a cell, instrument and coded text: only what the cell's own instruments say."""
    used = {instrument_id for run in experiment.runs for instrument_id in run.instruments}
    known = {row.instrument_id: row for row in instruments(connection) if row.instrument_id in used}
    points = sorted({point for instrument in known.values() for point in instrument.points})
    by_run: dict[tuple[str, str], list[Any]] = {}
    for row in _of_runs(connection, experiment, _opinions_with_turns(), _schema.opinions):
        if row.instrument_id in known:
            by_run.setdefault((row.run_id, row.instrument_id), []).append(row)
    records: list[tuple[Any, ...]] = []
    distributions = [np.empty((0, len(points)))]
    for cell in experiment.runs:
        for instrument_id in cell.instruments:
            rows = by_run.get((cell.run_id, instrument_id))
            if rows:
                instrument = known[instrument_id]
                p = np.array([json.loads(row.probabilities) for row in rows], dtype=float)
                p = p.reshape(len(rows), len(instrument.points))
                records.extend(_opinion_records(cell, instrument, rows, p))
                wide = np.full((len(rows), len(points)), np.nan)
                wide[:, [points.index(point) for point in instrument.points]] = p
                distributions.append(wide)
    stacked = np.concatenate(distributions)
    extra = {f"p_{point}": pd.Series(stacked[:, position]) for position, point in enumerate(points)}
    return _frame("opinions", records, extra, ["cell", "run_id", "instrument_id", "turn", "about"])


#: What builds each frame.
FRAMES: Mapping[str, Callable[[Connection, ExperimentRow], pd.DataFrame]] = {
    "runs": runs,
    "agents": agents,
    "edges": edges,
    "turns": turns,
    "opinions": opinions,
    "calls": calls,
}


def _with_author(statement: Select[Any], table: FromClause) -> Select[Any]:
    """Rows of a run beside the run, and beside the agent that `table` names where it is stored."""
    agent, run = _schema.agents, _schema.runs
    joined = statement.join(run, run.c.run_id == table.c.run_id)
    return joined.outerjoin(agent, (agent.c.run_id == table.c.run_id) & (agent.c.agent == table.c.agent))


def _opinions_with_turns() -> Select[Any]:
    """Opinions beside the turn that was coded and its author."""
    opinion, turn, agent = _schema.opinions, _schema.turns, _schema.agents
    of_turn = (turn.c.kind, turn.c.step, turn.c.agent, turn.c.condition)
    columns = (opinion, *of_turn, agent.c.assigned_opinion, _AUTHORS_EVIDENCE)
    coded = (turn.c.run_id == opinion.c.run_id) & (turn.c.turn == opinion.c.turn)
    return _with_author(select(*columns).join_from(opinion, turn, coded), turn)


def _opinion_records(
    cell: ExperimentRun, instrument: InstrumentRow, rows: Sequence[Any], p: np.ndarray
) -> Iterator[tuple[Any, ...]]:
    """Records of what one instrument of a cell says; `p` has the probabilities, one row a record."""
    ranked = np.sort(p, axis=1)
    expectation, margin = p @ np.asarray(instrument.points, dtype=float), ranked[:, -1] - ranked[:, -2]
    scale = ",".join(str(point) for point in sorted(instrument.points))
    for row, mean, gap in zip(rows, expectation, margin, strict=True):
        yield (
            *(row.run_id, cell.cell, cell.block, row.instrument_id, instrument.classifier, instrument.variable),
            *(scale, row.kind, row.turn, _schema.from_index(row.about), row.step, row.agent, row.assigned_opinion),
            *(row.condition, row.value, mean, gap, row.off_scale, row.evidence),
        )


def _of_runs(connection: Connection, experiment: ExperimentRow, statement: Select[Any], table: FromClause) -> list[Any]:
    """Rows of the experiment's runs."""
    portions = _schema.chunks(run.run_id for run in experiment.runs)
    return [row for some in portions for row in connection.execute(statement.where(table.c.run_id.in_(some)))]


def _frame(
    name: str, records: Sequence[tuple[Any, ...]], extra: Mapping[str, pd.Series], keys: list[str]
) -> pd.DataFrame:
    """A frame with its fixed columns typed, the others appended, its rows sorted by key."""
    types = COLUMNS[name]
    columns = list(zip(*records, strict=True)) or [()] * len(types)
    data = {
        column: pd.Series(list(values), dtype="object").astype(types[column])
        for column, values in zip(types, columns, strict=True)
    }
    frame = pd.DataFrame({**data, **extra})
    return frame.sort_values(keys, kind="stable", ignore_index=True, na_position="first")


def _spread(mappings: Sequence[Mapping[str, Any]], fixed: Iterable[str], prefix: str) -> dict[str, pd.Series]:
    """One column a key, in order of appearance; a key that is a fixed column's name gets the prefix."""
    taken = set(fixed)
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return {prefix + key if key in taken else key: _typed([mapping.get(key) for mapping in mappings]) for key in keys}


def _typed(values: list[Any]) -> pd.Series:
    """Texts as strings, numbers as float64 (int64 when none is missing or fractional), the rest as objects."""
    present = [value for value in values if value is not None]
    series = pd.Series(values, dtype="object")
    if present and all(isinstance(value, str) for value in present):
        return series.astype(_STR)
    if present and all(isinstance(value, Real) and not isinstance(value, bool) for value in present):
        whole = len(present) == len(values) and all(isinstance(value, int) for value in present)
        return series.astype("int64" if whole else "float64")
    return series
