"""Messages from outside that agents review."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.messages import Message
from opinionsim.registry import part
from opinionsim.schedules._acts import REVIEW
from opinionsim.schedules._dyadic import drawn_listeners
from opinionsim.schedules._interaction import Conflict, Setting, SteppedInteraction
from opinionsim.schedules._turns import External, Schedule, Turn, named
from opinionsim.streams import canonical_json, digest


def blank_messages(messages: str | tuple[str, ...]) -> Iterator[Conflict]:
    """Problems of the field `messages`: a text, or the path of a file, without a character in it."""
    if isinstance(messages, str):
        if not messages.strip():
            yield ("messages",), "must not be blank"
    else:
        for position, text in enumerate(messages):
            if not text.strip():
                yield ("messages", position), "must not be blank"


class Exposure(Schedule):
    """In each step one agent reviews a message from outside the run.

    Agents are drawn uniformly, as the listeners of random dyads on the complete network: in the same block, whoever
    reviews here in a step is the one who listens there.

    Parameters
    ----------
    n_agents : int
        N >= 1.
    steps : int
        T >= 0.
    messages : sequence of Message or str
        Messages that may be shown, at least one.
    order : {"random", "sequence"}
        Whether each step draws a message uniformly or takes the next one, starting over at the end.
    rng : numpy.random.Generator
        Draws the agents and messages.
    """

    acts = named(REVIEW)

    def __init__(
        self, n_agents: int, steps: int, messages: Sequence[Message | str], order: str, rng: np.random.Generator
    ) -> None:
        if n_agents < 1 or steps < 0 or not messages:
            raise SpecError(
                f"exposure needs at least one agent, steps >= 0 and at least one message; "
                f"got N = {n_agents}, T = {steps}, {len(messages)} messages"
            )
        if order not in ("random", "sequence"):
            raise SpecError(f"interaction.order: unknown {order!r}; valid: random, sequence")
        self.n_agents = n_agents
        self.steps = steps
        messages_by_name = {f"external-{i}": message for i, message in enumerate(messages)}
        self.externals: Mapping[str, Message | str] = MappingProxyType(messages_by_name)
        self.agents = drawn_listeners(n_agents, steps, rng)
        shown = rng.integers(len(messages), size=steps) if order == "random" else np.arange(steps) % len(messages)
        self.shown = shown

    def turns(self) -> Iterator[Turn]:
        """One ``review`` a step."""
        for t, (agent, message) in enumerate(zip(self.agents.tolist(), self.shown.tolist(), strict=True)):
            yield Turn(t, t + 1, agent, "review", (External(f"external-{message}"),))


@part("interaction", name="external")
class ExternalInteraction(SteppedInteraction):
    """In each step the listener of random dyads reviews a message from outside."""

    acts = Exposure.acts
    played_by = ("chat models",)

    messages: str | tuple[str, ...]
    """The messages, or the path of a file: YAML or JSON with a list under messages, otherwise one message a line."""
    order: Literal["sequence", "random"] = "random"
    """Whether messages are shown in turn or drawn."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, missing or blank messages included."""
        if not self.messages and self.messages != "":
            yield ("messages",), "must have at least 1 entry"
        yield from blank_messages(self.messages)
        yield from super().conflicts(size)

    def identity(self, setting: Setting) -> dict[str, Any]:
        """Identity in which messages enter by content, not by file."""
        fields = super().identity(setting)
        return {**fields, "messages": digest(canonical_json(setting.messages(self.messages)))}

    def schedule(self, setting: Setting) -> Exposure:
        """Reviews of the messages by the listeners that random dyads on the complete network have."""
        messages = setting.messages(self.messages)
        return Exposure(setting.size, self.steps_for(setting.size), messages, self.order, setting.rng)
