"""Recording the events of a run while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from opinionsim import store
from opinionsim.assembly._assemble import RunParts
from opinionsim.assembly._coding import opinion_rows
from opinionsim.assembly._tie_rows import edge_rows, tie_rows
from opinionsim.engine import Member, Simulation
from opinionsim.measurement import Coded, Instrument, LiveCoding, Measuring
from opinionsim.messages import Message
from opinionsim.schedules import ActSpec, External, Turn, tie_changes

#: Seconds between looks at a full record.
_LOOK_S = 0.01


class Recording:
    """Passes the events of a run to its record, and its texts to its instruments, as they come.

    Parameters
    ----------
    record : store.RunRecord
        The record of the run.
    parts : RunParts
        The parts the run is made of.
    cast : sequence of Member
        The cast of the run.
    measuring : Measuring
        The instruments of the run.

    Notes
    -----
    A witness of the engine (:class:`opinionsim.engine.Witness`). Call :meth:`attend` before the first turn.
    """

    def __init__(self, record: store.RunRecord, parts: RunParts, cast: Sequence[Member], measuring: Measuring) -> None:
        self._record = record
        self._parts = parts
        self._cast = cast
        self._measuring = measuring
        self._n_ties = 0
        self.coding: LiveCoding | None = None

    def attend(self, simulation: Simulation) -> None:
        """Put the cast and the ties at the start on record; texts are coded from now on."""
        self._record.begin(agent_rows(self._cast), edge_rows(self._parts.network))
        self.coding = LiveCoding(
            self._measuring, simulation.text, self._record.has_opinion, partial(_keep, self._record)
        )

    @property
    def full(self) -> bool:
        """Whether turns should wait until the record has written its rows."""
        return self._record.full

    def published(self, turn: Turn, message: Message) -> None:
        """Record a published turn, and have it coded."""
        self.moved()
        self._record.add_turn(turn_row(turn, message, self._parts.schedule.acts))
        if self.coding is not None:
            self.coding.take(turn.index)

    def moved(self) -> None:
        """Record the ties that have moved since the last call."""
        changes = tie_changes(self._parts.schedule)
        if len(changes) > self._n_ties:
            for row in tie_rows(self._parts.network, changes[self._n_ties :]):
                self._record.add_tie(row)
            self._n_ties = len(changes)

    async def room(self) -> None:
        """Wait until the record is not full any more."""
        while self._record.full:
            self._record.check()
            await asyncio.sleep(_LOOK_S)


def _keep(record: store.RunRecord, instrument: Instrument, coded: list[Coded]) -> None:
    record.add_opinions(opinion_rows(instrument, coded))


def turn_row(turn: Turn, message: Message, acts: Mapping[str, ActSpec]) -> store.TurnRow:
    """The store row of a turn."""
    reads = tuple(ref.name if isinstance(ref, External) else ref for ref in turn.reads)
    kind = acts[turn.act].kind
    return store.TurnRow(turn.index, turn.step, turn.agent, turn.act, kind, reads, message.text, message.status)


def agent_rows(cast: Sequence[Member]) -> list[store.AgentRow]:
    """The store rows of the cast of a run."""
    return [
        store.AgentRow(
            agent,
            member.name,
            member.role,
            member.evidence,
            member.opinion,
            {**member.attributes, **member.record},
            member.model,
        )
        for agent, member in enumerate(cast)
    ]
