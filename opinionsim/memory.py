"""What an agent carries from one turn to the next, as messages of its next prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Protocol

from opinionsim.errors import SpecError
from opinionsim.messages import Ask, ChatMessage, Message
from opinionsim.prompts import Act, AgentPrompts, Past

__all__ = [
    "MEMORIES",
    "CumulativeMemory",
    "Memory",
    "ReflectiveAsRunMemory",
    "ReflectiveMemory",
    "estimated_tokens",
    "new_memory",
]


class Memory(Protocol):
    """An agent's memory: an immutable value that each turn replaces by a new one.

    The calls it makes go through the `ask` of the turn that is remembered. Their messages hold no system
    message; whoever provides `ask` puts it in front.
    """

    calls_per_event: ClassVar[int]
    """Chat calls that remembering one turn costs, one after another."""

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

    async def remember(
        self, act: Act, received: Sequence[Message], text: str, ask: Ask, *, first: bool = False
    ) -> Memory:
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
        first : bool
            Whether this is the memory-keeping turn with the lowest index of the whole run.
        """
        ...


def estimated_tokens(text: str) -> int:
    """Tokens a text is taken to have: a quarter of its characters, rounded up.

    A rule of thumb for English that needs no tokenizer, so that a budget means the same with every model.
    """
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class _KeptMessages:
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


@dataclass(frozen=True, slots=True)
class CumulativeMemory(_KeptMessages):
    """Every turn leaves one narrated message, which never changes (Chuang et al. 2023; A7).

    Without a budget, the messages of a prompt are a prefix of those of every later prompt.
    """

    calls_per_event: ClassVar[int] = 0

    async def remember(
        self, act: Act, received: Sequence[Message], text: str, ask: Ask, *, first: bool = False
    ) -> CumulativeMemory:
        """The memory with one more event; asks nothing."""
        event = self.prompts.event(act, received, text, self.past)
        return replace(self, past=self.past.advance(act, received), kept=(*self.kept, event))


@dataclass(frozen=True, slots=True)
class ReflectiveMemory(_KeptMessages):
    """After every turn the agent sums up its experience; only the newest summary is kept.

    Chuang et al. 2023 as published (A8). The request holds the past summary and the new event, whatever
    the budget: they are its task.
    """

    calls_per_event: ClassVar[int] = 1

    async def remember(
        self, act: Act, received: Sequence[Message], text: str, ask: Ask, *, first: bool = False
    ) -> ReflectiveMemory:
        """The memory with its summary replaced; asks for part ``reflect``."""
        event = self.prompts.event(act, received, text, self.past)
        summary = self.kept[-1] if self.kept else None
        reply = await ask("reflect", (self.prompts.reflection(event, summary),))
        kept = (self.prompts.recollection(reply.shown),)
        return replace(self, past=self.past.advance(act, received), kept=kept)


@dataclass(frozen=True, slots=True)
class ReflectiveAsRunMemory(_KeptMessages):
    """Reflective memory as the published code ran it (A11).

    The wording of a first reflection is used once a run; every other request holds the newest event in
    the slot meant for the past reflection; reflections are appended, so that memory grows; and the agent
    of the run's first turn keeps that event as well.
    """

    calls_per_event: ClassVar[int] = 1

    async def remember(
        self, act: Act, received: Sequence[Message], text: str, ask: Ask, *, first: bool = False
    ) -> ReflectiveAsRunMemory:
        """The memory with one more reflection; asks for part ``reflect``."""
        event = self.prompts.event(act, received, text, self.past)
        request = self.prompts.reflection(event, None) if first else self.prompts.reflection(None, event)
        reply = await ask("reflect", (*self.messages(), request), dropped=self.dropped)
        added = (event,) if first else ()
        kept = (*self.kept, *added, self.prompts.recollection(reply.shown))
        return replace(self, past=self.past.advance(act, received), kept=kept)


#: Memories by the name a specification gives them.
MEMORIES: Mapping[str, type[CumulativeMemory] | type[ReflectiveMemory] | type[ReflectiveAsRunMemory]] = (
    MappingProxyType(
        {
            "cumulative": CumulativeMemory,
            "reflective": ReflectiveMemory,
            "reflective-as-run": ReflectiveAsRunMemory,
        }
    )
)


def new_memory(kind: str, prompts: AgentPrompts, token_budget: int | None = None) -> Memory:
    """An empty memory.

    Parameters
    ----------
    kind : {"cumulative", "reflective", "reflective-as-run"}
        Which memory.
    prompts : AgentPrompts
        The agent's wording.
    token_budget : int, optional
        Most estimated tokens of remembered messages in a prompt, >= 1: the oldest are dropped first.
        Default no limit.

    Raises
    ------
    SpecError
        If the kind is unknown or the budget below 1.
    """
    if kind not in MEMORIES:
        raise SpecError(f"memory must be one of {', '.join(MEMORIES)}; got {kind!r}")
    if token_budget is not None and token_budget < 1:
        raise SpecError(f"token_budget must be a number of tokens >= 1, or none for no limit; got {token_budget}")
    return MEMORIES[kind](prompts, token_budget)
