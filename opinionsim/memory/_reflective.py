"""Reflective memory as published, with one summary that every event replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opinionsim.llm import REFLECT
from opinionsim.memory._memory import KeptMessages
from opinionsim.messages import SPOKEN, Ask, Message, Reply, take_as_is
from opinionsim.prompts import Act
from opinionsim.registry import part


@part("memory", name="reflective")
@dataclass(frozen=True, slots=True)
class ReflectiveMemory(KeptMessages):
    """Keeps only the newest summary, which the agent writes after every turn.

    Chuang et al. 2023 as published (A8). The request for a summary shows the last summary and the new event,
    regardless of the budget. If the reflection is refused or empty, memory and the next request contain both.

    Attributes
    ----------
    summed_up : bool
        Whether the first remembered message is a summary; later ones are events that it does not cover yet.
    """

    calls_per_event: ClassVar[int] = 1
    templates: ClassVar[tuple[str, ...]] = ("event", "reflect", "recollection")

    summed_up: bool = False

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> ReflectiveMemory:
        """Return the memory with a new summary, or with the event if the call ``reflect`` fails."""
        event = self.prompts.event(act, received, reply, self.past)
        past = self.past.advance(act, received, reply.status)
        summary, events = (self.remembered[0], self.remembered[1:]) if self.summed_up else (None, self.remembered)
        request = self.prompts.reflection((*events, event), summary)
        reflection = await ask(REFLECT, self.start.then(request), parse=take_as_is)
        if reflection.status not in SPOKEN:
            return replace(self, past=past, kept=self.kept.then(event))
        kept = self.start.then(self.prompts.recollection(reflection))
        return replace(self, past=past, kept=kept, summed_up=True)
