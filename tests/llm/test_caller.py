"""The caller: journal, slot, budget and model; and what it says when something fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from langchain_core.messages import AIMessage

from opinionsim import messages
from opinionsim.conduct import RULES, CutOff, ReplyPolicy
from opinionsim.errors import BudgetExceeded, JournalMismatch, ModelCallError, StoreError
from opinionsim.foundation.streams import call_seed
from opinionsim.llm import (
    Budget,
    Endpoint,
    Entry,
    Limits,
    MemoryJournal,
    Price,
    ReplayOnly,
    RetryPolicy,
    RunCalls,
    SlotPool,
    Usage,
)
from opinionsim.messages import ChatMessage, Prompt, Reply
from opinionsim.testing import run_virtual
from tests.support.desk import MISSING, PICKY, PROMPT, TURN, Client, Desk, answered, asking_again, fails


def test_a_reply_is_journalled_with_all_that_is_known_of_it() -> None:
    told = AIMessage(
        "Yes.",
        usage_metadata={"input_tokens": 11, "output_tokens": 2, "total_tokens": 13},
        response_metadata={"finish_reason": "stop", "model_name": "m-2", "system_fingerprint": "fp_1"},
    )
    desk = Desk(Client(told, latency=2.5))
    assert run_virtual(desk.ask(dropped=4)) == Reply("Yes.")
    (record,) = desk.journal.records
    assert record.arrived_at is not None
    assert replace(record, arrived_at=None) == answered(
        "Yes.",
        seed=call_seed("run-1", 7, "reply", 0),
        dropped=4,
        rules=RULES,
        finish_reason="stop",
        model="m-2",
        fingerprint="fp_1",
        lane="now",
        input_tokens=11,
        output_tokens=2,
        latency_s=2.5,
    )
    assert desk.client.prompts == [PROMPT]
    assert desk.client.seeds == [record.seed]
    assert (desk.calls.made, desk.calls.answered, desk.slots.in_flight) == (1, 0, 0)


def test_a_prompt_may_come_as_any_iterable() -> None:
    desk = Desk(Client("Yes."))
    assert run_virtual(desk.calls.ask(TURN, "reply", iter(PROMPT))) == Reply("Yes.")
    assert desk.client.prompts == [PROMPT]


def test_a_prompt_of_a_chain_is_journalled_and_sent_as_it_is() -> None:
    given: list[object] = []

    class Keeping(Client):
        async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
            given.append(messages)
            return await super().call(messages, seed)

    desk, prompt = Desk(Keeping("Yes.")), Prompt.of(PROMPT)
    run_virtual(desk.calls.ask(TURN, "reply", prompt))
    (record,) = desk.journal.records
    assert record.prompt is prompt
    assert given[0] is prompt
    assert record.prompt_hash == prompt.identity


@pytest.mark.parametrize("length", [2, 2000])
def test_what_a_prompt_costs_to_ask_does_not_depend_on_its_length(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked, answered by the model within a budget, journalled, and answered by the journal."""
    remembered = Prompt.of(ChatMessage("user", f"event {number}") for number in range(length))
    hashed: list[str] = []
    weighed: list[str] = []
    digest, weight = messages.digest, messages._weight
    monkeypatch.setattr(messages, "digest", lambda text: hashed.append(text) or digest(text))
    monkeypatch.setattr(messages, "_weight", lambda text: weighed.append(text) or weight(text))

    desk = Desk(Client("Yes."), budget=Budget(Limits(tokens=10**6)))
    for _ in range(2):
        task = ChatMessage("user", f"a task after {length} events")
        run_virtual(desk.calls.ask(TURN, "reply", remembered.then(task)))
    assert (desk.calls.made, desk.calls.answered) == (1, 1)
    assert weighed == [task.content] * 2
    # The text once, for it is known then, and the step from what is remembered to the task each time.
    step = f"{remembered.identity}\nuser:{digest(task.content)}"
    assert hashed == [task.content, step, step]


