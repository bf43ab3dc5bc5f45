"""Messages from outside that agents review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.messages import Message
from opinionsim.registry import part
from opinionsim.schedules._dyadic import drawn_listeners
from opinionsim.schedules._dyadic_acts import REVIEW
from opinionsim.schedules._interaction import Conflict, Setting, SteppedInteraction
from opinionsim.schedules._turns import External, Turn, named


def blank_messages(messages: str | tuple[str, ...]) -> Iterator[Conflict]:
    """Problems of the field `messages`: blank texts, or a blank path."""
    if isinstance(messages, str):
        if not messages.strip():
            yield ("messages",), "must not be blank"
    else:
        for position, text in enumerate(messages):
            if not text.strip():
                yield ("messages", position), "must not be blank"


class OutsideInteraction(SteppedInteraction):
    """Base of interactions in which agents review messages from outside, one in each step."""

    played_by = ("chat models",)

    messages: str | tuple[str, ...]
    """The messages, or the path of a file: YAML or JSON with a list under `messages`, or otherwise one message per
    line."""
    order: Literal["sequence", "random"] = "random"
    """Whether messages are shown in sequence or drawn at random."""

    @property
    def given(self) -> str | tuple[str, ...]:
        """The messages, or the path of their file."""
        return self.messages

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, including missing or blank messages."""
        if not self.given and self.given != "":
            yield ("messages",), "must have at least 1 entry"
        yield from blank_messages(self.given)
        yield from super().conflicts(size)

    def identity(self, setting: Setting) -> dict[str, Any]:
        """Identity that includes the content of messages, not their file."""
        fields = super().identity(setting)
        return {**fields, "messages": digest(canonical_json(setting.messages(self.given)))}

    def externals(self, setting: Setting) -> Mapping[str, Message | str]:
        """The messages, numbered from 0."""
        found = {f"external-{i}": message for i, message in enumerate(setting.messages(self.given))}
        if not found:
            raise SpecError("must have at least 1 entry", "interaction.messages")
        return MappingProxyType(found)

    def shown(self, setting: Setting, rng: np.random.Generator) -> list[External]:
        """The message of each step; `rng` draws them."""
        steps, names = self.steps_for(setting.size), list(self.externals(setting))
        places = rng.integers(len(names), size=steps) if self.order == "random" else np.arange(steps) % len(names)
        return [External(names[place]) for place in places.tolist()]


@part("interaction", name="external")
class Exposure(OutsideInteraction):
    """In each step, the listener of random dyads or every agent reviews a message from outside.

    Agents are drawn uniformly, like the listeners of random dyads on the complete network. In the same block, the agent
    that reviews in a step is the one that listens in random dyads.
    """

    acts = named(REVIEW)

    readers: Literal["drawn", "all"] = "drawn"
    """Whether one random agent or all agents read the message in each step."""

    def turns_a_step(self, size: int) -> int:
        """One, or the number of agents."""
        return size if self.readers == "all" else 1

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One ``review`` per step, or one by each agent."""
        rng, steps = setting.rng, self.steps_for(setting.size)
        drawn = (
            [range(setting.size)] * steps
            if self.readers == "all"
            else [(agent,) for agent in drawn_listeners(setting.size, steps, rng)]
        )
        index = count()
        for t, (agents, message) in enumerate(zip(drawn, self.shown(setting, rng), strict=True)):
            yield from (Turn(next(index), t + 1, agent, "review", (message,)) for agent in agents)
