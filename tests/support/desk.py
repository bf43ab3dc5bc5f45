"""A caller with everything it works with, and a model whose replies are known beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from opinionsim.conduct import CutOff, NoAnswer, ReplyPolicy
from opinionsim.errors import Rejected
from opinionsim.llm import Entry, EntryKey, MemoryJournal, RunCalls, SlotPool
from opinionsim.messages import AS_IS, ChatMessage, Message, Parsing, Prompt, Reply
from opinionsim.schedules import Turn
from opinionsim.testing import run_virtual

TURN = Turn(7, 3, 2, "write")
PROMPT = (ChatMessage("system", "You are Ann."), ChatMessage("user", "Write."))

#: Replies that are no answers, by what they are instead.
MISSING = {
    "refused": AIMessage("", additional_kwargs={"refusal": "I will not."}),
    "empty": AIMessage("  "),
    "truncated": AIMessage("I believe that", response_metadata={"finish_reason": "length"}),
}


def short(call: str, text: str, received: tuple[Message, ...]) -> str:
    """Accept short texts only; they decide what they say."""
    if len(text) > 5:
        raise Rejected(f"{len(text)} letters are too many")
    return text.upper()


PICKY = Parsing(short)


def asking_again(times: int) -> ReplyPolicy:
    """The policy that asks so many times again, whatever a reply is instead of an answer."""
    none = NoAnswer(reask=times)
    return ReplyPolicy(refused=none, off_role=none, empty=none, truncated=CutOff(reask=min(times, 10)))


#: Every reply is taken as what it is; none is asked for again.
AT_ONCE = asking_again(0)


def answered(text: str, **fields: Any) -> Entry:
    """The entry of the first attempt at PROMPT, whenever it arrived."""
    prompt = Prompt.of(PROMPT)
    return Entry(EntryKey(7, "reply", 0), 3, 2, "write", prompt.identity, text, prompt=prompt, **fields)


class Client:
    """Gives its replies in turn, each after a second or as said by its number; raises those that are errors."""

    def __init__(self, *replies: str | AIMessage | Exception, latency: float | Callable[[int], float] = 1.0) -> None:
        self.replies = list(replies)
        self.latency = latency if callable(latency) else lambda number: latency
        self.asked: list[float] = []
        self.prompts: list[tuple[ChatMessage, ...]] = []
        self.seeds: list[int] = []
        self.lengths: list[int | None] = []

    async def call(self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None) -> AIMessage:
        self.prompts.append(tuple(messages))
        self.seeds.append(seed)
        self.lengths.append(max_tokens)
        number = len(self.seeds)
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.latency(number))
        reply = self.replies[number - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)


class Desk:
    """A caller and what it works with."""

    def __init__(self, client: Any, journal: MemoryJournal | None = None, slots: int = 1, **options: Any) -> None:
        self.client = client
        self.journal = journal if journal is not None else MemoryJournal()
        self.slots = SlotPool(slots)
        self.calls = RunCalls("run-1", self.journal, client, self.slots, **options)

    async def ask(self, reading: Parsing = AS_IS, call: str = "reply", turn: Turn = TURN, **options: Any) -> Reply:
        return await self.calls.ask(turn, call, PROMPT, reading=reading, **options)

    @property
    def attempts(self) -> list[tuple[int, str, str]]:
        """Attempt, text and outcome of every entry, in the order of arrival."""
        return [(record.key.attempt, record.text, record.acceptance) for record in self.journal.records]


def fails(desk: Desk, error: type[Exception], message: str, reading: Parsing = AS_IS) -> None:
    """The next question fails in the stated way and leaves no slot held."""
    with pytest.raises(error, match=message):
        run_virtual(desk.ask(reading))
    assert desk.slots.in_flight == 0