@pytest.mark.parametrize(
    "message",
    [
        "401: the key open-sesame-1234 is not valid",
        "GET https://api.example.org/v1/chat?key=abcdefgh&x=1 failed",
        "boom sk-secret12345 is wrong",
        "header was 'Bearer abc.def.ghi-jkl'",
    ],
)
def test_credentials_do_not_reach_the_error(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "open-sesame-1234")
    desk = Desk(Client(PermissionError(message)))
    with pytest.raises(ModelCallError) as caught:
        run_virtual(desk.ask())
    assert "***" in str(caught.value)
    assert not re.search(r"sesame|abcdefgh|secret12345|abc\.def", str(caught.value))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError("refused"), "PermissionError: refused"),
        (ValueError("bad key"), "ValueError: bad key"),
        (AttributeError("no such field"), "AttributeError: no such field"),
    ],
)
def test_an_error_of_the_model_names_run_step_and_agent(error: Exception, words: str) -> None:
    desk = Desk(Client(error))
    fails(desk, ModelCallError, rf"^run run-1, step 3, turn 7, agent 2 \(write\): {words}$")
    assert desk.journal.records == []
    assert desk.calls.made == 0


def test_a_failed_call_is_asked_again_under_the_same_key_and_seed() -> None:
    journal = MemoryJournal()
    first = Desk(Client(PermissionError("refused")), journal)
    fails(first, ModelCallError, "refused")
    second = Desk(Client("Yes."), journal)
    assert run_virtual(second.ask()) == Reply("Yes.")
    assert second.client.seeds == first.client.seeds


def test_a_call_without_an_answer_in_time_is_given_up() -> None:
    desk = Desk(Client("Yes.", latency=9.0), timeout_s=2.5, retry=RetryPolicy(transient=0))

    async def story() -> None:
        with pytest.raises(ModelCallError, match=r"step 3, turn 7, agent 2 \(write\): no reply within 2\.5 s"):
            await desk.ask()
        assert asyncio.get_running_loop().time() == 2.5

    run_virtual(story())
    assert desk.slots.in_flight == 0
    assert desk.journal.records == []


def test_waiting_for_a_slot_is_no_waiting_for_a_reply() -> None:
    desk = Desk(Client("Yes.", "No.", latency=2.0), timeout_s=2.5, retry=RetryPolicy(transient=0))

    async def story() -> list[Reply]:
        return await asyncio.gather(desk.ask(), desk.ask(call="reply.2"))

    assert run_virtual(story()) == [Reply("Yes."), Reply("No.")]
    assert [record.latency_s for record in desk.journal.records] == [2.0, 2.0]


def test_a_replay_that_lacks_a_call_says_so() -> None:
    fails(Desk(ReplayOnly()), StoreError, "replay needs a call that the store lacks")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"act": "review"}, r"stored act 'review', agent 2, .*; now asked act 'write', agent 2"),
        ({"agent": 5}, r"stored act 'write', agent 5, .*; now asked act 'write', agent 2"),
        (
            {"prompt_hash": "0123456789abcdef"},
            r"prompt 0123456789ab; now asked act 'write', agent 2, prompt [0-9a-f]{12}",
        ),
    ],
)
@pytest.mark.parametrize("attempt", [0, 1])
def test_an_entry_of_another_question_is_not_used(changes: dict[str, object], words: str, attempt: int) -> None:
    """Neither for an accepted nor after a rejected reply."""
    whole = Desk(Client("far too long", "Yes."))
    run_virtual(whole.ask(PICKY))
    records = whole.journal.records
    records[attempt] = replace(records[attempt], **changes)
    desk = Desk(Client(), MemoryJournal(records))
    fails(desk, JournalMismatch, rf"^run run-1, step 3, turn 7, agent 2 \(write\): .*{words}.*--fresh", PICKY)
    assert desk.client.seeds == []


def test_a_journal_that_cannot_keep_a_reply_stops_the_run_in_its_own_words() -> None:
    class Full(MemoryJournal):
        def append(self, record: Entry) -> None:
            raise StoreError("the disk is full")

    fails(Desk(Client("Yes."), Full()), StoreError, "^the disk is full$")


def test_a_slot_is_held_during_an_attempt_only() -> None:
    """Between two attempts of one question, a question of higher priority is served."""
    desk = Desk(Client("far too long", "other", "Yes."))

    async def story() -> None:
        first = asyncio.create_task(desk.calls.ask(TURN, "reply", PROMPT, reading=PICKY))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(desk.calls.ask(replace(TURN, index=8), "reply", PROMPT, priority=1.0))
        assert (await first, await second) == (Reply("Yes.", decision="YES."), Reply("other"))

    run_virtual(story())
    assert [record.key[::2] for record in desk.journal.records] == [(7, 0), (8, 0), (7, 1)]


