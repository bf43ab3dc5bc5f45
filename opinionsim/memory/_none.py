"""No memory: every turn is like the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opinionsim.memory._memory import KeptMessages
from opinionsim.messages import Ask, Message, Reply
from opinionsim.prompts import Act
from opinionsim.registry import part


@part("memory", name="none")
@dataclass(frozen=True, slots=True)
class NoMemory(KeptMessages):
    """Prompts show nothing of an agent's past."""

    calls_per_event: ClassVar[int] = 0
    templates: ClassVar[tuple[str, ...]] = ()

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> NoMemory:
        """Return the memory unchanged; makes no call."""
        return self
