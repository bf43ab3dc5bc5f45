"""Viewer and studio: how fast they show results, open runs, scrub and search, what an open page costs, and a sweep.

(c) Sweeps of 180 and of 1,800 runs x 100 steps under nine conditions: seconds to the first byte of the page of results,
to its outcome figure on the screen, and to all parts of it, for the first time and again with a filter; CPU and memory
of server and children while the page stays open; of the smaller one, seconds to an answer of a search over its texts;
and seconds from a key to what the text of a study means. (d) A run of 20,000 turns: seconds until its figures stand in
a browser, bytes sent, and memory of the server beyond what it held idle. (e) Frames a second while the scrubber of a
run of 100 agents and 1,000 steps moves. (f) Wall time of a sweep with ten viewers over that without, in pairs. Each is
run by benchmarks/web.py.
"""

from __future__ import annotations

import http.client
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
from urllib.parse import urlencode

import yaml

import opinionsim as osim
from opinionsim.store import open_store
from tests.support.rooms import RoomServer, chromium, room

LISTED_S, MORE_S, CHECKED_S, SEARCHED_S, OPENED_S, MEMORY_MB, FRAMES, KEPT = 1.0, 2.0, 1.0, 1.0, 1.0, 200.0, 30.0, 0.95
_VIEWERS, _PAIRS = 10, 5
#: Seconds for which a page is left open, and CPU seconds that it may cost in an hour.
_OPEN_S, _OPEN_CPU_S = 120.0, 1.0


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


def _usage(server: RoomServer) -> tuple[float, float]:
    """CPU seconds and resident memory in MB of a server and of its children."""
    found = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,cputimes=,rss="], capture_output=True, text=True, check=True)  # noqa: S607
    rows = [tuple(map(int, line.split())) for line in found.stdout.splitlines()]
    own = {server.process.pid}
    own |= {pid for pid, parent, _, _ in rows if parent in own}
    ticks = 0.0
    for pid in own:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), sum(rss for pid, _, _, rss in rows if pid in own) / 1024


def results_shown(browser: Any, store: Path, runs: int, bar: float) -> None:
    """(c) The page of results of a sweep."""
    with _page(browser, store) as (server, page):
        address = f"{server.address}/results/{store.name}"
        page.wait_for_load_state()

        def shown(query: str = "") -> tuple[float, float, float]:
            page.goto("about:blank")
            began = time.perf_counter()
            page.request.get(f"{address}{query}")
            first = time.perf_counter() - began
            began = time.perf_counter()
            page.goto(f"{address}{query}", wait_until="commit")
            page.locator(".drawn img").first.wait_for()
            figure = time.perf_counter() - began
            page.wait_for_selector("[data-src]:not(details):not([data-loaded])", state="detached")
            return first, figure, time.perf_counter() - began

        for what, query in (("first", ""), ("again", ""), ("filtered", "?by.cognition.confirmation_bias=strong")):
            first, figure, whole = shown(query)
            print(
                f"(c) {runs:,} runs, {what}: first byte {first:.2f} s, outcome on the screen {figure:.2f} s "
                f"(bar {bar:g}), all parts {whole:.2f} s"
            )
        time.sleep(5)
        before, began = _usage(server), time.perf_counter()
        time.sleep(_OPEN_S)
        after, hours = _usage(server), (time.perf_counter() - began) / 3600
        print(
            f"    left open: {(after[0] - before[0]) / hours:.2f} CPU s an hour (bar {_OPEN_CPU_S:g}), "
            f"{after[1] - before[1]:+.1f} MB of {after[1]:.0f}"
        )


def searched(browser: Any, store: Path) -> None:
    """(c) Seconds to what a search finds."""
    with _page(browser, store) as (server, page):
        for word in ("honestly", "zebra", "ÜBER"):
            asked = {"store": store.name, "experiment": store.stem, "q": word}

            def found(asked: dict[str, str] = asked) -> int:
                told = page.request.get(f"{server.address}/data/search?{urlencode({**asked, 't': time.time()})}")
                return int(told.json()["total"])

            times = _seconds(found, 3)
            print(f"    a search for {word}: {found():,} found, {_told(times)} (bar {SEARCHED_S:g})")


