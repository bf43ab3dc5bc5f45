"""Bounded confidence by trust and sign, and cognitive opinion dynamics, against their equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from opinionsim.classic import find_model, meeting_actors, set_up, simulate, transition
from opinionsim.errors import SpecError
from opinionsim.networks import Network

_PLAIN: dict[str, Any] = {"machine": False}


class TestWeightedHegselmannKrause:
    def _heard(self, own: float, others: list[float], weights: list[float] | None = None, **settings: Any) -> float:
        edges = [(other, 0) for other in range(1, len(others) + 1)]
        network = Network.from_edges(edges, len(others) + 1, weights, directed=True)
        found = simulate("weighted-hegselmann-krause", network, [own, *others], 1, isolates="keep", order="sequential",
                         **_PLAIN, **settings)  # fmt: skip
        assert found.final[0, 1:].tolist() == others
        step = transition(
            "weighted-hegselmann-krause", [own], [others], None if weights is None else [weights], **settings
        )
        assert step.values[0, 0] == pytest.approx(found.final[0, 0], abs=1e-14)
        return float(found.final[0, 0])

    def test_the_mean_of_those_who_are_near_is_added(self) -> None:
        settings = {"epsilon": 0.3, "trust": 0.5}
        assert self._heard(0.5, [0.4, 0.9], **settings) == pytest.approx(0.5 + 0.5 * 0.4 * (1 - 0.5))
        assert self._heard(0.5, [0.4, 0.6], **settings) == pytest.approx(0.5 + 0.5 * 0.5 * (1 - 0.5))
        assert self._heard(-0.5, [-0.4, -0.9], **settings) == pytest.approx(-0.5 - 0.5 * 0.4 * (1 - 0.5))
        assert self._heard(0.1, [-0.1, -0.2], **settings) == pytest.approx(0.1 - 0.5 * 0.15 * (1 - 0.1))
        assert self._heard(0.5, [0.9, -0.9], **settings) == 0.5

    def test_weights_are_trust_and_the_mean_is_over_all_who_are_near(self) -> None:
        found = self._heard(0.5, [0.4, 0.6], [0.5, 1.0], epsilon=0.3, trust=0.8)
        assert found == pytest.approx(0.5 + 0.8 * (0.5 * 0.4 + 0.6) / 2 * (1 - 0.5))

    def test_consensus_follows_the_logistic_map_to_the_end(self) -> None:
        trust, expected = 0.3, [0.1]
        for _ in range(30):
            expected.append(expected[-1] + trust * expected[-1] * (1 - expected[-1]))
        for sign in (1, -1):
            found = simulate("weighted-hegselmann-krause", 6, np.full(6, sign * 0.1), 30, order="synchronous",
                             trust=trust, **_PLAIN)  # fmt: skip
            np.testing.assert_allclose(found.opinions[0, :, 0], sign * np.array(expected), atol=1e-12)
        assert expected[-1] > 0.99

    @pytest.mark.parametrize("name", ["weighted-hegselmann-krause", "attraction-repulsion"])
    def test_signs_and_ranges_are_a_change_of_scale(self, name: str) -> None:
        initial = np.random.default_rng(3).uniform(-1, 1, 12)
        options: dict[str, Any] = {"steps": 10, "seed": 2, "trust": 0.4, **_PLAIN}
        plain = simulate(name, 12, initial, epsilon=0.5, **options).opinions
        turned = simulate(name, 12, -initial, epsilon=0.5, **options).opinions
        np.testing.assert_allclose(turned, -plain, atol=1e-12)
        wide = simulate(name, 12, 5 * initial + 5, epsilon=2.5, range=(0, 10), **options).opinions
        np.testing.assert_allclose(wide, 5 * plain + 5, atol=1e-10)
        assert not np.allclose(plain[0, 0], plain[0, -1])

    @pytest.mark.parametrize("name", ["weighted-hegselmann-krause", "attraction-repulsion"])
    def test_weights_beyond_one_are_refused(self, name: str) -> None:
        with pytest.raises(SpecError, match=r"weights mean trust in .* from 0 to 1; got 3"):
            simulate(name, Network.from_edges([(0, 1), (1, 2)], 3, [0.5, 3.0]))


def _published(own: float, other: float, weight: float, *, attract: bool) -> float:
    """The eight cases of the source, as they stand there."""
    s = own + other * weight
    if own >= 0 and other >= 0:
        up = own < other
        step = (s / 2) * (1 - own) * (1 if up else -1)
    elif own < 0 and other < 0:
        up = own > other
        step = (s / 2) * (1 + own) * (1 if up else -1)
    elif own >= 0:
        step = (s / 2) * (1 - own) * (-1 if s > 0 else 1)
    else:
        step = (s / 2) * (1 + own) * (1 if s > 0 else -1)
    return own + (step if attract else -step)


class TestAttractionRepulsion:
    @pytest.mark.parametrize("other", [0.9, 0.6, 0.1, -0.1, -0.6, -0.9])
    @pytest.mark.parametrize("own", [0.8, 0.2, -0.2, -0.8])
    def test_it_does_what_the_eight_cases_of_the_source_say(self, own: float, other: float) -> None:
        trust, near = 0.7, abs(own - other) <= 0.5
        expected = {
            "both": _published(own, other, trust, attract=near),
            "attraction": _published(own, other, trust, attract=True) if near else own,
            "repulsion": own if near else _published(own, other, trust, attract=False),
            "sum": own + (own + trust * other) / 2 * (1 - abs(own)) if near else own,
        }
        for rule, wanted in expected.items():
            settings: dict[str, Any] = {"rule": rule, "trust": trust, "epsilon": 0.5}
            found = simulate("attraction-repulsion", 2, [other, own], pairs=[(0, 1)], **settings, **_PLAIN).final[0]
            assert found.tolist() == pytest.approx([other, wanted], abs=1e-14)
            step = transition("attraction-repulsion", [own], [other], **settings)
            assert step.values[0, 0] == pytest.approx(wanted, abs=1e-14)

    def test_weights_are_trust_and_partners_are_drawn_evenly(self) -> None:
        network = Network.from_edges([(1, 0), (2, 0)], 3, [0.2, 0.8], directed=True)
        found = simulate("attraction-repulsion", network, [0.3, 0.5, 0.6], 1, 4, replicates=1000, isolates="keep",
                         order="sequential", threads=1, epsilon=0.5, trust=0.5, **_PLAIN).final[:, 0]  # fmt: skip
        ends = [_published(0.3, other, 0.5 * weight, attract=True) for other, weight in ((0.5, 0.2), (0.6, 0.8))]
        counts = [int(np.isclose(found, end, atol=1e-12).sum()) for end in ends]
        assert sum(counts) == 1000
        assert stats.binomtest(counts[0], 1000, 0.5).pvalue > 1e-4

    def test_machine_code_and_python_give_the_same_bytes_with_weights(self) -> None:
        network = Network.from_edges([(a, (a + 1) % 7) for a in range(7)], 7, np.arange(1, 8) / 7)
        initial = np.linspace(-0.9, 0.8, 7)
        settings: dict[str, Any] = {"trust": 0.9, "zealot": [1, 0, 0, 0, 0, 0, 0]}
        fast = simulate("attraction-repulsion", network, initial, 9, 2, **settings)
        slow = simulate("attraction-repulsion", network, initial, 9, 2, machine=False, **settings)
        assert fast.opinions.tobytes() == slow.opinions.tobytes()
        assert (fast.opinions[0, :, 0] == initial[0]).all()


class TestCognitive:
    @pytest.mark.parametrize(("sensitivity", "end"), [(-1, 0.1 / 1.5), (0, 0.2), (1, 1.1 / 1.5)])
    def test_alone_with_the_institution(self, sensitivity: int, end: float) -> None:
        # Nobody talks: the opinion to a power of a million.
        found = simulate("cognitive", 5, [0.1, 0.9, 0.5, 0.0, 0.3], 60, information=0.2, trust=0.5,
                         sensitivity=sensitivity, beta=1e-6, **_PLAIN)  # fmt: skip
        np.testing.assert_allclose(found.final, end, atol=1e-12)

    def test_both_of_a_pair_tell_the_opinions_of_this_step(self) -> None:
        # A population that agrees goes on agreeing: opinions of the step before would take some of them back.
        found = simulate("cognitive", 8, np.zeros(8), 5, information=1.0, trust=0.5, beta=1.0, **_PLAIN)
        expected = 1 - 0.5 ** np.arange(6)
        np.testing.assert_allclose(found.opinions[0], np.repeat(expected[:, None], 8, axis=1), atol=1e-12)

    def test_the_alarmed_talk_more(self) -> None:
        found = simulate("cognitive", 2, [0.3, 0.6], 1, 5, replicates=2000, order="sequential", sides="one", trust=0,
                         beta=[0.5, 0.7], threads=1, **_PLAIN).final[:, 0]  # fmt: skip
        assert set(found.tolist()) == {0.3, 0.6}
        assert stats.binomtest(int((found == 0.6).sum()), 2000, 0.6 ** (1 / 0.7)).pvalue > 1e-4

    @pytest.mark.parametrize("sensitivity", [-1, 0, 1])
    def test_transition_says_what_the_kernel_does(self, sensitivity: int) -> None:
        settings: dict[str, Any] = {
            "information": [0.2],
            "trust": 0.3,
            "sensitivity": sensitivity,
            "range": (-1.0, 1.0),
        }
        found = simulate("cognitive", 2, [0.8, 0.9], 1, 5, replicates=50, order="sequential", sides="one", threads=1,
                         **settings, **_PLAIN).final[:, 0]  # fmt: skip
        informed = transition("cognitive", [0.9], [np.nan], **settings).values[0, 0]
        told = transition("cognitive", [0.8, 0.8], [np.nan, informed], **settings).values[:, 0]
        assert set(found.round(12)) == set(told.round(12))
        assert (sensitivity == 0) or len(set(told.round(12))) == 2

    def test_sensitivity_weighs_more_than_trust(self) -> None:
        # Giardini & Vilone 2021: what sets final opinions is sensitivity, hardly trust.
        def end(**settings: Any) -> float:
            found = simulate("cognitive", 30, "uniform", 30, 3, information=0.5, beta=0.5, **settings, **_PLAIN)
            return float(found.final.mean())

        by_trust = abs(end(trust=0.8) - end(trust=0.2))
        by_sensitivity = end(trust=0.5, sensitivity=1) - end(trust=0.5, sensitivity=-1)
        assert by_sensitivity > 0.5 > 5 * by_trust


class TestSeveralDimensions:
    def test_distributions_draw_any_number_of_dimensions(self) -> None:
        found = simulate("deffuant", 300, {"kind": "uniform", "dimensions": 3}, 0, 4, replicates=2, **_PLAIN).opinions
        assert found.shape == (2, 1, 300, 3)
        columns = [found[run, 0, :, d] for run in range(2) for d in range(3)]
        assert all(stats.kstest(column, "uniform").pvalue > 1e-4 for column in columns)
        assert np.abs(np.corrcoef(columns) - np.eye(6)).max() < 0.25
        again = simulate("deffuant", 300, {"kind": "uniform", "dimensions": 3}, 0, 4, replicate=1, **_PLAIN).opinions
        np.testing.assert_array_equal(again[0], found[1])

    def test_shares_are_those_of_each_dimension(self) -> None:
        found = simulate("deffuant", 40, {"kind": "share", "high": 0.25, "dimensions": 2}, 0, 1, **_PLAIN).opinions[
            0, 0
        ]
        assert found.sum(axis=0).tolist() == [10, 10]
        assert not np.array_equal(found[:, 0], found[:, 1])

    def test_one_dimension_is_a_number(self) -> None:
        one = simulate("deffuant", 9, {"kind": "uniform", "dimensions": 1}, 0, 4, **_PLAIN).opinions
        np.testing.assert_array_equal(one, simulate("deffuant", 9, "uniform", 0, 4, **_PLAIN).opinions)

    @pytest.mark.parametrize("dimensions", [0, -1, 1.5, True, "two"])
    def test_bad_numbers_of_dimensions(self, dimensions: Any) -> None:
        with pytest.raises(SpecError, match="dimensions must be a whole number of at least 1"):
            simulate("deffuant", 9, {"kind": "uniform", "dimensions": dimensions}, 0)

    def test_models_of_numbers_refuse_vectors(self) -> None:
        with pytest.raises(SpecError, match="opinions of voter must have one dimension; got 2"):
            simulate("voter", 9, {"kind": "uniform", "dimensions": 2}, 0)


def test_trust_in_edges_is_used_or_meetings_are_refused() -> None:
    network = Network.from_edges([(1, 0)], 2, [0.1], directed=True)
    common: dict[str, Any] = {"trust": 1.0, "epsilon": 2.0}
    drawn = simulate("attraction-repulsion", network, [0.2, 0.6], 1, order="synchronous", isolates="keep", **common,
                     **_PLAIN)  # fmt: skip
    assert drawn.final[0, 0] == pytest.approx(0.2 + (0.2 + 0.1 * 0.6) / 2 * 0.8)
    told = "network weights mean trust in attraction-repulsion"
    with pytest.raises(SpecError, match=told):
        simulate("attraction-repulsion", network, [0.2, 0.6], pairs=[(1, 0)], **common, **_PLAIN)
    setup = set_up(find_model("attraction-repulsion"), network, settings=common, isolates="keep")
    with pytest.raises(SpecError, match=told):
        meeting_actors(setup, np.array([0.2, 0.6]), 1, 0)
