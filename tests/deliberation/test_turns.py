"""What every agent is shown in every turn of a structure, as transcripts and against oracles.

The oracles are written from the published semantics of chain, debate, ensemble and graph (Plurals; B4, B5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.deliberation import Structure, StructureContract, balanced_order, play, who_saw_what
from opinionsim.networks import Network
from opinionsim.schedules import Interaction, Setting, Turn, TurnCheck, with_moderator, with_probes
from opinionsim.specification import load_experiment

TWO, THREE, FOUR = ("Ada", "Ben"), ("Ada", "Ben", "Cleo"), ("Ada", "Ben", "Cleo", "Dan")
ASKED = {"measurement": {"probe": {"before": 1, "after": 1}}}
REMEMBERING = {"cognition": {"memory": "cumulative"}}
DIAMOND = [["Ada", "Ben"], ["Ada", "Cleo"], ["Ben", "Dan"], ["Cleo", "Dan"]]

#: Name: agents, interaction, further fields of the specification, and what stands in each prompt.
CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any], str]] = {
    "a chain: all answers so far, by number": (
        THREE,
        {"kind": "chain"},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Cleo 1 sees Response 0: Ada 1; Response 1: Ben 1
        """,
    ),
    "a chain in cycles: its own earlier answers too": (
        TWO,
        {"kind": "chain", "cycles": 2},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Ada 2 sees Response 0: Ada 1; Response 1: Ben 1
        Ben 2 sees Response 0: Ada 1; Response 1: Ben 1; Response 2: Ada 2
        """,
    ),
    "a chain with a window: numbers begin with it": (
        THREE,
        {"kind": "chain", "cycles": 2, "last_n": 2},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Cleo 1 sees Response 0: Ada 1; Response 1: Ben 1
        Ada 2 sees Response 0: Ben 1; Response 1: Cleo 1
        Ben 2 sees Response 0: Cleo 1; Response 1: Ada 2
        Cleo 2 sees Response 0: Ada 2; Response 1: Ben 2
        """,
    ),
    "a chain of agents that remember: only what is new": (
        TWO,
        {"kind": "chain", "cycles": 2, "remember": True},
        REMEMBERING,
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Ada 2 remembers Ada 1, sees Response 0: Ben 1
        Ben 2 remembers Ada 1; Ben 1, sees Response 0: Ada 2
        """,
    ),
    "a chain, questioned before and after: as in a further turn": (
        TWO,
        {"kind": "chain", "last_n": 1},
        ASKED,
        """
        Ada (probe) sees nothing
        Ben (probe) sees nothing
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Ada (probe 2) sees [You]: Ada 1; [Other participant]: Ben 1
        Ben (probe 2) sees [You]: Ben 1
        """,
    ),
    "a chain of agents that remember, questioned: what is new stands beside the memory": (
        TWO,
        {"kind": "chain", "remember": True},
        {**ASKED, **REMEMBERING},
        """
        Ada (probe) sees nothing
        Ben (probe) sees nothing
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Ada (probe 2) remembers Ada 1, sees [Other participant]: Ben 1
        Ben (probe 2) remembers Ada 1; Ben 1, sees nothing
        """,
    ),
    "a chain of four in balanced order": (
        FOUR,
        {"kind": "chain", "last_n": 1},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Dan 1 sees Response 0: Ben 1
        Cleo 1 sees Response 0: Dan 1
        """,
    ),
    "a chain of four in the order of the cast": (
        FOUR,
        {"kind": "chain", "last_n": 1, "order": "cast"},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Cleo 1 sees Response 0: Ben 1
        Dan 1 sees Response 0: Cleo 1
        """,
    ),
    "a moderated chain: all answers of all cycles, once, at the end": (
        TWO,
        {"kind": "chain", "cycles": 2, "last_n": 1},
        {"roles": {"moderator": {"persona": "default"}}},
        """
        Ada 1 sees nothing
        Ben 1 sees Response 0: Ada 1
        Ada 2 sees Response 0: Ben 1
        Ben 2 sees Response 0: Ada 2
        Moderator (moderate) sees Response 0: Ada 1; Response 1: Ben 1; Response 2: Ada 2; Response 3: Ben 2
        """,
    ),
    "a debate: one's own statements and those of the other": (
        TWO,
        {"kind": "debate", "cycles": 2},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees [Other participant]: Ada 1
        Ada 2 sees [You]: Ada 1; [Other participant]: Ben 1
        Ben 2 sees [Other participant]: Ada 1; [You]: Ben 1; [Other participant]: Ada 2
        """,
    ),
    "a moderated debate: statements by name": (
        TWO,
        {"kind": "debate"},
        {"roles": {"moderator": {"values": "honesty"}}},
        """
        Ada 1 sees nothing
        Ben 1 sees [Other participant]: Ada 1
        Moderator (moderate) sees Ada: Ada 1; Ben: Ben 1
        """,
    ),
    "an ensemble whose agents see what they said before": (
        TWO,
        {"kind": "ensemble", "cycles": 3, "own": True},
        ASKED,
        """
        Ada (probe) sees nothing
        Ben (probe) sees nothing
        Ada 1 sees nothing
        Ben 1 sees nothing
        Ada 2 sees Response 0: Ada 1
        Ben 2 sees Response 0: Ben 1
        Ada 3 sees Response 0: Ada 1; Response 1: Ada 2
        Ben 3 sees Response 0: Ben 1; Response 1: Ben 2
        Ada (probe 2) sees [You]: Ada 1; [You]: Ada 2; [You]: Ada 3
        Ben (probe 2) sees [You]: Ben 1; [You]: Ben 2; [You]: Ben 3
        """,
    ),
    "a moderated ensemble, whose moderator first instructs itself": (
        TWO,
        {"kind": "ensemble"},
        {"roles": {"moderator": {"automatic": True}}},
        """
        Moderator (instruct) sees nothing
        Ada 1 sees nothing
        Ben 1 sees nothing
        Moderator (moderate) sees [You]: Moderator (instruct); Response 0: Ada 1; Response 1: Ben 1
        """,
    ),
    "a graph: direct predecessors alone, by name": (
        FOUR,
        {"kind": "graph", "edges": DIAMOND},
        {"roles": {"moderator": {}}},
        """
        Ada 1 sees nothing
        Ben 1 sees Ada: Ada 1
        Cleo 1 sees Ada: Ada 1
        Dan 1 sees Ben: Ben 1; Cleo: Cleo 1
        Moderator (moderate) sees Ada: Ada 1; Ben: Ben 1; Cleo: Cleo 1; Dan: Dan 1
        """,
    ),
    "a graph: ties by declaration, then by edges; reading in the order of declaration": (
        FOUR,
        {"kind": "graph", "order": "cast", "edges": [["Dan", "Ada"], ["Dan", "Cleo"], ["Dan", "Ben"], [2, 1], [0, 1]]},
        {},
        """
        Dan 1 sees nothing
        Ada 1 sees Dan: Dan 1
        Cleo 1 sees Dan: Dan 1
        Ben 1 sees Ada: Ada 1; Cleo: Cleo 1; Dan: Dan 1
        """,
    ),
    "a graph whose roots are two": (
        THREE,
        {"kind": "graph", "edges": [[1, 0], [2, 0]]},
        {"measurement": {"probe": {"after": 1}}},
        """
        Ben 1 sees nothing
        Cleo 1 sees nothing
        Ada 1 sees Ben: Ben 1; Cleo: Cleo 1
        Ada (probe) sees [Other participant]: Ben 1; [Other participant]: Cleo 1; [You]: Ada 1
        Ben (probe) sees [You]: Ben 1
        Cleo (probe) sees [You]: Cleo 1
        """,
    ),
    "rounds on a ring: neighbours of the round before": (
        FOUR,
        {"kind": "rounds", "order": "cast", "network": "ring"},
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees nothing
        Cleo 1 sees nothing
        Dan 1 sees nothing
        Ada 2 sees [You]: Ada 1; [Other participant]: Ben 1; [Other participant]: Dan 1
        Ben 2 sees [Other participant]: Ada 1; [You]: Ben 1; [Other participant]: Cleo 1
        Cleo 2 sees [Other participant]: Ben 1; [You]: Cleo 1; [Other participant]: Dan 1
        Dan 2 sees [Other participant]: Ada 1; [Other participant]: Cleo 1; [You]: Dan 1
        """,
    ),
    "rounds of agents that see others only, on arrows": (
        THREE,
        {
            "kind": "rounds",
            "cycles": 3,
            "own": False,
            "network": {"kind": "edges", "edges": [[0, 1], [1, 2]], "directed": True},
        },
        {},
        """
        Ada 1 sees nothing
        Ben 1 sees nothing
        Cleo 1 sees nothing
        Ada 2 sees nothing
        Ben 2 sees [Other participant]: Ada 1
        Cleo 2 sees [Other participant]: Ben 1
        Ada 3 sees nothing
        Ben 3 sees [Other participant]: Ada 2
        Cleo 3 sees [Other participant]: Ben 2
        """,
    ),
    "rounds of agents that remember": (
        TWO,
        {"kind": "rounds", "remember": True},
        {**REMEMBERING, "measurement": {"probe": {"after": 1}}},
        """
        Ada 1 sees nothing
        Ben 1 sees nothing
        Ada 2 remembers Ada 1, sees [Other participant]: Ben 1
        Ben 2 remembers Ben 1, sees [Other participant]: Ada 1
        Ada (probe) remembers Ada 1; Ben 1; Ada 2, sees [Other participant]: Ben 2
        Ben (probe) remembers Ben 1; Ada 1; Ben 2, sees [Other participant]: Ada 2
        """,
    ),
}


class TestStructures(StructureContract):
    @pytest.fixture(autouse=True, params=CASES)
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.names, self._interaction, self._fields, self._transcript = CASES[request.param]

    def structure(self) -> dict[str, Any]:
        return self._interaction

    def fields(self) -> dict[str, Any]:
        return self._fields

    def transcript(self) -> str:
        return self._transcript


@osim.part("interaction")
class Relay(Structure):
    """A structure of one's own: each agent is shown what the one before it said, all the way round."""

    labelling = "named"

    def turns(self, setting: Setting) -> Iterator[Turn]:
        index = 0
        for cycle, order in self.orders(setting):
            for agent in order:
                yield Turn(index, cycle, agent, "respond", (index - 1,) if index else ())
                index += 1


class TestAStructureOfOnesOwn(StructureContract):
    def structure(self) -> dict[str, Any]:
        return {"kind": f"{__name__}:Relay", "cycles": 2}

    def transcript(self) -> str:
        return """
        Ada 1 sees nothing
        Ben 1 sees Ada: Ada 1
        Cleo 1 sees Ben: Ben 1
        Ada 2 sees Cleo: Cleo 1
        Ben 2 sees Ada: Ada 2
        Cleo 2 sees Ben: Ben 2
        """


def test_who_begins_a_debate_changes_from_replicate_to_replicate() -> None:
    results = play({"kind": "debate", "cycles": 2}, TWO, "s.sqlite", replicates=2)
    assert who_saw_what(results, 1).split("\n") == [
        "Ben 1 sees nothing",
        "Ada 1 sees [Other participant]: Ben 1",
        "Ben 2 sees [You]: Ben 1; [Other participant]: Ada 1",
        "Ada 2 sees [Other participant]: Ben 1; [You]: Ada 1; [Other participant]: Ben 2",
    ]


# -- oracles ----------------------------------------------------------------------------------------------------


def _setting(size: int, replicate: int = 0, seed: int = 0, network: Any = None, names: Any = ()) -> Setting:
    return Setting(size, lambda *_: np.random.default_rng(seed), network, names=tuple(names), replicate=replicate)


def _shown_in_a_chain(said: list[int], last_n: int | None, **_: Any) -> list[int]:
    """The last answers, of whomever they are."""
    return said if last_n is None else said[-last_n:]


orders = st.sampled_from(["counterbalanced", "cast", "shuffled"])
sequential = st.fixed_dictionaries(
    {"cycles": st.integers(1, 4), "order": orders}, optional={"last_n": st.integers(1, 6)}
)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    kind = draw(st.sampled_from(["chain", "debate"]))
    size = 2 if kind == "debate" else draw(st.integers(1, 6))
    return {"kind": kind, **draw(sequential)}, size


@given(sequences(), st.integers(0, 20), st.integers(0, 9))
def test_chains_and_debates_show_the_last_answers(drawn: Any, replicate: int, seed: int) -> None:
    fields, size = drawn
    schedule = Interaction.read(fields).schedule(_setting(size, replicate, seed))
    turns = _checked(schedule)
    assert len(turns) == size * fields["cycles"]
    said: list[int] = []
    for turn in turns:
        assert list(turn.reads) == _shown_in_a_chain(said, fields.get("last_n"))
        said.append(turn.index)
    for cycle in range(1, fields["cycles"] + 1):
        assert sorted(turn.agent for turn in turns if turn.step == cycle) == list(range(size))
    if fields["kind"] == "debate":
        assert all(one.agent != other.agent for one, other in pairwise(turns)), "the two alternate"
    own = {turn.agent: turn.index for turn in turns}
    for agent, shown in schedule.closing().items():
        assert list(shown) == sorted({*_shown_in_a_chain(said, fields.get("last_n")), own[agent]})


@given(st.integers(1, 6), st.integers(1, 4), st.booleans(), orders, st.integers(0, 9))
def test_in_an_ensemble_nobody_is_shown_anything_of_others(
    size: int, cycles: int, own: bool, order: str, replicate: int
) -> None:
    fields = {"kind": "ensemble", "cycles": cycles, "own": own, "order": order}
    schedule = Interaction.read(fields).schedule(_setting(size, replicate))
    turns = _checked(schedule)
    earlier: dict[int, list[int]] = {agent: [] for agent in range(size)}
    for turn in turns:
        assert list(turn.reads) == (earlier[turn.agent] if own else [])
        earlier[turn.agent].append(turn.index)
    for agent, shown in schedule.closing().items():
        assert list(shown) == (earlier[agent] if own else earlier[agent][-1:])


@st.composite
def directed(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """A number of agents, and edges of a directed acyclic graph in any order."""
    size = draw(st.integers(1, 7))
    rank = draw(st.permutations(range(size)))
    possible = [(rank[i], rank[j]) for i in range(size) for j in range(i + 1, size)]
    edges = draw(st.lists(st.sampled_from(possible), unique=True, max_size=12)) if possible else []
    return size, edges


def _topological(size: int, edges: list[tuple[int, int]], declared: list[int]) -> list[int]:
    """Kahn: first those without predecessors as declared; others when their last predecessor has been taken."""
    left = {agent: sum(to == agent for _, to in edges) for agent in declared}
    queue = [agent for agent in declared if not left[agent]]
    for agent in queue:
        for one, other in edges:
            if one == agent:
                left[other] -= 1
                if not left[other]:
                    queue.append(other)
    return queue


@given(directed(), orders, st.integers(0, 12), st.integers(0, 9), st.booleans())
def test_graphs_show_direct_predecessors_as_declared(
    graph: Any, order: str, replicate: int, seed: int, by_name: bool
) -> None:
    size, edges = graph
    names = [f"agent {chr(97 + agent)}" for agent in range(size)]
    given_ = [(names[one], names[other]) for one, other in edges] if by_name else edges
    fields = {"kind": "graph", "order": order, "edges": given_}
    setting = _setting(size, replicate, seed, names=names)
    schedule = Interaction.read(fields).schedule(setting)
    turns = _checked(schedule)
    declared = {
        "cast": list(range(size)),
        "counterbalanced": balanced_order(size, replicate),
        "shuffled": np.random.default_rng(seed).permutation(size).tolist(),
    }[order]
    assert [turn.agent for turn in turns] == _topological(size, edges, declared)
    spoke = {turn.agent: turn.index for turn in turns}
    for turn in turns:
        before = [agent for agent in declared if (agent, turn.agent) in edges]
        assert [turns[ref].agent for ref in turn.reads] == before
        asked = schedule.closing()[turn.agent]
        assert sorted(asked) == sorted([*turn.reads, spoke[turn.agent]])


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, nx.DiGraph]:
    size = draw(st.integers(2, 6))
    arrows = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda arrow: arrow[0] != arrow[1])
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(draw(st.lists(arrows, min_size=1, max_size=15)))
    return size, graph


