"""A room served in a process of its own, and a browser to look at it."""

from __future__ import annotations

import http.client
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.processes import Command

#: Where Debian's package puts the browser.
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
#: Of the browser's own connections, none leaves the machine.
_QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_LINK = re.compile(r"https?://\S+/enter/\S+")


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's browser, without a window.

    Raises
    ------
    RuntimeError
        If it is not installed.
    """
    from playwright.sync_api import sync_playwright

    if not Path(CHROMIUM).exists():
        raise RuntimeError("the tests of pages need Chromium: install it, as with: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_QUIET)
        try:
            yield browser
        finally:
            browser.close()


class Answer(NamedTuple):
    """Status, headers and text of an answer."""

    status: int
    headers: dict[str, str]
    text: str


class RoomServer:
    """The command `opinionsim room`, or another one that serves pages, in a process of its own.

    Attributes
    ----------
    link : str
        The link that signs the owner in.
    address : str
        Scheme, host and port.
    """

    def __init__(self, spec: str | Path, folder: Path, *options: str, command: str = "room") -> None:
        self.process = Command(command, spec, "--no-browser", *options, folder=folder)
        self.said: list[str] = []
        self._linked = threading.Event()
        self.link = ""
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        if not self._linked.wait(60) or not self.link:
            said = "".join([*self.said, *self.process.stderr])
            self.kill()
            raise RuntimeError(f"the room did not open: {said}")
        self.address = self.link.partition("/enter/")[0]
        self.port = int(self.address.rpartition(":")[2])

    def _listen(self) -> None:
        for line in self.process.stdout:
            self.said.append(line)
            if found := _LINK.search(line):
                self.link = found[0]
                self._linked.set()
        self._linked.set()

    def ask(self, path: str, *, method: str = "GET", body: bytes | str = b"", **headers: str) -> Answer:
        """A request, literally as given."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body or None, named)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode("utf-8", "replace"))

    def kill(self) -> None:
        """End the process at once, if it has not ended."""
        self.process.end()
        self._ended()

    def stop(self) -> int:
        """End the process as Ctrl-C does; returns its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait()
        self._reader.join(10)
        self.process.kill()
        return code


@contextmanager
def room(spec: str | Path, folder: Path, *options: str, command: str = "room") -> Iterator[RoomServer]:
    """A room, or other pages, while the block lasts."""
    server = RoomServer(spec, folder, *options, command=command)
    try:
        yield server
    finally:
        server.kill()
