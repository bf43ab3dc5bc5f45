"""Stores to look at, the viewer that shows them, and the one file of a run that needs no server."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opinionsim
from tests.support.pages import looking
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
        SMALL, name="events", population__size=5, interaction__steps=16, measurement__texts=["report"],
        events=[{"kind": "message", "step": 8, "text": "A new study."},
                {"kind": "leave", "step": 10, "agents": {"share": 0.4}}],
    ),
    "structure": changed(
        SMALL, name="structure", interaction={"kind": "chain", "cycles": 2},
        measurement={"texts": ["response"], "probe": {"before": 1, "after": 1}},
    ),
    "consensus": {
        "name": "consensus", "seed": 4, "population": {"size": 3}, "topic": {"name": "flat-earth"},
        "interaction": {"kind": "consensus", "candidates": 3, "rounds": 1, "ballots": ["stated"]},
        "roles": {"mediator": {}}, "measurement": {"self_report": {"before": 1, "after": 1}},
    },
    "room": {
        "name": "room", "seed": 3, "task": "Should the library open on Sundays?",
        "cast": [{"name": "Ada", "persona": "a nurse"}, {"name": "Ben", "persona": "a cook"}],
        "roles": {"moderator": {}, "analyzer": {}},
        "interaction": {"kind": "room", "steps": 6, "analyze_every": 2},
    },
    "classic": changed(
        SMALL, name="classic", population__size=16, measurement={"texts": ["report"], "probe": {"before": 1}},
        interaction={"kind": "dyadic", "steps": 40, "network": {"kind": "watts-strogatz", "k": 4, "p": 0.1}},
        model={"classic": "deffuant", "parameters": {"epsilon": 1.5}},
    ),
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
    def page(self, browser: Any, address: str = "#/", **options: Any) -> Iterator[Any]:
        """A page of a new browser at an address."""
        with looking(browser, self.server, storage_state=self.state, **options) as page:
            self.go(page, address)
            yield page

    def go(self, page: Any, address: str) -> None:
        """Go to an address, and wait until it is drawn."""
        page.goto(f"{self.server.address}/{address}")
        drawn(page)

    def asked(self, page: Any, path: str) -> Any:
        """What the server answers to a question."""
        return page.request.get(f"{self.server.address}/data/{path}").json()


def drawn(page: Any) -> None:
    """Wait until the view of the present address is drawn."""
    page.wait_for_function(
        "() => { const view = document.getElementById('view');"
        " return view.dataset.at === location.hash.split('?')[0] && !view.hasAttribute('aria-busy') }"
    )


@contextmanager
def viewing(browser: Any, store: Path) -> Iterator[Viewed]:
    """A store that is shown while the block lasts."""
    with room(store, store.parent, "--port", "0", command="view") as server, looking(browser, server) as page:
        page.goto(server.link)
        yield Viewed(server, store, page.context.storage_state())


def offline(viewed: Viewed, page: Any, run_id: str, path: Path) -> None:
    """Put a run and the page into one file, as an export does."""
    run = viewed.asked(page, f"runs/{run_id}")
    turns: list[Any] = []
    read: dict[str, Any] = {}
    total = 1
    while len(turns) < total:
        told = viewed.asked(page, f"runs/{run_id}/turns?count=200&from={len(turns)}")
        total, turns = told["total"], turns + told["turns"]
        read |= {ref: each for ref, each in told["read"].items() if each["agent"] is None}
    details = {line["turn"]: viewed.asked(page, f"runs/{run_id}/turns/{line['turn']}") for line in turns}
    names = ("bias", "diversity")
    record = {
        "run": run,
        "turns": turns,
        "read": read,
        "agents": {
            each["agent"]: viewed.asked(page, f"runs/{run_id}/agents/{each['agent']}") for each in run["agents"]
        },
        "details": {turn: {key: each[key] for key in ("calls", "currency")} for turn, each in details.items()},
        "metrics": {
            name: {**viewed.asked(page, f"runs/{run_id}/metrics?name={name}"), "names": names} for name in names
        },
        "deliberation": viewed.asked(page, f"runs/{run_id}/deliberation"),
        "exported_at": 1.8e12,
        "left_out": ["Nothing is left out."],
    }
    path.write_text(_shell(json.dumps(record).replace("<", "\\u003c")), encoding="utf-8")


def _shell(record: str) -> str:
    """The page with its styles, modules and record inside."""
    folder = Path(opinionsim.__file__).parent / "web" / "static"
    styles = "\n".join((folder / name).read_text("utf-8") for name in ("room.css", "view.css"))
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>opinionsim</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{styles}</style></head><body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top"><p class="brand"><a href="/">opinionsim</a></p><h1>opinionsim</h1></header>
<main id="main"><p id="said" class="small" role="status"></p><div id="view"></div></main>
<script type="application/json" id="record">{record}</script>
<script type="module">{_module(folder, "view.js", {})}</script></body></html>"""


def _module(folder: Path, name: str, known: dict[str, str]) -> str:
    """The text of a module, what it imports replaced by addresses that hold the text."""

    def address(found: re.Match[str]) -> str:
        other = found[2]
        if other not in known:
            text = _module(folder, other, known)
            known[other] = "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()
        return f'{found[1]}"{known[other]}"'

    text = (folder / name).read_text("utf-8")
    return re.sub(r'^(import .* from )"\./(\w+\.js)"', address, text, flags=re.MULTILINE)
