from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.assembly import LoadedParts, assemble
from opinionsim.engine import critical_path
from opinionsim.errors import SpecError, StoreError
from opinionsim.llm import ScriptedChatModel
from opinionsim.planning import counts_by_run, preview
from opinionsim.specification import load_experiment
from tests.support.examples import few
from tests.support.judge import Bench, judge_model
from tests.support.running import SMALL, carry_out, changed, ended

REPLY_TOKENS = 50
PRICES = """\
date: 2025-01-02
currency: EUR
per: 1000
source: {}
models:
  "maker:dear": {input: 2.0, output: 8.0}
  "maker:cheap": {input: 0.5, output: 1.0}
"""

INTERACTIONS: dict[str, dict[str, Any]] = {
    "dyadic": {"kind": "dyadic", "steps": 5},
    "broadcast": {"kind": "broadcast", "steps": 3},
    "similarity": {"kind": "similarity", "steps": 5},
    "bounded-confidence": {"kind": "bounded-confidence", "steps": 5, "confidence": 4.0},
    "rewiring": {"kind": "rewiring", "steps": 5, "tolerance": 4.0, "network": "ring"},
    "feed": {"kind": "feed", "steps": 5, "posts": 2},
    "independent": {"kind": "independent", "reports": 2},
    "remembered": {"kind": "remembered", "exposures": 1.5},
    "no-role-play": {"kind": "no-role-play", "reports": 2},
    "external": {"kind": "external", "steps": 4, "messages": ["One.", "Two."]},
}


ADAPTIVE = ("similarity", "bounded-confidence", "rewiring", "feed")


class FixedModel(ScriptedChatModel):
    """Answers everything by 50 tokens that name a point of the scale, and counts the characters of its prompts."""

    _asked: list[int] = PrivateAttr(default_factory=list)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self._asked.append(sum(len(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"{'x' * (4 * REPLY_TOKENS - 3)}: 1"))])


def forecast_of(spec: dict[str, Any], **options: Any) -> osim.planning.Forecast:
    """With replies as the fixed model gives them; models by other names than the scripted one need no key."""
    experiment = load_experiment(spec)
    named = {model.name for cell in experiment.cells for model in cell.spec.model.chat_models}
    if named & {"maker:dear", "maker:cheap", "maker:unheard-of"}:
        options["loaded"] = LoadedParts(experiment, judge_model(Bench()))
    return osim.plan(experiment, **{"reply_tokens": REPLY_TOKENS, **options})


def count_calls(spec: dict[str, Any]) -> int:
    """The calls that a runner registers."""
    return sum(each.calls for each in counts_by_run(load_experiment(spec)).values())


@pytest.mark.parametrize(
    ("memory", "probe", "self_report"),
    [
        ("cumulative", {}, {}),
        ("cumulative", {"before": 1, "after": 2}, {}),
        ("reflective", {"before": 1, "after": 2}, {"before": 2, "after": 1}),
        ("reflective-as-run", {}, {"after": 1}),
    ],
    ids=["cumulative", "probed", "reflective", "as-run"],
)
@pytest.mark.parametrize("kind", few(INTERACTIONS, 4))
def test_the_forecast_is_what_a_run_makes(
    kind: str, memory: str, probe: dict[str, int], self_report: dict[str, int]
) -> None:
    spec = changed(
        SMALL,
        interaction=INTERACTIONS[kind],
        cognition={"memory": memory},
        measurement={"texts": ["report"], "probe": probe, "self_report": self_report},
    )
    forecast = forecast_of(spec)
    model = FixedModel()
    results = carry_out(spec, "planned.sqlite", model)[1]
    assert (forecast.cells, forecast.runs) == (1, 1)
    # Self-reports are opinions, and no texts that anybody codes.
    assert forecast.texts == (results.opinions["kind"] != "self-report").sum()
    assert forecast.calls == forecast.acted_out == len(model._asked) == count_calls(spec)
    if kind == "similarity":
        # Who meets whom depends on what is said.
        assert forecast.input_characters == pytest.approx(sum(model._asked), rel=0.05)
    else:
        # To the character, memories included.
        assert forecast.input_characters == sum(model._asked)
    assert (forecast.longest_path is None) == (kind in ADAPTIVE)


