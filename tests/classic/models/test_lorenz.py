"""The model of Lorenz, Neumann & Schroeder 2021, and the agents and networks it is run with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opinionsim.classic import follower_network, lorenz_agents, simulate, transition
from opinionsim.classic.kernels import Contacts, draw_in_turn, fill, new_state
from opinionsim.errors import SpecError
from opinionsim.networks import Network

pytestmark = pytest.mark.long


def _after(own: float, message: float, **settings: Any) -> float:
    """The opinion of an agent of no idiosyncrasy after one message."""
    found = simulate("lorenz", 2, [message, own], pairs=[(0, 1)], **{"theta": 0.0, **settings})
    return float(found.final[0, 1])


class TestRule:
    def test_contagion_adds_a_part_of_the_message_and_assimilation_of_the_distance(self) -> None:
        assert _after(1.0, 2.0, rho=0, alpha=0.25, motivated=False) == 1.5
        assert _after(1.0, 2.0, rho=1, alpha=0.25, motivated=False) == 1.25
        assert _after(1.0, 2.0, rho=0.5, alpha=0.25, motivated=False) == 1.375

    def test_ends_of_the_range_stop_opinions(self) -> None:
        assert _after(3.25, 3.0, rho=0, alpha=1, motivated=False) == 3.5
        assert _after(-3.25, -3.0, rho=0, alpha=1, motivated=False) == -3.5

    def test_motivated_cognition_halves_the_change_at_the_latitude(self) -> None:
        for k in (0, 1, 2, 7, 10**9):
            assert _after(0.0, 0.5, rho=1, alpha=0.5, latitude=0.5, k=k) == 0.125
        assert _after(0.0, 1.0, rho=1, alpha=0.5, latitude=0.5, k=3) == pytest.approx(0.5 / (1 + 2**3))

    def test_polarity_holds_extremes(self) -> None:
        assert _after(1.75, 0.0, rho=1, alpha=0.5, polarity=True, motivated=False) == 1.75 - 0.875 * 0.75
        assert _after(3.5, 0.0, rho=1, alpha=0.5, polarity=True, motivated=False) == 3.5

    def test_range_has_its_own_middle_and_grows_defaults(self) -> None:
        plain = _after(0.5, 1.25)
        assert _after(10 + 2 * 0.5, 10 + 2 * 1.25, range=(3, 17)) == pytest.approx(10 + 2 * plain, abs=1e-14)

    def test_other_groups_are_trusted_less(self) -> None:
        settings = {"rho": 1, "alpha": 0.5, "motivated": False, "credibility": 0.25}
        assert _after(0.0, 1.0, group=[0, 0], **settings) == 0.5
        assert _after(0.0, 1.0, group=[1, 1], **settings) == 0.5
        assert _after(0.0, 1.0, group=[1, 0], **settings) == 0.125

    def test_parameters_of_each_agent(self) -> None:
        found = simulate("lorenz", 3, [2.0, 1.0, 1.0], pairs=[(0, 1), (0, 2)], alpha=[0, 0.25, 0.5], rho=[0, 0, 1],
                         theta=[0, 0, 0], latitude=[1, 1, 0.5], k=[1, 1, 3], motivated=True)  # fmt: skip
        assert found.final[0].tolist() == [2.0, 1 + 0.25 * 2 / 2, 1 + 0.5 / (1 + 8)]

    def test_hard_threshold_and_assimilation_are_bounded_confidence(self) -> None:
        rng = np.random.default_rng(4)
        pairs = np.array([rng.choice(30, 2, replace=False) for _ in range(900)])
        initial = rng.uniform(-3.5, 3.5, 30)
        sharp = simulate("lorenz", 30, initial, pairs=pairs, rho=1, alpha=0.3, latitude=1.2, k=10**9, theta=0.0)
        bounded = simulate("deffuant", 30, initial, pairs=pairs, mu=0.3, epsilon=1.2, range=(-3.5, 3.5))
        assert np.array_equal(sharp.opinions, bounded.opinions)
        assert len(np.unique(bounded.final.round(2))) > 1


class TestIdiosyncrasy:
    def test_weight_on_the_initial_opinion(self) -> None:
        found = simulate("lorenz", 2, [2.0, 1.0], pairs=[(0, 1)] * 2, theta=0.25, rho=1, alpha=0.5, motivated=False,
                         idiosyncrasy="weight")  # fmt: skip
        first = 0.75 * 1.5 + 0.25 * 1
        assert found.opinions[0, 1:, 1].tolist() == [first, 0.75 * (first + 0.5 * (2 - first)) + 0.25]
        expected = transition("lorenz", [first], [2.0], start=[1.0], theta=0.25, rho=1, alpha=0.5, motivated=False,
                              idiosyncrasy="weight")  # fmt: skip
        assert found.final[0, 1] == pytest.approx(expected.values[0, 0], abs=1e-15)

    def test_transition_needs_the_initial_opinion(self) -> None:
        with pytest.raises(SpecError, match="lorenz needs start, the initial opinions"):
            transition("lorenz", [0.5], [0.5], idiosyncrasy="weight")


def test_transition_says_what_the_kernel_does() -> None:
    rng = np.random.default_rng(8)
    size, span = 60, (-2.0, 9.0)
    opinions = rng.uniform(*span, 2 * size)
    opinions[:2] = span
    pairs = np.stack([np.arange(size, 2 * size), np.arange(size)], axis=1)
    for settings in ({"polarity": True, "rho": 0.4, "k": 3}, {"motivated": False, "alpha": 1.0, "rho": 0.1}, {"k": 35}):
        found = simulate("lorenz", 2 * size, opinions, pairs=pairs, range=span, theta=0.0, **settings)
        expected = transition("lorenz", opinions[:size], opinions[size:], range=span, theta=0.0, **settings)
        assert (expected.probabilities[:, 0] == 1).all()
        np.testing.assert_allclose(found.final[0, :size], expected.values[:, 0], rtol=0, atol=1e-13)


def test_machine_code_and_python_give_the_same_bytes() -> None:
    agents = lorenz_agents(7, np.random.default_rng(1), rho=0.5, theta=0.3, spread=1, alpha_sd=0.05)
    network = follower_network(7, np.random.default_rng(1), following=2, friends=2)
    for settings in (
        {"polarity": True, "k": 3, "credibility": 0.5},
        {"idiosyncrasy": "initial"},
        {"idiosyncrasy": "weight", "order": "synchronous"},
    ):
        for joined in (7, network):
            both = [
                simulate("lorenz", joined, steps=5, seed=3, isolates="keep", machine=machine, **agents, **settings)
                for machine in (True, False)
            ]
            assert both[0].opinions.tobytes() == both[1].opinions.tobytes()


def test_agents_may_meet_themselves_in_the_complete_graph() -> None:
    # With no idiosyncrasy and assimilation in full, two agents that meet only each other change places for ever.
    settings = {"rho": 1, "alpha": 1, "motivated": False, "theta": 0.0, "order": "synchronous"}
    apart = simulate("lorenz", 2, [-1.0, 1.0], 20, meets_itself=False, **settings)
    assert apart.opinions[0].tolist() == [[-1.0, 1.0], [1.0, -1.0]] * 10 + [[-1.0, 1.0]]
    stay = simulate("lorenz", 2, [-1.0, 1.0], 1, replicates=2000, threads=1, **settings)
    share = (stay.final == stay.opinions[:, 0]).mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(4000)


def test_every_agent_updates_once_a_sweep_by_default() -> None:
    settings = {"rho": 1, "alpha": 0.5, "motivated": False, "theta": 1.0, "meets_itself": False}
    found = simulate("lorenz", 200, np.full(200, 3.0), 1, **settings)
    assert (found.final != 3.0).all()
    at_random = simulate("lorenz", 200, np.full(200, 3.0), 1, order="random", **settings)
    assert 0.2 < (at_random.final == 3.0).mean() < 0.55  # 1/e in expectation


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 1.1}, {"rho": -0.1}, {"theta": 2}, {"latitude": 0}, {"k": 1.5}, {"k": -1}, {"polarity": 1}, {"group": 2},
     {"credibility": [0.5]}, {"sd": 0}, {"spread": [1, 1, 1]}, {"idiosyncrasy": "often"}, {"pick": "edge"}],
)  # fmt: skip
def test_bad_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=next(iter(settings))):
        simulate("lorenz", 3, **settings)


class TestAgents:
    @pytest.mark.parametrize("bad", [{"alpha": 2}, {"rho_sd": -1}, {"latitude": 0}, {"sd": 0}, {"spread": -1}])
    def test_bad_numbers(self, bad: dict[str, float]) -> None:
        with pytest.raises(SpecError, match=next(iter(bad))):
            lorenz_agents(10, np.random.default_rng(2), **bad)  # type: ignore[arg-type]


class TestFollowers:
    def test_each_follows_as_many_of_those_before(self) -> None:
        network = follower_network(300, np.random.default_rng(1), following=5, friends=0)
        assert (network.speakers < network.listeners).all()
        assert np.bincount(network.listeners, minlength=300).tolist() == [0, 1, 2, 3, 4] + [5] * 295

    def test_friends_hear_each_other(self) -> None:
        rng = np.random.default_rng(1)
        ring = follower_network(12, rng, following=0, friends=5, friendship="ring")
        assert {(u, v) for u, v in zip(ring.speakers.tolist(), ring.listeners.tolist(), strict=True)} == {
            (u, v) for u in range(12) for v in range(12) if (u - v) % 12 in (1, 2, 10, 11)
        }
        for friendship, expected in (("random", 5 * 399 / 400), ("cliques", 5 * 399 / 400)):
            drawn = follower_network(400, rng, following=0, friends=5, friendship=friendship)
            pairs = set(zip(drawn.speakers.tolist(), drawn.listeners.tolist(), strict=True))
            assert pairs == {(v, u) for u, v in pairs}
            assert len(pairs) / 400 == pytest.approx(expected, abs=4 * np.sqrt(2 * 5 / 400))

    def test_cliques_are_joined_in_full(self) -> None:
        drawn = follower_network(40, np.random.default_rng(3), following=0, friends=8, friendship="cliques").graph()
        for agent in drawn:
            inside = {agent, *drawn.predecessors(agent)}
            assert all({other, *drawn.predecessors(other)} == inside for other in inside)

    @pytest.mark.parametrize("bad", [{"following": -1}, {"friends": 10}, {"friendship": "enmity"}])
    def test_bad_settings(self, bad: dict[str, Any]) -> None:
        with pytest.raises(SpecError, match=next(iter(bad))):
            follower_network(10, np.random.default_rng(1), **bad)


def test_credibility_in_the_one_step_view_is_that_of_the_message() -> None:
    found = simulate("lorenz", 2, [2.0, 0.5], pairs=[(0, 1)], theta=0, credibility=0.5, group=[1, 0])
    trusted = transition("lorenz", [0.5], [2.0], theta=0, credibility=0.5)
    assert found.final[0, 1] == pytest.approx(trusted.values[0, 0], abs=1e-15)
    assert trusted.values[0, 0] != transition("lorenz", [0.5], [2.0], theta=0).values[0, 0]


@pytest.mark.parametrize("with_self", [True, False])
def test_one_word_gives_a_partner_and_a_chance(with_self: bool) -> None:
    """Every partner alike, chances even in quarters, and the two independent; a listener in its turn."""
    size, drawn = 5, 8000
    contacts = Contacts.of(Network.of(size), with_self=with_self)
    words = np.empty(drawn, dtype=np.uint64)
    with np.errstate(over="ignore"):
        fill(new_state(6, "turns", with_self), words)
    queue = np.full(drawn, 2, dtype=np.uint32)
    listeners, speakers = np.empty(drawn, dtype=np.uint32), np.empty(drawn, dtype=np.uint32)
    chances = np.empty(drawn)
    draw_in_turn(contacts, queue, 0, words, listeners, speakers, chances)
    assert (listeners == 2).all()
    partners = [0, 1, 2, 3, 4] if with_self else [0, 1, 3, 4]
    table = np.array([np.histogram(chances[speakers == one], 4, (0, 1))[0] for one in partners])
    assert table.sum() == drawn
    expected = drawn / table.size
    # 1 in 1000 at 19 and 15 degrees of freedom.
    assert ((table - expected) ** 2 / expected).sum() < (43.8 if with_self else 37.7)
