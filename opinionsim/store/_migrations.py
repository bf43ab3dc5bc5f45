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
    *("designs", "ledger", "ties", "prompts", "workers", "schema_version"),
}

# Both SQLite and PostgreSQL read these: FLOAT has double precision in both, and only SQLite is told what it calls
# WITHOUT ROWID. They say what a version was when it was
# released and must not follow the tables in `_schema`, which say what the last version is; a test compares the two.
_VERSION_1 = """
CREATE TABLE experiments (
    experiment_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at FLOAT NOT NULL,
    designs BIGINT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (experiment_id)
);
CREATE TABLE designs (
    experiment_id TEXT NOT NULL,
    design BIGINT NOT NULL,
    design_id TEXT NOT NULL,
    saved_at FLOAT NOT NULL,
    spec TEXT NOT NULL,
    manifest TEXT NOT NULL,
    runs TEXT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (experiment_id, design)
) WITHOUT ROWID;
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
    expected BIGINT,
    inputs TEXT NOT NULL,
    wording TEXT,
    begun_at FLOAT,
    status TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    owner TEXT NOT NULL,
    error TEXT NOT NULL,
    held BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    recorded BIGINT NOT NULL,
    crc BIGINT NOT NULL,
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
    crc BIGINT NOT NULL,
    PRIMARY KEY (run_id, agent)
) WITHOUT ROWID;
CREATE TABLE edges (
    run_id TEXT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    weight FLOAT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (run_id, source, target)
) WITHOUT ROWID;
CREATE TABLE ties (
    run_id TEXT NOT NULL,
    change BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    step BIGINT NOT NULL,
    old_source BIGINT NOT NULL,
    old_target BIGINT NOT NULL,
    source BIGINT NOT NULL,
    target BIGINT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (run_id, change)
) WITHOUT ROWID;
CREATE TABLE texts (
    text_id TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (text_id)
);
CREATE TABLE prompts (
    prompt_id TEXT NOT NULL,
    before TEXT NOT NULL,
    role TEXT NOT NULL,
    text_id TEXT NOT NULL,
    PRIMARY KEY (prompt_id)
) WITHOUT ROWID;
CREATE TABLE turns (
    run_id TEXT NOT NULL,
    turn BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    step BIGINT NOT NULL,
    agent BIGINT NOT NULL,
    act TEXT NOT NULL,
    kind TEXT NOT NULL,
    reads TEXT NOT NULL,
    text_id TEXT NOT NULL,
    condition TEXT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (run_id, turn)
) WITHOUT ROWID;
CREATE TABLE journal (
    run_id TEXT NOT NULL,
    turn BIGINT NOT NULL,
    part TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    experiment_id TEXT NOT NULL,
    source TEXT NOT NULL,
    step BIGINT NOT NULL,
    agent BIGINT NOT NULL,
    act TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
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
    crc BIGINT NOT NULL,
    PRIMARY KEY (run_id, turn, part, attempt)
) WITHOUT ROWID;
CREATE TABLE ledger (
    experiment_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    uncounted BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    forgotten_at FLOAT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (experiment_id, run_id, generation)
) WITHOUT ROWID;
CREATE TABLE instruments (
    instrument_id TEXT NOT NULL,
    variable TEXT NOT NULL,
    classifier TEXT NOT NULL,
    options TEXT NOT NULL,
    points TEXT NOT NULL,
    labels TEXT NOT NULL,
    context BIGINT NOT NULL,
    about TEXT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (instrument_id)
);
CREATE TABLE opinions (
    run_id TEXT NOT NULL,
    instrument_id TEXT NOT NULL,
    turn BIGINT NOT NULL,
    about BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    value FLOAT,
    off_scale FLOAT,
    probabilities TEXT NOT NULL,
    crc BIGINT NOT NULL,
    PRIMARY KEY (run_id, instrument_id, turn, about)
) WITHOUT ROWID;
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
    crc BIGINT NOT NULL,
    PRIMARY KEY (experiment_id, model, moment, position, asked_at)
) WITHOUT ROWID;
CREATE TABLE workers (
    owner TEXT NOT NULL,
    heartbeat_at FLOAT NOT NULL,
    doing TEXT NOT NULL,
    PRIMARY KEY (owner)
) WITHOUT ROWID;
CREATE TABLE schema_version (
    version BIGINT NOT NULL,
    applied_at FLOAT NOT NULL,
    PRIMARY KEY (version)
);
"""


def _statements(text: str) -> Callable[[Connection], None]:
    def apply(connection: Connection) -> None:
        for statement in text.split(";"):
            own = statement if connection.dialect.name == "sqlite" else statement.replace(" WITHOUT ROWID", "")
            if own.strip():
                connection.exec_driver_sql(own)

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
