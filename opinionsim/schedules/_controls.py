"""Schedules without interaction, with messages from outside, and probes around any schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.messages import Message
from opinionsim.schedules._acts import PROBE, REPORT, REPORT_ONCE, REVIEW, SELF_REPORT
from opinionsim.schedules._adaptive import TieChange, tie_changes
from opinionsim.schedules._turns import (
    AdaptiveSchedule,
    AnySchedule,
    External,
    Outcomes,
    Schedule,
    StaticSchedule,
    Turn,
    named,
    outline,
)

__all__ = ["Exposure", "IndependentReports", "RememberedReports", "with_probes"]


class IndependentReports(Schedule):
    """Every agent reports its opinion a number of times, each time as if for the first time.

    The no-interaction control as Chuang et al. 2023 write it; with one bare agent, their no-role-play
    control (A12).

    Parameters
    ----------
    n_agents : int
        N >= 1.
    reports : int
        Reports an agent gives, >= 0; one a step.
    """

    acts = named(REPORT_ONCE)

    def __init__(self, n_agents: int, reports: int) -> None:
        if n_agents < 1 or reports < 0:
            raise SpecError(f"reports need at least one agent and a number >= 0; got N = {n_agents}, {reports} reports")
        self.n_agents = n_agents
        self.steps = reports

    def turns(self) -> Iterator[Turn]:
        """One ``report-once`` an agent in each step."""
        for index in range(self.steps * self.n_agents):
            yield Turn(index, index // self.n_agents + 1, index % self.n_agents, "report-once")


class RememberedReports(Schedule):
    """In each step one agent, drawn uniformly, reports its opinion and remembers having done so.

    The no-interaction control as Chuang et al. ran it (A12): reports of an agent are not independent.

    Parameters
    ----------
    n_agents : int
        N >= 1.
    steps : int
        T >= 0.
    rng : numpy.random.Generator
        Draws the agents.
    """

    acts = named(REPORT)

    def __init__(self, n_agents: int, steps: int, rng: np.random.Generator) -> None:
        if n_agents < 1 or steps < 0:
            raise SpecError(f"reports need at least one agent and steps >= 0; got N = {n_agents}, T = {steps}")
        self.n_agents = n_agents
        self.steps = steps
        self.agents = rng.integers(n_agents, size=steps)

    def turns(self) -> Iterator[Turn]:
        """One ``report`` a step."""
        for t, agent in enumerate(self.agents.tolist()):
            yield Turn(t, t + 1, agent, "report")


class Exposure(Schedule):
    """In each step one agent, drawn uniformly, reviews a message from outside the run.

    Parameters
    ----------
    n_agents : int
        N >= 1.
    steps : int
        T >= 0.
    messages : sequence of Message or str
        What may be shown, at least one.
    order : {"random", "sequence"}
        Whether each step draws a message uniformly or takes the next one, starting over at the end.
    rng : numpy.random.Generator
        Draws the agents and messages.
    """

    acts = named(REVIEW)

    def __init__(
        self, n_agents: int, steps: int, messages: Sequence[Message | str], order: str, rng: np.random.Generator
    ) -> None:
        if n_agents < 1 or steps < 0 or not messages:
            raise SpecError(
                f"exposure needs at least one agent, steps >= 0 and at least one message; "
                f"got N = {n_agents}, T = {steps}, {len(messages)} messages"
            )
        if order not in ("random", "sequence"):
            raise SpecError(f"interaction.order: unknown {order!r}; valid: random, sequence")
        self.n_agents = n_agents
        self.steps = steps
        messages_by_name = {f"external-{i}": message for i, message in enumerate(messages)}
        self.externals: Mapping[str, Message | str] = MappingProxyType(messages_by_name)
        self.agents = rng.integers(n_agents, size=steps)
        shown = rng.integers(len(messages), size=steps) if order == "random" else np.arange(steps) % len(messages)
        self.shown = shown

    def turns(self) -> Iterator[Turn]:
        """One ``review`` a step."""
        for t, (agent, message) in enumerate(zip(self.agents.tolist(), self.shown.tolist(), strict=True)):
            yield Turn(t, t + 1, agent, "review", (External(f"external-{message}"),))


def _shifted(turn: Turn, by: int) -> Turn:
    """The same turn `by` places later."""
    reads = tuple(ref + by if isinstance(ref, int) else ref for ref in turn.reads)
    return replace(turn, index=turn.index + by, reads=reads)


@dataclass(frozen=True)
class _ShiftedOutcomes:
    """Outcomes seen from a schedule whose turns were moved to later places."""

    outcomes: Outcomes
    by: int

    async def reply(self, turn: int) -> Message:
        return await self.outcomes.reply(turn + self.by)

    async def decision(self, turn: int) -> Any:
        return await self.outcomes.decision(turn + self.by)

    async def opinion(self, turn: int, instrument: str = "stance") -> float:
        return await self.outcomes.opinion(turn + self.by, instrument)


class _Probed(Schedule):
    """What both kinds of probed schedule share: probes of every participant, before (step 0) and after (step T)."""

    def __init__(self, schedule: AnySchedule, before: int, after: int, act: str) -> None:
        self.n_agents = schedule.n_agents
        self.others = schedule.others
        self.steps = schedule.steps
        self.externals = schedule.externals
        self.needs = schedule.needs
        asked = PROBE if act == PROBE.name else SELF_REPORT
        if schedule.acts.get(act, asked) is not asked:
            raise SpecError(f"{type(schedule).__name__} has an act {act!r} of its own; rename it to ask this question")
        self.acts = named(*schedule.acts.values(), asked)
        self._act = act
        self._n_before = before * schedule.n_agents
        self._n_after = after * schedule.n_agents

    def _before(self) -> Iterator[Turn]:
        return (Turn(i, 0, i % self.n_agents, self._act) for i in range(self._n_before))

    def _after(self, start: int) -> Iterator[Turn]:
        return (Turn(start + i, self.steps, i % self.n_agents, self._act) for i in range(self._n_after))

    def _around(self, turns: Iterator[Turn]) -> Iterator[Turn]:
        yield from self._before()
        end = self._n_before
        for turn in turns:
            end = turn.index + self._n_before + 1
            yield _shifted(turn, self._n_before)
        yield from self._after(end)


class _ProbedStatic(_Probed):
    def __init__(self, schedule: StaticSchedule, before: int, after: int, act: str) -> None:
        super().__init__(schedule, before, after, act)
        self._schedule = schedule

    def turns(self) -> Iterator[Turn]:
        return self._around(self._schedule.turns())


class _ProbedAdaptive(_Probed):
    def __init__(self, schedule: AdaptiveSchedule, before: int, after: int, act: str) -> None:
        super().__init__(schedule, before, after, act)
        self._schedule = schedule

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        for turn in self._before():
            yield turn
        end = self._n_before
        async for turn in self._schedule.decide(_ShiftedOutcomes(outcomes, self._n_before)):
            end = turn.index + self._n_before + 1
            yield _shifted(turn, self._n_before)
        for turn in self._after(end):
            yield turn

    @property
    def skips(self) -> bool:
        """Whether steps may go by without a turn."""
        return bool(getattr(self._schedule, "skips", False))

    @property
    def changes(self) -> Sequence[TieChange]:
        """How the network has changed so far."""
        return tie_changes(self._schedule)

    def outline(self) -> Iterator[Turn]:
        """The turns the schedule can have, between the probes."""
        return self._around(outline(self._schedule))


def with_probes(
    schedule: AnySchedule,
    before: int = 0,
    after: int = 0,
    act: Literal["probe", "self-report"] = "probe",
) -> AnySchedule:
    """A schedule with off-record questions to every agent before the first and after the last step.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        What happens in between.
    before, after : int
        Questions to each agent at either end, >= 0.
    act : {"probe", "self-report"}
        Whether agents answer in their own words or with a point of the scale.

    Returns
    -------
    StaticSchedule or AdaptiveSchedule
        Of the same kind. The questions enter no memory, so the turns in between are what they were.
    """
    if before < 0 or after < 0:
        raise SpecError(
            f"measurement.{act.replace('-', '_')}: before and after must be at least 0; got {before} and {after}"
        )
    if not before and not after:
        return schedule
    if isinstance(schedule, AdaptiveSchedule):
        return _ProbedAdaptive(schedule, before, after, act)
    return _ProbedStatic(schedule, before, after, act)