@given(networks(), st.integers(1, 4), st.booleans(), st.booleans(), orders, st.integers(0, 12), st.integers(0, 9))
def test_rounds_show_the_neighbours_of_the_round_before(
    drawn: Any, cycles: int, own: bool, remember: bool, order: str, replicate: int, seed: int
) -> None:
    size, graph = drawn
    fields = {"kind": "rounds", "cycles": cycles, "own": own, "remember": remember, "order": order}
    schedule = Interaction.read(fields).schedule(_setting(size, replicate, seed, Network.of(graph)))
    turns = _checked(schedule)
    rounds = [[turn for turn in turns if turn.step == cycle] for cycle in range(1, cycles + 1)]
    for number, now in enumerate(rounds):
        assert sorted(turn.agent for turn in now) == list(range(size))
        for turn in now:
            heard = {one for one, _ in graph.in_edges(turn.agent)}
            if own and not remember:
                heard.add(turn.agent)
            before = rounds[number - 1] if number else []
            said = {each.agent: each.index for each in before}
            # Several texts are read in the order in which agents speak in this round.
            assert list(turn.reads) == [said[each.agent] for each in now if each.agent in heard and said]
    if not remember:
        last = {turn.agent: turn.index for turn in rounds[-1]}
        for agent, shown in schedule.closing().items():
            heard = {one for one, _ in graph.in_edges(agent)} | {agent}
            assert list(shown) == sorted(last[each] for each in heard)


