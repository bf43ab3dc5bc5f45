"""Opinions on a grid: shares of cells, misreading, and the steps of a model averaged within cells."""

from __future__ import annotations

import numpy as np
import pytest

from opinionsim.classic import Transition, find_model, transition
from tests.comparison._studies import POINTS, Grid, Steps, misreading


def _dense(steps: Steps, size: int) -> np.ndarray:
    """The rows as (S * G, G, G): own, read, next."""
    rows = np.zeros((len(steps.first) - 1, size))
    for row in range(len(rows)):
        inside = slice(steps.first[row], steps.first[row + 1])
        np.add.at(rows[row], steps.node[inside], steps.mass[inside])
    return rows.reshape(-1, size, size)


def test_each_cell_is_shared_among_the_points_that_are_nearest() -> None:
    grid = Grid(POINTS)
    np.testing.assert_allclose(grid.share.sum(axis=1), 1.0)
    # The middle between two points is a node: half of its cell is on either side.
    np.testing.assert_allclose(grid.share[5], [0.5, 0.5, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(grid.share[[0, 10, 20, 30, 40]], np.eye(5), atol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5, 7])
@pytest.mark.parametrize("near", [0.0, 0.8, 1.0])
def test_misreading_errs_as_often_as_it_says(k: int, near: float) -> None:
    matrix = misreading(k, 0.3, near)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.diag(matrix), 0.7)
    if k > 2:
        assert matrix[0, 1] == pytest.approx(0.3 * near)
    if k > 3:
        assert matrix[1, 0] == matrix[1, 2] == pytest.approx(0.15 * near)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("voter", {}),
        ("degroot", {"self_weight": 3.0}),
        ("deffuant", {"epsilon": 1.2, "mu": 0.3}),
        ("jager-amblard", {"u": 0.8, "t": 2.0, "mu": 0.3}),
        ("lorenz", {"theta": 0.2, "alpha": 0.2, "rho": 0.9, "latitude": 1.0}),
    ],
)
def test_steps_are_distributions_whose_means_are_those_within_cells(model: str, parameters: dict[str, float]) -> None:
    grid = Grid(POINTS, 21)
    dense = _dense(grid.steps(find_model(model), parameters), len(grid))
    assert dense.shape == (21, 21, 21)
    np.testing.assert_allclose(dense.sum(axis=2), 1.0, atol=1e-9)
    within = np.array([-1.0, 0.0, 1.0]) / 3.0 * grid.width
    for own, read in ((3, 8), (10, 10), (12, 15), (16, 4)):
        left, right = (each.ravel() for each in np.meshgrid(grid.nodes[own] + within, grid.nodes[read] + within))
        found = transition(find_model(model), left, right, range=(-2.0, 2.0), **parameters)
        spread = 0.0 if found.density is None else found.rest.mean() * (0.0 - grid.nodes[own])
        change = ((found.values - left[:, None]) * found.probabilities).sum(axis=1).mean() + spread
        assert dense[own, read] @ grid.nodes - grid.nodes[own] == pytest.approx(change, abs=0.02)


def test_a_gate_inside_a_cell_opens_by_degrees() -> None:
    grid, mass = Grid(POINTS), []
    for epsilon in np.linspace(0.9, 1.1, 9):
        dense = _dense(grid.steps(find_model("deffuant"), {"epsilon": epsilon, "mu": 0.3}), len(grid))
        mass.append(1.0 - dense[20, 30, 20])
    assert mass[0] < 0.1
    assert mass[-1] > 0.9
    assert (np.diff(mass) >= 0).all()
    assert len(set(np.round(mass, 6))) > 4


def test_a_model_that_goes_back_has_rows_for_each_start() -> None:
    grid = Grid(POINTS, 9)
    model = find_model("friedkin-johnsen")
    assert grid.starts.tolist() == [-2.0, 0.0, 2.0]
    assert grid.bins.tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 2]
    steps = grid.steps(model, {"susceptibility": 0.5, "self_weight": 1.0}, grid.starts)
    dense = _dense(steps, 9).reshape(3, 9, 9, 9)
    np.testing.assert_allclose(dense[:, 4, 4] @ grid.nodes, [-1.0, 0.0, 1.0], atol=1e-9)


def test_pull_and_shift_lead_where_they_say_and_stay_on_the_grid() -> None:
    grid = Grid(POINTS)
    for pull, towards, shift in ((0.0, 0.0, 0.0), (0.1, 1.0, 0.0), (0.0, 0.0, 0.7), (1.0, -2.0, 0.0)):
        below, above = grid.moved(pull, towards, shift)
        to = grid.nodes[below] * (1 - above) + grid.nodes[below + 1] * above
        np.testing.assert_allclose(to, np.clip(grid.nodes + pull * (towards - grid.nodes) + shift, -2, 2), atol=1e-9)


def test_mass_on_a_grid_keeps_means_and_ends() -> None:
    nodes = np.linspace(-1.0, 1.0, 5)
    found = Transition(np.array([[0.1, 3.0], [-0.5, -7.0]]), np.array([[0.75, 0.25], [1.0, 0.0]])).on_grid(nodes)
    np.testing.assert_allclose(found, [[0, 0, 0.6, 0.15, 0.25], [0, 1, 0, 0, 0]])
    half = Transition(np.zeros((1, 1)), np.full((1, 1), 0.5), lambda opinions: np.full(len(opinions), 0.25))
    np.testing.assert_allclose(half.on_grid(nodes), [[0.0625, 0.125, 0.625, 0.125, 0.0625]])
