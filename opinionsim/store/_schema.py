"""Tables of a store as its last version has them, and the few statements dialects spell differently."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Dialect,
    Float,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    func,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from opinionsim.errors import DamagedError, StoreError
from opinionsim.messages import text_id

__all__ = [
    "UNROWED",
    "agents",
    "calls",
    "canaries",
    "checked_text",
    "chunks",
    "designs",
    "edges",
    "experiments",
    "from_index",
    "from_json",
    "insert_new",
    "insert_texts",
    "instruments",
    "intact",
    "journal",
    "ledger",
    "opinions",
    "prompts",
    "runs",
    "schema_version",
    "seal",
    "sealed",
    "texts",
    "ties",
    "to_index",
    "to_json",
    "to_nullable",
    "turns",
    "upsert",
    "workers",
]

#: Before the JSON spelling of a text that databases cannot hold as it is.
_ESCAPE = "\x1bjson:"
#: Texts of fewer characters are names for the most part.
_SHORT = 40
#: Spells that there is no second turn, where a key takes no NULL.
_NO_TURN = -1
#: Columns whose texts are made here and hold nothing awkward.
_PLAIN = frozenset(
    ("run_id", "experiment_id", "text_id", "prompt_id", "before", "prompt_hash", "reasoning_id", "source", "outcome")
)
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
    return _spelled_name(text) if len(text) < _SHORT else _spelled_text(text)


def _spelled_text(text: str) -> str:
    return text if _storable(text) else _ESCAPE + json.dumps(text)


#: The same for names, of which there are few and which every row repeats.
_spelled_name = lru_cache(maxsize=1 << 12)(_spelled_text)


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

#: Tables that SQLite keeps in the order of their key, without row numbers beside it: smaller, and a run's rows lie
#: together.
UNROWED = frozenset(
    ("agents", "designs", "edges", "ties", "turns", "journal", "opinions", "prompts", "ledger", "canaries", "workers")
)


def _table(name: str, *columns: Column[Any]) -> Table:
    return Table(name, _METADATA, *columns, sqlite_with_rowid=name not in UNROWED)


def _crc() -> Column[Any]:
    """Check sum over the other columns of a row: see :func:`seal`."""
    return _int("crc")


experiments = _table(
    "experiments",
    _text("experiment_id", key=True),
    _text("name"),
    _float("created_at", optional=False),
    _int("designs"),
    _crc(),
)
#: `design` counts the designs of an experiment from 1.
designs = _table(
    "designs",
    _text("experiment_id", key=True),
    _int("design", key=True),
    _text("design_id"),
    _float("saved_at", optional=False),
    _text("spec"),
    _text("manifest"),
    _text("runs"),
    _crc(),
)
#: `held` is 1 while whoever claimed a run last has not given it back, 0 otherwise; `generation` says how often the run
#: was begun anew; `recorded` is the last number of its rows when it was given back last; `expected` the calls it was
#: thought to take.
runs = _table(
    "runs",
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
    _int("expected", optional=True),
    _text("inputs"),
    _text("wording", optional=True),
    _float("begun_at"),
    _text("status"),
    _int("epoch"),
    _text("owner"),
    _text("error"),
    _int("held"),
    _int("generation"),
    _int("recorded"),
    _crc(),
)
agents = _table(
    "agents",
    _text("run_id", key=True),
    _int("agent", key=True),
    _text("name"),
    _text("role"),
    _text("evidence"),
    _float("assigned_opinion"),
    _text("persona"),
    _text("model"),
    _crc(),
)
#: Ties at the start of a run.
edges = _table(
    "edges",
    _text("run_id", key=True),
    _int("source", key=True),
    _int("target", key=True),
    _float("weight", optional=False),
    _crc(),
)
#: Ties that moved in the course of a run: `change` counts them from 0.
ties = _table(
    "ties",
    _text("run_id", key=True),
    _int("change", key=True),
    _int("seq"),
    _int("step"),
    _int("old_source"),
    _int("old_target"),
    _int("source"),
    _int("target"),
    _crc(),
)
texts = _table("texts", _text("text_id", key=True), _text("text"))
#: Each row is a prompt: that of `before` and one message more. `prompt_id` is a hash of the others.
prompts = _table("prompts", _text("prompt_id", key=True), _text("before"), _text("role"), _text("text_id"))
#: `seq` counts the turns, ties and opinions of a run together, from 1, in the order they became known.
turns = _table(
    "turns",
    _text("run_id", key=True),
    _int("turn", key=True),
    _int("seq"),
    _int("step"),
    _int("agent"),
    _text("act"),
    _text("kind"),
    _text("reads"),
    _text("text_id"),
    _text("condition"),
    _crc(),
)
#: `entry` counts the entries of a run from 1, in the order they arrived; `experiment_id` is who paid for it.
journal = _table(
    "journal",
    _text("run_id", key=True),
    _int("turn", key=True),
    _text("part", key=True),
    _int("attempt", key=True),
    _int("entry"),
    _text("experiment_id"),
    _text("source"),
    _int("step"),
    _int("agent"),
    _text("act"),
    _text("prompt_hash"),
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
    _crc(),
)
#: The journal's replies of models. Whoever means calls reads these: they alone cost money and count against budgets.
calls = select(journal).where(journal.c.source == "model").subquery("calls")
#: What was paid for calls that were forgotten since, by experiment and run, each time the run was begun anew.
ledger = _table(
    "ledger",
    _text("experiment_id", key=True),
    _text("run_id", key=True),
    _int("generation", key=True),
    _int("calls"),
    _int("uncounted"),
    _int("input_tokens"),
    _int("output_tokens"),
    _float("cost", optional=False),
    _float("forgotten_at", optional=False),
    _crc(),
)
#: `context` is 0 or 1.
instruments = _table(
    "instruments",
    _text("instrument_id", key=True),
    _text("variable"),
    _text("classifier"),
    _text("options"),
    _text("points"),
    _text("labels"),
    _int("context"),
    _text("about"),
    _crc(),
)
#: `about` is the index of a second turn, or that of none: part of a key cannot be NULL.
opinions = _table(
    "opinions",
    _text("run_id", key=True),
    _text("instrument_id", key=True),
    _int("turn", key=True),
    _int("about", key=True),
    _int("seq"),
    _float("value"),
    _float("off_scale"),
    _text("probabilities"),
    _crc(),
)
#: The moment a model was asked is part of the key: sweeps that are repeated keep what the earlier ones were told.
canaries = _table(
    "canaries",
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
    _crc(),
)
#: Who executes runs, the last sign of life, by the database's clock where several share it, and what they are doing.
workers = _table("workers", _text("owner", key=True), _float("heartbeat_at", optional=False), _text("doing"))
schema_version = _table("schema_version", _int("version", key=True), _float("applied_at", optional=False))


@lru_cache(maxsize=64)
def _fractions(table: Table) -> tuple[int, ...]:
    """Places of the columns that hold fractions."""
    return tuple(place for place, column in enumerate(table.columns) if isinstance(column.type, Float))


def _crc_of(table: Table, values: Iterable[Any]) -> int:
    """Check sum of a row without its last column."""
    spelled = list(values)
    for place in _fractions(table):
        value = spelled[place]
        if value is not None:
            # A whole number comes back as a fraction, and a negative zero as zero.
            spelled[place] = float(value) + 0.0
    return crc32(repr(spelled).encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=64)
def _kinds(table: Table) -> tuple[type[str] | type[int] | type[float], ...]:
    """What the values of all columns but the last are."""
    return tuple(
        str if isinstance(column.type, _AnyText) else float if isinstance(column.type, Float) else int
        for column in table.columns
    )[:-1]


def seal(table: Table, values: Sequence[Any]) -> tuple[Any, ...]:
    """A row with the check sum by which :func:`intact` tells that it is as it was written.

    Numbers and texts of other types, numpy's for instance, become those that databases give back, and NaN None.

    Parameters
    ----------
    table : Table
        One whose last column is `crc`.
    values : sequence
        Of the other columns, in order.
    """
    plain: list[Any] = [
        value if value is None or type(value) is kind else kind(value)
        for value, kind in zip(values, _kinds(table), strict=True)
    ]
    for place in _fractions(table):
        plain[place] = to_nullable(plain[place])
    return (*plain, _crc_of(table, plain))


def sealed(connection: Connection, table: Table, statement: Select[Any]) -> Iterator[Row[Any]]:
    """The rows of a statement whose first columns are all those of `table`, each found intact."""
    for row in connection.execute(statement):
        intact(table, row)
        yield row


def intact(table: Table, row: Sequence[Any]) -> None:
    """Make sure that a row, which begins with all columns of `table`, is as it was written.

    Raises
    ------
    StoreError
        Naming table and key.
    """
    width = len(table.columns)
    if row[width - 1] != _crc_of(table, row[: width - 1]):
        key = [f"{column.name} {row[place]}" for place, column in enumerate(table.columns) if column.primary_key]
        raise DamagedError(f"in table {table.name} the row of {', '.join(key)} is not as it was written")


def checked_text(identity: str, text: str | None) -> str:
    """A text that was read under its content identity.

    Raises
    ------
    StoreError
        If there is none, or it is another one.
    """
    if text is None:
        raise DamagedError(f"text {identity} is missing")
    if text_id.__wrapped__(text) != identity:
        raise DamagedError(f"text {identity} is not as it was written")
    return text


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


def insert_new(connection: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows, each of all columns in order; where the key exists, leave what is there.

    Where the key is a hash of the content, other content under it is damage, and is mended.
    """
    if not rows:
        return
    free = _free_texts(table)
    spelled = [list(row) for row in rows]
    for row in spelled:
        for place in free:
            if row[place] is not None:
                row[place] = _spelled(row[place])
    if connection.dialect.name == "postgresql":
        _insert_as_one(connection, table, spelled)
    else:
        # The driver's own statement: what SQLAlchemy does for each value takes longer than SQLite does.
        connection.exec_driver_sql(_insertion(table), [tuple(row) for row in spelled])