def _checked(schedule: Any) -> list[Turn]:
    """All turns, each valid, also between questions and before a moderator."""
    turns = list(schedule.turns())
    for each in (schedule, with_probes(schedule, 1, 1), with_probes(with_moderator(schedule), 1, 2)):
        check = TurnCheck(each)
        for turn in each.turns():
            check(turn)
    moderated = with_moderator(schedule)
    *_, last = moderated.turns()  # type: ignore[union-attr]
    assert last.reads == tuple(turn.index for turn in turns)
    return turns


# -- order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 9))
def test_balanced_orders_place_everybody_and_every_neighbour_equally_often(n: int) -> None:
    rows = [balanced_order(n, row) for row in range(n * (1 + n % 2))]
    assert all(sorted(row) == list(range(n)) for row in rows)
    places = Counter((agent, place) for row in rows for place, agent in enumerate(row))
    assert len(places) == n * n
    assert len(set(places.values())) == 1
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == n * (n - 1)
    assert len(set(follows.values())) <= 1
    assert balanced_order(n, len(rows)) == rows[0]


def _speakers(spec: Mapping[str, Any]) -> dict[tuple[str, int], list[int]]:
    """Agents in the order in which they speak, by cell and replicate."""
    experiment = load_experiment(dict(spec))
    found = {}
    for run in experiment.runs:
        schedule: Any = assemble(run, experiment.resources).schedule
        found[run.cell.label, run.replicate] = [turn.agent for turn in schedule.turns()]
    return found


