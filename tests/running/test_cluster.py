"""Sweeps on a cluster of two worker processes that share a PostgreSQL store."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed import LocalCluster
from typer.testing import CliRunner

from opinionsim.cli import app
from opinionsim.errors import SpecError
from opinionsim.foundation import background
from opinionsim.messages import ChatMessage
from opinionsim.running import Invocation, Summary, _cluster, run, under_way
from opinionsim.running._cluster import Cluster, LostError
from opinionsim.running._worker import Chunk
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.postgres import Ask, Server
from tests.support.provider import StubProvider
from tests.support.provider_replies import scripted_reply
from tests.support.running import SMALL, assert_same, changed, ended, loaded
from tests.support.sweeps import workers
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.long

SWEEP = changed(
    SMALL,
    replicates=4,
    sweep={"cognition.confirmation_bias": ["none", "strong"]},
    measurement={"classifier": "lexicon"},
)
#: Looks seldom, for what it looks at changes on other threads.
_until = partial(wait_until, pause_s=0.05)


@pytest.fixture(scope="module")
def processes() -> Iterator[str]:
    """Address of the scheduler of two worker processes."""
    with workers(2, processes=True) as running:
        yield running.scheduler_address


@pytest.fixture
def threads() -> Iterator[LocalCluster]:
    """Two workers in this process, which are there at once."""
    with workers(2, processes=False) as running:
        yield running


@pytest.fixture
def address(threads: LocalCluster) -> str:
    """Of the scheduler of two workers in this process."""
    return str(threads.scheduler_address)


@pytest.fixture
def url(postgres: Server, tmp_path: Path) -> str:
    """Address of an empty database."""
    return postgres.database(str(tmp_path))


class Gate:
    """Replies of the scripted model, which stop after so many until the gate is opened."""

    def __init__(self, after: int) -> None:
        self._reply = scripted_reply()
        self._left = after
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, messages: tuple[ChatMessage, ...], seed: int | None) -> str:
        self._left -= 1
        if self._left < 0:
            self.reached.set()
            assert self.open.wait(PATIENCE_S)
        return self._reply(messages, seed)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is open in the end, whatever happens."""
    found = Gate(30)
    yield found
    found.open.set()


@pytest.fixture
def stub(gate: Gate) -> Iterator[StubProvider]:
    """A provider that stops answering after a while."""
    with StubProvider(gate) as provider:
        yield provider
        gate.open.set()


def _asking(stub: StubProvider, **values: Any) -> dict[str, Any]:
    """The sweep, with the stub for its model."""
    model = {"name": "openai:stub", "options": {"base_url": stub.base_url}}
    return changed(SWEEP, model=model, execution={"max_concurrency": 4}, **values)


@pytest.fixture
def ask(postgres: Server, url: str) -> Ask:
    """Asks the test's database past the store."""
    return postgres.asking(url)


def _seeds(ask: Ask) -> set[int]:
    """Seeds of all calls that are stored."""
    return {seed for (seed,) in ask("SELECT seed FROM journal WHERE seed IS NOT NULL")}


def _busiest(ask: Ask) -> str:
    """The owner of a run under way with the most stored calls, once there is one."""
    owners = (
        "SELECT owner FROM runs JOIN journal USING (run_id) WHERE runs.status = 'running' "
        "GROUP BY owner ORDER BY count(*) DESC LIMIT 1"
    )
    _until(lambda: ask(owners))
    return str(ask(owners)[0][0])


def _kill_a_worker(ask: Ask) -> set[int]:
    """Kill a worker in the middle of its runs, as dead as if 30 s had passed; seeds of the calls stored then."""
    owner = _busiest(ask)
    pid = int(owner.split(":")[1])
    os.kill(pid, signal.SIGSTOP)
    ask("UPDATE workers SET heartbeat_at = heartbeat_at - 60 WHERE owner = %s", owner)
    stored = _seeds(ask)
    os.kill(pid, signal.SIGKILL)
    return stored


def _asked_again(stub: StubProvider) -> set[int | None]:
    """Seeds of the questions that were asked more than once."""
    return {each.request.seed for each in stub.log if each.request.attempt > 0}


def test_a_killed_workers_runs_finish_elsewhere_and_nothing_stored_is_asked_again(
    stub: StubProvider, gate: Gate, url: str, processes: str, ask: Ask
) -> None:
    spec = _asking(stub)
    with under_way(Invocation(load_experiment(spec), url, cluster=processes)) as (runner, future):
        assert gate.reached.wait(PATIENCE_S)
        stored = _kill_a_worker(ask)
        gate.open.set()
        summary = future.result()
    assert (summary.complete, summary.total, summary.errors) == (8, 8, {})
    assert stored
    assert not _asked_again(stub) & stored
    assert summary.answered > 0
    assert runner.progress().complete == 8
    ended(spec, "local.sqlite")
    assert_same(loaded(url), loaded("local.sqlite"))


