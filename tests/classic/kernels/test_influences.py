"""What acts on opinions beside other agents: noise, zealots and media, and the noisy voter model."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from opinionsim.classic import MODELS, set_up, simulate, transition
from opinionsim.classic._actors import MeetingActor
from opinionsim.errors import SpecError
from opinionsim.messages import Message
from opinionsim.networks import Network

pytestmark = pytest.mark.long

#: Models of pairs with noise, zealots and media, and settings under which agents move.
PAIRS: dict[str, dict[str, Any]] = {
    "algorithmic-bias": {"epsilon": 0.4, "mu": 0.3, "gamma": 1.3},
    "deffuant": {"epsilon": 0.4, "mu": 0.3},
    "jager-amblard": {"range": (0.0, 1.0), "u": 0.4, "t": 0.7, "mu": 0.3},
    "noisy-voter": {"bias": 0.8},
    "voter": {"bias": 0.3},
    "weighted-linear": {"h": 1.5},
}
#: Every model with zealots.
ZEALOTS = [name for name, model in MODELS.items() if "zealot" in model.declared and model.declared["zealot"].idle]
#: Statistics beyond these come up once in ten thousand tests.
RARE = 1e-4


def _initial(name: str, n: int) -> np.ndarray:
    if MODELS[name].states == "two" or name == "voter":
        return (np.arange(n) % 3 == 0).astype(float)
    low, high = PAIRS.get(name, {}).get("range", MODELS[name].range)
    return low + (high - low) * (np.arange(n) * 0.6180339887 % 1.0)


def _everything(name: str, n: int) -> dict[str, Any]:
    """Settings under which all that the model knows of happens, and every third agent is a zealot."""
    declared = MODELS[name].declared
    wanted = {"epsilon": 1.0, "noise": 0.2, "media": 0.2, "media_opinions": [1.0], "zealot": np.arange(n) % 3 // 2}
    return {**{key: value for key, value in wanted.items() if key in declared}, **PAIRS.get(name, {})}


@pytest.mark.parametrize("name", ZEALOTS)
def test_machine_code_and_python_give_the_same_bytes(name: str) -> None:
    initial, settings = _initial(name, 9), _everything(name, 9)
    fast = simulate(name, 9, initial, 12, 2, **settings)
    slow = simulate(name, 9, initial, 12, 2, machine=False, **settings)
    assert fast.opinions.tobytes() == slow.opinions.tobytes()


@pytest.mark.parametrize("name", ZEALOTS)
def test_zealots_never_change_and_others_do(name: str) -> None:
    initial, settings = _initial(name, 9), _everything(name, 9)
    ring = Network.from_edges([(a, (a + gap) % 9) for a in range(9) for gap in (1, 2)], 9)
    for order in MODELS[name].orders:
        for network in (9, ring):
            found = simulate(name, network, initial, 25, 2, machine=False, order=order, **settings).opinions[0]
            moved = (found != found[0]).any(axis=0)
            assert not moved[settings["zealot"] == 1].any()
            assert moved[settings["zealot"] == 0].sum() >= 3


@pytest.mark.parametrize("name", ["deffuant", "jager-amblard", "hegselmann-krause"])
def test_zealots_and_noise_in_several_dimensions(name: str) -> None:
    initial = np.random.default_rng(4).random((12, 2))
    zealot = np.arange(12) % 3 // 2
    options: dict[str, Any] = {"range": (0.0, 1.0), "machine": False}
    found = simulate(name, 12, initial, 20, 1, noise=0.2, zealot=zealot, **options)
    still = (found.opinions[0] == initial).all(axis=(0, 2))
    assert still.tolist() == (zealot == 1).tolist()
    # Noise alone takes both dimensions anywhere, apart from each other.
    alone = simulate(name, 400, np.full((400, 2), 0.5), 12, 1, noise=1.0, **options).final[0]
    changed = alone[(alone != 0.5).all(axis=1)]
    assert len(changed) > 395
    for column in changed.T:
        assert stats.kstest(column, "uniform").pvalue > RARE
    assert abs(np.corrcoef(changed.T)[0, 1]) < 0.2


def test_machine_code_and_python_give_the_same_vectors() -> None:
    initial, zealot = np.random.default_rng(4).random((9, 2)), np.arange(9) % 3 // 2
    for name in ("deffuant", "hegselmann-krause"):
        fast = simulate(name, 9, initial, 8, 1, noise=0.2, zealot=zealot)
        slow = simulate(name, 9, initial, 8, 1, noise=0.2, zealot=zealot, machine=False)
        assert fast.opinions.tobytes() == slow.opinions.tobytes()


def test_media_move_the_one_that_meets_them() -> None:
    zealot = [0, 1]
    found = simulate("deffuant", 2, [0.4, 0.6], 1, 3, order="sequential", pick="listener", media=1, zealot=zealot,
                     media_opinions=0.2, epsilon=0.3, mu=0.5, machine=False)  # fmt: skip
    np.testing.assert_allclose(found.final[0], [0.3, 0.6], atol=1e-15)
    out_of_reach = simulate("deffuant", 2, [0.4, 0.6], 5, 3, media=1, media_opinions=[0.0, 0.95], epsilon=0.3,
                            machine=False)  # fmt: skip
    assert out_of_reach.final[0].tolist() == [0.4, 0.6]


@pytest.mark.parametrize("name", [*PAIRS, "hegselmann-krause", "majority"])
def test_probability_of_nothing_is_nothing(name: str) -> None:
    options = {key: value for key, value in PAIRS.get(name, {}).items() if key in ("range", "mu", "epsilon")}
    idle = {key: np.zeros(8) if each.per_agent and key == "noise" else 0
            for key, each in MODELS[name].declared.items() if each.idle}  # fmt: skip
    options["machine"] = False
    without = simulate(name, 8, "uniform", 6, 5, **options, **({"noise": 0} if name == "noisy-voter" else {}))
    assert simulate(name, 8, "uniform", 6, 5, **options, **idle).opinions.tobytes() == without.opinions.tobytes()
    variant = set_up(MODELS[name], Network.of(8), settings=idle).variant()
    assert not any(variant.option(key) for key in idle), "kernels are made without"


def test_who_meets_whom_is_the_same_with_noise() -> None:
    zealot = np.ones(40, dtype=int)
    zealot[0] = 0
    found = [
        simulate("voter", 40, (np.arange(40) % 2).astype(float), 60, 5, zealot=zealot, noise=noise, machine=False)
        for noise in (0.0, 0.05)
    ]
    assert 0 < (found[0].opinions[0, :, 0] != found[1].opinions[0, :, 0]).mean() < 0.15


def test_actors_on_schedules_know_noise_zealots_and_media() -> None:
    def stated(**settings: Any) -> float:
        setup = set_up(MODELS["deffuant"], Network.of(2), settings={"epsilon": 1.0, "mu": 0.5, **settings}, met=True)
        actor = MeetingActor(0, 0.2, setup, 1, 0)
        said: list[Message] = []
        message = Message("0.6", agent=1, role="participant", act="post")
        turn = type("Turn", (), {"act": "post"})()
        asyncio.run(actor.act(turn, [message], None, said.append))  # type: ignore[arg-type]
        return float(said[0].text)

    assert stated() == pytest.approx(0.4)
    assert stated(zealot=1) == 0.2
    assert stated(media=1.0, media_opinions=1.0) == pytest.approx(0.6)
    assert stated(noise=1.0) not in (0.2, pytest.approx(0.4))


def test_media_speak_of_one_dimension() -> None:
    with pytest.raises(SpecError, match="media have one dimension"):
        simulate("deffuant", 4, np.full((4, 2), 0.5), media=0.1, media_opinions=0.5)


def test_opinions_of_media_grow_with_no_range_and_are_in_units_of_the_model() -> None:
    found = simulate("q-voter", 5, [-1.0, -1, -1, -1, -1], 30, 1, media=1, media_opinions=1, range=(-1, 1),
                     machine=False)  # fmt: skip
    assert (found.final == 1).all()
    step = transition("q-voter", [-1.0], [-1.0], media=1, media_opinions=1.0, range=(-1, 1))
    assert step.probability(np.array([1.0]))[0] == pytest.approx(1.0)


@given(
    st.sampled_from([*PAIRS, "hegselmann-krause", "q-voter", "majority"]),
    st.tuples(*[st.floats(0, 1)] * 3),
    st.sampled_from([0, 1]),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=3),
)
def test_transitions_are_distributions(
    name: str, chances: tuple[float, float, float], zealot: int, media: list[float]
) -> None:
    wanted = {"noise": chances[0], "media": chances[1], "bias": chances[2], "zealot": zealot, "media_opinions": media}
    declared = MODELS[name].declared
    settings = {key: value for key, value in wanted.items() if key in declared}
    found = transition(name, [0.0, 1.0], [1.0, 1.0], range=(0.0, 1.0), **settings)
    masses, grid = found.probabilities.sum(axis=1), np.linspace(0, 1, 5)
    # The density is the same all over the range.
    rest = [0.0] * 2 if found.density is None else [found.density(np.full(2, at)) for at in grid]
    np.testing.assert_allclose(masses + np.mean(rest, axis=0), 1.0, atol=1e-12)
    assert (found.probabilities >= 0).all()
    assert ((found.values >= 0) & (found.values <= 1)).all()
    if zealot:
        assert found.probability(np.array([0.0, 1.0])).tolist() == pytest.approx([1.0, 1.0])
