"""Random structures with moderators, draws, judges and refusals: equal in every order of execution, to the byte."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.assembly import assemble
from opinionsim.deliberation import NumberedReplies
from opinionsim.engine import Simulation
from opinionsim.errors import ModelCallError
from opinionsim.llm import Endpoint, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.messages import ChatMessage
from opinionsim.specification import load_experiment
from opinionsim.testing import run_virtual
from tests.support.examples import examples

pytestmark = pytest.mark.long

LABELS = ("Response 3: ", "[You]: ", "[Other participant]:\n", "Ada: ", "Response 0:")


@dataclass
class Moody:
    """A chat model that is a function of messages and seed: it refuses, falls silent, echoes labels and names nobody.

    `fails` says of which digests its calls raise an error.
    """

    latency: Callable[[int], float] = lambda seed: 0.0
    fails: str = ""
    asked: list[int] = field(default_factory=list)

    async def call(self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None) -> AIMessage:
        self.asked.append(seed)
        await asyncio.sleep(self.latency(seed))
        digest = hashlib.sha256(repr(([tuple(each) for each in messages], seed)).encode()).hexdigest()
        if self.fails and digest[1] in self.fails:
            raise PermissionError("the provider is gone")
        number = int(digest[2:6], 16)
        match digest[0]:
            case "0":
                return AIMessage("")
            case "1":
                return AIMessage("", additional_kwargs={"refusal": "I decline."})
            case "2":
                return AIMessage(LABELS[number % len(LABELS)])
            case "3":
                return AIMessage(LABELS[number % len(LABELS)] + f"None of ${number}, $$5, ${{previous_responses}}")
        reply = NumberedReplies.reply(messages[-1].content, number)
        return AIMessage(str(number % 4) if reply == "1" else reply)


names = ("Ada", "Ben", "Cleo", "Dan")
members = st.fixed_dictionaries(
    {},
    optional={
        "task": st.sampled_from(["Sing.", "Say None of ${task}."]),
        "instructions": st.sampled_from(["voting", "Read ${previous_responses}, and ${previous_responses} again."]),
        "drawn": st.tuples(st.integers(2, 4), st.sampled_from(["first", "shortest", "longest", "judge"])),
    },
)
roles = st.sampled_from(
    [
        {},
        {"moderator": {}},
        {"moderator": {"automatic": True}},
        {"moderator": {"values": "peace"}},
        {"moderator": {"persona": "voting", "task": "Sum."}},
    ]
)
probes = st.fixed_dictionaries({"before": st.integers(0, 1), "after": st.integers(0, 1)})


@st.composite
def structures(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["chain", "debate", "ensemble", "graph", "rounds"]))
    size = 2 if kind == "debate" else draw(st.integers(2, 4))
    interaction: dict[str, Any] = {
        "kind": kind,
        "order": draw(st.sampled_from(["counterbalanced", "cast", "shuffled"])),
    }
    if kind == "graph":
        pairs = [[i, j] for i in range(size) for j in range(i + 1, size)]
        interaction["edges"] = draw(st.lists(st.sampled_from(pairs), unique_by=tuple, max_size=6))
    else:
        interaction["cycles"] = draw(st.integers(1, 3))
    if kind in ("chain", "debate") and draw(st.booleans()):
        interaction["last_n"] = draw(st.integers(1, 3))
    elif kind != "graph" and draw(st.booleans()):
        interaction["remember"] = True
    if kind == "rounds":
        interaction["network"] = draw(st.sampled_from(["complete", "star"]))
    cast = []
    for name in names[:size]:
        each = draw(members)
        drawn = each.pop("drawn", None)
        cast.append({"name": name, **each, **({} if drawn is None else {"draws": drawn[0], "selector": drawn[1]})})
    memory = draw(st.sampled_from(["cumulative", "reflective"])) if interaction.get("remember") else "none"
    spec = {
        "name": "random",
        "seed": draw(st.integers(0, 3)),
        "task": "Say something.",
        "cast": cast,
        "interaction": interaction,
        "cognition": {"memory": memory},
        "measurement": {"probe": draw(probes)},
    }
    return {**spec, "roles": draw(roles)}


def _simulation(spec: dict[str, Any], journal: MemoryJournal, client: Any, slots: int = 1) -> Simulation:
    experiment = load_experiment(spec)
    parts = assemble(experiment.runs[0], experiment.resources)
    n = parts.schedule.n_agents + len(parts.schedule.others)
    endpoints = [Endpoint(client)] * n
    calls = RunCalls("run", journal, endpoints, SlotPool(slots))
    return Simulation(parts.schedule, parts.cast(), calls)


def _rows(simulation: Simulation) -> list[tuple[Any, ...]]:
    return [
        (turn.index, turn.step, turn.agent, turn.act, turn.reads, *message)
        for turn, message in simulation.engine.graph.transcript()
    ]


def _ended(spec: dict[str, Any], journal: MemoryJournal, client: Any, slots: int = 1) -> tuple[Any, str]:
    """All turns of a run on a virtual clock, and the error that ended it."""
    simulation = _simulation(spec, journal, client, slots)
    try:
        run_virtual(simulation.run())
    except ModelCallError as error:
        return _rows(simulation), str(error)
    return _rows(simulation), ""


def _entries(journal: MemoryJournal) -> list[tuple[Any, ...]]:
    """What was asked and answered, apart from time."""
    return sorted(
        (*entry.key, entry.prompt_hash, entry.text, entry.acceptance, entry.reason) for entry in journal.records
    )


latencies = st.lists(st.floats(0.0, 9.0, allow_nan=False), min_size=1, max_size=7)


def _from(waits: Sequence[float]) -> Callable[[int], float]:
    return lambda seed: waits[seed % len(waits)]


@examples(100)
@given(structures(), latencies, st.integers(1, 6))
def test_any_slots_and_latencies_give_the_turns_of_one_call_at_a_time(
    spec: dict[str, Any], waits: list[float], slots: int
) -> None:
    first, second = MemoryJournal(), MemoryJournal()
    expected, error = _ended(spec, first, Moody())
    found, other = _ended(spec, second, Moody(_from(waits)), slots)
    assert bool(error) == bool(other)
    if error:  # which of several failures comes first depends on timing; the turns that both have are the same
        both = {row[0]: row for row in expected}
        assert all(both.get(row[0], row) == row for row in found)
    else:
        assert found == expected
        assert _entries(second) == _entries(first)
        for *_, text, _author, _agent, status, _role, _act, _decision, _turn in found:
            # A refusal keeps its words on record; nobody is shown them.
            assert status == "refused" or bool(text.strip()) == (status in ("answered", "truncated"))


@examples(100)
@given(structures(), latencies, st.integers(1, 6), st.floats(0.0, 30.0), st.data())
def test_a_run_that_was_killed_and_resumed_equals_one_that_was_not(
    spec: dict[str, Any], waits: list[float], slots: int, kill_at: float, data: st.DataObject
) -> None:
    expected, error = _ended(spec, MemoryJournal(), Moody())
    journal = MemoryJournal()
    killed = _simulation(spec, journal, Moody(_from(waits)), slots)

    async def until_killed() -> None:
        task = asyncio.ensure_future(killed.run())
        await asyncio.sleep(kill_at)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(until_killed())
    arrived = journal.records
    survived = MemoryJournal(arrived[: data.draw(st.integers(0, len(arrived)))])
    kept = {entry.seed for entry in survived.records}
    model = Moody(_from(waits[::-1]))
    found, other = _ended(spec, survived, model, slots)
    assert not kept & set(model.asked), "a call on record was paid for again"
    if not error and not other:
        assert found == expected
        assert _ended(spec, survived, ReplayOnly())[0] == expected


@examples(60)
@given(structures(), latencies, st.integers(1, 4), st.sampled_from(["0", "89", "3f"]))
def test_a_failure_names_agent_and_step_and_a_later_run_makes_it_good(
    spec: dict[str, Any], waits: list[float], slots: int, fails: str
) -> None:
    expected, error = _ended(spec, MemoryJournal(), Moody())
    journal = MemoryJournal()
    rows, failed = _ended(spec, journal, Moody(_from(waits), fails), slots)
    if failed:
        assert failed.startswith("run run, step ")
        assert ", agent " in failed
    if error:
        return
    assert all(row in expected for row in rows)
    assert _ended(spec, journal, Moody(), slots) == (expected, "")


SCRIPT = """
from tests.deliberation.test_exactness import HASHED, Moody, _ended
from opinionsim.llm import MemoryJournal
for spec in HASHED:
    print(_ended(spec, MemoryJournal(), Moody(), 4))
"""
HASHED: list[dict[str, Any]] = [
    {
        "name": "hashed",
        "task": "Say something.",
        "cast": [{"name": name, "draws": 2, "selector": "longest"} for name in names],
        "roles": {"moderator": {"persona": "second_wave", "without": ["empathy"]}},
        "interaction": interaction,
    }
    for interaction in (
        {"kind": "graph", "edges": [["Ben", "Ada"], ["Cleo", "Ada"], ["Dan", "Ben"], ["Dan", "Cleo"], ["Dan", "Ada"]]},
        {"kind": "rounds", "network": "star", "order": "shuffled"},
        {"kind": "chain", "cycles": 2, "order": "shuffled", "instructions": "first_wave"},
    )
]


def test_runs_are_equal_under_any_seed_of_hashes() -> None:
    """Sets and dictionaries of names lead to no order (B9, 13)."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in (0, 1, 4242)
    }
    assert len(printed) == 1
    assert "Answer" in printed.pop()