JUDGE = {"name": "chat", "options": {"model": "maker:judge", "max_tokens": 10}}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """What the judge by the name of ``maker:judge`` is asked; no key or network leads to it."""
    found = Bench(answer=lambda text: "-1")
    monkeypatch.setattr("opinionsim.classifiers._chat._loaded", lambda *arguments: judge_model(found))
    return found


def judged(kind: str = "dyadic", **measurement: Any) -> dict[str, Any]:
    """An experiment whose texts are coded by a chat model."""
    return changed(SMALL, interaction=INTERACTIONS[kind], measurement={"classifier": JUDGE, **measurement})


JUDGED = {
    "default": {},
    "posts": {"texts": ["post"]},
    "asked": {"probe": {"before": 1, "after": 1}, "self_report": {"before": 1, "after": 1}},
}


@pytest.mark.parametrize("measurement", JUDGED.values(), ids=JUDGED)
@pytest.mark.parametrize("kind", ["dyadic", "similarity", "external"])
def test_what_a_judge_is_asked_is_forecast_to_the_character(
    kind: str, measurement: dict[str, Any], bench: Bench
) -> None:
    if kind == "external" and measurement == JUDGED["posts"]:
        with pytest.raises(SpecError, match="unknown value 'post'"):  # nobody writes any
            forecast_of(judged(kind, **measurement))
        return
    spec = judged(kind, **measurement)
    forecast = forecast_of(spec)
    model = FixedModel()
    summary = ended(spec, "judged.sqlite", model)
    assert summary.complete == 1
    agents, judge = (sum(each.input_characters for each in forecast.models if each.judges == own) for own in (0, 1))
    assert agents == pytest.approx(sum(model._asked), rel=0.05 if kind == "similarity" else 0)
    asked = [len(prompt) for prompt in bench.prompts]
    if kind == "similarity" and measurement == {"texts": ["post"]}:
        # Reports are rated as far as the schedule waits for them: the last ones of agents are not.
        assert 5 < len(asked) <= sum(each.calls for each in forecast.models if each.judges) == 10
        return
    assert judge == sum(asked)
    assert forecast.acted_out == forecast.calls
    assert forecast.calls == summary.paid.calls == len(model._asked) + len(asked) == count_calls(spec)


@pytest.mark.usefixtures("bench")
def test_a_judge_has_a_row_and_a_price_of_its_own(prices: str) -> None:
    spec = changed(
        judged(),
        model={"name": "maker:dear"},
        execution={"prices": prices},
        measurement__classifier={"name": "chat", "options": {"model": "maker:dear", "max_tokens": 10}},
    )
    agents, judge = forecast_of(spec).models
    assert [(each.name, each.judges) for each in (agents, judge)] == [("maker:dear", False), ("maker:dear", True)]
    assert (agents.calls, judge.calls) == (10, 10)
    assert (agents.output_tokens, judge.output_tokens) == (10 * REPLY_TOKENS, 10 * 10)
    assert judge.cost == pytest.approx(judge.input_tokens * 0.002 + judge.output_tokens * 0.008)
    # In the table of the package neither has a price.
    assert "no price for maker:dear, maker:dear (judge)" in str(forecast_of(changed(spec, execution={})))


@pytest.mark.usefixtures("bench")
def test_a_judge_is_asked_side_by_side_unless_a_schedule_waits_for_it() -> None:
    plain, static = (osim.plan(load_experiment(spec)) for spec in (changed(judged(), measurement={}), judged()))
    assert static.longest_path == plain.longest_path + 1
    assert static.sequential_s == plain.sequential_s + static.texts == 20
    assert osim.plan(load_experiment(judged()), max_concurrency=64).least_s == static.longest_path
    # Five dyads, one after another, each with the rating of a report; posts are judged meanwhile.
    adaptive = osim.plan(load_experiment(judged("similarity")), max_concurrency=64)
    assert (adaptive.calls, adaptive.rounds, adaptive.least_s) == (20, 15, 15)


