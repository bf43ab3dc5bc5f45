"""A seat: a person answers in the place of a chat model, for as long as it takes, or as long as there is."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from opinionsim.errors import ModelCallError, ScheduleError, SpecError, StoreError
from opinionsim.foundation.forms import Form
from opinionsim.llm import (
    Budget,
    Endpoint,
    Limits,
    MemoryJournal,
    Question,
    ReplayOnly,
    RetryPolicy,
    Seat,
)
from opinionsim.messages import Message, Parsing, Prompt, Reply
from opinionsim.testing import run_virtual
from tests.support.desk import PICKY, PROMPT, TURN, Client, Desk, answered, asking_again, fails
from tests.support.people import NEVER_S, Double

DAY_S = 86_400.0


class Person(Double):
    """Answers each question after its seconds; an answer that is an error is raised."""

    def __init__(self, *answers: tuple[float, str | Exception]) -> None:
        self.answers = list(answers)
        super().__init__(self._said, lambda question: self.answers[len(self.asked) - 1][0])

    def _said(self, question: Question) -> str:
        text = self.answers[len(self.asked) - 1][1]
        if isinstance(text, Exception):
            raise text
        return text


class Table(Desk):
    """A caller with a person in the seat of agent 2, and a chat model for the others."""

    def __init__(
        self,
        *answers: tuple[float, str | Exception],
        timeout_s: float | None = None,
        journal: MemoryJournal | None = None,
        client: Client | None = None,
        call_timeout_s: float = 120.0,
        **options: Any,
    ) -> None:
        self.person = Person(*answers)
        self.model = client or Client()
        endpoint = Endpoint(self.model)
        super().__init__(
            [endpoint, endpoint, Seat(self.person, timeout_s)], journal, timeout_s=call_timeout_s, **options
        )


def again(table: Table, **options: Any) -> Table:
    """The same run carried out anew, with a person who would say something else."""
    return Table((1.0, "Something else."), journal=table.journal, **options)


# -- what a person says --------------------------------------------------------------------------------------


def test_a_persons_text_is_an_entry_without_seed_tokens_or_cost() -> None:
    table = Table((90.0, "Yes."))
    assert run_virtual(table.ask(dropped=2)) == Reply("Yes.")
    (asked,) = table.person.asked
    assert replace(asked, asked_at=0.0) == Question("run-1", 7, 3, 2, "write", "reply", 0, "Write.")
    (record,) = table.journal.records
    assert record.arrived_at is not None
    assert replace(record, arrived_at=None) == answered("Yes.", dropped=2, latency_s=90.0, source="person")
    assert (table.calls.made, table.calls.answered, table.model.seeds) == (0, 0, [])


def test_what_models_say_is_an_entry_of_a_model() -> None:
    table = Table(client=Client("Yes."))
    run_virtual(table.ask(turn=replace(TURN, agent=1)))
    assert [record.source for record in table.journal.records] == ["model"]
    assert (table.calls.made, table.person.asked) == (1, [])


@pytest.mark.parametrize("text", ["Yes.", "", "  \n"])
def test_a_resumed_run_is_answered_by_the_journal_and_asks_nobody_twice(text: str) -> None:
    table = Table((5.0, text))
    said = run_virtual(table.ask())
    resumed = again(table)
    assert run_virtual(resumed.ask()) == said
    assert (resumed.person.asked, resumed.calls.answered) == ([], 1)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_person_who_writes_nothing_has_written_nothing_and_is_not_asked_again(text: str) -> None:
    table = Table((5.0, text), (5.0, "Yes."))
    assert run_virtual(table.ask(PICKY)) == Reply(text, "empty")
    (record,) = table.journal.records
    assert (record.status, record.acceptance, record.finish_reason) == ("empty", "accepted", "")
    assert len(table.person.asked) == 1


def test_a_persons_text_decides_and_is_asked_for_again_where_it_cannot_be_used() -> None:
    table = Table((60.0, "I would rather not say."), (30.0, "Yes."))
    assert run_virtual(table.ask(PICKY)) == Reply("Yes.", decision="YES.")
    assert table.attempts == [(0, "I would rather not say.", "rejected"), (1, "Yes.", "accepted")]
    assert {record.source for record in table.journal.records} == {"person"}
    assert [record.latency_s for record in table.journal.records] == [60.0, 30.0]
    resumed = again(table)
    assert run_virtual(resumed.ask(PICKY)) == Reply("Yes.", decision="YES.")
    assert resumed.person.asked == []


@pytest.mark.parametrize("after", ["stop", "none"])
def test_a_person_may_try_again_as_often_as_it_takes_and_is_told_why(after: Any) -> None:
    table = Table(*[(1.0, f"far too long {number}") for number in range(7)], (1.0, "Yes."))
    reading = PICKY._replace(attempts=2, after=after)
    assert run_virtual(table.ask(reading)) == Reply("Yes.", decision="YES.")
    assert [question.attempt for question in table.person.asked] == list(range(8))
    assert [question.reason for question in table.person.asked] == ["", *["14 letters are too many"] * 7]
    # Neither a run that goes on nor a replay, which has no seats, ends where a model's attempts would.
    for resumed in (again(table), Desk(ReplayOnly(), table.journal)):
        assert run_virtual(resumed.ask(reading)) == Reply("Yes.", decision="YES.")


def test_a_question_to_which_every_answer_is_rejected_counts_as_unanswered_in_the_end() -> None:
    table = Table(*[(1.0, "far too long")] * 99)
    assert run_virtual(table.ask(PICKY)) == Reply("", "empty")
    assert [acceptance for _, _, acceptance in table.attempts] == ["rejected"] * 20 + ["accepted"]
    assert table.journal.records[-1].finish_reason == "unusable"
    # The person is there: the next question is put.
    table.person.answers.append((1.0, "Yes."))
    table.person.answers[20] = (1.0, "Yes.")
    assert run_virtual(table.ask(PICKY, turn=replace(TURN, index=9))) == Reply("Yes.", decision="YES.")


@pytest.mark.parametrize(
    ("reading", "unfit", "reason"),
    [
        (Parsing(form=Form(words=3)), "One two three four.", "the text has 4 words; at most 3 are possible"),
        (Parsing(form=Form("choice", ("yes", "no"))), "maybe", "choose one of: yes, no"),
        (Parsing(), "x" * 101, "the text has 101 characters; at most 100 are possible"),
    ],
)
def test_an_answer_that_does_not_fit_its_form_is_asked_for_again(reading: Parsing, unfit: str, reason: str) -> None:
    table = Table((1.0, unfit), (1.0, "no"))
    table.calls.longest_prompt = 100
    assert run_virtual(table.ask(reading)) == Reply("no")
    assert [question.reason for question in table.person.asked] == ["", reason]


@pytest.mark.parametrize(("own", "of_act", "told"), [(5, None, 5), (5, 3, 3), (3, 5, 3), (None, 4, 4)])
def test_a_seat_narrows_the_words_of_a_text_and_of_nothing_else(own: Any, of_act: Any, told: int) -> None:
    seat, place = Seat(Double(), words=own), ("run", TURN, "reply", 0, Prompt.of(PROMPT))
    assert seat.question(*place, Parsing(form=Form(words=of_act))).form.words == told
    choice = Form("choice", ("a", "b"))
    assert seat.question(*place, Parsing(form=choice)).form == choice


def test_a_person_is_shown_the_messages_and_the_form_and_no_system_message() -> None:
    shown = (Message("Trams!", "Ann", 1, turn=3), Message("From outside."))
    form = Form("ranking", ("A", "B"), ("Trams!", "Buses!"))
    table = Table((1.0, "B > A"))
    run_virtual(table.ask(Parsing(received=shown, form=form)))
    (asked,) = table.person.asked
    assert (asked.messages, asked.form, asked.text) == (shown, form, "Write.")
    told = asked.as_json()
    assert (told["reads"], told["outside"]) == ([3], [["", "From outside."]])
    assert Form.of_json(told["form"]) == form


def test_a_parse_that_breaks_keeps_what_the_person_wrote() -> None:
    table = Table((1.0, "seven"))
    fails(
        table,
        ScheduleError,
        r"turn 7, agent 2 \(write\), call 'reply': parse failed with ValueError",
        Parsing(lambda _, text, __: int(text)),
    )
    assert table.attempts == [(0, "seven", "unparsed")]
    mended = again(table)
    assert run_virtual(mended.ask(Parsing(lambda call, text, received: len(text)))) == Reply("seven", decision=5)
    assert mended.person.asked == []


# -- time ----------------------------------------------------------------------------------------------------


def test_an_answer_within_the_time_is_taken() -> None:
    assert run_virtual(Table((59.0, "Yes."), timeout_s=60.0).ask()) == Reply("Yes.")


def test_an_answer_that_comes_late_is_not_taken_and_the_message_stays_empty() -> None:
    table = Table((61.0, "Yes."), timeout_s=60.0)

    async def story() -> tuple[Reply, float]:
        reply = await table.ask()
        return reply, asyncio.get_running_loop().time()

    assert run_virtual(story()) == (Reply("", "empty"), 60.0)
    (record,) = table.journal.records
    assert (record.text, record.status, record.finish_reason) == ("", "empty", "timeout")
    assert (record.acceptance, record.source, record.latency_s) == ("accepted", "person", 60.0)
    assert table.person.left == 1


def test_a_question_whose_time_is_over_is_never_asked_again() -> None:
    """Neither at once, whatever the act demands, nor when the run is carried out anew."""
    table = Table((61.0, "Yes."), (1.0, "Yes."), timeout_s=60.0)
    assert run_virtual(table.ask(PICKY)) == Reply("", "empty")
    assert len(table.person.asked) == 1
    for timeout_s in (60.0, None):
        resumed = again(table, timeout_s=timeout_s)
        assert run_virtual(resumed.ask(PICKY)) == Reply("", "empty")
        assert resumed.person.asked == []
    # Nor by a chat model that takes the seat, although it asks again for what is empty.
    policy = asking_again(3)
    model = Client()
    assert run_virtual(Desk([Endpoint(model, replies=policy)] * 3, table.journal).ask(PICKY)) == Reply("", "empty")
    assert model.seeds == []


def test_every_attempt_has_the_whole_time() -> None:
    table = Table((50.0, "I would rather not say."), (50.0, "Yes."), timeout_s=60.0)
    assert run_virtual(table.ask(PICKY)) == Reply("Yes.", decision="YES.")
    late = Table((50.0, "I would rather not say."), (61.0, "Yes."), timeout_s=60.0)
    assert run_virtual(late.ask(PICKY)) == Reply("", "empty")
    assert late.attempts == [(0, "I would rather not say.", "rejected"), (1, "", "accepted")]


def test_the_time_out_of_calls_is_not_that_of_a_seat() -> None:
    table = Table((30 * DAY_S, "Yes."), call_timeout_s=2.5, retry=RetryPolicy(transient=0))
    assert run_virtual(table.ask()) == Reply("Yes.")


def test_without_a_time_out_a_seat_waits_until_the_run_is_stopped() -> None:
    table = Table((NEVER_S, ""))

    async def story() -> None:
        asking = asyncio.create_task(table.ask())
        await asyncio.sleep(10 * DAY_S)
        assert not asking.done()
        table.calls.stop()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.get_running_loop().time() == 10 * DAY_S

    run_virtual(story())
    assert table.journal.records == []
    assert table.person.left == 1
    # Whoever carries the run out anew puts the question once more.
    resumed = again(table)
    assert run_virtual(resumed.ask()) == Reply("Something else.")


def test_a_stopped_run_puts_no_question_to_a_person() -> None:
    table = Table((1.0, "Yes."))
    table.calls.stop()

    async def story() -> None:
        with pytest.raises(asyncio.CancelledError):
            await table.ask()

    run_virtual(story())
    assert (table.person.asked, table.journal.records) == ([], [])


def test_who_asks_may_be_cancelled_and_leaves_nobody_waiting() -> None:
    table = Table((NEVER_S, ""))

    async def story() -> None:
        asking = asyncio.create_task(table.ask())
        await asyncio.sleep(1.0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(story())
    assert (table.person.left, table.journal.records) == (1, [])


def several(table: Table, indices: range, reading: Parsing = Parsing()) -> list[Reply]:  # noqa: B008 - a constant
    """The replies to questions of one turn after the other."""

    async def story() -> list[Reply]:
        return [await table.ask(reading, turn=replace(TURN, index=index)) for index in indices]

    return run_virtual(story())


LATE, SILENT = (61.0, "Late."), Reply("", "empty")


def test_two_questions_running_without_an_answer_vacate_the_seat() -> None:
    table = Table((1.0, "Yes."), LATE, (1.0, "Yes."), LATE, LATE, timeout_s=60.0)
    assert several(table, range(8)) == [Reply("Yes."), SILENT, Reply("Yes."), *[SILENT] * 5]
    assert table.person.turns == [0, 1, 2, 3, 4]
    reasons = [record.finish_reason for record in table.journal.records]
    assert reasons == ["", "timeout", "", "timeout", "timeout", *["vacated"] * 3]
    assert {record.source for record in table.journal.records} == {"person"}


def test_what_vacates_a_seat_is_the_same_after_a_kill_at_any_entry() -> None:
    def table(journal: MemoryJournal | None = None) -> Table:
        return Table(*[(90.0, "Late.")] * 9, timeout_s=60.0, journal=journal)

    whole = table()
    expected = several(whole, range(5))
    keys = [(record.key, record.finish_reason) for record in whole.journal.records]
    for length in range(len(keys) + 1):
        resumed = table(MemoryJournal(whole.journal.records[:length]))
        assert several(resumed, range(5)) == expected
        assert [(record.key, record.finish_reason) for record in resumed.journal.records] == keys
        assert resumed.person.turns == [0, 1][length:]
        # The record says that nobody is there, also to a run without a time limit.
        if length >= 2:
            assert several(Table(journal=resumed.journal), range(7)) == [SILENT] * 7


def test_signals_are_given_without_a_limit_and_say_nothing_of_who_is_there() -> None:
    signal = Parsing(form=Form("signal", optional=True))
    table = Table(LATE, (900.0, ""), LATE, (1.0, "pause"), timeout_s=60.0)

    async def story() -> list[Reply]:
        asked = [(0, Parsing()), (1, signal), (2, Parsing()), (3, signal), (4, Parsing())]
        return [await table.ask(reading, turn=replace(TURN, index=index)) for index, reading in asked]

    # Nothing is what a signal may say; a question that runs out of time has no answer.
    assert run_virtual(story()) == [SILENT, Reply("", "answered"), SILENT, SILENT, SILENT]
    assert table.person.turns == [0, 1, 2]
    reasons = [record.finish_reason for record in table.journal.records]
    assert reasons == ["timeout", "", "timeout", "vacated", "vacated"]
    assert [question.timeout_s for question in table.person.asked] == [60.0, None, 60.0]


# -- waits ---------------------------------------------------------------------------------------------------


class Keeping(MemoryJournal):
    """A journal that notes waits, and may fail to keep them."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.waits: list[Question] = []
        self.error = error

    async def wait_for(self, question: Question) -> None:
        await asyncio.sleep(1.0)
        if self.error is not None:
            raise self.error
        self.waits.append(question)


