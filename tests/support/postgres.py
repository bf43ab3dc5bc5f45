"""A private PostgreSQL server for the tests: on a Unix socket in a folder of its own, gone when they are over."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

#: Asks a database past the store: a statement and its parameters, answered with rows.
Ask = Callable[..., list[tuple[Any, ...]]]

_ADVICE = "install PostgreSQL, as with: apt-get install postgresql"
#: Nothing outlives the tests, so nothing need reach the disk.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
}


class Server:
    """A running server.

    Attributes
    ----------
    folder : Path
        Of its socket.
    start, stop : callable
        Start it, and end it at once, as a crash would.
    """

    def __init__(self, folder: Path, start: Callable[[], None], stop: Callable[[], None]) -> None:
        self.folder = folder
        self.start = start
        self.stop = stop

    def url(self, database: str, *, user: str = "postgres", password: str = "") -> str:
        """Address of a database."""
        secret = f":{password}" if password else ""
        return f"postgresql+psycopg://{user}{secret}@/{database}?host={self.folder}"

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection of one's own, in which each statement is a transaction."""
        return psycopg.connect(host=str(self.folder), user="postgres", dbname=database, autocommit=True)

    def database(self, name: str) -> str:
        """Address of the database that stands for a name, made when first asked for."""
        database = "test_" + sha256(name.encode()).hexdigest()[:16]
        with self.connect() as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        return self.url(database)

    def asking(self, url: str) -> Ask:
        """A way to the database of an address past the store."""

        def ask(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
            with self.connect(database_of(url)) as connection:
                found = connection.execute(statement, parameters)
                return found.fetchall() if found.description else []

        return ask


def database_of(url: str) -> str:
    """Name of the database in an address."""
    return url.split("?")[0].rsplit("/", 1)[1]


def cut(ask: Ask) -> None:
    """End every connection of a store to the database."""
    ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def age(ask: Ask, seconds: float) -> None:
    """Let time pass since the last signs of life."""
    ask("UPDATE workers SET heartbeat_at = heartbeat_at - %s", seconds)


def _binaries() -> Path:
    """Folder of the server's programs; Debian keeps them off PATH, a folder a version."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not folders:
        raise RuntimeError(f"the tests need PostgreSQL's initdb and pg_ctl, which are not on this machine: {_ADVICE}")
    return max(folders, key=lambda folder: float(folder.parent.name))


def _account() -> pwd.struct_passwd:
    """Who runs the server: whoever runs the tests, unless that is root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


@contextmanager
def server() -> Iterator[Server]:
    """A server while the block lasts.

    Raises
    ------
    RuntimeError
        If PostgreSQL is not installed or does not start; the message says what to do, or what it said.
    """
    binaries, account = _binaries(), _account()
    # Not below pytest's folders: only the account of the tests may enter those, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="opinionsim-pg-"))
    data = folder / "data"
    as_account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}

    def call(program: str, *arguments: str) -> None:
        # Into a file: a pipe would stay open as long as the server that inherits it.
        with (folder / "output").open("w+", encoding="utf-8") as output:
            done = subprocess.run(
                [str(binaries / program), "-D", str(data), *arguments],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, **as_account,
            )  # fmt: skip
            output.seek(0)
            if done.returncode:
                raise RuntimeError(f"PostgreSQL's {program} failed with status {done.returncode}: {output.read()}")

    try:
        os.chown(folder, account.pw_uid, account.pw_gid)
        call("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale", "C", "--no-sync")
        hba = data / "pg_hba.conf"
        hba.write_text("local all locked scram-sha-256\nlocal all all trust\n", encoding="ascii")
        settings = [f"-c {name}={value or chr(39) * 2}" for name, value in _SETTINGS.items()]
        options = " ".join(["-k", str(folder), *settings])

        def start() -> None:
            call("pg_ctl", "-w", "-s", "-l", str(folder / "log"), "-o", options, "start")

        def stop() -> None:
            call("pg_ctl", "-w", "-s", "-m", "immediate", "stop")

        start()
        try:
            yield Server(folder, start, stop)
        finally:
            stop()
    finally:
        shutil.rmtree(folder)