def test_judges_of_a_sweep_share_runs_and_are_each_counted(bench: Bench) -> None:
    spec = changed(
        judged(self_report={"after": 1}),
        sweep={"measurement.classifier": ["lexicon", JUDGE], "measurement.texts": [["report"], ["report", "post"]]},
    )
    forecast = forecast_of(spec)
    assert (forecast.cells, forecast.runs, forecast.texts) == (4, 1, 20)
    assert forecast.calls == count_calls(spec) == 14 + 10
    assert ended(spec, "shared.sqlite", FixedModel()).paid.calls == forecast.calls
    assert len(bench.prompts) == 10


def test_what_a_store_shows_of_a_judge_is_no_matter_of_the_agents(bench: Bench) -> None:
    spec = judged()
    ended(spec, "judged.sqlite", FixedModel())
    agents, judge = osim.plan(load_experiment(spec), store="judged.sqlite").models
    assert (agents.observed, judge.observed) == (10, 10)
    # A bench counts 100 tokens for a prompt and one for an answer.
    assert judge.output_tokens == 10
    assert judge.input_tokens == pytest.approx(1000, abs=1)
    assert agents.output_tokens == 10 * REPLY_TOKENS
    # Who codes these runs otherwise learns nothing from that judge.
    (alone,) = osim.plan(load_experiment(changed(spec, measurement={})), store="judged.sqlite").models
    assert (alone.observed, alone.output_tokens, alone.latency_s) == (10, 10 * REPLY_TOKENS, agents.latency_s)


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "needs a model"), ({"model": "maker:a", "reask": -1}, "reask"), ({"mdoel": "maker:a"}, "unknown option")],
    ids=str,
)
def test_a_judge_that_cannot_be_asked(options: dict[str, Any], message: str) -> None:
    spec = changed(SMALL, measurement={"classifier": {"name": "chat", "options": options}})
    with pytest.raises(SpecError, match=rf"measurement\.classifier: .*{message}"):
        forecast_of(spec)


