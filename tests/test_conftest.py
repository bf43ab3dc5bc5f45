"""The guard of the test suite itself: a test can reach this machine and nothing else."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

# An address reserved for documentation: no host has it.
OUTSIDE = ("192.0.2.1", 80)


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_connection_beyond_loopback_is_refused(method: str) -> None:
    with socket.socket() as outgoing, pytest.raises(RuntimeError, match="this machine only"):
        getattr(outgoing, method)(OUTSIDE)


def test_name_lookup_is_refused() -> None:
    with pytest.raises(RuntimeError, match="this machine only"):
        socket.create_connection(("example.org", 80))


def test_async_connection_beyond_loopback_is_refused() -> None:
    with pytest.raises(RuntimeError, match="this machine only"):
        asyncio.run(asyncio.open_connection(*OUTSIDE))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_works(host: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1])) as client,
    ):
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"heard")
            assert accepted.recv(5) == b"heard"


def test_unix_socket_works(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("here")
        server.listen()
        client.connect("here")
    assert (tmp_path / "here").exists()


def test_each_test_has_an_empty_folder(tmp_path: Path) -> None:
    assert Path.cwd() == tmp_path.resolve()
    assert os.listdir() == []
