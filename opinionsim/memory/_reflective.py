"""Reflective memory as published: one summary, replaced after every event."""

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
    """After every turn the agent sums up its experience; only the newest summary is kept.

    Chuang et al. 2023 as published (A8). The request holds the past summary and the new event, regardless of the
    budget. Where the reflection is refused or empty, both stay in memory, and the next request holds both.

    Attributes
    ----------
    summed_up : bool
        Whether the first remembered message is a summary; those after it are events not yet summed up.
    """

    calls_per_event: ClassVar[int] = 1
    templates: ClassVar[tuple[str, ...]] = ("event", "reflect", "recollection")

    summed_up: bool = False

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> ReflectiveMemory:
        """The memory with a new summary, or with the event where the reflection fails; asks for a call ``reflect``."""
        event = self.prompts.event(act, received, reply, self.past)
        past = self.past.advance(act, received, reply.status)
        summary, events = (self.remembered[0], self.remembered[1:]) if self.summed_up else (None, self.remembered)
        request = self.prompts.reflection((*events, event), summary)
        reflection = await ask(REFLECT, self.start.then(request), parse=take_as_is)
        if reflection.status not in SPOKEN:
            return replace(self, past=past, kept=self.kept.then(event))
        kept = self.start.then(self.prompts.recollection(reflection))
        return replace(self, past=past, kept=kept, summed_up=True)