@pytest.mark.parametrize("network", ["complete", {"kind": "erdos-renyi", "p": 0.3}], ids=str)
@pytest.mark.parametrize("kind", ["dyadic", "broadcast"])
@pytest.mark.usefixtures("bench")
def test_calls_are_counted_without_a_prompt(kind: str, network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = changed(
        judged(kind),
        replicates=4,
        interaction__network=network,
        sweep={"cognition.memory": ["cumulative", "reflective"]},
    )
    experiment = load_experiment(spec)
    pilot = osim.plan(experiment, only=experiment.pilot).calls
    whole = osim.plan(experiment).calls
    monkeypatch.setattr("opinionsim.planning._plan.DryRun", None)
    counted = {run_id: each.calls for run_id, each in counts_by_run(experiment).items()}
    assert (sum(counted.values()), sum(counted[run_id] for run_id in experiment.pilot)) == (whole, pilot)
    assert 0 < pilot < whole


def test_no_slots_and_no_latency_beat_the_longest_path() -> None:
    experiment = load_experiment(changed(SMALL, population={"size": 10}, interaction__steps=100))
    path = critical_path(assemble(experiment.runs[0], experiment.resources).schedule)
    forecast = osim.plan(experiment)
    assert (forecast.calls, forecast.longest_path, forecast.width) == (200, path.length, path.mean_width)
    assert forecast.rounds == path.length
    assert forecast.speedup == pytest.approx(200 / path.length)
    sequential = osim.plan(experiment, max_concurrency=1)
    assert (sequential.rounds, sequential.speedup, sequential.slots) == (200, 1.0, 1)


def test_a_sweep_adds_up_and_shared_runs_count_once() -> None:
    spec = changed(
        SMALL,
        replicates=3,
        sweep={"cognition.memory": ["cumulative", "reflective"], "measurement.texts": [["report"], ["post"]]},
    )
    forecast = osim.plan(load_experiment(spec))
    assert (forecast.cells, forecast.runs, forecast.calls) == (4, 6, 3 * 12 + 3 * (24 - 4))


def test_steps_that_may_go_by_are_forecast_as_if_none_did() -> None:
    """What a filter keeps apart is not known beforehand: a forecast is what a run can take at most."""
    interactions = (
        {"kind": "bounded-confidence", "steps": 20, "confidence": 1.0},
        {"kind": "rewiring", "steps": 20, "tolerance": 1.0, "network": "ring"},
    )
    for interaction in interactions:
        spec = changed(SMALL, population={"size": 6}, interaction=interaction)
        forecast = forecast_of(spec)
        model = FixedModel()
        ended(spec, f"{interaction['kind']}.sqlite", model)
        assert (forecast.calls, forecast.texts, forecast.longest_path) == (40, 40, None)
        assert 0 < len(model._asked) < 40
        assert sum(model._asked) < forecast.input_characters


def test_nothing_to_do_takes_no_time() -> None:
    forecast = osim.plan(load_experiment(changed(SMALL, interaction__steps=0)))
    assert (forecast.calls, forecast.rounds, forecast.speedup, forecast.longest_path) == (0, 0, 1.0, 0)


def test_a_draw_that_cannot_be_used_counts_no_call() -> None:
    network = {"kind": "erdos-renyi", "p": 0.2}
    spec = changed(SMALL, population={"size": 3}, replicates=6, interaction__network=network)
    forecast = osim.plan(load_experiment(spec))
    summary, results = carry_out(spec, "edgeless.sqlite")
    assert forecast.runs == 6
    assert forecast.calls == len(results.calls) == 12 * summary.complete
    assert summary.complete < 6


def test_an_adaptive_sweep_is_not_promised_more_than_its_runs_side_by_side() -> None:
    interaction = {"kind": "similarity", "steps": 30}
    spec = {"name": "adaptive", "replicates": 6, "topic": {"name": "flat-earth"}, "interaction": interaction}
    forecast = osim.plan(load_experiment(spec), max_concurrency=64)
    assert (forecast.calls, forecast.longest_path, forecast.rounds) == (360, None, 60)
    assert forecast.speedup == forecast.width == 6


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(2, 5),
    steps=st.integers(0, 12),
    budget=st.none() | st.integers(1, 400),
    bias=st.sampled_from(["none", "strong"]),
    seed=st.integers(0, 99),
)
def test_any_dyadic_run_is_forecast_to_the_character(
    size: int, steps: int, budget: int | None, bias: str, seed: int
) -> None:
    spec = changed(
        SMALL,
        seed=seed,
        population={"size": size},
        interaction__steps=steps,
        cognition={"token_budget": budget, "confirmation_bias": bias},
    )
    model = FixedModel()
    with tempfile.TemporaryDirectory() as folder:
        summary = ended(spec, f"{folder}/any.sqlite", model)
    assert summary.complete == 1
    assert forecast_of(spec).input_characters == sum(model._asked)


def test_independent_reports_cost_the_same_prompt_each_time() -> None:
    spec = changed(SMALL, population={"size": 1}, interaction={"kind": "independent", "reports": 7})
    (prompt,) = preview(load_experiment(spec)).prompts.values()
    length = sum(len(message.content) for message in prompt)
    forecast = forecast_of(spec)
    assert (forecast.input_characters, forecast.input_tokens) == (7 * length, round(7 * length / 4))
    assert forecast.output_tokens == 7 * REPLY_TOKENS


def test_a_budget_of_memory_and_a_summary_keep_prompts_from_growing() -> None:
    def characters(steps: int, **cognition: Any) -> int:
        return forecast_of(changed(SMALL, interaction__steps=steps, cognition=cognition)).input_characters

    for cognition, grows in (({}, True), ({"token_budget": 200}, False), ({"memory": "reflective"}, False)):
        few, some, many = (characters(steps, **cognition) for steps in (20, 40, 60))
        assert few < some < many
        # Equal steps add equal lengths unless memory grows.
        assert ((many - some) > 1.2 * (some - few)) == grows
    assert characters(20, token_budget=200) < characters(20, token_budget=400) < characters(20)


def test_one_run_of_each_condition_is_acted_out_and_stands_for_the_others() -> None:
    spec = changed(
        SMALL,
        replicates=5,
        interaction__steps=15,
        sweep={"cognition.memory": ["cumulative", "reflective"], "topic.framing": ["falsehood", "truth"]},
    )
    forecast = forecast_of(spec)
    # Framings differ in the claim alone.
    assert forecast.acted_out == 30 + 60 - 4
    model = FixedModel()
    summary = ended(spec, "conditions.sqlite", model)
    assert forecast.calls == summary.paid.calls
    assert forecast.output_tokens == forecast.calls * REPLY_TOKENS
    assert forecast.input_characters == pytest.approx(sum(model._asked), rel=0.02)


