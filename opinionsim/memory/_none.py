"""No memory: every turn is as if it were the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from opinionsim.messages import EMPTY_PROMPT, Ask, Message, Prompt
from opinionsim.prompts import Act, Past

__all__ = ["NoMemory"]


@dataclass(frozen=True, slots=True)
class NoMemory:
    """An agent without a memory: nothing of its past stands in any prompt.

    Attributes
    ----------
    start : Prompt
        What stands before everything the agent is asked.
    """

    calls_per_event: ClassVar[int] = 0
    templates: ClassVar[tuple[str, ...]] = ()

    start: Prompt = EMPTY_PROMPT

    @property
    def past(self) -> Past:
        """Nothing has happened yet."""
        return Past()

    @property
    def dropped(self) -> int:
        """Nothing is left out, for nothing is kept."""
        return 0

    def prompt(self) -> Prompt:
        """The start, and nothing else."""
        return self.start

    async def remember(self, act: Act, received: Sequence[Message], text: str, ask: Ask) -> NoMemory:
        """The same: nothing is remembered, and nobody asked."""
        return self
