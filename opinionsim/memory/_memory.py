"""What every memory has in common: its contract, and messages kept under a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from opinionsim.messages import Ask, ChatMessage, Message
from opinionsim.prompts import Act, AgentPrompts, Past

__all__ = ["KeptMessages", "Memory", "estimated_tokens"]


class Memory(Protocol):
    """An agent's memory: an immutable value that each turn replaces by a new one.

    The calls it makes go through the `ask` of the turn that is remembered. Their messages hold no system
    message; whoever provides `ask` puts it in front.
    """

    calls_per_event: ClassVar[int]
    """Chat calls that remembering one turn costs, one after another."""
    templates: ClassVar[tuple[str, ...]]
    """Templates of the prompt pack that it is worded with."""

    @property
    def past(self) -> Past:
        """What the agent has done so far."""
        ...

    @property
    def dropped(self) -> int:
        """How many remembered messages the token budget leaves out of :meth:`messages`."""
        ...

    def messages(self) -> tuple[ChatMessage, ...]:
        """The remembered messages, oldest first, that stand before the task in a prompt."""
        ...

    async def remember(self, act: Act, received: Sequence[Message], text: str, ask: Ask) -> Memory:
        """The memory after one more turn.

        Parameters
        ----------
        act : Act
            What the agent did.
        received : sequence of Message
            What it was shown.
        text : str
            What it answered.
        ask : Ask
            The way to the chat model; reflective memories use it for the part ``reflect``.
        """
        ...


def estimated_tokens(text: str) -> int:
    """Tokens a text is taken to have: a quarter of its characters, rounded up.

    A rule of thumb for English that needs no tokenizer, so that a budget means the same with every model.
    """
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class KeptMessages:
    """Remembered messages under a token budget.

    Attributes
    ----------
    prompts : AgentPrompts
        Wording.
    token_budget : int or None
        Most estimated tokens (:func:`estimated_tokens`) of remembered messages in a prompt, >= 1. The
        oldest are left out first, so that a newest message over the budget leaves nothing. None is no limit.
    past : Past
        What the agent has done so far.
    kept : tuple of ChatMessage
        All remembered messages, oldest first.
    """

    calls_per_event: ClassVar[int]
    templates: ClassVar[tuple[str, ...]]

    prompts: AgentPrompts
    token_budget: int | None = None
    past: Past = field(default_factory=Past)
    kept: tuple[ChatMessage, ...] = ()

    def messages(self) -> tuple[ChatMessage, ...]:
        """The newest remembered messages that fit the budget, oldest first."""
        if self.token_budget is None:
            return self.kept
        left = self.token_budget
        for start in range(len(self.kept), 0, -1):
            left -= estimated_tokens(self.kept[start - 1].content)
            if left < 0:
                return self.kept[start:]
        return self.kept

    @property
    def dropped(self) -> int:
        """How many remembered messages the token budget leaves out of :meth:`messages`."""
        return len(self.kept) - len(self.messages())
