from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from opinionsim.classifiers import ChatClassifier, Classifier, Context, Item, asks, items_of, load_classifier
from opinionsim.errors import SpecError
from opinionsim.llm import MemoryJournal, RunCalls, SlotPool
from opinionsim.messages import ChatMessage, Parsing, Reply, take_as_is
from opinionsim.opinions import OpinionScale
from opinionsim.schedules import Turn
from opinionsim.testing import ClassifierContract
from tests.support.judge import CLAIM, Bench, by_lexicon, judge_model

ITEM = Item("text", CLAIM)
_SITE = Turn(0, 0, 0, "judge")


class TestContract(ClassifierContract):
    """With a judge whose answers are a function of the text."""

    question = ""

    def classifier(self, scale: OpinionScale) -> Classifier:
        return ChatClassifier(scale, judge_model(Bench(answer=by_lexicon)), question=self.question)


class TestContractWithAQuestion(TestContract):
    question = "How civil is the tone of the text?"


def _judge(answer: str | Iterator[str] = "1", **options: Any) -> tuple[ChatClassifier, Bench]:
    given = iter(lambda: answer, None) if isinstance(answer, str) else answer
    bench = Bench(answer=lambda text: next(given))
    return ChatClassifier(model=judge_model(bench), **options), bench


# -- by itself ---------------------------------------------------------------------------------------------


def test_form_of_what_it_says() -> None:
    scale = OpinionScale.of_size(3)
    classifier = ChatClassifier(scale, judge_model(Bench(answer=lambda text: text)))
    found = classifier.classify(items_of(["1", "negative", "N", "(0)"], CLAIM))
    np.testing.assert_array_equal(found.value, [1, -1, math.nan, 0])
    np.testing.assert_array_equal(found.off_scale, [0, 0, 1, 0])
    np.testing.assert_array_equal(
        found.probabilities, [[0, 0, 1], [1, 0, 0], [math.nan, math.nan, math.nan], [0, 1, 0]]
    )
    assert classifier.classify([]).probabilities.shape == (0, 3)
    assert json.loads(json.dumps(classifier.options)) == classifier.options
    assert asks(classifier)
    assert not asks(load_classifier("lexicon"))


def test_equal_texts_are_each_asked_about() -> None:
    classifier, bench = _judge(iter(["-1", "0", "1", "2"] * 10))
    found = classifier.classify([Item("the same", CLAIM)] * 40)
    assert sorted(found.value) == sorted([-1, 0, 1, 2] * 10)
    assert len(bench.prompts) == 40


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
    np.testing.assert_equal(classifier.classify([ITEM]).value[0], value)
    assert len(bench.prompts) == len(set(bench.seeds) | {None}) - 1 + asked * (bench.seeds[0] is None) == asked
    said = (
        f"Your last answer could not be used: one of -2, -1, 0, 1, 2 is needed and nothing else; '{answers[0]}' is none"
    )
    assert all(prompt.startswith(f"{bench.prompts[0]}\n\n{said}") for prompt in bench.prompts[1:2])


def test_it_may_not_be_asked_again() -> None:
    classifier, bench = _judge("well", reask=0)
    assert math.isnan(classifier.classify([ITEM]).value[0])
    assert len(bench.prompts) == 1


def test_an_answer_cut_short_is_no_answer() -> None:
    classifier, bench = _judge("-1")
    bench.finish = "length"
    assert math.isnan(classifier.classify([ITEM]).value[0])
    # Each of three answers is asked for once more, with double the length.
    assert len(bench.prompts) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "classifier 'chat' needs a model"),
        ({"model": "scripted"}, "cannot judge"),
        ({"model": "nobody"}, "unknown model 'nobody'"),
        ({"model": "openai:x", "reask": -1}, "reask must be a whole number"),
        ({"model": "openai:x", "max_tokens": 0}, "max_tokens must be a whole number"),
        ({"mdoel": "openai:x"}, "unknown option 'mdoel'"),
        ({"model": "openai:x", "question": " "}, "question must be text; got ' '"),
        ({"model": "openai:x", "question": None}, "question must be text; got None"),
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
        "wording": 4,
    }
    assert (classifier.endpoint.networked, classifier.endpoint.max_tokens) == (True, 16)
    assert (classifier.needs_claim, classifier.reads_context, classifier.reads_about) == (True, True, True)


# -- a question of one's own -------------------------------------------------------------------------------


def test_a_question_needs_no_claim_and_is_among_the_options() -> None:
    question = "How civil is the tone of {the} text?"
    classifier, bench = _judge(question=f"{question}\n")
    assert not classifier.needs_claim
    assert classifier.options == {**_judge()[0].options, "question": question}
    assert classifier.classify([Item("Nonsense!"), Item("Nonsense!", CLAIM)]).value.tolist() == [1, 1]
    without, with_claim = bench.prompts
    assert question in without
    assert question in with_claim
    assert (CLAIM.text in without, CLAIM.text in with_claim) == (False, True)


def test_what_it_is_given_reaches_the_judge() -> None:
    classifier, bench = _judge()
    context = Context(("They say it is.",), (("name", "Ann"), ("trade", "baker")), -2.0)
    classifier.classify([Item("I doubt it.", CLAIM, "It is {flat}.", context)])
    (prompt,) = bench.prompts
    for part in ("They say it is.", "name: Ann\ntrade: baker", "strongly negative\nopinion>>>", "It is {flat}."):
        assert part in prompt


# -- the way it asks ---------------------------------------------------------------------------------------


def _rated(classifier: ChatClassifier, item: Item, answers: list[Reply]) -> tuple[float, list[tuple[str, Any]]]:
    """What it makes of answers, and the calls it made with the way each was to be read."""
    asked: list[tuple[str, Any]] = []

    async def ask(call: str, messages: Iterable[ChatMessage], *, parse: Any = None, dropped: int = 0) -> Reply:
        asked.append((call, parse))
        return answers[len(asked) - 1]

    found = asyncio.run(classifier.rate(ask, item))
    assert len(found) == 1
    return float(found.value[0]), asked


def test_it_reads_its_answers_itself() -> None:
    classifier, _ = _judge()
    replies = [Reply("well"), Reply("", "refused"), Reply("-2")]
    value, asked = _rated(classifier, ITEM, replies)
    assert value == -2
    assert asked == [("judge", take_as_is), ("judge.2", take_as_is), ("judge.3", take_as_is)]


def test_one_item_without_a_claim_is_refused_before_it_is_asked_about() -> None:
    classifier, _ = _judge()
    with pytest.raises(SpecError, match="classifier 'chat' needs a claim, but there is none for the text 'text'"):
        _rated(classifier, Item("text"), [])
    other, _ = _judge(question="How civil is it?")
    assert _rated(other, Item("text"), [Reply("0")])[0] == 0


def test_answers_are_calls_that_are_kept_as_they_are() -> None:
    classifier, _ = _judge(iter(["well", "-1"]))
    journal = MemoryJournal()
    calls = RunCalls("run", journal, [classifier.endpoint], SlotPool(1))

    async def story() -> float:
        def ask(call: str, messages: Iterable[ChatMessage], *, parse: Any = None, dropped: int = 0) -> Any:
            return calls.ask(_SITE, call, messages, reading=Parsing(parse), dropped=dropped)

        return float((await classifier.rate(ask, ITEM)).value[0])

    assert asyncio.run(story()) == -1
    assert [(entry.key.call, entry.text, entry.acceptance) for entry in journal.records] == [
        ("judge", "well", "accepted"),
        ("judge.2", "-1", "accepted"),
    ]
