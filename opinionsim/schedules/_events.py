"""Events around any schedule with known turns: messages, zealots, media, and agents that join or leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from opinionsim.errors import ScheduleError
from opinionsim.messages import Message
from opinionsim.schedules._dyadic_acts import REVIEW
from opinionsim.schedules._turns import (
    PARTICIPANT,
    ActSpec,
    AnySchedule,
    External,
    Ref,
    StaticSchedule,
    Turn,
    called,
    named,
    with_own,
)
from opinionsim.schedules._wrapped import Wrapped

#: Kinds of events.
EventKind = Literal["message", "zealot", "media", "leave", "join", "ties"]


@dataclass(frozen=True)
class Event:
    """An event in a run.

    Attributes
    ----------
    kind : str
        A ``message`` is shown once, at the beginning of its step. A ``zealot`` makes no calls while it lasts; agents
        that would read a turn of it read its text instead. ``media`` are shown with a given probability in addition to
        the messages of a turn. An agent is absent from the step in which it leaves (``leave``), or before the step in
        which it joins (``join``). A change of ``ties`` has no effect here because the schedule already includes it
        (:func:`with_phases`).
    step : int
        First step, from 1.
    agents : tuple of int
        Agents that see the message, post the text, leave or join.
    texts : tuple of str
        Texts of a message, shown together in order; or texts of a zealot or of media, of which each use takes the next
        one and starts again after the last. Empty if agents leave or join.
    until : int or None
        Last step of a zealot or of media; None for the end.
    probability : float
        Probability in [0, 1] that a reading turn shows the media.
    seed : int
        Seed of the random draws for media: one draw for each turn of the schedule, even if it shows nothing.
    """

    kind: EventKind
    step: int
    agents: tuple[int, ...]
    texts: tuple[str, ...] = ()
    until: int | None = None
    probability: float = 1.0
    seed: int = 0

    def lasts(self, step: int) -> bool:
        """Whether a zealot or media are active in a step."""
        return self.step <= step and (self.until is None or step <= self.until)


def _remembered_report(act: ActSpec) -> bool:
    """Whether an agent remembers a report that no other agent reads."""
    return not act.heard and act.opinion == "states" and act.memory == "keep"


def _responds(act: ActSpec) -> bool:
    """Whether an agent answers others and they read its answer."""
    return act.heard and act.answers


def takes_reviews(acts: Mapping[str, ActSpec]) -> bool:
    """Whether agents can see a message in a separate turn, because they review posts or remember their reports."""
    return REVIEW.name in acts or any(map(_remembered_report, acts.values()))


def takes_reads(acts: Mapping[str, ActSpec]) -> bool:
    """Whether agents can see a message together with others, because they review posts or respond to one another."""
    return REVIEW.name in acts or any(map(_responds, acts.values()))


def acts_with(acts: Mapping[str, ActSpec], kinds: Iterable[str]) -> Mapping[str, ActSpec]:
    """The acts of a schedule with events of these kinds: its own acts, and reviews if messages need them."""
    own = [act for act in acts.values() if _remembered_report(act)]
    if REVIEW.name in acts or not own or "message" not in kinds:
        return acts
    return named(*acts.values(), replace(REVIEW, draws=own[0].draws, selector=own[0].selector))


def with_events(schedule: AnySchedule, events: Sequence[Event], names: Sequence[str] = ()) -> AnySchedule:
    """Add events to a schedule.

    The draws of the schedule do not depend on events. A turn drops out if its agent is absent or a zealot, or if every
    message that it would read comes from a dropped turn. A turn that keeps some of its messages reads those. Off-record
    questions do not drop out; they are asked without the missing messages.

    Parameters
    ----------
    schedule : StaticSchedule
        Any schedule whose turns are known in advance, including probes.
    events : sequence of Event
        The events. Their messages are the externals ``event-0``, ``event-1``, ... by place in this sequence; several
        texts are ``event-0.0``, ``event-0.1``, ...; posts of a zealot have the agent's number added, as in
        ``event-0-agent-3``.
    names : sequence of str
        Names of the participants, for messages of zealots; default none.

    Returns
    -------
    StaticSchedule
        The schedule itself if there are no events. If agents review or remember reports, they review a message in a
        separate turn before the others of its step; otherwise, each agent reads it in its next reading turn.

    Raises
    ------
    ScheduleError
        If the schedule decides its turns during the run, or already has external messages of these names.
    """
    return _Eventful(schedule, tuple(events), names) if events else schedule


def dropped_turns(schedule: AnySchedule) -> int:
    """Number of turns that drop out of a schedule because of events."""
    return schedule.dropped() if isinstance(schedule, _Eventful) else 0


def text_name(place: int, event: Event, text: int, agent: int | None = None) -> str:
    """Name of the external message with a text of the event at a place in the list of events."""
    which = f".{text}" if len(event.texts) > 1 else ""
    return f"event-{place}{which}" + ("" if agent is None else f"-agent-{agent}")


def _externals(events: Sequence[Event], names: Sequence[str]) -> Iterator[tuple[str, Message]]:
    """The messages of events, by name."""
    for place, event in enumerate(events):
        for number, text in enumerate(event.texts):
            if event.kind != "zealot":
                yield text_name(place, event, number), Message(text)
                continue
            for agent in event.agents:
                author = names[agent] if names else ""
                yield text_name(place, event, number, agent), Message(text, author, agent, role=PARTICIPANT)


class _Eventful(Wrapped):
    """A static schedule with events; see :func:`with_events`."""

    def __init__(self, schedule: AnySchedule, events: tuple[Event, ...], names: Sequence[str]) -> None:
        super().__init__(schedule)
        if not isinstance(schedule, StaticSchedule):
            raise ScheduleError(
                f"{called(schedule)} decides its turns during the run, but events need turns that are known in advance"
            )
        self.acts = acts_with(schedule.acts, [event.kind for event in events])
        told = dict(_externals(events, names))
        if taken := sorted(told.keys() & schedule.externals.keys()):
            raise ScheduleError(f"{called(schedule)} has an external message {taken[0]!r}; rename it")
        self.externals = {**schedule.externals, **told}
        self._events = events

    def turns(self) -> Iterator[Turn]:
        """The remaining turns and those that show messages, renumbered."""
        return (turn for turn in _Telling(self._schedule, self._events, self.acts).turns() if turn is not None)

    def dropped(self) -> int:
        """Number of turns that drop out."""
        return sum(turn is None for turn in _Telling(self._schedule, self._events, self.acts).turns())


class _Telling:
    """One pass over the turns of a schedule with events."""

    def __init__(self, schedule: StaticSchedule, events: Sequence[Event], acts: Mapping[str, ActSpec]) -> None:
        self._schedule = schedule
        self._acts = acts
        self._joins: dict[int, int] = {}
        self._leaves: dict[int, float] = {}
        self._zealots: dict[int, list[tuple[int, Event]]] = {}
        self._messages: list[tuple[int, Event]] = []
        self._media: list[_Media] = []
        for place, event in enumerate(events):
            if event.kind == "message":
                self._messages.append((place, event))
            elif event.kind == "media":
                self._media.append(_Media(place, event))
            for agent in event.agents:
                if event.kind == "join":
                    self._joins[agent] = event.step
                elif event.kind == "leave":
                    self._leaves[agent] = event.step
                elif event.kind == "zealot":
                    self._zealots.setdefault(agent, []).append((place, event))
        # The last one is taken first.
        self._messages.sort(key=lambda told: told[1].step, reverse=True)
        #: What others read of each turn of the schedule: a turn, the text of a zealot, or nothing.
        self._place: list[Ref | None] = []
        #: Last answer of each agent that was given, as a turn of this schedule.
        self._answered: dict[int, int] = {}
        #: Number of texts that zealots have posted, by place of the event and agent.
        self._posted: dict[tuple[int, int], int] = {}
        #: Messages that agents are to be shown in their next turn.
        self._waiting: dict[int, list[External]] = {}
        self._index = 0

    def turns(self) -> Iterator[Turn | None]:
        """The turns in order; None in the place of each that drops out."""
        for turn in self._schedule.turns():
            yield from self._shown(turn.step)
            yield self._told(turn)
        yield from self._shown(inf)

    def _shown(self, step: float) -> Iterator[Turn | None]:
        """The turns in which messages of steps up to this one are reviewed."""
        while self._messages and self._messages[-1][1].step <= step:
            place, event = self._messages.pop()
            reads = tuple(External(text_name(place, event, number)) for number in range(len(event.texts)))
            for agent in event.agents:
                if self._silent(agent, event.step):
                    yield None
                elif REVIEW.name in self._acts:
                    yield Turn(self._index, event.step, agent, REVIEW.name, reads)
                    self._index += 1
                else:
                    self._waiting.setdefault(agent, []).extend(reads)

    def _told(self, turn: Turn) -> Turn | None:
        """A turn of the schedule with what it still reads, and what it is shown beside; None if it drops out."""
        act = self._acts[turn.act]
        # Off-record questions have no coin, so that probes change nothing in other turns.
        beside = [] if act.memory == "fork" else [told for media in self._media if (told := media.shown(turn))]
        now = [self._place[ref] if isinstance(ref, int) else ref for ref in turn.reads]
        kept: list[Ref] = [ref for ref in now if ref is not None]
        if self._silent(turn.agent, turn.step):
            self._place.append(self._posted_by_zealot(turn))
            return None
        if turn.reads and not kept and act.memory != "fork":
            self._place.append(None)
            return None
        if act.memory != "fork" and (turn.reads or _responds(act)):
            kept = [*self._waiting.pop(turn.agent, ()), *kept, *beside]
        own = self._answered.get(turn.agent)
        if act.memory == "fork" and turn.reads and own is not None:
            # An agent without memory is shown its own last answer with questions, also where later turns drop out.
            kept = [*with_own(kept, own)]
        if _responds(act):
            self._answered[turn.agent] = self._index
        self._place.append(self._index)
        self._index += 1
        return replace(turn, index=self._index - 1, reads=tuple(kept))

    def _posted_by_zealot(self, turn: Turn) -> External | None:
        """What others read in the place of a turn of a zealot; None for one of an agent that is absent."""
        agent = turn.agent
        if self._absent(agent, turn.step):
            return None
        place, event = next(told for told in self._zealots[agent] if told[1].lasts(turn.step))
        number = self._posted.get((place, agent), 0)
        # A turn that nobody hears uses up no text.
        if self._acts[turn.act].heard:
            self._posted[place, agent] = number + 1
        return External(text_name(place, event, number % len(event.texts), agent))

    def _absent(self, agent: int, step: int) -> bool:
        return step < self._joins.get(agent, 0) or step >= self._leaves.get(agent, inf)

    def _silent(self, agent: int, step: int) -> bool:
        """Whether an agent is asked nothing in a step."""
        return self._absent(agent, step) or any(event.lasts(step) for _, event in self._zealots.get(agent, ()))


class _Media:
    """A medium in the course of one pass over the turns."""

    def __init__(self, place: int, event: Event) -> None:
        self._place = place
        self._event = event
        self._readers = frozenset(event.agents)
        self._rng = np.random.default_rng(event.seed)
        self._shown = 0

    def shown(self, turn: Turn) -> External | None:
        """The message that a turn is shown beside those it reads; None where the coin says so, or it cannot be."""
        falls = self._rng.random() < self._event.probability
        if not (falls and turn.reads and turn.agent in self._readers and self._event.lasts(turn.step)):
            return None
        number = self._shown % len(self._event.texts)
        self._shown += 1
        return External(text_name(self._place, self._event, number))
