"""Scores of held-out runs: folds, the table of shares, exchanged messages, paired differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.comparison._studies import (
    BASELINES,
    POINTS,
    Problem,
    Updates,
    among,
    by_run,
    fit,
    folds,
    held_out,
    meetings,
    named,
    paired,
    rated,
    reachable,
    refit,
    shuffled,
)


def _blocked(study: Updates, blocks: list[str]) -> Updates:
    return replace(study, blocks=tuple(blocks))


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_folds_keep_blocks_together_and_take_every_run_once(count: int) -> None:
    blocks = ["b", "a", "b", "c", "d", "a", "e", "f", "g", "c"]
    found = folds(_blocked(meetings(10, 4, 5, 1), blocks), count)
    assert len(found) == min(count, 7)
    assert sorted(np.concatenate(found).tolist()) == list(range(10))
    home = {run: fold for fold, runs in enumerate(found) for run in runs.tolist()}
    assert all(home[one] == home[other] for one in range(10) for other in range(10) if blocks[one] == blocks[other])


def test_a_run_is_scored_by_fits_that_have_not_seen_its_block() -> None:
    study = rated(meetings(6, 6, 30, 2), None, {"pull": 0.1, "towards": 1.0}, 0.1, 2)
    study = _blocked(study, ["a", "a", "b", "b", "c", "c"])
    problem = Problem(study)
    full = fit(problem, BASELINES[2])
    found = held_out(problem, [full])
    rest = study.of([2, 3, 4, 5])
    other = refit(Problem(rest), full.candidate, full.values)
    tested = problem.over(study.of([0, 1]), prior=Problem(rest).prior)
    expected = by_run(tested.study, tested.by_turn(full.candidate, other.values))
    np.testing.assert_array_equal(found[:2, 0], expected)


def test_shares_of_other_folds_are_what_is_reachable() -> None:
    # Two runs and two folds: each is scored by the shares of the other.
    study = among(np.tile([[0, 1], [2, 1]], (2, 1)), np.tile([1, 2], 2), 2, 3)
    study = study.rated(np.array([3, 1, 0, 2, 3, 1, 0, 2]))
    k, added = 5, 2.0
    found = reachable(study)
    # Training has two updates: (no own, 3) -> 1 and (own 1, message 0) -> 2. Both occur again in the test.
    overall = np.array([1, 2, 2, 1, 1]) / (2 + k)
    unknown = (np.eye(k)[1] + added * overall) / (1 + added)
    first = (1 + added * unknown[1]) / (1 + added)
    held = (np.eye(k)[2] + added * overall) / (1 + added)
    second = (1 + added * held[2]) / (1 + added)
    np.testing.assert_allclose(found, np.full(2, (np.log(first) + np.log(second)) / 2))


def test_a_table_reaches_what_it_was_drawn_from() -> None:
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(5, 0.5), size=(5, 5))
    # Agent 0 posts and agent 1 reports, by turns: the next rating depends on both before.
    study = among(np.tile([[0, 1]], (40 * 200, 1)), np.tile(np.arange(1, 201), 40), 40, 2)
    rating = np.zeros(len(study.agent), dtype=np.int64)
    expected = []
    for run in range(40):
        own, said = 2, int(rng.integers(5))
        for at in range(study.first[run], study.first[run + 1], 2):
            said = int(rng.integers(5))
            chances = shares[own, said]
            expected.append(float((chances * np.log(chances + 1e-300)).sum()))
            own = int(rng.choice(5, p=chances))
            rating[at], rating[at + 1] = said, own
    found = reachable(study.rated(rating)).mean()
    assert found == pytest.approx(np.mean(expected), abs=0.03)


def test_exchanged_messages_are_by_others_of_the_same_run_and_time() -> None:
    study = meetings(6, 8, 60, 4)
    found = shuffled(study, np.random.default_rng(5))
    run = np.repeat(np.arange(6), np.diff(study.first))
    reader = np.repeat(np.arange(len(study.agent)), np.diff(study.first_read))
    moved = found.reads != study.reads
    late = study.step[reader] > 5
    assert moved[late].all()
    assert (run[found.reads] == run[reader]).all()
    assert (found.reads < reader).all()
    assert (study.step[reader] - study.step[found.reads] <= 10).all()
    assert (study.agent[found.reads] != study.agent[reader]).all()
    assert (study.agent[found.reads] != study.agent[study.reads])[moved].all()
    assert found.value is study.value


def test_two_agents_have_no_messages_to_exchange() -> None:
    study = meetings(3, 2, 20, 6)
    np.testing.assert_array_equal(shuffled(study, np.random.default_rng(0)).reads, study.reads)


def test_differences_are_paired_by_run() -> None:
    first, second = np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.5, 1.0, 3.5, 4.0])
    mean, error = paired(meetings(4, 5, 10, 0), first, second)
    assert mean == 0.5
    assert error == pytest.approx(np.std([0.5, 1.0, -0.5, 1.0], ddof=1) / 2)


def test_runs_of_one_block_are_no_more_than_the_block() -> None:
    """Copies of runs leave the error as it is; runs of one block that differ leave that of their means."""
    study, first = _blocked(meetings(6, 5, 10, 0), list("aabbcc")), np.repeat([1.0, 2.0, 4.0], 2)
    expected = np.std([1.0, 2.0, 4.0], ddof=1) / np.sqrt(3)
    for spread in (0.0, 0.7):
        mean, error = paired(study, first + np.tile([spread, -spread], 3), np.zeros(6))
        assert (mean, error) == (pytest.approx(7 / 3), pytest.approx(expected))


def test_what_two_searches_for_one_optimum_leave_is_no_difference() -> None:
    """A gain of 0.001 in every update of every run has no error by the runs, and is one nat in 1,000 updates."""
    study, scores = meetings(20, 10, 50, 0), np.linspace(-1.0, -2.0, 20)
    for gain, claimed in ((0.001, False), (0.004, True)):
        mean, error = paired(study, scores + gain, scores)
        assert mean == pytest.approx(gain)
        assert (mean > 2 * error) is claimed


@pytest.mark.long
def test_scores_are_the_same_on_any_number_of_threads_and_in_any_order_of_runs() -> None:
    study = rated(meetings(6, 5, 15, 7), "degroot", {"self_weight": 2.0}, 0.1, 7)
    problem = Problem(study)
    candidates = [BASELINES[1], *named("voter")]
    fits = [fit(problem, each) for each in candidates]
    one, three = held_out(problem, fits, 1), held_out(problem, fits, 3)
    np.testing.assert_array_equal(one, three)
    turned = Problem(study.of([4, 2, 0, 5, 1, 3]))
    again = [fit(turned, each) for each in candidates]
    assert [each.objective for each in again] == [each.objective for each in fits]
    assert [each.values for each in again] == [each.values for each in fits]


def test_a_run_in_which_nothing_was_measured_scores_nothing() -> None:
    study = rated(meetings(3, 4, 10, 8), None, {}, 0.1, 8)
    value = study.value.copy()
    value[study.first[1] : study.first[2]] = np.nan
    study = study.of_values(value)
    problem = Problem(study)
    scores = by_run(study, problem.by_turn(BASELINES[0], {"jump": 0.01, "error": 0.1, "near": 0.8}))
    assert scores[1] == 0
    assert np.isfinite(reachable(study)).all()
    assert POINTS[study.rating[0]] == study.value[0]
