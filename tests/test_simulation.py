from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr

from opinionsim.classifiers import ChatClassifier, load_classifier
from opinionsim.errors import JournalMismatch, ModelCallError, SpecError, StoreError
from opinionsim.experiments import assemble, load_experiment
from opinionsim.llm import CallKey, MemoryJournal, ModelClient, ReplayOnly, RunCalls, SlotPool
from opinionsim.messages import ChatMessage, Condition, Message, text_id
from opinionsim.simulation import Cognition, Happening, Simulation, measure
from opinionsim.testing import run_virtual
from tests._running import SMALL, Watch, changed, watched
from tests.classifiers._judge import Bench, JudgeModel

LEXICON = load_classifier("lexicon")
SIMILAR = {"kind": "similarity", "steps": 8, "strength": 2.0}
#: Ways of meeting in which whole steps go by without a turn, the first and the last among them.
BOUNDED = {"kind": "bounded-confidence", "steps": 24, "confidence": 1.0}
REWIRING = {"kind": "rewiring", "steps": 24, "tolerance": 1.0, "network": "ring"}
FEED = {"kind": "feed", "steps": 6, "posts": 2}


def _simulation(
    journal: MemoryJournal | None = None,
    client: Any = None,
    *,
    slots: int = 64,
    classifier: Any = LEXICON,
    **values: Any,
) -> tuple[Simulation, Watch]:
    planned = (experiment := load_experiment(changed(SMALL, **values))).runs[0]
    model, watch = watched(latency=lambda seed: 0.1 + seed % 3)
    journal = MemoryJournal() if journal is None else journal
    calls = RunCalls(planned.run_id, journal, client or ModelClient(model), SlotPool(slots))
    return assemble(planned, experiment.resources).simulation(calls, classifier), watch


def _told(happenings: list[Happening]) -> list[tuple[Any, ...]]:
    return [
        (each.turn, each.message, each.kind, None if each.estimate is None else repr(each.estimate))
        for each in happenings
    ]


async def _whole(simulation: Simulation) -> list[tuple[Any, ...]]:
    await simulation.run()
    await simulation.measure()
    return _told(simulation.happenings())


async def _stepwise(simulation: Simulation) -> list[tuple[Any, ...]]:
    simulation.engine.start()
    told = []
    for step in range(simulation.schedule.steps + 1):
        happened = await simulation.commit(step)
        assert {each.turn.step for each in happened} <= {step}
        told += _told(happened)
    await simulation.engine.wait()
    return told


@pytest.mark.parametrize("lookahead", [None, 0, 2])
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"interaction": SIMILAR},
        {"interaction": BOUNDED},
        {"interaction": REWIRING},
        {"interaction": FEED},
        {"cognition": {"memory": "reflective"}, "measurement": {"probe": {"before": 1, "after": 1}}},
    ],
    ids=["dyadic", "similarity", "bounded", "rewiring", "feed", "reflective"],
)
def test_steps_add_up_to_the_whole(values: dict[str, Any], lookahead: int | None) -> None:
    whole = run_virtual(_whole(_simulation(slots=1, **values)[0]))
    stepped = run_virtual(_stepwise(_simulation(execution={"lookahead": lookahead}, **values)[0]))
    assert stepped == whole
    assert len(whole) >= 12


@pytest.mark.parametrize("lookahead", [0, 1, 3])
@pytest.mark.parametrize("interaction", [{"kind": "dyadic", "steps": 8}, SIMILAR], ids=["dyadic", "similarity"])
def test_lookahead_bounds_what_is_asked_beyond_the_step(interaction: dict[str, Any], lookahead: int) -> None:
    async def story() -> None:
        simulation, watch = _simulation(interaction=interaction, execution={"lookahead": lookahead})
        simulation.engine.start()
        for step in range(1, simulation.schedule.steps + 1):
            await simulation.commit(step)
            await asyncio.sleep(1000)
            asked = simulation.engine.transcript()
            assert max(turn.step for turn, _ in asked) == min(step + lookahead, simulation.schedule.steps)
            assert len(watch.asked) == 2 * min(step + lookahead, simulation.schedule.steps)

    run_virtual(story())


