from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opinionsim.classifiers import ChatClassifier, _registry, asks, load_classifier
from opinionsim.classifiers._chat import _CLAIM, _TEXT
from opinionsim.errors import ModelCallError, SpecError
from opinionsim.experiments import load_experiment, replay
from opinionsim.experiments._identity import measurement_id
from opinionsim.llm import CallKey, MemoryJournal, ModelClient, RunCalls, SlotPool
from opinionsim.messages import Message
from opinionsim.opinions import OpinionScale
from opinionsim.schedules import Turn
from opinionsim.simulation import rate
from opinionsim.store import open_store
from opinionsim.testing import run_virtual
from opinionsim.topics import Claim, Framing
from tests._running import SMALL, assert_same, carry_out, changed, loaded, watched
from tests.classifiers._judge import CLAIM, Bench, BenchClassifier, by_lexicon, judge_model

JUDGED = changed(SMALL, measurement={"classifier": "bench"})


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setitem(_registry._CLASSIFIERS, "bench", ("tests.classifiers._judge", "BenchClassifier"))
    monkeypatch.setattr(BenchClassifier, "bench", Bench())
    return BenchClassifier.bench


def _judge(answer: str | Iterator[str] = "1", **options: Any) -> tuple[ChatClassifier, Bench]:
    given = iter(lambda: answer, None) if isinstance(answer, str) else answer
    bench = Bench(answer=lambda text: next(given))
    return ChatClassifier(model=judge_model(bench), **options), bench


# -- by itself ---------------------------------------------------------------------------------------------


def test_form_of_what_it_says() -> None:
    scale = OpinionScale.of_size(3)
    classifier = ChatClassifier(scale, judge_model(Bench(answer=lambda text: text)))
    found = classifier.classify([CLAIM] * 4, ["1", "negative", "N", "(0)"])
    np.testing.assert_array_equal(found.value, [1, -1, math.nan, 0])
    np.testing.assert_array_equal(found.off_scale, [0, 0, 1, 0])
    np.testing.assert_array_equal(
        found.probabilities, [[0, 0, 1], [1, 0, 0], [math.nan, math.nan, math.nan], [0, 1, 0]]
    )
    assert classifier.classify([], []).probabilities.shape == (0, 3)
    assert json.loads(json.dumps(classifier.options)) == classifier.options
    assert asks(classifier)
    assert not asks(load_classifier("lexicon"))


def test_equal_texts_are_each_asked_about() -> None:
    classifier, bench = _judge(iter(["-1", "0", "1", "2"] * 10))
    found = classifier.classify([CLAIM] * 40, ["the same"] * 40)
    assert sorted(found.value) == sorted([-1, 0, 1, 2] * 10)
    assert len(bench.prompts) == 40


def test_the_question_holds_claim_text_and_scale() -> None:
    classifier, bench = _judge()
    classifier.classify([CLAIM], ["I doubt it."])
    (prompt,) = bench.prompts
    assert f"{_CLAIM[0]}\n{CLAIM.text}\n{_CLAIM[1]}" in prompt
    assert f"{_TEXT[0]}\nI doubt it.\n{_TEXT[1]}" in prompt
    for point, label in zip(classifier.scale.points, classifier.scale.labels, strict=True):
        assert f"\n{point}: {label}\n" in prompt


@pytest.mark.parametrize(
    ("answers", "value", "asked"),
    [
        (["2"], 2, 1),
        (["well", "2"], 2, 2),
        (["1 or 2", "", "-1"], -1, 3),
        (["well", "hm", "so", "2"], math.nan, 3),
        (["N", "2"], math.nan, 1),
        (["I cannot say", "N", "2"], math.nan, 2),
    ],
)
def test_answers_that_name_no_point_are_asked_for_again(answers: list[str], value: float, asked: int) -> None:
    classifier, bench = _judge(iter(answers))
    np.testing.assert_equal(classifier.classify([CLAIM], ["text"]).value[0], value)
    assert len(bench.prompts) == len(set(bench.seeds) | {None}) - 1 + asked * (bench.seeds[0] is None) == asked


def test_it_may_not_be_asked_again() -> None:
    classifier, bench = _judge("well", reask=0)
    assert math.isnan(classifier.classify([CLAIM], ["text"]).value[0])
    assert len(bench.prompts) == 1


def test_an_answer_cut_short_is_no_answer() -> None:
    classifier, bench = _judge("-1")
    bench.finish = "length"
    assert math.isnan(classifier.classify([CLAIM], ["text"]).value[0])
    assert len(bench.prompts) == 3


_PIECES = st.lists(
    st.sampled_from([*_CLAIM, *_TEXT, "<", "<<", ">", ">>", "\n", "text", "claim", "{text}", "{points}", "%s", " a "])
)


@given(st.lists(_PIECES, min_size=2, max_size=2))
def test_no_text_opens_or_closes_a_delimiter(pieces: list[list[str]]) -> None:
    claim, text = map("".join, pieces)
    classifier, _ = _JUDGE
    prompt = classifier._question(Claim(claim, "", Framing.TRUTH), text).content
    plain = classifier._question(Claim("", "", Framing.TRUTH), "").content
    for delimiter in (*_CLAIM, *_TEXT):
        assert prompt.count(delimiter) == plain.count(delimiter) == 1
    head, tail = plain.split(f"{_TEXT[0]}\n\n{_TEXT[1]}")
    assert prompt.endswith(tail)
    assert prompt.startswith(head.split(_CLAIM[0])[0])


