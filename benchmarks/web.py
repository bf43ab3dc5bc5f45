"""The pages of a room: how soon a message is on the screen of ten viewers, and how fast a long dialogue opens.

(a) Ten viewers follow a session whose speakers answer at once; for each message, the seconds from the arrival of its
reply on record to its arrival at the last viewer. (b) A session of 2,000 turns on record: seconds to its whole page,
and memory of the server beyond what it held idle. The server is the command `opinionsim room` in a process of its own.
(c) to (f): see benchmarks/viewer.py. (g) Two hundred people, each at the seat of a session of its own: seconds to the
owner's page of all of them, CPU of the server while all follow their pages and nothing happens, and seconds from an
answer to the reply that it is on record where all answer at once. CPU time stands beside, for machines that are shared.
Run: python benchmarks/web.py [--turns N] [--people N] [--only room|viewer|load] [--tables STORE]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import http.client
import json
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import yaml

import opinionsim as osim
from benchmarks import viewer
from opinionsim.llm import Question
from opinionsim.store import SeatRow, open_store
from tests.support.rooms import RoomServer, room

SHOWN_S, OPENED_S, MEMORY_MB = 1.0, 1.0, 200.0
OWNER_S, IDLE_CORES, ANSWERED_S = 0.5, 0.2, 1.0
_VIEWERS, _IDLE_S, _ROUNDS = 10, 20.0, 5


class Double:
    """A person that always says the same, and agrees to nothing that would end the room."""

    evidence = "scripted"

    async def answer(self, question: Question) -> str:
        """Its answer."""
        form = question.form
        if form.kind == "text":
            return "I would like to know more about that."
        return "" if form.kind == "signal" else "yes" if question.act == "consent" else "no"


def specification(folder: Path, steps: int) -> Path:
    """A room of two models and a seat."""
    path = folder / "bench.yaml"
    document = {
        "name": "bench",
        "task": "Should the library open on Sundays?",
        "cast": [{"name": "Ada"}, {"name": "Ben"}, {"name": "Guest", "seat": {}}],
        "roles": {"moderator": {}},
        "interaction": {"kind": "room", "steps": steps, "analyze_every": 0},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def ask(server: RoomServer, path: str, cookie: str, form: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Status, text and new cookie of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"cookie": cookie, "origin": server.address, "content-type": "application/x-www-form-urlencoded"}
    connection.request("POST" if form else "GET", path, urlencode(form) if form else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, (answer.getheader("set-cookie") or cookie).partition(";")[0]


def _follow(server: RoomServer, run: str, cookie: str, seen: dict[int, list[float]], lock: threading.Lock) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", f"{run}/live?since=0.0", headers={"cookie": cookie})
    answer = connection.getresponse()
    try:
        while line := answer.readline().decode():
            if line.startswith("data: {"):
                with lock:
                    seen.setdefault(json.loads(line[6:])["turn"], []).append(time.time())
    except (OSError, http.client.HTTPException):
        return


def on_screen(folder: Path) -> None:
    """(a) Seconds from a reply on record to the screen of the last of ten viewers."""
    with room(specification(folder, 60), folder) as server:
        _, _, cookie = ask(server, server.link.removeprefix(server.address), "")
        found = re.search(r"/sessions/\w+", ask(server, "/", cookie)[1])
        assert found is not None
        run, seen, lock = found[0], dict[int, list[float]](), threading.Lock()
        ask(server, f"{run}/sit", cookie, {"seat": "2"})
        for _ in range(_VIEWERS):
            threading.Thread(target=_follow, args=(server, run, cookie, seen, lock), daemon=True).start()
        until = time.monotonic() + 40
        while time.monotonic() < until:
            page = ask(server, f"{run}/seat", cookie)[1]
            held = dict(re.findall(r'name="(turn|call|attempt)" value="([^"]*)"', page))
            if "This session is over" in page:
                break
            if held:
                ask(server, f"{run}/answer", cookie, {**held, "text": "no" if 'type="radio"' in page else "Go on."})
        time.sleep(1)
        with open_store(next((folder / "results").glob("*.sqlite")).as_posix(), write=False) as store:
            arrived = {entry.key.turn: entry.arrived_at for entry in store.entries(run.rpartition("/")[2])}
    whole = {turn: max(times) for turn, times in seen.items() if len(times) == _VIEWERS and turn in arrived}
    late = [at - (arrived[turn] or 0.0) for turn, at in whole.items()]
    print(
        f"(a) {len(late)} messages, {_VIEWERS} viewers: on the last screen after {statistics.median(late):.2f} s "
        f"(median), {max(late):.2f} s (most; bar {SHOWN_S:g})"
    )


def long_dialogue(folder: Path, turns: int) -> None:
    """(b) Seconds and memory for the whole page of a long dialogue."""
    path = specification(folder, turns // 2)
    url = f"sqlite:///{folder / 'long.sqlite'}"
    osim.run(osim.load_experiment(path), url, people=Double())
    with room(path, folder, "--store", str(folder / "long.sqlite")) as server:
        _, home, cookie = ask(server, server.link.removeprefix(server.address), "")
        home = ask(server, "/", cookie)[1]
        run = re.search(r"/sessions/\w+", home)[0]  # type: ignore[index]
        time.sleep(1)
        idle, times = viewer.memory_mb(server), []
        for _ in range(7):
            began = time.perf_counter()
            page = ask(server, run, cookie)[1]
            times.append(time.perf_counter() - began)
        shown = page.count('<li class="line')
        print(
            f"(b) {shown:,} messages on one page: {statistics.median(times):.2f} s (median of 7), first {times[0]:.2f} "
            f"s (bar {OPENED_S:g}); {viewer.memory_mb(server) - idle:.0f} MB over the idle server (bar {MEMORY_MB:g})"
        )


def cpu_s(server: RoomServer) -> float:
    """CPU time that a server has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Person:
    """A person at a seat, its requests and the page that it follows."""

    def __init__(self, server: RoomServer, run_id: str, cookie: str) -> None:
        self._port, self._run = server.port, f"/sessions/{run_id}"
        self._headers = f"host: 127.0.0.1:{server.port}\r\ncookie: {cookie}\r\norigin: {server.address}\r\n"

    async def _send(
        self, method: str, path: str, body: bytes = b""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        kind = "content-type: application/x-www-form-urlencoded\r\naccept: application/json\r\nconnection: close\r\n"
        head = f"{method} {self._run}{path} HTTP/1.1\r\n{self._headers}{kind}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        return reader, writer

    async def follow(self) -> None:
        """Follow the page until cancelled."""
        reader, _ = await self._send("GET", "/live?since=0.0")
        while await reader.readline():
            continue

    async def question(self) -> bytes:
        """The answer to the question that is open, once there is one, as its form is sent."""
        while True:
            reader, writer = await self._send("GET", "/seat")
            page = (await reader.read()).decode()
            writer.close()
            if held := dict(re.findall(r'name="(turn|call|attempt)" value="([^"]*)"', page)):
                return urlencode({**held, "text": "no" if 'type="radio"' in page else "Go on, please."}).encode()
            await asyncio.sleep(0.5)

    async def answer(self, form: bytes) -> float:
        """Seconds until an answer is said to be on record."""
        began = time.perf_counter()
        reader, writer = await self._send("POST", "/answer", form)
        assert b" 200 " in await reader.readline()
        writer.close()
        return time.perf_counter() - began


async def _crowd(server: RoomServer, people: list[Person]) -> None:
    forms = await asyncio.gather(*(each.question() for each in people))
    pages = [asyncio.create_task(each.follow()) for each in people]
    await asyncio.sleep(5)
    began, used = time.perf_counter(), cpu_s(server)
    await asyncio.sleep(_IDLE_S)
    idle = (cpu_s(server) - used) / (time.perf_counter() - began)
    print(f"    {len(people)} open pages: {idle:.3f} of a core while idle (bar {IDLE_CORES:g})")
    for _ in range(_ROUNDS):
        used = cpu_s(server)
        took = await asyncio.gather(*(each.answer(form) for each, form in zip(people, forms, strict=True)))
        print(
            f"    {len(people)} answers at once: {statistics.median(took):.2f} s (median; bar {ANSWERED_S:g}), "
            f"{max(took):.2f} s (most); {1000 * (cpu_s(server) - used) / len(people):.1f} ms of CPU each"
        )
        forms = await asyncio.gather(*(each.question() for each in people))
    for page in pages:
        page.cancel()


def load(folder: Path, people: int) -> None:
    """(g) Many people at once."""
    path, store = folder / "load.yaml", folder / "load.sqlite"
    document = {
        "name": "load",
        "replicates": people,
        "task": "Should the library open on Sundays?",
        "cast": [{"name": "Ada"}, {"name": "Guest", "seat": {}}],
        "roles": {"moderator": {}},
        "interaction": {"kind": "room", "steps": 40, "every": 2, "analyze_every": 0, "consent": False},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    runs = [run.run_id for run in osim.load_experiment(path).runs]
    with open_store(str(store)) as opened:
        for run_id in runs:
            # What a cookie is known by is its hash.
            token = hashlib.sha256(run_id.encode()).hexdigest()
            seat = SeatRow(run_id, 1, token, 1.0, consented_at=1.0)
            opened.change_seat(run_id, 1, lambda _, seat=seat: seat)
    with room(path, folder, "--store", str(store)) as server:
        _, _, cookie = ask(server, server.link.removeprefix(server.address), "")
        crowd = [Person(server, run_id, f"opinionsim-{server.port}={run_id}") for run_id in runs]
        times, used = [], cpu_s(server)
        for _ in range(7):
            began = time.perf_counter()
            ask(server, "/", cookie)
            times.append(time.perf_counter() - began)
        print(
            f"(g) the owner's page of {people} sessions: {statistics.median(times):.2f} s (median of 7; bar "
            f"{OWNER_S:g} of 100), {(cpu_s(server) - used) / 7:.2f} s of CPU"
        )
        asyncio.run(_crowd(server, crowd))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2600)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--only", choices=("room", "viewer", "load"))
    parser.add_argument("--tables", type=Path, help="a store of chuang2024/tables")
    given = parser.parse_args()
    room_, viewer_, load_ = (given.only in (None, name) for name in ("room", "viewer", "load"))
    for measure in (
        *((on_screen, lambda folder: long_dialogue(folder, given.turns)) if room_ else ()),
        *((lambda folder: viewer.measure(folder, given.tables),) if viewer_ else ()),
        *((lambda folder: load(folder, given.people),) if load_ else ()),
    ):
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder))


if __name__ == "__main__":
    main()
