"""How replies are read: decisions, rejections and what comes after them, and a `parse` that breaks or changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.errors import JournalMismatch, ModelCallError, Rejected, ScheduleError
from opinionsim.foundation.streams import call_seed
from opinionsim.llm import Endpoint, MemoryJournal, ReplayOnly, RetryPolicy
from opinionsim.messages import Message, Parsing, Reply, take_as_is
from opinionsim.testing import run_virtual
from tests.support.desk import AT_ONCE, MISSING, PICKY, PROMPT, Client, Desk, asking_again, fails, short
from tests.support.examples import examples

LONG = "far too long"
LAST = PICKY._replace(after="none")
PLACE = r"^run run-1, step 3, turn 7, agent 2 \(write\)"


def number(call: str, text: str, received: tuple[Message, ...]) -> int:
    """A reply is a number; any other is an error of this function."""
    return int(text)


def lenient(call: str, text: str, received: tuple[Message, ...]) -> int | None:
    """The same, mended: what is no number decides nothing."""
    return int(text) if text.isdigit() else None


def strict(call: str, text: str, received: tuple[Message, ...]) -> int:
    """The same, mended: what is no number is asked for again."""
    if not text.isdigit():
        raise Rejected(f"{text!r} is no number")
    return int(text)


def never(call: str, text: str, received: tuple[Message, ...]) -> None:
    raise AssertionError(f"{text!r} is nothing to be parsed")


# -- decisions -----------------------------------------------------------------------------------------------


def test_a_decision_is_what_parse_makes_of_the_reply_and_again_of_the_stored_one() -> None:
    desk = Desk(Client("7"))
    assert run_virtual(desk.ask(Parsing(number))) == Reply("7", decision=7)
    assert desk.attempts == [(0, "7", "accepted")]
    again = Desk(ReplayOnly(), desk.journal)
    assert run_virtual(again.ask(Parsing(number))) == Reply("7", decision=7)
    assert (again.calls.made, again.calls.answered, len(desk.journal.records)) == (0, 1, 1)


@pytest.mark.parametrize("reading", [Parsing(), Parsing(take_as_is)])
def test_without_a_decision_every_reply_will_do(reading: Parsing) -> None:
    assert run_virtual(Desk(Client(LONG)).ask(reading)) == Reply(LONG, decision=None)


@pytest.mark.parametrize("decision", [None, False, 0, "", (), {"vote": "no"}])
def test_a_decision_may_be_anything(decision: object) -> None:
    desk = Desk(Client("Yes."))
    assert run_virtual(desk.ask(Parsing(lambda call, text, received: decision))) == Reply("Yes.", decision=decision)
    assert desk.attempts == [(0, "Yes.", "accepted")]


def test_parse_is_told_which_part_was_answered_and_what_had_been_received() -> None:
    told: list[tuple[str, str, tuple[Message, ...]]] = []
    news = Message("It rained.", "Ann", 0)
    reading = Parsing(lambda *given: told.append(given), received=(news,))
    desk = Desk(Client("Yes.", "No."))
    run_virtual(desk.ask(reading))
    run_virtual(desk.ask(reading, "reply.2"))
    assert told == [("reply", "Yes.", (news,)), ("reply.2", "No.", (news,))]
    run_virtual(Desk(ReplayOnly(), desk.journal).ask(reading, "reply.2"))
    assert told[2:] == told[1:2]


def test_each_part_is_read_as_is_said_for_it() -> None:
    """A reflection and a judge's answer, with a `parse` of their own, may be as long as they like."""
    desk = Desk(Client("Yes.", LONG, "12345678"))
    assert run_virtual(desk.ask(PICKY)) == Reply("Yes.", decision="YES.")
    assert run_virtual(desk.ask(PICKY._replace(parse=take_as_is), "reflect")) == Reply(LONG)
    assert run_virtual(desk.ask(PICKY._replace(parse=number), "judge.m1")) == Reply("12345678", decision=12345678)
    assert [record.key[1:] for record in desk.journal.records] == [("reply", 0), ("reflect", 0), ("judge.m1", 0)]


