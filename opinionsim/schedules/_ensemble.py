"""Ensembles: agents answer by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opinionsim.registry import part
from opinionsim.schedules._interaction import Conflict, Setting
from opinionsim.schedules._structure import Structure
from opinionsim.schedules._turns import Ref, Turn


@part("interaction", name="ensemble")
class EnsembleInteraction(Structure):
    """All agents answer at once, and are shown nothing of others: also the control without deliberation."""

    own: bool = False
    """Whether an agent is shown its own earlier answers, as it is in a chain."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, own answers shown to agents that remember them included."""
        if self.own and self.remember:
            yield ("own",), "has no effect on agents that remember what they answered; give one of both"
        yield from super().conflicts(size)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One answer of each agent in each cycle."""
        earlier: dict[int, tuple[int, ...]] = dict.fromkeys(range(setting.size), ())
        index = 0
        for cycle, order in self.orders(setting):
            for agent in order:
                yield Turn(index, cycle, agent, "respond", earlier[agent])
                if self.own:
                    earlier[agent] += (index,)
                index += 1

    def next_reads(self, setting: Setting, turns: Sequence[Turn]) -> dict[int, tuple[Ref, ...]]:
        """Its own answers, where it is shown them."""
        return {turn.agent: (*turn.reads, turn.index) if self.own else () for turn in turns}
