"""Tables of a store, and the few statements that differ between dialects."""

from __future__ import annotations

import json
import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import chain, starmap
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar
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
from sqlalchemy.types import TypeEngine

from opinionsim.errors import DamagedError, StoreError

_T = TypeVar("_T")
_Name = TypeVar("_Name", str, int)

#: Prefix of the JSON spelling of a text that databases cannot hold as it is.
_ESCAPE = "\x1bjson:"
#: Its first character.
_MARK = "\x1b"
#: Rows that are fetched at once.
_AT_ONCE = 1000
#: Rows that one statement inserts, the most first; the last is 1.
_PORTIONS = (64, 16, 4, 1)
#: Texts of fewer characters are names for the most part.
_SHORT = 40
#: Stands for no second turn in keys, which take no NULL.
_NO_TURN = -1
#: Columns whose texts the package makes, so that every database can hold them.
_PLAIN = frozenset(
    (
        *("run_id", "experiment_id", "text_id", "prompt_id", "before", "prompt_hash", "reasoning_id", "source"),
        *("acceptance", "unit_id"),
    )
)
#: Largest number of values in one IN list; well under every database's limit on bound parameters.
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
    """The text, spelled in ASCII if a database cannot hold it as it is."""
    return _spelled_name(text) if len(text) < _SHORT else _spelled_text(text)


def _spelled_text(text: str) -> str:
    return text if _storable(text) else _ESCAPE + json.dumps(text)


def _unspelled(text: str) -> str:
    """The text that was spelled in ASCII."""
    if not text.startswith(_ESCAPE):
        return text
    try:
        return str(json.loads(text[len(_ESCAPE) :]))
    except ValueError:
        raise DamagedError("a text is not spelled as it was written") from None


#: The same for names, of which there are few and which every row repeats.
_spelled_name = lru_cache(maxsize=1 << 12)(_spelled_text)


