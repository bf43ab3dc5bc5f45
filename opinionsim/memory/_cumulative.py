"""Cumulative memory, which keeps every event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opinionsim.memory._memory import KeptMessages
from opinionsim.messages import Ask, Message, Reply
from opinionsim.prompts import Act
from opinionsim.registry import part


@part("memory", name="cumulative")
@dataclass(frozen=True, slots=True)
class CumulativeMemory(KeptMessages):
    """Keeps one narrated message per turn, which never changes (Chuang et al. 2023; A7).

    Without a token budget, later prompts begin with all earlier ones and share their text.
    """

    calls_per_event: ClassVar[int] = 0
    templates: ClassVar[tuple[str, ...]] = ("event",)

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> CumulativeMemory:
        """Return the memory with one more event; makes no call."""
        event = self.prompts.event(act, received, reply, self.past)
        return replace(self, past=self.past.advance(act, received, reply.status), kept=self.kept.then(event))
