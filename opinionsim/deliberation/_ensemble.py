"""Ensembles: agents answer by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opinionsim.deliberation._structure import Structure
from opinionsim.deliberation._structure_acts import RESPOND
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.messages import Message
from opinionsim.registry import part
from opinionsim.schedules import PARTICIPANT, Conflict, External, Ref, Setting, Turn, blank_messages


@part("interaction", name="ensemble")
class EnsembleInteraction(Structure):
    """All agents answer at once without seeing other answers. Use it also as the control without deliberation.

    After Plurals (Ashkinaze et al. 2025).
    """

    own: bool = False
    """Whether an agent sees its own earlier answers, as in a chain."""
    messages: str | tuple[str, ...] = ()
    """Messages from outside that every agent sees whenever it answers, or the path of a file with them."""

    @property
    def shows(self) -> bool:
        """Whether agents are shown their own answers or messages from outside."""
        return self.own or bool(self.messages)

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, blank messages included."""
        if self.own and self.remember:
            yield ("own",), "cannot be combined with remember, which also shows earlier answers; use one of them"
        if self.instructions and not self.shows:
            yield (
                ("instructions",),
                "has no effect, because agents see no answers; leave it out, or give own or messages",
            )
        yield from blank_messages(self.messages)
        yield from super().conflicts(size)

    def identity(self, setting: Setting) -> dict[str, Any]:
        """Identity that includes the content of messages, not their file."""
        fields = super().identity(setting)
        return {**fields, "messages": digest(canonical_json(self._texts(setting)))} if self.messages else fields

    def externals(self, setting: Setting) -> Mapping[str, Message]:
        """The messages from outside, which agents see as answers of others."""
        texts = enumerate(self._texts(setting))
        return {f"external-{i}": Message(text, role=PARTICIPANT) for i, text in texts}

    def _texts(self, setting: Setting) -> tuple[str, ...]:
        return setting.messages(self.messages) if self.messages else ()

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One answer of each agent in each cycle."""
        told: tuple[Ref, ...] = tuple(map(External, self.externals(setting)))
        earlier = dict.fromkeys(range(setting.size), told)
        index = 0
        for cycle, order in self.orders(setting):
            for agent in order:
                yield Turn(index, cycle, agent, RESPOND.name, earlier[agent])
                if self.own:
                    earlier[agent] += (index,)
                index += 1

    def next_reads(self, setting: Setting, turns: Sequence[Turn]) -> dict[int, tuple[Ref, ...]]:
        """The agent's earlier answers, if it sees them."""
        return {turn.agent: (*turn.reads, turn.index) if self.own else turn.reads for turn in turns}
