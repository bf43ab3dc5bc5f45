"""The viewer of a store: how fast it lists, opens, scrubs and searches, and what ten viewers cost a sweep beside them.

(c) A sweep of 180 runs x 100 steps: seconds to the page of the experiment in a browser, and to an answer of a search
over its texts. (d) A run of 20,000 turns: seconds until its figures stand in a browser, bytes sent, and memory of the
server beyond what it held idle. (e) Frames a second while the scrubber of a run of 100 agents and 1,000 steps moves.
(f) Wall time of a sweep with ten viewers over that without, in pairs. Each is run by benchmarks/web.py.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

import opinionsim as osim
from opinionsim.store import open_store
from tests.support.rooms import RoomServer, chromium, room

LISTED_S, SEARCHED_S, OPENED_S, MEMORY_MB, FRAMES, KEPT = 1.0, 1.0, 1.0, 200.0, 30.0, 0.95
_VIEWERS, _PAIRS = 10, 5


def memory_mb(server: RoomServer) -> float:
    """Resident memory of a server."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def dyads(name: str, agents: int, steps: int, **changed: Any) -> dict[str, Any]:
    """A dyadic experiment of scripted agents."""
    return {
        "name": name,
        "seed": 5,
        "population": {"personas": "chuang2024", "size": agents, "initial_opinions": "uniform"},
        "topic": {"name": "flat-earth"},
        "interaction": {"kind": "dyadic", "steps": steps, "network": {"kind": "watts-strogatz", "k": 4, "p": 0.1}},
        "model": {"name": "scripted"},
        **changed,
    }


def stored(folder: Path, document: dict[str, Any]) -> Path:
    """A store of an experiment, which is carried out where it is not there yet."""
    spec, store = folder / f"{document['name']}.yaml", folder / f"{document['name']}.sqlite"
    spec.write_text(yaml.safe_dump(document), encoding="utf-8")
    osim.run(osim.load_experiment(spec), f"sqlite:///{store}")
    return store


@contextmanager
def _page(browser: Any, store: Path) -> Iterator[tuple[RoomServer, Any]]:
    """A viewer of a store, and a page that has come in."""
    with room(store, store.parent, "--port", "0", command="view") as server:
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(server.link)
        page.wait_for_selector("#view a")
        yield server, page
        page.close()


def _seconds(act: Callable[[], Any], times: int = 5) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return found


def _told(times: list[float]) -> str:
    return f"{statistics.median(times):.2f} s (median of {len(times)}), first {times[0]:.2f} s"


def _run_of(store: Path) -> str:
    with open_store(str(store), write=False) as opened:
        return opened.designs()[-1].runs[0].run_id


def listed_and_searched(browser: Any, store: Path) -> None:
    """(c) Seconds to the page of a sweep, and to what a search finds."""
    with open_store(str(store), write=False) as opened:
        experiment = opened.designs()[-1].experiment_id
    with _page(browser, store) as (server, page):

        def opened_anew() -> None:
            page.goto("about:blank")
            page.goto(f"{server.address}/#/experiment/{experiment}")
            page.wait_for_function("() => document.querySelectorAll('#view a[href*=\"#/run/\"]').length >= 180")

        print(f"(c) 180 runs x 100 steps on the screen after {_told(_seconds(opened_anew))} (bar {LISTED_S:g})")
        texts = {}
        for word in ("honestly", "zebra", "ÜBER"):

            def searched(word: str = word) -> None:
                asked = f"{server.address}/data/search?experiment={experiment}&q={word}&t={time.time()}"
                texts[word] = page.request.get(asked).json()["total"]

            times = _seconds(searched, 3)
            print(f"    a search for {word}: {texts[word]:,} found, {_told(times)} (bar {SEARCHED_S:g})")


def opened(browser: Any, store: Path) -> None:
    """(d) Seconds, bytes and memory to open a long run."""
    run_id = _run_of(store)
    with _page(browser, store) as (server, page):
        time.sleep(1)
        idle = memory_mb(server)

        def opened_anew() -> None:
            page.goto("about:blank")
            page.goto(f"{server.address}/#/run/{run_id}")
            page.wait_for_selector("#view canvas")

        times = _seconds(opened_anew, 5)
        record = page.request.get(f"{server.address}/data/runs/{run_id}")
        turns, sent = len(record.json()["turns"]["turn"]), len(record.body()) / 1e6
        print(
            f"(d) a run of {turns:,} turns drawn after {_told(times)} (bar {OPENED_S:g}); {sent:.2f} MB "
            f"sent for it; {memory_mb(server) - idle:.0f} MB over the idle server (bar {MEMORY_MB:g})"
        )


