"""Opinions from the probabilities of first tokens: closed forms, and runs through a server that returns them."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import opinionsim as osim
from opinionsim.analysis import tables
from opinionsim.classifiers import Classifier, Item, asks, asks_author, load_classifier
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.llm import first_token_shares, without_log_probabilities
from opinionsim.messages import ChatMessage, Prompt, Reply
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.plots import caption_of, ribbons
from opinionsim.running import replay
from opinionsim.specification import load_experiment
from tests.support.judge import CLAIM
from tests.support.people import Double
from tests.support.provider import StubProvider
from tests.support.provider_faults import Exchange
from tests.support.provider_replies import request_identity
from tests.support.running import SMALL, assert_same, carry_out, changed, ended, finished, loaded

FORK = Prompt.of(
    [ChatMessage("system", "You are Ann."), ChatMessage("user", "Hello."), ChatMessage("assistant", "Hi.")]
)
NO_SIGN = {"four": -3.0, "one": -1.0}
SIGN = {"four": -1.0, "one": -3.0}


def _text(top: Mapping[str, float], temperature: float | None = 1.0) -> str:
    return json.dumps({"temperature": temperature, "top": [[token, math.log(p)] for token, p in top.items()]})


def _read(texts: Iterable[str], **options: Any) -> tuple[OpinionEstimates, list[Prompt]]:
    """What a classifier reads in these replies, and what it asks."""
    given_, asked = iter(texts), list[Prompt]()

    async def ask(call: str, messages: Iterable[ChatMessage], **_: Any) -> Reply:
        assert call == "judge" + (f".{len(asked) + 1}" if asked else "")
        asked.append(Prompt.of(messages))
        text = next(given_)
        return Reply(text, "answered" if text else "refused")

    classifier: Any = load_classifier("belief", **options)
    return asyncio.run(classifier.rate(ask, Item("Hi.", CLAIM, fork=FORK))), asked


# -- closed forms ------------------------------------------------------------------------------------------


@given(st.lists(st.floats(1e-6, 1), min_size=6, max_size=6), st.floats(0.05, 2))
def test_probabilities_at_the_temperature_and_what_is_off_the_scale_at_one(weights: list[float], at: float) -> None:
    p = np.array(weights) / (sum(weights) + 0.1)
    found, _ = _read([_text(dict(zip(["A", "B", "C", "D", "E", "The"], p, strict=True)), at)])
    raised = p[:5] ** (1 / at)
    np.testing.assert_allclose(found.probabilities[0], raised / raised.sum(), atol=1e-9)
    assert found.off_scale[0] == pytest.approx(1 - p[:5].sum())
    assert found.value[0] == pytest.approx(raised @ np.arange(-2, 3) / raised.sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("top", "at", "probabilities", "off"),
    [
        # Spellings are apart when the temperature is applied, as they are where answers are drawn.
        ({" A": 0.2, "A": 0.2, "E": 0.4}, 0.5, [0.08 / 0.24, 0, 0, 0, 0.16 / 0.24], 0.2),
        # The likeliest alone, or those that share the first place; a word is no letter.
        ({"B": 0.3, "C": 0.3, "D": 0.1, "Agree": 0.2}, 0.0, [0, 0.5, 0.5, 0, 0], 0.3),
        # The temperature is left to the provider.
        ({"A": 0.1, "B": 0.1, "": 0.5, "I": 0.3}, None, [0.5, 0.5, 0, 0, 0], 0.8),
        # Nothing on the scale is among the likeliest.
        ({"I": 0.6, "The": 0.4}, 0.7, [math.nan] * 5, 1.0),
    ],
)
def test_spellings_ties_and_mass_elsewhere(
    top: dict[str, float], at: float | None, probabilities: list[float], off: float
) -> None:
    found, _ = _read([_text(top, at)])
    np.testing.assert_allclose(found.probabilities[0], probabilities, atol=1e-9)
    np.testing.assert_allclose(found.off_scale, off, atol=1e-9)
    np.testing.assert_equal(found.value, np.dot(found.probabilities, np.arange(-2.0, 3)))


def test_both_orders_are_averaged() -> None:
    rising, falling = {"A": 0.6, "B": 0.4}, {"A": 0.5, "E": 0.3}
    found, asked = _read([_text(rising), _text(falling)], orders="both")
    # From the highest, A stands for 2 and E for -2.
    np.testing.assert_allclose(found.probabilities[0], [(0.6 + 3 / 8) / 2, 0.2, 0, 0, 5 / 16])
    assert found.off_scale[0] == pytest.approx(0.1)
    listed = [prompt[-1].content.split("\n\n")[1].splitlines() for prompt in asked]
    assert [lines[0] for lines in listed] == ["A: strongly negative", "A: strongly positive"]
    assert [prompt[:-1] for prompt in asked] == [tuple(FORK)] * 2


def test_signs_take_a_second_token_where_a_begun_answer_is_continued() -> None:
    first, after = {"-": 0.5, "0": 0.1, "2": 0.2}, {"1": 0.4, "2": 0.4, "x": 0.2}
    tested = json.dumps({"temperature": 1, "top": list(SIGN.items())})
    found, asked = _read([_text(first), tested, _text(after)], labels="numbers")
    np.testing.assert_allclose(found.probabilities[0], np.array([0.2, 0.2, 0.1, 0, 0.2]) / 0.7)
    assert found.off_scale[0] == pytest.approx(0.3)
    assert [prompt[-1].content for prompt in asked[1:]] == ["one two three", "-"]
    tested = json.dumps({"temperature": 1, "top": list(NO_SIGN.items())})
    with pytest.raises(MeasurementError, match=r"does not continue a started answer.*letters"):
        _read([_text(first), tested, _text(after)], labels="numbers")
    # A sign that is one token with its number, or is not among the likeliest, takes one call.
    whole = _read([_text({"-2": 0.5, "1": 0.5})], labels="numbers")[0]
    np.testing.assert_allclose(whole.probabilities[0], [0.5, 0, 0, 0.5, 0])


def test_a_question_that_a_filter_stopped_is_missing() -> None:
    found, _ = _read([""])
    assert np.isnan([*found.value, *found.off_scale, *found.probabilities[0]]).all()


@pytest.mark.parametrize(
    ("options", "points", "message"),
    [
        ({"labels": "words"}, None, "labels must be letters or numbers"),
        ({"orders": 2}, None, "orders one or both"),
        ({"before": "yes"}, None, "before must be true or false"),
        ({"labels": "numbers"}, (1, 5, 10), "must all begin differently.*numbers do not"),
        ({}, tuple(range(27)), "must all begin differently.*letters do not"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], points: tuple[int, ...] | None, message: str) -> None:
    scale = None if points is None else OpinionScale(points, tuple(map(str, points)))
    with pytest.raises(SpecError, match=message):
        load_classifier("belief", scale, **options)


def test_it_codes_no_text_outside_a_run() -> None:
    classifier: Classifier = load_classifier("belief")
    assert asks(classifier)
    assert (asks_author(classifier), asks_author(load_classifier("lexicon"))) == (True, False)
    assert len(classifier.classify([])) == 0
    with pytest.raises(MeasurementError, match="codes only texts of runs"):
        classifier.classify([Item("Hi.", CLAIM)])


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("scripted", {}, "has none"),
        ("anthropic:claude", {}, "returns none"),
        ("openai:o3-mini", {}, "reasons before it answers"),
        ("openai:gpt-5-mini", {}, "reasons before it answers"),
        ("hf:some/model", {"enable_thinking": True}, "reasons before it answers"),
        ("hf:some/model", {"enable_thinking": False}, ""),
        ("openai:gpt-4o-mini", {"base_url": "http://localhost:1/v1"}, ""),
        ("openai:gpt-5-chat-latest", {}, ""),
    ],
)
def test_models_that_are_known_to_give_none(name: str, options: dict[str, Any], reason: str) -> None:
    found = without_log_probabilities(name, options)
    assert reason in found
    assert bool(reason) == bool(found)


# -- runs --------------------------------------------------------------------------------------------------


def _likely(messages: Sequence[ChatMessage]) -> dict[str, float]:
    """Log probabilities that depend on all of a prompt; a quarter is beyond them."""
    rng = np.random.default_rng(int(request_identity(messages, None)[:8], 16))
    return dict(zip(["A", "B", " C", "D", "E", "Well"], np.log(0.75 * rng.dirichlet(np.ones(6))), strict=True))


@pytest.fixture
def stub() -> Iterable[StubProvider]:
    with StubProvider(tokens=_likely) as running:
        yield running


def _spec(stub: StubProvider, *, before: bool = False, texts: list[str] | None = None, **values: Any) -> dict[str, Any]:
    belief = {"variable": "belief", "classifier": {"name": "belief", "options": {"before": before}}, "texts": texts}
    measured = {"classifier": "lexicon", "texts": ["report"], "self_report": {"before": 1, "after": 1}}
    model = {"name": "openai:stub", "options": {"base_url": stub.base_url}}
    return changed(SMALL, **{"model": model, "measurement": {**measured, "instruments": [belief]}, **values})


def _readings(stub: StubProvider) -> list[Exchange]:
    return [each for each in stub.log if each.request.options.get("logprobs")]


def test_a_run_asks_its_agents_and_needs_no_model_again(stub: StubProvider) -> None:
    spec = _spec(stub)
    forecast = osim.plan(load_experiment(spec))
    results = finished(spec, "a.sqlite")
    asked = _readings(stub)
    # One token, at temperature 1 and with the likeliest 20, of each self-report in the place of its question.
    assert len(asked) == 8
    assert {(each.request.options["max_tokens"], each.request.options["top_logprobs"]) for each in asked} == {(1, 20)}
    assert {each.request.options["temperature"] for each in asked} == {1}
    assert not any("numbers and nothing else" in each.request.messages[-1].content for each in asked)
    assert [(each.calls, each.output_tokens) for each in forecast.models if each.judges] == [(8, 8)]
    assert any("200 sampled answers" in note for note in forecast.notes)
    own = results.opinions[results.opinions["variable"] == "belief"]
    texts = results.calls[results.calls["call"].str.startswith("judge")].set_index("turn")["reply"]
    for row in own.to_dict("records"):
        share = first_token_shares(texts[row["turn"]], "ABCDE")
        assert row["value"] == pytest.approx(share @ np.arange(-2, 3) / share.sum())
        assert row["off_scale"] == pytest.approx(1 - first_token_shares(texts[row["turn"]], "ABCDE", plain=True).sum())
    assert (own["kind"].unique().tolist(), own["value"].nunique()) == (["self-report"], 8)
    # Coded texts and sampled answers have instruments, and numbers, of their own.
    assert not set(own["instrument_id"]) & set(
        results.opinions.loc[results.opinions["variable"] == "stance", "instrument_id"]
    )
    n = len(stub.log)
    summary, again = carry_out(spec, "a.sqlite")
    assert (summary.complete, len(stub.log)) == (1, n)
    assert_same(again, results)
    assert [each.difference for each in replay(results)] == [""]


@pytest.mark.parametrize(("before", "texts"), [(False, ["report"]), (True, ["report", "post"]), (False, None)])
def test_finished_runs_are_read_from_forks_as_if_it_had_been_at_once(
    stub: StubProvider, before: bool, texts: list[str] | None
) -> None:
    spec = _spec(stub, before=before, texts=texts)
    whole = finished(spec, "whole.sqlite")
    plain = changed(spec)
    plain["measurement"] = {**spec["measurement"], "instruments": []}
    finished(plain, "later.sqlite")
    n = len(stub.log)
    later = finished(spec, "later.sqlite")
    assert len(stub.log) - n == len(later.opinions[later.opinions["variable"] == "belief"]) > 0
    assert_same(later, whole, but_for=("seq", "latency_s", "arrived_at"))
    for each in _readings(stub) if texts == ["report"] else ():
        # What was read and the report itself are in front of the question.
        assert [message.role for message in each.request.messages[-3:]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("drop", [0, 3])
def test_a_server_without_log_probabilities_stops_the_run_whole(stub: StubProvider, drop: int) -> None:
    asked = itertools.count()
    stub.tokens = lambda messages: _likely(messages) if next(asked) < drop else {}
    stub.latency = 0.03
    spec = _spec(stub)
    summary = ended(spec, "a.sqlite", slots=8)
    (error,) = summary.errors.values()
    assert "openai:stub returned no log probabilities, which the instrument 'belief' reads" in error
    assert loaded("a.sqlite").runs["status"].tolist() == ["incomplete"]
    assert drop < (n := len(_readings(stub))) <= drop + 4
    # What was read is on record: only the rest is asked when the server gives them again.
    stub.tokens = _likely
    again = finished(spec, "a.sqlite")
    assert len(_readings(stub)) == n + 8 - drop
    assert_same(again, finished(spec, "b.sqlite"), but_for=("seq", "latency_s", "arrived_at"))


def test_it_does_not_matter_what_became_of_the_text(stub: StubProvider) -> None:
    stub.reply = lambda messages, seed: "I'm sorry, but I can't help with that."
    opinions = finished(_spec(stub), "a.sqlite").opinions
    own = opinions[opinions["variable"] == "belief"]
    assert (len(own), own["value"].isna().any(), set(own["status"])) == (8, False, {"answered"})


def test_people_at_seats_are_not_read(stub: StubProvider) -> None:
    spec = _spec(stub, texts=["report"], interaction={"kind": "independent", "reports": 2})
    spec["cast"] = [{}, {"name": "Ben", "seat": {}}]
    del spec["population"]
    plain = changed(spec)
    plain["measurement"] = {**spec["measurement"], "instruments": []}
    finished(plain, "later.sqlite", people=Double())
    for store in ("later.sqlite", "whole.sqlite"):
        opinions = finished(spec, store, people=Double()).opinions
        own = opinions[opinions["variable"] == "belief"].set_index("agent")["value"]
        assert own.notna().groupby("agent").agg(list).to_dict() == {0: [True] * 2, 1: [False] * 2}


def test_a_model_that_reasons_is_refused_at_the_first_call(stub: StubProvider) -> None:
    stub.tokens = lambda messages: {"<think>": -0.1, "A": -3.0}
    (error,) = ended(_spec(stub), "a.sqlite").errors.values()
    assert "openai:stub reasons before it answers" in error


@pytest.mark.parametrize(
    ("model", "reason"), [("scripted", "the scripted model has none"), ("anthropic:claude-x", "returns none")]
)
def test_plan_refuses_models_that_are_known(stub: StubProvider, model: str, reason: str) -> None:
    with pytest.raises(SpecError, match=f"instruments.*classifier 'belief' reads token probabilities; .*{reason}"):
        osim.plan(load_experiment(_spec(stub, model={"name": model})))


def test_tables_and_figures_name_expectations_and_mass_off_the_scale(stub: StubProvider) -> None:
    stub.tokens = lambda messages: {token: log - 1 for token, log in _likely(messages).items()}
    spec = _spec(stub)
    spec["measurement"] = {"classifier": "belief"}
    results = finished(spec, "a.sqlite")
    (table,) = tables(results.ordered_runs, results.metrics, kind="report")
    text = table.to_text(200)
    mass = results.metrics.loc[results.metrics["kind"] == "report", "off_scale_mass"].iloc[0]
    assert mass > 0.72
    assert all(said in text for said in ("end, of expectations", "off scale", f"{mass:.2f}"))
    axes = ribbons(results, metric="diversity", kind="report")
    assert "diversity of expectations" in caption_of(axes)
