"""Runs of other kinds in batches: several models, judges, selectors, meetings by opinion, people, reflections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from opinionsim.messages import ChatMessage
from tests.support.batch_answers import sentence
from tests.support.batch_runs import (
    BOUGHT,
    assert_settled,
    at_once,
    batches,
    bought,
    complete,
    model,
    paid,
    prices,
    study,
)
from tests.support.batches import BatchProvider
from tests.support.examples import few
from tests.support.people import Double
from tests.support.provider_replies import plain_reply
from tests.support.running import assert_same, changed


def rating(messages: tuple[ChatMessage, ...], seed: int | None) -> str:
    """A point of the scale to a judge's question about a text, and a sentence to an agent's."""
    asked = messages[-1].content
    if "<<<text" in asked:
        return str(len(asked) % 5 - 2)
    return "2" if "number" in asked else sentence(messages, seed)


def same_at_once(
    provider: BatchProvider, spec: dict[str, Any], people: Callable[[], Any] = lambda: None
) -> tuple[Any, int]:
    """The results of a study in batches, which are those of the study at once, and its number of batches."""
    found = complete(provider, spec, "batch.sqlite", people=people())
    assert_settled(provider, "batch.sqlite")
    rounds = len(batches("batch.sqlite"))
    assert_same(found, complete(provider, at_once(spec), "now.sqlite", people=people()), but_for=BOUGHT)
    return found, rounds


def test_each_of_several_models_has_batches_of_its_own_and_one_may_answer_at_once() -> None:
    with BatchProvider(closes=True) as provider:
        one, two, three = (model(provider, *each) for each in (("openai", "a"), ("openai", "b"), ("anthropic", "c")))
        table = prices(*(each["name"] for each in (one, two, three)))
        lanes = {"openai:a": "batch", "openai:b": "now", "anthropic:c": "batch"}
        spec = changed(study(provider, lane=lanes, prices=table), population__size=8, interaction__steps=10)
        spec["model"] = [one | {"share": 0.5}, two | {"share": 0.25}, three | {"share": 0.25}]
        found, _ = same_at_once(provider, spec)
    played = found.agents.set_index(["run_id", "agent"])["model"].rename("played")
    calls = found.calls.join(played, on=["run_id", "agent"])
    by_model = calls.groupby("played")["lane"].agg(set).to_dict()
    assert by_model == {"openai:a": {"batch"}, "openai:b": {"now"}, "anthropic:c": {"batch"}}
    assert {each.model for each in batches("batch.sqlite")} == {"openai:a", "anthropic:c"}


def test_a_judge_codes_texts_through_batches_as_well() -> None:
    with BatchProvider(rating) as provider:
        judge = model(provider, called="judge")
        options = {"model": judge["name"], "options": judge["options"], "max_tokens": 10}
        spec = study(provider, prices=prices("openai:m", "openai:judge"))
        spec["measurement"] = {"classifier": {"name": "chat", "options": options}}
        found, rounds = same_at_once(provider, spec)
    assert found.opinions["value"].notna().all()
    asked = Counter(each.model for each in batches("batch.sqlite"))
    assert asked["openai:judge"] >= 1
    assert asked["openai:judge"] < rounds


@pytest.mark.parametrize("selector", ["longest", "judge"])
def test_draws_of_a_turn_are_in_one_batch(selector: str) -> None:
    with BatchProvider(rating) as provider:
        spec = changed(study(provider), cognition={"draws": 3, "selector": selector})
        found, rounds = same_at_once(provider, spec)
    drawn = found.calls[found.calls["call"].str.startswith(("draw", "reply"))].groupby(["run_id", "turn"]).size()
    assert set(drawn) == {3}
    assert rounds <= 10 * (2 if selector == "judge" else 1)


@pytest.mark.parametrize(
    "interaction",
    few(
        [
            {"kind": "similarity", "steps": 6, "strength": 1.5},
            {"kind": "bounded-confidence", "steps": 6, "confidence": 1},
            {"kind": "rewiring", "steps": 6, "tolerance": 1, "network": {"kind": "ring"}},
            {"kind": "feed", "steps": 4, "posts": 2},
        ],
        2,
    ),
    ids=lambda each: each["kind"],
)
def test_meetings_that_follow_opinions_are_those_of_the_study_at_once(interaction: dict[str, Any]) -> None:
    with BatchProvider(plain_reply) as provider:
        spec = study(provider) | {"interaction": interaction}
        same_at_once(provider, spec)


def test_people_take_no_part_in_batches() -> None:
    with BatchProvider() as provider:
        spec = study(provider) | {"cast": [{"seat": {}}, {}, {}, {}]}
        del spec["population"]
        found, _ = same_at_once(provider, spec, Double)
    own = found.turns["agent"] == 0
    assert set(found.turns.loc[own, "evidence"]) == {"scripted"}
    assert set(found.turns.loc[~own, "evidence"]) == {"model"}
    assert provider.bought.total() == (~own).sum()


def test_agents_that_reflect_do_so_in_batches() -> None:
    with BatchProvider() as provider:
        spec = study(provider) | {"cognition": {"memory": "reflective"}}
        found, _ = same_at_once(provider, spec)
    calls = Counter(found.calls["call"])
    assert calls["reflect"] >= calls["reply"] / 2
    assert set(found.calls["lane"]) == {"batch"}


def test_models_of_one_name_with_other_options_have_batches_of_their_own() -> None:
    with BatchProvider() as provider:
        spec = study(provider) | {"sweep": {"model.temperature": [0.0, 1.0]}}
        found, _ = same_at_once(provider, spec)
    assert len(found.turns) == 4 * 8
    warm = [{item.asked.body.get("temperature") for item in batch.items} for batch in provider.batches.values()]
    assert all(len(each) == 1 for each in warm)


def test_models_of_one_name_at_two_addresses_go_on_where_each_was_left() -> None:
    with BatchProvider(delay=0.2) as one, BatchProvider(delay=0.2) as two:
        spec = changed(study(one), population__size=8)
        spec["model"] = [model(each) | {"share": 0.5} for each in (one, two)]
        assert bought(one, spec, leave=True).left
        complete(one, spec)
        sold = one.bought + two.bought
        assert set((one.ids + two.ids).values()) == {1}
        assert paid().calls == sold.total()
        assert min(one.bought.total(), two.bought.total()) > 0
