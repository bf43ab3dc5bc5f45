"""Actors: who carries out turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from opinionsim.engine import Publish
from opinionsim.errors import ScheduleError
from opinionsim.memory import Memory
from opinionsim.messages import Ask, ChatMessage, Message, Reply
from opinionsim.prompts import AgentPrompts
from opinionsim.schedules import ActSpec, Turn

__all__ = ["PersonaActor"]


class PersonaActor:
    """An agent that plays a persona: it reads, answers through a chat model, and remembers.

    Parameters
    ----------
    agent : int
        Its number.
    prompts : AgentPrompts
        Everything it may be told, for its persona and the run's conditions.
    memory : Memory
        Its memory before the first turn.
    acts : mapping of str to ActSpec
        What the turns' acts mean.
    is_first : callable
        Whether a turn is the memory-keeping turn with the lowest index of the run.
    """

    def __init__(
        self,
        agent: int,
        prompts: AgentPrompts,
        memory: Memory,
        acts: Mapping[str, ActSpec],
        is_first: Callable[[Turn], bool],
    ) -> None:
        self.agent = agent
        self.prompts = prompts
        self.memory = memory
        self._blank = memory
        self._acts = acts
        self._is_first = is_first
        system = prompts.system()
        self._system = () if system is None else (system,)

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Answer the turn's task from memory, hand the answer over, then remember it."""
        spec = self._acts[turn.act]
        memory = self.memory if spec.memory != "none" else self._blank
        messages = (*self._system, *memory.messages(), self.prompts.task(spec, received, memory.past))
        reply = await _draw(spec, partial(ask, messages=messages, dropped=memory.dropped))
        publish(Message(reply.text, self.prompts.name, self.agent, reply.condition))
        if spec.memory == "keep":
            asking, first = self._as_persona(ask), self._is_first(turn)
            self.memory = await memory.remember(spec, received, reply.shown, asking, first=first)

    def fork(self) -> PersonaActor:
        """The same agent as it is now; memories are immutable values, so sharing one is safe."""
        return PersonaActor(self.agent, self.prompts, self.memory, self._acts, self._is_first)

    def preview(self, act: str, received: Sequence[Message] = ()) -> tuple[ChatMessage, ...]:
        """The literal prompt of an act from the present memory, without asking anybody."""
        task = self.prompts.task(self._acts[act], received, self.memory.past)
        return (*self._system, *self.memory.messages(), task)

    def _as_persona(self, ask: Ask) -> Ask:
        """Ask with the system message in front: memory does not know it."""

        def asking(part: str, messages: Iterable[ChatMessage], *, dropped: int = 0) -> Awaitable[Reply]:
            return ask(part, (*self._system, *messages), dropped=dropped)

        return asking


async def _draw(spec: ActSpec, ask: Callable[[str], Awaitable[Reply]]) -> Reply:
    """What a turn says: the one reply, or the one its selector picks from several."""
    if spec.draws == 1:
        return await ask("reply")
    parts = ["reply", *(f"reply.{draw}" for draw in range(2, spec.draws + 1))]
    # A draw that fails must not leave the others behind: what they bring is paid for and goes on record first.
    drawn = await asyncio.gather(*map(ask, parts), return_exceptions=True)
    for reply in drawn:
        if isinstance(reply, BaseException):
            raise reply
    replies = [reply for reply in drawn if isinstance(reply, Reply)]
    try:
        chosen = spec.selector([reply.text for reply in replies]) if spec.selector is not None else 0
    except Exception as error:  # a selector is a function of the user's
        raise ScheduleError(f"the selector of act {spec.name!r} failed with {type(error).__name__}: {error}") from error
    if not 0 <= chosen < len(replies):
        raise ScheduleError(f"the selector of act {spec.name!r} chose {chosen}; valid: 0..{len(replies) - 1}")
    return replies[chosen]
