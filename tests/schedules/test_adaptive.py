"""Bounded confidence, rewiring, feeds and power-law partner choice: laws, conservation, and what is waited for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from opinionsim.errors import ScheduleError, SpecError
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
    Turn,
    named,
    outline,
    tie_changes,
    with_probes,
)
from tests.support.adaptive import NAN, Outcomes, adaptive, authors_shown, carried_out, pairs_met
from tests.support.examples import examples

SCALE = (-2.0, -1.0, 0.0, 1.0, 2.0)


def _drawn(network: nx.Graph | int, steps: int, seed: int = 3) -> list[tuple[int, int]]:
    """(speaker, listener) of each step as random dyads draw them from a seed of their own."""
    setting = Setting.of(network, seed)
    return list(map(tuple, setting.neighbours.draw_pairs(steps, np.random.default_rng(setting.seed)).tolist()))


# -- partners by a power law ----------------------------------------------------------------------------------


def test_opinions_that_agree_do_not_blow_the_power_law_up() -> None:
    schedule = adaptive(SimilarityDyads(steps=50, strength=800.0, form="power", floor=1e-12), 3, [1, 1, -1])
    met = set(pairs_met(schedule).values())
    assert {pair for pair in met if 2 not in pair} == {(0, 1), (1, 0)} == met - {(0, 2), (1, 2)}


# -- bounded confidence ---------------------------------------------------------------------------------------


def _bounded(network: nx.Graph | int, steps: int, confidence: float, opinions: Any, **options: Any):
    seed = options.pop("seed", 3)
    return adaptive(BoundedConfidenceDyads(steps=steps, confidence=confidence, **options), network, opinions, seed)


@pytest.mark.parametrize("network", [5, nx.path_graph(5), nx.DiGraph([(0, 1), (1, 2), (2, 0), (3, 0), (4, 3)])])
@pytest.mark.parametrize("choose", ["drawn", "near"])
def test_with_confidence_in_all_pairs_are_drawn_as_dyads_are(network: nx.Graph | int, choose: str) -> None:
    met = pairs_met(_bounded(network, 300, 4.0, SCALE, choose=choose))
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
    met = pairs_met(_bounded(5, 400, 1.0, opinions, strict=strict))
    pairs = _drawn(5, 400)
    near = {
        step: (speaker, listener)
        for step, (speaker, listener) in enumerate(pairs, 1)
        if abs(opinions[speaker] - opinions[listener]) <= reach
    }
    assert met == near
    assert 0 < len(met) < 400


def test_nobody_near_leaves_a_run_without_turns() -> None:
    for choose in ("drawn", "near"):
        assert carried_out(_bounded(4, 50, 0.5, [-2, -1, 1, 2], choose=choose)).turns == []


@pytest.mark.parametrize("choose", ["drawn", "near"])
def test_who_has_no_opinion_is_as_far_away_as_others_are_on_average(choose: str) -> None:
    """Agent 3 has none. To 0 the others are 1 away on average, to 1 and 2 they are 1.5 away: at 1.2 only 0 reads 3."""
    met = pairs_met(_bounded(4, 2_000, 1.2, [0, 1, -1, NAN], choose=choose))
    assert {speaker for speaker, listener in met.values() if listener == 3} == {0, 1, 2}
    assert {listener for speaker, listener in met.values() if speaker == 3} == {0}
    nobody = pairs_met(_bounded(3, 60, 0.0, [NAN] * 3, choose=choose))
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
    met = pairs_met(schedule, lambda turn: measured[turn.step % len(measured)])
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
    outcomes, seen = Outcomes(lambda turn: 0.0), 0

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
    return adaptive(RewiringDyads(steps=steps, tolerance=tolerance, **options), network, opinions, seed)


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
    met = pairs_met(schedule, lambda turn: measured[turn.step % len(measured)])
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
    met = pairs_met(tolerant, lambda turn: 0.0)
    assert list(met) == list(range(1, 101))
    assert list(tolerant.changes) == []
    patient = _rewiring(nx.cycle_graph(10), 100, 0.0, opinions, rewire=0.0)
    assert pairs_met(patient, lambda turn: 0.0) == met
    assert carried_out(patient, lambda turn: 0.0).awaited == []


def test_where_nobody_fits_they_meet_all_the_same() -> None:
    """Nobody is within tolerance of anybody, or followed by anybody whom the listener still follows."""
    for target, graph in (("similar", nx.cycle_graph(4)), ("friend-of-friend", nx.Graph([(0, 1), (2, 3)]))):
        schedule = _rewiring(graph, 50, 0.5, [-2, -1, 1, 2], target=target)
        assert len(pairs_met(schedule)) == 50
        assert schedule.changes == []


def test_like_minded_ties_are_all_that_is_left_in_the_end() -> None:
    opinions = [-1, 1] * 10
    schedule = _rewiring(nx.random_regular_graph(4, 20, seed=1), 2_000, 1.0, opinions, target="similar")
    met = pairs_met(schedule)
    assert schedule.changes
    last = max(change.step for change in schedule.changes)
    assert last < 1_900
    assert all(opinions[a] == opinions[b] for step, (a, b) in met.items() if step > last)


def test_changes_are_those_of_the_call_begun_last_and_seen_through_probes() -> None:
    schedule = _rewiring(nx.cycle_graph(8), 60, 0.0, [-2, 2] * 4)
    probed = with_probes(schedule, before=1, after=1)
    assert list(tie_changes(probed)) == []
    carried_out(schedule)
    first = list(schedule.changes)
    assert first
    assert list(tie_changes(probed)) == first
    carried_out(schedule)
    assert schedule.changes == first
    assert tie_changes(Dyads(steps=2).schedule(Setting.of(3))) == ()


# -- feeds ----------------------------------------------------------------------------------------------------


def _feed(network: nx.Graph | int, steps: int, opinions: Any, **options: Any) -> Any:
    seed = options.pop("seed", 3)
    return adaptive(Feed(steps=steps, **options), network, opinions, seed)


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
    for reader, authors in authors_shown(schedule, lambda turn: measured[turn.step % len(measured)]):
        sources = set(graph.predecessors(reader) if graph.is_directed() else graph.neighbors(reader))
        assert set(authors) <= sources
        assert len(authors) == len(set(authors)) == min(posts, len(sources))


def test_with_much_strength_the_nearest_come_first_by_what_was_measured_last() -> None:
    measured = [1.7, -0.4, 0.9, -1.6, 0.2, NAN, 1.1]
    opinions = [-2.0, -1.1, 0.3, 1.0, 1.9]
    schedule = _feed(5, 60, opinions, strength=1e6, posts=4)
    held = list(opinions)
    for step, (reader, authors) in enumerate(authors_shown(schedule, lambda turn: measured[turn.step % 7]), 1):
        distances = [abs(held[author] - held[reader]) for author in authors]
        assert distances == sorted(distances)
        found = measured[step % 7]
        held[reader] = held[reader] if np.isnan(found) else found


def test_the_latest_posts_come_first_and_no_opinion_is_waited_for() -> None:
    schedule = _feed(6, 80, [0] * 6, ranking="recency", posts=5)
    written = dict.fromkeys(range(6), 0)
    beginnings = set()
    for step, (reader, authors) in enumerate(authors_shown(schedule), 1):
        ages = [written[author] for author in authors]
        assert ages == sorted(ages, reverse=True)
        beginnings.add(authors)
        written[reader] = step
    assert carried_out(schedule).awaited == []
    assert schedule.needs == ()
    # The first posts are of one age and come in random order.
    alike = [_feed(nx.DiGraph([(1, 0), (2, 0)]), 1, [0] * 3, ranking="recency", seed=seed) for seed in range(40)]
    assert {authors_shown(each)[0][1] for each in alike} == {(1, 2), (2, 1)}


def test_who_wrote_nothing_since_is_shown_by_its_first_post() -> None:
    schedule = _feed(2, 2, [0, 0], posts=1)
    turns = carried_out(schedule).turns
    assert [turn.act for turn in turns] == ["write", "write", "review", "write", "review", "write"]
    first = turns[2].agent
    assert turns[2].reads == (1 - first,)
    assert turns[4].reads == ((3,) if turns[4].agent != first else (1 - first,))
    assert [turn.step for turn in carried_out(_feed(2, 0, [0, 0])).turns] == [0, 0]


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
    return adaptive(*CASES[name], [*SCALE, NAN], seed)


@pytest.mark.parametrize("name", CASES)
def test_an_outline_has_as_many_turns_as_there_can_be(name: str) -> None:
    schedule = _case(name)
    outlined, turns = list(outline(schedule)), carried_out(schedule, lambda turn: SCALE[turn.index % 5]).turns
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
    turns = carried_out(_case(name)).turns
    assert carried_out(_case(name)).turns == turns
    assert carried_out(_case(name, seed=4)).turns != turns


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _bounded(1, 1, 1, [0]), "population.size is 1"),
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
