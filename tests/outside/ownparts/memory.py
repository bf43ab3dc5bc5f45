from dataclasses import dataclass, replace
from typing import ClassVar

import opinionsim as osim
from opinionsim.memory import KeptMessages


@osim.part("memory")
@dataclass(frozen=True, slots=True)
class Newest(KeptMessages):
    """Only the newest event is remembered."""

    calls_per_event: ClassVar[int] = 0
    templates: ClassVar[tuple[str, ...]] = ("event",)

    async def remember(self, act, received, reply, ask):
        event = self.prompts.event(act, received, reply, self.past)
        past = self.past.advance(act, received, reply.condition)
        return replace(self, past=past, kept=self.start.then(event))
