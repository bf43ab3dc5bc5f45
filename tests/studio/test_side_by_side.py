"""Two conditions side by side: their numbers are those of tables, and nothing is put in for what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opinionsim import metrics
from opinionsim.errors import SpecError
from opinionsim.store import Results, load, open_store
from opinionsim.studio._side_by_side import SideBySide, side_by_side
from tests.support.running import SMALL, changed, finished

SPEC = changed(
    SMALL,
    replicates=4,
    population__size=5,
    interaction__steps=12,
    sweep={"cognition.confirmation_bias": ["none", "strong"], "interaction.network": ["complete", "ring"]},
)
NONE = {"cognition.confirmation_bias": "none", "interaction.network": "ring"}
STRONG = NONE | {"cognition.confirmation_bias": "strong"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return finished(SPEC, str(tmp_path_factory.mktemp("study") / "s.sqlite"))


@pytest.mark.parametrize("step", [2, 7, 12])
def test_numbers_are_those_of_the_table_of_conditions(results: Results, step: int) -> None:
    found = side_by_side(results, NONE, STRONG, step)
    table = results.by_condition(steps=[step])
    table = table[(table["step"] == step) & (table["network"] == "ring")].set_index("confirmation_bias")
    for side, bias in zip(found.sides, ("none", "strong"), strict=True):
        row = table.loc[bias]
        told = {**side.bias.columns("bias"), **side.diversity.columns("diversity")}
        assert told == pytest.approx(row[list(told)].to_dict(), nan_ok=True)
        assert [len(side.runs), side.n_withheld] == [row["n_runs"], row["n_withheld"]]
        assert [side.distribution.n, side.distribution.n_missing] == [row["n_measured"], row["n_never"]]
    assert found.sides[0].name == "confirmation bias: none, network: ring"


def _by_hand(results: Results, found: SideBySide) -> list[dict[tuple[str, int], float]]:
    """The opinion of each agent at the step, by block and agent; NaN where there is none."""
    every = metrics.trajectories(results.runs, results.agents, results.opinions, found.kind)
    now = every[every["step"] == found.step].merge(results.runs[["run_id", "block"]], on="run_id")
    return [
        {(row.block, row.agent): row.value for row in now[now["run_id"].isin(side.runs["run_id"])].itertuples()}
        for side in found.sides
    ]


@pytest.mark.parametrize("step", [1, 7, None])
def test_agents_keep_their_last_opinion_and_have_none_before(results: Results, step: int | None) -> None:
    found = side_by_side(results, NONE, STRONG, step)
    assert found.step == (12 if step is None else step)
    for side, held in zip(found.sides, _by_hand(results, found), strict=True):
        own = {(row.block, row.agent): row.value for row in side.opinions.itertuples()}
        assert own == pytest.approx(held, nan_ok=True)
        missing = sum(np.isnan(list(held.values())))
        assert [side.distribution.n, side.distribution.n_missing] == [20 - missing, missing]
        assert list(side.distribution.counts) == [
            sum(v == point for v in held.values()) for point in found.scale.points
        ]


def test_pairs_are_the_largest_differences_within_a_block(results: Results) -> None:
    found = side_by_side(results, NONE, STRONG)
    one, other = _by_hand(results, found)
    gaps = sorted((abs(one[key] - other[key]) for key in one if abs(one[key] - other[key]) > 0), reverse=True)
    told = [abs(pair["value one"] - pair["value other"]) for pair in found.pairs]
    assert told == gaps[: len(told)]
    assert len(told) == min(5, len(gaps)) > 1
    turns = results.turns.set_index(["run_id", "turn"])
    names = results.agents.set_index(["run_id", "agent"])["name"]
    for pair in found.pairs:
        for name, held, side in zip(("one", "other"), (one, other), found.sides, strict=True):
            run_id, agent = pair[f"run_id {name}"], pair["agent"]
            turn = turns.loc[run_id, pair[f"turn {name}"]]
            assert pair[f"value {name}"] == held[pair["block"], agent]
            assert (turn["message"], turn["agent"], turn["kind"]) == (pair[f"text {name}"], agent, found.kind)
            assert names[run_id, agent] == pair["name"]
            assert run_id in set(side.runs["run_id"])


@pytest.mark.parametrize("column", ["confirmation_bias", "cognition.confirmation_bias"])
def test_runs_that_differ_otherwise_are_no_pair(results: Results, column: str) -> None:
    found = side_by_side(results, {column: "none"}, {column: "strong"})
    assert [len(side.runs) for side in found.sides] == [8, 8]
    network = results.runs.set_index("run_id")["network"]
    assert len(found.pairs) == 5
    for pair in found.pairs:
        assert network[pair["run_id one"]] == network[pair["run_id other"]]


def test_a_condition_that_nobody_measured_has_no_numbers(results: Results) -> None:
    found = side_by_side(results, NONE, STRONG, 0)
    for side in found.sides:
        assert np.isnan([side.bias.mean, side.diversity.mean]).all()
        assert [side.distribution.n, side.distribution.n_missing] == [0, 20]
    assert found.pairs == []
    assert "SCRIPTED STAND-IN" in found.notes[0]


def test_runs_to_draw_are_those_of_one_block(results: Results) -> None:
    found = side_by_side(results, NONE, STRONG, 7)
    runs = results.runs.set_index("run_id").loc[list(found.same_block)]
    assert runs["confirmation_bias"].tolist() == ["none", "strong"]
    assert runs["block"].nunique() == 1


def test_what_cannot_be_compared_is_an_error(results: Results) -> None:
    for step in (-1, 13):
        with pytest.raises(SpecError, match=f"step must be from 0 to 12, .*; got {step}"):
            side_by_side(results, NONE, STRONG, step)
    with pytest.raises(SpecError, match=r"no run has cognition.confirmation_bias = 'weak'; valid: none, strong"):
        side_by_side(results, NONE, {"cognition.confirmation_bias": "weak"})


def test_texts_of_a_run_that_was_begun_anew_are_still_those_that_were_read(tmp_path: Path) -> None:
    store = str(tmp_path / "s.sqlite")
    before = finished(SPEC, store)
    runs = side_by_side(before, NONE, STRONG).sides[0].runs["run_id"].tolist()
    with open_store(store) as opened:
        opened.forget(runs)
    with pytest.raises(SpecError, match="no complete run has confirmation bias: none, network: ring"):
        side_by_side(load(store), NONE, STRONG)
    assert all(pair["text one"] and pair["text other"] for pair in side_by_side(before, NONE, STRONG).pairs)
