"""q-voter, majority rule and Sznajd: panels, ties, audiences."""

from __future__ import annotations

import numpy as np
import pytest

from opinionsim.classic import set_up, simulate, transition
from opinionsim.errors import SpecError
from opinionsim.networks import Network

pytestmark = pytest.mark.long

_START = np.array([1.0, 0.0, 0.0, 1.0, 1.0])


def test_agents_of_few_neighbours_ask_them_all() -> None:
    path = [(0, 1), (1, 2)]
    start = np.array([0.0, 1.0, 0.0])
    found = simulate("q-voter", path, start, 1, order="synchronous", replicates=200, q=3, repetition=False)
    assert (found.opinions[:, 1] != start).all()


def test_zealots_never_change() -> None:
    zealot = np.array([1, 0, 0, 0, 0])
    found = simulate("q-voter", 5, _START, 50, seed=1, q=1, independence=0.5, zealot=zealot).opinions[0]
    assert (found[:, 0] == 1).all()
    assert (np.diff(found[:, 1:], axis=0) != 0).any()


def test_a_range_of_ones_own_and_what_is_outside_its_ends() -> None:
    found = simulate("q-voter", 5, 2 * _START - 1, 3, seed=1, range=(-1, 1)).opinions
    np.testing.assert_array_equal((found + 1) / 2, simulate("q-voter", 5, _START, 3, seed=1).opinions)
    with pytest.raises(SpecError, match=r"opinions of q-voter must be 0 or 1; agent 1 has 0\.5"):
        simulate("q-voter", 2, [0, 0.5])


# -- majority ----------------------------------------------------------------------------------------------


def test_a_group_of_all_takes_the_majority() -> None:
    assert (simulate("majority", 5, _START, 1, r=5).opinions[0, 1] == 1).all()
    assert (simulate("majority", 5, 1 - _START, 1, r=5).opinions[0, 1] == 0).all()


@pytest.mark.parametrize(("ties", "up"), [("keep", None), ("bias", 1.0), ("random", 0.5)])
def test_ties(ties, up) -> None:
    start = np.array([1.0, 0.0, 1.0, 0.0])
    found = simulate("majority", 4, start, 1, seed=1, replicates=1000, r=4, ties=ties).opinions[:, 1]
    expected = transition("majority", start, [[0, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0]], ties=ties)
    assert np.abs(found.mean(axis=0) - expected.probability(np.ones(4))).max() < 4.5 * 0.5 / np.sqrt(1000)
    if up is None:
        assert (found == start).all()
    else:
        assert (found == found[:, :1]).all(), "a group decides as one"


@pytest.mark.parametrize(("n", "most"), [(6, 3), (7, 4)])
def test_a_sweep_is_as_many_groups_as_everybody_once_takes(n, most) -> None:
    # Pairs in which one of two convinces the other: an opinion gains one agent a group at most.
    start = np.eye(n)[0]
    gained = simulate("majority", n, start, 1, seed=2, replicates=2000, r=2, ties="bias").opinions[:, 1].sum(axis=1) - 1
    assert gained.max() == most


def test_bad_settings_of_groups() -> None:
    with pytest.raises(SpecError, match="r must be a whole number >= 2"):
        simulate("majority", 5, _START, r=1)
    with pytest.raises(SpecError, match="ties must be one of keep, random, bias"):
        simulate("majority", 5, _START, ties="odd")
    with pytest.raises(SpecError, match="q must be a whole number >= 1"):
        simulate("q-voter", 5, _START, q=0)
    with pytest.raises(SpecError, match="zealot must be a whole number"):
        simulate("q-voter", 5, _START, zealot=2)


# -- Sznajd ------------------------------------------------------------------------------------------------


def _after_one_pair(network, start, **options) -> set[tuple[float, ...]]:
    """States that one pair can lead to."""
    from opinionsim.classic import MODELS
    from opinionsim.classic.kernels import Timing, keyed_words

    model = MODELS["sznajd"]
    setup = set_up(model, Network.of(network), span=(0, 10), settings=options, isolates="keep")
    kernel = model.kernel(setup.variant(), None, lambda function: function)
    states = np.array([start] * 60, dtype=float)
    words, ended = keyed_words(1, "pairs", range(60), 8), np.full(60, -1)
    with np.errstate(over="ignore"):
        kernel(
            states, states.copy(), setup.contacts, Timing(1, 1, 0.0), setup.p, np.empty((0, 2)), words[:, :4].copy(),
            words[:, 4:].copy(), np.empty(0, dtype=int), np.empty((60, 0, len(start))), ended, np.zeros(1, np.uint8),
        )  # fmt: skip
    return {tuple(each) for each in states.tolist()}


def test_an_agreeing_pair_convinces_all_who_hear_either() -> None:
    path = [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert _after_one_pair(path, [0, 1, 1, 2, 3]) == {(0, 1, 1, 2, 3), (1, 1, 1, 1, 3)}


def test_disagreement_crosses_as_in_the_original_chain() -> None:
    # Sznajd-Weron & Sznajd 2000: S[i] S[i+1] = -1 turns S[i-1] into S[i+1] and S[i+2] into S[i].
    path = [(0, 1), (1, 2), (2, 3), (3, 4)]
    start = [0.0, 1.0, 0.0, 0.0, 0.0]
    expected = {
        (0.0, 1.0, 0.0, 0.0, 0.0),  # pair 0-1: 2 takes 0's opinion, and has it; pair 3-4 agrees, and 2 has theirs
        (0.0, 1.0, 0.0, 1.0, 0.0),  # pair 1-2: 0 takes 2's opinion, and has it; 3 takes 1's
        (0.0, 0.0, 0.0, 0.0, 0.0),  # pair 2-3 agrees: 1 takes theirs
    }
    assert _after_one_pair(path, start, disagreeing="cross") == expected


def test_who_hears_both_of_a_pair_that_disagrees_keeps_its_opinion() -> None:
    triangle_with_tails = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 4)]
    found = _after_one_pair(triangle_with_tails, [0, 1, 2, 3, 4], disagreeing="cross")
    assert (0.0, 1.0, 2.0, 1.0, 0.0) in found  # the pair 0, 1: tails cross, 2 hears both


def test_directed_ears() -> None:
    # 0 and 1 speak to each other; 2 hears 0, and speaks to 1: it is convinced, and whom it speaks to does not matter.
    directed = np.zeros((4, 4))
    directed[1, 0] = directed[0, 1] = directed[2, 0] = directed[1, 3] = 1  # [listener, speaker]
    found = _after_one_pair(directed, [1, 1, 0, 0])
    assert (1.0, 1.0, 1.0, 0.0) in found
    assert all(state[3] == 0.0 for state in found)


def test_sznajd_transition() -> None:
    before, pair = np.array([0.0, 0.0, 0.5]), np.array([[1.0, 1.0], [1.0, 0.5], [0.0, 1.0]])
    assert transition("sznajd", before, pair).values[:, 0].tolist() == [1.0, 0.0, 0.5]
    assert transition("sznajd", before, pair, disagreeing="cross").values[:, 0].tolist() == [1.0, 0.5, 1.0]