def test_questions_that_wait_are_asked_by_priority() -> None:
    desk = Desk(Client(*"abcdef"))

    async def story() -> None:
        turns = [(replace(TURN, index=index), priority) for index, priority in enumerate((9, 1, 3, 2, 3))]
        await asyncio.gather(*(desk.calls.ask(turn, "reply", PROMPT, priority=priority) for turn, priority in turns))

    run_virtual(story())
    assert [record.key.turn for record in desk.journal.records] == [0, 2, 4, 3, 1]


def test_stop_lets_calls_arrive_refuses_new_ones_and_still_answers_from_the_journal() -> None:
    desk = Desk(Client("Yes.", "No."))

    async def story() -> None:
        flying = asyncio.create_task(desk.ask())
        queued = asyncio.create_task(desk.ask(call="reply.2"))
        await asyncio.sleep(0.5)
        desk.calls.stop()
        assert await flying == Reply("Yes.")
        with pytest.raises(asyncio.CancelledError):
            await queued
        with pytest.raises(asyncio.CancelledError):
            await desk.ask(call="reply.3")
        assert await desk.ask() == Reply("Yes.")

    run_virtual(story())
    assert [record.key.call for record in desk.journal.records] == ["reply"]
    assert (len(desk.client.seeds), desk.slots.in_flight) == (1, 0)


def test_a_slot_that_is_handed_over_in_the_moment_of_the_stop_is_given_back_unused() -> None:
    desk = Desk(Client("Yes."))

    async def story() -> None:
        assert desk.slots.account("local").take()
        queued = asyncio.create_task(desk.ask())
        await asyncio.sleep(0.5)
        desk.slots.account("local").release()
        desk.calls.stop()
        with pytest.raises(asyncio.CancelledError):
            await queued

    run_virtual(story())
    assert (desk.client.seeds, desk.slots.in_flight) == ([], 0)


class _TooMany(Exception):
    """A provider's 429."""

    status_code = 429

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("too many requests")
        self.response = SimpleNamespace(status_code=429, headers={"retry-after": f"{retry_after_s:g}"})


class _Filtered(Exception):
    """A provider that refuses a prompt, as Azure does."""

    status_code = 400
    code = "content_filter"


def test_a_passing_failure_is_repeated_under_the_same_key_and_seed() -> None:
    desk = Desk(Client(ConnectionError("reset"), TimeoutError("slow"), "Yes."))
    assert run_virtual(desk.ask()) == Reply("Yes.")
    assert len(desk.client.seeds) == 3
    assert len(set(desk.client.seeds)) == 1
    assert [record.key.attempt for record in desk.journal.records] == [0]
    assert (desk.calls.made, desk.calls.repeated, desk.slots.in_flight) == (1, 2, 0)


def test_repetitions_are_bounded_and_counted() -> None:
    desk = Desk(Client(*[ConnectionError("reset")] * 9), retry=RetryPolicy(transient=3))
    fails(desk, ModelCallError, r"ConnectionError: reset \(after 4 tries\)$")
    assert len(desk.client.seeds) == 4
    assert desk.journal.records == []


def test_what_will_not_pass_is_not_repeated() -> None:
    desk = Desk(Client(PermissionError("401"), "Yes."))
    fails(desk, ModelCallError, "PermissionError: 401$")
    assert len(desk.client.seeds) == 1


class _Unauthorized(Exception):
    status_code = 401


def _team(client: Client, pool: SlotPool, n: int) -> list[RunCalls]:
    """Several runs that share a model and the slots."""
    impatient = RetryPolicy(first_wait_s=1e6, longest_wait_s=1e6)
    endpoint = Endpoint(client)
    return [RunCalls(f"run-{i}", MemoryJournal(), [endpoint] * 3, pool, retry=impatient) for i in range(n)]


def test_what_any_request_would_meet_ends_those_that_wait_for_a_slot_too() -> None:
    pool, client = SlotPool(1), Client(_Unauthorized("wrong key"), "never asked")
    other = RunCalls("other", MemoryJournal(), Client("Yes."), pool)

    async def story() -> None:
        asking = [asyncio.create_task(calls.ask(TURN, "reply", PROMPT)) for calls in _team(client, pool, 3)]
        going_on = asyncio.create_task(other.ask(TURN, "reply", PROMPT))
        for number, task in enumerate(asking):
            with pytest.raises(ModelCallError, match=rf"^run run-{number}, .*turn 7, agent 2 \(write\): .*wrong key"):
                await task
            assert asyncio.get_running_loop().time() == 1.0
        assert await going_on == Reply("Yes.")
        # Those that begin later make no request either.
        with pytest.raises(ModelCallError, match="wrong key"):
            await _team(client, pool, 1)[0].ask(TURN, "reply", PROMPT)

    run_virtual(story())
    assert (len(client.seeds), pool.in_flight) == (1, 0)
    # Another pool is another sweep: there it is tried again.
    assert run_virtual(_team(client, SlotPool(1), 1)[0].ask(TURN, "reply", PROMPT)) == Reply("never asked")


