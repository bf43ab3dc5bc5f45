"""Studies that buy their replies in batches, whose process dies at a named point, and what the server of them counts.

Run as a program, this module carries studies out in processes that it forks, which saves the imports of each: a line of
standard input is an order, and what comes of it is written line by line. The server of batches is in the test, and
lives on.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from inspect import iscoroutinefunction
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple

import pytest

from opinionsim.lanes import Pace
from opinionsim.llm import Entry, load_chat_model
from opinionsim.registry import find
from opinionsim.running import Invocation, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import BatchRow, Results, RunRecord, Store
from tests.support.batch_faults import Faults
from tests.support.batch_runs import PROVIDERS, WITH_FILES, batches, key, paid, played, rows, study
from tests.support.batches import BatchProvider
from tests.support.running import assert_same, loaded

#: Points of the way of a batch, each before and after. Dialects without an input file do not pass those of files.
OF_FILES = ("upload", "file record", "revocation", "revocation record")
POINTS = (
    *("intent", "upload", "file record", "submission", "its record", "end", "fetch", "journal", "close"),
    *("revocation", "revocation record", "release"),
)
#: Where the reply to a submission is lost.
LOST = "submission, its reply lost"
#: Points that are passed only if submissions or their replies are lost, and what sees to that.
_LOST: dict[str, dict[str, Any]] = {
    "revocation": {"drop_before_create": True},
    "revocation record": {"drop_before_create": True},
    "release": {"drop_before_create": True},
    LOST: {"drop_after_create": True},
}
#: Times of the package in these studies.
PACE = Pace(settle_s=0.04, longest_s=5.0, look_s=0.02, slowest_look_s=0.04, crowded_s=0.1, lost_s=0.2, begins_s=0.8)
#: Time that passes at the server when a study is over, so that everything has come that will come.
_END_S = 1000.0
#: No process takes longer.
_LONGEST_S = 60.0
#: Every how manieth entry of the journal counts as passing it.
_ENTRIES = 10


def places(dialect: str) -> list[str]:
    """The points of a dialect, each before and after, and a submission whose reply is lost."""
    points = [each for each in POINTS if dialect in WITH_FILES or each not in OF_FILES]
    return [*(f"{when} {each}" for each in points for when in ("before", "after")), LOST]


# --- the process that dies -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Order:
    """What a process is to do.

    Attributes
    ----------
    folder : str
        Where the store is.
    dialect, address : str
        How to speak to the server, and where it is.
    spec : dict
        The study.
    place, number : str, int
        The process dies when it passes this place so often.
    after_s : float
        It is killed after so many seconds; 0 for never.
    broken : str
        What is wrong with the package on purpose: ``unread``, it does not read records of batches; ``unrevoked``, it
        deletes no input file.
    most : int
        Most calls in a batch; 0 for as many as the provider takes.
    pace : list of float
        Times of the package.
    leave, resubmit : bool
        As for a run.
    """

    folder: str
    dialect: str
    address: str
    spec: dict[str, Any]
    place: str = ""
    number: int = 1
    after_s: float = 0.0
    broken: str = ""
    most: int = 0
    pace: tuple[float, ...] = tuple(PACE)
    leave: bool = False
    resubmit: bool = False


class _Death:
    """Counts how often this process passes each place, and ends it at one of them."""

    def __init__(self, place: str, number: int) -> None:
        self.passed = Counter[str]()
        self._place, self._number = place, number

    def at(self, place: str) -> None:
        """Pass a place."""
        self.passed[place] += 1
        if place == self._place and self.passed[place] == self._number:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: type, name: str, point: Callable[..., str]) -> None:
        """Have a method pass what `point` makes of its arguments, before and after its work."""
        method = getattr(owner, name)

        @functools.wraps(method)
        def wrapped(*given: Any) -> Any:
            passed = point(*given)
            self.at(f"before {passed}")
            found = method(*given)
            self.at(f"after {passed}")
            return found

        @functools.wraps(method)
        async def awaited(*given: Any) -> Any:
            passed = point(*given)
            self.at(f"before {passed}")
            try:
                found = await method(*given)
            except Exception:
                self.at(f"{passed}, its reply lost")
                raise
            self.at(f"after {passed}")
            return found

        setattr(owner, name, awaited if iscoroutinefunction(method) else wrapped)

    def watch_all(self, lane: type) -> None:
        """Watch everything that leaves a trace in the store or with the provider."""
        self.watch(Store, "save_batch", _saved)
        for owner, name, point in (
            *((Store, "close_batch", "close"), (Store, "free_calls", "release")),
            *((lane, "upload", "upload"), (lane, "submit", "submission")),
            *((lane, "fetch", "fetch"), (lane, "revoke", "revocation")),
        ):
            self.watch(owner, name, functools.partial(lambda point, *_: point, point))
        append, kept = RunRecord.append, RunRecord.kept
        entries = Counter[str]()

        def every(when: str) -> None:
            entries[when] += 1
            if entries[when] % _ENTRIES == 0:
                self.at(f"{when} journal")

        def appended(record: RunRecord, entry: Entry) -> None:
            append(record, entry)
            # It waits to be written, which takes up to 0.2 s.
            every("before")

        def durable(record: RunRecord, content: Any) -> None:
            kept(record, content)
            if isinstance(content, Entry):
                every("after")

        RunRecord.append, RunRecord.kept = appended, durable  # type: ignore[method-assign]


def _saved(_: Store, batch: BatchRow, calls: Any = ()) -> str:
    """What it means that the state of a batch is saved."""
    if calls:
        return "intent"
    if not batch.batch_id:
        return "file record" if batch.revoked_at is None else "revocation record"
    if batch.ended_at is not None:
        return "end"
    return "progress" if batch.done or batch.expires_at else "its record"


def _prepared(order: Order) -> Invocation:
    """What the process is to carry out, with everything loaded, so that no process loads it anew."""
    os.chdir(order.folder)
    model = order.spec["model"]
    # The address of the server is none of the study, whose runs are the same behind another one.
    found = played(SimpleNamespace(url=lambda _: order.address), order.spec)  # type: ignore[arg-type]
    options = {**model["options"], "max_tokens": model["max_tokens"]}
    invocation = Invocation(
        load_experiment({**order.spec, "model": {**model, "options": {}}}),
        "s.sqlite",
        chat_model=found or load_chat_model(model["name"], **options),
        pace=Pace(*order.pace),
        leave=order.leave,
        resubmit=order.resubmit,
    )
    assert invocation.parts
    return invocation


def _carry_out(order: Order, invocation: Invocation) -> dict[str, Any]:
    """The process that dies; otherwise what it says in the end."""
    death, lane = _Death(order.place, order.number), find("lane", PROVIDERS[order.dialect]).target
    lane.most_calls = order.most or lane.most_calls
    if order.broken == "unread":
        Store.batches = lambda self: []  # type: ignore[method-assign]
    if order.broken == "unrevoked":
        lane.revoke = _unrevoked
    death.watch_all(lane)
    with under_way(invocation) as (_, future):
        summary = future.result()
    return {
        **{"complete": summary.complete, "total": summary.total, "left": len(summary.batches)},
        **{"errors": sorted(set(summary.errors.values())), "passed": death.passed},
    }


async def _unrevoked(*_: Any) -> None:
    """Delete nothing."""


def _forked(order: Order) -> int:
    """Carry an order out in a new process; its exit code, or minus the signal that it died of."""
    invocation = _prepared(order)
    process = os.fork()
    if process == 0:
        # Nothing of the parent may happen twice.
        faulthandler.dump_traceback_later(_LONGEST_S, exit=True)
        try:
            print(json.dumps(_carry_out(order, invocation)), flush=True)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if order.after_s:
        time.sleep(order.after_s)
        os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _serve() -> None:
    """Take orders, one a line, and answer each with what its process says and a line with its exit code."""
    for name in PROVIDERS.values():
        find("lane", name)
    for name in ("openai", "groq", "mistralai", "together", "anthropic", "openrouter"):
        __import__(f"langchain_{name}")
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        try:
            code = _forked(Order(**json.loads(line)))
        except Exception:
            traceback.print_exc()
            code = 1
        print(code, flush=True)


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    """0, or minus the signal that ended it."""
    said: Mapping[str, Any]
    """What it said in the end; nothing if it died."""


class Forks:
    """Processes forked from one that has loaded everything; the test has threads, so that it may not fork itself."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors

    def carry_out(self, order: Order) -> Ended:
        """Have an order carried out; a process that ends by an error of its own is an AssertionError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asdict(order)), file=self._process.stdin, flush=True)
        said: dict[str, Any] = {}
        while isinstance(found := json.loads(self._process.stdout.readline() or "1"), dict):
            said = found
        if found > 0:
            self._errors.seek(0)
            raise AssertionError(self._errors.read())
        return Ended(found, said)


@contextmanager
def forks() -> Iterator[Forks]:
    """A process to fork from while the block lasts."""
    with (
        key(),
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.batch_kills"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        yield Forks(process, errors)


# --- what the test sees ----------------------------------------------------------------------------------


@dataclass
class Machines:
    """A study in a folder, the server that it buys from, and the processes that carry it out in turn."""

    forks: Forks
    provider: BatchProvider
    dialect: str
    folder: Path
    spec: dict[str, Any]
    pace: Pace = PACE

    @property
    def store(self) -> str:
        """Path of the store."""
        return str(self.folder / "s.sqlite")

    def go(self, **options: Any) -> Ended:
        """Carry the study out in a new process, with options of an :class:`Order`."""
        address = self.provider.url(self.dialect)
        return self.forks.carry_out(
            Order(str(self.folder), self.dialect, address, self.spec, **{"pace": tuple(self.pace), **options})
        )

    def kill(self, place: str, number: int = 1, **options: Any) -> bool:
        """Have a process die when it passes a place so often; False if it ended before."""
        usual = self.provider.faults
        if not usual.late_creation_s:
            self.provider.faults = usual.changed(_lost(place))
        ended = self.go(place=place, number=number, **options)
        self.provider.faults = usual
        assert ended.code in (0, -signal.SIGKILL)
        return ended.code < 0

    def finish(self, **options: Any) -> Ended:
        """Carry the study out to its end; all its runs must become complete."""
        ended = self.go(**options)
        said = ended.said
        found = (ended.code, said["errors"], said["complete"])
        assert found == (0, [], said["total"]), found
        self.provider.advance(_END_S)
        return ended

    def twice(self) -> int:
        """Calls that were bought more than once, by the server's count."""
        self.provider.settle()
        return sum(count - 1 for count in self.provider.ids.values())

    def check(self, whole: Results) -> None:
        """The study has ended as if undisturbed, and what the store says of money is what the server says."""
        provider, found = self.provider, paid(self.store)
        assert self.twice() == 0
        assert rows(self.store, "SELECT custom_id FROM batched") == []
        assert {each.state for each in batches(self.store)} == {"closed"}
        assert provider.bought.total() == len(provider.ids) == found.calls
        assert provider.at_once.total() == 0
        assert found.cost == pytest.approx(provider.cost(), abs=1e-9)
        assert rows(self.store, "SELECT count(*) FROM ledger") == [(0,)]
        assert_same(loaded(self.store), whole)


@contextmanager
def machines(
    forks: Forks, dialect: str, name: str, *, delay: float = 0.04, steps: int = 4, **faults: Any
) -> Iterator[Machines]:
    """A study of its own in a new folder of this name, with a server of its own."""
    folder = Path(name).resolve()
    folder.mkdir()
    with BatchProvider(delay=delay, faults=Faults(**faults)) as provider:
        spec = study(provider, dialect)
        spec["interaction"]["steps"] = steps
        yield Machines(forks, provider, dialect, folder, spec)


def _lost(place: str) -> dict[str, Any]:
    """Faults of the server without which a place is never passed."""
    return _LOST.get(place.removeprefix("before ").removeprefix("after "), {})


if __name__ == "__main__":
    _serve()
