"""Equations as actors: agents with numeric opinions on the schedules of language-model agents."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

from opinionsim.classic.kernels._influences import heeding
from opinionsim.classic.kernels._process import Setup, check_untrusted
from opinionsim.classic.kernels._random import fill, new_states
from opinionsim.engine import Publish
from opinionsim.errors import ScheduleError
from opinionsim.messages import Ask, Message
from opinionsim.schedules import PARTICIPANT, Turn


class MeetingActor:
    """An agent of a model of pairwise meetings: it updates its opinion from the messages it reads, and states it.

    It uses several messages in one turn one after another, in the order in which it sees them.

    Parameters
    ----------
    agent : int
        Number of the agent.
    opinion : float
        Initial opinion.
    setup : Setup
        The model, its parameters and its range.
    seed, replicate : int
        Key of the agent's random stream. Its draws do not depend on which agents act before it.
    """

    def __init__(self, agent: int, opinion: float, setup: Setup, seed: int, replicate: int) -> None:
        self.agent = agent
        self._setup = setup
        self._p = setup.model.prepared(setup.p)
        update: Any = setup.model.update
        self._update = heeding(update, setup.variant(), discrete=setup.model.kind == "discrete")
        self._start = self._own = self._encoded(opinion)
        self._state, self._spare = new_states(seed, "classic, agent", replicate, agent)

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Update the opinion from every message received, then state it with enough digits to identify it exactly."""
        for message in received:
            self._meet(message)
        stated = float(self._setup.model.units.decode(np.array([self._own]), self._setup.range)[0])
        publish(Message(repr(stated), agent=self.agent, role=PARTICIPANT, act=turn.act))

    def fork(self) -> MeetingActor:
        """Return a copy of the agent in its current state."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _state=self._state.copy(), _spare=self._spare.copy())
        return twin

    def _meet(self, message: Message) -> None:
        try:
            other = self._encoded(float(message.text))
        except ValueError:
            raise ScheduleError(
                f"agent {self.agent} follows {self._setup.model.name}, which reads only numbers; "
                f"got the message {message.text!r:.60}"
            ) from None
        word = np.zeros(1, dtype=np.uint64)
        author = self.agent if message.agent is None else message.agent
        # Machine words wrap around, which scalars of numpy otherwise warn of.
        with np.errstate(over="ignore"):
            fill(self._state, word)
            self._own = float(
                self._update(self.agent, author, self._own, other, self._start, self._p, word[0], self._spare)
            )

    def _encoded(self, opinion: float) -> float:
        return float(self._setup.model.units.encode(np.array([opinion]), self._setup.range)[0])


class RecordedActor:
    """An agent that states the opinions recorded in a finished simulation.

    Parameters
    ----------
    agent : int
        Its number.
    steps : sequence of int
        Steps of the schedule after which opinions were recorded, ascending from 0.
    opinions : sequence of float
        Its opinion after each of them.
    """

    def __init__(self, agent: int, steps: Sequence[int], opinions: Sequence[float]) -> None:
        self.agent = agent
        self._steps = steps
        self._opinions = opinions

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """State the opinion of this step."""
        place = bisect.bisect_right(self._steps, turn.step) - 1
        text = repr(float(self._opinions[place]))
        publish(Message(text, agent=self.agent, role=PARTICIPANT, act=turn.act))

    def fork(self) -> RecordedActor:
        """Return the agent itself, because it does not change."""
        return self


def meeting_actors(setup: Setup, opinions: np.ndarray, seed: int, replicate: int) -> list[MeetingActor]:
    """Make the actors of a model of pairwise meetings, one per agent, for any schedule.

    Raises
    ------
    SpecError
        If edge weights mean trust in the model, because messages carry no trust.
    """
    check_untrusted(setup.model, setup.network)
    return [MeetingActor(agent, opinion, setup, seed, replicate) for agent, opinion in enumerate(opinions.tolist())]
