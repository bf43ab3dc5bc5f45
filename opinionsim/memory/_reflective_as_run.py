"""Reflective memory as the published code ran it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opinionsim.llm import REFLECT
from opinionsim.memory._memory import KeptMessages
from opinionsim.messages import SPOKEN, Ask, Message, Reply, take_as_is
from opinionsim.prompts import Act
from opinionsim.registry import part


@part("memory", name="reflective-as-run")
@dataclass(frozen=True, slots=True)
class ReflectiveAsRunMemory(KeptMessages):
    """Reflective memory as the published code of Chuang et al. 2024 ran it (A11).

    The wording of a first reflection is used once a run; every other request holds the newest event in
    the slot meant for the past reflection; reflections are appended, so that memory grows; and the agent
    of the run's first turn keeps that event as well. Where a reflection is refused or empty, the event stands in
    memory in its place.
    """

    calls_per_event: ClassVar[int] = 1
    templates: ClassVar[tuple[str, ...]] = ("event", "reflect", "recollection")
    treats_first: ClassVar[bool] = True

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> ReflectiveAsRunMemory:
        """The memory with one more reflection; asks for a call ``reflect``."""
        event = self.prompts.event(act, received, reply, self.past)
        past = self.past.advance(act, received, reply.status)
        first = self.leads and self.kept.length == self.start.length
        request = self.prompts.reflection([event], None) if first else self.prompts.reflection([], event)
        reflection = await ask(REFLECT, self.prompt().then(request), parse=take_as_is, dropped=self.dropped)
        if reflection.status not in SPOKEN:
            return replace(self, past=past, kept=self.kept.then(event))
        added = (event,) if first else ()
        kept = self.kept.then(*added, self.prompts.recollection(reflection))
        return replace(self, past=past, kept=kept)
