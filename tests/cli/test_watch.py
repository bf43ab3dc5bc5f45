"""``opinionsim watch``: what is seen of a store, how it is drawn, and whole commands beside a run."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rich.cells import cell_len
from rich.console import Console

import opinionsim as osim
from opinionsim.cli import _watch
from opinionsim.cli._watch import drawn, in_one_line
from opinionsim.errors import Cause, ModelCallError, StoreError
from opinionsim.llm import Entry, EntryKey, SlotPool
from opinionsim.running import under_way
from opinionsim.specification import load_experiment
from opinionsim.store import Store, open_store
from opinionsim.testing import run_virtual
from opinionsim.watching import OpenRun, Reason, Seen, _experiments, look_at, reasons
from tests.cli.conftest import SMALL, GatedModel, Invoke, backup
from tests.support.postgres import Server
from tests.support.running import changed, watched

pytestmark = pytest.mark.long

SPEC: dict[str, Any] = yaml.safe_load(SMALL)
CLOCK = re.compile(r"\d\d:\d\d:\d\d")


def _seen(**fields: Any) -> Seen:
    """An experiment under way."""
    seen = Seen(
        at=0.0,
        store="results/study.sqlite",
        experiment="study",
        counts={"complete": 37, "incomplete": 1, "under way": 2, "cut off": 1, "pending": 499},
        open=(
            OpenRun(3, "under way", 34, 100, "none, truth", 0.4),
            OpenRun(12, "under way", 7, 100, "strong, truth", 61.0),
            OpenRun(4, "cut off", 50, 100, "weak, truth", 600.0),
        ),
        calls=6480,
        expected=54000,
        rate=48.3,
        left_s=983.0,
        paid={"calls": (6500, None), "tokens": (3_100_000, None), "money": (4.2, 10.0)},
        reasons=(Reason(1, "run 00aa, turn 9, agent 1 (write): PermissionError: no such account", alike=True),),
        doing=("12 calls in flight of 64, in 2 runs; openai@api.example.org waits 34 s for its rate limit",),
        last_reply_s=0.42,
    )
    return replace(seen, **fields)


def _text(seen: Seen, width: int = 80, height: int = 54, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding)
    console = Console(file=file, width=width, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        console.print(drawn(seen, height))
    return CLOCK.sub("12:03:05", "\n".join(line.rstrip() for line in captured.get().splitlines()), count=1)


# -- state to lines ------------------------------------------------------------------------------------------


def test_an_experiment_in_80_columns() -> None:
    assert (
        _text(_seen())
        == """\
study in results/study.sqlite                                           12:03:05
540 runs: 37 complete, 1 incomplete, 2 under way, 1 cut off, 499 pending
━━━╸                            12 % 6,480 of 54,000 calls, 48.3/s, 0:16:23 left
paid calls 6,500, tokens 3,100,000, money 4.2000 of at most 10 (42 %)
last reply 0:00:00 ago
12 calls in flight of 64, in 2 runs; openai@api.example.org waits 34 s for its
rate limit
1 run: run 00aa, turn 9, agent 1 (write): PermissionError: no such account

