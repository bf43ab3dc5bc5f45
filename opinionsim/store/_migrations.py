"""What brings a store from one version of its schema to the next: statements that are never edited once released."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import Connection, inspect, select

from opinionsim.errors import StoreError
from opinionsim.store._schema import schema_version

__all__ = ["MIGRATIONS", "migrate", "require_current", "stored_version"]

#: Tables every version has; a database with others but without these is not ours.
_ALWAYS = {
    *("experiments", "runs", "agents", "edges", "texts", "turns", "journal", "instruments", "opinions", "canaries"),
    *("workers", "schema_version"),
}

# Both SQLite and PostgreSQL read these: FLOAT has double precision in both. They say what a version was when it was
# released and must not follow the tables in `_schema`, which say what the last version is; a test compares the two.
_VERSION_1 = """
CREATE TABLE experiments (
    experiment_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    saved_at FLOAT NOT NULL,
    spec TEXT NOT NULL,
    manifest TEXT NOT NULL,
    runs TEXT NOT NULL,
    PRIMARY KEY (experiment_id)
);
CREATE TABLE runs (
    run_id TEXT NOT NULL,
    replicate BIGINT NOT NULL,
    block TEXT NOT NULL,
    evidence TEXT NOT NULL,
    fields TEXT NOT NULL,
    seed BIGINT NOT NULL,
    topic TEXT,
    category TEXT,
    framing TEXT,
    claim TEXT,
    truth FLOAT,
    confirmation_bias TEXT,
    memory TEXT,
    world TEXT,
    model TEXT,
    interaction TEXT,
    network TEXT,
    n_agents BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    status TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    owner TEXT NOT NULL,
    error TEXT NOT NULL,
    held BIGINT NOT NULL,
    PRIMARY KEY (run_id)
);
CREATE TABLE agents (
    run_id TEXT NOT NULL,
    agent BIGINT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    evidence TEXT NOT NULL,
    assigned_opinion FLOAT,
    persona TEXT NOT NULL,
    model TEXT NOT NULL,
    PRIMARY KEY (run_id, agent)
);
CREATE TABLE edges (
    run_id TEXT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    weight FLOAT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (run_id, source, target, since)
);
CREATE TABLE texts (
    text_id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (text_id)
);
CREATE TABLE turns (
    run_id TEXT NOT NULL,
    turn BIGINT NOT NULL,
    step BIGINT NOT NULL,
    agent BIGINT NOT NULL,
    act TEXT NOT NULL,
    kind TEXT NOT NULL,
    reads TEXT NOT NULL,
    text_id TEXT NOT NULL,
    condition TEXT NOT NULL,
    PRIMARY KEY (run_id, turn)
);
CREATE TABLE journal (
    run_id TEXT NOT NULL,
    turn BIGINT NOT NULL,
    part TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    source TEXT NOT NULL,
    step BIGINT NOT NULL,
    agent BIGINT NOT NULL,
    act TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
    prompt TEXT,
    text_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    seed BIGINT,
    dropped BIGINT NOT NULL,
    finish_reason TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT,
    output_tokens BIGINT,
    latency_s FLOAT,
    arrived_at FLOAT,
    condition TEXT NOT NULL,
    reasoning_id TEXT,
    cached_tokens BIGINT,
    reasoning_tokens BIGINT,
    cost FLOAT,
    PRIMARY KEY (run_id, turn, part, attempt)
);
CREATE TABLE instruments (
    instrument_id TEXT NOT NULL,
    variable TEXT NOT NULL,
    classifier TEXT NOT NULL,
    options TEXT NOT NULL,
    points TEXT NOT NULL,
    labels TEXT NOT NULL,
    context BIGINT NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (instrument_id)
);
CREATE TABLE opinions (
    run_id TEXT NOT NULL,
    instrument_id TEXT NOT NULL,
    turn BIGINT NOT NULL,
    about BIGINT NOT NULL,
    value FLOAT,
    off_scale FLOAT,
    probabilities TEXT NOT NULL,
    PRIMARY KEY (run_id, instrument_id, turn, about)
);
CREATE TABLE canaries (
    experiment_id TEXT NOT NULL,
    model TEXT NOT NULL,
    moment TEXT NOT NULL,
    position BIGINT NOT NULL,
    asked_at FLOAT NOT NULL,
    text_id TEXT NOT NULL,
    returned_model TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cost FLOAT,
    PRIMARY KEY (experiment_id, model, moment, position, asked_at)
);
CREATE TABLE workers (
    owner TEXT NOT NULL,
    heartbeat_at FLOAT NOT NULL,
    PRIMARY KEY (owner)
);
CREATE TABLE schema_version (
    version BIGINT NOT NULL,
    applied_at FLOAT NOT NULL,
    PRIMARY KEY (version)
);
"""


def _statements(text: str) -> Callable[[Connection], None]:
    def apply(connection: Connection) -> None:
        for statement in text.split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)

    return apply


#: What brings a store from version n to n + 1, in order; the schema's version is their number.
MIGRATIONS: list[Callable[[Connection], None]] = [_statements(_VERSION_1)]


def stored_version(connection: Connection, where: str) -> int:
    """Schema version of an open database; 0 for an empty one.

    Parameters
    ----------
    connection : Connection
        To the database.
    where : str
        What to call it in errors.

    Raises
    ------
    StoreError
        If the database belongs to another program or to a later version of this one.
    """
    names = set(inspect(connection).get_table_names())
    if not names:
        return 0
    if not names >= _ALWAYS:
        raise StoreError(f"{where} is a database of another program, not an opinionsim store; give another one")
    version = max(connection.scalars(select(schema_version.c.version)), default=0)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"{where} has schema version {version}, this version of opinionsim knows up to {len(MIGRATIONS)}; "
            f"install the version of opinionsim that wrote it, or a later one"
        )
    return version


def require_current(connection: Connection, where: str) -> None:
    """Refuse to read a database that is empty or was written by an earlier version.

    Raises
    ------
    StoreError
        If it is, or as for :func:`stored_version`.
    """
    version = stored_version(connection, where)
    if version == 0:
        raise StoreError(f"{where} is empty, not yet an opinionsim store; run an experiment into it first")
    if version < len(MIGRATIONS):
        raise StoreError(
            f"{where} has the older schema version {version}; open it once for writing to bring it to "
            f"version {len(MIGRATIONS)}"
        )


def migrate(connection: Connection, version: int) -> None:
    """Bring a database from `version` to the current one, inside the caller's transaction."""
    for number, step in enumerate(MIGRATIONS[version:], start=version + 1):
        step(connection)
        connection.execute(schema_version.insert(), {"version": number, "applied_at": time.time()})
