"""Sweeps under a budget, pilots, and populations of several models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from langchain_core.language_models import FakeListChatModel as _Own

import opinionsim as osim
from opinionsim.assembly import assemble
from opinionsim.errors import SpecError
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.editing import rewrite
from tests.support.running import SMALL, Watch, WatchedModel, assert_same, carry_out, changed, ended, loaded

SWEEP = changed(SMALL, replicates=3, sweep={"cognition.confirmation_bias": ["none", "strong"]})


@pytest.mark.parametrize(
    "slots", [pytest.param(1, marks=pytest.mark.long), 7, pytest.param(64, marks=pytest.mark.long)]
)
def test_a_budget_is_kept_and_what_is_missing_is_done_when_it_is_raised(slots: int) -> None:
    whole = ended(SWEEP, "whole.sqlite")
    limited = changed(SWEEP, execution={"budget": {"calls": 31}, "max_concurrency": slots})
    summary = ended(limited, "limited.sqlite")
    assert summary.made == 31
    assert "execution.budget.calls" in str(summary.exceeded)
    assert summary.complete < summary.total == 6
    with open_store("limited.sqlite", write=False) as store:
        assert store.usage(store.states()).calls == 31
    # What other invocations paid counts.
    again = ended(limited, "limited.sqlite")
    assert (again.made, again.stopped) == (0, True)
    rest = ended(SWEEP, "limited.sqlite")
    assert (rest.made, rest.exceeded) == (whole.made - 31, None)
    assert_same(loaded("limited.sqlite"), loaded("whole.sqlite"))


def test_a_budget_counts_what_the_other_runs_of_the_experiment_have_paid() -> None:
    limited = changed(SWEEP, execution={"budget": {"calls": 31}})
    made = [ended(limited, "parts.sqlite", only=[run.run_id]).made for run in load_experiment(limited).runs]
    assert made == [12, 12, 7, 0, 0, 0]
    pilot = ended(limited, "parts.sqlite", only=load_experiment(limited).pilot)
    assert (pilot.made, pilot.complete, pilot.stopped) == (0, 1, True)


def test_what_a_fresh_start_deletes_still_counts() -> None:
    spec = changed(SMALL, replicates=2)
    ended(spec, "fresh.sqlite")
    rewrite("fresh.sqlite", "UPDATE runs SET inputs = 'another wording'")
    rewrite("fresh.sqlite", "UPDATE journal SET prompt_hash = 'another question'")
    limited = changed(spec, execution={"budget": {"calls": 30}})
    summary = ended(limited, "fresh.sqlite", fresh=True)
    # What is left of the budget does not suffice for a run, so that none is deleted.
    assert summary.made == 0
    assert "more than execution.budget.calls allows" in str(summary.exceeded)
    assert set(loaded("fresh.sqlite").runs["status"]) == {"complete"}
    again = ended(changed(limited, execution={"budget": {"calls": 40}}), "fresh.sqlite", fresh=True)
    assert again.made == 12
    assert again.exceeded
    assert again.complete == 1
    with open_store("fresh.sqlite", write=False) as store:
        assert [paid.calls for paid in store.spending().values()] == [36]


class _Reticent(WatchedModel):
    """Tells nobody how many tokens it used."""

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        found = await super()._agenerate(*arguments, **options)
        for generation in found.generations:
            generation.message.usage_metadata = None
        return found


@pytest.mark.parametrize(("limit", "amount"), [("tokens", 1700), ("money", 1.7)])
def test_tokens_nobody_counted_cannot_be_limited_once_they_are_used(limit: str, amount: float) -> None:
    model = _Reticent()
    model._watch = Watch()
    prices = "date: 2026-01-01\ncurrency: USD\nper: 1000\nsource: {}\nmodels:\n  scripted: {input: 1, output: 2}\n"
    Path("own.yaml").write_text(prices)
    spec = changed(SMALL, model={"name": "scripted", "max_tokens": 50}, execution={"prices": "own.yaml"})
    limited = changed(spec, execution__budget={limit: amount})
    first = ended(limited, "untold.sqlite", model=model)
    assert 0 < first.made < 12
    assert f"execution.budget.{limit}" in str(first.exceeded)
    before = loaded("untold.sqlite")
    with pytest.raises(SpecError, match=rf"budget.{limit}: {first.made} stored calls .* limit calls instead"):
        ended(limited, "untold.sqlite", model=model)
    assert_same(loaded("untold.sqlite"), before)
    rest = ended(changed(spec, execution__budget={"calls": 12}), "untold.sqlite", model=model)
    assert (rest.made, rest.complete) == (12 - first.made, 1)


def test_money_is_limited_only_where_every_price_is_known() -> None:
    spec = changed(
        SMALL,
        model={"name": "mine:own"},
        measurement={"classifier": "lexicon"},
        execution={"budget": {"money": 1.0}},
    )
    with pytest.raises(SpecError, match=r"execution.budget.money: the price of 'mine:own' is not known"):
        osim.run(load_experiment(spec), "never.sqlite", chat_model=_Own(responses=["Yes."]))
    assert not Path("never.sqlite").exists()


def test_a_limit_needs_a_longest_reply() -> None:
    spec = changed(SMALL, model={"max_tokens": None}, execution={"budget": {"tokens": 1000}})
    with pytest.raises(SpecError, match=r"execution.budget.tokens.*needs model.max_tokens"):
        load_experiment(spec)


def test_a_pilot_is_a_part_of_the_sweep_that_is_not_repeated() -> None:
    whole = ended(SWEEP, "whole.sqlite")
    experiment = load_experiment(SWEEP)
    pilot = ended(SWEEP, "pilot.sqlite", only=experiment.pilot)
    assert (pilot.total, pilot.complete, pilot.made) == (2, 2, whole.made // 3)
    results = loaded("pilot.sqlite")
    assert sorted(results.runs["status"]) == ["complete"] * 2 + ["pending"] * 4
    rest = ended(SWEEP, "pilot.sqlite")
    assert (rest.total, rest.already, rest.made) == (6, 2, whole.made - pilot.made)
    assert_same(loaded("pilot.sqlite"), loaded("whole.sqlite"))


def _assembled(spec: dict[str, Any]) -> tuple[Any, ...]:
    """The model that plays each agent of the first run."""
    experiment = load_experiment(spec)
    return assemble(experiment.runs[0], experiment.resources).models


def _models(spec: dict[str, Any]) -> list[int | None]:
    """Longest reply of the model that plays each agent, by which models are told apart here."""
    return [model.max_tokens for model in _assembled(spec)]


def _dealt(shares: list[float], *, seed: int = 1, size: int = 10) -> list[int | None]:
    models = [{"name": "scripted", "share": share, "max_tokens": 100 + i} for i, share in enumerate(shares)]
    return _models(changed(SMALL, model=models, seed=seed, population={"size": size}))


@given(st.lists(st.floats(0.01, 9.0), min_size=1, max_size=4), st.integers(2, 10))
def test_shares_are_dealt_out_by_largest_remainder(shares: list[float], size: int) -> None:
    assume(min(shares) / sum(shares) * size >= 1)
    dealt = _dealt(shares, size=size)
    assert len(dealt) == size
    for i, share in enumerate(shares):
        assert abs(dealt.count(100 + i) - share / sum(shares) * size) < 1


def test_a_share_of_nobody_is_told() -> None:
    with pytest.raises(SpecError, match=r"a share of 0\.01 gives 'scripted' none of 10 agents"):
        _dealt([0.99, 0.01])


def test_who_gets_which_model_is_chance_of_a_stream_of_its_own() -> None:
    assert _dealt([0.7, 0.3]) == _dealt([7, 3])
    assert len({tuple(_dealt([0.5, 0.5], seed=seed)) for seed in range(5)}) > 1


def test_models_by_attribute() -> None:
    experiment = load_experiment(SMALL)
    players = assemble(experiment.runs[0], experiment.resources).population.personas
    everybody = experiment.resources.personas(experiment.spec.population).personas
    leanings = list(dict.fromkeys(persona.attributes["political_leaning"] for persona in everybody))
    models = {value: {"name": "scripted", "max_tokens": 100 + i} for i, value in enumerate(leanings)}
    by = {"by": "political_leaning", "models": models}
    expected = [100 + leanings.index(persona.attributes["political_leaning"]) for persona in players]
    assert _models(changed(SMALL, model=by)) == expected
    assert len(set(expected)) > 1
    # Of whoever may be drawn, somebody would have no model.
    missing = players[0].attributes["political_leaning"]
    del models[missing]
    with pytest.raises(SpecError, match=rf"model: persona .* has political_leaning = '{missing}'"):
        load_experiment(changed(SMALL, model=by))
    assert _models(changed(SMALL, model={**by, "otherwise": {"name": "scripted", "max_tokens": 7}}))[0] == 7
    with pytest.raises(SpecError, match="has no attribute 'shoe_size'"):
        load_experiment(changed(SMALL, model={"by": "shoe_size", "models": {"9": {"name": "scripted"}}}))


def test_a_population_of_several_models_is_run_and_recorded() -> None:
    models = [
        {"name": "scripted", "share": 1, "options": {"pull": 2.0, "pull_strength": 1.0}},
        {"name": "scripted", "share": 1, "options": {"susceptibility": 0.0, "noise": 0.0}},
    ]
    spec = changed(SMALL, model=models, interaction={"kind": "independent", "reports": 3})
    summary, results = carry_out(spec, "several.sqlite")
    assert summary.complete == 1
    assert set(results.runs["model"]) == {"scripted"}
    named = {"scripted (pull=2.0, pull_strength=1.0)", "scripted (susceptibility=0.0, noise=0.0)"}
    assert set(results.agents["model"]) == named
    pulled = [model.options.get("pull") for model in _assembled(spec)]
    reported = results.opinions.groupby("agent")["value"].last()
    assert all(reported[agent] == 2 for agent, pull in enumerate(pulled) if pull is not None)
    assert any(reported[agent] < 2 for agent, pull in enumerate(pulled) if pull is None)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ([], "model: .*at least 1"),
        ([{"name": "scripted"}], r"model\[0\].share: .*missing"),
        ([{"name": "scripted", "share": 0}], r"model\[0\].share"),
        ({"by": "age"}, r"model.models"),
        ({"name": "scripted", "replies": "perhaps"}, r"model.replies"),
        (
            {"name": "scripted", "replies": {"reask": 0}},
            r"model.replies.reask: unknown field; valid: refused",
        ),
        ({"name": "scripted", "replies": {"refused": {"then": "keep"}}}, r"model.replies.refused.then"),
        ({"name": "scripted", "replies": {"truncated": {"then": "skip"}}}, r"model.replies.truncated.then"),
        ({"name": "scripted", "replies": {"empty": {"reask": -1}}}, r"model.replies.empty.reask"),
        ({"name": "openai:x", "options": {"base_url": "http://me:pass@host/v1"}}, "not contain a user or password"),
    ],
)
def test_bad_models_are_named(model: Any, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        load_experiment(changed(SMALL, model=model, measurement={"classifier": "lexicon"}))