run  calls               last reply  conditions
  3  ━━━         34/100  0:00:00     none, truth
 12  ╸           7/100   0:01:01     strong, truth
  4  ━━━━━       50/100  0:10:00     cut off: weak, truth"""
    )


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("height", [5, 10, 23, 50])
def test_many_runs_and_long_texts_fit(width: int, height: int) -> None:
    open_runs = tuple(OpenRun(row, "under way", row, 600, f"condition {row}, " * 9, None) for row in range(540))
    seen = _seen(store="/a/very/long/path" * 20, open=open_runs)
    said = _text(seen, width, height)
    assert all(cell_len(line) <= width for line in said.splitlines())
    assert re.search(r"\nand 5\d\d more$", said)
    if width >= 80:
        assert len(said.splitlines()) <= max(height, 15)


def test_nothing_is_said_twice_or_without_need() -> None:
    bare = _text(Seen(0.0, "s.sqlite", "study", counts={"complete": 2}, calls=8, expected=8))
    assert bare == f"study in s.sqlite{'12:03:05':>63}\n2 runs: 2 complete\n{'━' * 40} 100 % 8 of 8 calls"
    assert _text(Seen(0.0, "s.sqlite")).splitlines()[1] == "no experiment is on record yet; waiting for one"
    left = _seen(open=(), counts={"complete": 1, "pending": 3}, last_reply_s=600.0)
    assert "nobody is carrying out what is left; run the experiment again to go on" in _text(left)
    assert "last reply" not in _text(left)
    assert "no run has begun yet" in _text(_seen(open=(), counts={"pending": 3}, last_reply_s=None))
    # Equations ask nobody.
    assert "calls" not in _text(Seen(0.0, "s.sqlite", "study", counts={"complete": 1, "pending": 1}))


def test_an_experiment_is_over_when_nobody_is_at_work_on_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two runs that are tried again nobody holds one; whoever works on does so for another experiment."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(_watch, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    ended = Seen(0.0, "s", "study", counts={"complete": 3, "incomplete": 1})
    at_work = replace(ended, doing=("1 call in flight",))
    going_on = replace(at_work, open=(OpenRun(0, "under way", 1, 9, "", None),))

    def looks(*seen: Seen) -> int:
        told: list[Seen] = []
        left = iter(seen)
        _watch._attend(lambda: next(left), told.append)
        return len(told)

    assert looks(going_on, ended) == 2
    assert looks(going_on, at_work, at_work, going_on, at_work, ended) == 6
    assert looks(*[at_work] * 60) == 11


def test_a_share_is_full_only_when_all_is_done() -> None:
    assert " 99 % " in _text(_seen(calls=53_999))
    assert " 100 % " in _text(_seen(calls=54_000))


def test_there_are_no_blocks_in_ascii() -> None:
    assert _text(_seen(), encoding="ascii").isascii()


def test_control_characters_do_not_reach_the_terminal() -> None:
    odd = "\x1b[2J\x07"
    seen = _seen(
        open=(OpenRun(0, "under way", 1, 9, odd, None),),
        doing=(odd,),
        reasons=(Reason(1, odd, alike=True),),
    )
    assert "\x1b" not in _text(seen)
    assert "\x07" not in _text(seen)


def test_one_line_says_the_same() -> None:
    assert CLOCK.sub("12:03:05", in_one_line(_seen())) == (
        "12:03:05 study: 540 runs: 37 complete, 1 incomplete, 2 under way, 1 cut off, 499 pending; "
        "6,480 of 54,000 calls, 48.3/s, 0:16:23 left; last reply 0:00:00 ago"
    )


def test_reasons_are_grouped() -> None:
    alike = [ModelCallError("no such account", place=f"run {number:x}", turn=number) for number in range(3)]
    found = [(str(error), error.cause) for error in (ModelCallError("other", place="run ff"), *alike)]
    assert [str(each) for each in reasons(found)] == [f"3 runs, for instance {alike[0]}", "1 run: run ff: other"]
    assert str(reasons([("stopped", Cause("stopped"))] * 2)[0]) == "2 runs: stopped"


# -- store to state ------------------------------------------------------------------------------------------


def test_a_store_is_seen_as_it_is(half: Path) -> None:
    look = partial(look_at, str(half))
    seen = look()
    assert (seen.experiment, seen.is_under_way, seen.over) == ("small", True, False)
    assert {name: count for name, count in seen.counts.items() if count} == {"complete": 2, "under way": 2}
    assert (seen.calls, seen.expected) == (29, 48)
    assert [(run.row, run.state, run.expected) for run in seen.open] == [(1, "under way", 12), (3, "under way", 12)]
    assert [run.cell for run in seen.open] == ["none, replicate 1", "strong, replicate 1"]
    assert sum(run.calls for run in seen.open) == 5
    assert (seen.paid["calls"], seen.paid["money"]) == ((29, None), (0.0, None))
    assert seen.last_reply_s is not None
    assert seen.reasons == ()
    with open_store(str(half), write=False) as store:
        assert store.doing() == list(seen.doing)


class _Rewritten:
    """The record of a run that was forgotten and is written anew, by hand, while somebody reads it."""

    def __init__(self, store: Store) -> None:
        self.experiment_id = store.designs()[0].experiment_id
        self.cell = store.designs()[0].runs[0]
        self.agents = store.agents(self.cell.run_id)
        self.store = store

    def begin(self) -> None:
        """Claim the run."""
        self.store.forget([self.cell.run_id])
        self.epoch = self.store.claim(self.cell.run_id, "host 1") or 0
        self.record = self.store.record(self.cell.run_id, self.epoch, self.experiment_id)
        self.record.begin(self.agents, [])

    def answered(self, turn: int, at: float) -> None:
        """A reply has come."""
        self.record.append(Entry(EntryKey(turn, "reply", 0), turn, 2, "write", "p", f"Text {turn}.", arrived_at=at))
        self.record.flush()


@pytest.fixture
def rewritten() -> Iterator[_Rewritten]:
    """A run of 12 calls in the store s.sqlite, which is open for writing."""
    osim.run(load_experiment(changed(SPEC, replicates=1, sweep={})), "s.sqlite")
    with open_store("s.sqlite") as store:
        yield _Rewritten(store)


def test_calls_are_counted_while_they_come(rewritten: _Rewritten, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    monkeypatch.setattr(_experiments, "time", SimpleNamespace(time=lambda: now[0]))
    rewritten.begin()
    look = partial(look_at, "s.sqlite")
    assert (look().rate, look().calls) == (None, 0)
    for turn in range(6):
        now[0] += 2.0
        rewritten.answered(turn, now[0] - 0.5)
    seen = look()
    assert (seen.calls, seen.open[0].calls, seen.last_reply_s) == (6, 6, pytest.approx(0.5))
    # Six since the first came.
    assert seen.rate == pytest.approx(6 / 10.5)
    assert seen.left_s == pytest.approx(6 / seen.rate)
    now[0] += 120.0
    stalled = look()
    assert (stalled.rate, stalled.left_s, stalled.last_reply_s) == (None, None, pytest.approx(120.5))
    rewritten.answered(6, now[0] - 9.0)
    rewritten.answered(7, now[0] - 1.0)
    seen = look()
    assert (seen.rate, seen.paid["calls"][0]) == (pytest.approx(2 / 9), 20)


def test_what_was_paid_counts_what_was_forgotten(rewritten: _Rewritten) -> None:
    rewritten.begin()
    rewritten.answered(0, time.time())
    look = partial(look_at, "s.sqlite")
    paid = look().paid
    assert (paid["calls"], paid["money"]) == ((13, None), (0.0, None))


def test_the_experiment_run_last_is_watched_unless_another_is_named() -> None:
    for name in ("one", "other"):
        osim.run(load_experiment(changed(SPEC, name=name, seed=len(name))), "s.sqlite")
    assert [look_at("s.sqlite", name).experiment for name in (None, "one")] == ["other", "one"]


def test_a_store_that_goes_away_is_an_error(half: Path, tmp_path: Path) -> None:
    path = backup(half, tmp_path / "copy.sqlite")
    look = partial(look_at, str(path))
    assert look().counts["cut off"] == 2
    path.unlink()
    with pytest.raises(StoreError, match=r"there is no store at .*copy\.sqlite"):
        look()


def test_a_database_is_watched_until_its_server_goes_away(invoke: Invoke, postgres: Server) -> None:
    url = postgres.database("watched")
    experiment = load_experiment(SPEC)
    osim.run(experiment, url, only=experiment.pilot)
    model = GatedModel()
    model._free = 5
    with under_way(experiment, url, chat_model=model) as (_, future):
        look = partial(look_at, url)
        try:
            until = time.monotonic() + 30
            while look().calls < 29 and time.monotonic() < until:
                time.sleep(0.05)
            seen = look()
            assert (seen.calls, seen.counts["complete"]) == (29, 2)
            assert any("in flight of" in said for said in seen.doing)
            assert "under way; this is what was on record at" in invoke("table", url).stderr
            assert invoke("show", url, "--run", 0).stdout.count("\nstep ") == 12
            postgres.stop()
            try:
                with pytest.raises(StoreError, match="the store"):
                    look()
            finally:
                postgres.start()
        finally:
            model._open.set()
        assert future.result().complete == 4
    assert look().over


def test_damage_is_not_waited_out(half: Path, tmp_path: Path) -> None:
    backup(half, tmp_path / "copy.sqlite")
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as connection:
        connection.execute("update runs set status = 'lost'")
        connection.commit()
    look = partial(look_at, str(tmp_path / "copy.sqlite"))
    with pytest.raises(StoreError, match="the store is damaged"):
        look()


def test_what_a_sweep_says_of_itself() -> None:
    model = GatedModel()
    with under_way(load_experiment(SPEC), "s.sqlite", max_concurrency=3, chat_model=model) as (runner, future):
        until = time.monotonic() + 20
        while runner._context.doing().in_flight != 3 and time.monotonic() < until:
            time.sleep(0.02)
        said = runner._context.doing()
        model._open.set()
        future.result()
    assert (said.limit, said.waiting, said.stopping) == (3, {}, False)
    assert str(runner._context.doing()) == "0 calls in flight of 3, in 0 runs"


def test_accounts_that_wait_are_named_with_the_seconds_left() -> None:
    async def story() -> list[dict[str, float]]:
        pool = SlotPool(4)
        lanes = [pool.lane(name, adaptive=True) for name in ("b", "a")]
        pool.lane("local")
        told = [pool.waiting()]
        for lane, seconds in zip(lanes, (34.0, 5.0), strict=True):
            assert lane.take()
            lane.release("rate-limited", retry_after_s=seconds)
        told.append(pool.waiting())
        for wait in (4.0, 3.0, 40.0):
            await asyncio.sleep(wait)
            told.append(pool.waiting())
        return told

    assert run_virtual(story()) == [{}, {"a": 5.0, "b": 34.0}, {"a": 1.0, "b": 30.0}, {"b": 27.0}, {}]


# -- whole commands ------------------------------------------------------------------------------------------

SLOW = """
import asyncio, sys, yaml
import opinionsim as osim
from opinionsim.llm import ScriptedChatModel

