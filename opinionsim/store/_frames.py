"""The store's content as tidy pandas frames. The file columns.toml describes their columns."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Select, Table, select

from opinionsim.errors import DamagedError
from opinionsim.llm import REFLECT, REPLY, CallName
from opinionsim.messages import SPOKEN
from opinionsim.metrics import BELIEF
from opinionsim.opinions import ambiguous
from opinionsim.store import _schema
from opinionsim.store._counts import require_whole
from opinionsim.store._measured import instruments
from opinionsim.store._queries import cells, seats, texts
from opinionsim.store._rows import DesignRow, ExperimentRun, InstrumentRow
from opinionsim.store._stored_journal import texts_of, with_texts

_FILE = "columns.toml"
#: Texts are kept as Python strings: models may return characters that Arrow's strings cannot hold.
_STR = pd.StringDtype("python", na_value=np.nan)


@cache
def documented_columns() -> dict[str, dict[str, dict[str, str]]]:
    """Type, meaning and, if any, unit of the columns of each frame; names in angle brackets vary.

    Those of frames that other folders bring are in a file of the same name there.
    """
    here = Path(__file__).parent
    files = [here / _FILE, *sorted({*here.parent.glob(f"*/{_FILE}")} - {here / _FILE})]
    found: dict[str, dict[str, dict[str, str]]] = {}
    for file in files:
        found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


#: Columns of each frame that do not depend on the data, with their types.
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    frame: {
        name: {"string": _STR, "tuple": object}.get(told["type"], told["type"])
        for name, told in documented_columns()[frame].items()
        if "<" not in name
    }
    for frame in ("runs", "agents", "edges", "turns", "opinions", "calls")
}


def read_frames(
    connection: Connection, design: DesignRow, names: Iterable[str] | None, *, checked: bool = False
) -> dict[str, pd.DataFrame]:
    """Frames of a design by name, by default all, from one state of the store.

    Parameters
    ----------
    connection : Connection
        Inside a read transaction.
    design : DesignRow
        The design.
    names : iterable of str or None
        Names in :data:`FRAMES`; ``acts`` and ``entries`` are `turns` and `calls` without texts and with all sources.
    checked : bool
        Whether it is known, in the same transaction, that no row is missing.

    Raises
    ------
    StoreError
        If a stored row of the runs is damaged or missing.
    """
    if not checked:
        require_whole(connection, {run.run_id for run in design.runs})
    rows = _Stored(connection, design)
    entries: Callable[[_Stored], pd.DataFrame] = partial(calls, sources=("model", "person", "instrument"))
    frames = {**FRAMES, "acts": acts, "entries": entries}
    return {name: frames[name](rows) for name in (frames if names is None else names)}


class _Stored:
    """The rows of a design's runs, each found intact; frames that need the same table share one reading of it."""

    def __init__(self, connection: Connection, design: DesignRow) -> None:
        self.connection = connection
        self.design = design
        self._found: dict[str, list[Any]] = {}

    def of(self, table: Table) -> list[Any]:
        """The rows of a table."""
        if table.name not in self._found:
            self._found[table.name] = self.among(table, select(table))
        return self._found[table.name]

    def among(self, table: Table, statement: Select[Any]) -> list[Any]:
        """The rows of a statement that begins with all columns of a table."""
        return list(_schema.of_runs(self.connection, table, (run.run_id for run in self.design.runs), statement))

    def authors(self) -> Mapping[tuple[str, int], Any]:
        """Rows of agents by run and index; looking up a missing one is an error."""
        return _Authors({(row.run_id, row.agent): row for row in self.of(_schema.agents)})


class _Authors(dict[tuple[str, int], Any]):
    def __missing__(self, key: tuple[str, int]) -> Any:
        raise DamagedError(f"agent {key[1]} of run {key[0]} is missing")


def runs(rows: _Stored) -> pd.DataFrame:
    """One row per cell and replicate."""
    records = [tuple(row[name] for name in COLUMNS["runs"]) for row in cells(rows.connection, rows.design)]
    axes = _spread([cell.axes for cell in rows.design.runs], COLUMNS["runs"], "sweep.")
    return _frame(
        "runs", [*zip(*records, strict=True)], axes, ["cell", "replicate", "redraw", "run_id", "instrument_id"]
    )


def agents(rows: _Stored) -> pd.DataFrame:
    """One row per agent of a run."""
    found = rows.of(_schema.agents)
    consenting = {(row.run_id, row.agent) for row in seats(rows.connection) if row.publishes}
    fields = [name for name in COLUMNS["agents"] if name != "publishes"]
    records = [(*(getattr(row, name) for name in fields), (row.run_id, row.agent) in consenting) for row in found]
    personas = _read_column(_schema.agents, found, "persona")
    persona = _spread(personas, COLUMNS["agents"], "persona.")
    return _frame("agents", [*zip(*records, strict=True)], persona, ["run_id", "agent"])