@lru_cache(maxsize=64)
def _free_texts(table: Table) -> tuple[int, ...]:
    """Places of the columns whose texts may hold anything."""
    return tuple(
        place
        for place, column in enumerate(table.columns)
        if isinstance(column.type, _AnyText) and column.name not in _PLAIN
    )


@lru_cache(maxsize=64)
def _insertion(table: Table) -> str:
    names = ", ".join(column.name for column in table.columns)
    marks = ", ".join("?" for _ in table.columns)
    insertion = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608 - names of ours
    if table not in (texts, prompts):
        return f"{insertion} ON CONFLICT DO NOTHING"
    key, *content = [column.name for column in table.columns]
    mended = ", ".join(f"{name} = excluded.{name}" for name in content)
    differs = " OR ".join(f"{table.name}.{name} <> excluded.{name}" for name in content)
    return f"{insertion} ON CONFLICT ({key}) DO UPDATE SET {mended} WHERE {differs}"


def _insert_as_one(connection: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows as one JSON parameter.

    A statement a row makes the driver give up the interpreter for each, which another thread may keep for 5 ms: beside
    a busy event loop, 500 rows took half a second, in which replies that had arrived were not durable.
    """
    names = [column.name for column in table.columns]
    values = [dict(zip(names, map(_json_value, row), strict=True)) for row in rows]
    given = func.json_to_recordset(bindparam("rows", values, postgresql.JSON))
    shape = [Column(column.name, column.type) for column in table.columns]
    source = given.table_valued(*shape).render_derived(with_types=True)
    statement = postgresql.insert(table).from_select(names, select(*source.c))
    if table not in (texts, prompts):
        connection.execute(statement.on_conflict_do_nothing())
        return
    content = [column for column in table.columns if not column.primary_key]
    mended = {column.name: statement.excluded[column.name] for column in content}
    differs = or_(*(column != statement.excluded[column.name] for column in content))
    keys = list(table.primary_key)
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=mended, where=differs))


def _json_value(value: Any) -> Any:
    # JSON has no such numbers; as texts the database reads them.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def insert_texts(connection: Connection, found: Mapping[str, str]) -> None:
    """Insert texts by content identity; those already there stay."""
    # Workers share texts: in one order for all, so that no transaction waits for another in a circle.
    insert_new(connection, texts, [(key, found[key]) for key in sorted(found)])


def chunks(keys: Iterable[str]) -> Iterator[list[str]]:
    """Distinct keys, sorted, in portions that fit one IN list."""
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _IN_LIST):
        yield ordered[start : start + _IN_LIST]


#: Made once: `json.dumps` would make one for every value.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def to_json(value: Any, what: str) -> str:
    """JSON text of a value, its keys in the order given.

    Raises
    ------
    StoreError
        If the value holds something JSON cannot, NaN included.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what} must hold only JSON values: {error}") from error


def from_json(text: str, what: str) -> Any:
    """Value of a JSON text.

    Raises
    ------
    StoreError
        If it is none.
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise DamagedError(f"{what} cannot be read: {error}") from None


def to_nullable(value: float | None) -> float | None:
    """NaN as NULL, the spelling SQLite itself turns it into and JSON allows."""
    return None if value is None or math.isnan(value) else float(value)


def to_index(turn: int | None) -> int:
    """Index of a turn as a key holds it, one for none included."""
    return _NO_TURN if turn is None else turn


def from_index(turn: int) -> int | None:
    """Index of a turn as a key holds it, or None for none."""
    return None if turn == _NO_TURN else turn
