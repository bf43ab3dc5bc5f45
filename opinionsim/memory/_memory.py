"""The contract of memories, and a base that keeps messages under a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Protocol

from opinionsim.messages import EMPTY_PROMPT, Ask, ChatMessage, Message, Prompt, Reply
from opinionsim.prompts import Act, AgentPrompts, Frame, Past


class Memory(Protocol):
    """An agent's memory, an immutable value that each turn replaces with a new one.

    Every prompt of the agent begins with the start, which is its system message if it has one. This includes
    :meth:`prompt` and the calls that the memory makes through `ask`.
    """

    calls_per_event: ClassVar[int]
    """Number of successive calls made to remember one turn."""
    templates: ClassVar[tuple[str | Frame, ...]]
    """Templates that it uses: names in the prompt pack, or frames that it defines itself."""
    treats_first: ClassVar[bool]
    """Whether it treats the run's first memory-keeping turn differently."""

    def __init__(
        self, prompts: AgentPrompts, token_budget: int | None, start: Prompt, *, leads: bool, **options: Any
    ) -> None: ...

    @property
    def past(self) -> Past:
        """What the agent has done so far."""
        ...

    @property
    def dropped(self) -> int:
        """How many remembered messages the token budget leaves out of :meth:`prompt`."""
        ...

    def prompt(self) -> Prompt:
        """The part of a prompt before the task: the start, then remembered messages, oldest first."""
        ...

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> Memory:
        """Return the memory after one more turn.

        Parameters
        ----------
        act : Act
            The agent's act.
        received : sequence of Message
            Messages that it saw.
        reply : Reply
            Its reply, which may be refused or empty.
        ask : Ask
            Calls the chat model; reflective memories use it for the call ``reflect``.
        """
        ...


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its characters, rounded up.

    This rule of thumb for English needs no tokenizer, so a budget means the same for every model.
    """
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class KeptMessages:
    """Remembered messages under a token budget.

    Attributes
    ----------
    prompts : AgentPrompts
        Makes the texts of messages.
    token_budget : int or None
        Maximum number of estimated tokens (:func:`estimated_tokens`) of remembered messages in a prompt, >= 1. The
        oldest are left out first. If the newest message exceeds the budget, all are left out. None means no limit.
    start : Prompt
        Beginning of all the agent's prompts.
    past : Past
        What the agent has done so far.
    kept : Prompt
        The start, then all remembered messages, oldest first; by default only the start.
    leads : bool
        Whether the agent carries out the run's first memory-keeping turn, the one with the lowest index; set only
        if `treats_first`.
    shown : Prompt
        The start, and the newest remembered messages that fit the budget; computed once.
    """

    calls_per_event: ClassVar[int]
    templates: ClassVar[tuple[str | Frame, ...]]
    treats_first: ClassVar[bool] = False

    prompts: AgentPrompts
    token_budget: int | None = None
    start: Prompt = EMPTY_PROMPT
    past: Past = field(default_factory=Past)
    kept: Prompt = EMPTY_PROMPT
    leads: bool = False
    shown: Prompt = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.kept.length < self.start.length:
            object.__setattr__(self, "kept", self.start)
        object.__setattr__(self, "shown", self._fitting())

    def _fitting(self) -> Prompt:
        """The start and the newest messages that fit; if all fit, `kept` itself, which prompts share."""
        if self.token_budget is None:
            return self.kept
        left = self.token_budget
        newest: list[ChatMessage] = []
        for message in islice(reversed(self.kept), self.kept.length - self.start.length):
            left -= estimated_tokens(message.content)
            if left < 0:
                return self.start.then(*reversed(newest))
            newest.append(message)
        return self.kept

    @property
    def remembered(self) -> tuple[ChatMessage, ...]:
        """All remembered messages, oldest first, whether they fit the budget or not."""
        newest = islice(reversed(self.kept), self.kept.length - self.start.length)
        return tuple(newest)[::-1]

    def prompt(self) -> Prompt:
        """The start, then the newest remembered messages that fit the budget, oldest first."""
        return self.shown

    @property
    def dropped(self) -> int:
        """How many remembered messages the token budget leaves out of :meth:`prompt`."""
        return self.kept.length - self.shown.length
