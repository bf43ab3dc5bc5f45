"""The store's content as tidy pandas frames. Their columns are documented at :class:`opinionsim.store.Results`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Select, Table, select

from opinionsim.errors import DamagedError
from opinionsim.metrics import instrument_validation
from opinionsim.store import _schema
from opinionsim.store._measured import instruments
from opinionsim.store._queries import require_whole
from opinionsim.store._rows import SUMMARY, DesignRow, ExperimentRun, InstrumentRow

__all__ = ["COLUMNS", "FRAMES", "agents", "calls", "edges", "opinions", "read_frames", "runs", "turns"]

#: Texts are kept as Python strings: models may return characters that Arrow's strings cannot hold.
_STR = pd.StringDtype("python", na_value=np.nan)

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
        "wording": _STR,
        "begun_at": "float64",
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


def read_frames(connection: Connection, design: DesignRow, names: Iterable[str] | None) -> dict[str, pd.DataFrame]:
    """Frames of a design by name, all of them for None, from one state of the store.

    Raises
    ------
    StoreError
        If something that is stored of the runs is damaged or missing.
    """
    require_whole(connection, {run.run_id for run in design.runs})
    return {name: FRAMES[name](connection, design) for name in (FRAMES if names is None else names)}


def runs(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """One row a cell and replicate."""
    stored = {row.run_id: row for row in _of_runs(connection, design, _schema.runs)}
    known = {row.instrument_id: row for row in instruments(connection)}
    records = []
    for cell in design.runs:
        if cell.run_id not in stored:
            raise DamagedError(f"run {cell.run_id} of {design.name} is missing")
        row = stored[cell.run_id]
        summary = [getattr(row, name) for name in SUMMARY]
        stance = known.get(cell.instrument_id or "")
        if stance is None and cell.instrument_id:
            raise DamagedError(f"instrument {cell.instrument_id} is missing")
        classifier = None if stance is None else stance.classifier
        validation = instrument_validation(row.evidence, cell.instruments.get(cell.instrument_id or "", ()))
        records.append(
            (
                *(cell.run_id, design.name, cell.cell, cell.replicate, cell.block, row.status, row.evidence),
                *(*summary, cell.instrument_id, classifier, validation, row.error),
                *(row.wording if row.begun_at is not None else None, row.begun_at),
            )
        )
    axes = _spread([cell.axes for cell in design.runs], COLUMNS["runs"], "sweep.")
    return _frame("runs", records, axes, ["cell", "replicate", "run_id", "instrument_id"])


def agents(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """One row an agent of a run."""
    rows = _of_runs(connection, design, _schema.agents)
    records = [
        (row.run_id, row.agent, row.name, row.role, row.assigned_opinion, row.model, row.evidence) for row in rows
    ]
    personas = [_schema.from_json(row.persona, f"the persona of agent {row.agent} of {row.run_id}") for row in rows]
    persona = _spread(personas, COLUMNS["agents"], "persona.")
    return _frame("agents", records, persona, ["run_id", "agent"])


def edges(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """One row a tie and the time it lasted in one place."""
    evidence = {row.run_id: row.evidence for row in _of_runs(connection, design, _schema.runs)}
    # Where each tie is now, and since when.
    lasting = {
        (row.run_id, row.source, row.target): (row.weight, 0) for row in _of_runs(connection, design, _schema.edges)
    }
    records = []
    for row in sorted(_of_runs(connection, design, _schema.ties), key=lambda row: (row.run_id, row.change)):
        old = (row.run_id, row.old_source, row.old_target)
        if old not in lasting:
            raise DamagedError(f"run {row.run_id} has no tie {old[1:]} that could have moved")
        weight, since = lasting.pop(old)
        records.append((*old, weight, since, row.step, evidence[row.run_id]))
        lasting[row.run_id, row.source, row.target] = (weight, row.step)
    records += [(*place, weight, since, None, evidence[place[0]]) for place, (weight, since) in lasting.items()]
    return _frame("edges", records, {}, ["run_id", "source", "target", "since"])


def turns(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """One row a turn."""
    table, text = _schema.turns, _schema.texts
    statement = select(table, text.c.text).outerjoin(text, text.c.text_id == table.c.text_id)
    evidence = _evidence(connection, design)
    records = []
    for row in _of_runs(connection, design, table, statement):
        reads = tuple(_schema.from_json(row.reads, f"what turn {row.turn} of run {row.run_id} read"))
        message = _schema.checked_text(row.text_id, row.text)
        site = (row.run_id, row.turn, row.step, row.agent, row.act, row.kind)
        records.append((*site, reads, message, row.condition, evidence[row.run_id, row.agent]))
    return _frame("turns", records, {}, ["run_id", "turn"])


def calls(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """One row a reply of a model."""
    table, text = _schema.journal, _schema.texts
    thoughts = text.alias()
    statement = (
        select(table, text.c.text, thoughts.c.text.label("thought"))
        .outerjoin(text, text.c.text_id == table.c.text_id)
        .outerjoin(thoughts, thoughts.c.text_id == table.c.reasoning_id)
        .where(table.c.source == "model")
    )
    evidence = _evidence(connection, design)
    own = [name for name in COLUMNS["calls"] if name not in ("reply", "reasoning", "evidence")]
    records = []
    for row in _of_runs(connection, design, table, statement):
        values = {name: getattr(row, name) for name in own}
        values["reply"] = _schema.checked_text(row.text_id, row.text)
        thought = row.reasoning_id
        values["reasoning"] = "" if thought is None else _schema.checked_text(thought, row.thought)
        # Whoever wrote the text, a model judged it.
        judged = row.part.startswith("judge")
        values["evidence"] = "model" if judged else evidence[row.run_id, row.agent]
        records.append(tuple(values[name] for name in COLUMNS["calls"]))
    return _frame("calls", records, {}, ["run_id", "turn", "part", "attempt"])


def opinions(connection: Connection, design: DesignRow) -> pd.DataFrame:
    """One row a cell, instrument and coded text: only what the cell's own instruments say."""
    used = {instrument_id for run in design.runs for instrument_id in run.instruments}
    known = {row.instrument_id: row for row in instruments(connection) if row.instrument_id in used}
    points = sorted({point for instrument in known.values() for point in instrument.points})
    authors = _Known({(row.run_id, row.agent): row for row in _of_runs(connection, design, _schema.agents)})
    turns = {(row.run_id, row.turn): row for row in _of_runs(connection, design, _schema.turns)}
    by_run: dict[tuple[str, str], list[Any]] = {}
    for row in _of_runs(connection, design, _schema.opinions):
        by_run.setdefault((row.run_id, row.instrument_id), []).append(row)
    records: list[tuple[Any, ...]] = []
    distributions = [np.empty((0, len(points)))]
    for cell in design.runs:
        for instrument_id in cell.instruments:
            rows = by_run.get((cell.run_id, instrument_id))
            if not rows:
                continue
            if instrument_id not in known:
                raise DamagedError(f"instrument {instrument_id} is missing")
            instrument = known[instrument_id]
            p = np.array([_distribution(row, instrument) for row in rows], dtype=float)
            p = p.reshape(len(rows), len(instrument.points))
            records.extend(_opinion_records(cell, instrument, rows, p, turns, authors))
            wide = np.full((len(rows), len(points)), np.nan)
            wide[:, [points.index(point) for point in instrument.points]] = p
            distributions.append(wide)
    stacked = np.concatenate(distributions)
    extra = {f"p_{point}": pd.Series(stacked[:, position]) for position, point in enumerate(points)}
    return _frame("opinions", records, extra, ["cell", "run_id", "instrument_id", "turn", "about"])


