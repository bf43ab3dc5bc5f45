"""Who meets whom, follows whom and is shown whom, as often as the ways of interacting say."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import permutations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

from opinionsim.networks import Network
from opinionsim.schedules import (
    BoundedConfidenceDyads,
    Feed,
    RewiringDyads,
    SimilarityDyads,
    TieChange,
)
from tests.support.adaptive import NAN, Outcomes, adaptive, authors_shown, pairs_met, story


def _fits(counts: dict[Any, int], shares: dict[Any, float]) -> bool:
    """Whether counts are drawn with the given probabilities: chi-square, one false alarm in a million."""
    assert set(counts) <= set(shares)
    total = sum(counts.values())
    expected = np.array(list(shares.values()))
    observed = [counts.get(key, 0) for key in shares]
    return bool(chisquare(observed, expected / expected.sum() * total).pvalue > 1e-6)


def test_the_power_law_of_partner_choice() -> None:
    """Listener 0 at 0 hears agents at distances 0.1 (below the floor), 1, 2 and 3."""
    network = nx.DiGraph([(speaker, 0) for speaker in (1, 2, 3, 4)])
    opinions = [0, 0.1, 1, -2, 3]
    power = SimilarityDyads(steps=6_000, strength=1.5, form="power", floor=0.25)
    schedule = adaptive(power, network, opinions)
    speakers = Counter(speaker for speaker, _ in pairs_met(schedule).values())
    assert _fits(speakers, {1: 0.25**-1.5, 2: 1.0, 3: 2**-1.5, 4: 3**-1.5})
    assert not _fits(speakers, dict.fromkeys((1, 2, 3, 4), 1.0))


def test_a_power_law_without_strength_is_indifferent() -> None:
    schedule = adaptive(SimilarityDyads(steps=3_000, strength=0.0, form="power"), 4, [0, 0, 2, 2])
    pairs = Counter(pairs_met(schedule).values())
    assert _fits(pairs, dict.fromkeys(permutations(range(4), 2), 1.0))


def _bounded(network: nx.Graph | int, steps: int, confidence: float, opinions: Any, **options: Any):
    seed = options.pop("seed", 3)
    return adaptive(BoundedConfidenceDyads(steps=steps, confidence=confidence, **options), network, opinions, seed)


def test_the_near_are_met_uniformly_and_who_is_alone_meets_nobody() -> None:
    met = pairs_met(_bounded(5, 5_000, 1.0, [0, 1, 1, -1, 3], choose="near"))
    assert {listener for _, listener in met.values()} == {0, 1, 2, 3}
    assert _fits(Counter(speaker for speaker, listener in met.values() if listener == 0), {1: 1, 2: 1, 3: 1})
    assert _fits(Counter(speaker for speaker, listener in met.values() if listener == 1), {0: 1, 2: 1})
    assert _fits({0: 5_000 - len(met), 1: len(met)}, {0: 1 / 5, 1: 4 / 5})


def _rewiring(network: nx.Graph | Network, steps: int, tolerance: float, opinions: Any, **options: Any) -> Any:
    seed = options.pop("seed", 3)
    return adaptive(RewiringDyads(steps=steps, tolerance=tolerance, **options), network, opinions, seed)


def _ties(graph: nx.Graph) -> set[tuple[int, int]]:
    """(speaker, listener), an undirected tie in both directions."""
    ties = {(int(u), int(v)) for u, v in graph.edges()}
    return ties if graph.is_directed() else ties | {(v, u) for u, v in ties}


def test_ties_are_drawn_uniformly_and_so_is_who_listens() -> None:
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (1, 3)])
    pairs = Counter(pairs_met(_rewiring(graph, 8_000, 9.0, [0] * 4)).values())
    assert _fits(pairs, dict.fromkeys(_ties(graph), 1.0))
    arrows = nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 1)])
    pairs = Counter(pairs_met(_rewiring(arrows, 8_000, 9.0, [0] * 3)).values())
    assert _fits(pairs, dict.fromkeys(_ties(arrows), 1.0))


#: 0 follows 1 alone of those it disagrees with; 1 follows 6 and 2 follows 3 and 4.
_FEW = Network.from_edges([(1, 0), (2, 0), (6, 1), (3, 2), (4, 2), (0, 2)], 7, directed=True)


def _first_changes(target: str, rewire: float) -> list[TieChange | None]:
    """What becomes of 0 in the first step under each of many seeds."""

    async def first(seed: int) -> TieChange | None:
        schedule = _rewiring(_FEW, 1, 1.0, [0, 2, 0, 0, 2, 1, 0], target=target, rewire=rewire, seed=seed)
        await story(schedule, Outcomes(lambda turn: NAN))
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


def _feed(network: nx.Graph | int, steps: int, opinions: Any, **options: Any) -> Any:
    seed = options.pop("seed", 3)
    return adaptive(Feed(steps=steps, **options), network, opinions, seed)


def test_authors_are_ranked_by_plackett_and_luce() -> None:
    """Reader 0 at 0 hears agents at distances 0, 1 and 2 and is shown two of them."""
    network = nx.DiGraph([(1, 0), (2, 0), (3, 0)])
    shown = authors_shown(_feed(network, 6_000, [0, 0, 1, -2], strength=0.8, posts=2))
    weights = {1: 1.0, 2: np.exp(-0.8), 3: np.exp(-1.6)}
    total = sum(weights.values())
    law = {(a, b): weights[a] / total * weights[b] / (total - weights[a]) for a, b in permutations(weights, 2)}
    assert _fits(Counter(authors for _, authors in shown), law)


@pytest.mark.parametrize("options", [{"ranking": "random"}, {"strength": 0.0}], ids=["random", "no strength"])
def test_without_a_ranking_every_order_is_as_likely(options: dict[str, Any]) -> None:
    shown = authors_shown(_feed(nx.DiGraph([(1, 0), (2, 0), (3, 0)]), 6_000, [0, 0, 1, -2], **options))
    assert _fits(Counter(authors for _, authors in shown), dict.fromkeys(permutations((1, 2, 3)), 1.0))


def test_readers_are_those_that_hear_somebody() -> None:
    readers = Counter(
        reader for reader, _ in authors_shown(_feed(nx.DiGraph([(0, 1), (1, 2), (3, 2)]), 4_000, [0] * 4))
    )
    assert _fits(readers, {1: 1, 2: 1})


def test_without_strength_partners_are_uniform() -> None:
    pairs = pairs_met(adaptive(SimilarityDyads(steps=6_000, strength=0.0), 4, [-2, -2, 2, 2]))
    assert _fits(Counter(pairs.values()), dict.fromkeys(permutations(range(4), 2), 1.0))


def test_the_odds_of_a_partner_fall_exponentially_with_distance() -> None:
    """Listener 0 at 0 hears 1 at distance 1 and 2 at distance 2, and nobody else hears anybody."""
    pairs = pairs_met(adaptive(SimilarityDyads(steps=4_000, strength=0.7), nx.DiGraph([(1, 0), (2, 0)]), [0, 1, -2]))
    assert _fits(Counter(speaker for speaker, _ in pairs.values()), {1: np.exp(-0.7), 2: np.exp(-1.4)})


def test_agents_without_an_opinion_meet_uniformly() -> None:
    pairs = pairs_met(adaptive(SimilarityDyads(steps=3_000, strength=50.0), 4, [NAN, -2, 0, 2]))
    assert _fits(Counter(speaker for speaker, listener in pairs.values() if not listener), {1: 1, 2: 1, 3: 1})
