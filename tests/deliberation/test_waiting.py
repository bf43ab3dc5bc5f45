"""A ready turn waits only for what it reads: structures on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from opinionsim.assembly import assemble
from opinionsim.deliberation import NumberedReplies
from opinionsim.engine import Simulation
from opinionsim.llm import Endpoint, MemoryJournal, RunCalls, SlotPool
from opinionsim.messages import ChatMessage
from opinionsim.specification import load_experiment
from opinionsim.testing import run_virtual

NAMES = ("Ada", "Ben", "Cleo", "Dan")


@dataclass
class Paced:
    """A chat model whose latency is that of the agent it plays, 1 s unless told; notes when calls begin and end."""

    slow: dict[str, float] = field(default_factory=dict)
    times: list[tuple[str, float, float]] = field(default_factory=list)
    in_flight: int = 0
    most: int = 0

    async def call(self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None) -> AIMessage:
        who = next((name for name in NAMES if messages[0].content == f"Be {name}."), "Moderator")
        clock = asyncio.get_running_loop().time
        began = clock()
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(self.slow.get(who, 1.0))
        self.in_flight -= 1
        self.times.append((who, began, clock()))
        return AIMessage(NumberedReplies.reply(messages[-1].content, seed))


@dataclass
class Counts:
    """Turns started and unfinished: now, and at most."""

    now: int = 0
    most: int = 0


@dataclass
class Counted:
    """An actor whose turns are counted."""

    actor: Any
    counts: Counts

    async def act(self, *given: Any) -> None:
        self.counts.now += 1
        self.counts.most = max(self.counts.most, self.counts.now)
        await self.actor.act(*given)
        self.counts.now -= 1

    def fork(self) -> Counted:
        return Counted(self.actor.fork(), self.counts)


def _simulation(
    client: Any, slots: int, names: Sequence[str] = NAMES, counts: Counts | None = None, **fields: Any
) -> Simulation:
    cast = [{"name": name, "system": f"Be {name}."} for name in names]
    experiment = load_experiment({"name": "paced", "task": "Say something.", "cast": cast, **fields})
    parts = assemble(experiment.runs[0], experiment.resources)
    endpoints = [Endpoint(client)] * (parts.schedule.n_agents + len(parts.schedule.others))
    members = parts.cast()
    if counts is not None:
        members = tuple(replace(member, actor=Counted(member.actor, counts)) for member in members)
    return Simulation(parts.schedule, members, RunCalls("run", MemoryJournal(), endpoints, SlotPool(slots)))


def _played(interaction: dict[str, Any], slots: int = 100, slow: Any = None, **fields: Any) -> dict[str, list[Any]]:
    """(began, ended) of the calls of each agent, in order."""
    model = Paced(slow or {})
    run_virtual(_simulation(model, slots, interaction={"order": "cast", **interaction}, **fields).run())
    found: dict[str, list[Any]] = {}
    for who, began, ended in sorted(model.times, key=lambda each: each[1:]):
        found.setdefault(who, []).append((began, ended))
    return found


def test_in_a_diamond_a_branch_goes_on_while_another_is_slow() -> None:
    edges = [["Ada", "Ben"], ["Ben", "Dan"]]
    found = _played({"kind": "graph", "edges": edges}, slow={"Cleo": 9.0}, roles={"moderator": {}})
    assert found["Ada"] == [(0, 1)]
    assert found["Cleo"] == [(0, 9)]
    assert found["Ben"] == [(1, 2)]
    assert found["Dan"] == [(2, 3)], "there are no waves"
    assert found["Moderator"] == [(9, 10)]


def test_the_two_arms_of_a_diamond_run_side_by_side() -> None:
    edges = [["Ada", "Ben"], ["Ada", "Cleo"], ["Ben", "Dan"], ["Cleo", "Dan"]]
    found = _played({"kind": "graph", "edges": edges}, slow={"Ben": 3.0})
    assert (found["Ben"], found["Cleo"], found["Dan"]) == ([(1, 4)], [(1, 2)], [(4, 5)])


def test_rounds_have_no_barrier() -> None:
    """On the path Ada - Ben - Cleo - Dan a slow Ada holds up Ben, and Dan only once that has come round to him."""
    path = {"kind": "edges", "edges": [[0, 1], [1, 2], [2, 3]]}
    found = _played({"kind": "rounds", "cycles": 3, "network": path}, slow={"Ada": 5.0})
    assert found["Ada"] == [(0, 5), (5, 10), (10, 15)]
    assert found["Ben"] == [(0, 1), (5, 6), (10, 11)]
    assert found["Cleo"] == [(0, 1), (1, 2), (6, 7)]
    assert found["Dan"] == [(0, 1), (1, 2), (2, 3)]


def test_cycles_of_an_ensemble_do_not_wait_for_each_other() -> None:
    found = _played({"kind": "ensemble", "cycles": 3}, slow={"Ada": 5.0}, roles={"moderator": {"automatic": True}})
    assert found["Ada"] == [(0, 5)] * 3
    assert found["Ben"] == [(0, 1)] * 3
    assert found["Moderator"] == [(0, 1), (5, 6)], "it instructs itself at once, and moderates once all have answered"


def test_agents_that_see_their_own_answers_wait_for_these_alone() -> None:
    found = _played({"kind": "ensemble", "cycles": 2, "own": True}, slow={"Ada": 5.0})
    assert found["Ada"] == [(0, 5), (5, 10)]
    assert found["Ben"] == [(0, 1), (1, 2)]


def test_a_chain_with_a_window_waits_for_the_window_alone() -> None:
    """Each reads the one before it, so a chain of whispers is as long as it has turns."""
    found = _played({"kind": "chain", "last_n": 1, "cycles": 2}, slow={"Ben": 2.0})
    assert found["Dan"][-1] == (9, 10)
    assert [began for began, _ in found["Ada"]] == [0, 5]


@pytest.mark.parametrize("slots", [1, 7, 64])
def test_a_large_ensemble_has_few_turns_under_way(slots: int) -> None:
    """At most four times as many turns as slots are started and unfinished, for each holds its prompt."""
    model = Paced()
    names = [f"agent {number}" for number in range(600)]
    counts = Counts()
    run_virtual(
        _simulation(model, slots, names, counts, interaction={"kind": "ensemble"}, roles={"moderator": {}}).run()
    )
    assert model.most == slots
    assert slots <= counts.most <= 4 * slots
    assert len(model.times) == 601
