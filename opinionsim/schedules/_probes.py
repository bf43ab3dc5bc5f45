"""Off-record questions around any schedule."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from opinionsim.classifiers import read_closed
from opinionsim.errors import SpecError
from opinionsim.foundation.forms import Form
from opinionsim.messages import Message, Numbers, take_as_is
from opinionsim.opinions import OpinionScale
from opinionsim.schedules._dyadic_acts import PROBE, SELF_REPORT
from opinionsim.schedules._turns import (
    AdaptiveSchedule,
    AnySchedule,
    Outcomes,
    Ref,
    Turn,
    called,
    closing,
    named,
    outline,
    placed,
)
from opinionsim.schedules._wrapped import Wrapped


@dataclass(frozen=True)
class _MovedOutcomes:
    """Outcomes seen from a schedule whose turns were moved to later places, which are listed in order."""

    outcomes: Outcomes
    places: list[int]

    async def reply(self, turn: int) -> Message:
        message = await self.outcomes.reply(self.places[turn])
        return message._replace(turn=turn, decision=self._back(message.decision))

    async def decision(self, turn: int) -> Any:
        return self._back(await self.outcomes.decision(self.places[turn]))

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        second = None if about is None else self.places[about]
        return await self.outcomes.opinion(self.places[turn], instrument, second)

    def _back(self, decision: Any) -> Any:
        """Numbers of turns, by the indices that the schedule gave these; any other decision as it is."""
        if isinstance(decision, Numbers):
            return Numbers({bisect_left(self.places, turn): said for turn, said in decision.items()})
        return decision


class _Probed(Wrapped):
    """Base of probed schedules: probes of every participant, before (step 0), every few steps and after (step T)."""

    def __init__(self, schedule: AnySchedule, before: int, after: int, every: int | None, act: str) -> None:
        super().__init__(schedule)
        asked = PROBE if act == PROBE.name else SELF_REPORT
        own = schedule.acts.get(act, asked)
        if replace(own, labelling=asked.labelling) != asked:
            raise SpecError(f"{called(schedule)} already has an act {act!r}; rename that act to ask this question")
        # What an agent is shown in the place of a memory holds its own messages too.
        told_apart = replace(asked, labelling="you-other") if after and closing(schedule) else own
        self._asked = [agent for agent in range(self.n_agents) if agent not in self.given]
        self.acts = named(*schedule.acts.values(), told_apart)
        self._act = act
        self._before, self._after, self._every = before, after, every or max(self.steps, 1)
        #: Places of the schedule's own turns among all, in order.
        self._places: list[int] = []

    def closing(self) -> Mapping[int, tuple[Ref, ...]]:
        """Messages shown with questions after the last step."""
        found = closing(self._schedule)
        if found and not self._places:
            whole: Any = self
            deque(outline(whole), 0)  # takes note of the places
        return {agent: placed(reads, self._places) for agent, reads in found.items()}

    def _around(self, turns: Iterator[Turn]) -> Iterator[Turn]:
        asking = self._begun()
        yield from asking.start()
        for turn in turns:
            yield from asking.with_turn(turn)
        yield from asking.end()

    def _begun(self) -> _Asking:
        # New places for each pass, so that one begun anew takes nothing from one that others still read.
        self._places = []
        return _Asking(self, self._places)


class _Asking:
    """One pass over the turns of a probed schedule."""

    def __init__(self, probed: _Probed, places: list[int]) -> None:
        self._probed, self.places = probed, places
        self._index, self._due = 0, probed._every

    def start(self) -> Iterator[Turn]:
        """The questions before the first step."""
        for _ in range(self._probed._before):
            yield from self._round(0)

    def with_turn(self, turn: Turn) -> Iterator[Turn]:
        """A turn of the schedule, after the questions that are due by then."""
        yield from self._until(turn.step)
        self.places.append(self._index)
        self._index += 1
        yield replace(turn, index=self._index - 1, reads=placed(turn.reads, self.places))

    def end(self) -> Iterator[Turn]:
        """The questions that are left."""
        yield from self._until(self._probed.steps)
        shown = self._probed.closing() if self._probed._after else {}
        for _ in range(self._probed._after):
            yield from self._round(self._probed.steps, shown)

    def _until(self, step: int) -> Iterator[Turn]:
        while self._due < min(step, self._probed.steps):
            yield from self._round(self._due)
            self._due += self._probed._every

    def _round(self, step: int, shown: Mapping[int, tuple[Ref, ...]] = MappingProxyType({})) -> Iterator[Turn]:
        for agent in self._probed._asked:
            yield Turn(self._index, step, agent, self._probed._act, shown.get(agent, ()))
            self._index += 1


class _ProbedStatic(_Probed):
    def turns(self) -> Iterator[Turn]:
        return self._around(self._schedule.turns())


class _ProbedAdaptive(_Probed):
    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        asking = self._begun()
        for each in asking.start():
            yield each
        async for turn in self._schedule.decide(_MovedOutcomes(outcomes, asking.places)):
            for each in asking.with_turn(turn):
                yield each
        for each in asking.end():
            yield each

    def outline(self) -> Iterator[Turn]:
        """The largest set of turns that the schedule can have, with the probes."""
        return self._around(outline(self._schedule))


def stated_on(schedule: AnySchedule, scale: OpinionScale) -> AnySchedule:
    """Return the schedule with self-reports that name a point of a scale; people choose one of its labels."""
    if SELF_REPORT.name in schedule.acts:
        read: dict[str, Any] = {"parse": partial(read_closed, scale), "written": take_as_is, "after": "none"}
        form = Form("choice", scale.labels)
        acts = schedule.acts.values()
        schedule.acts = named(
            *(replace(act, form=form, **read) if act.name == SELF_REPORT.name else act for act in acts)
        )
    return schedule


def with_probes(
    schedule: AnySchedule,
    before: int = 0,
    after: int = 0,
    act: Literal["probe", "self-report"] = "probe",
    every: int | None = None,
) -> AnySchedule:
    """Add off-record questions to every agent before the first step, after the last, and between steps.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        The schedule to put probes around.
    before, after : int
        Questions to each agent before the first and after the last step, >= 0.
    act : {"probe", "self-report"}
        Whether agents answer in their own words or with a point of the scale.
    every : int, optional
        Number of steps between further questions to each agent, which are not asked after the last step; default none.

    Returns
    -------
    StaticSchedule or AdaptiveSchedule
        A schedule of the same kind. Agents do not remember the questions, so they do not change the turns in between.
    """
    if before < 0 or after < 0:
        raise SpecError(
            f"measurement.{act.replace('-', '_')}: before and after must be at least 0; got {before} and {after}"
        )
    if not before and not after and not every:
        return schedule
    probed = _ProbedAdaptive if isinstance(schedule, AdaptiveSchedule) else _ProbedStatic
    return probed(schedule, before, after, every, act)