# -- rejections ----------------------------------------------------------------------------------------------


def _wrong(letters: int) -> str:
    return f"Your last answer could not be used: {letters} letters are too many. Please answer again."


def test_rejected_replies_are_attempts_with_seeds_of_their_own() -> None:
    desk = Desk(Client(LONG, "also too long", "Yes."))
    assert run_virtual(desk.ask(PICKY)) == Reply("Yes.", decision="YES.")
    assert [(r.key.attempt, r.text, r.acceptance, r.reason) for r in desk.journal.records] == [
        (0, LONG, "rejected", "12 letters are too many"),
        (1, "also too long", "rejected", "13 letters are too many"),
        (2, "Yes.", "accepted", ""),
    ]
    assert desk.client.seeds == [call_seed("run-1", 7, "reply", attempt) for attempt in range(3)]
    assert len(set(desk.client.seeds)) == 3
    first, second, third = desk.client.prompts
    assert first == PROMPT
    for prompt, letters in ((second, 12), (third, 13)):
        assert prompt[:-1] == PROMPT[:-1]
        assert prompt[-1].content == f"{PROMPT[-1].content}\n\n{_wrong(letters)}"
    assert desk.calls.made == 3


def test_no_acceptable_reply_stops_with_place_and_reason() -> None:
    desk = Desk(Client(LONG, "long as well", "the longest of all"))
    words = "none of 3 replies was acceptable; the last one: 18 letters are too many$"
    fails(desk, ModelCallError, f"{PLACE}: {words}", PICKY)
    assert [record.acceptance for record in desk.journal.records] == ["rejected"] * 3
    # Whoever carries the run out anew asks anew, as often as before.
    again = Desk(Client(LONG, "Yes."), desk.journal)
    assert run_virtual(again.ask(PICKY)) == Reply("Yes.", decision="YES.")
    assert [record.key.attempt for record in desk.journal.records] == [0, 1, 2, 3, 4]
    assert len({record.seed for record in desk.journal.records}) == 5


def test_a_run_that_is_carried_out_anew_has_as_many_attempts_as_before_and_no_more() -> None:
    desk = Desk(Client(*[LONG] * 3))
    fails(desk, ModelCallError, "none of 3 replies was acceptable", PICKY)
    broken_off = Desk(Client(LONG, LONG, ConnectionAbortedError("gone")), desk.journal, retry=RetryPolicy(transient=0))
    fails(broken_off, ModelCallError, "ConnectionAbortedError: gone", PICKY)
    again = Desk(Client("the longest of all", "Yes."), desk.journal)
    fails(again, ModelCallError, "none of 3 replies was acceptable; the last one: 18 letters", PICKY)
    assert [attempt for attempt, _, _ in desk.attempts] == [0, 1, 2, 3, 4, 5]


def test_draws_are_rejected_one_by_one() -> None:
    desk = Desk(Client(LONG, "Yes."))
    assert run_virtual(desk.ask(PICKY, "reply.2")) == Reply("Yes.", decision="YES.")
    assert [record.key for record in desk.journal.records] == [(7, "reply.2", 0), (7, "reply.2", 1)]


# -- when no reply is acceptable and the run goes on ---------------------------------------------------------


def test_the_last_reply_is_taken_without_a_decision_and_again_when_the_run_is_resumed() -> None:
    desk = Desk(Client(LONG, "long as well", "the longest of all"))
    assert run_virtual(desk.ask(LAST)) == Reply("the longest of all", decision=None)
    assert [outcome for _, _, outcome in desk.attempts] == ["rejected"] * 3
    resumed = Desk(ReplayOnly(), desk.journal)
    assert run_virtual(resumed.ask(LAST)) == Reply("the longest of all", decision=None)
    assert (resumed.calls.made, resumed.calls.answered) == (0, 3)


