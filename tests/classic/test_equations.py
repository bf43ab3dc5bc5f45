"""Classic models in experiments: the same schedules, networks, starts, stores and frames as language models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.classic import Equation, simulate
from opinionsim.errors import SpecError
from opinionsim.metrics import trajectories
from opinionsim.planning import plan, preview
from opinionsim.running import replay
from opinionsim.specification import Experiment, PlannedRun, load_experiment
from tests.support.running import changed

MATCHED: dict[str, Any] = {
    "name": "matched",
    "seed": 9,
    "replicates": 2,
    "population": {"size": 6, "initial_opinions": "uniform", "assignment": "random"},
    "topic": {"name": "t-rex"},
    "interaction": {"kind": "dyadic", "network": "ring", "steps": 12},
    "sweep": {"model": [{"name": "scripted"}, {"classic": "deffuant", "parameters": {"epsilon": 1.5, "mu": 0.25}}]},
}
NATIVE: dict[str, Any] = {
    "name": "native",
    "replicates": 2,
    "population": {"size": 12, "initial_opinions": "continuous"},
    "interaction": {"kind": "native", "network": {"kind": "watts-strogatz", "k": 4, "p": 0.2}, "steps": 5},
    "model": {"classic": "deffuant", "parameters": {"epsilon": 0.7}},
}


def run(spec: dict[str, Any]) -> osim.Results:
    return osim.run(load_experiment(spec), f"{spec['name']}.sqlite")


def values(results: osim.Results, run_id: str) -> np.ndarray:
    """Opinions (T + 1, N) of a run, as the frames have them."""
    table = trajectories(results.runs, results.agents, results.opinions)
    table = table[table["run_id"] == run_id]
    table = table.assign(value=table["value"].fillna(table["assigned_opinion"]))
    return table.pivot_table(index="step", columns="agent", values="value").to_numpy()


def test_equations_follow_the_schedule_the_network_and_the_starts_of_language_models() -> None:
    results = run(MATCHED)
    scripted, equation = (results.runs[results.runs["sweep.model"] == name] for name in ("scripted", "deffuant"))
    assert scripted["evidence"].unique().tolist() == ["scripted"]
    assert equation["evidence"].unique().tolist() == ["equation"]
    assert equation["classifier"].unique().tolist() == ["exact"]
    assert equation[["memory", "world", "confirmation_bias"]].isna().all(axis=None)
    for (_, one), (_, other) in zip(scripted.iterrows(), equation.iterrows(), strict=True):
        assert one["block"] == other["block"]
        for frame, columns in (
            (results.turns, ["turn", "step", "agent", "act", "kind"]),
            (results.agents, ["assigned_opinion"]),
            (results.edges, ["source", "target"]),
        ):
            shared = [frame.loc[frame["run_id"] == each["run_id"], columns] for each in (one, other)]
            pd.testing.assert_frame_equal(*(each.reset_index(drop=True) for each in shared))


def test_an_agent_of_a_schedule_does_what_the_kernel_does_on_its_pairs() -> None:
    results = run(MATCHED)
    for _, row in results.runs[results.runs["evidence"] == "equation"].iterrows():
        turns = results.turns[results.turns["run_id"] == row["run_id"]]
        pairs = turns["agent"].to_numpy().reshape(-1, 2)  # a writer and a reader a step
        start = results.agents.loc[results.agents["run_id"] == row["run_id"], "assigned_opinion"].to_numpy()
        found = simulate("deffuant", 6, start, pairs=pairs, range=(-2, 2), epsilon=1.5, mu=0.25)
        np.testing.assert_array_equal(values(results, row["run_id"]), found.opinions[0])


@pytest.mark.parametrize(
    "model",
    [
        {"classic": "lorenz", "parameters": {"theta": 0.5, "rho": 0.5, "polarity": True}},
        {"classic": "coda"},
        {"classic": "voter"},
        {"classic": "jager-amblard"},
    ],
    ids=lambda model: model["classic"],
)
@pytest.mark.parametrize(
    "interaction",
    [
        {"kind": "dyadic", "steps": 8},
        {"kind": "broadcast", "steps": 3, "network": "ring"},
        {"kind": "similarity", "steps": 8},
        {"kind": "bounded-confidence", "steps": 8, "confidence": 1.0},
        {"kind": "rewiring", "steps": 8, "tolerance": 1.0, "network": "ring"},
        {"kind": "feed", "steps": 4, "posts": 2},
    ],
    ids=lambda interaction: interaction["kind"],
)
def test_models_whose_agents_meet_in_pairs_run_on_every_schedule(
    model: dict[str, Any], interaction: dict[str, Any]
) -> None:
    spec = changed(MATCHED, name="every", interaction=interaction, model=model, replicates=1)
    del spec["sweep"]
    results = run(spec)
    assert results.runs["status"].tolist() == ["complete"]
    opinions = results.opinions["value"]
    assert opinions.between(-2, 2).all()
    assert [each.difference for each in replay(results)] == [""]
    assert len(results.calls) == 0


def test_what_an_agent_draws_does_not_depend_on_how_runs_are_carried_out() -> None:
    model = {"classic": "lorenz", "parameters": {"theta": 0.4}}
    spec = changed(MATCHED, name="slots", interaction={"kind": "feed", "steps": 6, "posts": 2}, model=model)
    del spec["sweep"]
    one = osim.run(load_experiment(spec), "one.sqlite", max_concurrency=1)
    many = osim.run(load_experiment(spec), "many.sqlite", max_concurrency=64)
    pd.testing.assert_frame_equal(one.turns, many.turns)


def test_a_model_in_its_own_way_is_the_simulation_it_stands_for() -> None:
    experiment = load_experiment(NATIVE)
    results = run(NATIVE)
    for planned in experiment.runs:
        parts = assemble(planned, experiment.resources)
        start = np.array(parts.opinions)
        assert len(set(start)) == 12
        found = simulate(
            "deffuant", parts.network, start, steps=5, seed=0, range=(-2, 2), epsilon=0.7, isolates="keep"
        )  # fmt: skip
        if planned.replicate == 0:
            np.testing.assert_array_equal(values(results, planned.run_id), found.opinions[0])
    first, second = (values(results, planned.run_id) for planned in experiment.runs)
    assert (first != second).all(axis=1).any()


def test_groups_take_a_sweep_for_as_many_updates_as_there_are_agents() -> None:
    spec = changed(MATCHED, name="groups", model={"classic": "degroot"}, interaction__network="complete", replicates=1)
    spec["interaction"]["steps"] = 20
    del spec["sweep"]
    results = run(spec)
    reports = results.opinions[results.opinions["kind"] == "report"]
    assert sorted(reports["step"].unique()) == [6, 12, 18]
    start = results.agents["assigned_opinion"].to_numpy()
    first = reports[reports["step"] == 6].sort_values("agent")["value"].to_numpy()
    weight = simulate("degroot", 6, start, steps=0, range=(-2, 2)).parameters["self_weight"]
    np.testing.assert_allclose(first, (weight * start + start.sum() - start) / (weight + 5), atol=1e-12)


def test_a_probe_asks_an_equation_for_its_opinion() -> None:
    spec = changed(NATIVE, measurement={"texts": ["report"], "probe": {"before": 1, "after": 1}}, replicates=1)
    results = run(spec)
    probes = results.opinions[results.opinions["kind"] == "probe"].sort_values(["step", "agent"])["value"].to_numpy()
    found = values(results, results.runs["run_id"].iloc[0])
    np.testing.assert_array_equal(probes[:12], found[0])
    np.testing.assert_array_equal(probes[12:], found[-1])


def test_runs_on_record_are_not_repeated_and_cost_nothing() -> None:
    first = run(MATCHED)
    calls = len(first.calls)
    again = run(MATCHED)
    assert len(again.calls) == calls
    pd.testing.assert_frame_equal(first.opinions, again.opinions)
    forecast = plan(load_experiment(NATIVE))
    assert forecast.calls == 0
    assert preview(load_experiment(NATIVE)).prompts == {}


def test_who_has_no_partner_stops_a_run_or_keeps_its_opinion() -> None:
    # Agents 10 and 11 are joined to nobody.
    ties = {"edges": [[agent, agent + 1] for agent in range(9)]}
    spec = changed(NATIVE, interaction__network=ties, replicates=1)
    stopped = run(spec)
    assert stopped.runs["status"].tolist() == ["incomplete"]
    assert "agent 10 hears nobody" in stopped.runs["error"].iloc[0]
    kept = run(changed(spec, name="kept", interaction__isolates="keep"))
    assert kept.runs["status"].tolist() == ["complete"]
    opinions = values(kept, kept.runs["run_id"].iloc[0])
    assert (opinions[:, 10:] == opinions[0, 10:]).all()


def _followed(planned: PlannedRun, experiment: Experiment) -> Equation:
    found = assemble(planned, experiment.resources).endpoint
    assert isinstance(found, Equation)
    return found


def test_blocks_of_their_own_have_chances_of_their_own() -> None:
    model = {"classic": "lorenz", "parameters": {"theta": 0.9}}
    spec = changed(MATCHED, name="blocks", model=model, replicates=1) | {
        "sweep": {"topic.name": ["t-rex", "global-warming"]},
        "independent_over": ["topic.name"],
    }
    experiment = load_experiment(spec)
    assert len({_followed(planned, experiment).seed for planned in experiment.runs}) == 2


def test_parameters_are_swept_and_told_apart() -> None:
    spec = changed(NATIVE, replicates=1) | {"sweep": {"model.parameters.epsilon": [0.2, 4.0]}}
    results = run(spec)
    spread = {
        row["model.parameters.epsilon"]: np.ptp(values(results, row["run_id"])[-1])
        for _, row in results.runs.iterrows()
    }
    assert spread[4.0] < spread[0.2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"classic": "defuant"}}, "model.classic: unknown classic model 'defuant' .did you mean deffuant"),
        ({"model__parameters": {"epsilo": 1}}, "model.parameters: deffuant has no parameter 'epsilo'"),
        ({"model__parameters": {"epsilon": -1}}, "model.parameters: epsilon must be a number >= 0"),
        ({"model__parameters": {"epsilon": [1, 2]}}, "model.parameters: epsilon must be one number or 12"),
        ({"interaction": {"kind": "independent"}}, "interaction.kind: 'independent' needs a chat model"),
        ({"interaction": {"kind": "dyadic", "steps": 3}, "model__parameters": {"order": "random"}},
         "model.parameters.order: interaction kind 'dyadic' already determines who meets whom"),
        ({"interaction": {"kind": "similarity", "steps": 3}, "model": {"classic": "degroot"}},
         "interaction.kind: 'similarity' needs agents that meet in pairs"),
        ({"population__initial_opinions": "none"},
         "initial_opinions: 'none' is only for chat models; 'deffuant' needs initial opinions"),
        ({"events": [{"kind": "message", "step": 3, "text": "News."}]},
         "events: need agents that a chat model plays; got the classic model 'deffuant'"),
        ({"roles": {"moderator": {}}}, "roles: is only for chat models; got the classic model 'deffuant'"),
        ({"model": {"classic": "q-voter"}, "population__initial_opinions": "uniform"},
         "has two opinions, but the scale has 5 points"),
        ({"model": {"classic": "q-voter"}, "scale": {"points": [-1, 1]}}, "'continuous' draws any value between"),
        ({"model": {"name": "scripted"}, "topic": {"name": "t-rex"}}, "interaction.kind: 'native' needs a classic"),
        ({"model": {"name": "scripted"}, "interaction": {"kind": "dyadic", "steps": 3}}, "topic: is required"),
        ({"model": {"name": "scripted"}, "interaction": {"kind": "dyadic", "steps": 3}, "topic": {"name": "t-rex"}},
         "'continuous' is only for classic models"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_out_is_said_before_anything_is(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_experiment(changed(NATIVE, **change))


def test_conditions_that_an_equation_cannot_heed_are_told_before_anything_is_run() -> None:
    bias = {"cognition.confirmation_bias": ["none", "strong"]}
    both = changed(MATCHED, sweep={**MATCHED["sweep"], **bias})
    (told,) = [each for each in plan(load_experiment(both)).notes if "reads no prompts" in each]
    assert told.startswith("cognition.confirmation_bias: ")
    assert "2 conditions of deffuant" in told
    apart = changed(MATCHED, sweep=[bias, {"model": MATCHED["sweep"]["model"][1:]}])
    assert not any("reads no prompts" in each for each in plan(load_experiment(apart)).notes)


def test_agents_start_from_the_opinions_of_respondents() -> None:
    population = {
        "personas": "survey", "size": 20, "query": "climate in ['agree', 'disagree']", "initial_opinions": "personas"
    }  # fmt: skip
    survey = {"file": "synthetic", "mapping": "synthetic"}
    spec = {key: value for key, value in MATCHED.items() if key != "sweep"}
    agents = run(spec | {"population": population, "model": {"classic": "deffuant"}, "survey": survey}).agents
    assert set(agents["assigned_opinion"]) == {-1.0, 1.0}


def test_where_agents_play_nobody_names_are_numbered_in_order() -> None:
    family = {"name": "family", "personas": [{"name": name} for name in ("Ann", "Bob", "Cy", "Di")]}
    ties = {"edges": [("Di", "Cy"), ("Di", "Ann"), ("Bob", "Di")]}
    population = {"personas": family, "initial_opinions": "continuous"}
    experiment = load_experiment(changed(NATIVE, population=population, interaction__network=ties))
    network = assemble(experiment.runs[0], experiment.resources).network
    assert network is not None
    assert {tuple(pair) for pair in network.edges[0].tolist()} == {(0, 1), (0, 2), (0, 3)}
