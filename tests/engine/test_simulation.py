from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from pydantic import PrivateAttr

from opinionsim.assembly import assemble
from opinionsim.classifiers import ChatClassifier, items_of, load_classifier
from opinionsim.engine import Casting, Simulation, TurnResult
from opinionsim.errors import JournalMismatch, ModelCallError, ScheduleError, SpecError, StoreError
from opinionsim.llm import Endpoint, Entry, EntryKey, MemoryJournal, ModelClient, ReplayOnly, RunCalls, SlotPool
from opinionsim.measurement import Instrument, Measuring, Queues, Reading, Text
from opinionsim.messages import ChatMessage, ReplyStatus, text_id
from opinionsim.personas import Population
from opinionsim.schedules import GivenDyads, Turn
from opinionsim.specification import load_experiment
from opinionsim.testing import run_virtual
from opinionsim.topics import Claim
from tests.support.desk import AT_ONCE
from tests.support.judge import Bench, JudgeModel
from tests.support.running import SMALL, Watch, changed, watched

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
    executor: ThreadPoolExecutor | None = None,
    **values: Any,
) -> tuple[Simulation, Watch]:
    planned = (experiment := load_experiment(changed(SMALL, **values))).runs[0]
    model, watch = watched(latency=lambda seed: 0.1 + seed % 3)
    journal = MemoryJournal() if journal is None else journal
    calls = RunCalls(planned.run_id, journal, client or ModelClient(model), SlotPool(slots))
    parts = assemble(planned, experiment.resources)
    kinds = next((each.kinds for each in planned.cell.instruments), frozenset())
    instruments = [] if classifier is None else [Instrument.of(classifier, kinds)]
    measuring = Measuring(instruments, Queues(executor), calls, parts.claim)
    return Simulation(parts.schedule, parts.cast(), calls, measuring=measuring, lookahead=parts.lookahead), watch


async def _measure(simulation: Simulation, until: int | None = None) -> None:
    """Code every text up to a step."""
    texts = [text for text in simulation.texts() if until is None or text.site.step <= until]
    await simulation.measuring.code_all(texts, simulation.text)


def _rating(simulation: Simulation, turn: int) -> Any:
    """A schedule's wait for the opinion of a turn."""
    return simulation.measuring.rating(simulation.text(turn), "stance", simulation.text, 1.0)


def _told(results: list[TurnResult]) -> list[tuple[Any, ...]]:
    return [
        (each.turn, each.message, each.act.kind, None if each.estimate is None else repr(each.estimate))
        for each in results
    ]


async def _whole(simulation: Simulation) -> list[tuple[Any, ...]]:
    await simulation.run()
    await _measure(simulation)
    return _told(simulation.results())


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
            asked = simulation.engine.graph.transcript()
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
    needs_claim, reads_context, reads_about = True, False, False

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.coded = 0

    def classify(self, items: Any) -> Any:
        self.coded += len(items)
        return LEXICON.classify(items)


def _rated(journal: MemoryJournal) -> list[Entry]:
    return [entry for entry in journal.records if entry.source == "instrument"]


def _ratings(journal: MemoryJournal) -> dict[int, float]:
    return {entry.key.turn: float(entry.text) for entry in _rated(journal)}


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
    measured = {each.turn.index: each.estimate for each in simulation.results()}
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
        simulation, _ = _simulation(
            classifier=classifier,
            executor=pool,
            client=ModelClient(watched()[0]),
            interaction={"kind": "dyadic", "steps": 1},
        )
        await simulation.run()
        both: list[Any] = [_rating(simulation, 1), _measure(simulation)]
        await asyncio.gather(*both[::-1] if measured_first else both)
        assert classifier.coded == 2
        claim = _claim()
        found = LEXICON.classify(items_of([each.message.text for each in simulation.results()], claim))
        assert [each.estimate.value for each in simulation.results()] == found.value.tolist()  # type: ignore[union-attr]

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(story(_Counting(), pool))


def _claim() -> Claim:
    experiment = load_experiment(SMALL)
    return assemble(experiment.runs[0], experiment.resources).claim