def test_what_any_request_would_meet_ends_a_back_off_and_lets_replies_on_their_way_arrive() -> None:
    failures = (ConnectionError("reset"), _Unauthorized("wrong key"))
    pool, client = SlotPool(3), Client("Yes.", *failures, latency=lambda number: (5.0, 1.0, 2.0)[number - 1])

    async def story() -> None:
        first, *failing = [asyncio.create_task(calls.ask(TURN, "reply", PROMPT)) for calls in _team(client, pool, 3)]
        for task in failing:
            with pytest.raises(ModelCallError, match="wrong key"):
                await task
        assert asyncio.get_running_loop().time() == 2.0
        assert await first == Reply("Yes.")

    run_virtual(story())
    assert (len(client.seeds), pool.in_flight) == (3, 0)


def test_several_requests_that_meet_it_together_tell_one_error() -> None:
    pool, client = SlotPool(3), Client(*(_Unauthorized(f"refused with id {i}") for i in range(3)))

    async def story() -> list[BaseException | Reply]:
        asking = (calls.ask(TURN, "reply", PROMPT) for calls in _team(client, pool, 3))
        return await asyncio.gather(*asking, return_exceptions=True)

    assert {str(error).partition("): ")[2] for error in run_virtual(story())} == {
        "_Unauthorized: refused with id 0 (every request to this model would fail, so no more are sent)"
    }


def test_what_concerns_one_prompt_leaves_the_others_alone() -> None:
    pool, client = SlotPool(1), Client(PermissionError("this text"), "Yes.")
    one, other = _team(client, pool, 2)
    with pytest.raises(ModelCallError, match=r"PermissionError: this text$"):
        run_virtual(one.ask(TURN, "reply", PROMPT))
    assert run_virtual(other.ask(TURN, "reply", PROMPT)) == Reply("Yes.")


def test_a_time_out_is_repeated() -> None:
    desk = Desk(Client("", "Yes.", latency=lambda number: 9.0 if number == 1 else 1.0), timeout_s=2.5)
    assert run_virtual(desk.ask()) == Reply("Yes.")
    # The time given is that of the attempt that succeeded.
    assert desk.journal.records[0].latency_s == 1.0


def test_a_provider_is_left_alone_as_long_as_it_asks() -> None:
    busy = Client(_TooMany(30.0), "Yes.")
    run_virtual(Desk([Endpoint(busy, "account", networked=True)] * 3).ask())
    assert busy.asked[0] == 0.0
    assert busy.asked[1] >= 1.0 + 30.0


def test_rate_limits_are_counted_apart_from_other_failures() -> None:
    failures = [_TooMany(1.0), ConnectionError("reset"), _TooMany(1.0), ConnectionError("reset"), "Yes."]
    desk = Desk(Client(*failures), retry=RetryPolicy(transient=2, rate_limited=2))
    assert run_virtual(desk.ask()) == Reply("Yes.")
    desk = Desk(Client(*failures), retry=RetryPolicy(transient=2, rate_limited=1))
    fails(desk, ModelCallError, r"too many requests \(after 3 tries\)")


def test_no_slot_is_held_during_back_off() -> None:
    desk = Desk(
        Client(ConnectionError("reset"), "other", "Yes."), retry=RetryPolicy(first_wait_s=1e3, longest_wait_s=1e3)
    )

    async def story() -> None:
        first = asyncio.create_task(desk.ask())
        await asyncio.sleep(1.001)
        assert desk.slots.in_flight == 0
        assert await desk.calls.ask(replace(TURN, index=8), "reply", PROMPT) == Reply("other")
        assert asyncio.get_running_loop().time() < 3.0
        assert await first == Reply("Yes.")

    run_virtual(story())