def test_refusals_that_are_asked_for_again_do_not_count_as_rejected_replies() -> None:
    """The act rejects twice, the policy asks again twice; whichever comes first ends it."""
    reading = LAST._replace(attempts=2)
    policy = asking_again(2)
    bad = Desk([Endpoint(Client(LONG, MISSING["refused"], MISSING["empty"], "long as well"), replies=policy)] * 3)
    assert run_virtual(bad.ask(reading)) == Reply("long as well", decision=None)
    none = Desk([Endpoint(Client(MISSING["refused"], LONG, *[MISSING["refused"]] * 2), replies=policy)] * 3)
    assert run_virtual(none.ask(reading)) == Reply("I will not.", "refused")
    for desk, last in ((bad, "rejected"), (none, "accepted")):
        assert [record.key.attempt for record in desk.journal.records] == [0, 1, 2, 3]
        assert [outcome for _, _, outcome in desk.attempts] == [*["rejected"] * 3, last]
    resumed = [Desk([Endpoint(ReplayOnly(), replies=policy)] * 3, desk.journal) for desk in (bad, none)]
    assert run_virtual(resumed[0].ask(reading)) == Reply("long as well", decision=None)
    assert run_virtual(resumed[1].ask(reading)) == Reply("I will not.", "refused")


def _told(kind: str, place: int) -> AIMessage:
    return {"good": AIMessage(f"y{place}"), "bad": AIMessage(f"{LONG} {place}"), "refused": MISSING["refused"]}[kind]


@examples(200)
@given(
    st.lists(st.sampled_from(["good", "bad", "refused"]), max_size=9),
    st.integers(1, 3),
    st.integers(0, 3),
    st.sampled_from(["stop", "none"]),
    st.data(),
)
def test_what_is_taken_and_what_it_costs_is_the_same_wherever_the_run_was_broken_off(
    kinds: list[str], attempts: int, again: int, after: Any, data: st.DataObject
) -> None:
    """Rejections and refusals are counted apart, over all attempts, stored or not."""
    replies = [_told(kind, place) for place, kind in enumerate([*kinds, "good"])]
    reading = Parsing(short, attempts=attempts, after=after)

    def desk(client: object, journal: MemoryJournal) -> Desk:
        return Desk([Endpoint(client, replies=asking_again(again))] * 3, journal)

    bad = missing = 0
    expected, n_calls = None, 0
    for place, kind in enumerate([*kinds, "good"]):
        n_calls = place + 1
        bad, missing = bad + (kind == "bad"), missing + (kind == "refused")
        if kind == "good":
            expected = Reply(f"y{place}", decision=f"Y{place}")
        elif kind == "refused" and missing > again:
            expected = Reply("I will not.", "refused")
        elif kind == "bad" and bad == attempts and after == "none":
            expected = Reply(f"{LONG} {place}")
        if expected or bad == attempts:
            break

    def found(client: object, journal: MemoryJournal) -> Reply | None:
        try:
            return run_virtual(desk(client, journal).ask(reading))
        except ModelCallError:
            return None

    whole = MemoryJournal()
    assert found(Client(*replies), whole) == expected
    assert len(whole.records) == n_calls
    kept = data.draw(st.integers(0, n_calls if expected else n_calls - 1))
    rest = Client(*replies[kept:])
    resumed = MemoryJournal(whole.records[:kept])
    assert found(rest, resumed) == expected
    assert len(rest.seeds) == n_calls - kept
    assert [record.seed for record in resumed.records] == [record.seed for record in whole.records]


# -- a parse that breaks -------------------------------------------------------------------------------------


def _unparsed(text: str = "seven") -> Desk:
    """A reply that was paid for, and that its act could not read."""
    desk = Desk(Client(text))
    words = f"ValueError: invalid literal for .*{text}.*is kept; to reject a reply, raise opinionsim.errors.Rejected"
    fails(desk, ScheduleError, rf"{PLACE}, call 'reply': parse failed with {words}", Parsing(number))
    return desk


def test_a_parse_that_breaks_loses_no_reply() -> None:
    desk = _unparsed()
    (record,) = desk.journal.records
    assert (record.text, record.acceptance, record.status) == ("seven", "unparsed", "answered")
    assert record.reason.startswith("parse failed with ValueError: invalid literal")
    assert desk.calls.made == 1


