"""Sessions that look for a consensus are the same in every order of execution, after every kill and on every replay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.llm import MemoryJournal, ReplayOnly, Seat
from tests.support.examples import examples, few
from tests.support.people import Double
from tests.support.sessions import PREDICTING, Ended, Voices, played, session, sessions, with_texts


def latency(seed: int) -> float:
    """Seconds of a call, from nothing to nine, that follow from its seed."""
    return seed % 1009 / 100


def seats() -> dict[int | str, Seat]:
    """A citizen and the mediator are persons."""
    return {1: Seat(Double(late=lambda _: 3.5)), "mediator": Seat(Double(late=lambda _: 0.5))}


SESSIONS: dict[str, dict[str, Any]] = {
    "rankings": session(3, candidates=3, rounds=2, incumbent=True, measurement__self_report={"before": 1, "after": 1}),
    "ratings": session(
        3,
        rounds=1,
        ballot="rating",
        rule="egalitarian",
        standing=["opinions", "position"],
        between="self-report",
        ratings={"position": "before", "passes": 2},
    ),
    "predicted": session(
        3, candidates=3, rounds=1, ballots=["stated", "predicted"], shortlist=2, leave_one_out=1, ratings={"passes": 1}
    ),
    "texts": with_texts(session(4, rounds=1, ballots=["stated", "predicted"], choose_by="predicted")),
    "instrument": with_texts(
        session(
            4,
            rounds=1,
            ballots=["predicted"],
            predictor="instrument",
            measurement__instruments=[PREDICTING],
            measurement__probe={"after": 1},
        )
    ),
}
SEATED = ("rankings", "texts", "instrument")


def assert_same(found: Ended, expected: Ended) -> None:
    """Turns and opinions are equal to the byte; of a session that an error ends, those that were heard."""
    assert found.error == expected.error
    if expected.error:
        # What the session awaited before its end may be known from the journal instead.
        assert all(expected.opinions.get(key, value) == value for key, value in found.opinions.items())
        known = {row[0]: row for row in expected.rows}
        assert all(known.get(row[0], row) == row for row in found.rows)
        return
    assert found.rows == expected.rows
    assert found.opinions == expected.opinions


@pytest.mark.parametrize("name", few(SESSIONS, 3))
@pytest.mark.parametrize("moody", [False, True], ids=["plain", "moody"])
def test_any_number_of_slots_gives_the_sequential_session(name: str, moody: bool) -> None:
    expected = played(SESSIONS[name], Voices(lambda seed: 0.0, moody), slots=1)
    assert moody or not expected.error
    for slots in (1, 3, 64):
        assert_same(played(SESSIONS[name], Voices(latency, moody), slots=slots), expected)


@pytest.mark.parametrize("name", SEATED)
def test_persons_at_seats_change_nothing_of_it(name: str) -> None:
    spec = SESSIONS[name]
    expected = played(spec, Voices(lambda seed: 0.0), slots=1, seats=seats())
    assert not expected.error
    for slots in (1, 3, 64):
        assert_same(played(spec, Voices(latency), slots=slots, seats=seats()), expected)


def cut(journal: MemoryJournal, length: int) -> MemoryJournal:
    """What is durable after a kill: the first entries, in the order of their arrival."""
    return MemoryJournal(list(journal.records)[:length])


@pytest.mark.parametrize("name", few(SESSIONS, 2))
def test_a_session_killed_after_any_entry_is_resumed_and_replayed(name: str) -> None:
    seated = seats() if name in SEATED else None
    journal = MemoryJournal()
    expected = played(SESSIONS[name], Voices(latency, True), slots=3, seats=seated, journal=journal)
    entries = list(journal.records)
    for length in range(len(entries) + 1):
        survived, voices = cut(journal, length), Voices(lambda seed: 9.9 - latency(seed), True)
        assert_same(played(SESSIONS[name], voices, slots=64, seats=seated, journal=survived), expected)
        paid = {entry.seed for entry in entries[:length]}
        assert not paid & {seed for _, _, seed in voices.asked}, "a reply on record was asked for again"
        assert len({seed for _, _, seed in voices.asked}) == len(voices.asked)
        if length == len(entries):
            assert not voices.asked
    replayed = played(SESSIONS[name], ReplayOnly(), slots=1, seats=seated, journal=cut(journal, len(entries)))
    assert_same(replayed, expected)


@examples(40)
@given(sessions(), st.integers(1, 6), st.integers(0, 10**6))
def test_any_session_is_the_same_in_every_order_and_after_a_kill(spec: dict[str, Any], slots: int, kill: int) -> None:
    expected = played(spec, Voices(lambda seed: 0.0, True), slots=1)
    journal = MemoryJournal()
    assert_same(played(spec, Voices(latency, True), slots=slots, journal=journal), expected)
    length = kill % (len(journal.records) + 1)
    resumed = played(spec, Voices(lambda seed: 9.9 - latency(seed), True), slots=64, journal=cut(journal, length))
    assert_same(resumed, expected)


@pytest.mark.parametrize("until", [0.5, 2.0, 7.5, 12.0])
def test_a_session_that_is_stopped_at_any_time_goes_on(until: float) -> None:
    spec, journal = SESSIONS["predicted"], MemoryJournal()
    expected = played(spec, Voices(lambda seed: 0.0), slots=1)
    assert played(spec, Voices(latency), slots=3, journal=journal, until=until).error == "killed"
    assert_same(played(spec, Voices(latency), slots=3, journal=journal), expected)