def test_stop_ends_a_back_off_at_once() -> None:
    desk = Desk(Client(ConnectionError("reset")), retry=RetryPolicy(first_wait_s=1e6, longest_wait_s=1e6))

    async def story() -> None:
        asking = asyncio.create_task(desk.ask())
        await asyncio.sleep(2.0)
        desk.calls.stop()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert asyncio.get_running_loop().time() < 3.0

    run_virtual(story())
    assert desk.slots.in_flight == 0


@pytest.mark.parametrize("status", MISSING)
def test_a_reply_that_is_no_answer_is_asked_for_again_and_then_taken_as_what_it_is(status: str) -> None:
    again = 1 if status == "truncated" else 2
    desk = Desk([Endpoint(Client(*[MISSING[status]] * (1 + again)), max_tokens=40)] * 3)
    reply = run_virtual(desk.ask(PICKY))
    assert reply.status == status
    assert [(each.status, each.acceptance) for each in desk.journal.records] == [
        *[(status, "rejected")] * again,
        (status, "accepted"),
    ]
    assert run_virtual(Desk(ReplayOnly(), desk.journal).ask(PICKY)) == reply


def test_a_reply_that_was_cut_off_is_asked_for_again_with_double_the_length() -> None:
    client = Client(MISSING["empty"], MISSING["truncated"], MISSING["truncated"], "Yes.")
    policy = ReplyPolicy(truncated=CutOff(reask=2))
    endpoint = Endpoint(client, max_tokens=40, replies=policy)
    budget = Budget(Limits(tokens=10**6))
    assert run_virtual(Desk([endpoint] * 3, budget=budget).ask()) == Reply("Yes.")
    assert client.lengths == [None, None, 80, 160]
    bounds = [endpoint.worst(PROMPT, endpoint.longest(cut_off)).tokens for cut_off in range(3)]
    assert np.diff(bounds).tolist() == [40, 80]


def test_a_longer_reply_is_within_the_budget_or_not_asked_for() -> None:
    endpoint = Endpoint(Client(MISSING["truncated"], "Yes."), max_tokens=40)
    room = endpoint.worst(PROMPT, 80).tokens - 1
    desk = Desk([endpoint] * 3, budget=Budget(Limits(tokens=room + endpoint.worst(PROMPT).tokens)))
    with pytest.raises(BudgetExceeded, match="tokens"):
        run_virtual(desk.ask())
    assert [record.status for record in desk.journal.records] == ["truncated"]


def test_a_reply_without_a_limit_of_ours_is_not_asked_for_again_when_it_was_cut_off() -> None:
    desk = Desk(Client(MISSING["truncated"]))
    assert run_virtual(desk.ask()).status == "truncated"


@pytest.mark.parametrize("status", MISSING)
def test_a_reply_that_is_no_answer_may_stop_the_run(status: str) -> None:
    policy = ReplyPolicy.model_validate({status: {"reask": 0, "then": "fail"}})
    client = Client(MISSING[status], MISSING[status], "Yes.")
    endpoints = [Endpoint(client, replies=policy)] * 3
    desk = Desk(endpoints)
    fails(desk, ModelCallError, rf"agent 2 \(write\): the reply was {status}$")
    # What was paid for is on record, and whoever carries the run out anew asks once more.
    assert [record.status for record in desk.journal.records] == [status]
    fails(Desk(endpoints, desk.journal), ModelCallError, f"the reply was {status}")
    assert run_virtual(Desk(endpoints, desk.journal).ask()) == Reply("Yes.")
    assert len(set(client.seeds)) == 3


def test_asking_again_is_bounded_and_takes_what_comes_last() -> None:
    policy = asking_again(2)
    twice = Client(MISSING["empty"], MISSING["refused"], "Yes.", "No.")
    desk = Desk([Endpoint(twice, replies=policy)] * 3)
    assert run_virtual(desk.ask()) == Reply("Yes.")
    assert [(r.key.attempt, r.status, r.acceptance) for r in desk.journal.records] == [
        (0, "empty", "rejected"),
        (1, "refused", "rejected"),
        (2, "answered", "accepted"),
    ]
    assert len(set(twice.seeds)) == 3
    never = Desk([Endpoint(Client(*[MISSING["empty"]] * 9), replies=policy)] * 3)
    assert run_virtual(never.ask()) == Reply("  ", "empty")
    assert len(never.journal.records) == 3


def test_a_provider_that_filters_the_prompt_is_told_from_a_model_that_refuses() -> None:
    desk = Desk(Client(*[_Filtered("the prompt was flagged")] * 3))
    assert run_virtual(desk.ask()) == Reply("", "filtered")
    assert [record.finish_reason for record in desk.journal.records] == ["content_filter"] * 3