async def _two_waiting(simulation: Simulation) -> tuple[asyncio.Task[float], asyncio.Task[None]]:
    """A schedule's wait for a rating, and a wait for all measurements of step 1, of which it is one."""
    simulation.engine.start()
    await simulation.engine.wait_step(1)
    both = asyncio.ensure_future(_rating(simulation, 1)), asyncio.ensure_future(_measure(simulation, 1))
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
        await _measure(simulation)
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
        await _measure(simulation)
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
        await _measure(simulation)
        assert len(bench.prompts) == 4

    run_virtual(story())


class _Broken:
    """The lexicon by name; it must not be asked."""

    name, options, scale = LEXICON.name, LEXICON.options, LEXICON.scale
    needs_claim, reads_context, reads_about = True, False, False

    def classify(self, items: Any) -> Any:
        raise AssertionError("a rating on record was made again")


def test_ratings_on_record_are_acted_on_and_never_made_again() -> None:
    journal = MemoryJournal()
    whole = run_virtual(_whole(_simulation(journal, interaction=SIMILAR)[0]))
    assert _rated(journal)
    replayed, _ = _simulation(journal, ReplayOnly(), classifier=_Broken(), interaction=SIMILAR)
    run_virtual(replayed.run())
    assert [row[:2] for row in _told(replayed.results())] == [row[:2] for row in whole]


def test_a_rating_of_another_text_stops_the_run() -> None:
    journal = MemoryJournal()
    run_virtual(_whole(_simulation(journal, interaction=SIMILAR)[0]))
    first = _rated(journal)[0]
    forged = replace(first, prompt_hash=text_id("something else"))
    others = [entry for entry in journal.records if entry.key != first.key]
    simulation, _ = _simulation(MemoryJournal([*others, forged]), interaction=SIMILAR)
    with pytest.raises(StoreError, match=f"turn {first.key.turn}: the stored rating belongs to another text"):
        run_virtual(simulation.run())


def test_a_reply_to_another_question_stops_the_run() -> None:
    journal = MemoryJournal()
    run_virtual(_whole(_simulation(journal)[0]))
    other, watch = _simulation(journal, cognition={"world": "open"})
    with pytest.raises(JournalMismatch, match="a different question"):
        run_virtual(other.run())
    assert journal.lookup(EntryKey(0, "reply", 0)) is not None
    assert watch.asked == []


def test_measuring_in_a_thread_gives_the_same() -> None:
    def simulation(executor: ThreadPoolExecutor | None) -> Simulation:
        return _simulation(client=ModelClient(watched()[0]), executor=executor, interaction=SIMILAR)[0]

    with ThreadPoolExecutor(1) as pool:
        assert asyncio.run(_whole(simulation(pool))) == asyncio.run(_whole(simulation(None)))


def test_only_texts_that_are_to_be_coded_are() -> None:
    simulation, _ = _simulation(measurement={"texts": ["report"]})
    told = run_virtual(_whole(simulation))
    assert {(row[2], row[3] is None) for row in told} == {("post", True), ("report", False)}
    unmeasured, _ = _simulation(classifier=None)
    assert {row[3] for row in run_virtual(_whole(unmeasured))} == {None}


def _coded(*texts: Text, classifier: Any = LEXICON) -> list[Reading]:
    """What an instrument of stance says of texts of a run, by itself."""
    calls = RunCalls("run", MemoryJournal(), ReplayOnly(), SlotPool(1))
    instrument = Instrument.of(classifier, ["report"])
    measuring = Measuring([instrument], Queues(), calls, _claim())
    run_virtual(measuring.code_all(texts, lambda turn: texts[turn]))
    return [measuring.estimates[key] for key in sorted(measuring.estimates)]


def _text(turn: int, text: str, status: ReplyStatus = "answered") -> Text:
    return Text(Turn(turn, 1, 0, "report"), "report", text, status)