class _AnyText(TypeDecorator[str]):
    """Any Python string: NUL characters and lone surrogates survive, everything else is stored as it is."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Spell a text in ASCII if a database cannot hold it as it is."""
        return value if value is None else _spelled(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Undo the spelling."""
        if value is None:
            return None
        # In SQLite a damaged value may be of any type.
        if not isinstance(value, str):
            raise DamagedError(f"expected a text, got a value of type {type(value).__name__}")
        return _unspelled(value)


class _Json(_AnyText):
    """JSON text of a value."""

    cache_ok = True


#: All tables.
TABLES = MetaData()

#: Types of columns by name.
_HOLDS: Mapping[str, TypeEngine[Any]] = {
    "": _AnyText(),
    "int": BigInteger(),
    "float": Float(53),
    "json": _Json(),
}


def _table(name: str, key: str, columns: str = "", *, sealed: bool = True, rowed: bool = False) -> Table:
    """A table.

    Parameters
    ----------
    name : str
        Its name.
    key, columns : str
        Columns of its key and its others, each as ``NAME``, which holds text, ``NAME:int``, ``NAME:float`` or
        ``NAME:json``; a ``?`` behind one says that it may be NULL.
    sealed : bool
        Whether its last column is ``crc``, the check sum over the others: see :func:`seal`.
    rowed : bool
        Whether SQLite gives its rows numbers beside their key. Without them it keeps the rows in the order of the key:
        the table is smaller, and a run's rows lie together.
    """
    found: list[Column[Any]] = []
    n_key = len(key.split())
    for place, spelled in enumerate([*key.split(), *columns.split(), *(["crc:int"] if sealed else [])]):
        column, _, held = spelled.removesuffix("?").partition(":")
        kind, optional = _HOLDS[held], spelled.endswith("?")
        found.append(Column(column, kind, primary_key=place < n_key, nullable=optional, autoincrement=False))
    return Table(name, TABLES, *found, sqlite_with_rowid=rowed)


experiments = _table("experiments", "experiment_id", "name created_at:float designs:int", rowed=True)
#: `design` counts the designs of an experiment from 1.
designs = _table("designs", "experiment_id design:int", "design_id saved_at:float spec:json manifest:json runs:json")
#: `held` is 1 while the last lease of a run has not been given back, 0 otherwise; `generation` says how often the run
#: was begun anew; `expected` is the expected number of calls.
runs = _table(
    "runs",
    "run_id",
    "replicate:int block evidence fields:json seed:int topic? category? framing? claim? task? truth:float? "
    "confirmation_bias? memory? world? model? interaction? network? n_agents:int steps:int event_steps? "
    "dropped_turns:int expected:int? inputs "
    "wording? parts:json begun_at:float? status epoch:int owner error cause:json held:int generation:int",
    rowed=True,
)
agents = _table("agents", "run_id agent:int", "name role evidence assigned_opinion:float? persona:json model")
#: Ties at the start of a run.
edges = _table("edges", "run_id source:int target:int", "weight:float")
#: Ties that moved in the course of a run: `change` counts them from 0.
ties = _table("ties", "run_id change:int", "seq:int step:int old_source:int? old_target:int? source:int? target:int?")
texts = _table("texts", "text_id", "text", sealed=False, rowed=True)
#: Each row is a prompt: that of `before` and one message more. `prompt_id` is a hash of the other columns.
prompts = _table("prompts", "prompt_id", "before role text_id", sealed=False)
#: `seq` counts the turns, ties and opinions of a run together, from 1, in the order they became known.
turns = _table("turns", "run_id turn:int", "seq:int step:int agent:int act kind reads:json text_id status signs taken")
#: `entry` counts the entries of a run from 1, in the order they arrived; `experiment_id` is the experiment that paid.
journal = _table(
    "journal",
    "run_id turn:int call attempt:int",
    "entry:int experiment_id source step:int agent:int act prompt_hash text_id acceptance cause reason seed:int? lane "
    "dropped:int finish_reason reasoning_tokens:int? fingerprint input_tokens:int? output_tokens:int? latency_s:float? "
    "arrived_at:float? status signs:json taken reasoning_id? rules cached_tokens:int? model cost:float? saved:float?",
)
#: What was paid for forgotten calls, by experiment, run and generation.
ledger = _table(
    "ledger",
    "experiment_id run_id generation:int",
    "calls:int uncounted:int input_tokens:int cached_tokens:int output_tokens:int cost:float saved:float "
    "forgotten_at:float",
)
#: Batches of calls at providers. `file` names the input at the provider and `batch_id` the batch, as soon as they are
#: known; `state` is open or closed.
batches = _table(
    "batches",
    "token",
    "experiment_id part account model calls:int created_at:float file batch_id submitted_at:float? done:int "
    "expires_at:float? ended_at:float? revoked_at:float? state",
)
#: Calls of open batches, with the most that each may cost. A reply is owed until the journal has it or `owed` is 0.
batched = _table(
    "batched", "token custom_id", "run_id turn:int call attempt:int prompt_hash tokens:int money:float owed:int"
)
#: What each experiment has paid in all, where several workers spend: for its calls in the journal and the ledger.
totals = _table("totals", "experiment_id", "calls:int tokens:int money:float", sealed=False)
#: The most that calls in flight may cost, where several workers spend. A row ends with the reply on record.
reservations = _table(
    "reservations", "run_id turn:int call attempt:int", "experiment_id owner tokens:int money:float", sealed=False
)
#: Questions to persons that have no answer yet. A row ends with the answer on record, and is written anew when the run
#: goes on after a stop; `deadline` is NULL where there is no end.
waits = _table("waits", "run_id turn:int call attempt:int", "agent:int question:json asked_at:float deadline:float?")
#: Who sits where: `token`, `link`, `consent` and `withdrawal` are hashes; `trial` is 1 for an owner who sits down to
#: try, `publishes` for a person who lets its words be published. `events` is all that happened out of turn.
seats = _table(
    "seats",
    "run_id agent:int",
    "token? joined_at:float? link? consent? consented_at:float? withdrawal? trial:int? publishes:int? events:json",
)
#: `context` is 0 or 1.
instruments = _table(
    "instruments",
    "instrument_id",
    "variable classifier options:json points:json labels:json context:int about code",
    rowed=True,
)
#: `about` is the index of a second turn, or -1 for none, since no part of a key can be NULL.
opinions = _table(
    "opinions", "run_id instrument_id turn:int about:int", "seq:int value:float? off_scale:float? probabilities:json"
)
#: Counts of the rows of each run, and of what its calls have used, as of the same transaction; see `Counts`.
counts = _table("counts", "run_id", "rows:json paid:json models:json")
#: Tables of the rows that a run produces, in the order in which they depend on each other.
PRODUCED = (agents, edges, ties, turns, journal, opinions)
#: Those whose rows are numbered together.
NUMBERED = (turns, ties, opinions)
#: Units of work of studies that keep no runs, whatever their kind. `held` has the values, with null for NaN.
units = _table("units", "unit_id replicate:int", "held:json error")
#: All that determines the values of a unit but its replicate. `unit_id` is its hash.
unit_keys = _table("unit_keys", "unit_id", "key:json")
#: Samples of texts for coders; `coders` has the evidence of each, `findings` what was found for instruments and models.
audits = _table("audits", "audit_id", "experiment_id sample:json coders:json findings:json made_at:float")
#: What coders say of the texts of audits; `value` is NULL where they find no opinion.
labels = _table("labels", "audit_id coder run_id turn:int", "value:float? evidence")
#: Workers that execute runs, their last sign of life, by the clock of a shared database, and what they are doing.
workers = _table("workers", "owner", "heartbeat_at:float doing:json", sealed=False)
schema_version = _table("schema_version", "version:int", "applied_at:float", sealed=False, rowed=True)


class _Shape(NamedTuple):
    """Names and types of the columns of a table, the last one left out."""

    names: tuple[str, ...]
    kinds: tuple[type[str] | type[int] | type[float], ...]
    fractions: tuple[int, ...]
    """Places of the columns that hold fractions."""
    json: tuple[int, ...]
    """Places of the columns that hold JSON."""


@lru_cache(maxsize=64)
def _shape(table: Table) -> _Shape:
    types = [column.type for column in table.columns][:-1]
    kinds = [str if isinstance(each, _AnyText) else float if isinstance(each, Float) else int for each in types]
    fractions = tuple(place for place, kind in enumerate(kinds) if kind is float)
    spelled = tuple(place for place, each in enumerate(types) if isinstance(each, _Json))
    return _Shape(tuple(table.columns.keys()[:-1]), tuple(kinds), fractions, spelled)


def _crc(values: Iterable[Any], fractions: Iterable[int]) -> int:
    """Check sum of a row without its last column; `fractions` are the places of fractions."""
    spelled = list(values)
    for place in fractions:
        value = spelled[place]
        if value is not None:
            # Databases return a whole number as a float, and a negative zero as zero.
            spelled[place] = float(value) + 0.0
    return crc32(repr(spelled).encode("utf-8", "surrogatepass"))


def seal(table: Table, values: Sequence[Any]) -> tuple[Any, ...]:
    """A row with the check sum by which :func:`intact` recognises an unchanged row.

    Numbers and texts of other types, such as numpy's, become the types that databases return; NaN becomes None.

    Parameters
    ----------
    table : Table
        One whose last column is `crc`.
    values : sequence
        Values of the other columns, in order.
    """
    shape = _shape(table)
    plain: list[Any] = [
        value if value is None or type(value) is kind else kind(value)
        for value, kind in zip(values, shape.kinds, strict=True)
    ]
    for place in shape.fractions:
        plain[place] = to_nullable(plain[place])
    return (*plain, _crc(plain, shape.fractions))


def sealed_row(table: Table, content: Any = None, **given: Any) -> tuple[Any, ...]:
    """A row with its check sum.

    Parameters
    ----------
    table : Table
        One whose last column is `crc`.
    content : object, optional
        Its attributes fill the columns of their names.
    **given : Any
        Values of columns; they override attributes.

    Raises
    ------
    StoreError
        If a value for a JSON column is not a JSON value.
    """
    shape = _shape(table)
    others, places = _filled(table, tuple(given))
    values = [*given.values(), *others(content)]
    values = [values[place] for place in places]
    for place in shape.json:
        values[place] = to_json(values[place], f"{table.name}.{shape.names[place]}")
    return seal(table, values)


@lru_cache(maxsize=64)
def _filled(table: Table, given: tuple[str, ...]) -> tuple[Callable[[Any], Sequence[Any]], tuple[int, ...]]:
    """What takes the other columns of a row from an object, and where each column stands behind those given."""
    names = _shape(table).names
    others = tuple(name for name in names if name not in given)
    order = (*given, *others)
    # Two names that are no columns, since an attrgetter of fewer returns no sequence.
    return attrgetter(*others, "__class__", "__class__"), tuple(map(order.index, names))


def made(kind: type[_T], table: Table, row: Row[Any], **given: Any) -> _T:
    """An object with fields filled from a row.

    Parameters
    ----------
    kind : type
        A dataclass or NamedTuple whose fields have the names of columns.
    table : Table
        The table of the row.
    row : Row
        Begins with all columns of the table.
    **given : Any
        Fields without a column, or with another value than their column.
    """
    names = getattr(kind, "_fields", None) or kind.__dataclass_fields__  # type: ignore[attr-defined]
    shape, found = _shape(table), row._asdict()
    own = {name: found[name] for name in shape.names if name in names and name not in given}
    own |= {name: read_json(table, row, name) for place in shape.json if (name := shape.names[place]) in own}
    return kind(**given, **own)


def read_json(table: Table, row: Row[Any], name: str) -> Any:
    """The value of a JSON column in a row, a list as a tuple.

    Raises
    ------
    DamagedError
        If it is not JSON.
    """
    try:
        value = json.loads(getattr(row, name))
    except ValueError as error:
        raise DamagedError(f"in table {table.name} the {name} of {_key(table, row)} cannot be read: {error}") from None
    return tuple(value) if isinstance(value, list) else value


def _key(table: Table, row: Sequence[Any]) -> str:
    return ", ".join(f"{column.name} {row[place]}" for place, column in enumerate(table.columns) if column.primary_key)


def of_runs(
    connection: Connection, table: Table, run_ids: Iterable[str] | None, statement: Select[Any] | None = None
) -> Iterator[Any]:
    """Rows of runs, or of units of other studies, by default of all, each checked.

    They come from a statement that begins with all columns of `table`; default only these columns.
    """
    identity, *_ = table.primary_key
    asked = select(table) if statement is None else statement
    for each in portions(asked, identity, run_ids):
        yield from sealed(connection, table, each)


def with_text(table: Table) -> Select[Any]:
    """All columns of a table, and ``text``, the text of its `text_id`."""
    return select(table, texts.c.text).outerjoin(texts, texts.c.text_id == table.c.text_id)


def sealed(connection: Connection, table: Table, statement: Select[Any]) -> Iterator[Any]:
    """The rows of a statement that begins with all columns of `table`, as named tuples, each checked.

    Raises
    ------
    DamagedError
        Naming table and key of the first that is not.
    """
    names, _, fractions, _ = _shape(table)
    last = len(names)
    for row in stored_rows(connection, statement):
        if row[last] != _crc(row[:last], fractions):
            intact(table, row)
        yield row


def stored_rows(connection: Connection, statement: Select[Any]) -> Iterator[Any]:
    """The rows of a statement as named tuples.

    The driver's own rows: SQLAlchemy's work on each value takes longer than reading it and comparing its check sum.
    """
    with connection.execute(statement) as result:
        kind = _kind_of_row(tuple(result.keys()))
        while rows := result.cursor.fetchmany(_AT_ONCE):
            # Looking at all texts as one is quicker than at each.
            if _MARK in "".join([value for row in rows for value in row if value.__class__ is str]):
                rows = [[_unspelled(value) if isinstance(value, str) else value for value in row] for row in rows]
            yield from starmap(kind, rows)


@lru_cache(maxsize=64)
def _kind_of_row(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names)


def intact(table: Table, row: Sequence[Any]) -> None:
    """Check that a row, which begins with all columns of `table`, is unchanged.

    Raises
    ------
    StoreError
        Naming table and key.
    """
    names, _, fractions, _ = _shape(table)
    if row[len(names)] != _crc(row[: len(names)], fractions):
        raise DamagedError(f"in table {table.name} the row of {_key(table, row)} has changed since it was written")


def upsert(connection: Connection, table: Table, rows: Sequence[Sequence[Any]], *, adding: bool = False) -> None:
    """Insert rows with all columns in order; if a key exists, replace the other columns, or add to them."""
    if rows:
        names = table.columns.keys()
        statement = _upsertion(connection.dialect.name, table, adding)
        connection.execute(statement, [dict(zip(names, row, strict=True)) for row in rows])


@lru_cache(maxsize=64)
def _upsertion(dialect: str, table: Table, adding: bool) -> Any:
    # Only the dialect in use is loaded: loading PostgreSQL's takes a tenth of a command's start.
    statement = import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
    given = statement.excluded
    others = [column for column in table.columns if not column.primary_key]
    values = {column.name: column + given[column.name] if adding else given[column.name] for column in others}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=values)


def insert_new(connection: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows with all columns in order, except for keys that exist.

    If the key is a hash of the content, different content under it is damage, and is repaired.
    """
    if not rows:
        return
    free = _free_texts(table)
    spelled = rows
    # Looking at all texts as one is quicker than at each.
    together = "".join([row[place] for row in rows for place in free if row[place] is not None])
    if _ESCAPE[0] in together or not _storable(together):
        spelled = [
            [_spelled(value) if place in free and value is not None else value for place, value in enumerate(row)]
            for row in rows
        ]
    if connection.dialect.name == "postgresql":
        _insert_as_one(connection, table, spelled)
    else:
        # The driver's own statement: SQLAlchemy's work on each value takes longer than SQLite's. One for several rows:
        # the driver gives up the interpreter lock for each, which other threads want.
        begun = 0
        for size in _PORTIONS:
            if ends := range(begun + size, len(spelled) + 1, size):
                some = [tuple(chain.from_iterable(spelled[end - size : end])) for end in ends]
                connection.exec_driver_sql(_insertion(table, size), some)
                begun = ends[-1]


@lru_cache(maxsize=64)
def _free_texts(table: Table) -> tuple[int, ...]:
    """Places of the columns whose texts may hold anything."""
    return tuple(
        place
        for place, column in enumerate(table.columns)
        if isinstance(column.type, _AnyText) and column.name not in _PLAIN
    )


@lru_cache(maxsize=256)
def _insertion(table: Table, n_rows: int) -> str:
    from sqlalchemy.dialects import sqlite

    one = str(_unless_there(sqlite.insert(table), table).compile(dialect=sqlite.dialect()))
    marks = f"({', '.join('?' * len(table.columns))})"
    return one.replace(marks, ", ".join([marks] * n_rows))


def _unless_there(insertion: Any, table: Table) -> Any:
    """An insertion that passes over keys that exist; where a key is a hash, other content under it is replaced."""
    if table not in (texts, prompts):
        return insertion.on_conflict_do_nothing()
    content = [column for column in table.columns if not column.primary_key]
    mended = {column.name: insertion.excluded[column.name] for column in content}
    differs = or_(*(column != insertion.excluded[column.name] for column in content))
    return insertion.on_conflict_do_update(index_elements=list(table.primary_key), set_=mended, where=differs)


def _insert_as_one(connection: Connection, table: Table, rows: Sequence[Sequence[Any]]) -> None:
    """Insert rows as one JSON parameter.

    With a statement for each row, the driver releases the interpreter lock for each, and another thread may keep it for
    5 ms: beside a busy event loop, 500 rows took half a second, in which arrived replies were not durable.
    """
    from sqlalchemy.dialects import postgresql

    names = [column.name for column in table.columns]
    values = [dict(zip(names, map(_json_value, row), strict=True)) for row in rows]
    given = func.json_to_recordset(bindparam("rows", values, postgresql.JSON))
    shape = [Column(column.name, column.type) for column in table.columns]
    source = given.table_valued(*shape).render_derived(with_types=True)
    statement = postgresql.insert(table).from_select(names, select(*source.c))
    connection.execute(_unless_there(statement, table))


def _json_value(value: Any) -> Any:
    # JSON has no such numbers; the database reads them as texts.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def chunks(keys: Iterable[_Name]) -> Iterator[list[_Name]]:
    """Distinct keys, sorted, in portions that fit one IN list."""
    ordered = sorted(set(keys))
    for start in range(0, len(ordered), _IN_LIST):
        yield ordered[start : start + _IN_LIST]


def portions(statement: Select[Any], column: Column[_Name], keys: Iterable[_Name] | None) -> Iterator[Select[Any]]:
    """A statement for only the rows with some keys in a column, in portions; itself if `keys` is None."""
    return iter([statement]) if keys is None else (statement.where(column.in_(some)) for some in chunks(keys))


#: Made once: `json.dumps` would make one for every value.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def to_json(value: Any, what: str) -> str:
    """JSON text of a value, its keys in the order given.

    Raises
    ------
    StoreError
        If the value contains anything that JSON cannot represent, including NaN.
    """
    try:
        return _encode(dict(value) if isinstance(value, Mapping) else value)
    except (TypeError, ValueError) as error:
        raise StoreError(f"{what} must hold only JSON values: {error}") from error


def to_nullable(value: float | None) -> float | None:
    """NaN as NULL, to which SQLite converts it and which JSON allows."""
    return None if value is None or math.isnan(value) else float(value)


def to_index(turn: int | None) -> int:
    """Index of a turn for a key; -1 for None."""
    return _NO_TURN if turn is None else turn


def from_index(turn: int) -> int | None:
    """Index of a turn from a key; None for -1."""
    return None if turn == _NO_TURN else turn