def test_a_wait_is_on_record_before_the_person_is_asked() -> None:
    journal = Keeping()
    table = Table((1.0, "far too long"), (1.0, "Yes."), journal=journal, timeout_s=60.0)
    run_virtual(table.ask(PICKY))
    assert journal.waits == table.person.asked
    assert [(each.attempt, each.reason, each.deadline) for each in journal.waits] == [
        (attempt, reason, journal.waits[attempt].asked_at + 60.0)
        for attempt, reason in enumerate(["", "12 letters are too many"])
    ]


def test_nobody_is_asked_while_the_wait_cannot_be_kept() -> None:
    table = Table((1.0, "Yes."), journal=Keeping(StoreError("the disk is full")))
    fails(table, StoreError, "^the disk is full$")
    assert table.person.asked == []


def test_signals_are_no_waits() -> None:
    journal = Keeping()
    table = Table((0.0, "pause"), journal=journal)
    assert run_virtual(table.ask(Parsing(form=Form("signal")))) == Reply("pause")
    assert journal.waits == []


# -- what a person does not take -----------------------------------------------------------------------------


def test_a_person_who_thinks_takes_no_slot() -> None:
    table = Table((100.0, "Yes."), client=Client("No."), slots=1)

    async def story() -> None:
        thinking = asyncio.create_task(table.ask())
        await asyncio.sleep(10.0)
        assert table.slots.in_flight == 0
        assert await table.ask(turn=replace(TURN, index=8, agent=0)) == Reply("No.")
        assert asyncio.get_running_loop().time() == 11.0
        assert await thinking == Reply("Yes.")

    run_virtual(story())
    assert [record.source for record in table.journal.records] == ["model", "person"]


