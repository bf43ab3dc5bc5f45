"""Common base of structures in a specification: agents answer in an order and read other answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import Field

from opinionsim import schedules
from opinionsim.deliberation._structure_acts import RESPOND
from opinionsim.prompts import Labelling


def balanced_order(n: int, row: int) -> list[int]:
    """One row of a design in which each of n things has each position, and follows each other one, equally often.

    A Williams design (Williams 1949). It has n rows for even n and 2n rows for odd n; further rows repeat these.

    Parameters
    ----------
    n : int
        Number of things, >= 1, from 0.
    row : int
        Row of the design, >= 0. Row 0 of even n begins 0, 1, n-1, 2, n-2.

    Returns
    -------
    list of int, length n
        A permutation.
    """
    zigzag = [0]
    for step in range(1, n):
        zigzag.append((step + 1) // 2 if step % 2 else n - step // 2)
    order = [(place + row) % n for place in zigzag]
    # With odd n each pair of neighbours is balanced only together with the mirrored rows.
    return order[::-1] if n % 2 and row // n % 2 else order


class Structure(schedules.Interaction):
    """Base of structures, in which agents answer one task in cycles and see answers of others.

    To write your own structure, inherit this class and define one method, :meth:`turns`. The act of its turns is
    ``respond``, and agents see messages in the order of `reads`.
    """

    played_by = ("chat models",)
    length_field = "cycles"
    prompts = "deliberation"
    names_steps = False
    reads_earlier = True
    record = "structure"
    instructed: ClassVar[str] = "default"
    """Instructions for reading answers, used if neither the agent nor the structure has any."""
    labelling: ClassVar[Labelling] = "numbered"
    """How prompts introduce answers."""

    cycles: int = Field(1, ge=1, le=schedules.MAX_STEPS)
    """How often each agent answers."""
    instructions: str | None = Field(None, min_length=1)
    """Instructions for agents that read answers: a name in the prompt pack, or a text that contains
    ${previous_responses}. Null uses the instructions of the kind. An agent's own instructions take precedence."""
    order: Literal["counterbalanced", "cast", "shuffled"] = "counterbalanced"
    """Order in which agents speak, and in which several answers are shown. `counterbalanced` balances it over
    replicates: every agent has each position, and follows each other agent, equally often. `cast` uses the order of the
    cast, and `shuffled` draws a new order in each cycle."""
    remember: bool = False
    """Whether agents have the memory set in `cognition` and see only answers that are new to them."""

    @property
    def acts(self) -> Mapping[str, schedules.ActSpec]:  # type: ignore[override]
        """An answer to the task."""
        return _respond(self.labelling, self.remember)

    @property
    def remembers(self) -> bool:  # type: ignore[override]
        """Whether agents have the memory of cognition."""
        return self.remember

    @property
    def needs_memory(self) -> bool:
        """Whether agents see only answers that are new to them."""
        return self.remember

    @property
    def guidance(self) -> str | None:
        """Instructions for agents that read answers."""
        return self.instructions or self.instructed

    @property
    def kept(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": self.kind}

    def notes(self, size: int, replicates: int) -> Iterator[str]:
        """Notes if the balanced order of speaking needs another number of replicates."""
        rows = size * (1 + size % 2)
        if self.order == "counterbalanced" and size > 1 and replicates % rows:
            yield (
                f"The speaking orders of {size} agents are balanced over {rows} replicates or a multiple; "
                f"there are {replicates}."
            )

    def steps_for(self, size: int) -> int:
        """Steps T: the cycles."""
        return self.cycles

    def turns_a_step(self, size: int) -> int:
        """One for each agent."""
        return size

    def orders(self, setting: schedules.Setting) -> Iterator[tuple[int, list[int]]]:
        """Each cycle from 1, with the order in which agents speak."""
        rng = setting.rng
        for cycle in range(1, self.cycles + 1):
            if self.order == "shuffled":
                yield cycle, rng.permutation(setting.size).tolist()
            elif self.order == "counterbalanced":
                yield cycle, balanced_order(setting.size, setting.replicate)
            else:
                yield cycle, list(range(setting.size))

    def next_reads(
        self, setting: schedules.Setting, turns: Sequence[schedules.Turn]
    ) -> Mapping[int, tuple[schedules.Ref, ...]]:
        """What each agent would see in a further turn after all turns; by default, as in its last turn."""
        return {turn.agent: () if self.remember else turn.reads for turn in turns}

    def closing(self, setting: schedules.Setting) -> Mapping[int, tuple[schedules.Ref, ...]]:
        """What each agent sees with questions after the last turn.

        Agents see what a further turn would show, including their own last answer. Agents with memory see only what is
        new to them.
        """
        turns = list(self.turns(setting))
        shown = self.next_reads(setting, turns)
        if self.remember:
            return shown
        own = {turn.agent: turn.index for turn in turns}
        return {agent: schedules.with_own(shown.get(agent, ()), index) for agent, index in own.items()}


class Sequential(Structure):
    """Base of structures in which agents speak one after another and see the last answers of all agents."""

    last_n: int | None = Field(None, ge=1, le=schedules.MAX_STEPS)
    """Maximum number of answers that an agent sees, starting with the latest. Null shows all."""

    def conflicts(self, size: int) -> Iterator[schedules.Conflict]:
        """Problems for a population of `size` agents, including memory combined with a window."""
        if self.remember and self.last_n is not None:
            yield ("last_n",), "cannot be combined with remember, which shows all messages; use one of them"
        yield from super().conflicts(size)

    def turns(self, setting: schedules.Setting) -> Iterator[schedules.Turn]:
        """One answer per turn, after reading the last answers."""
        last = dict.fromkeys(range(setting.size), -1)
        index = 0
        for cycle, order in self.orders(setting):
            for agent in order:
                yield schedules.Turn(index, cycle, agent, RESPOND.name, self._shown(index, last[agent]))
                last[agent] = index
                index += 1

    def _shown(self, upto: int, own: int) -> tuple[int, ...]:
        """The answers shown after `upto` of them, to an agent that last answered in turn `own`."""
        first = own + 1 if self.remember else max(0, upto - (self.last_n or upto))
        return tuple(range(first, upto))

    def next_reads(
        self, setting: schedules.Setting, turns: Sequence[schedules.Turn]
    ) -> dict[int, tuple[schedules.Ref, ...]]:
        """What each agent would see in a further turn."""
        return {turn.agent: self._shown(len(turns), turn.index) for turn in turns}


@cache
def _respond(labelling: Labelling, remember: bool) -> Mapping[str, schedules.ActSpec]:
    return schedules.named(replace(RESPOND, labelling=labelling, memory="keep" if remember else "none"))