def _told(tokens_in: int, tokens_out: int) -> AIMessage:
    usage = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return AIMessage("Yes.", usage_metadata=usage)


@pytest.mark.parametrize("told", [-50_000, 10_000_000])
def test_tokens_that_cannot_be_are_charged_as_if_none_were_told(told: int) -> None:
    message = AIMessage("Yes.")
    message.usage_metadata = {"input_tokens": told, "output_tokens": 1, "total_tokens": told + 1}
    budget = Budget(Limits(tokens=10**6))
    desk = Desk(Client(message), budget=budget)
    run_virtual(desk.ask())
    assert desk.journal.records[0].input_tokens is None
    assert budget.paid.tokens == Endpoint(Client()).worst(PROMPT).tokens


def test_a_call_is_made_only_when_the_longest_reply_is_within_the_budget() -> None:
    endpoint = Endpoint(Client(_told(10, 5), _told(10, 5)), price=Price(0.5, 2.0, 0.25, "2026-01-01"), max_tokens=50)
    worst = endpoint.worst(PROMPT)
    assert worst.money == pytest.approx(0.5 * (worst.tokens - 50) + 2.0 * 50)
    budget = Budget(Limits(money=worst.money + 14.9))
    desk = Desk([endpoint] * 3, budget=budget)
    run_virtual(desk.ask())
    assert desk.journal.records[0].cost == pytest.approx(0.5 * 10 + 2.0 * 5)
    assert budget.paid == Usage(1, 15, pytest.approx(15.0))
    # 15 are paid, so that the worst case of a second call is beyond the limit by 0.1.
    with pytest.raises(BudgetExceeded, match="money"):
        run_virtual(desk.ask(call="reply.2"))
    assert desk.slots.in_flight == 0
    assert len(endpoint.client.seeds) == 1


def test_a_call_that_fails_gives_its_reservation_back() -> None:
    budget = Budget(Limits(calls=1))
    desk = Desk(Client(ConnectionError("reset"), "Yes."), budget=budget)
    assert run_virtual(desk.ask()) == Reply("Yes.")
    assert budget.paid.calls == 1


def test_usage_nobody_tells_counts_as_the_worst() -> None:
    endpoint = Endpoint(Client("Yes."), max_tokens=50)
    budget = Budget(Limits(tokens=10_000))
    run_virtual(Desk([endpoint] * 3, budget=budget).ask())
    assert budget.paid.tokens == endpoint.worst(PROMPT).tokens
    assert budget.paid.tokens > 50


def test_each_agent_has_its_own_model() -> None:
    clients = [Client("zero"), Client("one"), Client("two")]
    desk = Desk([Endpoint(client) for client in clients])
    assert run_virtual(desk.ask()) == Reply("two")
    assert run_virtual(desk.ask(turn=replace(TURN, index=8, agent=0))) == Reply("zero")


def test_what_a_filter_refuses_counts_as_a_call() -> None:
    budget = Budget(Limits(calls=2))
    desk = Desk([Endpoint(Client(*[_Filtered("flagged")] * 9), replies=asking_again(5))] * 3, budget=budget)
    with pytest.raises(BudgetExceeded):
        run_virtual(desk.ask())
    assert (budget.paid.calls, len(desk.journal.records), desk.slots.in_flight) == (2, 2, 0)


def test_no_slot_is_held_while_the_budget_is_waited_for() -> None:
    endpoints = [Endpoint(Client("Yes.", "No."), max_tokens=150)] * 3
    desk = Desk(endpoints, slots=2, budget=Budget(Limits(tokens=200)))

    async def story() -> None:
        first = asyncio.create_task(desk.ask())
        second = asyncio.create_task(desk.ask(call="reply.2"))
        await asyncio.sleep(0.5)
        assert desk.slots.in_flight == 1
        assert await first == Reply("Yes.")
        with pytest.raises(BudgetExceeded):
            await second

    run_virtual(story())


def test_a_reply_that_cannot_be_taken_apart_is_kept_whole() -> None:
    odd = AIMessage("Yes.")
    object.__setattr__(odd, "usage_metadata", "none")
    desk = Desk(Client(odd))
    assert run_virtual(desk.ask()) == Reply("Yes.")
    assert desk.journal.records[0].input_tokens is None
