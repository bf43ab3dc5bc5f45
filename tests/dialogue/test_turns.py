"""A moderated room: who speaks next whatever is proposed, how replies are read, and what turns there can be at most."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.dialogue import (
    ANALYZER,
    ENDINGS,
    Floor,
    Move,
    RoomInteraction,
    Signals,
    read_move,
    read_signals,
    read_vote,
    speaker_called,
)
from opinionsim.errors import Rejected, SpecError
from opinionsim.messages import Message
from opinionsim.schedules import MODERATOR, AnySchedule, Setting, Turn, outline, with_probes
from opinionsim.testing import ScheduleContract
from tests.support.examples import examples

# -- who speaks next -----------------------------------------------------------------------------------------


@st.composite
def floors(draw: st.DrawFn) -> Floor:
    """The beginning of a room with any number of models and people."""
    people, models = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    size = people + models
    if size < 2:
        people, size = people + 2, size + 2
    least = max(2, people + (models > 0))
    every = draw(st.integers(least, least + 4))
    unheard = draw(st.integers(size - 1, 3 * size))
    seats = frozenset(draw(st.permutations(range(size)))[:people])
    return Floor(tuple(range(size)), seats, every, unheard)


@examples(400)
@given(floors(), st.data())
def test_the_rules_hold_whatever_is_proposed_or_timed_out(floor: Floor, data: st.DataObject) -> None:
    assert not Floor.problem(len(floor.speakers), len(floor.seats), floor.every)
    size, spoken = len(floor.speakers), list[int]()
    for _ in range(40):
        if len(floor.speakers) < 2:
            break
        proposed = data.draw(st.none() | st.integers(-1, size))
        choices = floor.choices()
        speaker = floor.next(proposed)
        assert speaker == proposed or proposed not in choices
        said = data.draw(st.integers(0, 5)) > 0
        before, floor = floor, floor.after(speaker, said=said)
        spoken.append(speaker)
        assert spoken[-1] != (spoken[-2] if len(spoken) > 1 else None)
        for seat in floor.seats:
            assert len(spoken) < floor.every or seat in spoken[-floor.every :]
        for each in floor.speakers:
            silent = len(spoken) - max((turn for turn, who in enumerate(spoken, 1) if who == each), default=0)
            assert silent <= floor.unheard + size * floor.every, "somebody starves"
        overdue = [each for each in choices if before.spoken - before.last.get(each, 0) >= before.unheard]
        assert not overdue or speaker in overdue


def told(floor: Floor, proposals: str, names: str = "HAB") -> str:
    """Who speaks where these are proposed, by letters; a dot proposes nobody."""
    said = ""
    for proposed in proposals:
        speaker = floor.next(names.index(proposed) if proposed in names else None)
        floor, said = floor.after(speaker), said + names[speaker]
    return said


@pytest.mark.parametrize(
    ("proposals", "spoken"),
    [
        (".........", "HABHABHAB"),
        ("ABABABABA", "ABHBAHABH"),
        ("AAAAAAAAA", "AHABHABHA"),
        ("HHHHHHHHH", "HAHBHAHBH"),
        ("BA.BA.BA.", "BAHBAHBAH"),
    ],
)
def test_one_person_and_two_models_within_three_turns(proposals: str, spoken: str) -> None:
    assert told(Floor((0, 1, 2), frozenset([0]), 3, 6), proposals) == spoken


def test_who_is_unheard_for_long_is_next() -> None:
    assert told(Floor((0, 1, 2), frozenset(), 3, 4), "HAHAHAHAHA") == "HAHABAHAHB"


def test_two_turns_running_without_a_word_vacate_a_seat_and_one_does_not() -> None:
    floor = Floor((0, 1, 2), frozenset([0]), 3, 6)
    for said in (False, True, False):
        floor = floor.after(0, said=said).after(1)
    assert floor.seats == {0}
    floor = floor.after(0, said=False)
    assert (floor.speakers, floor.seats) == ((1, 2), frozenset())
    assert floor.after(1, said=False).after(2).after(1, said=False).speakers == (1, 2), "models vacate nothing"


@pytest.mark.parametrize(
    ("speakers", "people", "every", "possible"),
    [(3, 1, 2, True), (3, 2, 2, False), (3, 2, 3, True), (2, 2, 2, True), (3, 3, 3, True), (4, 3, 3, False)],
)
def test_people_who_cannot_all_be_heard_in_time_are_refused(
    speakers: int, people: int, every: int, possible: bool
) -> None:
    setting = Setting.of(speakers, seats=frozenset(range(people)))
    room = RoomInteraction(kind="room", every=every)
    if possible:
        room.schedule(setting)
    else:
        with pytest.raises(SpecError, match=rf"interaction\.every: .* give {every + 1} or more"):
            room.schedule(setting)


# -- what is said --------------------------------------------------------------------------------------------

NAMES = {0: "Ada", 1: "Ben", 2: "Ada Lee", 3: "Dr. Ng"}


@pytest.mark.parametrize(
    ("reply", "speaker", "remark"),
    [
        ("Next: Ada", 0, ""),
        ("What does that cost?\n\nNext: Ben", 1, "What does that cost?"),
        ("**Next speaker:** Ben", 1, ""),
        ("Next speaker: **Ada Lee**", 2, ""),
        ('Thanks, Ada.\nNext: "Ben"', 1, "Thanks, Ada."),
        ("Remark: Thanks, Ada.\nNext: Ben.", 1, "Thanks, Ada."),
        ("**Remark:** Thanks.\n**Next:** *Ben*\n", 1, "Thanks."),
        ("Remark: none\nNext: ben", 1, ""),
        ("Let us go on. Next: Ben", 1, "Let us go on."),
        ("The next speaker is Ben.", 1, ""),
        ("> Next: [Ben]", 1, ""),
        ("Next: Ben, what would you pay for it?", 1, "what would you pay for it?"),
        ("Next up: Dr. Ng", 3, ""),
        ("Next \u2013 Ben", 1, ""),
        ("Next: Ada\nOn reflection,\nNext: Ben", 1, "On reflection,"),
        ("Next: Zoe", None, ""),
        ("Next: Ada or Ben", None, ""),
        ("Deadlock: none\nNext: Ben", 1, ""),
        ("Remark: **Please** go on.\nNext: Ben", 1, "**Please** go on."),
        ("**Remark:** Please go on.\nNext: Ben", 1, "Please go on."),
        ("* _Remark_: Please go on.\nNext: Ben", 1, "Please go on."),
        ("**Remark: Please go on.**\nNext: Ben", 1, "**Please go on.**"),
        ("**Please go on.** Next: Ben", 1, "**Please go on.**"),
        ("---\nNext: Ben\n---", 1, ""),
    ],
)
def test_a_proposal_is_read_however_it_is_written(reply: str, speaker: int | None, remark: str) -> None:
    said = read_move("reply", reply, ())
    assert speaker_called(said.decision.speaker, NAMES) == speaker
    assert (said.text, said.decision.declared) == (remark, None)


@pytest.mark.parametrize(
    ("reply", "declared"),
    [
        ("You all want it open.\nResolution: It opens at noon.", "resolution"),
        ("**Deadlock:** Nobody moves any more.", "deadlock"),
        ("RESOLUTION: It opens.\nNext: Ada", "resolution"),
    ],
)
def test_a_declared_end_is_part_of_the_remark(reply: str, declared: str) -> None:
    said = read_move("reply", reply, ())
    assert said.decision.declared == declared
    assert declared in said.text.casefold()
    assert "Next" not in said.text


@pytest.mark.parametrize("reply", ["I think that Ada should say more.", "", "The resolution is near.", "Next steps?"])
def test_a_reply_that_proposes_nothing_is_rejected(reply: str) -> None:
    with pytest.raises(Rejected, match="a line such as `Next: NAME`"):
        read_move("reply", reply, ())


@pytest.mark.parametrize(
    ("reply", "vote"), [("Yes.", True), ("**No**, not yet.", False), ("Answer: yes", True), ("I vote no.", False)]
)
def test_a_vote_is_the_first_word(reply: str, vote: bool) -> None:
    assert read_vote("reply", reply, ()) is vote
    with pytest.raises(Rejected, match="yes or no"):
        read_vote("reply", f"Well, {reply}", ())


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        ("Yes and no: hospitals yes, but not the schools.", None),
        ("No, and yes.", None),
        ("Yes/no", None),
        ("Yes, no further delay.", True),
        ("No, no.", False),
    ],
)
def test_a_vote_that_says_both_words_is_none(reply: str, vote: bool | None) -> None:
    if vote is None:
        with pytest.raises(Rejected, match="it begins with both"):
            read_vote("reply", reply, ())
    else:
        assert read_vote("reply", reply, ()) is vote


def test_signals_stand_one_a_line() -> None:
    said = read_signals("reply", "\nharm: He shouts: at me.\n Analysis \npause\n", ())
    assert said == (
        "analysis\npause\nharm: He shouts: at me.",
        Signals(frozenset(("analysis", "pause")), ("He shouts: at me.",)),
    )
    assert read_signals("reply", " \n", ()) == ("", Signals())
    with pytest.raises(Rejected, match="'leave' is none of"):
        read_signals("reply", "leave", ())


# -- the turns of a room -------------------------------------------------------------------------------------


class Said:
    """Outcomes that follow from what a test says of each turn; None is an empty message."""

    def __init__(self, says: Callable[[Turn], tuple[str, Any] | None]) -> None:
        self.turns: list[Turn] = []
        self._says = says

    async def reply(self, turn: int) -> Message:
        asked = self.turns[turn]
        said = self._says(asked)
        text, decision = ("", None) if said is None else said
        status = "empty" if said is None else "answered" if text else "silent"
        return Message(text, "", asked.agent, status, act=asked.act, decision=decision, turn=turn)

    async def decision(self, turn: int) -> Any:
        return (await self.reply(turn)).decision

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        raise AssertionError(turn)


def carried_out(schedule: AnySchedule, says: Callable[[Turn], tuple[str, Any] | None]) -> list[Turn]:
    """The turns of a room in which this is said."""
    outcomes = Said(says)

    async def story() -> None:
        async for turn in schedule.decide(outcomes):
            outcomes.turns.append(turn)

    asyncio.run(story())
    return outcomes.turns


def plainly(turn: Turn) -> tuple[str, Any] | None:
    """Everybody agrees to take part, proposes nobody and says something."""
    decisions = {"consent": "yes", "signal": Signals(), "moderate-room": Move()}
    return ("" if turn.act == "signal" else "I say so."), decisions.get(turn.act)


def room(size: int = 3, people: int = 1, **fields: Any) -> AnySchedule:
    """A room in which the first are people."""
    asked = [("probe", 1, 1)]
    setting = Setting.of(size, seats=frozenset(range(people)), questions=asked)
    return RoomInteraction(**{"kind": "room", "steps": 6, "analyze_every": 3, **fields}).schedule(setting)


def acts(turns: list[Turn]) -> Iterator[str]:
    return (turn.act for turn in turns)


def test_the_course_of_a_room() -> None:
    schedule = room(questionnaire=True, debriefing="It was about libraries.")
    assert list(schedule.others) == [MODERATOR, ANALYZER]
    turns = carried_out(schedule, plainly)
    assert list(acts(turns))[:9] == [
        "consent", "probe", "probe", "probe", "open", "signal", "moderate-room", "speak", "signal",
    ]  # fmt: skip
    ended = [turn.act for turn in turns if turn.step == 6][3:]
    assert ended == [
        "analyze", "end", "close", "probe", "probe", "probe", "questionnaire", "comment.helpful", "comment.confusing",
        "comment.research", "comment.reflection", "comment.advantage", "comment.other", "debrief",
    ]  # fmt: skip
    assert [turn.agent for turn in turns if turn.act == "speak"] == [0, 1, 2, 0, 1, 2]
    assert [turn.step for turn in turns if turn.act == "analyze"] == [3, 6]


def test_who_remembers_reads_what_is_new_and_the_moderator_everything() -> None:
    turns = carried_out(room(people=0), plainly)
    speeches = [turn for turn in turns if turn.act == "speak"]
    dialogue = [turn.index for turn in turns if turn.act in ("open", "moderate-room", "speak")]
    for speech in speeches:
        read = [ref for ref in speech.reads if isinstance(ref, int)]
        own = [each.index for each in speeches if each.agent == speech.agent and each.index < speech.index]
        assert read == [each for each in dialogue if (own[-1] if own else -1) < each < speech.index]
    last = [turn for turn in turns if turn.act == "moderate-room"][-1]
    assert [ref for ref in last.reads if isinstance(ref, int)] == [each for each in dialogue if each < last.index]


def test_without_memory_all_are_shown_the_opening_and_the_last_messages() -> None:
    turns = carried_out(room(people=0, remember=False, last_n=2), plainly)
    opening = next(turn.index for turn in turns if turn.act == "open")
    for turn in turns:
        read = [ref for ref in turn.reads if isinstance(ref, int)]
        if turn.act in ("speak", "moderate-room") and turn.step > 2:
            assert len(read) == 3
            assert read[0] == opening
        if turn.act == "analyze" and turn.step == 6:
            assert len(read) > 10
    budget = carried_out(room(people=0, remember=False, token_budget=5), plainly)
    later = [turn for turn in budget if turn.act == "speak" and turn.step > 1]
    assert {sum(isinstance(ref, int) for ref in turn.reads) for turn in later} == {3}


@pytest.mark.parametrize(
    ("votes", "ending"), [("yyy", "resolution"), ("yy.", "resolution"), ("yyn", "turns"), ("...", "turns")]
)
def test_an_end_is_agreed_on_by_all_who_answer(votes: str, ending: str) -> None:
    def says(turn: Turn) -> tuple[str, Any] | None:
        if turn.act == "moderate-room":
            return "Resolution: so.", Move("", "resolution")
        if turn.act == "confirm":
            return None if votes[turn.agent] == "." else (votes[turn.agent], votes[turn.agent] == "y")
        return plainly(turn)

    turns = carried_out(room(people=0, steps=7), says)
    (end,) = [turn for turn in turns if turn.act == "end"]
    assert [ref.name for ref in end.reads] == [f"ended-{ending}"]
    assert Counter(acts(turns))["confirm"] == (3 if ending == "resolution" else 6), "once in as many turns as speakers"
    if votes == "yyn":
        spoken = [turn for turn in turns if turn.act == "confirm"]
        assert set(range(spoken[0].index, spoken[0].index + 3)) <= set(turns[spoken[2].index + 2].reads)


def test_a_person_ends_pauses_and_reports() -> None:
    signals = {2: Signals(frozenset(["pause"]), ("He shouts.",)), 3: Signals(frozenset(["end"]))}

    def says(turn: Turn) -> tuple[str, Any] | None:
        if turn.act == "signal" and turn.step in signals:
            return "harm: He shouts.", signals[turn.step]
        return ("go on", "go on") if turn.act == "resume" else plainly(turn)

    turns = carried_out(room(), says)
    assert [turn.act for turn in turns if turn.step == 2][:3] == ["signal", "harm", "resume"]
    harm = next(turn for turn in turns if turn.act == "harm")
    assert harm.reads == (harm.index - 1,)
    assert not any(harm.index in turn.reads or harm.index - 1 in turn.reads for turn in turns if turn.act != "harm")
    assert [turn.reads[0].name for turn in turns if turn.act == "end"] == ["ended-person"]
    assert Counter(acts(turns))["speak"] == 2


def test_who_does_not_agree_or_never_answers_is_asked_no_more() -> None:
    refusing = carried_out(room(2), lambda turn: ("no", "no") if turn.act == "consent" else plainly(turn))
    assert [turn.act for turn in refusing if turn.agent == 0] == ["consent"]
    assert [turn.reads[0].name for turn in refusing if turn.act == "end"] == ["ended-vacated"]
    absent = carried_out(
        room(3, steps=12), lambda turn: None if turn.act == "speak" and not turn.agent else plainly(turn)
    )
    own = [turn for turn in absent if turn.agent == 0 and turn.act not in ("signal", "consent")]
    assert list(acts(own)) == ["probe", "speak", "speak"]
    assert Counter(turn.agent for turn in absent if turn.act == "speak") == {0: 2, 1: 5, 2: 5}


def test_a_person_proposes_the_topic_and_all_read_it() -> None:
    turns = carried_out(room(topic="ask"), plainly)
    proposed = next(turn.index for turn in turns if turn.act == "propose")
    readers = [turn for turn in turns if turn.act in ("open", "moderate-room", "close") or turn.act == "probe"]
    assert all(proposed in turn.reads for turn in readers if turn.act != "probe" or turn.step == 0)
    silent = carried_out(room(topic="ask"), lambda turn: None if turn.act == "propose" else plainly(turn))
    assert list(acts(silent)) == ["consent", "propose", "end", "probe", "probe", "probe"]


def test_a_room_without_a_moderator_goes_round() -> None:
    turns = carried_out(room(2, moderator=False, analyze_every=0), plainly)
    assert {turn.agent for turn in turns} == {0, 1}
    assert [turn.agent for turn in turns if turn.act == "speak"] == [0, 1] * 3


ANYTHING = st.tuples(
    st.integers(2, 4), st.integers(0, 2), st.integers(1, 9), st.sampled_from([None, 0, 1, 3]), st.booleans()
)


@examples(200)
@given(ANYTHING, st.randoms(use_true_random=False))
def test_the_outline_holds_the_most_turns_of_each_act_whatever_is_said(made: tuple[Any, ...], random: Any) -> None:
    size, people, steps, analyze, led = made
    people = min(people, size)
    fields = {"analyze_every": analyze if people or analyze is not None else 2, "moderator": led, "steps": steps}
    fields |= {"every": people + 2 if people else 3, "questionnaire": bool(people)}
    schedule = room(size, people, **fields)

    def says(turn: Turn) -> tuple[str, Any] | None:
        if random.random() < 0.15:
            return None
        wants = [each for each in ("analysis", "pause", "end") if random.random() < (0.05 if each == "end" else 0.4)]
        decisions: dict[str, Any] = {
            "consent": "yes" if random.random() < 0.9 else "no",
            "signal": Signals(frozenset(wants), ("H.",) if random.random() < 0.3 else ()),
            "moderate-room": Move(f"Agent {random.randrange(5)}", random.choice([None, "resolution", "deadlock"])),
            "confirm": random.random() < 0.7,
        }
        return "Said.", decisions.get(turn.act)

    kept: dict[int, Any] = {}
    turns = carried_out(schedule, lambda turn: kept.setdefault(turn.index, says(turn)))
    most, found = Counter(acts(list(outline(schedule)))), Counter(acts(turns))
    assert {act: n for act, n in found.items() if n > most[act]} == {}
    assert [turn.index for turn in turns] == list(range(len(turns)))
    (end,) = [turn for turn in turns if turn.act == "end"]
    assert end.reads[0].name.removeprefix("ended-") in ENDINGS
    spoken = [turn.agent for turn in turns if turn.act == "speak"]
    assert all(one != other for one, other in itertools.pairwise(spoken))


@pytest.mark.parametrize(
    ("fields", "size", "people", "problem"),
    [
        ({"unheard": 1}, 3, 0, "3 speakers cannot all be heard in 1 turns; give 2 or more"),
        ({"last_n": 2}, 3, 0, "has no effect on models that remember"),
        ({"moderator": False, "opens": True}, 3, 0, "needs a moderator"),
    ],
)
def test_fields_that_contradict_are_told(fields: dict[str, Any], size: int, people: int, problem: str) -> None:
    found = RoomInteraction(kind="room", **fields).conflicts(size)
    assert any(problem in said for _, said in found)


@pytest.mark.parametrize(
    "field",
    [
        *({"topic": "ask"}, {"questionnaire": True}, {"debriefing": "D."}, {"analyze_every": None}),
        *({"every": 4}, {"consent": False}),
    ],
)
def test_what_is_for_people_needs_a_person(field: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match=rf"interaction\.{next(iter(field))}: needs a person"):
        room(3, 0, **field)
    room(3, 1, **field)


CASES = [({"steps": 6}, 3), ({"steps": 5, "remember": False, "last_n": 2}, 4)]
PROBES: list[tuple[Any, ...]] = [(0, 0), (1, 0), (0, 1), (2, 3), (1, 1, "probe", 3)]


class TestContract(ScheduleContract):
    @pytest.fixture(autouse=True, params=itertools.product(CASES, PROBES), ids=str)
    def _case(self, request: pytest.FixtureRequest) -> None:
        (self.fields, self.size), self.probes = request.param

    def schedule(self) -> AnySchedule:
        room = RoomInteraction(kind="room", **self.fields).schedule(Setting.of(self.size, 9))
        return with_probes(room, *self.probes)