def test_a_person_may_answer_while_all_slots_are_taken() -> None:
    table = Table((1.0, "Yes."), client=Client("No.", latency=50.0), slots=1)

    async def story() -> None:
        model = asyncio.create_task(table.ask(turn=replace(TURN, index=8, agent=0)))
        await asyncio.sleep(1.0)
        assert table.slots.in_flight == 1
        assert await table.ask() == Reply("Yes.")
        assert asyncio.get_running_loop().time() == 2.0
        await model

    run_virtual(story())


def test_a_persons_answer_takes_nothing_of_the_budget() -> None:
    budget = Budget(Limits(calls=0, tokens=0, money=0.0))
    table = Table((1.0, "Yes."), budget=budget)
    assert run_virtual(table.ask()) == Reply("Yes.")
    assert budget.paid.calls == budget.paid.tokens == budget.paid.money == 0
    tokens = [(record.input_tokens, record.output_tokens, record.cost) for record in table.journal.records]
    assert tokens == [(None, None, None)]


# -- when it fails -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("the page is gone"), "RuntimeError: the page is gone"),
        (TimeoutError("the socket is slow"), "TimeoutError: the socket is slow"),
    ],
)
@pytest.mark.parametrize("timeout_s", [None, 60.0])
def test_a_seat_that_fails_names_run_step_and_agent(error: Exception, words: str, timeout_s: float | None) -> None:
    table = Table((1.0, error), timeout_s=timeout_s)
    fails(table, ModelCallError, rf"^run run-1, step 3, turn 7, agent 2 \(write\): the seat failed with {words}$")
    assert table.journal.records == []
    resumed = again(table)
    assert run_virtual(resumed.ask()) == Reply("Something else.")


@pytest.mark.parametrize("error", [StoreError("the disk is full"), SpecError("no such page")])
def test_an_error_of_our_own_reaches_the_run_in_its_own_words(error: Exception) -> None:
    fails(Table((1.0, error)), type(error), f"^{error}$")


@pytest.mark.parametrize("person", [None, "Ann", object()])
def test_nobody_can_take_no_seat(person: Any) -> None:
    with pytest.raises(SpecError, match=f"needs a person, .*got {type(person).__name__}$"):
        Seat(person)


@pytest.mark.parametrize("evidence", ["", "equation", "people", None])
def test_a_person_states_what_its_answers_are_evidence_of(evidence: Any) -> None:
    with pytest.raises(SpecError, match=r"Double\.evidence must be one of human, scripted, model; got"):
        Seat(Double(evidence=evidence))


@pytest.mark.parametrize("timeout_s", [0, 0.0, -1.0, math.nan])
def test_a_time_must_be_above_nothing(timeout_s: float) -> None:
    with pytest.raises(SpecError, match="timeout_s of a seat must be above 0 seconds or None; got"):
        Seat(Double(), timeout_s)
