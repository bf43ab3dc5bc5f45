"""The contract of a classic model, as tests to inherit from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from opinionsim.classic._declaration import ClassicModel
from opinionsim.classic._simulate import simulate
from opinionsim.classic._step import transition
from opinionsim.classic._transition import Transition
from opinionsim.classic.kernels._process import Process, set_up
from opinionsim.errors import SpecError
from opinionsim.networks import Network

#: A network on which agents differ: a star joined to a triangle.
_EDGES = np.array([(0, 1), (0, 2), (0, 3), (3, 4), (4, 5), (3, 5)])
_N = 6
#: Standard errors by which two estimates of one number may differ; 5 in 10^7 pairs differ by more.
_TOLERATED = 5.0


def _with(opinions: np.ndarray, agent: int, value: float) -> np.ndarray:
    """Opinions of which those of one agent are a value."""
    changed = opinions.astype(float)
    changed[agent] = value
    return changed


class ClassicModelContract(ABC):
    """Tests that every classic model must pass. Inherit from it and supply :attr:`model` and whatever differs."""

    settings: Mapping[str, Any] = {}
    """Parameters with which the suite checks the contract."""
    replicates = 300
    """Number of simulations in a comparison of distributions."""

    @property
    @abstractmethod
    def model(self) -> ClassicModel:
        """The model under test."""

    def initial(self, n: int = _N) -> np.ndarray:
        """Distinct opinions in no particular order. For traits, some agents share some of them."""
        low, high = self.span
        if self.model.states == "traits":
            return low + (np.arange(n)[:, None] // np.arange(1, 1 + self._features)) % (high - low + 1)
        if self.model.kind == "discrete":
            return np.where(np.arange(n) % 3 == 0, high, low)
        return low + (high - low) * (np.arange(n) * 0.6180339887 % 1.0)

    @property
    def _features(self) -> int:
        return int(self.model.with_defaults(self.settings, self.model.range)["features"])

    def agreed(self, n: int, point: float) -> np.ndarray:
        """Consensus of n agents."""
        return np.full((n, self._features) if self.model.states == "traits" else n, point)

    @property
    def span(self) -> tuple[float, float]:
        """Range of the initial opinions."""
        low, high = self.model.range
        return (low, high) if np.isfinite([low, high]).all() else (-1.0, 1.0)

    def dense(self, n: int = 8) -> Network:
        """The complete graph; for models that move ties and need room to do so, a graph with half as many ties."""
        if self.model.ties is None:
            return Network.of(n)
        pairs = [(i, j) for i in range(n) for j in range(i) if (i + j) % 2]
        return Network.from_edges(np.array(pairs), n)

    def run(self, network: Any = None, initial: Any = None, **options: Any) -> np.ndarray:
        """Run a simulation and return its opinions (R, K, N)."""
        network = Network.from_edges(_EDGES) if network is None else network
        initial = self.initial() if initial is None else initial
        found = simulate(self.model, network, initial, **{"steps": 4, "seed": 7, **self.settings, **options})
        return found.opinions

    def test_it_says_what_it_is(self) -> None:
        """The model has names, sources and texts, and its defaults are valid."""
        model = self.model
        assert model.name == model.name.lower().replace(" ", "-")
        assert model.title
        assert model.summary.endswith(".")
        assert model.behaviour.endswith(".")
        assert model.equation
        assert model.source
        assert model.family in ("assimilative", "similarity-biased", "repulsive", "reinforcing")
        assert model.example, "a small run for the documentation"
        for name, parameter in model.declared.items():
            assert parameter.meaning, name
        set_up(model, self.dense(5))

    def test_opinions_stay_in_their_range(self) -> None:
        """Opinions are finite, and within the range if the model has one."""
        for network in (None, self.dense()):
            initial = self.initial(_N if network is None else 8)
            opinions = self.run(network, initial, steps=30, machine=False)
            assert np.isfinite(opinions).all()
            if self.model.keeps_range:
                assert opinions.min() >= self.model.range[0]
                assert opinions.max() <= self.model.range[1]

    def test_consensus_is_a_fixed_point_where_it_is_said_to_be(self) -> None:
        """Consensus stays, except for rounding, exactly when the model declares that it does."""
        low, high = self.span
        left, networks = 0.0, [Network.from_edges(_EDGES), self.dense()]
        if "signs" in self.model.needs:
            networks.append(Network.from_edges(_EDGES, weights=[-1.0] + [1.0] * (len(_EDGES) - 1)))
        for point in (low, high) if self.model.kind == "discrete" else (low, low + 0.3 * (high - low), high):
            for network in networks:
                opinions = self.run(network, self.agreed(network.n, point), steps=5, machine=False)
                left = max(left, float(np.abs(opinions - point).max()))
        stays = left <= 1e-12 * (high - low)
        assert stays == self.model.keeps_consensus

    def test_one_seed_gives_one_result(self) -> None:
        """Results do not depend on the number of threads, of replicates or of recorded steps."""
        one = self.run(replicates=3, threads=1)
        np.testing.assert_array_equal(one, self.run(replicates=3, threads=3))
        np.testing.assert_array_equal(one[:1], self.run(replicates=1))
        np.testing.assert_array_equal(one[:, ::2], self.run(replicates=3, record_every=2))

    def test_steps_one_by_one_are_a_run(self) -> None:
        """Opinions and the random stream are the complete state between two steps."""
        for network, machine in ((Network.from_edges(_EDGES), True), (self.dense(), False)):
            initial = self.initial(network.n)
            setup = set_up(self.model, network, settings=dict(self.settings))
            process = Process(setup, initial, 7, machine=machine)
            stepwise = np.concatenate([process.advance(1) for _ in range(4)])
            np.testing.assert_array_equal(stepwise, self.run(network, initial, machine=machine)[0, 1:])

    def test_the_kernel_is_the_python_it_is_written_in(self) -> None:
        """The compiled kernel gives the same bytes as its Python code."""
        np.testing.assert_array_equal(self.run(machine=False), self.run(machine=True))

    def test_the_kernel_of_dense_networks_is_the_python_it_is_written_in(self) -> None:
        """The compiled kernel gives the same bytes if everybody hears everybody; other tests use the Python code."""
        network, initial = self.dense(), self.initial(8)
        np.testing.assert_array_equal(
            self.run(network, initial, machine=False), self.run(network, initial, machine=True)
        )

    def test_ties_move_where_the_model_moves_them(self) -> None:
        """The number of ties stays the same, the given network does not change, and unsuitable networks are refused."""
        network = Network.from_edges(_EDGES)
        before = network.edges[0].copy()
        found = simulate(self.model, network, self.initial(), steps=20, seed=7, replicates=20, **self.settings)
        np.testing.assert_array_equal(network.edges[0], before)
        if self.model.ties is None:
            assert found.networks == ()
            return
        after = [each.edges[0] for each in found.networks]
        assert all(len(each) == len(before) for each in after), "no tie is lost, and none is doubled"
        assert any(not np.array_equal(each, before) for each in after)
        for refused in (Network.of(_N), Network.from_edges(_EDGES, directed=True), self._weighted()):
            with pytest.raises(SpecError, match=f"{self.model.name} moves ties: "):
                self.run(refused)

    @staticmethod
    def _weighted() -> Network:
        return Network.from_edges(_EDGES, weights=np.arange(1.0, len(_EDGES) + 1))

    def test_initial_opinions_are_left_alone(self) -> None:
        """A second run starts where the first did."""
        initial = self.initial()
        before = initial.copy()
        first = self.run(initial=initial)
        np.testing.assert_array_equal(initial, before)
        np.testing.assert_array_equal(first[0, 0], before)
        np.testing.assert_array_equal(first, self.run(initial=initial))

    def test_the_global_generator_is_left_alone(self) -> None:
        """A simulation does not touch numpy's global generator."""
        before = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
        self.run()
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # type: ignore[index]  # noqa: NPY002

    def test_one_value_for_all_is_the_same_as_one_for_each(self) -> None:
        """Equal per-agent parameters change nothing. The test runs in Python because each would compile a kernel."""
        values = self.model.with_defaults(self.settings, self.model.range)
        each = {
            name: np.full(_N, values[name]) for name, parameter in self.model.declared.items() if parameter.per_agent
        }
        np.testing.assert_array_equal(self.run(machine=False), self.run(machine=False, **each))

    def test_numbers_of_agents_mean_nothing(self) -> None:
        """Relabelling agents does not change opinions, except by chance."""
        order = np.random.default_rng(3).permutation(_N)
        relabelled = Network.from_edges(order[_EDGES])
        initial = self.initial()
        moved = np.empty_like(initial)
        moved[order] = initial
        options = {"replicates": self.replicates, "steps": 3, "record_every": 3}
        plain = self.run(initial=initial, **options)[:, -1]
        other = self.run(relabelled, moved, **{**options, "seed": 8})[:, -1][:, order]
        width = self.span[1] - self.span[0]
        error = np.sqrt((plain.var(axis=0) + other.var(axis=0)) / self.replicates) + 1e-12 * width
        assert (np.abs(plain.mean(axis=0) - other.mean(axis=0)) <= _TOLERATED * error).all()

    def test_what_is_conserved_is_conserved(self) -> None:
        """The default scheme conserves the mean or the order of opinions, if the model declares it."""
        opinions = self.run(self.dense(), self.initial(8), steps=20, machine=False)[0]
        if "mean" in self.model.conserves:
            np.testing.assert_allclose(opinions.mean(axis=1), opinions[0].mean(), rtol=0, atol=1e-12)
        if "order" in self.model.conserves:
            ranked = opinions[:, np.argsort(opinions[0], kind="stable")]
            assert (np.diff(ranked, axis=1) >= -1e-12).all()
        if self.model.states in ("copied", "two"):
            assert np.isin(opinions, opinions[0]).all()

    def test_given_pairs_take_the_place_of_drawn_ones(self) -> None:
        """If agents meet in pairs, given pairs change one listener per step, whatever the agents' numbers.

        The test uses the Python code because given pairs would compile a kernel.
        """
        pairs = np.random.default_rng(5).permuted(np.tile(np.arange(_N), (40, 1)), axis=1)[:, :2]
        initial = self.initial()
        if self.model.update is None:
            with pytest.raises(SpecError, match="do not meet in pairs"):
                simulate(self.model, _N, initial, pairs=pairs)
            return
        settings = {name: value for name, value in self.settings.items() if name not in self.model.schemes}
        settings |= {"seed": 7, "machine": False}
        found = simulate(self.model, _N, initial, pairs=pairs, **settings).opinions[0]
        others = np.abs(np.diff(found, axis=0)) > 1e-12
        others[np.arange(len(pairs)), pairs[:, 1]] = False
        assert not others.any(), "only listeners change"
        order = np.random.default_rng(3).permutation(_N)
        moved = np.empty(_N)
        moved[order] = initial
        again = simulate(self.model, _N, moved, pairs=order[pairs], **settings).opinions[0]
        np.testing.assert_array_equal(again[:, order], found)

    def test_its_transition_on_a_grid_is_what_the_kernel_does(self) -> None:
        """After one step, the binned opinions of many listeners match the mass of the transition on a grid."""
        model, (low, high), size = self.model, self.span, 2000
        if model.states == "traits":
            return
        nodes = np.linspace(low, high, 21)
        settings = {name: value for name, value in self.settings.items() if name not in model.schemes}
        parts = (0.0, 1.0) if model.kind == "discrete" else (0.37, 0.52)
        own, said = (low + part * (high - low) for part in parts)
        if model.update is not None:
            opinions = np.repeat([own, said], size)
            pairs = np.arange(2 * size).reshape(2, size)[::-1].T
            found = simulate(model, 2 * size, opinions, pairs=pairs, seed=7, machine=False, **settings).final[0, :size]
        elif "synchronous" in model.orders and not model.carried:
            options: dict[str, Any] = {"order": "synchronous"} if len(model.orders) > 1 else {}
            joined, both = Network.from_edges([(0, 1)]), np.array([own, said])
            many: dict[str, Any] = {"replicates": size, "steps": 1, "seed": 7, "machine": False}
            found = simulate(model, joined, both, **many, **options, **settings).final[:, 0]
        else:
            return
        given: dict[str, Any] = {"start": [own]} if "start" in model.needs else {}
        expected = transition(model, [own], [said], **given, **settings).on_grid(nodes)[0]
        binned = Transition(found[:, None], np.ones((size, 1))).on_grid(nodes)
        assert expected.sum() == pytest.approx(1.0)
        error = _TOLERATED * binned.std(axis=0) / np.sqrt(size) + 1e-9
        assert (np.abs(binned.mean(axis=0) - expected) <= error + 0.005).all()

    def test_who_has_no_partner_is_an_error_or_keeps_its_opinion(self) -> None:
        """An agent without a partner is an error, or keeps its opinion with ``isolates='keep'``."""
        lonely = Network.from_edges(_EDGES, _N + 1)
        initial = self.initial(_N + 1)
        if "partners" not in self.model.needs:
            assert self.run(lonely, initial).shape == (1, 5, _N + 1)
            return
        with pytest.raises(SpecError, match=r"agent 6 .*isolates='keep'"):
            self.run(lonely, initial)
        kept = self.run(lonely, initial, isolates="keep", replicates=2, machine=False)
        assert (kept[:, :, _N] == initial[_N]).all()

    def test_bad_input_is_refused(self) -> None:
        """Bad input raises an error with one clear message."""
        initial = self.initial()
        low, high = self.model.range
        with pytest.raises(SpecError, match=r"agent 2 has \[?nan"):
            self.run(initial=_with(initial, 2, np.nan))
        if np.isfinite(high):
            with pytest.raises(SpecError, match=f"from {low:g} to {high:g}; agent 1 has"):
                self.run(initial=_with(initial, 1, high + 1))
        with pytest.raises(SpecError, match="for each of the 6 agents"):
            self.run(initial=initial[:-1])
        with pytest.raises(SpecError, match="has no parameter 'nonsense'"):
            self.run(nonsense=1)
        for name, parameter in self.model.declared.items():
            with pytest.raises(SpecError, match=name):
                self.run(**{name: "nonsense"})
            if parameter.per_agent:
                with pytest.raises(SpecError, match=f"{name} must be one number or {_N} of them"):
                    self.run(**{name: [parameter.default] * (_N + 1)})
                with pytest.raises(SpecError, match=name):
                    self.run(**{name: float("nan")})