#: Moves the scrubber in every frame for some steps; gives the frames a second.
_SCRUB = """async (steps) => {
  const range = document.querySelector("#view input[type=range]");
  const began = performance.now();
  let longest = 0, last = began;
  for (let at = 0; at < steps; at++) {
    range.value = Math.round(at * Number(range.max) / steps);
    range.dispatchEvent(new Event("input", { bubbles: true }));
    const now = await new Promise(requestAnimationFrame);
    longest = Math.max(longest, now - last);
    last = now;
  }
  return [steps / (performance.now() - began) * 1000, longest];
}"""


def scrubbed(browser: Any, store: Path) -> None:
    """(e) Frames a second while scrubbing."""
    with _page(browser, store) as (server, page):
        page.goto(f"{server.address}/#/run/{_run_of(store)}")
        page.wait_for_selector("#view canvas")
        page.evaluate(_SCRUB, 60)
        found = [page.evaluate(_SCRUB, 300) for _ in range(3)]
    rates = ", ".join(f"{rate:.0f}" for rate, _ in found)
    print(
        f"(e) scrubbing 100 agents x 1,000 steps: {rates} frames/s (bar {FRAMES:g}), the longest frame "
        f"{max(longest for _, longest in found):.0f} ms"
    )


def _view(server: RoomServer, cookie: str, over: threading.Event, place: int) -> None:
    """Look at an experiment, or at one of its runs, as often as an open page does, until it is over."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(path: str) -> bytes:
        connection.request("GET", path, headers={"cookie": cookie})
        return connection.getresponse().read()

    experiment, run_ids, since = "", [], ""
    while not run_ids and not over.wait(0.5):
        listed = json.loads(ask("/data/experiments")).get("experiments", [])
        experiment = listed[0]["id"] if listed else ""
        run_ids = (
            [run["run_id"] for run in json.loads(ask(f"/data/experiments/{experiment}"))["runs"]] if listed else []
        )
    while not over.wait(1.5 if place % 2 else 1.0):
        if place % 2:
            ask(f"/data/experiments/{experiment}")
            ask(f"/data/experiments/{experiment}/colours?metric=bias")
        else:
            told = ask(f"/data/runs/{run_ids[place % len(run_ids)]}?since={since}")[:120].decode()
            since = ".".join(re.findall(r'"(?:generation|seq)":(\d+)', told))


def beside_a_sweep(folder: Path) -> None:
    """(f) A sweep with ten viewers over the same without."""
    document = dyads("beside", 10, 100, replicates=20)
    spec, busy = folder / "beside.yaml", list[float]()
    spec.write_text(yaml.safe_dump(document), encoding="utf-8")

    def swept(name: str, viewers: int) -> float:
        store, over = folder / name, threading.Event()
        sweep = subprocess.Popen([sys.executable, "-m", "opinionsim", "run", str(spec), "--store", str(store)],
                                 cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        began = time.perf_counter()
        if not viewers:
            sweep.wait()
            return time.perf_counter() - began
        while not store.exists():
            time.sleep(0.05)
        time.sleep(0.5)
        with room(store, folder, "--port", "0", command="view") as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("GET", server.link.removeprefix(server.address))
            cookie = str(connection.getresponse().getheader("set-cookie")).partition(";")[0]
            threads = [threading.Thread(target=_view, args=(server, cookie, over, n)) for n in range(viewers)]
            for each in threads:
                each.start()
            sweep.wait()
            took = time.perf_counter() - began
            used = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            busy.append((int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK") / took)
            over.set()
            for each in threads:
                each.join()
        return took

    ratios = []
    for pair in range(_PAIRS):
        alone = swept(f"alone{pair}.sqlite", 0)
        ratios.append(alone / swept(f"beside{pair}.sqlite", _VIEWERS))
    spread = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(
        f"(f) a sweep beside {_VIEWERS} viewers keeps {statistics.median(ratios):.2f} of its speed ({spread}); "
        f"the server used {statistics.median(busy):.2f} of a core"
    )


def measure(folder: Path, tables: Path | None) -> None:
    """Print all of it; `tables` is a store of chuang2024/tables, else one of that size is made."""
    many = tables or stored(folder, dyads("tables", 10, 100, replicates=180))
    long, wide = (
        stored(folder, dyads("long", 10, 10_000, execution={"max_prompt_characters": 10**7})),
        stored(folder, dyads("wide", 100, 1_000)),
    )
    with chromium() as browser:
        listed_and_searched(browser, many)
        opened(browser, long)
        scrubbed(browser, wide)
    beside_a_sweep(folder)