def edges(rows: _Stored) -> pd.DataFrame:
    """One row per tie and the time it stayed in one place."""
    evidence = {row.run_id: row.evidence for row in rows.of(_schema.runs)}
    # Where each tie is now, and since when.
    lasting = {(row.run_id, row.source, row.target): (row.weight, 0) for row in rows.of(_schema.edges)}
    records = []
    for row in sorted(rows.of(_schema.ties), key=lambda row: (row.run_id, row.change)):
        weight = 1.0
        if row.old_source is not None:
            old = (row.run_id, row.old_source, row.old_target)
            if old not in lasting:
                raise DamagedError(f"run {row.run_id} has no tie {old[1:]} that could have moved")
            weight, since = lasting.pop(old)
            records.append((*old, weight, since, row.step, evidence[row.run_id]))
        if row.source is not None:
            lasting[row.run_id, row.source, row.target] = (weight, row.step)
    records += [(*place, weight, since, None, evidence[place[0]]) for place, (weight, since) in lasting.items()]
    return _frame("edges", [*zip(*records, strict=True)], {}, ["run_id", "source", "target", "since"])


def turns(rows: _Stored) -> pd.DataFrame:
    """One row per turn."""
    frame = acts(rows)
    messages = texts(rows.connection, frame["message"])
    if lost := set(frame["message"]) - messages.keys():
        raise DamagedError(f"text {min(lost)} is missing")
    return frame.assign(message=pd.Series([messages[each] for each in frame["message"]], dtype="object").astype(_STR))


def acts(rows: _Stored) -> pd.DataFrame:
    """One row per turn, with the identity of its text in the place of the message."""
    authors, told = rows.authors(), _replies(rows)
    records = []
    found = rows.of(_schema.turns)
    for row, reads in zip(found, _read_column(_schema.turns, found, "reads"), strict=True):
        own = told.get((row.run_id, row.turn), {})
        first = own.get("first_status", "skipped" if row.status == "skipped" else "answered")
        records.append(
            (
                *(row.run_id, row.turn, row.step, row.agent, row.act, row.kind, tuple(reads), row.text_id),
                *(row.status, first, row.signs, row.taken, own.get("failed_reflections", 0)),
                authors[row.run_id, row.agent].evidence,
            )
        )
    return _frame("turns", [*zip(*records, strict=True)], {}, ["run_id", "turn"])


def _replies(rows: _Stored) -> dict[tuple[str, int], dict[str, Any]]:
    """What the journal says of turns whose first reply was no answer, or whose reflection failed."""
    table = _schema.journal
    # Everything else is asked of rows that were found intact.
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows.among(table, select(table).where(table.c.status != "answered")):
        own = found.setdefault((row.run_id, row.turn), {})
        if row.call == REFLECT and row.acceptance == "accepted" and row.status not in SPOKEN:
            own["failed_reflections"] = own.get("failed_reflections", 0) + 1
        if row.call == REPLY and row.attempt == 0:
            own["first_status"] = row.status
    return found


def calls(rows: _Stored, sources: Collection[str] = ("model",)) -> pd.DataFrame:
    """One row per reply of a model, or what else entered from these sources."""
    table = _schema.journal
    authors = rows.authors()
    records = []
    for row in rows.among(table, with_texts()):
        # Only a row that was found intact says what its source is.
        if row.source not in sources:
            continue
        values = row._asdict()
        values["reply"], values["reasoning"] = texts_of(row)
        # A model judged the text, whoever wrote it.
        judged = CallName.of(row.call).role == "judge"
        values["evidence"] = "model" if judged else authors[row.run_id, row.agent].evidence
        records.append(tuple(values[name] for name in COLUMNS["calls"]))
    return _frame("calls", [*zip(*records, strict=True)], {}, ["run_id", "turn", "call", "attempt"])


