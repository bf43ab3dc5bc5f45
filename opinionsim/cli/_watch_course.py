"""The opinions of one run as they change, gathered from what its follower reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opinionsim.store import AgentRow, Event, ExperimentRun, InstrumentRow, Store

__all__ = ["Course", "Gathering", "Line", "shrunk"]


class Line(NamedTuple):
    """The opinions of one agent."""

    name: str
    """Of the agent."""
    assigned: float | None
    """Opinion its persona was given; None where none was."""
    values: tuple[float, ...]
    """Last measured opinion by the end of each step, from the first that is on record; NaN before the first."""


@dataclass(frozen=True)
class Course:
    """The opinions of one run, as far as they are on record.

    Attributes
    ----------
    row : int
        Number of the run.
    what : str
        What is measured, by what, and what it is evidence of.
    low, high : float
        Ends of the scale.
    first, last : int
        First and last step on record; `last` lies before `first` where there is none.
    lines : tuple of Line
        One a participant; none where nothing is measured, or nobody takes part yet.
    """

    row: int
    what: str
    low: float
    high: float
    first: int
    last: int
    lines: tuple[Line, ...]


class Gathering:
    """Follows one run and keeps what its instrument says of each agent, step by step.

    Parameters
    ----------
    store : Store
        An open store.
    row : int
        Number of the run.
    cell : ExperimentRun
        The run, and the instruments it is read with there.

    Raises
    ------
    StoreError
        If the store cannot be read.
    """

    def __init__(self, store: Store, row: int, cell: ExperimentRun) -> None:
        self.row = row
        self.cell = cell
        self._store = store
        self._follower = store.follow(cell.run_id)
        self._instrument_id = cell.instrument_id or next(iter(cell.instruments), None)
        self._instrument: InstrumentRow | None = None
        self._generation = 0
        self._agents: list[AgentRow] = []
        #: Agent and step by turn.
        self._sites: dict[int, tuple[int, int]] = {}
        #: Opinion by agent, step and turn.
        self._values: dict[int, dict[tuple[int, int], float]] = {}

    @property
    def over(self) -> bool:
        """Whether the run had ended when it was looked at last."""
        return self._follower.over

    def look(self) -> Course | None:
        """Everything that is on record by now; None where nothing is ever measured, or nobody takes part yet.

        Raises
        ------
        StoreError
            If the store cannot be read, or the run is damaged.
        """
        events = self._follower.poll()
        if self._follower.state.generation != self._generation:
            self._forget()
        self._take(events)
        if not self._agents:
            self._agents = [each for each in self._store.agents(self.cell.run_id) if each.role == "participant"]
        if self._instrument is None:
            known = {each.instrument_id: each for each in self._store.instruments()}
            self._instrument = known.get(self._instrument_id or "")
        if self._instrument is None or not self._agents:
            return None
        return self._course(self._instrument)

    def _forget(self) -> None:
        """Begin anew, with the run."""
        self._generation = self._follower.state.generation
        self._agents, self._sites, self._values = [], {}, {}

    def _take(self, events: Iterable[Event]) -> None:
        from opinionsim.store import OpinionRow, TurnRow

        for event in events:
            row = event.row
            if isinstance(row, TurnRow):
                self._sites[row.turn] = (row.agent, row.step)
            elif isinstance(row, OpinionRow) and row.instrument_id == self._instrument_id and row.about is None:
                # An opinion comes after its turn.
                agent, step = self._sites[row.turn]
                if not math.isnan(row.value):
                    self._values.setdefault(agent, {})[step, row.turn] = row.value

    def _course(self, instrument: InstrumentRow) -> Course:
        steps = [step for _, step in self._sites.values()]
        first, last = min(steps, default=1), max(steps, default=0)
        lines = [
            Line(agent.name, agent.assigned_opinion, _carried(self._values.get(agent.agent, {}), first, last))
            for agent in self._agents
        ]
        # What these opinions are evidence of stands beside them, as everywhere.
        evidence = " + ".join(sorted({agent.evidence for agent in self._agents}))
        name = f"{instrument.variable} by {instrument.classifier} ({evidence})"
        return Course(self.row, name, min(instrument.points), max(instrument.points), first, last, tuple(lines))


def _carried(values: Mapping[tuple[int, int], float], first: int, last: int) -> tuple[float, ...]:
    """The last opinion by the end of each step."""
    by_step = {step: value for (step, _), value in sorted(values.items())}
    found: list[float] = []
    for step in range(first, last + 1):
        found.append(by_step.get(step, found[-1] if found else math.nan))
    return tuple(found)


def shrunk(values: Sequence[float], width: int) -> list[float]:
    """As many values as there is room for: of each portion of the steps the last one."""
    if len(values) <= width:
        return list(values)
    return [values[(place + 1) * len(values) // width - 1] for place in range(width)]
