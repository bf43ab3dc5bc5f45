"""Stores in PostgreSQL databases, which several processes on several machines can write."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from opinionsim.errors import StoreError
from opinionsim.store._address import Address
from opinionsim.store._database import Database, as_store_error, create, holds_store, require_store

#: Number of the lock that a process holds while it creates the tables of any store in the database.
_CREATING = 0x6F70696E696F6E
#: A worker that stops in the middle of a transaction is cut off by the server after this long, milliseconds.
_IDLE_IN_TRANSACTION_MS = 30_000
#: Where the address says nothing else: notice in half a minute, not in hours, that a server has vanished.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "client_encoding": "utf8",
    "fallback_application_name": "opinionsim",
}
#: SQLSTATE classes and codes of errors that pass: connection lost or refused, server going down or coming up, too
#: many connections, deadlock, serialisation.
_PASSING = ("08", "57P01", "57P02", "57P03", "57P05", "53300", "40")


def open_for_writing(address: Address) -> Database:
    """Connect to a database; creates the tables if they do not exist."""
    with as_store_error(f"cannot write the store {address}"), ExitStack() as closing:
        reading, writing = _engine(address, read_only=True), _engine(address, read_only=False)
        closing.callback(reading.dispose)
        closing.callback(writing.dispose)
        with writing.begin() as connection:
            connection.execute(select(func.pg_advisory_xact_lock(_CREATING)))
            _require_unicode(connection, address)
            if not holds_store(connection, f"the database {address}"):
                create(connection)
        return _database(address, reading, writing, closing.pop_all())


def open_for_reading(address: Address) -> Database:
    """Connect to a store's database for reading only."""
    with as_store_error(f"cannot read the store {address}"), ExitStack() as closing:
        reading = _engine(address, read_only=True)
        closing.callback(reading.dispose)
        with reading.connect() as connection:
            require_store(connection, f"the database {address}")
        return _database(address, reading, None, closing.pop_all())


def _database(address: Address, reading: Engine, writing: Engine | None, closing: ExitStack) -> Database:
    return Database(address, reading, writing, shared=True, passes=_passes, closing=closing)


def _engine(address: Address, *, read_only: bool) -> Engine:
    url = address.whole.set(drivername="postgresql+psycopg")
    defaults: dict[str, Any] = {name: value for name, value in _CONNECTION.items() if name not in url.query}
    try:
        # Locks on rows need the state before each statement; readers need one state throughout.
        engine = create_engine(
            url,
            isolation_level="REPEATABLE READ" if read_only else "READ COMMITTED",
            connect_args=defaults,
            pool_pre_ping=read_only,
            use_native_hstore=False,
        )
    except ImportError as error:
        raise StoreError(
            f"the store {address} needs the PostgreSQL driver psycopg ({error}); "
            f'install it with: pip install "opinionsim[postgres]"'
        ) from None

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        if read_only:
            connection.read_only = True
        else:
            connection.execute(f"SET idle_in_transaction_session_timeout = {_IDLE_IN_TRANSACTION_MS}")
            # A server that forgets what it has confirmed would leave gaps in the middle of a record.
            connection.execute("SET synchronous_commit = on")
            connection.commit()

    return engine


def _require_unicode(connection: Connection, address: Address) -> None:
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise StoreError(
            f"the database {address} has encoding {encoding}, which cannot store every text; create a database with: "
            "createdb --encoding UTF8 --template template0 NAME"
        )


def _passes(error: SQLAlchemyError) -> bool:
    """Whether an error of an open database will pass; its address and password have been good before."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    import psycopg

    if not isinstance(error.orig, psycopg.OperationalError):
        return False
    # A connection that could not be made has no code: the server was not reached.
    return error.orig.sqlstate is None or error.orig.sqlstate.startswith(_PASSING)