def test_an_estimate_is_what_the_classifier_says() -> None:
    texts = ["I am sure that Theory XYZ is true.", "I do not want to talk about it.", "Theory XYZ is false."]
    found = LEXICON.classify(items_of(texts, _claim()))
    estimates = _coded(*(_text(turn, text) for turn, text in enumerate(texts)))
    np.testing.assert_array_equal([each.value for each in estimates], found.value)
    np.testing.assert_array_equal([each.probabilities for each in estimates], found.probabilities)
    np.testing.assert_array_equal([each.off_scale for each in estimates], found.off_scale)


def test_equal_texts_are_coded_once_by_a_classifier_that_computes() -> None:
    counting = _Counting()
    estimates = _coded(*(_text(turn, "Theory XYZ is false.") for turn in range(5)), classifier=counting)
    assert counting.coded == 1
    assert len(set(estimates)) == 1
    assert len(estimates) == 5


def test_a_text_that_was_cut_off_is_coded_as_it_stands() -> None:
    text = "I am sure that Theory XYZ is true."
    told, cut_off = _coded(_text(0, text), _text(1, text, "truncated"))
    assert told == cut_off
    assert told.value > 0


@pytest.mark.parametrize("status", ["refused", "empty"])
def test_what_is_no_answer_is_missing_whatever_it_says(status: ReplyStatus) -> None:
    text = "I am sure that Theory XYZ is true."
    told, missing = _coded(_text(0, text), _text(1, text, status))
    assert told.value > 0
    assert math.isnan(missing.value)
    assert all(map(math.isnan, missing.probabilities))
    assert len(missing.probabilities) == 5
    assert math.isnan(missing.off_scale)


def test_a_skipped_turn_is_no_item() -> None:
    assert _coded(_text(0, "", "skipped")) == []


class _Fragile(_Counting):
    """Breaks over one text, and over every batch that holds it."""

    def classify(self, items: Any) -> Any:
        if any(item.text == "poison" for item in items):
            raise ValueError("poisoned")
        return super().classify(items)


def test_a_text_that_breaks_a_classifier_fails_its_own_run_only() -> None:
    """Two runs of a process share a queue, and a batch."""

    async def story() -> None:
        queues, fragile = Queues(), _Fragile()

        def measuring(run: str) -> Measuring:
            calls = RunCalls(run, MemoryJournal(), ReplayOnly(), SlotPool(1))
            return Measuring([Instrument.of(fragile, ["report"])], queues, calls, _claim())

        sick, sound = measuring("sick"), measuring("sound")
        bad, good = _text(0, "poison"), _text(0, "Theory XYZ is false.")
        failed, done = await asyncio.gather(
            sick.code_all([bad], lambda turn: bad), sound.code_all([good], lambda turn: good), return_exceptions=True
        )
        assert "classifier 'counting' failed with ValueError: poisoned" in str(failed)
        assert done is None
        assert [each.value < 0 for each in sound.estimates.values()] == [True]

    run_virtual(story())


def test_a_queue_is_bounded_and_ends_empty() -> None:
    """Many runs at a time bring more than the queue holds: each is answered, equal texts alike."""
    counting = _Counting()

    async def story() -> None:
        queues = Queues()
        texts = [_text(turn, f"Theory XYZ is false, I say {turn}.") for turn in range(700)]

        async def run(name: str) -> dict[Any, Reading]:
            calls = RunCalls(name, MemoryJournal(), ReplayOnly(), SlotPool(1))
            measuring = Measuring([Instrument.of(counting, ["report"])], queues, calls, _claim())
            await measuring.code_all(texts, texts.__getitem__)
            return measuring.estimates

        first, *others = await asyncio.gather(*(run(str(number)) for number in range(12)))
        assert len(first) == 700
        assert all(other == first for other in others)

    run_virtual(story())
    assert 700 <= counting.coded <= 12 * 700


