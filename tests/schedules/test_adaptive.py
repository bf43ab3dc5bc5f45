"""Bounded confidence, rewiring, feeds and power-law partner choice: laws, conservation, and what is waited for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from scipy.stats import chisquare

from opinionsim.errors import ScheduleError, SpecError
from opinionsim.messages import Message
from opinionsim.networks import Network
from opinionsim.schedules import (
    WRITE,
    AdaptiveSchedule,
    BoundedConfidenceDyads,
    Dyads,
    Feed,
    Interaction,
    RewiringDyads,
    Schedule,
    Setting,
    SimilarityDyads,
    StaticSchedule,
    TieChange,
    Turn,
    named,
    outline,
    tie_changes,
    with_probes,
)
from tests.support.examples import examples

NAN = float("nan")
SCALE = (-2.0, -1.0, 0.0, 1.0, 2.0)


class _Outcomes:
    """Answers at once from the turn, and keeps what was asked."""

    def __init__(self, rate: Callable[[Turn], float]) -> None:
        self.turns: list[Turn] = []
        self.awaited: list[int] = []
        self._rate = rate

    async def reply(self, turn: int) -> Message:
        raise AssertionError("adaptive schedules act on opinions only")

    decision = reply

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        assert instrument == "stance"
        assert self.turns[turn].act == "review"
        assert turn not in self.awaited
        self.awaited.append(turn)
        return self._rate(self.turns[turn])


def _carried_out(schedule: AdaptiveSchedule, rate: Callable[[Turn], float] = lambda turn: NAN) -> _Outcomes:
    """The turns of a schedule whose reviews are rated by `rate`, and the ratings it waited for."""
    outcomes = _Outcomes(rate)
    asyncio.run(_story(schedule, outcomes))
    return outcomes


async def _story(schedule: AdaptiveSchedule, outcomes: _Outcomes) -> None:
    async for turn in schedule.decide(outcomes):
        outcomes.turns.append(turn)


def _adaptive(interaction: Interaction, network: nx.Graph | Network | int, opinions: Any, seed: int = 3) -> Any:
    schedule = interaction.schedule(Setting.of(network, seed, opinions=opinions))
    assert isinstance(schedule, AdaptiveSchedule)
    return schedule


def _drawn(network: nx.Graph | int, steps: int, seed: int = 3) -> list[tuple[int, int]]:
    """(speaker, listener) of each step as random dyads draw them from a seed of their own."""
    setting = Setting.of(network, seed)
    return list(map(tuple, setting.neighbours.draw_pairs(steps, np.random.default_rng(setting.seed)).tolist()))


def _met(turns: list[Turn]) -> dict[int, tuple[int, int]]:
    """(speaker, listener) by step, of a schedule of dyads."""
    writes, reviews = turns[::2], turns[1::2]
    for write, review in zip(writes, reviews, strict=True):
        assert (write.act, write.reads, review.act, review.reads) == ("write", (), "review", (write.index,))
        assert write.step == review.step
    return {write.step: (write.agent, review.agent) for write, review in zip(writes, reviews, strict=True)}


def _fits(counts: dict[Any, int], shares: dict[Any, float]) -> bool:
    """Whether counts are drawn with the given probabilities: chi-square, one false alarm in a million."""
    assert set(counts) <= set(shares)
    total = sum(counts.values())
    expected = np.array(list(shares.values()))
    observed = [counts.get(key, 0) for key in shares]
    return bool(chisquare(observed, expected / expected.sum() * total).pvalue > 1e-6)


# -- partners by a power law ----------------------------------------------------------------------------------


def test_the_power_law_of_partner_choice() -> None:
    """Listener 0 at 0 hears agents at distances 0.1 (below the floor), 1, 2 and 3."""
    network = nx.DiGraph([(speaker, 0) for speaker in (1, 2, 3, 4)])
    opinions = [0, 0.1, 1, -2, 3]
    power = SimilarityDyads(steps=6_000, strength=1.5, form="power", floor=0.25)
    schedule = _adaptive(power, network, opinions)
    speakers = Counter(speaker for speaker, _ in _met(_carried_out(schedule).turns).values())
    assert _fits(speakers, {1: 0.25**-1.5, 2: 1.0, 3: 2**-1.5, 4: 3**-1.5})
    assert not _fits(speakers, dict.fromkeys((1, 2, 3, 4), 1.0))


def test_a_power_law_without_strength_is_indifferent() -> None:
    schedule = _adaptive(SimilarityDyads(steps=3_000, strength=0.0, form="power"), 4, [0, 0, 2, 2])
    pairs = Counter(_met(_carried_out(schedule).turns).values())
    assert _fits(pairs, dict.fromkeys(permutations(range(4), 2), 1.0))


def test_opinions_that_agree_do_not_blow_the_power_law_up() -> None:
    schedule = _adaptive(SimilarityDyads(steps=50, strength=800.0, form="power", floor=1e-12), 3, [1, 1, -1])
    met = set(_met(_carried_out(schedule).turns).values())
    assert {pair for pair in met if 2 not in pair} == {(0, 1), (1, 0)} == met - {(0, 2), (1, 2)}


# -- bounded confidence ---------------------------------------------------------------------------------------


def _bounded(network: nx.Graph | int, steps: int, confidence: float, opinions: Any, **options: Any):
    seed = options.pop("seed", 3)
    return _adaptive(BoundedConfidenceDyads(steps=steps, confidence=confidence, **options), network, opinions, seed)


@pytest.mark.parametrize("network", [5, nx.path_graph(5), nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 0), (4, 3)])])
@pytest.mark.parametrize("choose", ["drawn", "near"])
def test_with_confidence_in_all_pairs_are_drawn_as_dyads_are(network: nx.Graph | int, choose: str) -> None:
    met = _met(_carried_out(_bounded(network, 300, 4.0, SCALE, choose=choose)).turns)
    assert list(met) == list(range(1, 301))
    drawn = _drawn(network, 300)
    if choose == "drawn":
        assert list(met.values()) == drawn
    else:
        assert [listener for _, listener in met.values()] == [listener for _, listener in drawn]
        assert set(met.values()) == set(_drawn(network, 2_000, 4))


@pytest.mark.parametrize(("strict", "reach"), [(False, 1.0), (True, 0.0)])
def test_a_drawn_pair_that_is_too_far_apart_does_not_meet(strict: bool, reach: float) -> None:
    """Distances are whole numbers: a confidence of 1 includes 1 unless it is strict."""
    opinions = [0, 0, 1, 2, 2]
    met = _met(_carried_out(_bounded(5, 400, 1.0, opinions, strict=strict)).turns)
    pairs = _drawn(5, 400)
    near = {
        step: (speaker, listener)
        for step, (speaker, listener) in enumerate(pairs, 1)
        if abs(opinions[speaker] - opinions[listener]) <= reach
    }
    assert met == near
    assert 0 < len(met) < 400


def test_the_near_are_met_uniformly_and_who_is_alone_meets_nobody() -> None:
    met = _met(_carried_out(_bounded(5, 5_000, 1.0, [0, 1, 1, -1, 3], choose="near")).turns)
    assert {listener for _, listener in met.values()} == {0, 1, 2, 3}
    assert _fits(Counter(speaker for speaker, listener in met.values() if listener == 0), {1: 1, 2: 1, 3: 1})
    assert _fits(Counter(speaker for speaker, listener in met.values() if listener == 1), {0: 1, 2: 1})
    assert _fits({0: 5_000 - len(met), 1: len(met)}, {0: 1 / 5, 1: 4 / 5})


def test_nobody_near_leaves_a_run_without_turns() -> None:
    for choose in ("drawn", "near"):
        assert _carried_out(_bounded(4, 50, 0.5, [-2, -1, 1, 2], choose=choose)).turns == []


@pytest.mark.parametrize("choose", ["drawn", "near"])
def test_who_has_no_opinion_is_as_far_away_as_others_are_on_average(choose: str) -> None:
    """Agent 3 has none. To 0 the others are 1 away on average, to 1 and 2 they are 1.5 away: at 1.2 only 0 reads 3."""
    met = _met(_carried_out(_bounded(4, 2_000, 1.2, [0, 1, -1, NAN], choose=choose)).turns)
    assert {speaker for speaker, listener in met.values() if listener == 3} == {0, 1, 2}
    assert {listener for speaker, listener in met.values() if speaker == 3} == {0}
    nobody = _met(_carried_out(_bounded(3, 60, 0.0, [NAN] * 3, choose=choose)).turns)
    assert len(nobody) == 60


@examples(60)
@given(
    st.sampled_from([5, nx.path_graph(5), nx.star_graph(4), nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 0), (4, 3)])]),
    st.lists(st.sampled_from(SCALE), min_size=5, max_size=5),
    st.lists(st.sampled_from([*SCALE, NAN]), min_size=1, max_size=7),
    st.sampled_from(["drawn", "near"]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_only_the_near_meet_by_what_was_measured_last(network, opinions, measured, choose, strict, seed) -> None:
    """Opinions are carried forward; in no step does a pair meet that is too far apart, or fail to that is not."""
    schedule = _bounded(network, 25, 1.0, opinions, choose=choose, strict=strict, seed=seed)
    met = _met(_carried_out(schedule, lambda turn: measured[turn.step % len(measured)]).turns)
    graph = nx.complete_graph(network) if isinstance(network, int) else network
    held = list(opinions)

    def near(a: int, b: int) -> bool:
        return abs(held[a] - held[b]) < 1.0 if strict else abs(held[a] - held[b]) <= 1.0

    for step, (drawn, listener) in enumerate(_drawn(network, 25, seed), 1):
        sources = list(graph.predecessors(listener) if graph.is_directed() else graph.neighbors(listener))
        able = [drawn] if choose == "drawn" else sources
        able = [speaker for speaker in able if near(speaker, listener)]
        if not able:
            assert step not in met
            continue
        assert met[step][0] in able
        assert met[step][1] == listener
        found = measured[step % len(measured)]
        held[listener] = held[listener] if np.isnan(found) else found


def test_a_drawn_pair_waits_for_nobody_else() -> None:
    schedule, drawn = _bounded(6, 200, 4.0, [0] * 6), _drawn(6, 200)
    outcomes, seen = _Outcomes(lambda turn: 0.0), 0

    async def story() -> None:
        nonlocal seen
        async for turn in schedule.decide(outcomes):
            outcomes.turns.append(turn)
            if turn.act == "write":
                before, seen_now = outcomes.awaited[seen:], len(outcomes.awaited)
                pair = drawn[turn.step - 1]
                assert {outcomes.turns[review].agent for review in before} <= set(pair)
                seen = seen_now

    asyncio.run(story())
    assert seen > 100


# -- ties that move -------------------------------------------------------------------------------------------


def _rewiring(network: nx.Graph | Network, steps: int, tolerance: float, opinions: Any, **options: Any) -> Any:
    seed = options.pop("seed", 3)
    return _adaptive(RewiringDyads(steps=steps, tolerance=tolerance, **options), network, opinions, seed)


GRAPHS = [
    nx.cycle_graph(7),
    nx.path_graph(7),
    nx.star_graph(6),
    nx.gnp_random_graph(7, 0.5, seed=2),
    nx.gnp_random_graph(7, 0.3, seed=4, directed=True),
    nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 0), (0, 3), (3, 0)]),
]


def _ties(graph: nx.Graph) -> set[tuple[int, int]]:
    """(speaker, listener), an undirected tie in both directions."""
    ties = {(int(u), int(v)) for u, v in graph.edges()}
    return ties if graph.is_directed() else ties | {(v, u) for u, v in ties}


@examples(150)
@given(
    st.sampled_from(GRAPHS),
    st.lists(st.sampled_from([*SCALE, NAN]), min_size=7, max_size=7),
    st.lists(st.sampled_from([*SCALE, NAN]), min_size=1, max_size=7),
    st.sampled_from(["random", "similar", "friend-of-friend"]),
    st.sampled_from([0.0, 1.0, 1.5]),
    st.sampled_from([0.5, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_ties_are_conserved_and_posts_travel_along_them(graph, opinions, measured, target, tolerance, rewire, seed):
    schedule = _rewiring(graph, 40, tolerance, opinions, target=target, rewire=rewire, seed=seed)
    met = _met(_carried_out(schedule, lambda turn: measured[turn.step % len(measured)]).turns)
    changes = {change.step: change for change in schedule.changes}
    assert len(changes) == len(schedule.changes)
    # A step either moves a tie or is a meeting.
    assert set(changes) | set(met) == set(range(1, 41))
    assert not set(changes) & set(met)
    ties = _ties(graph)
    follows = Counter(listener for _, listener in ties)
    n_ties, held = len(ties), list(opinions)
    for step in range(1, 41):
        if step in met:
            assert met[step] in ties
            found = measured[step % len(measured)]
            held[met[step][1]] = held[met[step][1]] if np.isnan(found) else found
            continue
        _, listener, dropped, followed = changes[step]
        known = not np.isnan(held[listener]) and not np.isnan(held[dropped])
        assert not known or abs(held[listener] - held[dropped]) > tolerance
        assert followed not in (listener, dropped)
        assert (dropped, listener) in ties
        assert (followed, listener) not in ties
        if target == "friend-of-friend":
            friends = {speaker for speaker, other in ties if other == listener} - {dropped}
            assert any((followed, friend) in ties for friend in friends)
        if target == "similar" and not np.isnan(held[listener]) and not np.isnan(held[followed]):
            assert abs(held[listener] - held[followed]) <= tolerance
        ties.remove((dropped, listener))
        ties.add((followed, listener))
        if not graph.is_directed():
            ties.remove((listener, dropped))
            ties.add((listener, followed))
        assert len(ties) == n_ties
    if graph.is_directed():
        assert Counter(listener for _, listener in ties) == follows


def test_the_tolerant_stay_and_wait_for_nobody_where_nobody_unfollows() -> None:
    opinions = [-2, 2] * 5
    tolerant = _rewiring(nx.cycle_graph(10), 100, 4.0, opinions)
    met = _met(_carried_out(tolerant, lambda turn: 0.0).turns)
    assert list(met) == list(range(1, 101))
    assert list(tolerant.changes) == []
    patient = _rewiring(nx.cycle_graph(10), 100, 0.0, opinions, rewire=0.0)
    outcomes = _carried_out(patient, lambda turn: 0.0)
    assert _met(outcomes.turns) == met
    assert outcomes.awaited == []


def test_ties_are_drawn_uniformly_and_so_is_who_listens() -> None:
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (1, 3)])
    pairs = Counter(_met(_carried_out(_rewiring(graph, 8_000, 9.0, [0] * 4)).turns).values())
    assert _fits(pairs, dict.fromkeys(_ties(graph), 1.0))
    arrows = nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 1)])
    pairs = Counter(_met(_carried_out(_rewiring(arrows, 8_000, 9.0, [0] * 3)).turns).values())
    assert _fits(pairs, dict.fromkeys(_ties(arrows), 1.0))


#: 0 follows 1 alone of those it disagrees with; 1 follows 6 and 2 follows 3 and 4.
_FEW = Network.from_edges([(1, 0), (2, 0), (6, 1), (3, 2), (4, 2), (0, 2)], 7, directed=True)


def _first_changes(target: str, rewire: float) -> list[TieChange | None]:
    """What becomes of 0 in the first step under each of many seeds."""

    async def first(seed: int) -> TieChange | None:
        schedule = _rewiring(_FEW, 1, 1.0, [0, 2, 0, 0, 2, 1, 0], target=target, rewire=rewire, seed=seed)
        await _story(schedule, _Outcomes(lambda turn: NAN))
        return schedule.changes[0] if schedule.changes else None

    async def each() -> list[TieChange | None]:
        return [await first(seed) for seed in range(3_000)]

    return asyncio.run(each())


@pytest.mark.parametrize(
    ("target", "fitting"),
    # 1 and 2 are followed already; 0 and 2 follow 3 and 4, whereas 6 is followed by the one that is dropped.
    [("random", {3, 4, 5, 6}), ("similar", {3, 5, 6}), ("friend-of-friend", {3, 4})],
)
def test_the_followed_agent_is_drawn_uniformly_among_those_that_fit(target: str, fitting: set[int]) -> None:
    found = _first_changes(target, 1.0)
    moved = [change for change in found if change is not None and change.listener == 0]
    assert {change[:3] for change in moved} == {(1, 0, 1)}
    # One tie in six is that of 0 and 1.
    assert _fits({1: len(moved), 0: 3_000 - len(moved)}, {1: 1 / 6, 0: 5 / 6})
    assert _fits(Counter(change.followed for change in moved), dict.fromkeys(fitting, 1.0))


def test_a_listener_unfollows_with_the_probability_given() -> None:
    found = _first_changes("random", 0.3)
    moved = sum(change is not None and change.listener == 0 for change in found)
    assert _fits({1: moved, 0: 3_000 - moved}, {1: 0.3 / 6, 0: 1 - 0.3 / 6})


def test_where_nobody_fits_they_meet_all_the_same() -> None:
    """Nobody is within tolerance of anybody, or followed by anybody whom the listener still follows."""
    for target, graph in (("similar", nx.cycle_graph(4)), ("friend-of-friend", nx.Graph([(0, 1), (2, 3)]))):
        schedule = _rewiring(graph, 50, 0.5, [-2, -1, 1, 2], target=target)
        assert len(_met(_carried_out(schedule).turns)) == 50
        assert schedule.changes == []


def test_like_minded_ties_are_all_that_is_left_in_the_end() -> None:
    opinions = [-1, 1] * 10
    schedule = _rewiring(nx.random_regular_graph(4, 20, seed=1), 2_000, 1.0, opinions, target="similar")
    met = _met(_carried_out(schedule).turns)
    assert schedule.changes
    last = max(change.step for change in schedule.changes)
    assert last < 1_900
    assert all(opinions[a] == opinions[b] for step, (a, b) in met.items() if step > last)


def test_changes_are_those_of_the_call_begun_last_and_seen_through_probes() -> None:
    schedule = _rewiring(nx.cycle_graph(8), 60, 0.0, [-2, 2] * 4)
    probed = with_probes(schedule, before=1, after=1)
    assert list(tie_changes(probed)) == []
    _carried_out(schedule)
    first = list(schedule.changes)
    assert first
    assert list(tie_changes(probed)) == first
    _carried_out(schedule)
    assert schedule.changes == first
    assert tie_changes(Dyads(steps=2).schedule(Setting.of(3))) == ()


# -- feeds ----------------------------------------------------------------------------------------------------


def _feed(network: nx.Graph | int, steps: int, opinions: Any, **options: Any) -> Any:
    seed = options.pop("seed", 3)
    return _adaptive(Feed(steps=steps, **options), network, opinions, seed)


def _shown(schedule: Any, rate: Callable[[Turn], float] = lambda turn: NAN) -> list[tuple[int, tuple[int, ...]]]:
    """Of each step, the reader and the authors it was shown, once the reads are known to be the latest posts."""
    turns = _carried_out(schedule, rate).turns
    n = schedule.n_agents
    assert [(turn.step, turn.agent, turn.act) for turn in turns[:n]] == [(0, agent, "write") for agent in range(n)]
    latest = {agent: agent for agent in range(n)}
    shown = []
    for step, (review, write) in enumerate(zip(turns[n::2], turns[n + 1 :: 2], strict=True), 1):
        assert (review.step, review.act, write.step, write.act, write.reads) == (step, "review", step, "write", ())
        assert review.agent == write.agent
        authors = {post: author for author, post in latest.items()}
        shown.append((review.agent, tuple(authors[post] for post in review.reads)))
        latest[write.agent] = write.index
    assert len(shown) == schedule.steps
    return shown


@examples(60)
@given(
    st.sampled_from([5, nx.path_graph(5), nx.star_graph(4), nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 0), (4, 3)])]),
    st.sampled_from(["similarity", "recency", "random"]),
    st.integers(1, 6),
    st.lists(st.sampled_from([*SCALE, NAN]), min_size=1, max_size=7),
    st.integers(0, 2**32 - 1),
)
def test_a_reader_is_shown_each_author_it_hears_once_at_most(network, ranking, posts, measured, seed) -> None:
    graph = nx.complete_graph(network) if isinstance(network, int) else network
    schedule = _feed(network, 20, SCALE, ranking=ranking, posts=posts, seed=seed)
    for reader, authors in _shown(schedule, lambda turn: measured[turn.step % len(measured)]):
        sources = set(graph.predecessors(reader) if graph.is_directed() else graph.neighbors(reader))
        assert set(authors) <= sources
        assert len(authors) == len(set(authors)) == min(posts, len(sources))


def test_authors_are_ranked_by_plackett_and_luce() -> None:
    """Reader 0 at 0 hears agents at distances 0, 1 and 2 and is shown two of them."""
    network = nx.DiGraph([(1, 0), (2, 0), (3, 0)])
    shown = _shown(_feed(network, 6_000, [0, 0, 1, -2], strength=0.8, posts=2))
    weights = {1: 1.0, 2: np.exp(-0.8), 3: np.exp(-1.6)}
    total = sum(weights.values())
    law = {(a, b): weights[a] / total * weights[b] / (total - weights[a]) for a, b in permutations(weights, 2)}
    assert _fits(Counter(authors for _, authors in shown), law)


@pytest.mark.parametrize("options", [{"ranking": "random"}, {"strength": 0.0}], ids=["random", "no strength"])
def test_without_a_ranking_every_order_is_as_likely(options: dict[str, Any]) -> None:
    shown = _shown(_feed(nx.DiGraph([(1, 0), (2, 0), (3, 0)]), 6_000, [0, 0, 1, -2], **options))
    assert _fits(Counter(authors for _, authors in shown), dict.fromkeys(permutations((1, 2, 3)), 1.0))


def test_with_much_strength_the_nearest_come_first_by_what_was_measured_last() -> None:
    measured = [1.7, -0.4, 0.9, -1.6, 0.2, NAN, 1.1]
    opinions = [-2.0, -1.1, 0.3, 1.0, 1.9]
    schedule = _feed(5, 60, opinions, strength=1e6, posts=4)
    held = list(opinions)
    for step, (reader, authors) in enumerate(_shown(schedule, lambda turn: measured[turn.step % 7]), 1):
        distances = [abs(held[author] - held[reader]) for author in authors]
        assert distances == sorted(distances)
        found = measured[step % 7]
        held[reader] = held[reader] if np.isnan(found) else found


def test_the_latest_posts_come_first_and_no_opinion_is_waited_for() -> None:
    schedule = _feed(6, 80, [0] * 6, ranking="recency", posts=5)
    written = dict.fromkeys(range(6), 0)
    beginnings = set()
    for step, (reader, authors) in enumerate(_shown(schedule), 1):
        ages = [written[author] for author in authors]
        assert ages == sorted(ages, reverse=True)
        beginnings.add(authors)
        written[reader] = step
    assert _carried_out(schedule).awaited == []
    assert schedule.needs == ()
    # The first posts are of one age and come in random order.
    first = Counter(_shown(_feed(nx.DiGraph([(1, 0), (2, 0)]), 1, [0] * 3, ranking="recency", seed=seed))[0][1]
                    for seed in range(400))  # fmt: skip
    assert _fits(first, {(1, 2): 1, (2, 1): 1})


def test_readers_are_those_that_hear_somebody() -> None:
    readers = Counter(reader for reader, _ in _shown(_feed(nx.DiGraph([(0, 1), (1, 2), (3, 2)]), 4_000, [0] * 4)))
    assert _fits(readers, {1: 1, 2: 1})


def test_who_wrote_nothing_since_is_shown_by_its_first_post() -> None:
    schedule = _feed(2, 2, [0, 0], posts=1)
    turns = _carried_out(schedule).turns
    assert [turn.act for turn in turns] == ["write", "write", "review", "write", "review", "write"]
    first = turns[2].agent
    assert turns[2].reads == (1 - first,)
    assert turns[4].reads == ((3,) if turns[4].agent != first else (1 - first,))
    assert [turn.step for turn in _carried_out(_feed(2, 0, [0, 0])).turns] == [0, 0]


# -- all of them ----------------------------------------------------------------------------------------------

RING_OF_SIX = nx.cycle_graph(6)
CASES: dict[str, tuple[Interaction, nx.Graph | int]] = {
    "power": (SimilarityDyads(steps=30, form="power"), 6),
    "drawn": (BoundedConfidenceDyads(steps=30, confidence=1.0), 6),
    "near": (BoundedConfidenceDyads(steps=30, confidence=1.0, choose="near"), RING_OF_SIX),
    "rewiring": (RewiringDyads(steps=30, tolerance=1.0, rewire=0.7), RING_OF_SIX),
    "feed": (Feed(steps=30), RING_OF_SIX),
}


def _case(name: str, seed: int = 3) -> Any:
    return _adaptive(*CASES[name], [*SCALE, NAN], seed)


@pytest.mark.parametrize("name", CASES)
def test_an_outline_has_as_many_turns_as_there_can_be(name: str) -> None:
    schedule = _case(name)
    outlined, turns = list(outline(schedule)), _carried_out(schedule, lambda turn: SCALE[turn.index % 5]).turns
    assert [turn.index for turn in outlined] == list(range(len(outlined)))
    assert all(turn.step <= schedule.steps for turn in outlined)
    assert len(turns) <= len(outlined)
    assert (len(turns) < len(outlined)) == (name in ("drawn", "near", "rewiring"))
    if name == "feed":
        assert [(turn.step, turn.agent, turn.act, len(turn.reads)) for turn in outlined] == [
            (turn.step, turn.agent, turn.act, len(turn.reads)) for turn in turns
        ]
    probed = with_probes(schedule, 1, 1)
    assert isinstance(probed, AdaptiveSchedule)
    assert not isinstance(probed, StaticSchedule)
    assert len(list(outline(probed))) == len(outlined) + 12


def test_a_schedule_without_an_outline_cannot_be_forecast() -> None:
    class Bare(Schedule):
        n_agents, steps, acts = 2, 1, named(WRITE)

        async def decide(self, outcomes):
            yield Turn(0, 1, 0, "write")

    with pytest.raises(ScheduleError, match="Bare has no outline"):
        outline(Bare())


@pytest.mark.parametrize("name", CASES)
def test_another_seed_is_another_schedule(name: str) -> None:
    turns = _carried_out(_case(name)).turns
    assert _carried_out(_case(name)).turns == turns
    assert _carried_out(_case(name, seed=4)).turns != turns


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _bounded(1, 1, 1, [0]), "N >= 2"),
        (lambda: _bounded(nx.empty_graph(4), 1, 1, [0] * 4), "has no edge"),
        (lambda: _bounded(4, 1, 1, [0] * 3), "one for each of the 4 agents"),
        (lambda: _rewiring(4, 1, 1, [0] * 4), "leaves nobody else to follow"),
        (lambda: _rewiring(nx.complete_graph(4), 1, 1, [0] * 4), "leaves nobody else to follow"),
    ],
)
def test_impossible_settings(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


@pytest.mark.parametrize(
    ("interaction", "field", "value"),
    [
        (SimilarityDyads, "form", "linear"),
        (SimilarityDyads, "floor", 0.0),
        (BoundedConfidenceDyads, "confidence", -0.5),
        (BoundedConfidenceDyads, "confidence", NAN),
        (BoundedConfidenceDyads, "choose", "far"),
        (BoundedConfidenceDyads, "steps", -1),
        (RewiringDyads, "tolerance", float("inf")),
        (RewiringDyads, "rewire", 1.5),
        (RewiringDyads, "target", "foe"),
        (Feed, "posts", 0),
        (Feed, "strength", NAN),
        (Feed, "ranking", "age"),
    ],
)
def test_impossible_fields(interaction: type[Interaction], field: str, value: object) -> None:
    least = {"confidence": 1} if interaction is BoundedConfidenceDyads else {}
    least = {"tolerance": 1} if interaction is RewiringDyads else least
    with pytest.raises(ValidationError, match=rf"1 validation error for {interaction.__name__}\n{field}\n"):
        interaction(**{"steps": 1, **least, field: value})