def test_the_error_of_a_parse_is_the_cause_of_the_one_that_stops_the_run() -> None:
    desk = Desk(Client("seven"))
    with pytest.raises(ScheduleError) as caught:
        run_virtual(desk.ask(Parsing(number), "reply.2"))
    assert type(caught.value.__cause__) is ValueError
    assert "call 'reply.2'" in str(caught.value)


def test_as_long_as_it_is_broken_it_stops_the_run_and_costs_nothing() -> None:
    desk = _unparsed()
    again = Desk(ReplayOnly(), desk.journal)
    fails(
        again, ScheduleError, r"turn 7, agent 2 \(write\), call 'reply': parse failed with ValueError", Parsing(number)
    )
    assert desk.attempts == [(0, "seven", "unparsed")]
    assert (again.calls.made, again.calls.answered) == (0, 1)


def test_a_mended_parse_accepts_what_was_kept() -> None:
    desk = _unparsed()
    mended = Desk(ReplayOnly(), desk.journal)
    assert run_virtual(mended.ask(Parsing(lenient))) == Reply("seven", decision=None)
    assert (mended.calls.made, mended.calls.answered) == (0, 1)


def test_a_mended_parse_that_rejects_what_was_kept_asks_the_next_attempt() -> None:
    desk = _unparsed()
    mended = Desk(Client("7"), desk.journal)
    assert run_virtual(mended.ask(Parsing(strict))) == Reply("7", decision=7)
    assert desk.attempts == [(0, "seven", "unparsed"), (1, "7", "accepted")]
    assert mended.client.seeds == [call_seed("run-1", 7, "reply", 1)]
    # From then on the journal answers all of it.
    assert run_virtual(Desk(ReplayOnly(), desk.journal).ask(Parsing(strict))) == Reply("7", decision=7)


def test_what_was_kept_counts_as_one_of_the_attempts() -> None:
    desk = _unparsed()
    last = Parsing(strict, attempts=1, after="none")
    assert run_virtual(Desk(ReplayOnly(), desk.journal).ask(last)) == Reply("seven", decision=None)
    two = Desk(Client("eight"), desk.journal)
    words = "none of 2 replies was acceptable; the last one: 'eight' is no number"
    fails(two, ModelCallError, words, last._replace(attempts=2, after="stop"))


# -- a parse that changes ------------------------------------------------------------------------------------


def test_an_accepted_reply_that_is_now_rejected_is_a_change_of_the_run() -> None:
    desk = Desk(Client("seven"))
    run_virtual(desk.ask(Parsing(lenient)))
    changed = Desk(Client("7"), desk.journal)
    words = r"a stored reply that was accepted is now rejected: 'seven' is no number\. Act 'write' .*--fresh$"
    fails(changed, JournalMismatch, f"{PLACE}: {words}", Parsing(strict))
    assert changed.client.seeds == []
    assert desk.attempts == [(0, "seven", "accepted")]


def test_an_accepted_reply_that_breaks_the_parse_stops_the_run_until_it_is_mended() -> None:
    desk = Desk(Client("seven"))
    run_virtual(desk.ask(Parsing(lenient)))
    fails(Desk(ReplayOnly(), desk.journal), ScheduleError, r"turn 7, agent 2 \(write\), call 'reply'", Parsing(number))
    assert run_virtual(Desk(ReplayOnly(), desk.journal).ask(Parsing(lenient))) == Reply("seven")


def test_a_rejected_reply_stays_rejected() -> None:
    """It is not read again: another one was asked for, and that is the one the run went on with."""
    desk = Desk(Client("seven", "7"))
    run_virtual(desk.ask(Parsing(strict)))
    assert run_virtual(Desk(ReplayOnly(), desk.journal).ask(Parsing(lenient))) == Reply("7", decision=7)


# -- replies that are no answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", MISSING)
def test_a_reply_that_is_no_answer_is_not_parsed(status: str) -> None:
    desk = Desk([Endpoint(Client(MISSING[status]), replies=AT_ONCE)] * 3)
    reply = run_virtual(desk.ask(Parsing(never)))
    assert (reply.status, reply.decision) == (status, None)
    assert run_virtual(Desk(ReplayOnly(), desk.journal).ask(Parsing(never))) == reply
