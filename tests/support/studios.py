"""A studio or a viewer in a process of its own, and a client that is signed in as its owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.rooms import room


@contextmanager
def serving(shown: Path, command: str = "studio") -> Iterator[httpx.Client]:
    """A client of the studio of a folder, or of the viewer of a store, while the block lasts."""
    folder = shown if shown.is_dir() else shown.parent
    with room(shown, folder, "--port", "0", command=command) as server:
        headers = {"origin": server.address}
        with httpx.Client(base_url=server.address, follow_redirects=True, timeout=60, headers=headers) as client:
            assert client.get(server.link).status_code == 200
            yield client
