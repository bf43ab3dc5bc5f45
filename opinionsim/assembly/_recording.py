"""Recording of the events of a run in progress as rows of the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opinionsim import store
from opinionsim.assembly._assemble import RunParts
from opinionsim.assembly._coding import opinion_rows
from opinionsim.engine import Member, Simulation
from opinionsim.measurement import Coded, Instrument, LiveCoding, Measuring
from opinionsim.messages import Message
from opinionsim.networks import Network
from opinionsim.schedules import ActSpec, External, TieChange, Turn, tie_changes

#: Seconds between looks at a full record.
_LOOK_S = 0.01


class Recording:
    """Passes the events of a run to its record, and its texts to its instruments, as they occur.

    Parameters
    ----------
    record : store.RunRecord
        The record of the run.
    parts : RunParts
        The parts of the run.
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
        """Record the cast and the ties at the start, and begin to code texts."""
        record = self._record
        record.begin(agent_rows(self._cast), edge_rows(self._parts.network))

        # No method of this object, which would make a circle with its coding.
        def keep(instrument: Instrument, coded: list[Coded]) -> None:
            record.add_opinions(opinion_rows(instrument, coded))

        self.coding = LiveCoding(self._measuring, simulation.text, record.has_opinion, keep)

    @property
    def full(self) -> bool:
        """Whether turns should wait until the record has written its rows."""
        return self._record.full

    def published(self, turn: Turn, message: Message) -> None:
        """Record a published turn, and pass it on to be coded."""
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
        """Wait until the record is no longer full."""
        while self._record.full:
            self._record.check()
            await asyncio.sleep(_LOOK_S)


def turn_row(turn: Turn, message: Message, acts: Mapping[str, ActSpec]) -> store.TurnRow:
    """The store row of a turn."""
    reads = tuple(ref.name if isinstance(ref, External) else ref for ref in turn.reads)
    kind = acts[turn.act].kind
    said = message.text, message.status, " ".join(message.signs), message.taken
    return store.TurnRow(turn.index, turn.step, turn.agent, turn.act, kind, reads, *said)


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


def edge_rows(network: Any) -> tuple[store.EdgeRow, ...]:
    """Store rows of the ties at the start of a run.

    Parameters
    ----------
    network : Network, networkx graph or None
        The network before the first step; None and a complete network give no rows.
    """
    if network is None:
        return ()
    pairs, weights = Network.of(network).edges
    heavy = [1.0] * len(pairs) if weights is None else weights.tolist()
    return tuple(
        store.EdgeRow(source, target, weight) for (source, target), weight in zip(pairs.tolist(), heavy, strict=True)
    )


def tie_rows(network: Any, changes: Iterable[TieChange]) -> list[store.TieRow]:
    """Store rows of ties that moved, were added or were removed since the rows of :func:`edge_rows`.

    Parameters
    ----------
    network : Network, networkx graph or None
        The network before the first step.
    changes : iterable of TieChange
        Changes in order of steps.
    """
    moved = list(changes)
    if not moved:
        return []
    directed = Network.of(network).directed

    def joined(speaker: int | None, listener: int) -> tuple[int | None, int | None]:
        if speaker is None:
            return None, None
        return (speaker, listener) if directed else (min(speaker, listener), max(speaker, listener))

    return [
        store.TieRow(step, *joined(dropped, listener), *joined(followed, listener))
        for step, listener, dropped, followed in moved
    ]