def _distribution(row: Any, instrument: InstrumentRow) -> list[float | None]:
    """The probabilities of an opinion, one a scale point."""
    where = f"an opinion of turn {row.turn} of run {row.run_id}"
    found = _schema.from_json(row.probabilities, where)
    if len(found) != len(instrument.points):
        raise DamagedError(f"{where} has {len(found)} probabilities")
    return list(found)


#: What builds each frame.
FRAMES: Mapping[str, Callable[[Connection, DesignRow], pd.DataFrame]] = {
    "runs": runs,
    "agents": agents,
    "edges": edges,
    "turns": turns,
    "opinions": opinions,
    "calls": calls,
}


def _evidence(connection: Connection, design: DesignRow) -> dict[tuple[str, int], str]:
    """What the texts of each agent are evidence of.

    Raises
    ------
    StoreError
        When one is asked for whose agent is missing.
    """
    found = {(row.run_id, row.agent): row.evidence for row in _of_runs(connection, design, _schema.agents)}
    return _Known(found)


class _Known(dict[tuple[str, int], Any]):
    """Something by run and number, all of which must be there."""

    def __missing__(self, key: tuple[str, int]) -> Any:
        raise DamagedError(f"agent {key[1]} of run {key[0]} is missing")


def _opinion_records(
    cell: ExperimentRun,
    instrument: InstrumentRow,
    rows: Sequence[Any],
    p: np.ndarray,
    turns: Mapping[tuple[str, int], Any],
    authors: Mapping[tuple[str, int], Any],
) -> Iterator[tuple[Any, ...]]:
    """Records of what one instrument of a cell says; `p` has the probabilities, one row a record."""
    ranked = np.sort(p, axis=1)
    expectation, margin = p @ np.asarray(instrument.points, dtype=float), ranked[:, -1] - ranked[:, -2]
    scale = ",".join(str(point) for point in sorted(instrument.points))
    for row, mean, gap in zip(rows, expectation, margin, strict=True):
        turn = turns[row.run_id, row.turn]
        author = authors[row.run_id, turn.agent]
        yield (
            *(row.run_id, cell.cell, cell.block, row.instrument_id, instrument.classifier, instrument.variable),
            *(scale, turn.kind, row.turn, _schema.from_index(row.about), turn.step, turn.agent),
            *(author.assigned_opinion, turn.condition, row.value, mean, gap, row.off_scale, author.evidence),
        )


def _of_runs(
    connection: Connection, design: DesignRow, table: Table, statement: Select[Any] | None = None
) -> list[Any]:
    """Rows of a design's runs, each intact, from a statement that begins with all columns of `table`."""
    asked = select(table) if statement is None else statement
    portions = _schema.chunks(run.run_id for run in design.runs)
    return [
        row for some in portions for row in _schema.sealed(connection, table, asked.where(table.c.run_id.in_(some)))
    ]


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
