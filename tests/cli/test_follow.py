"""``opinionsim status --follow``: what it prints of looks at a store, and whole commands beside a run."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import opinionsim as osim
from opinionsim.cli import _follow
from opinionsim.errors import Cause, ModelCallError, StoreError
from opinionsim.llm import Entry, EntryKey
from opinionsim.running import Invocation, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import DesignRow, Doing, ExperimentRun, RunState, Store, open_store
from opinionsim.watching import Replies, Seen, _experiments, count_states, doing_text, look_at, reasons
from tests.cli.conftest import SMALL, GatedModel, Invoke, backup
from tests.support.command import refused
from tests.support.postgres import Server
from tests.support.processes import Command
from tests.support.running import changed, watched

pytestmark = pytest.mark.long

SPEC: dict[str, Any] = yaml.safe_load(SMALL)
DATED = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", re.MULTILINE)


def _seen(
    *states: str, calls: int = 0, doing: Doing | None = None, step: int = 0, error: str = "", **others: Any
) -> Seen:
    """An experiment `study` of runs of twelve calls, one in each of some states, with `calls` replies each."""
    rows = tuple(ExperimentRun(f"{row}", None, 0, "b", f"cell {row}") for row in range(len(states)))
    of = {run.run_id: state for run, state in zip(rows, states, strict=True)}
    stored = {"under way": "running", "cut off": "running"}
    known = {
        run_id: RunState(stored.get(state, state), 1, "w", error if state == "incomplete" else "", expected=12)  # type: ignore[arg-type]
        for run_id, state in of.items()
    }
    alive = frozenset(run_id for run_id, state in of.items() if state == "under way")
    return Seen(
        **{
            "at": 0.0,
            "design": DesignRow("e", "study", "d", {}, {}, rows, 1),
            "states": known,
            "alive": alive,
            "replies": {run_id: Replies(calls) for run_id in of},
            "steps": {run_id: (step, 6) for run_id in alive if step},
            "counts": count_states(known, alive),
            "expected": 12 * len(states),
            "rate": None,
            "left_s": None,
            "paid": {"calls": (calls * len(states), None), "tokens": (9, None), "money": (0.0, None)},
            "doing": () if doing is None else (doing,),
            **others,
        }
    )


@pytest.fixture
def followed(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[str], int, float]]:
    """Lines, exit code and seconds of following a store that is found in some states, one look after the other."""

    def follow(*looks: Seen) -> tuple[list[str], int, float]:
        left, now = iter(looks), [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds

        monkeypatch.setattr(_follow, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
        monkeypatch.setattr(_follow, "look_at", lambda url, known: {"e": next(left)})
        result = invoke("status", "s.sqlite", "--follow")
        assert next(left, None) is None
        return DATED.sub("", result.stdout).splitlines(), result.exit_code, now[0]

    return follow


# -- lines ---------------------------------------------------------------------------------------------------


def test_a_line_for_each_change(followed: Any) -> None:
    lines, code, _ = followed(
        _seen("pending", "pending", doing=Doing(0, 4, 0)),
        _seen("under way", "pending"),
        _seen("under way", "under way", calls=3),
        _seen("complete", "incomplete", calls=4, error="run 1, turn 4: no such\naccount"),
    )
    assert lines == [
        "study: 2 runs: 2 pending; 0 of 24 calls",
        "study: run cell 0/0 under way, 0 of 12 calls",
        "study: run cell 1/0 under way, 3 of 12 calls",
        "study: run cell 0/0 complete, 4 of 12 calls",
        "study: run cell 1/0 incomplete, 4 of 12 calls: run 1, turn 4: no such account",
        "study: 2 runs: 1 complete, 1 incomplete; 8 of 24 calls",
    ]
    assert code == 1


def test_how_far_it_is_is_said_every_ten_seconds_while_something_changes(followed: Any) -> None:
    going = [_seen("under way", calls=calls, step=2) for calls in range(1, 10)]
    lines, code, _ = followed(*going, *[_seen("under way", calls=9, step=5)] * 40, _seen("complete", calls=12))
    assert lines == [
        "study: 1 run: 1 under way; 1 of 12 calls; run cell 0/0 at step 2 of 6",
        "study: 1 run: 1 under way; 9 of 12 calls; run cell 0/0 at step 5 of 6",
        "study: run cell 0/0 complete, 12 of 12 calls",
        "study: 1 run: 1 complete; 12 of 12 calls",
    ]
    assert code == 0


def test_rate_time_left_budget_and_what_workers_wait_for_are_in_the_line(followed: Any) -> None:
    paid = {"calls": (6500, None), "tokens": (3_100_000, 5e6), "money": (4.2, 10.0)}
    waits = Doing(12, 64, 5, {"openai@api.example.org": 33.2})
    busy = _seen(*["under way"] * 5, step=3, rate=148.3, left_s=983.0, paid=paid, doing=waits)
    lines, _, _ = followed(busy, _seen(*["complete"] * 5))
    assert lines[0] == (
        "study: 5 runs: 5 under way; 0 of 60 calls, 148/s, 0:16:23 left; "
        "run cell 0/0 at step 3 of 6, run cell 1/0 at step 3 of 6, run cell 2/0 at step 3 of 6, and 2 more; "
        f"paid tokens 3,100,000 of at most 5,000,000; paid money 4.2 of at most 10; {doing_text(waits)}"
    )
    # Equations ask nobody, and control characters of others do not reach the terminal.
    lines, _, _ = followed(
        _seen("under way", expected=0, doing=Doing(1, 1, 1, {"\x1b[2J\x07": 1.0})), _seen("complete", expected=0)
    )
    assert "calls" not in lines[0]
    assert not set("\x1b\x07") & set(lines[0])


def test_it_ends_when_nobody_is_at_work_any_more(followed: Any) -> None:
    """Between two runs that are tried again nobody holds one; a worker that was killed is on record for a while."""
    ended, at_work = _seen("complete"), _seen("complete", doing=Doing(1, 1, 1))
    assert followed(_seen("under way"), ended)[2] == 1.0
    assert followed(at_work, at_work, _seen("under way"), at_work, ended)[2] == 4.0
    assert followed(*[at_work] * 11)[2] == 10.0
    lines, code, _ = followed(_seen("cut off", "pending"))
    assert (lines, code) == (["study: 2 runs: 1 cut off, 1 pending; 0 of 24 calls"], 1)


# -- store to state ------------------------------------------------------------------------------------------


def _look(url: object) -> Seen:
    """The only experiment that is looked at."""
    (seen,) = look_at(str(url)).values()
    return seen


def test_reasons_are_grouped() -> None:
    alike = [ModelCallError("no such account", place=f"run {number:x}", turn=number) for number in range(3)]
    found = [(str(error), error.cause) for error in (ModelCallError("other", place="run ff"), *alike)]
    assert [str(each) for each in reasons(found)] == [f"3 runs, for instance {alike[0]}", "1 run: run ff: other"]
    assert str(reasons([("stopped", Cause("stopped"))] * 2)[0]) == "2 runs: stopped"


def test_a_store_is_seen_as_it_is(half: Path) -> None:
    seen = _look(half)
    assert (seen.design.name, seen.over) == ("small", False)
    assert {name: count for name, count in seen.counts.items() if count} == {"complete": 2, "under way": 2}
    assert (seen.calls, seen.expected) == (29, 48)
    open_runs = [run.run_id for run in seen.design.rows if seen.state(run.run_id) == "under way"]
    assert seen.alive == set(open_runs) == {seen.design.rows[1].run_id, seen.design.rows[3].run_id}
    assert sum(seen.replies[run_id].number for run_id in open_runs) == 5
    assert {of for _, of in seen.steps.values()} == {6}
    with open_store(str(half), write=False) as store:
        assert store.doing() == list(seen.doing)
        turns = [store.turns(run_id)[-1].step for run_id in seen.steps]
    assert [step for step, _ in seen.steps.values()] == turns
    assert (seen.paid["calls"], seen.paid["money"]) == ((29, None), (0.0, None))
    assert seen.last_reply_s is not None
    assert seen.reasons == []


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
        self.epoch = self.store.lease(self.cell.run_id, "host 1") or 0
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
    look = partial(_look, "s.sqlite")
    assert (look().rate, look().calls) == (None, 0)
    for turn in range(6):
        now[0] += 2.0
        rewritten.answered(turn, now[0] - 0.5)
    seen = look()
    assert (seen.calls, seen.last_reply_s) == (6, pytest.approx(0.5))
    # Six since the first came.
    assert seen.rate == pytest.approx(6 / 10.5)
    assert seen.left_s == pytest.approx(6 / seen.rate)
    now[0] += 120.0
    stalled = look()
    assert (stalled.rate, stalled.left_s, stalled.last_reply_s) == (None, None, pytest.approx(120.5))
    rewritten.answered(6, now[0] - 9.0)
    rewritten.answered(7, now[0] - 1.0)
    seen = look()
    # What was forgotten was paid, too.
    assert (seen.rate, seen.paid["calls"]) == (pytest.approx(2 / 9), (20, None))


def test_experiments_under_way_are_looked_at_and_then_those_that_were(rewritten: _Rewritten) -> None:
    rewritten.store.close()
    osim.run(load_experiment(changed(SPEC, name="other", seed=9)), "s.sqlite")
    assert _look("s.sqlite").design.name == "other"
    with open_store("s.sqlite") as store:
        assert store.lease(rewritten.cell.run_id, "host 1", complete=True)
        seen = look_at("s.sqlite")
        assert [each.design.name for each in seen.values()] == ["small"]
    assert look_at("s.sqlite", seen).keys() == seen.keys()


def test_a_store_that_goes_away_is_an_error(half: Path, tmp_path: Path) -> None:
    path = backup(half, tmp_path / "copy.sqlite")
    assert _look(path).counts["cut off"] == 2
    path.unlink()
    with pytest.raises(StoreError, match=r"there is no store at .*copy\.sqlite"):
        look_at(str(path))


def test_a_database_is_looked_at_until_its_server_goes_away(invoke: Invoke, postgres: Server) -> None:
    url = postgres.database("watched")
    experiment = load_experiment(SPEC)
    osim.run(experiment, url, only=experiment.pilot)
    model = GatedModel()
    model._free = 5
    with under_way(Invocation(experiment, url, chat_model=model)) as (_, future):
        look = partial(_look, url)
        try:
            until = time.monotonic() + 30
            while look().calls < 29 and time.monotonic() < until:
                time.sleep(0.05)
            seen = look()
            assert (seen.calls, seen.counts["complete"]) == (29, 2)
            assert all(each.limit for each in seen.doing)
            assert seen.doing
            assert "under way; results as of" in invoke("table", url).stderr
            assert invoke("show", url, "--run", "none/0").stdout.count("\nstep ") == 12
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
    with pytest.raises(StoreError, match="the store is damaged"):
        look_at(str(tmp_path / "copy.sqlite"))


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
            return sum(seen.calls for seen in look_at(str(store)).values())
        except StoreError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def test_a_run_in_another_process_is_followed(invoke: Invoke, checkout: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with _slow_run(checkout, store, 0.5) as process:
        result = invoke("status", store, "--follow", "--json")
        assert process.wait() == 0
    assert (result.exit_code, result.stderr) == (0, "")
    first, *changes, last = map(json.loads, result.stdout.splitlines())
    assert (first["experiment"], first["runs"]["under_way"], first["calls_expected"]) == ("small", 4, 48)
    ends = [each for each in changes if "run" in each]
    assert sorted((each["run"], each["state"], each["calls"]) for each in ends) == [
        (f"cognition.confirmation_bias={level}/{n}", "complete", 12) for level in ("none", "strong") for n in range(2)
    ]
    assert (last["runs"]["complete"], last["calls"], last["steps"]) == (4, 48, {})


def test_a_killed_run_is_said_to_be_cut_off_and_the_store_is_left_alone(
    invoke: Invoke, checkout: Path, tmp_path: Path
) -> None:
    store = tmp_path / "s.sqlite"
    with _slow_run(checkout, store, 2.0) as process, Command("status", store, "--follow") as follower:
        assert ": 4 runs: 4 under way; " in follower.stdout.readline()
        process.kill()
        process.wait()
        code, said, _ = follower.communicate()
    assert code == 1
    assert len(re.findall(r" small: run \S+/\d cut off, \d+ of 12 calls\n", said)) == 4
    # Whoever follows holds no lock.
    osim.run(load_experiment(SPEC), store)
    assert invoke("status", store, "--follow").exit_code == 0


def test_an_interrupt_ends_it_and_nothing_else(half: Path) -> None:
    with Command("status", half, "--follow") as follower:
        assert ": 4 runs: 2 complete, 2 under way; 29 of 48 calls" in follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        said = follower.communicate()
    assert said == (130, "", "stopped following; the experiment continues\n")


def test_the_experiment_run_last_is_told_where_nothing_is_under_way(invoke: Invoke) -> None:
    osim.run(load_experiment(SPEC), "s.sqlite")
    done = invoke("status", "s.sqlite", "--follow")
    assert (done.exit_code, DATED.sub("", done.stdout)) == (0, "small: 4 runs: 4 complete; 48 of 48 calls\n")
    model = watched(fails=lambda number: True)[0]
    osim.run(load_experiment(changed(SPEC, name="bad", seed=6)), "s.sqlite", chat_model=model)
    failed = invoke("status", "s.sqlite", "--follow")
    assert (failed.exit_code, DATED.sub("", failed.stdout)) == (1, "bad: 4 runs: 4 incomplete; 0 of 48 calls\n")


def test_what_cannot_be_followed(invoke: Invoke, store: Path) -> None:
    with open_store("empty.sqlite"):
        pass
    empty = invoke("status", "empty.sqlite", "--follow")
    assert (empty.exit_code, empty.stdout) == (0, "the store contains no experiment\n")
    gone = invoke("status", "gone.sqlite", "--follow")
    assert (gone.exit_code, gone.stdout, "there is no store at gone.sqlite" in gone.stderr) == (2, "", True)
    assert "--runs and --follow cannot be given together" in refused("status", store, "--follow", "--runs")