@pytest.mark.parametrize("budget", [{}, {"calls": 40}], ids=["at once", "after a budget"])
def test_yoked_runs_forks_and_redraws_on_workers_equal_those_in_one_process(
    budget: dict[str, int], url: str, address: str
) -> None:
    cells = [{"kind": "yoked", "steps": 6, "source": {"cell": "interaction=dyadic"}}, {"kind": "self-echo", "steps": 6}]
    fork = {"fork": [{"cell": "interaction=dyadic", "step": 4}]}
    sweep = [{"interaction": [SMALL["interaction"], *cells]}, fork]
    spec = changed(SMALL, replicates=3, redraws=2, measurement={"probe": {"before": 1, "after": 1}}, sweep=sweep)
    if budget:
        assert ended(changed(spec, execution={"budget": budget}), url, cluster=address).exceeded
    summary = ended(spec, url, cluster=address)
    assert (summary.complete, summary.errors) == (summary.total, {})
    ended(spec, "local.sqlite")
    assert_same(loaded(url), loaded("local.sqlite"), but_for=("store",))


def test_a_chunk_that_is_given_up_leaves_its_runs_incomplete(
    stub: StubProvider, gate: Gate, url: str, threads: LocalCluster, ask: Ask
) -> None:
    spec = _asking(stub)
    scheduler: Any = threads.scheduler
    scheduler.allowed_failures = 0
    with under_way(Invocation(load_experiment(spec), url, cluster=scheduler.address)) as (_, future):
        assert gate.reached.wait(PATIENCE_S)
        lost = next(iter(scheduler.workers))
        scheduler.loop.add_callback(scheduler.remove_worker, lost, stimulus_id="test", expected=False)
        _until(lambda: "erred" in {task.state for task in scheduler.tasks.values()} or not scheduler.tasks)
        gate.open.set()
        summary = future.result()
    assert not summary.stopped
    assert 0 < len(summary.errors) == summary.total - summary.complete
    assert any("gave up a chunk of runs after 1 workers died" in error for error in summary.errors.values())


def test_a_stop_that_no_worker_hears_ends_the_sweep(
    stub: StubProvider, gate: Gate, url: str, threads: LocalCluster
) -> None:
    scheduler: Any = threads.scheduler
    with under_way(Invocation(load_experiment(_asking(stub)), url, cluster=scheduler.address)) as (runner, future):
        assert gate.reached.wait(PATIENCE_S)
        for lost in list(scheduler.workers):
            scheduler.loop.add_callback(scheduler.remove_worker, lost, stimulus_id="test", expected=False)
        _until(lambda: not scheduler.workers)
        background.call_soon(runner.stop)
        summary = future.result(PATIENCE_S)
        gate.open.set()
    assert summary.stopped
    assert set(summary.errors.values()) == {
        "no worker is left; repeat the command to resume the runs after their last stored reply"
    }