@pytest.mark.parametrize(
    ("kind", "size", "cognition"),
    [
        ("dyadic", 40, {}),
        ("dyadic", 6, {}),
        ("dyadic", 6, {"token_budget": 600}),
        ("dyadic", 6, {"memory": "reflective"}),
        ("dyadic", 6, {"memory": "reflective-as-run"}),
        ("similarity", 6, {"memory": "reflective"}),
        ("bounded-confidence", 6, {}),
        ("rewiring", 6, {}),
        ("feed", 6, {}),
        ("broadcast", 6, {}),
        ("remembered", 40, {"token_budget": 100}),
        ("external", 40, {}),
    ],
    ids=str,
)
def test_a_long_run_is_acted_out_in_part(
    kind: str, size: int, cognition: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    interaction = {**INTERACTIONS[kind], "steps": 60 if kind == "broadcast" else 240}
    interaction.pop("exposures", None)
    asked = {"probe": {"before": 1, "after": 1}, "self_report": {"before": 1, "after": 1}}
    spec = changed(SMALL, population={"size": size}, interaction=interaction, cognition=cognition, measurement=asked)
    whole = forecast_of(spec)
    monkeypatch.setattr("opinionsim.planning._plan._ACTED_OUT", 200)
    part = forecast_of(spec)
    assert 0 < part.acted_out <= 250 < part.calls
    assert (part.calls, part.output_tokens) == (whole.calls, whole.output_tokens)
    assert part.input_characters == pytest.approx(whole.input_characters, rel=0.05)


def test_replies_are_no_longer_than_the_model_allows() -> None:
    free = forecast_of(changed(SMALL, model={"max_tokens": None}), reply_tokens=500)
    cut = forecast_of(changed(SMALL, model={"max_tokens": 20}), reply_tokens=500)
    assert (free.output_tokens, cut.output_tokens) == (500 * 12, 20 * 12)
    assert cut.input_characters < free.input_characters


@pytest.fixture
def prices() -> str:
    """A price table in the current folder."""
    Path("prices.yaml").write_text(PRICES)
    return "prices.yaml"


def test_each_model_of_a_sweep_has_its_price(prices: str) -> None:
    spec = changed(
        SMALL,
        measurement={"classifier": "lexicon"},
        execution={"prices": prices},
        sweep={"model.name": ["maker:dear", "maker:cheap", "ollama:weights"]},
    )
    forecast = forecast_of(spec)
    dear, cheap, own = forecast.models
    assert [model.name for model in forecast.models] == ["maker:dear", "maker:cheap", "ollama:weights"]
    assert dear.input_tokens == cheap.input_tokens == own.input_tokens
    assert dear.cost == pytest.approx(dear.input_tokens * 0.002 + dear.output_tokens * 0.008)
    assert cheap.cost == pytest.approx(cheap.input_tokens * 0.0005 + cheap.output_tokens * 0.001)
    assert own.cost == 0
    assert forecast.cost == dear.cost + cheap.cost
    assert (forecast.currency, forecast.price_date) == ("EUR", "2025-01-02")


def test_each_model_of_a_mixed_population_is_counted(prices: str) -> None:
    models = [{"name": "maker:dear", "share": 1, "max_tokens": 10}, {"name": "maker:cheap", "share": 3}]
    spec = changed(
        SMALL,
        model=models,
        interaction={"kind": "independent", "reports": 5},
        measurement={"classifier": "lexicon"},
        execution={"prices": prices},
    )
    dear, cheap = forecast_of(spec).models
    assert (dear.calls, cheap.calls) == (5, 15)
    assert (dear.output_tokens, cheap.output_tokens) == (5 * 10, 15 * REPLY_TOKENS)


def test_a_price_that_is_not_known_is_not_guessed(prices: str) -> None:
    spec = changed(
        SMALL,
        measurement={"classifier": "lexicon"},
        execution={"prices": prices},
        sweep={"model.name": ["maker:dear", "maker:unheard-of"]},
    )
    forecast = forecast_of(spec)
    assert forecast.cost is None
    assert forecast.models[1].cost is None
    assert "price table" in forecast.models[1].price
    assert "and more" in str(forecast)
    assert "maker:unheard-of" in str(forecast)


@pytest.mark.parametrize(
    ("name", "address", "known"),
    [
        ("openai:some-local-weights", "http://localhost:8000/v1", True),
        ("openai:some-local-weights", "http://127.0.0.1:8000/v1", True),
        ("openai:some-local-weights", "http://192.168.1.7/v1", True),
        ("openai:some-local-weights", "https://api.example.com/v1", False),
        ("openai:some-local-weights", None, False),
        ("scripted", None, True),
    ],
)
def test_what_runs_at_home_is_free(name: str, address: str | None, known: bool) -> None:
    options = {} if address is None else {"base_url": address}
    spec = changed(SMALL, model={"name": name, "options": options}, measurement={"classifier": "lexicon"})
    (model,) = osim.plan(load_experiment(spec)).models
    assert model.cost == (0 if known else None)
    assert (model.price == "free") == known


def test_a_key_that_is_not_set_is_named_and_weights_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPINIONSIM_KEYS", "KEY_OF_MY_LAB=api.openai.com")
    judge = {"name": "chat", "options": {"model": "openai:gpt-4o", "options": {"api_key_env": "KEY_OF_MY_LAB"}}}
    spec = changed(
        SMALL,
        model={"name": "openai:gpt-4o-mini"},
        sweep={"measurement.classifier": [judge, {"name": "flan-t5", "options": {"model": "weights-nowhere"}}]},
    )
    experiment = load_experiment(spec)
    forecast = osim.plan(experiment)
    assert forecast.calls > 0
    for variable in ("OPENAI_API_KEY", "KEY_OF_MY_LAB"):
        assert sum(f"set the environment variable {variable}" in note for note in forecast.notes) == 1
    with pytest.raises(SpecError, match="OPENAI_API_KEY"):
        LoadedParts(experiment)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"name": "openai:gpt-4o", "options": {"base_url": "http://[bad"}}, "base_url"),
        ({"name": "openai:gpt-4o", "options": {"temprature": 1}}, "temprature"),
        ({"name": "openai:"}, "unknown model"),
        ({"name": "unheard-of"}, "unknown model"),
    ],
)
def test_what_a_run_would_refuse_is_refused(model: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        osim.plan(load_experiment(changed(SMALL, model=model, measurement={"classifier": "lexicon"})))


def test_some_runs_of_a_sweep() -> None:
    experiment = load_experiment(changed(SMALL, replicates=3, sweep={"interaction.steps": [4, 8]}))
    pilot = [run.run_id for run in experiment.runs if run.replicate == 0]
    forecast = osim.plan(experiment, only=pilot)
    assert (forecast.cells, forecast.runs, forecast.calls) == (2, 2, 8 + 16)
    rest = osim.plan(experiment, only={run.run_id for run in experiment.runs} - set(pilot))
    whole = osim.plan(experiment)
    assert (rest.calls, whole.calls) == (2 * (8 + 16), 3 * (8 + 16))
    assert forecast.input_characters + rest.input_characters == pytest.approx(whole.input_characters, rel=0.02)
    nothing = osim.plan(experiment, only=[])
    assert (nothing.cells, nothing.runs, nothing.calls, nothing.cost, nothing.least_s) == (0, 0, 0, 0, 0)
    assert str(nothing)


def test_what_a_store_shows_is_believed() -> None:
    spec = changed(SMALL, replicates=2, cognition={"memory": "reflective"}, interaction__steps=10)
    experiment = load_experiment(spec)
    results = carry_out(experiment, "seen.sqlite")[1]
    calls = results.calls
    forecast = osim.plan(experiment, store="seen.sqlite")
    (model,) = forecast.models
    assert model.observed == forecast.calls == len(calls)
    assert forecast.output_tokens == pytest.approx(calls["output_tokens"].sum(), abs=1)
    assert forecast.input_tokens == pytest.approx(calls["input_tokens"].sum(), rel=0.05)
    assert model.latency_s == pytest.approx(calls["latency_s"].mean())
    assert forecast.sequential_s == pytest.approx(calls["latency_s"].sum())
    stated = osim.plan(experiment, store="seen.sqlite", reply_tokens=10, latency=2)
    assert (stated.output_tokens, stated.models[0].latency_s) == (10 * forecast.calls, 2)


def test_a_store_without_calls_of_the_experiment_changes_nothing() -> None:
    ended(changed(SMALL, seed=1), "other.sqlite")
    experiment = load_experiment(SMALL)
    forecast = osim.plan(experiment, store="other.sqlite")
    assert forecast.missing == replace(forecast, missing=None) == osim.plan(experiment)


def test_texts_of_complete_runs_that_an_instrument_has_not_coded_are_missing(bench: Bench) -> None:
    ended(changed(judged(), replicates=2, measurement={}), "coded.sqlite")
    spec = changed(judged(), replicates=3)
    missing = osim.plan(load_experiment(spec), store="coded.sqlite").missing
    # Two runs have reports to be judged, side by side; of the third nothing is there.
    assert (missing.runs, missing.calls, missing.texts) == (3, 2 * 10 + 20, 30)
    agents, judge = missing.models
    assert (agents.calls, judge.calls) == (10, 30)
    ended(spec, "coded.sqlite")
    assert len(bench.prompts) == 30
    assert judge.input_characters == pytest.approx(sum(map(len, bench.prompts)), rel=0.05)
    done = osim.plan(load_experiment(spec), store="coded.sqlite").missing
    assert (done.runs, done.calls, done.texts) == (0, 0, 0)


def test_what_is_unusual_about_agents_and_networks_is_noted() -> None:
    ties = {"edges": [[0, 1], [1, 2], [3, 4]]}
    notes = forecast_of(changed(SMALL, population={"size": 6}, interaction__network=ties)).notes
    assert "The network has 5 agents and the population 6." in notes
    assert "1 of 6 agents have no neighbour in the network and meet nobody." in notes
    assert len(forecast_of(changed(SMALL, population={"size": 6}, interaction__network="ring")).notes) == 1


def test_a_model_that_cannot_be_loaded_is_refused_as_a_run_refuses_it() -> None:
    experiment = load_experiment(changed(SMALL, model={"name": "nosuch:model"}, measurement={"classifier": "lexicon"}))
    refusals = []
    for attempt in (osim.plan, osim.run):
        with pytest.raises(SpecError) as refused:
            attempt(experiment)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]
    assert "nosuch:model" in refusals[0]


