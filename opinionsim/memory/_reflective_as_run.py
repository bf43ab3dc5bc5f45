"""Reflective memory as the published code implements it."""

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
    """Adds one reflection per turn, as the published code of Chuang et al. 2024 does (A11).

    Each run uses the wording of a first reflection once. All other requests show the newest event in the slot of the
    past reflection. Memory grows, because it keeps all reflections. The agent of the run's first turn also keeps that
    event. If a reflection is refused or empty, the memory keeps the event instead.
    """

    calls_per_event: ClassVar[int] = 1
    templates: ClassVar[tuple[str, ...]] = ("event", "reflect", "recollection")
    treats_first: ClassVar[bool] = True

    async def remember(self, act: Act, received: Sequence[Message], reply: Reply, ask: Ask) -> ReflectiveAsRunMemory:
        """Return the memory with one more reflection, from a call ``reflect``."""
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