SHUFFLED: dict[str, Any] = {
    "name": "shuffled",
    "task": "Say something.",
    "cast": [{"name": name} for name in "ABCDEF"],
    "interaction": {"kind": "chain", "order": "shuffled", "cycles": 2},
    "replicates": 6,
    "sweep": {"interaction.last_n": [1, 3], "interaction.instructions": ["default", "critique_revise"]},
}


def test_shuffles_are_new_in_every_cycle_and_replicate_and_equal_over_the_cells_of_a_block() -> None:
    found = _speakers(SHUFFLED)
    assert found == _speakers(SHUFFLED)
    assert found != _speakers({**SHUFFLED, "seed": 1})
    by_replicate = [{tuple(order) for (_, at), order in found.items() if at == replicate} for replicate in range(6)]
    assert [len(each) for each in by_replicate] == [1] * 6, "cells that differ in treatment share their draws"
    orders_ = [order for each in by_replicate for order in each]
    assert len(set(orders_)) == 6
    assert sum(order[:6] != order[6:] for order in orders_) >= 5


def test_structures_swept_against_one_another_share_blocks_and_order() -> None:
    kinds = [
        {"kind": "chain", "label": "chain"},
        {"kind": "ensemble", "label": "ensemble"},
        {"kind": "rounds", "cycles": 1, "label": "rounds"},
        {"kind": "graph", "edges": [], "label": "graph"},
    ]
    spec = {**SHUFFLED, "interaction": {"kind": "chain"}, "replicates": 12, "sweep": {"interaction": kinds}}
    experiment = load_experiment(spec)
    assert len({run.block for run in experiment.runs}) == 12
    found = _speakers(spec)
    for replicate in range(12):
        orders_ = {tuple(order) for (_, at), order in found.items() if at == replicate}
        assert orders_ == {tuple(balanced_order(6, replicate))}