def checked(browser: Any, folder: Path) -> None:
    """(c) Seconds from a key in the text of a study to what it means."""
    with room(folder, folder, "--port", "0", command="studio") as server:
        page = browser.new_page()
        page.goto(server.link)
        page.goto(f"{server.address}/study/tables.yaml")
        page.get_by_text("The text can run as it is.").wait_for()
        text, times = page.locator("#text"), []
        for seed in range(7):
            text.fill(re.sub(r"(?m)^replicates: .*$", f"replicates: {21 + seed}", text.input_value()))
            began = time.perf_counter()
            page.get_by_text(f"Conditions: {9 * (21 + seed)} runs").wait_for()
            times.append(time.perf_counter() - began)
        print(f"    from a key to price and prompts: {_told(times)} (bar {CHECKED_S:g})")
        page.close()


def opened(browser: Any, store: Path) -> None:
    """(d) Seconds, bytes and memory to open a long run."""
    run_id = _run_of(store)
    with _page(browser, store) as (server, page):
        time.sleep(1)
        idle = memory_mb(server)

        def opened_anew() -> None:
            page.goto("about:blank")
            page.goto(f"{server.address}/runs/{store.name}#/run/{run_id}")
            page.wait_for_selector("#view canvas")

        times = _seconds(opened_anew, 5)
        record = page.request.get(f"{server.address}/data/runs/{run_id}?store={store.name}")
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
        page.goto(f"{server.address}/runs/{store.name}#/run/{_run_of(store)}")
        page.wait_for_selector("#view canvas")
        page.evaluate(_SCRUB, 60)
        found = [page.evaluate(_SCRUB, 300) for _ in range(3)]
    rates = ", ".join(f"{rate:.0f}" for rate, _ in found)
    print(
        f"(e) scrubbing 100 agents x 1,000 steps: {rates} frames/s (bar {FRAMES:g}), the longest frame "
        f"{max(longest for _, longest in found):.0f} ms"
    )


def _view(server: RoomServer, store: Path, cookie: str, over: threading.Event, place: int) -> None:
    """Look at an experiment, or at one of its runs, as often as an open page does, until it is over."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(path: str) -> bytes:
        connection.request("GET", path, headers={"cookie": cookie})
        return connection.getresponse().read()

    run_ids, since = list[str](), ""
    while not run_ids and not over.wait(0.5):
        run_ids = re.findall(r"#/run/(\w+)", ask(f"/part/runs/{store.name}").decode())
    while not over.wait(1.5 if place % 2 else 1.0):
        if place % 2:
            ask(f"/progress/{store.name}")
        else:
            told = ask(f"/data/runs/{run_ids[place % len(run_ids)]}?store={store.name}&since={since}")[:120].decode()
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
            threads = [threading.Thread(target=_view, args=(server, store, cookie, over, n)) for n in range(viewers)]
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
    nine = {
        "cognition.confirmation_bias": ["none", "weak", "strong"],
        "cognition.memory": ["none", "cumulative", "reflective"],
    }
    plain = {"measurement": {"classifier": "lexicon", "texts": ["report"]}, "sweep": nine}
    many = tables or stored(folder, dyads("tables", 10, 100, replicates=20, **plain))
    long, wide = (
        stored(folder, dyads("long", 10, 10_000, execution={"max_prompt_characters": 10**7})),
        stored(folder, dyads("wide", 100, 1_000)),
    )
    with chromium() as browser:
        results_shown(browser, many, 180, LISTED_S)
        searched(browser, many)
        checked(browser, folder)
        results_shown(browser, stored(folder, dyads("more", 10, 100, replicates=200, **plain)), 1800, MORE_S)
        opened(browser, long)
        scrubbed(browser, wide)
    beside_a_sweep(folder)
