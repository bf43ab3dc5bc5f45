"""Rooms are the same in every order of execution, after every kill and on every replay."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import AIMessage

from opinionsim.llm import MemoryJournal, Question, ReplayOnly, Seat
from opinionsim.messages import ChatMessage
from opinionsim.prompts import load_pack
from tests.support.sessions import TOPIC, Ended, hashed, played

_CUES = {phrase: task for task, phrase in load_pack("room").marks.cues.items()}


def latency(seed: int) -> float:
    """Seconds of a call, from nothing to nine, that follow from its seed."""
    return seed % 1009 / 100


def room(size: int = 3, **fields: Any) -> dict[str, Any]:
    """A specification of a small room of models."""
    spec: dict[str, Any] = {
        "name": "room",
        "seed": 1,
        "topic": TOPIC,
        "cast": [{"name": name} for name in ("Ada", "Ben", "Cleo", "Dora")[:size]],
        "interaction": {"kind": "room", "steps": 7, "analyze_every": 2, **fields},
        "measurement": {"self_report": {"before": 1, "after": 1}},
        "model": {"name": "scripted"},
    }
    roles = {"moderator": {}} if fields.get("moderator", True) else {}
    return {**spec, "roles": {**roles, **({} if fields.get("analyze_every") == 0 else {"analyzer": {}})}}


def reply(task: str, prompt: str, digits: str) -> str:
    """A reply of any kind that a task may get, as a function of a prompt and some digits."""
    if task == "moderate-room":
        names = re.findall(r"^- (\w+)", prompt, re.MULTILINE)
        ends = {"0": "Resolution: so.", "1": "Deadlock: so.", "2": "I do not know."}
        return f"I see {digits[:4]}.\n" + ends.get(digits[1], f"**Next:** {names[int(digits[2], 16) % len(names)]}")
    if task == "confirm":
        return "Yes." if digits[0] in "0123456789ab" else "No, not yet."
    if task == "analyze":
        claim = {"claim": f"C {digits[0]}", "premises": ["P"], "turns": [int(digits[2], 16)]}
        return f"```json\n{json.dumps({'summary': digits[:5], 'argument_map': [claim]})}\n```"
    return str(int(digits[0], 16) % 5 - 2) if task == "self-report" else f"I say {digits[:6]}."


@dataclass
class Voices:
    """A chat model that is a function of messages and seed; moody ones refuse, fall silent or are cut off."""

    latency: Callable[[int], float]
    moody: bool = False
    asked: list[int] = field(default_factory=list)

    async def call(self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None) -> AIMessage:
        prompt, digits = messages[-1].content, hashed([tuple(each) for each in messages], seed)
        self.asked.append(seed)
        await asyncio.sleep(self.latency(seed))
        mood = int(digits[:4], 16) % 100 if self.moody else 100
        if mood < 9:
            refused = AIMessage("", additional_kwargs={"refusal": "I decline."})
            cut = AIMessage("I say", response_metadata={"finish_reason": "length"})
            return (refused, AIMessage(" "), cut)[mood // 3]
        (task,) = [name for phrase, name in _CUES.items() if phrase in prompt]
        return AIMessage(reply(task, prompt, digits[4:]))


@dataclass
class Visitor:
    """A person who answers by what is asked, and sometimes not in time; notes the questions that it answered."""

    answered: list[tuple[int, str]] = field(default_factory=list)
    evidence = "scripted"

    async def answer(self, question: Question) -> str:
        digits, form = hashed(question.turn, question.act, question.agent), question.form
        if form.kind == "signal":
            return ("analysis", "pause", "harm: so", "", "", "", "", "")[int(digits[0], 16) % 8]
        await asyncio.sleep(1000 if question.act == "speak" and digits[1] in "012345" else 2.5)
        self.answered.append((question.turn, question.act))
        if form.kind == "ratings":
            return form.written(dict.fromkeys(form.items, "4"))
        return form.items[0] if form.items else "" if form.optional else f"I say {digits[:5]}."


def seats() -> dict[int | str, Seat]:
    return {0: Seat(Visitor(), timeout_s=10.0), 3: Seat(Visitor(), timeout_s=10.0)}


ROOMS: dict[str, dict[str, Any]] = {
    "with people": room(4, steps=9, analyze_every=None, questionnaire=True, debriefing="Thank you."),
    "remembering": room(),
    "without memory": room(4, remember=False, last_n=3, token_budget=30),
    "without a moderator": room(2, moderator=False, analyze_every=3),
}


def assert_same(found: Ended, expected: Ended) -> None:
    assert found.error == expected.error == ""
    assert found.rows == expected.rows
    assert found.opinions == expected.opinions


@pytest.mark.parametrize("name", ROOMS)
@pytest.mark.parametrize("moody", [False, True], ids=["plain", "moody"])
def test_any_number_of_slots_gives_the_sequential_room(name: str, moody: bool) -> None:
    there = seats() if name == "with people" else None
    expected = played(ROOMS[name], Voices(lambda seed: 0.0, moody), slots=1, seats=there)
    for slots in (1, 3, 64):
        assert_same(played(ROOMS[name], Voices(latency, moody), slots=slots, seats=there), expected)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_killed_after_any_entry_is_resumed_and_replayed(name: str) -> None:
    journal, there = MemoryJournal(), seats() if name == "with people" else None
    expected = played(ROOMS[name], Voices(latency, True), slots=3, journal=journal, seats=there)
    entries = list(journal.records)
    for length in range(len(entries) + 1):
        voices, people = Voices(lambda seed: 9.9 - latency(seed), True), seats() if there else None
        survived = MemoryJournal(entries[:length])
        assert_same(played(ROOMS[name], voices, slots=64, journal=survived, seats=people), expected)
        on_record = {(entry.key.turn, entry.act) for entry in entries[:length] if entry.source == "person"}
        for seat in (people or {}).values():
            assert on_record.isdisjoint(seat.person.answered), "a person was asked again"
        assert not {entry.seed for entry in entries[:length]} & set(voices.asked), "a reply was asked for again"
        assert len(set(voices.asked)) == len(voices.asked)
    assert_same(played(ROOMS[name], ReplayOnly(), slots=1, journal=MemoryJournal(entries), seats=there), expected)


def test_people_in_a_room_are_timed_out_pause_and_report() -> None:
    found = played(ROOMS["with people"], Voices(latency), seats=seats())
    kinds = {(row[3], row[6]) for row in found.rows if row[2] in (0, 3)}
    assert {("speak", "answered"), ("speak", "empty"), ("harm", "answered"), ("resume", "answered")} <= kinds
    assert ("signal", "silent") in kinds
    assert ("signal", "empty") not in kinds


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_room_is_the_same_in_every_order_and_after_a_kill(data: st.DataObject) -> None:
    fields: dict[str, Any] = {"remember": data.draw(st.booleans()), "moderator": data.draw(st.booleans())}
    fields |= {"steps": data.draw(st.integers(1, 9)), "analyze_every": data.draw(st.integers(0, 4))}
    spec = {**room(data.draw(st.integers(2, 4)), **fields), "seed": data.draw(st.integers(0, 99))}
    expected = played(spec, Voices(lambda seed: 0.0, True), slots=1)
    journal = MemoryJournal()
    slots = data.draw(st.integers(1, 6))
    assert_same(played(spec, Voices(latency, True), slots=slots, journal=journal), expected)
    kept = MemoryJournal(list(journal.records)[: data.draw(st.integers(0, len(journal.records)))])
    assert_same(played(spec, Voices(lambda seed: 9.9 - latency(seed), True), slots=64, journal=kept), expected)


def test_nobody_waits_for_the_analyzer() -> None:
    def others(analysis_s: float) -> list[tuple[float, str]]:
        """When everybody but the analyzer is asked what."""
        asked: list[tuple[float, str]] = []

        class Noting(Voices):
            async def call(
                self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None
            ) -> AIMessage:
                analyzes = _CUES["Reply with one JSON object"] if "one JSON object" in messages[-1].content else ""
                if not analyzes:
                    asked.append((asyncio.get_running_loop().time(), messages[-1].content))
                await asyncio.sleep(analysis_s if analyzes else 1.0)
                return await super().call(messages, seed, max_tokens)

        assert not played(room(), Noting(lambda seed: 0.0)).error
        return asked

    assert others(100.0) == others(0.0)