def opinions(rows: _Stored) -> pd.DataFrame:
    """One row per cell, instrument and coded text: only what the cell's own instruments say."""
    used = {instrument_id for run in rows.design.runs for instrument_id in run.instruments}
    known = {row.instrument_id: row for row in instruments(rows.connection) if row.instrument_id in used}
    points = sorted({point for instrument in known.values() for point in instrument.points})
    authors = rows.authors()
    turns = {(row.run_id, row.turn): row for row in rows.of(_schema.turns)}
    by_run: dict[tuple[str, str], list[Any]] = {}
    for row in rows.of(_schema.opinions):
        by_run.setdefault((row.run_id, row.instrument_id), []).append(row)
    blocks: list[list[list[Any]]] = []
    distributions = [np.empty((0, len(points)))]
    for cell in rows.design.runs:
        for instrument_id in cell.instruments:
            own = by_run.get((cell.run_id, instrument_id))
            if not own:
                continue
            if instrument_id not in known:
                raise DamagedError(f"instrument {instrument_id} is missing")
            instrument = known[instrument_id]
            p = _distributions(own, instrument)
            blocks.append(_opinion_columns(cell, instrument, own, p, turns, authors))
            wide = np.full((len(own), len(points)), np.nan)
            wide[:, [points.index(point) for point in instrument.points]] = p
            distributions.append(wide)
    stacked = np.concatenate(distributions)
    extra = {f"p_{point}": pd.Series(stacked[:, position]) for position, point in enumerate(points)}
    columns = [[*chain.from_iterable(parts)] for parts in zip(*blocks, strict=True)]
    return _frame("opinions", columns, extra, ["cell", "run_id", "instrument_id", "turn", "about"])


def _distributions(rows: Sequence[Any], instrument: InstrumentRow) -> np.ndarray:
    """The probabilities of opinions, shape (rows, scale points)."""
    found = _read_column(_schema.opinions, rows, "probabilities")
    for row, each in zip(rows, found, strict=True):
        if len(each) != len(instrument.points):
            raise DamagedError(f"an opinion of turn {row.turn} of run {row.run_id} has {len(each)} probabilities")
    return np.array(found, dtype=float)


#: The function that builds each frame.
FRAMES: Mapping[str, Callable[[_Stored], pd.DataFrame]] = {
    each.__name__: each for each in (runs, agents, edges, turns, opinions, calls)
}


def _opinion_columns(
    cell: ExperimentRun,
    instrument: InstrumentRow,
    rows: Sequence[Any],
    p: np.ndarray,
    turns: Mapping[tuple[str, int], Any],
    authors: Mapping[tuple[str, int], Any],
) -> list[list[Any]]:
    """Columns of the opinions of one instrument of a cell; `p` has the probabilities, one row per opinion."""
    ranked, expectation = np.sort(p, axis=1), p @ np.asarray(instrument.points, dtype=float)
    scale = ",".join(str(point) for point in sorted(instrument.points))
    own = [turns[row.run_id, row.turn] for row in rows]
    by = [authors[turn.run_id, turn.agent] for turn in own]
    same = (cell.run_id, cell.cell, cell.block, instrument.instrument_id, instrument.classifier, instrument.variable)
    # What became of a text says nothing of an opinion for which its author was asked anew.
    anew = instrument.classifier == BELIEF
    counted = [anew or cell.counts(turn) for turn in own]
    return [
        *([each] * len(rows) for each in (*same, scale)),
        [turn.kind for turn in own],
        [row.turn for row in rows],
        [_schema.from_index(row.about) for row in rows],
        [turn.step for turn in own],
        [turn.agent for turn in own],
        [author.assigned_opinion for author in by],
        ["answered" if anew else cell.status_of(turn) for turn in own],
        [row.value if counts else None for row, counts in zip(rows, counted, strict=True)],
        [row.value for row in rows],
        expectation.tolist(),
        (ranked[:, -1] - ranked[:, -2]).tolist(),
        [row.off_scale for row in rows],
        ambiguous(p).tolist(),
        [author.evidence for author in by],
    ]


def _frame(
    name: str, columns: Sequence[Sequence[Any]], extra: Mapping[str, pd.Series], keys: list[str]
) -> pd.DataFrame:
    """A frame with its fixed columns typed, the others appended, its rows sorted by key."""
    types = COLUMNS[name]
    data = {
        column: pd.Series(list(values), dtype="object").astype(types[column])
        for column, values in zip(types, columns or [()] * len(types), strict=True)
    }
    frame = pd.DataFrame({**data, **extra})
    return frame.sort_values(keys, kind="stable", ignore_index=True, na_position="first")


def _spread(mappings: Sequence[Mapping[str, Any]], fixed: Iterable[str], prefix: str) -> dict[str, pd.Series]:
    """One column per key, in order of appearance; a key that is a fixed column's name gets the prefix."""
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


def _read_column(table: Table, rows: Sequence[Any], name: str) -> list[Any]:
    """The values of a JSON column in rows; equal ones are parsed once, and all as one, in a fraction of the time.

    Raises
    ------
    DamagedError
        Naming the first that is no JSON.
    """
    spelled = [getattr(row, name) for row in rows]
    distinct = list(dict.fromkeys(spelled))
    try:
        found: list[Any] = json.loads(f"[{','.join(distinct)}]")
    except ValueError:
        found = []
    if len(found) != len(distinct):
        return [_schema.read_json(table, row, name) for row in rows]
    known = dict(zip(distinct, found, strict=True))
    return [known[each] for each in spelled]
