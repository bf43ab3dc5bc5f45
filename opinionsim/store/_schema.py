"""Tables of a store as its last version has them, and the few statements dialects spell differently."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Dialect,
    Float,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from opinionsim.errors import StoreError

__all__ = [
    "agents",
    "calls",
    "canaries",
    "chunks",
    "edges",
    "experiments",
    "from_index",
    "insert_new",
    "insert_texts",
    "instruments",
    "journal",
    "opinions",
    "runs",
    "schema_version",
    "texts",
    "to_index",
    "to_json",
    "to_nullable",
    "turns",
    "upsert",
    "workers",
]

#: Before the JSON spelling of a text that databases cannot hold as it is.
_ESCAPE = "\x1bjson:"
#: Spells that there is no second turn, where a key takes no NULL.
_NO_TURN = -1
#: How many values one IN list may have; well under every database's limit on bound parameters.
_IN_LIST = 500


def _storable(text: str) -> bool:
    """Whether every database keeps the text as it is: no NUL, no lone surrogate, no marker of ours."""
    if "\x00" in text or text.startswith(_ESCAPE):
        return False
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _spelled(text: str) -> str:
    """The text, or an awkward one spelled in ASCII."""
    return text if _storable(text) else _ESCAPE + json.dumps(text)


class _AnyText(TypeDecorator[str]):
    """Any Python string: NUL characters and lone surrogates survive, everything else is stored as it is."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Spell an awkward text in ASCII."""
        return value if value is None else _spelled(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Undo the spelling."""
        if value is not None and value.startswith(_ESCAPE):
            return str(json.loads(value[len(_ESCAPE) :]))
        return value


def _text(name: str, *, key: bool = False, optional: bool = False) -> Column[Any]:
    return Column(name, _AnyText(), primary_key=key, nullable=optional)


def _int(name: str, *, key: bool = False, optional: bool = False) -> Column[Any]:
    return Column(name, BigInteger(), primary_key=key, nullable=optional, autoincrement=False)


def _float(name: str, *, key: bool = False, optional: bool = True) -> Column[Any]:
    return Column(name, Float(53), primary_key=key, nullable=optional and not key)


_METADATA = MetaData()

experiments = Table(
    "experiments",
    _METADATA,
    _text("experiment_id", key=True),
    _text("name"),
    _float("created_at", optional=False),
    _float("saved_at", optional=False),
    _text("spec"),
    _text("manifest"),
    _text("runs"),
)
#: `held` is 1 while whoever claimed a run last has not given it back, 0 otherwise.
runs = Table(
    "runs",
    _METADATA,
    _text("run_id", key=True),
    _int("replicate"),
    _text("block"),
    _text("evidence"),
    _text("fields"),
    _int("seed"),
    _text("topic", optional=True),
    _text("category", optional=True),
    _text("framing", optional=True),
    _text("claim", optional=True),
    _float("truth"),
    _text("confirmation_bias", optional=True),
    _text("memory", optional=True),
    _text("world", optional=True),
    _text("model", optional=True),
    _text("interaction", optional=True),
    _text("network", optional=True),
    _int("n_agents"),
    _int("steps"),
    _text("status"),
    _int("epoch"),
    _text("owner"),
    _text("error"),
    _int("held"),
)
agents = Table(
    "agents",
    _METADATA,
    _text("run_id", key=True),
    _int("agent", key=True),
    _text("name"),
    _text("role"),
    _text("evidence"),
    _float("assigned_opinion"),
    _text("persona"),
    _text("model"),
)
edges = Table(
    "edges",
    _METADATA,
    _text("run_id", key=True),
    _int("source", key=True),
    _int("target", key=True),
    _float("weight", optional=False),
    _int("since", key=True),
    _int("until", optional=True),
)
texts = Table("texts", _METADATA, _text("text_id", key=True), _text("text"))
turns = Table(
    "turns",
    _METADATA,
    _text("run_id", key=True),
    _int("turn", key=True),
    _int("step"),
    _int("agent"),
    _text("act"),
    _text("kind"),
    _text("reads"),
    _text("text_id"),
    _text("condition"),
)
#: `prompt` holds one line `role:text_id` a message: its SHA-256 begins with `prompt_hash`.
journal = Table(
    "journal",
    _METADATA,
    _text("run_id", key=True),
    _int("turn", key=True),
    _text("part", key=True),
    _int("attempt", key=True),
    _text("source"),
    _int("step"),
    _int("agent"),
    _text("act"),
    _text("prompt_hash"),
    _text("prompt", optional=True),
    _text("text_id"),
    _text("outcome"),
    _text("reason"),
    _int("seed", optional=True),
    _int("dropped"),
    _text("finish_reason"),
    _text("model"),
    _int("input_tokens", optional=True),
    _int("output_tokens", optional=True),
    _float("latency_s"),
    _float("arrived_at"),
    _text("condition"),
    _text("reasoning_id", optional=True),
    _int("cached_tokens", optional=True),
    _int("reasoning_tokens", optional=True),
    _float("cost"),
)
#: The journal's replies of models. Whoever means calls reads these: they alone cost money and count against budgets.
calls = select(journal).where(journal.c.source == "model").subquery("calls")
#: `context` is 0 or 1.
instruments = Table(
    "instruments",
    _METADATA,
    _text("instrument_id", key=True),
    _text("variable"),
    _text("classifier"),
    _text("options"),
    _text("points"),
    _text("labels"),
    _int("context"),
    _text("about"),
)
#: `about` is the index of a second turn, or that of none: part of a key cannot be NULL.
opinions = Table(
    "opinions",
    _METADATA,
    _text("run_id", key=True),
    _text("instrument_id", key=True),
    _int("turn", key=True),
    _int("about", key=True),
    _float("value"),
    _float("off_scale"),
    _text("probabilities"),
)
#: The moment a model was asked is part of the key: sweeps that are repeated keep what the earlier ones were told.
canaries = Table(
    "canaries",
    _METADATA,
    _text("experiment_id", key=True),
    _text("model", key=True),
    _text("moment", key=True),
    _int("position", key=True),
    _float("asked_at", key=True),
    _text("text_id"),
    _text("returned_model"),
    _text("fingerprint"),
    _int("input_tokens", optional=True),
    _int("output_tokens", optional=True),
    _float("cost"),
)
#: Who executes runs, and the last sign of life by the database's clock; only where several may at a time.
workers = Table("workers", _METADATA, _text("owner", key=True), _float("heartbeat_at", optional=False))
schema_version = Table("schema_version", _METADATA, _int("version", key=True), _float("applied_at", optional=False))


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def upsert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], keep: Collection[str] = ()) -> None:
    """Insert rows; where the key exists, replace every column but those in `keep`."""
    if not rows:
        return
    statement = _insert(connection, table)
    replaced = [column.name for column in table.columns if not column.primary_key and column.name not in keep]
    values = {name: statement.excluded[name] for name in replaced}
    connection.execute(statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=values), rows)


def insert_new(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows of the same columns; where the key exists, leave what is there."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        _insert_as_one(connection, table, rows)
    else:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


def _insert_as_one(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows as one JSON parameter.

    A statement a row makes the driver give up the interpreter for each, which another thread may keep for 5 ms: beside
    a busy event loop, 500 rows took half a second, in which replies that had arrived were not durable.
    """
    columns = [table.c[name] for name in rows[0]]
    values = [{column.name: _json_value(column, row[column.name]) for column in columns} for row in rows]
    shape = [Column(column.name, column.type) for column in columns]
    given = func.json_to_recordset(bindparam("rows", values, postgresql.JSON))
    source = given.table_valued(*shape).render_derived(with_types=True)
    statement = postgresql.insert(table).from_select([column.name for column in columns], select(*source.c))
    connection.execute(statement.on_conflict_do_nothing())


def _json_value(column: Column[Any], value: Any) -> Any:
    if isinstance(value, str) and isinstance(column.type, _AnyText):
        return _spelled(value)
    # JSON has no such numbers; as texts the database reads them.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def insert_texts(connection: Connection, found: Mapping[str, str]) -> None:
    """Insert texts by content identity; those already there stay."""
    # Workers share texts: in one order for all, so that no transaction waits for another in a circle.
    insert_new(connection, texts, [{"text_id": key, "text": found[key]} for key in sorted(found)])


def chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    """Distinct keys, sorted, in portions that fit one IN list."""
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _IN_LIST):
        yield ordered[start : start + _IN_LIST]


def to_json(value: Any, what: str) -> str:
    """JSON text of a value, its keys in the order given.

    Raises
    ------
    StoreError
        If the value holds something JSON cannot, NaN included.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what} must hold only JSON values: {error}") from error


def to_nullable(value: float | None) -> float | None:
    """NaN as NULL, the spelling SQLite itself turns it into and JSON allows."""
    return None if value is None or math.isnan(value) else float(value)


def to_index(turn: int | None) -> int:
    """Index of a turn as a key holds it, one for none included."""
    return _NO_TURN if turn is None else turn


def from_index(turn: int) -> int | None:
    """Index of a turn as a key holds it, or None for none."""
    return None if turn == _NO_TURN else turn
