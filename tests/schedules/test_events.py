"""Events around schedules: what agents read, which turns drop out, and what stays as it was drawn."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import ScheduleError
from opinionsim.messages import Message
from opinionsim.schedules import (
    ActSpec,
    AnySchedule,
    Broadcast,
    Dyads,
    Event,
    Exposure,
    External,
    GivenDyads,
    RememberedReports,
    Schedule,
    Setting,
    SimilarityDyads,
    StaticSchedule,
    Turn,
    TurnCheck,
    dropped_turns,
    named,
    with_events,
    with_probes,
)


def _static(schedule: AnySchedule) -> StaticSchedule:
    assert isinstance(schedule, StaticSchedule)
    return schedule


def _told(schedule: AnySchedule) -> list[str]:
    """Each turn in words: ``step agent act [what it reads]``, a message of an earlier turn by step and author."""
    turns = list(_static(schedule).turns())
    authors = {turn.index: f"{turn.step}/{turn.agent}" for turn in turns}
    return [
        f"{turn.step} {turn.agent} {turn.act}"
        + "".join(f" <{ref.name if isinstance(ref, External) else authors[ref]}>" for ref in turn.reads)
        for turn in turns
    ]


def _dyads(n: int, steps: int, seed: int = 5) -> AnySchedule:
    return Dyads(steps=steps).schedule(Setting.of(n, seed))


def _broadcast(n: int, steps: int, seed: int = 5) -> AnySchedule:
    return Broadcast(steps=steps).schedule(Setting.of(n, seed))


def _remembered(n: int, steps: int, seed: int = 5) -> AnySchedule:
    return RememberedReports(steps=steps).schedule(Setting.of(n, seed))


PAIRS = GivenDyads(3, [(0, 1), (1, 2), (0, 1)])


def test_a_message_is_reviewed_by_its_agents_before_the_other_turns_of_its_step() -> None:
    found = with_events(PAIRS, [Event("message", 2, (2, 0), ("Rain.", "Snow."))])
    assert _told(found) == [
        "1 0 write",
        "1 1 review <1/0>",
        "2 2 review <event-0.0> <event-0.1>",
        "2 0 review <event-0.0> <event-0.1>",
        "2 1 write",
        "2 2 review <2/1>",
        "3 0 write",
        "3 1 review <3/0>",
    ]
    assert found.externals == {"event-0.0": Message("Rain."), "event-0.1": Message("Snow.")}
    assert dropped_turns(found) == 0


def test_messages_of_steps_without_a_turn_are_shown_in_their_order() -> None:
    class Sparse(Schedule):
        n_agents, steps, acts = 1, 9, PAIRS.acts

        def turns(self) -> Iterator[Turn]:
            yield Turn(0, 5, 0, "write")

    events = [Event("message", 8, (0,), ("late",)), Event("message", 2, (0,), ("early",))]
    assert _told(with_events(Sparse(), events)) == ["2 0 review <event-1>", "5 0 write", "8 0 review <event-0>"]


def test_what_would_be_read_of_a_zealot_is_its_text_and_it_is_asked_nothing() -> None:
    pairs = GivenDyads(3, [(0, 1), (1, 0), (0, 2), (0, 1), (0, 2)])
    found = with_events(pairs, [Event("zealot", 2, (0,), ("Never.", "No."), until=4)], ["Ada", "Ben", "Cem"])
    assert _told(found) == [
        "1 0 write",
        "1 1 review <1/0>",
        "2 1 write",
        "3 2 review <event-0.0-agent-0>",
        "4 1 review <event-0.1-agent-0>",
        "5 0 write",
        "5 2 review <5/0>",
    ]
    assert found.externals["event-0.1-agent-0"] == Message("No.", "Ada", 0, role="participant")
    assert dropped_turns(found) == 3


def test_all_who_hear_a_zealot_in_one_step_read_the_same_text() -> None:
    found = with_events(_broadcast(4, 12), [Event("zealot", 1, (0,), ("a", "b"))])
    steps: dict[int, set[object]] = {}
    for turn in _static(found).turns():
        if turn.act == "review" and isinstance(turn.reads[0], External):
            steps.setdefault(turn.step, set()).update(turn.reads)
    names = [{External(f"event-0.{number % 2}-agent-0")} for number in range(len(steps))]
    assert len(steps) > 1
    assert list(steps.values()) == names


def test_turns_of_absent_agents_and_turns_that_would_read_only_them_drop_out() -> None:
    pairs = GivenDyads(3, [(0, 1), (1, 2), (2, 0), (0, 2), (1, 2)])
    found = with_events(pairs, [Event("leave", 4, (0,)), Event("join", 3, (2,))])
    # Step 2: agent 2 is not there to read. Step 4: nobody reads, since agent 0 does not write.
    assert _told(found) == [
        "1 0 write",
        "1 1 review <1/0>",
        "2 1 write",
        "3 2 write",
        "3 0 review <3/2>",
        "5 1 write",
        "5 2 review <5/1>",
    ]
    assert dropped_turns(found) == 3


class Panel(Schedule):
    """Two agents respond; a third responds to both, and is asked off the record what it would say."""

    n_agents, steps = 3, 2
    acts = named(ActSpec("respond", "respond", "response"), ActSpec("probe", "probe", "probe", memory="fork"))

    def turns(self) -> Iterator[Turn]:
        yield Turn(0, 1, 0, "respond")
        yield Turn(1, 1, 1, "respond")
        yield Turn(2, 2, 2, "respond", (0, 1))
        yield Turn(3, 2, 2, "probe", (0,))


def test_turns_that_read_several_messages_lose_only_those_of_absent_agents() -> None:
    found = with_events(Panel(), [Event("join", 2, (0,))])
    assert _told(found) == ["1 1 respond", "2 2 respond <1/1>", "2 2 probe <2/2>"]


def test_where_agents_respond_a_message_is_read_beside_others_in_the_next_turn() -> None:
    found = with_events(Panel(), [Event("message", 1, (0, 2), ("Rain.",))])
    assert _told(found) == [
        "1 0 respond <event-0>",
        "1 1 respond",
        "2 2 respond <event-0> <1/0> <1/1>",
        "2 2 probe <1/0> <2/2>",
    ]


def test_agents_that_remember_reports_review_a_message_as_well() -> None:
    found = with_events(_remembered(1, 2), [Event("message", 2, (0,), ("Rain.",))])
    assert _told(found) == ["1 0 report", "2 0 review <event-0>", "2 0 report"]
    assert found.acts["review"].kind == "report"


def test_nobody_who_is_away_is_probed() -> None:
    events = [Event("leave", 3, (0,)), Event("join", 2, (2,)), Event("zealot", 1, (1,), ("No.",), until=2)]
    found = with_events(with_probes(PAIRS, 1, 1), events)
    probes = [(turn.step, turn.agent) for turn in _static(found).turns() if turn.act == "probe"]
    assert probes == [(0, 0), (0, 1), (3, 1), (3, 2)]


def test_media_are_read_beside_posts_with_their_probability() -> None:
    schedule = _dyads(5, 4000)
    event = Event("media", 1001, (0, 1), ("a", "b", "c"), until=3000, probability=0.3, seed=2)
    reviews = [turn for turn in _static(with_events(schedule, [event])).turns() if turn.act == "review"]
    beside = [turn for turn in reviews if len(turn.reads) > 1]
    assert all(turn.agent in (0, 1) and 1001 <= turn.step <= 3000 for turn in beside)
    # The post comes first, and each reading takes the next text.
    assert [turn.reads[1] for turn in beside] == [External(f"event-0.{i % 3}") for i in range(len(beside))]
    could = sum(turn.agent in (0, 1) and 1001 <= turn.step <= 3000 for turn in reviews)
    # Five standard deviations of a binomial number.
    assert abs(len(beside) - 0.3 * could) < 5 * (could * 0.3 * 0.7) ** 0.5


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0), (1.0, 1)])
def test_coins_that_are_certain(probability: float, share: int) -> None:
    event = Event("media", 1, (0, 1, 2, 3), ("a",), probability=probability)
    turns = list(_static(with_events(_dyads(4, 50), [event])).turns())
    assert sum(len(turn.reads) == 2 for turn in turns) == 50 * share


def test_coins_are_those_of_the_turn_whatever_else_happens_and_whoever_is_probed() -> None:
    """A turn that is left reads the medium in a run with an absent agent where it does in one without."""
    schedule = _dyads(6, 200)
    media = Event("media", 1, tuple(range(6)), ("a",), probability=0.5, seed=1)

    def shown(*events: Event, probes: int = 0) -> dict[int, bool]:
        found = with_events(with_probes(schedule, probes, 0), events)
        return {turn.step: len(turn.reads) > 1 for turn in _static(found).turns() if turn.act == "review"}

    alone = shown(media)
    others = shown(media, Event("leave", 50, (0,)), Event("message", 9, (1,), ("m",)))
    assert 0 < len(others) < len(alone)
    assert {step: fell for step, fell in alone.items() if step in others and step != 9}.items() <= others.items()
    assert shown(media, probes=3) == alone


def test_one_agent_alone_with_a_message() -> None:
    exposure = Exposure(steps=2, messages=("x",)).schedule(Setting.of(1))
    found = with_events(exposure, [Event("message", 1, (0,), ("m",))])
    assert _told(found) == ["1 0 review <event-0>", "1 0 review <external-0>", "2 0 review <external-0>"]


def test_schedules_that_cannot_have_events_are_named() -> None:
    adaptive = SimilarityDyads(steps=3).schedule(Setting.of(4))
    with pytest.raises(ScheduleError, match="SimilarityDyads decides its turns during the run"):
        with_events(adaptive, [Event("leave", 1, (0,))])
    twice = with_events(PAIRS, [Event("message", 1, (0,), ("m",))])
    with pytest.raises(ScheduleError, match="has an external message 'event-0'"):
        with_events(twice, [Event("message", 1, (0,), ("m",))])
    assert with_events(adaptive, []) is adaptive


AGENTS = st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True).map(tuple)
STEPS = st.integers(1, 12)
TEXTS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    found = []
    for kind in draw(st.lists(st.sampled_from(["message", "zealot", "media", "leave", "join"]), max_size=6)):
        step = draw(STEPS)
        until = draw(st.one_of(st.none(), st.integers(step, 12))) if kind in ("zealot", "media") else None
        texts = draw(TEXTS) if kind in ("message", "zealot", "media") else ()
        found.append(Event(kind, step, draw(AGENTS), texts, until, draw(st.floats(0, 1)), draw(st.integers(0, 99))))
    return found


SCHEDULES = st.sampled_from(
    [
        lambda seed: _dyads(5, 12, seed),
        lambda seed: _broadcast(5, 12, seed),
        lambda seed: _remembered(5, 12, seed),
        lambda seed: with_probes(_dyads(5, 12, seed), 1, 1),
    ]
)


@given(SCHEDULES, st.integers(0, 9), events())
def test_what_is_left_of_a_schedule_is_as_it_was_drawn(build, seed: int, happening: list[Event]) -> None:
    """Turns are valid, in order and the same at each call; those of the schedule keep step, agent, act and author."""
    schedule = build(seed)
    bare = list(schedule.turns())
    found = _static(with_events(schedule, happening))
    turns = list(found.turns())
    assert turns == list(found.turns())
    check = TurnCheck(found)
    for turn in turns:
        check(turn)
    messages = sum(len(event.agents) for event in happening if event.kind == "message")
    assert len(turns) + dropped_turns(found) == len(bare) + messages

    def peers(own: list[Turn]) -> Counter[tuple[object, ...]]:
        """Turns but for reviews of messages, with the authors of what they read of others."""
        read = [(turn, tuple(own[ref].agent for ref in turn.reads if isinstance(ref, int))) for turn in own]
        shown = [(turn, who) for turn, who in read if who or not turn.reads]
        return Counter((turn.step, turn.agent, turn.act, who) for turn, who in shown)

    # Every turn of the schedule that reads posts reads one, so that a turn that is left has the author it had.
    assert peers(turns) <= peers(bare)
    asked = {(turn.agent, turn.step) for turn in turns}
    # Later events of one kind take the place of earlier ones.
    leaves = {agent: event.step for event in happening if event.kind == "leave" for agent in event.agents}
    joins = {agent: event.step for event in happening if event.kind == "join" for agent in event.agents}
    for agent, step in asked:
        assert joins.get(agent, 0) <= step < leaves.get(agent, 99)
        assert not any(event.kind == "zealot" and agent in event.agents and event.lasts(step) for event in happening)


def test_long_runs_of_many_agents_take_time_in_proportion() -> None:
    """1,000 agents, 100,000 steps and all kinds of events; a time that grew with the square would be hours."""
    some, most = tuple(range(0, 1000, 3)), tuple(range(1000))
    happening = [
        Event("message", 50_000, most, ("m",)),
        Event("zealot", 10, some, ("a", "b")),
        Event("media", 1, most, ("x",), probability=0.1),
        Event("leave", 70_000, some),
    ]
    began = time.perf_counter()
    assert sum(1 for _ in _static(with_events(_dyads(1000, 100_000), happening)).turns()) > 100_000
    assert time.perf_counter() - began < 20
