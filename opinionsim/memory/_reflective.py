"""Reflective memory as published: one summary, replaced after every event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opinionsim.memory._memory import KeptMessages
from opinionsim.messages import Ask, Message, take_as_is
from opinionsim.prompts import Act
from opinionsim.registry import part


@part("memory", name="reflective")
@dataclass(frozen=True, slots=True)
class ReflectiveMemory(KeptMessages):
    """After every turn the agent sums up its experience; only the newest summary is kept.

    Chuang et al. 2023 as published (A8). The request holds the past summary and the new event, regardless of the
    budget.
    """

    calls_per_event: ClassVar[int] = 1
    templates: ClassVar[tuple[str, ...]] = ("event", "reflect", "recollection")

    async def remember(self, act: Act, received: Sequence[Message], text: str, ask: Ask) -> ReflectiveMemory:
        """The memory with its summary replaced; asks for part ``reflect``."""
        event = self.prompts.event(act, received, text, self.past)
        summary = self.kept.message if self.kept.length > self.start.length else None
        reply = await ask("reflect", self.start.then(self.prompts.reflection(event, summary)), parse=take_as_is)
        kept = self.start.then(self.prompts.recollection(reply.shown))
        return replace(self, past=self.past.advance(act, received), kept=kept)
