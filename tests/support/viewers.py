"""Stores to look at, the viewer that shows them, and the one file of a run that needs no server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from opinionsim.llm import ScriptedChatModel
from opinionsim.store import open_store
from opinionsim.web import export
from tests.support.pages import HOSTILE, looking
from tests.support.rooms import RoomServer, room
from tests.support.running import SMALL, changed

#: One small experiment of every kind; each has its name in the store.
KINDS: dict[str, dict[str, Any]] = {
    "dyads": changed(
        SMALL, name="dyads", replicates=2, population__size=6, interaction__steps=30,
        measurement={"classifier": "lexicon", "texts": ["report", "post"]},
        sweep={"topic.framing": ["falsehood", "truth"], "cognition.memory": ["cumulative", "reflective"]},
    ),
    "events": changed(
        SMALL, name="events", population__size=5, measurement__texts=["report"],
        interaction={"kind": "dyadic", "steps": 16, "network": {"kind": "watts-strogatz", "k": 2, "p": 0}},
        events=[{"kind": "message", "step": 8, "text": "A new study."},
                {"kind": "ties", "step": 5, "add": [[0, 2]], "remove": [[0, 1]]},
                {"kind": "leave", "step": 10, "agents": {"share": 0.4}}],
    ),
    "classic": changed(
        SMALL, name="classic", population__size=16, measurement={"texts": ["report"], "probe": {"before": 1}},
        interaction={"kind": "dyadic", "steps": 40, "network": {"kind": "watts-strogatz", "k": 4, "p": 0.1}},
        model={"classic": "deffuant", "parameters": {"epsilon": 1.5}},
    ),
}  # fmt: skip


def kinds(often: str) -> list[Any]:
    """The kinds by name: one that is tested often, and the others with tests of all kinds."""
    return [name if name == often else pytest.param(name, marks=pytest.mark.whole) for name in KINDS]


#: Two agents that are called, and told, what would do something on a page that took it for anything but text.
HOSTILE_SPEC: dict[str, Any] = {
    "name": "hostile", "seed": 1, "task": HOSTILE[0],
    "cast": [{"name": HOSTILE[1], "persona": HOSTILE[0]}, {"name": HOSTILE[6], "persona": HOSTILE[2]}],
    "interaction": {"kind": "chain", "cycles": 2},
}  # fmt: skip


@dataclass(frozen=True)
class Viewed:
    """A viewer, and what lets a browser in.

    Attributes
    ----------
    server : RoomServer
        The command `opinionsim view` in a process of its own.
    store : Path
        What it shows.
    state : dict
        Cookies of a browser that has come in.
    """

    server: RoomServer
    store: Path
    state: dict[str, Any]

    @contextmanager
    def page(self, browser: Any, address: str = "/", **options: Any) -> Iterator[Any]:
        """A page of a new browser at an address."""
        with looking(browser, self.server, storage_state=self.state, **options) as page:
            self.go(page, address)
            yield page

    def address(self, address: str) -> str:
        """The whole of an address; one that begins with ``#`` is of the page that draws runs of the store."""
        place = f"/runs/{quote(self.store.name)}" if address.startswith("#") else ""
        return f"{self.server.address}{place}{address}"

    def go(self, page: Any, address: str) -> None:
        """Go to an address, and wait until what it shows is there."""
        page.goto(self.address(address))
        drawn(page) if address.startswith("#") else settled(page)

    def results(self, name: str, **asked: str) -> str:
        """The address of the page of results of an experiment."""
        return f"/results/{quote(self.store.name)}?{urlencode({'experiment': name, **asked})}"

    def asked(self, page: Any, path: str) -> Any:
        """What the server answers to a question of the page of runs."""
        return page.request.get(f"{self.server.address}/data/{path}?store={quote(self.store.name)}").json()


def drawn(page: Any) -> None:
    """Wait until the view of the present address is drawn."""
    page.wait_for_function(
        "() => { const view = document.getElementById('view');"
        " return view.dataset.at === location.hash.split('?')[0] && !view.hasAttribute('aria-busy') }"
    )


def settled(page: Any) -> None:
    """Wait until all parts of a page that load by themselves are there."""
    page.wait_for_function(
        "() => !document.querySelector('[aria-busy=true]') && [...document.querySelectorAll('[data-src], [data-live]')]"
        ".every((part) => 'loaded' in part.dataset || part.closest('details:not([open])'))"
    )


@contextmanager
def viewing(browser: Any, store: Path) -> Iterator[Viewed]:
    """A store that is shown while the block lasts."""
    with room(store, store.parent, "--port", "0", command="view") as server, looking(browser, server) as page:
        page.goto(server.link)
        yield Viewed(server, store, page.context.storage_state())


@contextmanager
def offline(browser: Any, store: Path, run_id: str, path: Path) -> Iterator[Any]:
    """A page of the one file of a run, opened from the disk by a browser without a network."""
    with open_store(str(store), write=False) as opened:
        export(opened, run_id, path)
    context = browser.new_context(offline=True)
    page = context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.on("dialog", lambda dialog: failed.append(dialog.message))
    page.set_default_timeout(20_000)
    try:
        page.goto(path.as_uri())
        drawn(page)
        yield page
        assert not failed
    finally:
        context.close()


class HostileModel(ScriptedChatModel):
    """Says what would do something on a page that took it for anything but text."""

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        found = await super()._agenerate(*arguments, **options)
        found.generations[0].message.content = "\n".join(HOSTILE) + "</script>" + "w" * 100_000
        return found


class CutOffModel(ScriptedChatModel):
    """Every third text ends at the limit of its length."""

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        found = await super()._agenerate(*arguments, **options)
        if options["seed"] % 3 == 0:
            found.generations[0].message.response_metadata["finish_reason"] = "length"
        return found
