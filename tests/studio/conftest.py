"""A studio of a folder, in a process of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.rooms import Answer, Browser, RoomServer
from tests.support.running import SMALL, changed


class Studio(Browser):
    """The owner of a studio, in a browser without scripts.

    Attributes
    ----------
    server : RoomServer
        The command `opinionsim studio` in a process of its own.
    folder : Path
        Its folder.
    """

    def __init__(self, server: RoomServer, folder: Path) -> None:
        super().__init__(server)
        self.server, self.folder = server, folder
        assert self.ask(server.link.removeprefix(server.address)).status == 303

    def version(self, study: str, file: str = "") -> str:
        """The version of a text on the page of a study."""
        return re.findall(r'name="version" value="(\w+)"', self.ask(f"/study/{study}?file={file}").text)[0]

    def save(self, study: str, text: str, **given: str) -> Answer:
        """Save a text of a study, as its page does."""
        told = {"version": self.version(study, given.get("file", "")), **given}
        return self.ask(f"/save/{study}", {"text": text, **told})

    def check(self, study: str, text: str, **given: str) -> Any:
        """The answer that the page of a study gets about a text."""
        import json

        return json.loads(self.ask(f"/check/{study}", {"text": text, **given}).text)

    def until(self, text: str, part: str) -> str:
        """A part of a page, once it holds a text."""
        until = time.monotonic() + 60
        while text not in (page := self.ask(part).text):
            assert time.monotonic() < until, page
        return page


def write(folder: Path, name: str = "small", **changes: Any) -> Path:
    """A small study in a folder of its own."""
    place = folder / name
    place.mkdir(exist_ok=True)
    path = place / "study.yaml"
    path.write_text(yaml.safe_dump(changed(SMALL, name=name, **changes), sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Studio]]:
    """Opens the studio of a folder; what it keeps of its own goes into another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "studies"
    folder.mkdir()
    servers = []

    def opening() -> Studio:
        server = RoomServer(folder, folder, "--port", "0", command="studio")
        servers.append(server)
        return Studio(server, folder)

    yield opening
    for server in servers:
        server.kill()


@pytest.fixture
def studio(opened: Callable[[], Studio]) -> Studio:
    """The studio of an empty folder."""
    return opened()