class Slow(ScriptedChatModel):
    async def _agenerate(self, *arguments, **options):
        await asyncio.sleep(float(sys.argv[2]))
        return await super()._agenerate(*arguments, **options)

osim.run(osim.load_experiment(yaml.safe_load(sys.stdin.read())), sys.argv[1], chat_model=Slow(), max_concurrency=4)
"""


@contextmanager
def _slow_run(checkout: Path, store: Path, latency_s: float) -> Iterator[subprocess.Popen[str]]:
    """The small experiment, carried out slowly by another process; returns when its first calls are on record."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-c", SLOW, str(store), str(latency_s)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(SMALL)
        process.stdin.close()
        try:
            while _calls(store) < 4:
                assert process.poll() is None
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


def _calls(store: Path) -> int:
    """Calls on record in a store that is about to be there."""
    until = time.monotonic() + 60
    while True:
        try:
            return look_at(str(store)).calls
        except StoreError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def test_a_run_in_another_process_is_watched(
    invoke: Invoke, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    store = tmp_path / "s.sqlite"
    with _slow_run(checkout, store, 0.3) as process:
        once = invoke("watch", store, "--once")
        assert (once.exit_code, once.stderr) == (0, "")
        told = once.stdout.splitlines()
        assert told[0].startswith("small in ")
        assert told[1] == "4 runs: 4 under way"
        assert re.match(r"[━╸]* +\d+ % \d+ of 48 calls", told[2])
        assert all(len(line) <= 80 for line in told)
        # Where nothing can be drawn it is told in lines, until all is over.
        whole = invoke("watch", store)
        assert process.wait() == 0
    assert whole.exit_code == 0
    first, *_, last = whole.stdout.splitlines()
    assert "small: 4 runs: 4 under way; " in first
    assert last.endswith(" small: 4 runs: 4 complete; 48 of 48 calls")


def test_a_killed_run_is_seen_as_cut_off(invoke: Invoke, checkout: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with _slow_run(checkout, store, 0.3) as process:
        process.kill()
        process.wait()
        told = invoke("watch", store, "--once").stdout
    assert told.splitlines()[1] == "4 runs: 4 cut off"
    assert "nobody is carrying out what is left; run the experiment again to go on" in told


def test_watching_ends_with_the_experiment_and_says_how(invoke: Invoke) -> None:
    osim.run(load_experiment(SPEC), "s.sqlite")
    done = invoke("watch", "s.sqlite")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)
    model = watched(fails=lambda number: True)[0]
    osim.run(load_experiment(changed(SPEC, name="bad", seed=6)), "s.sqlite", chat_model=model)
    failed = invoke("watch", "s.sqlite")
    assert failed.exit_code == 1
    assert failed.stdout.splitlines()[1].startswith("  4 runs, for instance run ")
    assert invoke("watch", "s.sqlite", "--once").exit_code == 0


def test_it_is_drawn_on_a_terminal_and_leaves_the_last_state(
    checkout: Path, half: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("PYTHONPATH", str(checkout))
    terminal, other = pty.openpty()
    command = [sys.executable, "-m", "opinionsim", "watch", str(half)]
    written, interrupted = b"", False
    with subprocess.Popen(command, stdin=other, stdout=other, stderr=other, cwd=tmp_path) as process:
        os.close(other)
        while process.poll() is None or select.select([terminal], [], [], 0)[0]:
            ready, _, _ = select.select([terminal], [], [], 0.1)
            try:
                written += os.read(terminal, 1 << 16) if ready else b""
            except OSError:
                break
            if written.count(b"2 under way") == 2 and not interrupted:
                interrupted = True
                process.send_signal(signal.SIGINT)
    os.close(terminal)
    assert process.returncode == 130
    said = written.decode()
    # It is drawn over, has no colour, and ends without a traceback.
    assert "\x1b[1A" in said
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", said)
    assert "no longer watched; the experiment goes on" in said
    assert "Traceback" not in said


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gone.sqlite",), "there is no store at gone.sqlite"),
        (("gone.txt",), "'gone.txt' is not a store address"),
        (("STORE", "--experiment", "large"), "has no experiment 'large'; it holds small"),
    ],
)
def test_what_cannot_be_watched(invoke: Invoke, store: Path, arguments: tuple[str, ...], said: str) -> None:
    before = sorted(store.parent.iterdir())
    for once in ((), ("--once",)):
        result = invoke("watch", *(str(store) if each == "STORE" else each for each in arguments), *once)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: ")
        assert said in result.stderr
    assert sorted(store.parent.iterdir()) == before
    assert list(Path().iterdir()) == []


def test_a_store_without_an_experiment_is_waited_for_unless_once(invoke: Invoke) -> None:
    with open_store("empty.sqlite"):
        pass
    result = invoke("watch", "empty.sqlite", "--once")
    assert (result.exit_code, "the store empty.sqlite holds no experiment yet" in result.stderr) == (2, True)
    look = partial(look_at, "empty.sqlite", "small")
    assert (look().experiment, look().over) == ("", False)
    assert in_one_line(look()).endswith("empty.sqlite: no experiment is on record yet")
