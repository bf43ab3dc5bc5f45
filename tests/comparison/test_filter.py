"""The filter against every path that opinions can take, and against what is drawn."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from opinionsim.classic import find_model
from tests.comparison._studies import (
    POINTS,
    Candidate,
    Grid,
    Moves,
    Updates,
    among,
    by_run,
    candidate,
    draw,
    meetings,
    misreading,
    predict,
    rated,
)

SIZE = 5
MISREAD = misreading(5, 0.2, 0.7)
PRIOR = np.array([0.3, 0.1, 0.2, 0.15, 0.25])
CASES: dict[str, tuple[str | None, dict[str, float]]] = {
    "persistence": (None, {"jump": 0.1}),
    "attractor": (None, {"jump": 0.05, "pull": 0.2, "towards": 0.7}),
    "anchored": (None, {"jump": 0.1, "back": 0.4, "anchored": 0.6}),
    "voter": ("voter", {"jump": 0.1, "stay": 0.4, "pull": 0.1, "towards": 0.5}),
    "deffuant": ("deffuant", {"jump": 0.1, "stay": 0.2, "epsilon": 1.4, "mu": 0.4, "pull": 0.1, "towards": -0.5}),
    "friedkin-johnsen": ("friedkin-johnsen", {"jump": 0.1, "stay": 0.1, "susceptibility": 0.6, "self_weight": 1.0}),
}


def _rule(case: str, grid: Grid) -> Moves:
    model, values = CASES[case]
    one = Candidate(case, innate="anchor") if case == "anchored" else candidate(model)
    return one.rule(values, grid)


def _next(rule: Moves, grid: Grid) -> np.ndarray:
    """Probability of the next node by kind of agent, own node and node read, (S, G, G, G), written anew."""
    size, bins = len(grid), len(rule.kinds)
    found = np.zeros((bins, size, size, size))
    for start, own, read in product(range(bins), range(size), range(size)):
        led = np.zeros(size)
        if rule.steps is None:
            led[own] = 1.0 - rule.jump
        else:
            row = (start * size + own) * size + read
            inside = slice(rule.steps.first[row], rule.steps.first[row + 1])
            np.add.at(led, rule.steps.node[inside], (1.0 - rule.stay - rule.jump) * rule.steps.mass[inside])
            led[own] += rule.stay
        for node, mass in enumerate(led):
            below, above = rule.below[start, node], rule.above[start, node]
            found[start, own, read, below] += mass * (1.0 - above)
            found[start, own, read, below + 1] += mass * above
        found[start, own, read] += rule.jump / size
    return found


def _over_all_paths(study: Updates, grid: Grid, rule: Moves) -> float:
    """Log likelihood of one run, summed over every path of nodes, one node a turn and one of each agent at first."""
    size, readings, step = len(grid), grid.readings(MISREAD), _next(rule, grid)
    said = {int(each): -1 for each in study.reads}

    def onwards(at: int, kind: tuple[int, ...], holds: tuple[int, ...]) -> float:
        """Probability of the ratings from a turn on."""
        if at == len(study.agent):
            return 1.0
        who, total = int(study.agent[at]), 0.0
        read = study.reads[study.first_read[at] : study.first_read[at + 1]]
        for node in range(size) if len(read) else [holds[who]]:
            moved = step[kind[who], holds[who], said[int(read[0])], node] if len(read) else 1.0
            seen = readings[node, study.rating[at]] if study.rating[at] >= 0 else 1.0
            if at in said:
                said[at] = node
            total += moved * seen * onwards(at + 1, kind, (*holds[:who], node, *holds[who + 1 :]))
        return float(total)

    n, total = int(study.n_agents[0]), 0.0
    for kind, first in product(product(range(len(rule.kinds)), repeat=n), product(range(size), repeat=n)):
        chance = np.prod(PRIOR[list(first)] * rule.kinds[list(kind), list(first)])
        total += chance * onwards(0, kind, first) if chance else 0.0
    return float(np.log(total))


@pytest.mark.parametrize("missing", [(), (0,), (3,)], ids=["all rated", "a post unrated", "a report unrated"])
@pytest.mark.parametrize("case", CASES)
def test_likelihood_is_that_of_all_paths(case: str, missing: tuple[int, ...]) -> None:
    # Agent 1 reads agent 0, and then agent 2: nobody who is read has an opinion that depends on the reader's.
    grid = Grid(POINTS, SIZE)
    study = among(np.array([(0, 1), (2, 1)]), np.array([1, 2]), 1, 3)
    value = study.points[[3, 1, 0, 2]].copy()
    value[list(missing)] = np.nan
    study, rule = study.of_values(value), _rule(case, grid)
    found = predict(study, grid, PRIOR, rule, MISREAD)
    assert found.sum() == pytest.approx(_over_all_paths(study, grid, rule), abs=1e-9)
    assert not found[list(missing)].any()


@pytest.mark.parametrize("rating", [4, None], ids=["rated", "not rated"])
@pytest.mark.parametrize("case", CASES)
def test_of_an_update_that_is_passed_over_the_rating_alone_is_taken_in(case: str, rating: int | None) -> None:
    """Agent 0 reads two messages at its second turn, and writes again."""
    grid, rule = Grid(POINTS, SIZE), _rule(case, Grid(POINTS, SIZE))
    base = among(np.array([(0, 1), (2, 0), (0, 1)]), np.array([1, 2, 3]), 1, 3).rated(np.array([0, 1, 1, 4, 3, 2]))
    value = base.value.copy()
    value[3] = np.nan if rating is None else POINTS[rating]
    study = replace(base, first_read=np.array([0, 0, 1, 1, 3, 3, 4]), reads=np.array([0, 1, 2, 4]), value=value)
    found = predict(replace(study, one_message=True), grid, PRIOR, rule, MISREAD)
    likely = PRIOR if rating is None else PRIOR * grid.readings(MISREAD)[:, rating]
    assert found[3] == 0
    assert found[4] == pytest.approx(np.log(likely @ grid.readings(MISREAD)[:, 3] / likely.sum()))
    np.testing.assert_array_equal(found[:3], predict(study, grid, PRIOR, rule, MISREAD)[:3])
    drawn = [draw(replace(study, one_message=True), grid, PRIOR, rule, np.eye(5), np.random.default_rng(seed))[1]
             for seed in range(40)]  # fmt: skip
    assert len({int(each[3]) for each in drawn}) == (1 if rating == 4 else SIZE)


def test_what_is_neglected_where_agents_read_each_other_in_turn_is_little() -> None:
    # What later ratings say about the messages that others read earlier is left out.
    grid = Grid(POINTS, SIZE)
    study = among(np.array([(0, 1), (1, 0)]), np.array([1, 2]), 1, 2)
    rule, gaps = _rule("deffuant", grid), []
    for rating in ([3, 1, 1, 2], [0, 4, 4, 4], [2, 2, 2, 2]):
        one = study.rated(np.array(rating))
        gaps.append(predict(one, grid, PRIOR, rule, MISREAD).sum() - _over_all_paths(one, grid, rule))
    assert np.abs(gaps).max() < 0.2
    assert np.abs(gaps).mean() < 0.1


@pytest.mark.parametrize("case", CASES)
def test_probabilities_of_the_next_rating_sum_to_one(case: str) -> None:
    grid = Grid(POINTS)
    study = rated(meetings(2, 4, 6, 1), "deffuant", {"epsilon": 1.2, "mu": 0.3}, 0.2, 1)
    last, prior, total = study.first[1] - 1, np.full(len(grid), 1 / len(grid)), 0.0
    for point in POINTS:
        value = study.value.copy()
        value[last] = point
        total += np.exp(predict(study.of_values(value), grid, prior, _rule(case, grid), MISREAD)[last])
    assert total == pytest.approx(1.0, abs=1e-9)


def test_what_is_drawn_is_predicted_best_at_the_truth() -> None:
    grid, study = Grid(POINTS), meetings(30, 10, 100, 2)
    prior, misread = np.full(len(grid), 1 / len(grid)), misreading(5, 0.1, 0.8)
    truth = {"epsilon": 1.2, "mu": 0.3, "stay": 0.2, "jump": 0.02, "pull": 0.03, "towards": 1.0}

    def score(values: dict[str, float], drawn: Updates) -> float:
        return float(predict(drawn, grid, prior, candidate("deffuant").rule(values, grid), misread).sum())

    rule = candidate("deffuant").rule(truth, grid)
    drawn = study.rated(draw(study, grid, prior, rule, misread, np.random.default_rng(3))[1])
    best = score(truth, drawn)
    for name, other in (("epsilon", 0.8), ("epsilon", 1.8), ("mu", 0.15), ("mu", 0.5), ("stay", 0.5), ("jump", 0.1),
                        ("pull", 0.0), ("pull", 0.1), ("towards", -1.0)):  # fmt: skip
        assert score({**truth, name: other}, drawn) < best - 2, (name, other)


@pytest.mark.parametrize("case", CASES)
def test_draws_are_as_frequent_as_predicted(case: str) -> None:
    # Many runs of one meeting: shares of pairs of ratings, reader before and after, against their probabilities.
    grid, runs = Grid(POINTS), 20000
    one = among(np.array([(1, 2), (0, 1)]), np.array([1, 2]), 1, 3)
    study = among(np.tile(np.array([(1, 2), (0, 1)]), (runs, 1)), np.tile([1, 2], runs), runs, 3)
    prior, rule = np.linspace(1, 3, len(grid)) / np.linspace(1, 3, len(grid)).sum(), _rule(case, grid)
    _, rating = draw(study, grid, prior, rule, MISREAD, np.random.default_rng(4))
    # Turns: agent 1 posts, agent 2 reports, agent 0 posts, agent 1 reports.
    before, said, after = rating.reshape(runs, 4)[:, [0, 2, 3]].T
    counts = np.zeros((5, 5, 5))
    np.add.at(counts, (before, said, after), 1)
    wanted = np.zeros((5, 5, 5))
    for ratings in product(range(5), repeat=3):
        value = POINTS[[ratings[0], 0, ratings[1], ratings[2]]].copy()
        value[1] = np.nan
        wanted[ratings] = np.exp(predict(one.of_values(value), grid, prior, rule, MISREAD).sum())
    assert wanted.sum() == pytest.approx(1.0, abs=1e-6)
    error = np.sqrt(wanted * (1 - wanted) / runs)
    assert (np.abs(counts / runs - wanted) <= 5 * error + 1e-9).all()


def test_free_runs_begin_where_agents_were_rated_first() -> None:
    grid, study = Grid(POINTS), meetings(5, 6, 30, 5)
    study = rated(study, None, {}, 0.0, 5)
    prior, rule = np.full(len(grid), 1 / len(grid)), candidate(None).rule({"jump": 0.0}, grid)
    _, rating = draw(study, grid, prior, rule, np.eye(5), np.random.default_rng(6), begun=True)
    # A node in the middle between two points is rated either.
    assert np.abs(rating - study.rating).max() <= 1
    assert (rating == study.rating).mean() > 0.9


def test_runs_count_alone() -> None:
    grid, study = Grid(POINTS), rated(meetings(4, 6, 20, 7), "voter", {}, 0.1, 7)
    prior, rule = np.full(len(grid), 1 / len(grid)), _rule("voter", grid)
    together = predict(study, grid, prior, rule, MISREAD)
    apart = [predict(study.of([run]), grid, prior, rule, MISREAD) for run in (2, 0, 3, 1)]
    turned = predict(study.of([2, 0, 3, 1]), grid, prior, rule, MISREAD)
    np.testing.assert_array_equal(np.concatenate(apart), turned)
    assert by_run(study, together)[[2, 0, 3, 1]].tolist() == by_run(study.of([2, 0, 3, 1]), turned).tolist()


def test_starts_in_bins_do_as_well_as_the_full_state() -> None:
    grid, model = Grid(POINTS), candidate("friedkin-johnsen")
    prior, misread = np.full(len(grid), 1 / len(grid)), misreading(5, 0.1, 0.8)

    def rules(susceptibility: float) -> tuple[Moves, Moves]:
        parameters = {"susceptibility": susceptibility, "self_weight": 1.0}
        binned = model.rule({**parameters, "jump": 0.01}, grid)
        steps = grid.steps(find_model("friedkin-johnsen"), parameters, grid.nodes)
        moves = {name: np.tile(getattr(binned, name)[:1], (len(grid), 1)) for name in ("below", "above")}
        return binned, binned._replace(steps=steps, kinds=np.eye(len(grid)), **moves)

    study = meetings(10, 8, 40, 8)
    study = study.rated(draw(study, grid, prior, rules(0.6)[1], misread, np.random.default_rng(8))[1])
    found = {
        value: [predict(study, grid, prior, rule, misread).sum() for rule in rules(value)] for value in (0.5, 0.6, 0.7)
    }
    # At the truth they agree, and what is far from it is as far for both.
    assert abs(np.subtract(*found[0.6])) / study.updated.sum() < 0.01
    for value in (0.5, 0.7):
        falls = np.subtract(found[0.6], found[value])
        assert (falls > 2).all()
        assert falls[0] == pytest.approx(falls[1], rel=0.4)


@settings(deadline=None, max_examples=25)
@given(several=st.lists(st.integers(0, 2), min_size=4, max_size=4), refused=st.integers(0, 3), seed=st.integers(0, 100))
def test_any_number_of_messages_and_any_missing_rating_is_taken(several: list[int], refused: int, seed: int) -> None:
    rng, base = np.random.default_rng(seed), meetings(1, 4, 4, seed)
    counts, reads = [], []
    for at in range(8):
        earlier = np.flatnonzero(base.agent[:at] != base.agent[at])
        chosen = rng.choice(earlier, min(several[at // 2], len(earlier)), replace=False) if len(earlier) else []
        counts.append(len(chosen))
        reads += list(chosen)
    value = POINTS[rng.integers(0, 5, 8)].copy()
    value[2 * refused] = np.nan
    first_read, messages = np.concatenate([[0], np.cumsum(counts)]), np.array(reads, dtype=np.int64)
    study = replace(base, first_read=first_read, reads=messages, value=value)
    grid = Grid(POINTS)
    found = predict(study, grid, np.full(41, 1 / 41), Candidate("x").rule({"jump": 0.01}, grid), MISREAD)
    assert np.isfinite(found).all()
    assert (found <= 0).all()
