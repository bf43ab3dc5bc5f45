"""The flexible tier of a provider: what is sent, who waits, what is reserved and charged, and who is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage

import opinionsim as osim
from opinionsim.errors import BudgetExceeded, ModelCallError, SpecError
from opinionsim.foundation.documents import validate
from opinionsim.llm import (
    Budget,
    Endpoint,
    Lanes,
    Limits,
    MemoryJournal,
    Price,
    Rebate,
    RetryPolicy,
    RunCalls,
    SlotPool,
)
from opinionsim.messages import Prompt
from opinionsim.testing import run_virtual
from tests.support.desk import PROMPT, TURN
from tests.support.provider import StubProvider
from tests.support.provider_faults import StubRequest

HALF = validate(Rebate, {"factor": 0.5, "date": "2026-01-31", "source": "a page"})
PRICE = Price(1.0, 1.0, 0.1, "2026-01-31", {"flex": HALF})


class Full(Exception):
    """The tier has no room, and says when to come again."""

    status_code = 429
    body: ClassVar = {"code": "resource_unavailable"}
    headers: ClassVar = {"retry-after": "60"}


class Fast(Exception):
    """The account makes too many calls."""

    status_code = 429


class Tier:
    """A model behind a tier that answers by `served` for each try: ``flex``, ``default``, or an error."""

    def __init__(self, *served: str | Exception) -> None:
        self.served, self.asked = list(served), list[dict[str, Any]]()

    async def call(self, messages: Any, seed: int, max_tokens: int | None = None, **options: Any) -> AIMessage:
        self.asked.append(options)
        await asyncio.sleep(1)
        found = self.served[len(self.asked) - 1]
        if isinstance(found, Exception):
            raise found
        usage: Any = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        return AIMessage("Yes.", usage_metadata=usage, response_metadata={"service_tier": found})


def calls_of(tier: Tier, fallback: Any = "wait", budget: Budget | None = None, **policy: int) -> RunCalls:
    endpoint = Endpoint(tier, "a", True, PRICE, 20, lane="flex", terms=Lanes(fallback=fallback))
    retry = RetryPolicy(**policy)
    return RunCalls("run-1", MemoryJournal(), [endpoint] * 3, SlotPool(1), retry=retry, budget=budget)


@pytest.mark.parametrize(("served", "lane", "cost"), [("flex", "flex", 7.5), ("default", "now", 15.0)])
def test_a_call_is_charged_by_the_tier_that_the_reply_states(served: str, lane: str, cost: float) -> None:
    calls = calls_of(tier := Tier(served))
    run_virtual(calls.ask(TURN, "reply", PROMPT))
    (entry,) = calls.journal.records  # type: ignore[attr-defined]
    assert (entry.lane, entry.cost, calls.cost) == (lane, cost, cost)
    assert tier.asked == [{"service_tier": "flex", "timeout": 900.0}]


def test_a_call_waits_for_room_longer_than_any_policy_of_retries() -> None:
    calls = calls_of(tier := Tier(*[Full()] * 30, "flex"), rate_limited=0, longest_wait_s=10)
    run_virtual(calls.ask(TURN, "reply", PROMPT))
    assert (len(tier.asked), calls.cost) == (31, 7.5)
    # Other failures of the tier are counted as ever.
    with pytest.raises(ModelCallError, match="after 2 tries"):
        run_virtual(calls_of(Tier(*[TimeoutError("late")] * 3), transient=1).ask(TURN, "reply", PROMPT))


def test_a_fallback_is_made_at_once_by_the_ordinary_lane_at_full_price() -> None:
    calls = calls_of(tier := Tier(Full(), "default"), "now")
    run_virtual(calls.ask(TURN, "reply", PROMPT))
    (entry,) = calls.journal.records  # type: ignore[attr-defined]
    assert [bool(each) for each in tier.asked] == [True, False]
    assert (entry.lane, entry.cost) == ("now", 15.0)


@pytest.mark.parametrize("fallback", ["wait", "now"])
def test_the_budget_reserves_the_list_price_which_a_reply_may_state(fallback: Any) -> None:
    worst = Endpoint(Tier(), price=PRICE, max_tokens=20).worst(Prompt.of(PROMPT)).money
    enough = Budget(Limits(money=worst))
    run_virtual(calls_of(Tier("flex"), fallback, enough).ask(TURN, "reply", PROMPT))
    assert enough.paid.money == 7.5
    with pytest.raises(BudgetExceeded, match="money"):
        run_virtual(calls_of(Tier("flex"), fallback, Budget(Limits(money=worst * 0.99))).ask(TURN, "reply", PROMPT))


def test_a_tier_without_room_slows_no_other_call_and_a_rate_limit_leaves_no_tier() -> None:
    async def story() -> tuple[float, int]:
        calls = calls_of(Tier(*[Full(), "default"] * 3), "now")
        loop, slots = asyncio.get_running_loop(), calls._attempts._slots.account("a", adaptive=True)
        began, limit = loop.time(), slots.limit
        for turn in range(3):
            await calls.ask(replace(TURN, index=turn), "reply", PROMPT)
        return loop.time() - began, slots.limit - limit

    # Each refusal and each reply takes a second; nobody waits for what the refusal says, and no limit is cut.
    took, cut = run_virtual(story())
    assert cut >= 0
    assert took <= 7
    calls = calls_of(tier := Tier(Fast(), "flex"), "now")
    run_virtual(calls.ask(TURN, "reply", PROMPT))
    assert ["service_tier" in each for each in tier.asked] == [True, True]


#: A study of a model that a stub plays, with a table of prices that lists its flexible tier.
SPEC = """\
name: flexible
model: {{name: "openai:stub", temperature: null, max_tokens: 100, options: {{base_url: "{url}"}}}}
population: {{size: 4}}
interaction: {{kind: dyadic, steps: 6}}
topic: {{name: flat-earth}}
measurement: {{classifier: lexicon}}
execution: {{prices: prices.yaml, retry: {{first_wait_s: 0.001, longest_wait_s: 0.002}}}}
"""
PRICES = """\
date: 2026-01-31
currency: USD
per: 1000
lanes: {{"{lister}": {{flex: {{factor: 0.5, date: 2026-01-31, source: a page}}}}}}
models:
  "openai:other": {{input: 1.0, output: 2.0}}
  "openai:stub": {{input: 1.0, cached_input: 0.1, output: 2.0}}
