"""Every schedule of the package against the contract of schedules, bare and with probes."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from opinionsim.messages import Message
from opinionsim.schedules import (
    AdaptiveSchedule,
    BoundedConfidenceDyads,
    Broadcast,
    Dyads,
    Exposure,
    Feed,
    IndependentReports,
    RememberedReports,
    RewiringDyads,
    SimilarityDyads,
    StaticSchedule,
    Turn,
    with_probes,
)
from opinionsim.testing import ScheduleContract

Schedule = StaticSchedule | AdaptiveSchedule
NEWS = [Message("it rained", "the radio"), Message("it snowed")]


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _opinions(network: nx.Graph | int) -> list[float]:
    size = network if isinstance(network, int) else len(network)
    return [(-2, -1, 0, 1, 2, np.nan)[i % 6] for i in range(size)]


def _similar(network: nx.Graph | int, steps: int, form: str = "exponential") -> SimilarityDyads:
    return SimilarityDyads(network, steps, strength=1.5, opinions=_opinions(network), seed=9, form=form)


def _bounded(network: nx.Graph | int, steps: int, confidence: float, choose: str) -> BoundedConfidenceDyads:
    opinions = _opinions(network)
    return BoundedConfidenceDyads(network, steps, confidence=confidence, opinions=opinions, seed=9, choose=choose)


def _rewiring(network: nx.Graph, steps: int, target: str) -> RewiringDyads:
    opinions = _opinions(network)
    return RewiringDyads(network, steps, tolerance=1.0, opinions=opinions, seed=9, rewire=0.8, target=target)


def _feed(network: nx.Graph | int, steps: int, ranking: str) -> Feed:
    return Feed(network, steps, posts=3, opinions=_opinions(network), seed=9, ranking=ranking)


BUILDERS: dict[str, Callable[[], Schedule]] = {
    "dyads": lambda: Dyads(6, 20, _rng()),
    "dyads of two": lambda: Dyads(2, 5, _rng()),
    "dyads on a ring": lambda: Dyads(nx.cycle_graph(7), 20, _rng()),
    "dyads on a directed network": lambda: Dyads(nx.DiGraph([(0, 1), (1, 2), (3, 0)]), 20, _rng()),
    "dyads of given pairs": lambda: Dyads(4, 3, pairs=[(0, 1), (1, 0), (2, 3)]),
    "no dyads": lambda: Dyads(4, 0, _rng()),
    "broadcast": lambda: Broadcast(5, 6, _rng()),
    "broadcast on a star": lambda: Broadcast(nx.star_graph(4), 8, _rng()),
    "no broadcast": lambda: Broadcast(5, 0, _rng()),
    "similarity": lambda: _similar(6, 20),
    "similarity on a path": lambda: _similar(nx.path_graph(8), 25),
    "similarity without steps": lambda: _similar(4, 0),
    "similarity by a power law": lambda: _similar(6, 20, "power"),
    "bounded confidence": lambda: _bounded(6, 30, 1.0, "drawn"),
    "bounded confidence among the near": lambda: _bounded(nx.cycle_graph(7), 30, 1.0, "near"),
    "no confidence": lambda: _bounded(4, 6, 0.0, "drawn"),
    "rewiring": lambda: _rewiring(nx.cycle_graph(7), 30, "random"),
    "rewiring to the like-minded": lambda: _rewiring(nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0)]), 30, "similar"),
    "rewiring to friends of friends": lambda: _rewiring(nx.path_graph(8), 30, "friend-of-friend"),
    "feed": lambda: _feed(6, 10, "similarity"),
    "feed on a path": lambda: _feed(nx.path_graph(6), 12, "recency"),
    "feed at random": lambda: _feed(nx.star_graph(4), 10, "random"),
    "feed without steps": lambda: _feed(4, 0, "similarity"),
    "independent reports": lambda: IndependentReports(4, 3),
    "reports of one agent": lambda: IndependentReports(1, 5),
    "remembered reports": lambda: RememberedReports(4, 15, _rng()),
    "exposure in random order": lambda: Exposure(4, 12, NEWS, "random", _rng()),
    "exposure in sequence": lambda: Exposure(4, 12, NEWS, "sequence", _rng()),
}
PROBES = [(0, 0), (1, 0), (0, 1), (2, 3)]
CASES = [(name, probes) for name in BUILDERS for probes in PROBES]


class TestPackageSchedules(ScheduleContract):
    @pytest.fixture(autouse=True, params=CASES, ids=lambda case: f"{case[0]} {case[1]}")
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.name, self.probes = request.param

    def schedule(self) -> Schedule:
        return with_probes(BUILDERS[self.name](), *self.probes)


class _Turns:
    """A schedule that is what its turns say."""

    def __init__(self, *turns: Turn) -> None:
        self.n_agents, self.steps, self.externals, self._turns = 2, 3, {"news": NEWS[0]}, turns

    def turns(self):
        return iter(self._turns)


class _Wavering(_Turns):
    """Another schedule every time it is asked."""

    calls = 0

    def turns(self):
        self.calls += 1
        return iter([Turn(0, 1, self.calls % 2, "write")])


class _Impatient(_Turns):
    """Waits for a turn it has not yielded."""

    turns = None  # type: ignore[assignment]

    async def decide(self, outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.message(1)
        yield Turn(1, 1, 1, "review", (0,))


class _Unnamed(_Turns):
    def __init__(self) -> None:
        super().__init__()
        self.externals = {"news": "plain text"}


BREACHES = {
    "a gap": (_Turns(Turn(1, 1, 0, "write")), "test_indices_count_from_zero"),
    "back in time": (_Turns(Turn(0, 2, 0, "write"), Turn(1, 1, 0, "write")), "test_steps_do_not_go_back"),
    "beyond the last step": (_Turns(Turn(0, 4, 0, "write")), "test_steps_do_not_go_back"),
    "numpy agent": (_Turns(Turn(0, 1, np.int64(0), "write")), "test_agents_exist"),
    "numpy reference": (
        _Turns(Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (np.int64(0),))),
        "test_only_what_is_there_is_read",
    ),
    "wavering": (_Wavering(), "test_the_same_turns_at_every_call"),
    "impatient": (_Impatient(), "test_indices_count_from_zero"),
    "no message": (_Unnamed(), "test_it_says_who_takes_part_and_for_how_long"),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_the_suite_finds_a_breach(breach: str) -> None:
    schedule, test = BREACHES[breach]

    class Suite(ScheduleContract):
        def schedule(self) -> Schedule:
            return schedule

    with pytest.raises(AssertionError):
        getattr(Suite(), test)()


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        (Turn(0, 1, 7, "write"), IndexError),
        (Turn(0, 1, 0, "sing"), KeyError),
        (Turn(0, 1, 0, "review", (0,)), IndexError),
    ],
)
def test_the_suite_stops_at_turns_nobody_can_carry_out(turn: Turn, error: type[Exception]) -> None:
    class Suite(ScheduleContract):
        def schedule(self) -> Schedule:
            return _Turns(turn)

    with pytest.raises(error):
        Suite().test_indices_count_from_zero()