_JUDGE = _judge()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "classifier 'chat' needs a model"),
        ({"model": "scripted"}, "cannot judge"),
        ({"model": "nobody"}, "unknown model 'nobody'"),
        ({"model": "openai:x", "reask": -1}, "reask must be a whole number"),
        ({"model": "openai:x", "max_tokens": 0}, "max_tokens must be a whole number"),
        ({"mdoel": "openai:x"}, "unknown option 'mdoel'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_classifier("chat", **options)


def test_loaded_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    classifier = load_classifier("chat", OpinionScale.of_size(7), model="openai:gpt-4o-mini-2024-07-18")
    assert asks(classifier)
    assert classifier.options == {
        "model": "openai:gpt-4o-mini-2024-07-18",
        "temperature": 0.0,
        "max_tokens": 16,
        "options": {},
        "reask": 2,
        "wording": 1,
    }
    assert (classifier.endpoint.networked, classifier.endpoint.max_tokens) == (True, 16)


# -- the first error of several ----------------------------------------------------------------------------


def test_what_arrived_beside_a_failure_is_on_record() -> None:
    async def story() -> None:
        classifier, bench = _judge("0")
        bench.fails = lambda number: number == 3
        journal = MemoryJournal()
        calls = RunCalls("run", journal, (), SlotPool(2))
        published = [(Turn(index, 1, 0, "write"), Message(f"text {index}")) for index in range(50)]
        with pytest.raises(ModelCallError, match="the judge is gone"):
            await rate(classifier, CLAIM, published, calls, "0123456789")
        assert 2 <= len(journal.records) == len(bench.prompts) - 1 < 20
        assert {record.key.part for record in journal.records} == {"judge.01234567"}
        again = RunCalls("run", journal, (), SlotPool(2))
        bench.fails = lambda number: False
        assert [each.value for each in await rate(classifier, CLAIM, published, again, "0123456789")] == [0.0] * 50
        assert len(bench.prompts) == 51

    run_virtual(story())


# -- in runs -----------------------------------------------------------------------------------------------


def _judgements(store: str) -> Any:
    calls = loaded(store).calls
    return calls[calls["part"].str.startswith("judge")]


def test_ratings_are_calls_of_the_run(bench: Bench) -> None:
    summary, results = carry_out(JUDGED, "judged.sqlite")
    assert summary.complete == 1
    judged = _judgements("judged.sqlite")
    part = f"judge.{measurement_id(load_experiment(JUDGED).runs[0].spec)[:8]}"
    assert judged[["turn", "part"]].to_numpy().tolist() == [[turn, part] for turn in range(12)]
    assert set(judged["model"]) == {"judge-1"}
    assert summary.made == 24 == summary.paid.calls
    assert len(bench.prompts) == 12
    # Nothing is asked again, and replay needs no judge.
    model, watch = watched()
    summary, again = carry_out(JUDGED, "judged.sqlite", model)
    assert (summary.made, watch.asked, len(bench.prompts)) == (0, [], 12)
    assert_same(again, results)
    assert [each.difference for each in replay(results)] == [""]
    # The judge goes by the lexicon, so the two instruments agree.
    lexicon = carry_out(SMALL, "lexicon.sqlite")[1]
    assert again.opinions["value"].tolist() == pytest.approx(lexicon.opinions["value"].tolist(), nan_ok=True)


@pytest.mark.parametrize("number", [1, 7])
def test_a_run_whose_judge_fails_is_finished_by_the_next(bench: Bench, number: int) -> None:
    bench.fails = lambda n: n == number
    summary, results = carry_out(JUDGED, "judged.sqlite", slots=1)
    (error,) = summary.errors.values()
    assert "the judge is gone" in error
    assert results.runs["status"].tolist() == ["incomplete"]
    model, watch = watched()
    bench.fails = lambda n: False
    summary, results = carry_out(JUDGED, "judged.sqlite", model)
    assert (summary.complete, watch.asked) == (1, [])
    assert len(bench.prompts) == 13
    assert_same(results, carry_out(JUDGED, "whole.sqlite")[1])


def test_a_finished_run_is_judged_afterwards(bench: Bench) -> None:
    carry_out(SMALL, "later.sqlite")
    model, watch = watched()
    summary, results = carry_out(JUDGED, "later.sqlite", model)
    assert (summary.complete, watch.asked, len(bench.prompts)) == (1, [], 12)
    assert results.runs["status"].tolist() == ["complete"]
    assert_same(results, carry_out(JUDGED, "whole.sqlite")[1])
    # A second court judges anew, beside the first.
    second = changed(SMALL, measurement={"classifier": {"name": "bench", "options": {"court": 2}}})
    carry_out(second, "later.sqlite")
    assert len(bench.prompts) == 36
    assert _judgements("later.sqlite")["part"].nunique() == 2
    with open_store("later.sqlite", write=False) as store:
        assert [len(kinds) for kinds in store.measured_kinds(list(results.runs["run_id"])).values()] == [3]


def test_a_finished_run_stays_complete_when_its_judge_fails(bench: Bench) -> None:
    before = carry_out(SMALL, "later.sqlite")[1]
    bench.fails = lambda n: n == 5
    summary, results = carry_out(JUDGED, "later.sqlite", slots=1)
    (run_id,) = summary.errors
    assert results.runs[["status", "error"]].to_numpy().tolist() == [["complete", summary.errors[run_id]]]
    bench.fails = lambda n: False
    summary, _ = carry_out(JUDGED, "later.sqlite")
    assert (summary.complete, summary.errors, len(bench.prompts)) == (1, {}, 13)
    after = carry_out(SMALL, "later.sqlite")[1]
    pd.testing.assert_frame_equal(after.turns, before.turns)
    pd.testing.assert_frame_equal(after.opinions, before.opinions)


def test_what_cannot_be_read_is_missing_and_on_record(bench: Bench) -> None:
    bench.answer = lambda text: "well" if "not" in text else by_lexicon(text)
    _, results = carry_out(changed(JUDGED, interaction__steps=20), "missing.sqlite")
    vague = [turn for turn, text in enumerate(results.turns["message"]) if "not" in text]
    assert 0 < len(vague) < 40
    opinions = results.opinions.set_index("turn")
    assert opinions["value"].loc[vague].isna().all()
    assert (opinions["off_scale"].loc[vague] == 1).all()
    judged = _judgements("missing.sqlite")
    assert judged["turn"].value_counts().loc[vague].tolist() == [3] * len(vague)
    assert set(judged["part"].str.extract(r"\.[0-9a-f]{8}(.*)")[0]) == {"", ".2", ".3"}


def test_the_budget_counts_judgements(bench: Bench) -> None:
    limited = changed(JUDGED, execution={"budget": {"calls": 20}})
    summary, results = carry_out(limited, "limited.sqlite")
    assert "calls" in summary.exceeded
    assert summary.paid.calls == 20
    assert results.runs["status"].tolist() == ["incomplete"]
    assert len(bench.prompts) == 8
    summary, _ = carry_out(JUDGED, "limited.sqlite")
    assert (summary.complete, len(bench.prompts), summary.paid.calls) == (1, 12, 24)


def test_money_needs_the_price_of_the_judge(bench: Bench) -> None:
    spec = changed(JUDGED, execution={"budget": {"money": 1.0}})
    with pytest.raises(SpecError, match="the price of 'JudgeModel' is not known"):
        carry_out(spec, "money.sqlite")


def test_an_adaptive_schedule_acts_on_judgements(bench: Bench) -> None:
    similar = changed(JUDGED, interaction={"kind": "similarity", "steps": 8, "strength": 2.0})
    summary, results = carry_out(similar, "similar.sqlite")
    assert summary.complete == 1
    calls = results.calls.set_index(["turn", "part"])
    ratings = calls[calls["outcome"] == "rating"]
    opinions = results.opinions.set_index("turn")["value"]
    for (turn, _), row in ratings.iterrows():
        np.testing.assert_equal(float(row["reply"]), opinions.loc[turn])
    assert len(ratings) > 0
    assert len(bench.prompts) == 16
    assert [each.difference for each in replay(results)] == [""]
    # Its journal alone gives the run again, up to any point.
    for stop in (3, 9):
        store = f"stopped-{stop}.sqlite"
        broken = len(bench.prompts) + stop
        bench.fails = broken.__eq__
        carry_out(similar, store, slots=1)
        bench.fails = lambda n: False
        carry_out(similar, store)
        assert_same(loaded(store), results)


def test_a_stopped_sweep_leaves_no_judgement_behind(bench: Bench) -> None:
    spec = changed(JUDGED, replicates=3)
    bench.fails = lambda n: n > 10
    carry_out(spec, "stopped.sqlite", slots=2)
    arrived = len(_judgements("stopped.sqlite"))
    assert arrived == 10
    bench.fails = lambda n: False
    asked = len(bench.prompts)
    summary, _ = carry_out(spec, "stopped.sqlite")
    assert summary.complete == 3
    assert len(bench.prompts) - asked == 36 - arrived


def test_keys_tell_measurements_apart() -> None:
    async def story() -> None:
        journal = MemoryJournal()
        calls = RunCalls("run", journal, ModelClient(judge_model(Bench())), SlotPool(1))
        published = [(Turn(4, 2, 1, "review"), Message("I agree."))]
        for identity in ("aaaaaaaabb", "bbbbbbbbcc"):
            classifier, _ = _judge("1")
            await rate(classifier, CLAIM, published, calls, identity)
        assert [record.key for record in journal.records] == [
            CallKey(4, "judge.aaaaaaaa", 0),
            CallKey(4, "judge.bbbbbbbb", 0),
        ]
        assert {(record.step, record.agent, record.act) for record in journal.records} == {(2, 1, "review")}

    run_virtual(story())
