"""Every schedule of the package against the contract of schedules, bare and with probes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import networkx as nx
import numpy as np
import pytest

from opinionsim.errors import Rejected
from opinionsim.messages import Message
from opinionsim.schedules import (
    PROBE,
    REVIEW,
    WRITE,
    ActSpec,
    AnySchedule,
    BoundedConfidenceDyads,
    Broadcast,
    Dyads,
    Event,
    Exposure,
    External,
    Feed,
    GivenDyads,
    IndependentReports,
    Interaction,
    Outcomes,
    Placebo,
    RememberedReports,
    RewiringDyads,
    Schedule,
    SelfEcho,
    Setting,
    SimilarityDyads,
    SourceCell,
    Turn,
    Yoked,
    named,
    with_events,
    with_probes,
)
from opinionsim.testing import ScheduleContract

NEWS = [Message("it rained", "the radio"), "it snowed"]


def _of(interaction: Interaction, network: nx.Graph | int) -> AnySchedule:
    """The schedule of an interaction among agents with opinions, one in six without."""
    size = network if isinstance(network, int) else len(network)
    opinions = [(-2, -1, 0, 1, 2, np.nan)[i % 6] for i in range(size)]
    return interaction.schedule(Setting.of(network, 9, opinions=opinions, messages=lambda given: NEWS))


def _dyads(network: nx.Graph | int, steps: int) -> AnySchedule:
    return _of(Dyads(steps=steps), network)


def _broadcast(network: nx.Graph | int, steps: int) -> AnySchedule:
    return _of(Broadcast(steps=steps), network)


def _similar(network: nx.Graph | int, steps: int, form: Any = "exponential") -> AnySchedule:
    return _of(SimilarityDyads(steps=steps, strength=1.5, form=form), network)


def _bounded(network: nx.Graph | int, steps: int, confidence: float, choose: Any) -> AnySchedule:
    return _of(BoundedConfidenceDyads(steps=steps, confidence=confidence, choose=choose), network)


def _rewiring(network: nx.Graph, steps: int, target: Any) -> AnySchedule:
    return _of(RewiringDyads(steps=steps, tolerance=1.0, rewire=0.8, target=target), network)


def _feed(network: nx.Graph | int, steps: int, ranking: Any) -> AnySchedule:
    return _of(Feed(steps=steps, ranking=ranking), network)


def _remembered(size: int, steps: int) -> AnySchedule:
    return _of(RememberedReports(steps=steps), size)


def _exposure(size: int, steps: int, order: Any) -> AnySchedule:
    return _of(Exposure(steps=steps, messages="news.txt", order=order), size)


def _yoked(read: Any) -> AnySchedule:
    return Yoked(steps=4, source=SourceCell(cell="x")).schedule(Setting.of(3, 9, read=read))


EVENTS = (
    Event("message", 2, (0, 1), ("It rained.",)),
    Event("zealot", 3, (2,), ("Never.", "No.")),
    Event("media", 1, (0, 3, 4), ("The paper says so.",), probability=0.5, seed=3),
    Event("leave", 5, (3,)),
    Event("join", 4, (4,)),
)

BUILDERS: dict[str, Callable[[], AnySchedule]] = {
    "dyads": lambda: _dyads(6, 20),
    "dyads of two": lambda: _dyads(2, 5),
    "dyads on a ring": lambda: _dyads(nx.cycle_graph(7), 20),
    "dyads on a directed network": lambda: _dyads(nx.DiGraph([(0, 1), (1, 2), (3, 0)]), 20),
    "dyads of given pairs": lambda: GivenDyads(4, [(0, 1), (1, 0), (2, 3)]),
    "no dyads": lambda: _dyads(4, 0),
    "dyads with events": lambda: with_events(_dyads(6, 20), EVENTS),
    "broadcast with events": lambda: with_events(_broadcast(5, 6), EVENTS),
    "remembered reports with events": lambda: with_events(_remembered(5, 20), EVENTS[:1] + EVENTS[3:]),
    "placebo": lambda: _of(Placebo(steps=20), 6),
    "placebo with events": lambda: with_events(_of(Placebo(steps=20), 6), EVENTS),
    "self-echo": lambda: _of(SelfEcho(steps=20), 6),
    "self-echo with events": lambda: with_events(_of(SelfEcho(steps=20), 6), EVENTS),
    "yoked": lambda: _yoked(((1, 0, ("a",)), (1, 2, ("b", "c")), (4, 0, ("d",)))),
    "broadcast": lambda: _broadcast(5, 6),
    "broadcast on a star": lambda: _broadcast(nx.star_graph(4), 8),
    "no broadcast": lambda: _broadcast(5, 0),
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
    "independent reports": lambda: _of(IndependentReports(reports=3), 4),
    "reports of one agent": lambda: _of(IndependentReports(reports=5), 1),
    "remembered reports": lambda: _remembered(4, 15),
    "exposure in random order": lambda: _exposure(4, 12, "random"),
    "exposure in sequence": lambda: _exposure(4, 12, "sequence"),
}
PROBES: list[tuple[Any, ...]] = [(0, 0), (1, 0), (0, 1), (2, 3), (1, 1, "probe", 3)]
CASES = [(name, probes) for name in BUILDERS for probes in PROBES]


class TestPackageSchedules(ScheduleContract):
    @pytest.fixture(autouse=True, params=CASES, ids=lambda case: f"{case[0]} {case[1]}")
    def _case(self, request: pytest.FixtureRequest) -> None:
        self.name, self.probes = request.param

    def schedule(self) -> AnySchedule:
        return with_probes(BUILDERS[self.name](), *self.probes)


def _next(call: str, text: str, received: tuple[Message, ...]) -> int:
    """Whom a text passes the word to; one in four passes it to nobody."""
    if text[0] in "0123":
        raise Rejected("names nobody")
    return int(text[-1], 16) + len(received)


#: Answers that whoever speaks next reads.
_READ = replace(PROBE, background=True, audience="readers")


class _Floor(Schedule):
    """Speakers pass each other the word; a moderator may follow, and is measured in the background."""

    n_agents, steps, others, needs = 3, 8, ("moderator",), ("tone",)
    acts = named(WRITE, ActSpec("speak", "write", "post", parse=_next, after="none"), _READ)
    externals = MappingProxyType({"topic": "Is it going to rain?"})

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        speaker, index = 0, 0
        for step in range(1, self.steps + 1):
            said = index
            yield Turn(said, step, speaker, "speak", (External("topic"), *range(max(0, said - 1), said)))
            yield Turn(said + 1, step, 3, "probe", (said,))
            chosen = await outcomes.decision(said)
            index += 2
            if await outcomes.opinion(said + 1, "tone") > 0:
                yield Turn(index, step, 3, "write", (said,))
                index += 1
            speaker = (speaker + 1 if chosen is None else chosen) % self.n_agents


class TestAScheduleOfOnesOwn(ScheduleContract):
    def schedule(self) -> AnySchedule:
        return _Floor()


class _Turns(Schedule):
    """A schedule that is what its turns say."""

    acts = named(WRITE, REVIEW)

    def __init__(self, *turns: Turn, **declared: object) -> None:
        self.n_agents, self.steps, self.externals, self._turns = 2, 3, {"news": NEWS[0]}, turns
        self.__dict__.update(declared)

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
        await outcomes.reply(1)
        yield Turn(1, 1, 1, "review", (0,))


class _Undeclared(_Turns):
    """Acts on an opinion without a word of it."""

    turns = None  # type: ignore[assignment]

    async def decide(self, outcomes):
        yield Turn(0, 1, 0, "write")
        await outcomes.opinion(0)
        yield Turn(1, 1, 1, "review", (0,))


BREACHES = {
    "a gap": (_Turns(Turn(1, 1, 0, "write")), "test_every_turn_can_be_carried_out"),
    "back in time": (_Turns(Turn(0, 2, 0, "write"), Turn(1, 1, 0, "write")), "test_every_turn_can_be_carried_out"),
    "beyond the last step": (_Turns(Turn(0, 4, 0, "write")), "test_every_turn_can_be_carried_out"),
    "numpy agent": (_Turns(Turn(0, 1, np.int64(0), "write")), "test_every_turn_can_be_carried_out"),
    "an act under another name": (
        _Turns(Turn(0, 1, 0, "note"), acts={"note": WRITE}),
        "test_every_turn_can_be_carried_out",
    ),
    "numpy reference": (
        _Turns(Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (np.int64(0),))),
        "test_every_turn_can_be_carried_out",
    ),
    "wavering": (_Wavering(), "test_the_same_turns_at_every_call"),
    "impatient": (_Impatient(), "test_every_turn_can_be_carried_out"),
    "no message": (_Turns(externals={"news": 7}), "test_it_declares_what_others_read_there"),
    "no name": (_Turns(externals={7: "news"}), "test_it_declares_what_others_read_there"),
    "no role": (_Turns(others=("",)), "test_it_declares_what_others_read_there"),
    "no act": (_Turns(acts={}), "test_it_declares_what_others_read_there"),
    "an undeclared need": (_Undeclared(), "test_every_turn_can_be_carried_out"),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_the_suite_finds_a_breach(breach: str) -> None:
    schedule, test = BREACHES[breach]

    class Suite(ScheduleContract):
        def schedule(self) -> AnySchedule:
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
        def schedule(self) -> AnySchedule:
            return _Turns(turn)

    with pytest.raises(error):
        Suite().test_every_turn_can_be_carried_out()
