"""A moderated panel with a seat, an analyst and three instruments: the contracts of actors and instruments at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.llm import MemoryJournal, ReplayOnly
from opinionsim.testing import ScheduleContract, run_virtual
from tests.panel._panel import NAMES, TIMEOUT_S, Guest, Panel, Voice, carried_out, session
from tests.support.examples import examples
from tests.support.people import Nobody


class TestPanelSchedule(ScheduleContract):
    def schedule(self) -> Panel:
        return Panel(4)


def _run(**settings_: Any) -> Any:
    return run_virtual(carried_out(session(**settings_)))


def _acts(found: Any) -> list[tuple[int, str, str]]:
    """(agent, act, status) of every turn."""
    return [(agent, act, status) for _, _, agent, act, _, _, _, _, status, *_ in found.turns]


def _decisions(found: Any, act: str) -> list[Any]:
    return [turn[-3] for turn in found.turns if turn[3] == act]


def test_the_moderators_words_decide_who_speaks() -> None:
    found = _run()
    speakers = [agent for agent, act, _ in _acts(found) if act == "speak"]
    assert _decisions(found, "pick") == speakers
    picks = [turn[5] for turn in found.turns if turn[3] == "pick"]
    assert picks == [f"{NAMES[speaker]}, please." for speaker in speakers]


def test_the_decision_of_a_speech_is_that_of_the_draw_that_was_selected() -> None:
    found = _run(steps=8)
    drawn = {call for call, _ in _decisions(found, "speak")}
    assert drawn == {"reply", "reply.2"}
    entries = {entry.key: entry.text for entry in found.journal.records}
    for index, *_, text, _, _, _, _, _, decision, _, _ in (turn for turn in found.turns if turn[3] == "speak"):
        assert entries[index, decision[0], 0] == text


@pytest.mark.parametrize("fault", ["invalid", "refused", "missing"])
@pytest.mark.parametrize("position", range(4))
def test_without_a_valid_pick_the_next_in_order_speaks(fault: str, position: int) -> None:
    picks = iter(range(100))
    asked: dict[str, int] = {}

    def faults(prompt: str) -> str:
        if "Who of" not in prompt:
            return ""
        # What is said where the same is asked again makes no other question.
        first = prompt.split("\n\nYou were asked this before")[0]
        return fault if asked.setdefault(first, next(picks) if first not in asked else 0) == position else ""

    found = _run(voice=Voice(faults=faults))
    decisions = _decisions(found, "pick")
    assert decisions[position] is None
    assert all(decision is not None for place, decision in enumerate(decisions) if place != position)
    speakers = [agent for agent, act, _ in _acts(found) if act == "speak"]
    assert speakers[position] == (speakers[position - 1] + 1) % 3 if position else speakers[0] == 0
    statuses = [status for _, act, status in _acts(found) if act == "pick"]
    assert statuses[position] == {"invalid": "answered", "refused": "refused", "missing": "empty"}[fault]
    # The speaker sees an invalid pick, and nothing of one that is no answer.
    heard = [decision[1] for decision in _decisions(found, "speak")]
    reads = [len(turn[4]) for turn in found.turns if turn[3] == "speak"]
    assert heard[position] == reads[position] - (fault != "invalid")


def test_a_refused_speech_is_passed_on_to_nobody_and_nobody_is_asked_about_it() -> None:
    found = _run(voice=Voice(faults=lambda prompt: "refused" if "you have the floor" in prompt else ""))
    acts = _acts(found)
    assert {status for _, act, status in acts if act == "speak"} == {"refused"}
    assert {status for _, act, status in acts if act == "analyse"} == {"skipped"}
    # Nobody has an opinion, so that nobody is objected to, and no instrument was asked.
    assert not [act for _, act, _ in acts if act == "object"]
    assert not found.toy.coded
    assert not found.benches[0].items


def test_context_holds_what_was_heard_and_who_heard_it() -> None:
    found = _run(steps=6)
    texts = {turn[0]: turn for turn in found.turns}
    speeches = [turn for turn in found.turns if turn[3] == "speak"]
    items = {item.text: item.context for item in found.benches[0].items}
    for turn in speeches:
        context = items[turn[5]]
        assert context.received == tuple(texts[ref][5] for ref in turn[4])
        assert context.persona == (("name", NAMES[turn[2]]), ("job", "driver"))
        assert context.assigned_opinion == (1, -1, None)[turn[2]]


def test_a_judge_of_pairs_sees_each_text_with_each_message_its_author_was_shown() -> None:
    found = _run(steps=6)
    texts = {turn[0]: turn[5] for turn in found.turns}
    expected = {
        (texts[turn[0]], texts[ref]) for turn in found.turns if turn[3] in ("speak", "object") for ref in turn[4]
    }
    assert {(item.text, item.about) for item in found.benches[1].items} == expected
    agreement = found.simulation.measuring.instruments[2].instrument_id
    keys = {(key.turn, key.about) for key in found.simulation.measuring.estimates if key.instrument_id == agreement}
    assert keys == {(turn[0], ref) for turn in found.turns if turn[3] in ("speak", "object") for ref in turn[4]}


def test_a_guest_who_is_late_or_never_answers_leaves_an_empty_turn_that_nobody_receives() -> None:
    on_time = _run(steps=8)
    objections = [turn[0] for turn in on_time.turns if turn[3] == "object"]
    assert len(objections) >= 2
    for wait in (TIMEOUT_S + 1, None):
        late = objections[0]
        found = _run(steps=8, guest=Guest(late=lambda turn, late=late, wait=wait: wait if turn == late else 1.0))
        statuses = {turn[0]: turn[8] for turn in found.turns}
        assert statuses[late] == "empty"
        assert [turn for turn in found.turns if turn[0] <= late][:-1] == [t for t in on_time.turns if t[0] < late]
        nxt = next(turn for turn in found.turns if turn[3] == "speak" and late in turn[4])
        assert nxt[-3][1] == len(nxt[4]) - 1
        entry = next(entry for entry in found.journal.records if entry.key.turn == late)
        assert (entry.source, entry.status, entry.finish_reason, entry.seed) == ("person", "empty", "timeout", None)


def test_sources_of_the_journal_tell_models_persons_and_instruments_apart() -> None:
    found = _run(steps=8)
    sources = {(entry.key.call.split(".")[0], entry.source) for entry in found.journal.records}
    assert sources == {
        ("reply", "model"),
        ("reply", "person"),
        ("reflect", "model"),
        ("judge", "model"),
        ("rating", "instrument"),
    }


waits = st.lists(st.floats(0.0, 3.0, allow_nan=False), min_size=1, max_size=5)


@examples(60)
@given(waits, st.integers(1, 6), st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 7), st.data())
def test_any_order_a_kill_at_any_entry_a_resume_and_a_replay_give_the_same_panel(
    latencies: list[float], slots: int, lookahead: int | None, refuses: int, data: st.DataObject
) -> None:
    """Compared to the run one call at a time without latency: turns, decisions and opinions."""

    def faults(prompt: str) -> str:
        return ("invalid", "refused", "missing", "", "", "", "", "")[(len(prompt) + refuses) % 8]

    def guest() -> Guest:
        return Guest(late=lambda turn: (0.5, TIMEOUT_S + 2, None)[turn % 3])

    def voice() -> Voice:
        return Voice(lambda seed: latencies[seed % len(latencies)], faults)

    async def story() -> None:
        expected = await carried_out(session(voice=Voice(faults=faults), guest=guest()))
        journal = MemoryJournal()
        one = await carried_out(session(journal, slots=slots, lookahead=lookahead, voice=voice(), guest=guest()))
        assert one.turns == expected.turns
        assert one.opinions == expected.opinions

        entries = journal.records
        survived = MemoryJournal(entries[: data.draw(st.integers(0, len(entries)), label="entries kept")])
        kept = {entry.key for entry in survived.records}
        again, person = voice(), guest()
        resumed = await carried_out(session(survived, slots=slots, lookahead=lookahead, voice=again, guest=person))
        assert resumed.turns == expected.turns
        assert resumed.opinions == expected.opinions
        assert not {entry.seed for entry in entries if entry.key in kept and entry.seed} & set(again.asked)
        answered = {entry.key.turn for entry in entries if entry.key in kept and entry.source == "person"}
        assert not answered & set(person.asked)

        replayed = await carried_out(session(survived, voice=ReplayOnly(), guest=Nobody()))
        assert replayed.turns == expected.turns
        assert replayed.opinions == expected.opinions

    run_virtual(story())


@examples(40)
@given(waits, st.integers(1, 4), st.floats(0.0, 40.0), st.integers(0, 2))
def test_a_kill_at_any_moment_of_a_bounded_run_is_made_good(
    latencies: list[float], slots: int, kill_at: float, lookahead: int
) -> None:
    async def story() -> None:
        expected = await carried_out(session())
        journal = MemoryJournal()
        first = session(
            journal, slots=slots, lookahead=lookahead, voice=Voice(lambda seed: latencies[seed % len(latencies)])
        )
        task = asyncio.create_task(carried_out(first))
        await asyncio.sleep(kill_at)
        task.cancel()
        await asyncio.wait([task])
        kept = {entry.seed for entry in journal.records if entry.seed is not None}
        voice = Voice()
        resumed = await carried_out(session(journal, slots=slots, voice=voice))
        assert resumed.turns == expected.turns
        assert resumed.opinions == expected.opinions
        assert not kept & set(voice.asked)

    run_virtual(story())


def test_the_analyst_may_lag_behind_a_bounded_lookahead_without_holding_it_up() -> None:
    """Steps are committed while the analyst still thinks; what it said comes with the last step."""
    committed: list[tuple[int, float]] = []

    class Slow(Voice):
        async def call(self, messages: Any, seed: int) -> Any:
            if messages[-1].content.startswith("Sum up"):
                await asyncio.sleep(100.0)
            return await super().call(messages, seed)

    async def story() -> tuple[Any, list[Any]]:
        found = session(steps=4, slots=8, lookahead=0, voice=Slow())
        found.simulation.engine.start()
        happened = []
        for step in range(5):
            happened += await found.simulation.commit(step)
            committed.append((step, asyncio.get_running_loop().time()))
        return found, happened

    found, happened = run_virtual(story())
    times = dict(committed)
    assert times[3] < 100.0 <= times[4]
    assert sorted(each.turn.index for each in happened) == list(range(len(found.turns)))
    analyses = [each.turn.step for each in happened if each.turn.act == "analyse"]
    assert analyses == [1, 2, 3, 4]
