"""Models whose agents meet in pairs: voter, CODA, weighted linear, Jager-Amblard, algorithmic bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opinionsim.classic import simulate, transition
from opinionsim.errors import SpecError
from opinionsim.networks import Network

pytestmark = pytest.mark.long

#: Agent 0 speaks to agent 1 and nobody else to anybody.
_ONE_WAY = [(0, 1)]


def _meet(model: str, own: float, other: float, **settings: Any) -> float:
    """The opinion of whoever has listened once."""
    found = simulate(model, 2, [other, own], pairs=_ONE_WAY, **settings)
    assert found.final[0, 0] == pytest.approx(other, abs=1e-14)
    return float(found.final[0, 1])


def _same_as_python(model: str, network: Any, initial: Any, steps: int = 6, **settings: Any) -> np.ndarray:
    fast = simulate(model, network, initial, steps, 3, **settings)
    slow = simulate(model, network, initial, steps, 3, machine=False, **settings)
    assert fast.opinions.tobytes() == slow.opinions.tobytes()
    return fast.opinions


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("voter", {}),
        ("coda", {}),
        ("weighted-linear", {"h": 2.5}),
        ("jager-amblard", {"u": 0.3, "t": 0.8, "mu": 0.4}),
        ("algorithmic-bias", {"epsilon": 0.5, "gamma": 0.8}),
        ("algorithmic-bias", {"epsilon": 0.5, "gamma": 1.0}),
    ],
)
def test_machine_code_and_python_give_the_same_bytes(model: str, settings: dict[str, Any]) -> None:
    weighted = Network.from_edges([(a, (a + gap) % 9) for a in range(9) for gap in (1, 2)], 9, np.arange(1.0, 19))
    span = (-1.0, 1.0) if model == "jager-amblard" else (0.0, 1.0)
    initial = np.linspace(*span, 9)
    for network in (9, weighted):
        found = _same_as_python(model, network, initial, **settings)
        assert not np.array_equal(found[0, 0], found[0, -1])


@pytest.mark.parametrize(
    ("model", "span", "settings"),
    [
        ("voter", (0.0, 1.0), {}),
        ("coda", (-2.0, 3.0), {"trust": 0.8}),
        ("weighted-linear", (-2.0, 3.0), {"h": 2.5, "mu": 0.4}),
        ("jager-amblard", (-2.0, 3.0), {"u": 0.7, "t": 2.1, "mu": 0.45}),
        ("algorithmic-bias", (-2.0, 3.0), {"epsilon": 1.3, "mu": 0.3}),
    ],
)
def test_transition_says_what_the_kernel_does(model: str, span: tuple[float, float], settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    size = 60
    opinions = rng.uniform(*span, 2 * size)
    opinions[:4] = span[0], span[1], sum(span) / 2, sum(span) / 2
    pairs = np.stack([np.arange(size, 2 * size), np.arange(size)], axis=1)  # every listener once, speakers never
    found = simulate(model, 2 * size, opinions, pairs=pairs, range=span, **settings)
    expected = transition(model, opinions[:size], opinions[size:], range=span, **settings)
    assert expected.probabilities.tolist() == [[1.0]] * size
    np.testing.assert_allclose(found.final[0, :size], expected.values[:, 0], rtol=0, atol=1e-13 * (span[1] - span[0]))
    np.testing.assert_allclose(found.final[0, size:], opinions[size:], rtol=0, atol=1e-14 * (span[1] - span[0]))


class TestVoter:
    def test_listener_takes_over_any_value(self) -> None:
        assert _meet("voter", 0.25, 0.75) == 0.75

    def test_zealots_keep_theirs(self) -> None:
        zealots = np.array([0, 1, 0, 0, 1, 0])
        initial = np.array([0.0, 1.0, 0.5, 0.25, 1.0, 0.0])
        found = _same_as_python("voter", 6, initial, 40, zealot=zealots)
        assert (found[0][:, zealots == 1] == 1).all()
        assert (found[0, -1] == 1).all()  # they agree, and there is nothing else to end in

    def test_who_is_drawn_first(self) -> None:
        # A directed star, its centre being heard by 4 leaves and hearing one of them.
        edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 0)]
        star = Network.from_edges(edges, 5, directed=True)
        share = {}
        for pick in ("listener", "speaker", "edge"):
            found = simulate("voter", star, np.linspace(0, 1, 5), 1, 1, replicates=1500, threads=1, pick=pick,
                             isolates="keep")  # fmt: skip
            changed = (found.opinions[:, 1] != found.opinions[:, 0]).mean(axis=0)
            share[pick] = changed[0]
        # The centre listens in an event with probability 1/5, 1/2 (speakers are 0 and 1) and 1/5; a sweep has 5, 2 and
        # 5 events. It then stands apart unless the leaf it hears has taken over its value before.
        assert share["speaker"] == pytest.approx(self._apart(1 / 2, 1 / 8, 2), abs=4 * 0.013)
        assert share["listener"] == pytest.approx(self._apart(1 / 5, 1 / 5, 5), abs=4 * 0.013)
        assert share["edge"] == pytest.approx(self._apart(1 / 5, 1 / 5, 5), abs=4 * 0.013)

    @staticmethod
    def _apart(centre: float, leaf: float, events: int) -> float:
        """Probability that the centre listens before the leaf it hears does, in so many events."""
        return centre / (centre + leaf) * (1 - (1 - centre - leaf) ** events)

    def test_partners_come_in_proportion_to_weights(self) -> None:
        network = Network.from_edges([(1, 0), (2, 0), (3, 0)], 4, [1.0, 2.0, 5.0], directed=True)
        found = simulate("voter", network, [0, 0.25, 0.5, 1], 1, 5, replicates=4000, isolates="keep", threads=1)
        counts = [(found.final[:, 0] == value).sum() for value in (0.25, 0.5, 1)]
        expected = np.array([1, 2, 5]) / 8 * 4000
        assert ((counts - expected) ** 2 / expected).sum() < 18.4  # chi-square of 2 degrees, 1 in 10^4

    def test_synchronous_updates_read_what_was_before(self) -> None:
        ring = Network.from_edges([(0, 1), (1, 2), (2, 0)], 3, directed=True)
        found = simulate("voter", ring, [0, 0.5, 1], 3, order="synchronous")
        assert found.opinions[0].tolist() == [[0, 0.5, 1], [1, 0, 0.5], [0.5, 1, 0], [0, 0.5, 1]]
        in_turn = simulate("voter", ring, [0, 0.5, 1], 1, order="sequential")
        assert in_turn.final.tolist() == [[1, 1, 1]]

    @pytest.mark.parametrize("zealot", [2, -1, 0.5, [0, 1], "yes", None])
    def test_bad_zealots(self, zealot: Any) -> None:
        with pytest.raises(SpecError, match="zealot"):
            simulate("voter", 3, zealot=zealot)


class TestCoda:
    def test_bayes(self) -> None:
        # Prior 0.6; a choice for the upper end is seen with probability 0.8 if that is right, with 0.2 if not.
        assert _meet("coda", 0.6, 0.9, trust=0.8) == pytest.approx(0.6 * 0.8 / (0.6 * 0.8 + 0.4 * 0.2), abs=1e-14)
        assert _meet("coda", 0.6, 0.1, trust=0.8) == pytest.approx(0.6 * 0.2 / (0.6 * 0.2 + 0.4 * 0.8), abs=1e-14)

    def test_only_the_choice_is_seen(self) -> None:
        assert _meet("coda", 0.3, 0.51) == _meet("coda", 0.3, 0.99) != _meet("coda", 0.3, 0.49)

    @pytest.mark.parametrize("span", [(0.0, 1.0), (0.1, 0.3), (-3.0, 7.0)])
    def test_neutral_says_nothing_and_certain_never_changes(self, span: tuple[float, float]) -> None:
        low, high = span
        own = low + 0.3 * (high - low)
        assert _meet("coda", own, (low + high) / 2, range=span) == pytest.approx(own, abs=1e-15)
        assert _meet("coda", low, high, range=span) == low
        assert _meet("coda", high, low, range=span) == high

    def test_steps_of_one_in_log_odds_so_scaled(self) -> None:
        rng = np.random.default_rng(2)
        walk = rng.normal(0, 3, 40)  # log-odds in steps
        finals = []
        for trust in (0.55, 0.7, 0.9):
            unit = np.log(trust / (1 - trust))
            found = simulate("coda", 40, 1 / (1 + np.exp(-walk * unit)), 5, 4, trust=trust)
            ended = found.final[0]
            finals.append((np.log(ended) - np.log1p(-ended)) / unit)
        moved = finals[0] - walk
        np.testing.assert_allclose(moved, np.round(moved), atol=1e-8)
        assert np.abs(moved).max() >= 1
        # With more trust the ends are closer to 1 than floats resolve well; steps are the same all the same.
        np.testing.assert_allclose(finals[1], finals[0], atol=1e-6)
        np.testing.assert_allclose(finals[2], finals[0], atol=1e-2)

    def test_trust_of_each_agent(self) -> None:
        found = simulate("coda", 3, [0.9, 0.5, 0.5], pairs=[(0, 1), (0, 2)], trust=[0.7, 0.6, 0.9])
        np.testing.assert_allclose(found.final[0], [0.9, 0.6, 0.9], atol=1e-15)

    def test_both_of_a_pair_learn(self) -> None:
        # They meet twice, once at the turn of each: two steps each.
        found = simulate("coda", [(0, 1)], [0.999, 0.1], 1, sides="two", trust=0.7, order="sequential")
        odds = np.array([999.0, 1 / 9]) * (7 / 3) ** np.array([-2, 2])
        # Too few for a change of sides.
        assert odds[1] < 1
        np.testing.assert_allclose(found.final[0], odds / (1 + odds), atol=1e-14)

    @pytest.mark.parametrize("trust", [0.5, 1.0, 0.2, float("nan")])
    def test_bad_trust(self, trust: float) -> None:
        with pytest.raises(SpecError, match="trust"):
            simulate("coda", 3, trust=trust)


class TestWeightedLinear:
    def test_attraction_indifference_repulsion(self) -> None:
        assert _meet("weighted-linear", 0.5, 0.6, mu=0.5, h=2) == pytest.approx(0.5 + 0.5 * (1 - 0.2) * 0.1)
        assert _meet("weighted-linear", 0.25, 0.75, mu=0.5, h=2) == 0.25
        assert _meet("weighted-linear", 0.2, 0.9, mu=0.5, h=2) == pytest.approx(0.2 + 0.5 * (1 - 1.4) * 0.7)

    def test_ends_of_the_range_stop_opinions(self) -> None:
        assert _meet("weighted-linear", 0.05, 0.95, mu=1, h=3) == 0
        assert _meet("weighted-linear", 4.0, -4.0, mu=1, h=3, range=(-5, 5)) == 5

    def test_range_is_a_change_of_scale(self) -> None:
        initial = np.random.default_rng(3).random(20)
        unit = simulate("weighted-linear", 20, initial, 20, 2, mu=0.3)
        wide = simulate("weighted-linear", 20, 10 * initial - 5, 20, 2, mu=0.3, range=(-5, 5))
        np.testing.assert_allclose(wide.opinions, 10 * unit.opinions - 5, atol=1e-9)

    def test_without_loss_it_is_bounded_confidence_as_wide_as_the_range(self) -> None:
        initial = np.random.default_rng(3).random(20)
        for sides in ("one", "two"):
            linear = simulate("weighted-linear", 20, initial, 20, 2, mu=0.3, h=0, sides=sides)
            bounded = simulate("deffuant", 20, initial, 20, 2, mu=0.3, epsilon=1, sides=sides, pick="listener")
            assert np.array_equal(linear.opinions, bounded.opinions)

    def test_strong_loss_drives_opinions_to_both_ends(self) -> None:
        found = simulate("weighted-linear", 60, "uniform", 400, 2, mu=0.5, h=4)
        assert set(found.final[0].round(9)) == {0.0, 1.0}


class TestJagerAmblard:
    def test_attraction_indifference_repulsion(self) -> None:
        settings = {"u": 0.5, "t": 1.0, "mu": 0.25}
        assert _meet("jager-amblard", 0.0, 0.4, **settings) == 0.1
        assert _meet("jager-amblard", 0.0, 0.75, **settings) == 0.0
        assert _meet("jager-amblard", -0.25, 1.0, **settings) == -0.25 - 0.25 * 1.25
        assert _meet("jager-amblard", -0.875, 1.0, **settings) == -1.0

    def test_exactly_at_a_threshold(self) -> None:
        settings = {"u": 0.5, "t": 1.0, "mu": 0.5}
        assert _meet("jager-amblard", 0.0, 0.5, **settings) == 0
        assert _meet("jager-amblard", 0.0, 0.5, threshold="<=", **settings) == 0.25
        assert _meet("jager-amblard", 0.0, 1.0, **settings) == 0
        assert _meet("jager-amblard", 0.0, 1.0, threshold="<=", **settings) == -0.5
        # Where both thresholds are one, attraction has it.
        assert _meet("jager-amblard", 0.0, 0.5, threshold="<=", u=0.5, t=0.5, mu=0.5) == 0.25
        assert transition("jager-amblard", [0.0], [0.5], threshold="<=", u=0.5, t=0.5, mu=0.5).values == 0.25

    def test_thresholds_of_each_agent(self) -> None:
        found = simulate("jager-amblard", 3, [0.5, 0.0, 0.0], pairs=[(0, 1), (0, 2)], mu=0.5, u=[0.1, 0.6, 0.1],
                         t=[2, 2, 0.3])  # fmt: skip
        assert found.final[0].tolist() == [0.5, 0.25, -0.25]

    def test_without_rejection_it_is_bounded_confidence(self) -> None:
        initial = np.random.default_rng(3).uniform(-1, 1, 20)
        for sides in ("one", "two"):
            judged = simulate("jager-amblard", 20, initial, 20, 2, u=0.4, t=2, mu=0.3, sides=sides, threshold="<=")
            bounded = simulate("deffuant", 20, initial, 20, 2, epsilon=0.4, mu=0.3, sides=sides, pick="listener",
                               range=(-1, 1))  # fmt: skip
            assert np.array_equal(judged.opinions, bounded.opinions)

    def test_vectors_move_along_the_line_between_them_and_stop_at_the_ends(self) -> None:
        near = simulate("jager-amblard", 2, [[0.3, 0.4], [0, 0]], pairs=_ONE_WAY, u=0.6, t=1, mu=0.5)
        np.testing.assert_allclose(near.final[0, 1], [0.15, 0.2], atol=1e-15)
        far = simulate("jager-amblard", 2, [[1.0, 0.5], [-0.8, 0]], pairs=_ONE_WAY, u=0.6, t=1, mu=0.5)
        np.testing.assert_allclose(far.final[0, 1], [-1.0, -0.25], atol=1e-15)

    @pytest.mark.parametrize("thresholds", [{"u": 0.5, "t": 0.4}, {"u": [0.1, 0.9, 0.1], "t": 0.5}])
    def test_thresholds_in_the_wrong_order(self, thresholds: dict[str, Any]) -> None:
        with pytest.raises(SpecError, match="t of jager-amblard must be at least u"):
            simulate("jager-amblard", 3, **thresholds)


class TestAlgorithmicBias:
    @pytest.mark.parametrize("order", ["random", "permutation", "sequential"])
    def test_without_bias_it_is_deffuant(self, order: str) -> None:
        initial = np.random.default_rng(5).random(15)
        ring = Network.from_edges([(a, (a + gap) % 15) for a in range(15) for gap in (1, 2, 3)], 15)
        for network in (15, ring):
            biased = simulate("algorithmic-bias", network, initial, 12, 7, gamma=0, epsilon=0.4, order=order)
            plain = simulate("deffuant", network, initial, 12, 7, epsilon=0.4, order=order, pick="listener")
            assert np.array_equal(biased.opinions, plain.opinions)

    @pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_partners_come_in_proportion_to_weight_and_similarity(self, gamma: float, weighted: bool) -> None:
        # Agent 2 moves all the way to whom it meets; the others hear nobody, or do not move.
        initial = np.array([0.1, 0.9, 0.4, 0.5, 0.41, 0.7])
        others = np.array([0, 1, 3, 4, 5])
        weights = np.array([3.0, 8.0, 1.0, 0.5, 2.0]) if weighted else np.ones(5)
        network = Network.from_edges(np.stack([others, np.full(5, 2)], axis=1), 6, weights, directed=True)
        found = simulate("algorithmic-bias", network, initial, 1, 9, replicates=4000, threads=1, isolates="keep",
                         gamma=gamma, d_min=0.05, epsilon=1, mu=1, sides="one")  # fmt: skip
        counts = np.array([np.isclose(found.final[:, 2], initial[other], atol=1e-9).sum() for other in others])
        closeness = weights * np.maximum(np.abs(initial[others] - 0.4), 0.05) ** -gamma
        expected = 4000 * closeness / closeness.sum()
        assert ((counts - expected) ** 2 / expected).sum() < 23.5  # chi-square of 4 degrees, 1 in 10^4

    def test_partners_in_the_complete_graph(self) -> None:
        initial = np.array([0.1, 0.9, 0.4, 0.5, 0.41, 0.7])
        still = np.full(6, 1e-300)
        still[2] = 1
        found = simulate("algorithmic-bias", 6, initial, 1, 9, replicates=4000, threads=1, order="sequential",
                         gamma=1, d_min=0.05, epsilon=1, mu=still, sides="one")  # fmt: skip
        others = np.array([0, 1, 3, 4, 5])
        counts = np.array([np.isclose(found.final[:, 2], initial[other], atol=1e-9).sum() for other in others])
        closeness = 1 / np.maximum(np.abs(initial[others] - 0.4), 0.05)
        expected = 4000 * closeness / closeness.sum()
        assert ((counts - expected) ** 2 / expected).sum() < 23.5

    def test_an_edge_without_weight_is_never_used(self) -> None:
        network = Network.from_edges([(0, 2), (1, 2)], 3, [0.0, 1.0], directed=True)
        found = simulate("algorithmic-bias", network, [0.5, 0.9, 0.5], 1, 9, replicates=200, threads=1, gamma=2,
                         isolates="keep", epsilon=1, mu=1, sides="one")  # fmt: skip
        assert set(found.final[:, 2]) == {0.9}

    def test_bias_of_each_agent(self) -> None:
        initial = np.random.default_rng(5).random(10)
        mixed = _same_as_python("algorithmic-bias", 10, initial, gamma=np.linspace(0, 2, 10), epsilon=0.5)
        same = simulate("algorithmic-bias", 10, initial, 6, 3, gamma=np.full(10, 0.0), epsilon=0.5).opinions
        assert not np.array_equal(mixed, same)

    def test_mean_is_conserved(self) -> None:
        found = simulate("algorithmic-bias", 50, "uniform", 20, 2, gamma=1.5, epsilon=0.4)
        np.testing.assert_allclose(found.opinions.mean(axis=2), found.opinions[:, :1].mean(), atol=1e-13)

    @pytest.mark.parametrize(
        "settings", [{"gamma": -1}, {"d_min": 0}, {"epsilon": -0.1}, {"mu": 0}, {"order": "synchronous"}]
    )
    def test_bad_settings(self, settings: dict[str, Any]) -> None:
        with pytest.raises(SpecError, match=next(iter(settings))):
            simulate("algorithmic-bias", 3, **settings)