def test_a_failed_call_leaves_no_reply_behind_under_any_lookahead() -> None:
    async def story(lookahead: int | None) -> None:
        journal = MemoryJournal()
        model, watch = watched(latency=lambda seed: 1.0 + seed % 50, fails=lambda number: number == 2)
        simulation, _ = _simulation(
            journal,
            ModelClient(model),
            population={"size": 9},
            interaction__steps=30,
            execution={"lookahead": lookahead},
        )
        with pytest.raises(ModelCallError, match="agent"):
            await simulation.run()
        assert len(asyncio.all_tasks()) == 1
        assert sorted(record.seed or 0 for record in journal.records) == sorted(watch.answered)
        assert len(watch.answered) == len(watch.asked) - 1

    for lookahead in (None, 0, 4):
        run_virtual(story(lookahead))


def test_cancelling_a_run_leaves_nothing_running() -> None:
    async def story() -> None:
        simulation, watch = _simulation(interaction=SIMILAR)
        running = asyncio.ensure_future(simulation.run())
        await asyncio.sleep(2.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(asyncio.all_tasks()) == 1
        assert len(watch.asked) < 16

    run_virtual(story())


# -- texts that two wait for -----------------------------------------------------------------------------------


class _SlowJudge(JudgeModel):
    """Answers after a second, as it pleases."""

    _pleases: np.random.Generator = PrivateAttr(default_factory=lambda: np.random.default_rng(7))
    _asked: int = PrivateAttr(default=0)

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        self._asked += 1
        await asyncio.sleep(1.0 + self._pleases.integers(3))
        return await super()._agenerate(*args, **kwargs)


def _slow_judge() -> tuple[ChatClassifier, Bench, _SlowJudge]:
    """Asked the same twice, it would hardly say the same."""
    model, bench = _SlowJudge(), Bench()
    bench.answer = lambda text: str(model._pleases.integers(-2, 3))
    model._bench = bench
    return ChatClassifier(model=model), bench, model


class _Counting:
    """The lexicon, with a count of the texts it codes."""

    name, scale = "counting", LEXICON.scale

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.coded = 0

    def classify(self, claims: Any, texts: Any) -> Any:
        self.coded += len(texts)
        return LEXICON.classify(claims, texts)


def _ratings(journal: MemoryJournal) -> dict[int, float]:
    return {record.key.turn: float(record.text) for record in journal.records if record.outcome == "rating"}


@pytest.mark.parametrize("lookahead", [None, 0, 3])
def test_a_judge_is_asked_once_by_whoever_waits_for_its_answer(lookahead: int | None) -> None:
    judge, bench, model = _slow_judge()
    journal = MemoryJournal()
    # On a ring the draw for a step needs few of the opinions, so that a step is measured while others are rated.
    adaptive: Any = {
        "population": {"size": 10},
        "interaction": {"kind": "similarity", "steps": 40, "strength": 1.0, "network": "ring"},
        "execution": {"lookahead": lookahead},
    }
    simulation, _ = _simulation(journal, classifier=judge, **adaptive)
    told = run_virtual(_stepwise(simulation))
    assert model._asked == len(bench.prompts) == len(told) == 80
    measured = {each.turn.index: each.estimate for each in simulation.happenings()}
    ratings = _ratings(journal)
    assert len(ratings) > 10
    assert ratings == {turn: measured[turn].value for turn in ratings}  # type: ignore[union-attr]
    # Its journal gives all of it again.
    again, _ = _simulation(journal, ReplayOnly(), classifier=judge, **adaptive)
    assert run_virtual(_whole(again)) == told
    assert model._asked == 80


@pytest.mark.parametrize("measured_first", [False, True])
def test_a_text_that_two_wait_for_is_coded_once(measured_first: bool) -> None:
    async def story(classifier: _Counting, pool: ThreadPoolExecutor) -> None:
        planned = (experiment := load_experiment(changed(SMALL, interaction={"kind": "dyadic", "steps": 1}))).runs[0]
        calls = RunCalls(planned.run_id, MemoryJournal(), ModelClient(watched()[0]), SlotPool(4))
        simulation = assemble(planned, experiment.resources).simulation(calls, classifier, pool)
        await simulation.run()
        turn, message = list(simulation.engine.transcript())[-1]
        both: list[Any] = [simulation._rate(turn, message), simulation.measure()]
        await asyncio.gather(*both[::-1] if measured_first else both)
        assert classifier.coded == 2
        assert [each.estimate for each in simulation.happenings()] == measure(
            LEXICON, simulation.claim, [each.message for each in simulation.happenings()]
        )

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(story(_Counting(), pool))


async def _two_waiting(simulation: Simulation) -> tuple[asyncio.Task[float], asyncio.Task[None]]:
    """A schedule's wait for a rating, and a wait for all measurements of step 1, of which it is one."""
    simulation.engine.start()
    await simulation.engine.wait_step(1)
    turn, message = list(simulation.engine.transcript(0, 1))[-1]
    both = asyncio.ensure_future(simulation._rate(turn, message)), asyncio.ensure_future(simulation.measure(1))
    await asyncio.sleep(0.5)
    return both


async def _dies(task: asyncio.Task[Any], error: type[BaseException]) -> None:
    with pytest.raises(error):
        await task


@pytest.mark.parametrize("first", [0, 1])
def test_one_that_gives_up_leaves_the_question_to_the_other(first: int) -> None:
    async def story() -> None:
        judge, bench, model = _slow_judge()
        simulation, _ = _simulation(classifier=judge, interaction={"kind": "dyadic", "steps": 1})
        both = await _two_waiting(simulation)
        both[first].cancel()
        await _dies(both[first], asyncio.CancelledError)
        await both[1 - first]
        await simulation.measure()
        # The first text is asked about again where nobody waited for it any more.
        assert (model._asked, len(bench.prompts)) == (2 + first, 2)
        assert len(asyncio.all_tasks()) == 1

    run_virtual(story())


def test_a_question_nobody_waits_for_ends_and_can_be_asked_again() -> None:
    async def story() -> None:
        judge, bench, model = _slow_judge()
        simulation, _ = _simulation(classifier=judge, interaction={"kind": "dyadic", "steps": 1})
        both = await _two_waiting(simulation)
        for task in both:
            task.cancel()
        for task in both:
            await _dies(task, asyncio.CancelledError)
        assert (model._asked, len(bench.prompts), len(asyncio.all_tasks())) == (2, 0, 1)
        await simulation.measure()
        assert (model._asked, len(bench.prompts)) == (4, 2)

    run_virtual(story())


def test_a_judge_that_fails_fails_for_all_who_wait() -> None:
    async def story() -> None:
        judge, bench, _ = _slow_judge()
        bench.fails = lambda number: number <= 2
        simulation, _ = _simulation(classifier=judge, interaction={"kind": "dyadic", "steps": 1})
        for task in await _two_waiting(simulation):
            await _dies(task, ModelCallError)
        assert (len(bench.prompts), len(asyncio.all_tasks())) == (2, 1)
        await simulation.measure()
        assert len(bench.prompts) == 4

    run_virtual(story())


class _Broken:
    """An instrument that must not be asked."""

    name, options, scale = "broken", {}, LEXICON.scale

    def classify(self, claims: Any, texts: Any) -> Any:
        raise AssertionError("a rating on record was made again")


def test_ratings_on_record_are_acted_on_and_never_made_again() -> None:
    journal = MemoryJournal()
    whole = run_virtual(_whole(_simulation(journal, interaction=SIMILAR)[0]))
    ratings = [record for record in journal.records if record.outcome == "rating"]
    assert ratings
    replayed, _ = _simulation(journal, ReplayOnly(), classifier=_Broken(), interaction=SIMILAR)
    run_virtual(replayed.run())
    assert [row[:2] for row in _told(replayed.happenings())] == [row[:2] for row in whole]


def test_a_rating_of_another_text_stops_the_run() -> None:
    journal = MemoryJournal()
    run_virtual(_whole(_simulation(journal, interaction=SIMILAR)[0]))
    first = next(record for record in journal.records if record.outcome == "rating")
    journal._records[first.key] = type(first)(
        first.key, first.step, first.agent, first.act, text_id("something else"), first.text, outcome="rating"
    )
    simulation, _ = _simulation(journal, interaction=SIMILAR)
    with pytest.raises(StoreError, match=f"turn {first.key.turn}: the stored rating is of another text"):
        run_virtual(simulation.run())


def test_a_reply_to_another_question_stops_the_run() -> None:
    journal = MemoryJournal()
    run_virtual(_whole(_simulation(journal)[0]))
    other, watch = _simulation(journal, cognition={"world": "open"})
    with pytest.raises(JournalMismatch, match="another question"):
        run_virtual(other.run())
    assert journal.lookup(CallKey(0, "reply", 0)) is not None
    assert watch.asked == []


def test_measuring_in_a_thread_gives_the_same() -> None:
    planned = (experiment := load_experiment(changed(SMALL, interaction=SIMILAR))).runs[0]
    parts = assemble(planned, experiment.resources)

    def simulation(executor: ThreadPoolExecutor | None) -> Simulation:
        calls = RunCalls(planned.run_id, MemoryJournal(), ModelClient(watched()[0]), SlotPool(4))
        return parts.simulation(calls, LEXICON, executor)

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(_whole(simulation(pool))) == asyncio.run(_whole(simulation(None)))


def test_only_texts_that_are_to_be_coded_are() -> None:
    simulation, _ = _simulation(measurement={"texts": ["report"]})
    told = run_virtual(_whole(simulation))
    assert {(row[2], row[3] is None) for row in told} == {("post", True), ("report", False)}
    unmeasured, _ = _simulation(classifier=None)
    assert {row[3] for row in run_virtual(_whole(unmeasured))} == {None}


def test_an_estimate_is_what_the_classifier_says() -> None:
    claim = _simulation()[0].claim
    texts = ["I am sure that Theory XYZ is true.", "I do not want to talk about it.", "Theory XYZ is false."]
    found = LEXICON.classify([claim] * 3, texts)
    estimates = measure(LEXICON, claim, list(map(Message, texts)))
    np.testing.assert_array_equal([each.value for each in estimates], found.value)
    np.testing.assert_array_equal([each.probabilities for each in estimates], found.probabilities)
    np.testing.assert_array_equal([each.off_scale for each in estimates], found.off_scale)
    assert measure(LEXICON, claim, []) == []


@pytest.mark.parametrize("condition", ["refused", "empty", "truncated"])
def test_what_is_no_answer_is_missing_whatever_it_says(condition: Condition) -> None:
    claim = _simulation()[0].claim
    text = "I am sure that Theory XYZ is true."
    told, missing = measure(LEXICON, claim, [Message(text), Message(text, condition=condition)])
    assert told.value > 0
    assert math.isnan(missing.value)
    assert all(map(math.isnan, missing.probabilities))
    assert len(missing.probabilities) == 5
    assert math.isnan(missing.off_scale)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (AIMessage("", additional_kwargs={"refusal": "I will not."}), "[The author declined to answer.] I will not."),
        (AIMessage(""), "[The author wrote nothing.]"),
        (AIMessage("I think", response_metadata={"finish_reason": "length"}), "I think [The text was cut off here.]"),
    ],
)
def test_what_is_no_answer_is_flagged_to_its_readers_and_its_author(message: AIMessage, shown: str) -> None:
    prompts = []

    class Client:
        async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
            prompts.append("".join(each.content for each in messages))
            return message

    simulation, _ = _simulation(client=Client(), interaction={"kind": "dyadic", "steps": 3})
    told = run_virtual(_whole(simulation))
    assert all(row[3].startswith("Estimate(value=nan") for row in told)
    # A post and what its reader said of it: the reader sees the flag, and so does whoever remembers.
    assert shown not in prompts[0]
    assert sum(shown in prompt for prompt in prompts) >= 3


def test_what_does_not_fit_is_refused() -> None:
    simulation, _ = _simulation()
    common: dict[str, Any] = {
        "claim": simulation.claim,
        "calls": simulation._calls,
        "pack": load_experiment(SMALL).resources.pack("default"),
        "scale": LEXICON.scale,
    }
    bigger = _simulation(population={"size": 5})[0].population
    with pytest.raises(SpecError, match="the schedule is for 4 agents; the population has 5"):
        Simulation(population=bigger, schedule=simulation.schedule, **common)
    adaptive = _simulation(interaction=SIMILAR)[0]
    with pytest.raises(SpecError, match="acts on opinions, so the run needs a classifier"):
        Simulation(population=adaptive.population, schedule=adaptive.schedule, **common)
    with pytest.raises(SpecError, match="memory must be one of cumulative, reflective"):
        Simulation(
            population=simulation.population, schedule=simulation.schedule, cognition=Cognition(memory="none"), **common
        )
