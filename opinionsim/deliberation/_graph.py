"""Directed graphs, in which an agent answers after its direct predecessors and reads only their answers."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from opinionsim.deliberation._structure import Structure
from opinionsim.deliberation._structure_acts import RESPOND
from opinionsim.errors import SpecError
from opinionsim.registry import part
from opinionsim.schedules import Conflict, Setting, Turn

#: An end of an edge: the number of an agent, or its name.
End = int | str


@part("interaction", name="graph")
class GraphInteraction(Structure):
    """Agents answer along a directed acyclic graph, and each sees the answers of its direct predecessors, by name.

    After Plurals (Ashkinaze et al. 2025).
    """

    labelling = "named"
    moderated = "named"

    edges: tuple[tuple[End, End], ...]
    """Edges from one agent to another, by number or name. The second agent reads the answer of the first."""

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents; names of agents are checked by :meth:`check`."""
        if self.cycles != 1:
            yield ("cycles",), "must be 1, because agents in a graph answer only once; for several cycles, use rounds"
        for place, edge in enumerate(self.edges):
            for end in edge:
                if isinstance(end, int) and not 0 <= end < size:
                    yield ("edges", place), f"agent {end} does not exist; valid: 0..{size - 1}, or names"
        yield from super().conflicts(size)

    def check(self, setting: Setting) -> None:
        """Refuse repeated edges, unknown agents, edges from an agent to itself, and cycles."""
        self._sorted(setting)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One answer of each agent, in topological order."""
        rank, order, before = self._sorted(setting)
        place = {agent: index for index, agent in enumerate(order)}
        for agent in order:
            read = sorted(before[agent], key=rank.__getitem__)
            yield Turn(place[agent], 1, agent, RESPOND.name, tuple(place[each] for each in read))

    def _pairs(self, setting: Setting) -> list[tuple[int, int]]:
        """The edges by number, in their order."""
        found: dict[tuple[int, int], None] = {}
        for place, edge in enumerate(self.edges):
            where = f"interaction.edges.{place}"
            one, other = (self._agent(end, setting, where) for end in edge)
            if one == other:
                raise SpecError(f"{edge[0]!r} leads to itself", where)
            if (one, other) in found:
                raise SpecError(f"the edge from {edge[0]!r} to {edge[1]!r} is given twice", where)
            found[one, other] = None
        return list(found)

    def _agent(self, end: End, setting: Setting, where: str) -> int:
        if isinstance(end, int):
            return end
        places = [agent for agent, name in enumerate(setting.names) if name == end]
        if len(places) != 1:
            valid = ", ".join(dict.fromkeys(name for name in setting.names if name)) or "numbers only"
            lacks = f"{len(places)} agents have the name" if places else "there is no agent"
            raise SpecError(f"{lacks} {end!r}; valid: {valid}", where)
        return places[0]

    def _sorted(self, setting: Setting) -> tuple[dict[int, int], list[int], dict[int, list[int]]]:
        """Place of each agent in the order of the run, agents in topological order (Kahn 1962), and all predecessors.

        Ties follow the order of the run among agents that nobody leads to, and the order of the edges otherwise.
        """
        before: dict[int, list[int]] = {agent: [] for agent in range(setting.size)}
        rank = {agent: place for place, agent in enumerate(next(self.orders(setting))[1])}
        sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(rank, ()))
        for one, other in self._pairs(setting):
            before[other].append(one)
            sorter.add(other, one)
        try:
            return rank, list(sorter.static_order()), before
        except CycleError as error:
            names = (str(setting.names[each] if setting.names else each) for each in error.args[1])
            raise SpecError(f"the edges form a cycle: {' -> '.join(names)}", "interaction.edges") from None