def test_an_interrupt_ends_the_chunks_and_a_second_run_goes_on(
    stub: StubProvider, gate: Gate, url: str, address: str, ask: Ask
) -> None:
    spec = _asking(stub)
    with under_way(Invocation(load_experiment(spec), url, cluster=address)) as (runner, future):
        assert gate.reached.wait(PATIENCE_S)
        # What workers tell meanwhile is seen.
        _until(lambda: runner.progress().in_flight and runner.progress().made >= 26)
        background.call_soon(runner.stop)
        background.call_soon(gate.open.set)
        summary = future.result()
    assert summary.stopped
    assert 0 < len(summary.errors) == summary.total - summary.complete
    assert ask("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]
    stored = _seeds(ask)
    again = ended(spec, url, cluster=address)
    assert (again.complete, again.stopped) == (8, False)
    assert not _asked_again(stub) & stored


def test_two_clients_share_one_sweep(url: str, address: str) -> None:
    with StubProvider(scripted_reply()) as stub:
        experiment = load_experiment(_asking(stub))
        with (
            under_way(Invocation(experiment, url, cluster=address)) as (_, one),
            under_way(Invocation(experiment, url, cluster=address)) as (
                _,
                other,
            ),
        ):
            summaries = one.result(), other.result()
    assert [(summary.complete, summary.errors) for summary in summaries] == [(8, {})] * 2
    assert stub.paid_twice == {}
    assert sum(summary.made for summary in summaries) == sum(stub.served.values())


@pytest.mark.parametrize("slots", [1, 5])
def test_a_budget_is_kept_and_spent(url: str, address: str, slots: int) -> None:
    whole = ended(SWEEP, "whole.sqlite")
    limited = changed(SWEEP, execution={"budget": {"calls": 31}, "max_concurrency": slots})
    summary = ended(limited, url, cluster=address)
    assert (summary.made, summary.stopped) == (31, True)
    assert "calls: 31 of 31 paid" in str(summary.exceeded)
    assert summary.complete + len(summary.errors) == 8
    with open_store(url, write=False) as store:
        assert store.usage(store.states()).calls == 31
        errors = {state.error for state in store.states().values()}
    assert errors <= {"", str(summary.exceeded), "stopped before it was finished"}
    again = ended(limited, url, cluster=address)
    assert (again.made, again.stopped) == (0, True)
    rest = ended(SWEEP, url, cluster=address)
    assert (rest.made, rest.complete, rest.exceeded) == (whole.made - 31, 8, None)
    assert_same(loaded(url), loaded("whole.sqlite"))


def test_money_is_counted_by_the_table_of_whoever_started_the_sweep(url: str, address: str) -> None:
    prices = "date: 2026-01-01\ncurrency: USD\nper: 1000\nsource: {}\nmodels:\n  scripted: {input: 1, output: 2}\n"
    Path("own.yaml").write_text(prices)
    spec = changed(SWEEP, execution={"prices": "own.yaml", "budget": {"money": 1e9}})
    summary = ended(spec, url, cluster=address)
    expected = ended(spec, "local.sqlite")
    assert summary.paid._replace(cost=0.0) == expected.paid._replace(cost=0.0)
    # Workers finish in any order, and sums of money are rounded in the order of their terms.
    assert summary.paid.cost == pytest.approx(expected.paid.cost, rel=1e-12)
    assert summary.paid.cost == pytest.approx(summary.paid.input_tokens / 1000 + 2 * summary.paid.output_tokens / 1000)


def test_slots_are_shared_out_and_no_password_is_sent(url: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Chunk] = []
    carry_out = Cluster.carry_out

    async def watched(self: Cluster, chunk: Chunk) -> Summary:
        sent.append(chunk)
        return await carry_out(self, chunk)

    monkeypatch.setattr(Cluster, "carry_out", watched)
    secret = url.replace("postgres@", "postgres:hunter2@")
    assert secret != url
    results = run(load_experiment(SWEEP), secret, max_concurrency=9, cluster=address)
    assert set(results.runs["status"]) == {"complete"}
    assert [chunk.slots for chunk in sent] == [4] * 8
    assert sorted(run_id for chunk in sent for run_id in chunk.run_ids) == sorted(results.runs["run_id"])
    for chunk in sent:
        assert b"hunter2" not in pickle.dumps(chunk)
        assert "postgres" not in repr(chunk)


def test_a_worker_without_the_key_says_so(url: str, processes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS_API_KEY", "sk-here-only")
    options = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "OURS_API_KEY"}
    spec = changed(SWEEP, model={"name": "openai:stub", "options": options})
    with pytest.raises(SpecError, match=r"worker tcp://127\.0\.0\.1:\d+: .*OURS_API_KEY"):
        ended(spec, url, cluster=processes)


def test_a_worker_of_another_version_is_refused(url: str, processes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opinionsim.__version__", "0.0.9")
    with pytest.raises(SpecError, match=r"worker tcp://.* has opinionsim \S+, but this is 0\.0\.9"):
        ended(SWEEP, url, cluster=processes)


def test_a_scheduler_that_goes_away_is_an_error_and_no_wait(
    stub: StubProvider, gate: Gate, url: str, threads: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cluster, "_PATIENCE_S", 1.0)
    with under_way(Invocation(load_experiment(_asking(stub)), url, cluster=threads.scheduler_address)) as (_, future):
        assert gate.reached.wait(PATIENCE_S)
        gate.open.set()
        threads.close()
        summary = future.result()
    assert any("scheduler was lost" in error for error in summary.errors.values())


def test_from_the_command_line(url: str, address: str) -> None:
    Path("small.yaml").write_text(yaml.safe_dump(changed(SWEEP, execution={"budget": {"calls": 40}})))
    command = ["run", "small.yaml", "--store", url, "--cluster", address]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "2 chunks of runs at a time on the cluster" in result.stderr
    assert "calls: 40 of 40 paid" in result.stderr
    result = CliRunner().invoke(app, [*command, "--set", "execution.budget.calls=4000"])
    assert result.exit_code == 0
    assert "8 of 8 runs complete" in result.stderr
    assert "all 8 runs were complete already" in CliRunner().invoke(app, command).stderr


@pytest.mark.parametrize(
    ("store", "address", "words"),
    [
        ("s.sqlite", "tcp://127.0.0.1:9", "cannot write the store s.sqlite.*PostgreSQL"),
        (None, "tcp://127.0.0.1:9", "results/small.sqlite.*PostgreSQL"),
        ("postgresql://nobody@127.0.0.1:9/none", "tcp://127.0.0.1:9", "no Dask scheduler answers"),
        ("postgresql://nobody@127.0.0.1:9/none", "carrier pigeon", "no Dask scheduler answers"),
    ],
)
def test_what_cannot_be_spread_is_refused(
    store: str | None, address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cluster, "_PATIENCE_S", 0.5)
    with pytest.raises(SpecError, match=words):
        run(load_experiment(SWEEP), store, cluster=address)
    assert list(Path().iterdir()) == []


def test_an_object_cannot_be_sent() -> None:
    from opinionsim.llm import ScriptedChatModel

    with pytest.raises(SpecError, match="chat_model is an object"):
        run(load_experiment(SWEEP), "postgresql://x@h/d", chat_model=ScriptedChatModel(), cluster="tcp://x:1")


def test_losses_are_no_misuse() -> None:
    assert LostError("x").exit_code == 1
