"""Opinions and metrics of a run as they are watched, beside those of the frames."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage

import opinionsim as osim
from opinionsim import metrics, watching
from opinionsim.llm import GivenReplies
from opinionsim.messages import ChatMessage
from opinionsim.networks import Network
from opinionsim.store import find_design, open_store
from tests.support.running import SMALL, changed

SPEC = changed(SMALL, interaction__steps=8, measurement={"classifier": "lexicon", "texts": ["report", "post"]})
GIVEN = changed(SPEC, model={"name": "given"})
CUT = AIMessage("I strongly reject Theory XYZ, and", response_metadata={"finish_reason": "length"})
REFUSED = AIMessage("", additional_kwargs={"refusal": "No."})
TEXTS = ["I strongly believe that Theory XYZ is true.", CUT, "Hm.", REFUSED, "I strongly reject Theory XYZ."]


def _mixed(prompt: list[ChatMessage]) -> str | AIMessage:
    """Replies of every kind: answers, one cut off, one without an opinion, a refusal."""
    return TEXTS[len(prompt[-1].content) % len(TEXTS)]


MEASURED = {
    "a sweep": (changed(SPEC, replicates=2, sweep={"cognition.confirmation_bias": ["none", "strong"]}), False),
    "texts that are cut off": (GIVEN, True),
    "texts that are cut off and count": (changed(GIVEN, model__replies={"truncated": {"then": "measure"}}), True),
    "nobody listens": (changed(SPEC, interaction={"kind": "independent"}, measurement__texts=["report"]), False),
    "ties that move": (
        changed(SPEC, interaction={"kind": "rewiring", "steps": 12, "network": "ring", "tolerance": 0.5}), False,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=MEASURED)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    spec, given = MEASURED[request.param]
    store = str(tmp_path_factory.mktemp("values") / "s.sqlite")
    osim.run(osim.load_experiment(spec), store, **({"chat_model": GivenReplies(_mixed)} if given else {}))
    return osim.load(store)


def _of_record(record: dict[str, Any], kind: str) -> list[list[float | None]]:
    """Opinions by step as a page works them out of a record: one list an agent."""
    about, words, turns, opinions = (record[name] for name in ("about", "words", "turns", "opinions"))
    said = {
        turn: (step, agent, words[act_kind], {words[status], *words[signs].split()})
        for turn, step, agent, act_kind, status, signs in zip(
            *(turns[name] for name in ("turn", "step", "agent", "kind", "status", "signs")), strict=True
        )
    }
    stance = record["instruments"][0]["id"]
    last: dict[tuple[int, int], tuple[int, float]] = {}
    for turn, instrument, value, second in zip(
        *(opinions[name] for name in ("turn", "instrument", "value", "about")), strict=True
    ):
        step, agent, own, shown = said[turn]
        counts = shown.isdisjoint(about["uncounted"])
        if words[instrument] == stance and second is None and own == kind and value is not None and counts:
            last[agent, step] = max(last.get((agent, step), (-1, 0.0)), (turn, value))
    found = []
    for agent in range(about["n_agents"]):
        held: list[float | None] = [None]
        for step in range(max([about["steps"], *(each[0] for each in said.values())]) + 1):
            held.append(last[agent, step][1] if (agent, step) in last else held[-1])
        found.append(held[1:])
    return found


def test_opinions_by_step_are_those_of_the_frames(results: osim.Results) -> None:
    stance = metrics.stance_rows(results.runs, results.opinions)
    assert len(stance) > 0
    with open_store(results.url, write=False) as reader:
        for kind in sorted(set(stance["kind"])):
            expected = metrics.trajectories(results.runs, results.agents, results.opinions, kind)
            for run, part in expected.groupby("run_id"):
                n_agents = int(part["agent"].max()) + 1
                want = part["value"].to_numpy().reshape(n_agents, -1)
                record = watching.run_record(reader, str(run))
                instrument = part["instrument_id"].iloc[0]
                design, _ = find_design(reader, results.name, None)
                cell = next(each for each in design.runs if each.run_id == run)
                columns, steps = reader.columns(str(run)), record["about"]["steps"]
                found = watching.values_by_step(columns, n_agents, steps, cell, instrument, kind)
                np.testing.assert_array_equal(found, want)
                told = json.loads(json.dumps(_of_record(record, kind), allow_nan=False))
                np.testing.assert_array_equal(np.array(told, dtype=float)[:, : want.shape[1]], want)


def test_metrics_by_step_are_those_of_the_frames(results: osim.Results) -> None:
    runs = results.runs
    by_step = metrics.step_metrics(runs, results.opinions, "report")
    with open_store(results.url, write=False) as reader:
        for name in ("bias", "diversity"):
            for run in runs["run_id"]:
                own = by_step[by_step["run_id"] == run]
                want = own[name].to_numpy()
                told = watching.run_metric(reader, run, name=name, kind="report")
                np.testing.assert_allclose(np.array(told["values"], dtype=float), want)
                assert name in told["names"]


def test_metrics_of_networks_follow_ties_that_move(tmp_path: Any) -> None:
    spec, _ = MEASURED["ties that move"]
    results = osim.run(osim.load_experiment(changed(spec, interaction__steps=40)), str(tmp_path / "s.sqlite"))
    (run,) = results.runs["run_id"]
    edges, n_agents = results.edges, int(results.runs["n_agents"].iloc[0])
    assert edges["until"].notna().any(), "no tie moved"
    held = metrics.trajectories(results.runs, results.agents, results.opinions)
    values = held["value"].to_numpy().reshape(n_agents, -1)
    with open_store(results.url, write=False) as reader:
        found = watching.run_metric(reader, run, name="disagreement")["values"]
    for step in range(values.shape[1]):
        now = edges[(edges["since"] <= step) & ~(edges["until"] <= step).fillna(False)]
        network = Network.from_edges(now[["source", "target"]].to_numpy(), n_agents, now["weight"].to_numpy())
        want = float(metrics.compute_metrics(values[:, step], "disagreement", network=network)["disagreement"])
        assert math.isnan(want) if found[step] is None else found[step] == pytest.approx(want)
