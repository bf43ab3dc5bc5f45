"""A room served in a process of its own, and a browser to look at it."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

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
_CACHE = tempfile.TemporaryDirectory(prefix="opinionsim-tests-", ignore_cleanup_errors=True)
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
    folder : Path
        Where it runs.
    """

    def __init__(self, spec: str | Path, folder: Path, *options: str, command: str = "room") -> None:
        self.folder = folder
        # What the server keeps for the user it keeps elsewhere.
        os.environ.setdefault("XDG_CACHE_HOME", _CACHE.name)
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


class Browser:
    """A browser without scripts: it keeps its cookie, and sends forms as the server's own pages do.

    Attributes
    ----------
    cookie : str
        Its cookie.
    run : str
        Path of the session that it came in to; empty for the owner.
    """

    def __init__(self, server: RoomServer, cookie: str = "") -> None:
        self._server = server
        self.cookie = cookie
        self.run = ""

    def ask(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> Answer:
        """A page, or the answer to a form."""
        given = {"cookie": self.cookie, "origin": self._server.address, **headers}
        if form is None:
            answer = self._server.ask(path, **given)
        else:
            kind = "application/x-www-form-urlencoded"
            answer = self._server.ask(path, method="POST", body=urlencode(form), content_type=kind, **given)
        self.cookie = answer.headers.get("set-cookie", self.cookie).partition(";")[0]
        return answer

    def come_in(self, link: str) -> Answer:
        """Open a link, and come in by its button where it has one."""
        path = link.removeprefix(self._server.address)
        answer = self.ask(path)
        answer = self.ask(path, {}) if answer.status == 200 else answer
        self.run = answer.headers.get("location", "").removeprefix(self._server.address).rstrip("/")
        return answer

    def sessions(self) -> list[str]:
        """Paths of the sessions that it has to do with."""
        return list(dict.fromkeys(re.findall(r"/sessions/\w+", self.ask("/").text)))

    def invite(self, run: str, seat: int) -> str:
        """Make a link to a seat, as the owner."""
        self.ask(f"{run}/invite", {"seat": seat})
        page = self.ask("/").text.partition(f'{run}/invite"><input type="hidden" name="seat" value="{seat}"')[2]
        found = re.search(r"http://[\w.:]+/enter/[\w-]+", page)
        assert found is not None, page
        return found[0]

    def report(self, text: str) -> tuple[str, str]:
        """Number of the report of harm with a text that waits for the owner, and its seat."""
        page = self.ask("/").text.partition(text)[2]
        seat, number = re.findall(r'name="(?:seat|report)" value="(\d+)"', page)[:2]
        return number, seat

    def consent(self) -> str:
        """Consent to taking part; returns the private code."""
        page = self.ask(f"{self.run}/consent").text
        text = dict(re.findall(r'name="(text)" value="([^"]*)"', page))
        told = self.ask(f"{self.run}/consent", {**text, "age": "yes", "agree": "yes"}).text
        found = re.search(r'class="code"[^>]*>([^<]+)<', told)
        assert found is not None, told
        return found[1]

    def until(self, text: str, part: str = "/seat") -> str:
        """The part of the page where it answers, or another one, once that holds a text."""
        until = time.monotonic() + 30
        while text not in (page := self.ask(f"{self.run}{part}").text):
            assert time.monotonic() < until, page
        return page

    def question(self) -> dict[str, str]:
        """The key of the question that is open, once there is one."""
        return dict(re.findall(r'name="(turn|call|attempt)" value="([^"]*)"', self.until('id="answer"')))

    def answer(self, question: dict[str, str], text: str) -> Answer:
        """Answer a question; the server says in JSON what became of it."""
        return self.ask(f"{self.run}/answer", {**question, "text": text}, accept="application/json")

    @contextmanager
    def following(self) -> Iterator[Iterator[str]]:
        """The lines of what its page is told, as they come."""
        with closing(http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)) as connection:
            connection.request("GET", f"{self.run}/live?since=0.0", headers={"cookie": self.cookie})
            answer = connection.getresponse()
            yield iter(lambda: answer.readline().decode(), "")

    def want(self, what: str, text: str = "") -> Answer:
        """Want something out of turn."""
        return self.ask(f"{self.run}/signal", {"want": what, "text": text}, accept="application/json")
