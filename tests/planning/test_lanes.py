"""Lanes of a study: money with the expected cache, rounds of batches and hours, and which lane costs least."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.assembly import LoadedParts, assemble
from opinionsim.engine import critical_path
from opinionsim.llm import CacheRule, ScriptedChatModel, load_prices
from opinionsim.planning import Forecast
from opinionsim.specification import load_experiment
from tests.support.examples import brought
from tests.support.judge import Bench, judge_model
from tests.support.running import SMALL, carry_out, changed

PRICES = """\
date: 2026-01-02
currency: EUR
per: 1000
source: {{}}
lanes:
  maker: {{flex: {{{half}}}, batch: {{{half}{cached}}}}}
  other: {{batch: {{{half}}}}}
cache: {{maker: {{least: {least}, step: {step}, date: 2026-01-02, source: a page}}}}
models:
  maker:one: {{input: 2.0, cached_input: 0.2, output: 8.0}}
  maker:two: {{input: 1.0, output: 4.0}}
  other:one: {{input: 0.5, output: 1.0}}
"""
HALF = "factor: 0.5, date: 2026-01-02, source: a page"


def table(least: int = 0, step: int = 1, cached: str = "") -> None:
    """Write a price table to the current folder."""
    Path("prices.yaml").write_text(PRICES.format(half=HALF, least=least, step=step, cached=cached))


def priced(**values: Any) -> dict[str, Any]:
    """A small experiment whose model the table lists."""
    own = {"model": {"name": "maker:one"}, "measurement": {"classifier": "lexicon"}}
    return changed(SMALL, **{**own, "execution": {"prices": "prices.yaml"}, **values})


def forecast_of(spec: dict[str, Any], **options: Any) -> Forecast:
    """A forecast without keys, for replies of 50 tokens."""
    experiment = load_experiment(spec)
    loaded = LoadedParts(experiment, judge_model(Bench()))
    return osim.plan(experiment, **{"reply_tokens": 50, "loaded": loaded, **options})


class ListeningModel(ScriptedChatModel):
    """Answers everything by 50 tokens that name a point of the scale, and keeps its prompts."""

    _prompts: list[tuple[str, ...]] = PrivateAttr(default_factory=list)

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self._prompts.append(tuple(str(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"{'x' * 197}: 1"))])


def served_of(prompts: list[tuple[str, ...]], least: int, step: int) -> int:
    """Tokens, of four characters, that a cache serves of these prompts, found by comparing each with all before it."""
    total = 0
    for place, prompt in enumerate(prompts):
        longest = 0
        for earlier in prompts[:place]:
            alike = 0
            while alike < min(len(prompt), len(earlier)) and prompt[alike] == earlier[alike]:
                alike += 1
            longest = max(longest, sum(map(len, prompt[:alike])))
        tokens = longest / 4
        total += int(tokens / step) * step if tokens >= least else 0
    return total


def test_a_cache_serves_whole_steps_from_its_least_length_on() -> None:
    rule = CacheRule(least=1024, step=128, date="2026-01-02", source="a page")
    tokens = np.array([0, 127.5, 1023.9, 1024, 1151.9, 1152, 5000])
    assert rule.served(tokens).tolist() == [0, 0, 0, 1024, 1024, 1152, 4992]


@pytest.mark.parametrize(("least", "step"), [(0, 1), (300, 1), (300, 64), (420, 100), (10**6, 1)])
def test_the_expected_cache_is_what_prompts_of_a_run_share(least: int, step: int) -> None:
    table(least, step)
    model = ListeningModel()
    spec = changed(SMALL, interaction__steps=8)
    carry_out(spec, "listened.sqlite", model)
    (found,) = forecast_of(priced(interaction__steps=8)).models
    assert found.calls == len(model._prompts) == 16
    expected = served_of(model._prompts, least, step)
    assert found.shared_tokens == pytest.approx(expected, abs=1)
    assert (expected > 0) == (least < 10**6)


def test_rounding_holds_for_prompts_that_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    table(2048, 1024)
    spec = priced(interaction__steps=200)
    whole = forecast_of(spec)
    monkeypatch.setattr("opinionsim.planning._plan._ACTED_OUT", 100)
    part = forecast_of(spec)
    assert part.acted_out < part.calls / 2
    # Lengths that are derived err by the same share with and without rounding.
    derived = part.input_characters / whole.input_characters
    assert part.shared_tokens == pytest.approx(derived * whole.shared_tokens, rel=0.02)
    table()
    assert part.shared_tokens < 0.93 * forecast_of(spec).shared_tokens


def test_what_another_model_has_read_is_not_in_the_cache() -> None:
    table()
    alike = {"interaction": {"kind": "no-role-play", "reports": 1}, "population": {"size": 2}}
    (one,) = forecast_of(priced(**alike)).models
    # The second agent is asked what the first was.
    assert one.shared_tokens == pytest.approx(one.input_tokens / 2, abs=1)
    assert one.shared_tokens > 0
    models = [{"name": "maker:one", "share": 1}, {"name": "maker:two", "share": 1}]
    assert [each.shared_tokens for each in forecast_of(priced(**alike, model=models)).models] == [0, 0]


@pytest.mark.parametrize("calls", [1, 4])
def test_what_a_model_costs_by_lane(calls: int) -> None:
    table()
    (model,) = forecast_of(priced(), calls_per_reply=calls).models
    shared, full = model.shared_tokens, 0.002 * model.input_tokens + 0.008 * model.output_tokens
    assert shared > 0
    # Of the calls for a reply, the first is in the batch at half the price, and the others cost the list price.
    first, others = 1 / calls, (calls - 1) / calls
    bought = {
        "now": (full - 0.0018 * shared, shared, 0),
        "flex": ((full - 0.0018 * shared) / 2, shared, 0),
        "batch": (first * full / 2 + others * full, 0, others * full),
    }
    assert {lane: (each.cost, each.cached_tokens, each.reask_cost) for lane, each in model.lanes.items()} == {
        lane: pytest.approx(figures) for lane, figures in bought.items()
    }
    # A provider whose later batches find prompts in its cache takes the rebate off as well.
    table(cached=", cached: true")
    (model,) = forecast_of(priced(), calls_per_reply=calls).models
    served = round(first * shared)
    assert model.lanes["batch"].cached_tokens == served
    assert model.lanes["batch"].cost == pytest.approx(bought["batch"][0] - 0.0009 * served)


@brought("interaction", "chain")
def test_rounds_of_batches_are_the_calls_of_the_longest_chain() -> None:
    table()
    spec = priced(
        population={"size": 3}, interaction={"kind": "chain", "cycles": 2, "instructions": "default"}, replicates=2
    )
    forecast = forecast_of(spec)
    now, flex, batch = forecast.lanes
    assert [each.lane for each in forecast.lanes] == ["now", "flex", "batch"]
    assert (forecast.calls, batch.rounds) == (12, (6, 6))
    assert batch.times_s == (6 * 7 * 60, 6 * 27 * 60, 6 * 60 * 60)
    assert (now.rounds, now.times_s) == (None, (forecast.least_s, forecast.most_s))
    assert (flex.rounds, flex.times_s) == (None, ())
    assert "42.0 min / 2.7 h / 6.0 h" in str(forecast)
    # Who states a latency states that of the tier.
    slow = forecast_of(spec, latency=90)
    assert slow.lanes[1].times_s == slow.lanes[0].times_s == (slow.least_s, slow.most_s)
    assert slow.least_s == 6 * 90


def test_the_deepest_run_sets_the_rounds() -> None:
    table()
    spec = priced(population={"size": 10}, interaction__steps=60, replicates=4)
    experiment = load_experiment(spec)
    depths = [critical_path(assemble(run, experiment.resources).schedule).length for run in experiment.runs]
    assert len(set(depths)) > 1
    assert forecast_of(spec).lanes[-1].rounds == (max(depths), max(depths))


@brought("interaction", "chain")
def test_rounds_of_adaptive_runs_are_known_within_bounds() -> None:
    table()
    similar = {"kind": "similarity", "steps": 9}
    adaptive = forecast_of(priced(interaction=similar))
    assert adaptive.lanes[-1].rounds == (1, 18)
    assert "at least 1, at most 18" in str(adaptive)
    assert "at most 2.1 h / 8.1 h / 18.0 h" in str(adaptive)
    chain = {"kind": "chain", "cycles": 2, "instructions": "default"}
    both = forecast_of(priced(sweep={"interaction": [{**similar, "label": "a"}, {**chain, "label": "b"}]}))
    assert both.lanes[-1].rounds == (8, 18)


def test_with_long_memories_calls_at_once_cost_less_than_batches() -> None:
    table()
    Path("prices.yaml").write_text(Path("prices.yaml").read_text().replace("flex: {" + HALF + "}, ", ""))
    forecast = forecast_of(priced(population={"size": 2}, interaction__steps=60))
    (model,), (now, batch) = forecast.models, forecast.lanes
    full = 0.002 * model.input_tokens + 0.008 * model.output_tokens
    assert model.output_tokens == 120 * 50
    assert now.cost == pytest.approx(full - 0.0018 * model.shared_tokens)
    assert batch.cost == pytest.approx(full / 2)
    assert (now.cached_tokens, batch.cached_tokens) == (model.shared_tokens, 0)
    assert now.cost < 0.6 * batch.cost
    assert forecast.notes[0] == (
        f"Cheapest lane for this study: now, {now.cost:,.2f} EUR, {100 - 100 * now.cost / batch.cost:.0f}% less than "
        f"batch. Batch costs {100 * batch.cost / now.cost - 100:.0f}% more than now, because its rounds outlive the "
        "provider's cache."
    )
    share = 100 * model.shared_tokens / model.input_tokens
    assert f"{share:.0f}% of the input expected from the cache" in str(forecast)
    # A provider whose batches find prompts in the cache sells them at half the price with it.
    table(cached=", cached: true")
    now, flex, batch = forecast_of(priced(population={"size": 2}, interaction__steps=60)).lanes
    assert batch.cost == flex.cost == pytest.approx(now.cost / 2)


def test_without_memories_batches_cost_half() -> None:
    table(least=10**6)
    Path("prices.yaml").write_text(Path("prices.yaml").read_text().replace("flex: {" + HALF + "}, ", ""))
    forecast = forecast_of(priced(cognition={"memory": "none"}))
    now, batch = forecast.lanes
    assert batch.cost == pytest.approx(now.cost / 2)
    assert now.cost == pytest.approx(forecast.cost)
    assert forecast.notes[0] == f"Cheapest lane for this study: batch, {batch.cost:,.2f} EUR, 50% less than now."
    assert "rounds outlive" not in str(forecast)


def test_what_is_asked_again_is_bought_at_the_list_price() -> None:
    table(least=10**6)
    once, again = (forecast_of(priced(), calls_per_reply=calls) for calls in (1, 2.5))
    full = once.lanes[0].cost
    assert again.lanes[0].cost == pytest.approx(2.5 * full, rel=1e-4)
    assert again.lanes[2].reask_cost == pytest.approx(1.5 * full, rel=1e-4)
    assert again.lanes[2].cost == pytest.approx(0.5 * full + 1.5 * full, rel=1e-4)
    assert f"{again.lanes[2].reask_cost:,.2f} EUR of it to ask again, at once, at the list price" in str(again)
    assert "to ask again" not in str(once)


def test_several_models_are_summed_and_a_lane_that_one_lacks_is_not_available() -> None:
    table()
    models = [
        {"name": "maker:one", "share": 1},
        {"name": "other:one", "share": 1},
        {"name": "ollama:one", "share": 1},
    ]
    forecast = forecast_of(priced(population={"size": 6}, model=models))
    one, other, own = forecast.models
    now, flex, batch = forecast.lanes
    assert now.cost == pytest.approx(one.lanes["now"].cost + other.lanes["now"].cost)
    assert batch.cost == pytest.approx((one.cost + other.cost) / 2)
    assert (flex.cost, flex.lacking) == (None, ("other:one",))
    assert {lane: each.cost for lane, each in own.lanes.items()} == {"now": 0, "flex": 0, "batch": 0}
    (row,) = [line for line in str(forecast).splitlines() if line.startswith("flex")]
    assert row.split(None, 1)[1].startswith("not available ")
    assert row.endswith("not available for other:one")
    # Without a price, nothing is compared.
    unknown = forecast_of(priced(model=[*models, {"name": "maker:unheard-of", "share": 1}]))
    assert unknown.lanes == ()
    assert "Cheapest" not in str(unknown)


def test_the_lane_of_the_specification_sets_the_money_and_not_the_comparison() -> None:
    table()
    now, flex = (forecast_of(priced(execution={"prices": "prices.yaml", "lane": lane})) for lane in ("now", "flex"))
    assert flex.lanes == now.lanes
    assert flex.cost == pytest.approx(now.cost / 2)
    assert flex.rebate == pytest.approx(now.rebate / 2)
    assert now.rebate == pytest.approx(0.0018 * now.shared_tokens)


def test_the_packaged_table_says_what_caches_serve() -> None:
    prices = load_prices()
    rules = {name: (rule.least, rule.step) for name, each in prices.prices.items() if (rule := each.cache)}
    assert rules.keys() == prices.prices.keys()
    assert (rules["openai:gpt-5.4"], rules["openai:gpt-5.5"]) == ((2048, 128), (2048, 2048))
    assert (rules["anthropic:claude-sonnet-5"], rules["anthropic:claude-opus-4-5"]) == ((1024, 1), (4096, 1))
    assert prices.price("anthropic:claude-haiku-4-5-20251001").cache.least == 4096
