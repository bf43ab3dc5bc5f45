"""Off-record questions around any schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from opinionsim.errors import SpecError
from opinionsim.forms import Form
from opinionsim.messages import Message, Numbers
from opinionsim.schedules._acts import PROBE, SELF_REPORT
from opinionsim.schedules._turns import (
    AdaptiveSchedule,
    AnySchedule,
    Outcomes,
    Ref,
    Turn,
    called,
    closing,
    moved,
    named,
    outline,
)
from opinionsim.schedules._wrapped import Wrapped


def _shifted(turn: Turn, by: int) -> Turn:
    """The same turn with its index and the turns it reads moved by `by` places."""
    return replace(turn, index=turn.index + by, reads=moved(turn.reads, by))


@dataclass(frozen=True)
class _ShiftedOutcomes:
    """Outcomes seen from a schedule whose turns were moved to later places."""

    outcomes: Outcomes
    by: int

    async def reply(self, turn: int) -> Message:
        message = await self.outcomes.reply(turn + self.by)
        return message._replace(turn=turn, decision=self._back(message.decision))

    async def decision(self, turn: int) -> Any:
        return self._back(await self.outcomes.decision(turn + self.by))

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        return await self.outcomes.opinion(turn + self.by, instrument, None if about is None else about + self.by)

    def _back(self, decision: Any) -> Any:
        """Numbers of turns, by the indices that the schedule gave these; any other decision as it is."""
        if isinstance(decision, Numbers):
            return Numbers({turn - self.by: said for turn, said in decision.items()})
        return decision


class _Probed(Wrapped):
    """Base of probed schedules: probes of every participant, before (step 0) and after (step T)."""

    def __init__(self, schedule: AnySchedule, before: int, after: int, act: str) -> None:
        super().__init__(schedule)
        asked = PROBE if act == PROBE.name else SELF_REPORT
        own = schedule.acts.get(act, asked)
        if replace(own, labelling=asked.labelling) != asked:
            raise SpecError(f"{called(schedule)} has an act {act!r} of its own; rename it to ask this question")
        # What an agent is shown in the place of a memory holds its own messages too.
        told_apart = replace(asked, labelling="you-other") if after and closing(schedule) else own
        self._asked = [agent for agent in range(self.n_agents) if agent not in self.given]
        self.acts = named(*schedule.acts.values(), told_apart)
        self._act = act
        self._n_before = before * len(self._asked)
        self._n_after = after * len(self._asked)

    def _before(self) -> Iterator[Turn]:
        return (Turn(i, 0, self._asked[i % len(self._asked)], self._act) for i in range(self._n_before))

    def closing(self) -> Mapping[int, tuple[Ref, ...]]:
        """What participants are shown with questions after the last step."""
        return {agent: moved(reads, self._n_before) for agent, reads in closing(self._schedule).items()}

    def _after(self, start: int) -> Iterator[Turn]:
        shown = self.closing()
        for place in range(self._n_after):
            agent = self._asked[place % len(self._asked)]
            yield Turn(start + place, self.steps, agent, self._act, shown.get(agent, ()))

    def _around(self, turns: Iterator[Turn]) -> Iterator[Turn]:
        yield from self._before()
        end = self._n_before
        for turn in turns:
            end = turn.index + self._n_before + 1
            yield _shifted(turn, self._n_before)
        yield from self._after(end)


class _ProbedStatic(_Probed):
    def turns(self) -> Iterator[Turn]:
        return self._around(self._schedule.turns())


class _ProbedAdaptive(_Probed):
    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        for turn in self._before():
            yield turn
        end = self._n_before
        async for turn in self._schedule.decide(_ShiftedOutcomes(outcomes, self._n_before)):
            end = turn.index + self._n_before + 1
            yield _shifted(turn, self._n_before)
        for turn in self._after(end):
            yield turn

    def outline(self) -> Iterator[Turn]:
        """The most turns that the schedule can have, between the probes."""
        return self._around(outline(self._schedule))


def stated_on(schedule: AnySchedule, labels: tuple[str, ...]) -> AnySchedule:
    """The schedule, whose self-reports persons answer by choosing one of the labels of a scale."""
    if SELF_REPORT.name in schedule.acts:
        form = Form("choice", labels)
        acts = schedule.acts.values()
        schedule.acts = named(*(replace(act, form=form) if act.name == SELF_REPORT.name else act for act in acts))
    return schedule


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
        The schedule to put probes around.
    before, after : int
        Questions to each agent before the first and after the last step, >= 0.
    act : {"probe", "self-report"}
        Whether agents answer in their own words or with a point of the scale.

    Returns
    -------
    StaticSchedule or AdaptiveSchedule
        A schedule of the same kind. The questions enter no memory, so they do not change the turns in between.
    """
    if before < 0 or after < 0:
        raise SpecError(
            f"measurement.{act.replace('-', '_')}: before and after must be at least 0; got {before} and {after}"
        )
    if not before and not after:
        return schedule
    probed = _ProbedAdaptive if isinstance(schedule, AdaptiveSchedule) else _ProbedStatic
    return probed(schedule, before, after, act)
