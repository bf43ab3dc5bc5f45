"""Adaptive schedules of pairs and readers, carried out turn by turn without an engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import networkx as nx

from opinionsim.messages import Message
from opinionsim.networks import Network
from opinionsim.schedules import AdaptiveSchedule, Interaction, Setting, Turn

NAN = float("nan")
Rate = Callable[[Turn], float]


def unmeasured(turn: Turn) -> float:
    """No review has an opinion."""
    return NAN


class Outcomes:
    """Answers at once from the turn, and keeps what was asked."""

    def __init__(self, rate: Rate = unmeasured) -> None:
        self.turns: list[Turn] = []
        self.awaited: list[int] = []
        self._rate = rate

    async def reply(self, turn: int) -> Message:
        raise AssertionError("adaptive schedules act on opinions only")

    decision = reply

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        assert instrument == "stance"
        assert self.turns[turn].act == "review"
        assert turn not in self.awaited
        self.awaited.append(turn)
        return self._rate(self.turns[turn])


async def story(schedule: AdaptiveSchedule, outcomes: Outcomes) -> None:
    """Carry a schedule out."""
    async for turn in schedule.decide(outcomes):
        outcomes.turns.append(turn)


def carried_out(schedule: AdaptiveSchedule, rate: Rate = unmeasured) -> Outcomes:
    """The turns of a schedule whose reviews are rated by `rate`, and the ratings it waited for."""
    outcomes = Outcomes(rate)
    asyncio.run(story(schedule, outcomes))
    return outcomes


def adaptive(interaction: Interaction, network: nx.Graph | Network | int, opinions: Any, seed: int = 3) -> Any:
    """The schedule of an interaction, which must be an adaptive one."""
    schedule = interaction.schedule(Setting.of(network, seed, opinions=opinions))
    assert isinstance(schedule, AdaptiveSchedule)
    return schedule


def pairs_met(schedule: AdaptiveSchedule, rate: Rate = unmeasured) -> dict[int, tuple[int, int]]:
    """(speaker, listener) by step, of a schedule of dyads."""
    turns = carried_out(schedule, rate).turns
    writes, reviews = turns[::2], turns[1::2]
    for write, review in zip(writes, reviews, strict=True):
        assert (write.act, write.reads, review.act, review.reads) == ("write", (), "review", (write.index,))
        assert write.step == review.step
    return {write.step: (write.agent, review.agent) for write, review in zip(writes, reviews, strict=True)}


def authors_shown(schedule: AdaptiveSchedule, rate: Rate = unmeasured) -> list[tuple[int, tuple[int, ...]]]:
    """Of each step of a feed, the reader and the authors it was shown, once the reads are known to be the latest."""
    turns = carried_out(schedule, rate).turns
    n = schedule.n_agents
    assert [(turn.step, turn.agent, turn.act) for turn in turns[:n]] == [(0, agent, "write") for agent in range(n)]
    latest = {agent: agent for agent in range(n)}
    found = []
    for step, (review, write) in enumerate(zip(turns[n::2], turns[n + 1 :: 2], strict=True), 1):
        assert (review.step, review.act, write.step, write.act, write.reads) == (step, "review", step, "write", ())
        assert review.agent == write.agent
        authors = {post: author for author, post in latest.items()}
        found.append((review.agent, tuple(authors[post] for post in review.reads)))
        latest[write.agent] = write.index
    assert len(found) == schedule.steps
    return found