def test_time_lies_between_its_bounds() -> None:
    experiment = load_experiment(changed(SMALL, replicates=4, interaction__steps=30))
    bounds = [osim.plan(experiment, max_concurrency=slots, latency=0.5) for slots in (1, 2, 8, 1000)]
    for forecast in bounds:
        assert forecast.sequential_s == 0.5 * forecast.calls == 120
        assert forecast.least_s == 0.5 * forecast.rounds
        assert forecast.least_s <= forecast.most_s <= forecast.sequential_s
    assert bounds[0].least_s == bounds[0].most_s == 120
    assert [forecast.least_s for forecast in bounds] == sorted((f.least_s for f in bounds), reverse=True)
    useful = bounds[0].useful_slots
    assert osim.plan(experiment, max_concurrency=useful).rounds == bounds[0].longest_path
    assert osim.plan(experiment, max_concurrency=useful - 1).rounds > bounds[0].longest_path
    assert bounds[0].run_width == bounds[0].width / 4


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"reply_tokens": 0}, "reply_tokens"),
        ({"reply_tokens": float("nan")}, "reply_tokens"),
        ({"latency": -1}, "latency"),
        ({"latency": float("inf")}, "latency"),
        ({"max_concurrency": 0}, "max_concurrency"),
        ({"only": "abc"}, "collection of run ids"),
        ({"only": ["abc"]}, "'abc' is not the id of a run of small"),
        ({"store": "nowhere.sqlite"}, "no store"),
    ],
    ids=str,
)
def test_what_cannot_be_forecast(options: dict[str, Any], fragment: str) -> None:
    with pytest.raises((SpecError, StoreError), match=fragment):
        osim.plan(load_experiment(SMALL), **options)