"""


def written(tmp_path: Path, stub: StubProvider, lister: str = "openai") -> str:
    (tmp_path / "prices.yaml").write_text(PRICES.format(lister=lister))
    path = tmp_path / "flexible.yaml"
    path.write_text(SPEC.format(url=stub.base_url))
    return str(path)


def test_a_study_through_the_tier_is_the_study_itself_at_half_the_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    refused = Counter[str]()

    def room(request: StubRequest) -> bool:
        refused[request.identity] += 1
        return refused[request.identity] > 1

    frames = {}
    with StubProvider(cached=0.5, room=room) as stub:
        for lane, fallback in (("now", "wait"), ("flex", "wait"), ("flex", "now")):
            changes = [f"execution.lane={lane}", f"execution.fallback={fallback}"]
            store = str(tmp_path / f"{lane}-{fallback}.sqlite")
            refused.clear()
            frames[lane, fallback] = osim.run(osim.load_experiment(written(tmp_path, stub), changes), store)
    plain, flex, mixed = (each.calls for each in frames.values())
    assert [each["lane"].unique().tolist() for each in (plain, flex, mixed)] == [["now"], ["flex"], ["now"]]
    assert flex["cost"].to_numpy() == pytest.approx(plain["cost"].to_numpy() / 2, rel=1e-12)
    assert mixed["cost"].tolist() == plain["cost"].tolist()
    assert flex["cached_tokens"].tolist() == plain["cached_tokens"].tolist()
    assert plain["cached_tokens"].sum()
    for each in frames.values():
        assert each.turns.equals(frames["now", "wait"].turns)
        assert each.runs["run_id"].tolist() == frames["now", "wait"].runs["run_id"].tolist()


def test_a_lane_that_the_table_does_not_list_is_refused_with_what_it_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with StubProvider() as stub:
        spec = written(tmp_path, stub, "openai:other")
        listed = r"no lane 'flex' for 'openai:stub'; it lists it for openai:other"
        with pytest.raises(SpecError, match=listed):
            osim.run(osim.load_experiment(spec, ["execution.lane=flex"]), str(tmp_path / "s.sqlite"))
        # A model's own row is another model's affair.
        with pytest.raises(SpecError, match=listed):
            osim.run(osim.load_experiment(spec, ['execution.lane={"openai:stub": "flex"}']), str(tmp_path / "s.sqlite"))
        with pytest.raises(SpecError, match=r"no model 'openai:stubb' \(did you mean openai:stub\?\)"):
            osim.run(osim.load_experiment(spec, ['execution.lane={"openai:stubb": "now"}']), str(tmp_path / "s.sqlite"))
        with pytest.raises(SpecError, match="for 'scripted'"):
            osim.run(osim.load_experiment("quickstart", ["execution.lane=flex"]), str(tmp_path / "s.sqlite"))
        assert not (tmp_path / "s.sqlite").exists()
        assert not stub.log
