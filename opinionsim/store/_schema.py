"""Tables of a store, the migrations that make them, and the few statements dialects spell differently."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
    inspect,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from opinionsim.errors import StoreError

__all__ = [
    "MIGRATIONS",
    "TABLES",
    "agents",
    "calls",
    "chunks",
    "edges",
    "experiments",
    "from_nullable",
    "insert_new",
    "measurements",
    "migrate",
    "opinions",
    "runs",
    "schema_version",
    "stored_version",
    "texts",
    "to_json",
    "to_nullable",
    "turns",
    "upsert",
]

#: Before the JSON spelling of a text that databases cannot hold as it is.
_ESCAPE = "\x1bjson:"
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


class _AnyText(TypeDecorator[str]):
    """Any Python string: NUL characters and lone surrogates survive, everything else is stored as it is."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Spell an awkward text in ASCII."""
        return value if value is None or _storable(value) else _ESCAPE + json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Undo the spelling."""
        if value is not None and value.startswith(_ESCAPE):
            return str(json.loads(value[len(_ESCAPE) :]))
        return value


def _text(name: str, *, key: bool = False, optional: bool = False) -> Column[Any]:
    return Column(name, _AnyText(), primary_key=key, nullable=optional)


def _int(name: str, *, key: bool = False, optional: bool = False) -> Column[Any]:
    return Column(name, BigInteger(), primary_key=key, nullable=optional, autoincrement=False)


def _float(name: str, *, optional: bool = True) -> Column[Any]:
    return Column(name, Float(53), nullable=optional)


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
)
agents = Table(
    "agents",
    _METADATA,
    _text("run_id", key=True),
    _int("agent", key=True),
    _text("name"),
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
)
#: `prompt` holds one line `role:text_id` a message: its SHA-256 begins with `prompt_hash`.
calls = Table(
    "calls",
    _METADATA,
    _text("run_id", key=True),
    _int("turn", key=True),
    _text("part", key=True),
    _int("attempt", key=True),
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
)
measurements = Table(
    "measurements",
    _METADATA,
    _text("measurement_id", key=True),
    _text("classifier"),
    _text("options"),
    _text("points"),
    _text("labels"),
    _text("kinds"),
)
opinions = Table(
    "opinions",
    _METADATA,
    _text("run_id", key=True),
    _text("measurement_id", key=True),
    _text("variable", key=True),
    _int("turn", key=True),
    _float("value"),
    _float("off_scale"),
    _text("probabilities"),
)
schema_version = Table("schema_version", _METADATA, _int("version", key=True), _float("applied_at", optional=False))

#: Names of all tables of a store.
TABLES = frozenset(_METADATA.tables)


def _create_version_1(connection: Connection) -> None:
    _METADATA.create_all(connection)


#: What brings a store from version n to n + 1, in order; the schema's version is their number.
MIGRATIONS: list[Callable[[Connection], None]] = [_create_version_1]


def stored_version(connection: Connection, where: str) -> int:
    """Schema version of an open database; 0 for an empty one.

    Raises
    ------
    StoreError
        If the database belongs to another program or to a later version of this one.
    """
    names = set(inspect(connection).get_table_names())
    if not names:
        return 0
    if not names >= TABLES:
        raise StoreError(f"{where} is a database of another program, not an opinionsim store; give another path")
    version = max(connection.scalars(select(schema_version.c.version)), default=0)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{where} has schema version {version}, this version of opinionsim knows up to {len(MIGRATIONS)}; "
            f"install the version of opinionsim that wrote it, or a later one"
        )
    return version


def migrate(connection: Connection, version: int) -> None:
    """Bring a database from `version` to the current one."""
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        step(connection)
        connection.execute(schema_version.insert(), {"version": number, "applied_at": time.time()})


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
    """Insert rows; where the key exists, leave what is there."""
    if rows:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


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


def from_nullable(value: float | None) -> float:
    """NULL as NaN."""
    return math.nan if value is None else value
