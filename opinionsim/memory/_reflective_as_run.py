"""Reflective memory as the published code ran it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from opinionsim.memory._memory import KeptMessages
from opinionsim.messages import Ask, Message, take_as_is
from opinionsim.prompts import Act
from opinionsim.registry import part


@part("memory", name="reflective-as-run")
@dataclass(frozen=True, slots=True)
class ReflectiveAsRunMemory(KeptMessages):
    """Reflective memory as the published code ran it (A11).

    The wording of a first reflection is used once a run; every other request holds the newest event in
    the slot meant for the past reflection; reflections are appended, so that memory grows; and the agent
    of the run's first turn keeps that event as well.
    """

    calls_per_event: ClassVar[int] = 1
    templates: ClassVar[tuple[str, ...]] = ("event", "reflect", "recollection")
    treats_first: ClassVar[bool] = True

    async def remember(self, act: Act, received: Sequence[Message], text: str, ask: Ask) -> ReflectiveAsRunMemory:
        """The memory with one more reflection; asks for part ``reflect``."""
        event = self.prompts.event(act, received, text, self.past)
        first = self.leads and self.kept.length == self.start.length
        request = self.prompts.reflection(event, None) if first else self.prompts.reflection(None, event)
        reply = await ask("reflect", self.prompt().then(request), parse=take_as_is, dropped=self.dropped)
        added = (event,) if first else ()
        kept = self.kept.then(*added, self.prompts.recollection(reply.shown))
        return replace(self, past=self.past.advance(act, received), kept=kept)