@pytest.mark.parametrize("message", [AIMessage("", additional_kwargs={"refusal": "I will not."}), AIMessage("")])
def test_what_is_no_answer_is_passed_on_to_nobody_and_its_reviews_are_skipped(message: AIMessage) -> None:
    prompts = []

    class Client:
        async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
            prompts.append(list(messages))
            return message

    client = [Endpoint(Client(), replies=AT_ONCE)] * 4
    simulation, _ = _simulation(client=client, interaction={"kind": "dyadic", "steps": 12})
    told = run_virtual(_whole(simulation))
    reviews = [(each, row) for each, *_, row in told if each.act == "review"]
    assert {turn_message.status for _, turn_message, *_ in told[1::2]} == {"skipped"}
    assert {row for _, row in reviews} == {None}, "a skipped review is no item"
    assert len(prompts) == 12, "nobody is asked to review what is not there"
    # Its author remembers that it did not post, and nobody is told how it declined.
    assert not any("I will not." in each.content for prompt in prompts for each in prompt)
    memories = [each.content for prompt in prompts for each in prompt[1:-1]]
    assert memories
    assert all("you did not post anything" in memory for memory in memories)


def test_a_text_that_was_cut_off_is_shown_as_it_stands_to_its_readers_and_its_author() -> None:
    prompts = []

    class Client:
        async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
            prompts.append("".join(each.content for each in messages))
            return AIMessage("I think", response_metadata={"finish_reason": "length"})

    simulation, _ = _simulation(client=Client(), interaction={"kind": "dyadic", "steps": 3})
    told = run_virtual(_whole(simulation))
    assert all(row[3].startswith("Reading(value=nan") for row in told)
    assert "I think" not in prompts[0]
    assert sum(":\nI think\n</memory>" in prompt or "<post>\nI think\n</post>" in prompt for prompt in prompts) >= 3
    assert not any("[" in prompt for prompt in prompts)


def test_what_does_not_fit_is_refused() -> None:
    pack = load_experiment(SMALL).resources.pack("default")
    told: dict[str, Any] = {"claim": _claim(), "scale": LEXICON.scale}
    schedule = GivenDyads(4, [(0, 1)])
    with pytest.raises(SpecError, match="the schedule needs 4 agents; the population has 5"):
        Casting(population=Population.bare(5), schedule=schedule, pack=pack, **told).actors()
    adaptive, _ = _simulation(interaction=SIMILAR)
    calls = RunCalls("run", MemoryJournal(), ReplayOnly(), SlotPool(1))
    with pytest.raises(ScheduleError, match="SimilarityDyads acts on 'stance', but no instrument of the run"):
        Simulation(adaptive.schedule, adaptive.cast, calls)
    with pytest.raises(SpecError, match="4 participants and no others; the cast has 3"):
        Simulation(schedule, adaptive.cast[:3], calls)


def test_nobody_has_two_roles_and_no_two_instruments_are_one() -> None:
    simulation, _ = _simulation()

    class Moderated(GivenDyads):
        others = ("moderator",)

    schedule = Moderated(4, [(0, 1)])
    calls = RunCalls("run", MemoryJournal(), ReplayOnly(), SlotPool(1))
    cast = simulation.cast
    for twin in (cast[1].actor, object()):
        moderator = replace(cast[1], actor=twin, role="moderator")
        with pytest.raises(SpecError, match=r"member 4 \(moderator\) is also the participant 1"):
            Simulation(schedule, [*cast, moderator], calls)
    with pytest.raises(SpecError, match="member 4 must have the role moderator; got analyst"):
        Simulation(schedule, [*cast, replace(cast[1], actor=object(), role="analyst", name="")], calls)
    twice = [Instrument.of(LEXICON, ["report"]), Instrument.of(LEXICON, ["post"])]
    with pytest.raises(SpecError, match="two instruments are the same: 'stance' by 'lexicon'"):
        Measuring(twice, Queues(), calls, _claim())
    with pytest.raises(SpecError, match="instrument 'stance': classifier 'lexicon' needs a claim"):
        Measuring(twice[:1], Queues(), calls, None)
    with pytest.raises(SpecError, match="instrument 'civility': classifier 'lexicon' does not use the context"):
        Instrument.of(LEXICON, ["report"], "civility", context=True)
    with pytest.raises(SpecError, match="about must be 'reads'"):
        Instrument.of(LEXICON, ["report"], about="everything")
