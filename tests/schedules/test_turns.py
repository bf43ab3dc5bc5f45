"""What schedules and acts declare, and what is known of a schedule before its first call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from opinionsim.errors import ScheduleError
from opinionsim.schedules import (
    PROBE,
    REPORT,
    REPORT_ONCE,
    REVIEW,
    SELF_REPORT,
    WRITE,
    ActSpec,
    BoundedConfidenceDyads,
    Broadcast,
    Dyads,
    Event,
    Exposure,
    Feed,
    GivenDyads,
    IndependentReports,
    Interaction,
    Outcomes,
    Phase,
    RememberedReports,
    Schedule,
    Setting,
    SimilarityDyads,
    TieChange,
    Turn,
    check_schedule,
    first_keeper,
    n_members,
    named,
    with_events,
    with_moderator,
    with_phases,
    with_probes,
)

ALL = named(WRITE, REVIEW, REPORT, REPORT_ONCE, PROBE, SELF_REPORT)


def _similar(steps: int, strength: float, opinions: list[float], seed: int = 7) -> Any:
    return SimilarityDyads(steps=steps, strength=strength).schedule(Setting.of(4, seed, opinions=opinions))


class Listed(Schedule):
    """Whatever turns it is given."""

    n_agents, steps, acts, others = 3, 9, ALL, ("moderator",)

    def __init__(self, *turns: Turn) -> None:
        self.listed = turns

    def turns(self) -> Iterator[Turn]:
        return iter(self.listed)


class Decided(Listed):
    """The same, after waiting for outcomes: before the turn of each number, for what is named."""

    turns = None  # type: ignore[assignment]

    def __init__(self, *turns: Turn, waits: dict[int, str] | None = None) -> None:
        super().__init__(*turns)
        self.waits = waits or {}

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        for turn in self.listed:
            if turn.index in self.waits:
                await getattr(outcomes, self.waits[turn.index])(turn.index - 1)
            yield turn


def _acts(*names: str, agents: tuple[int, ...] = (2, 0, 1, 3, 2, 0)) -> list[Turn]:
    return [Turn(index, 1, agents[index], name) for index, name in enumerate(names)]


# -- acts ----------------------------------------------------------------------------------------------------


def test_what_the_acts_of_the_package_leave_behind() -> None:
    assert [act.memory for act in (WRITE, REVIEW, REPORT)] == ["keep"] * 3
    assert [act.memory for act in (REPORT_ONCE, PROBE, SELF_REPORT)] == ["none", "fork", "fork"]
    assert [name for name, act in ALL.items() if act.unread == "skip"] == ["review"]
    assert not any(act.background or act.parse or act.selector or act.after == "none" for act in ALL.values())


def test_acts_are_declared_by_name_and_for_good() -> None:
    acts = named(WRITE, REVIEW)
    assert list(acts.items()) == [("write", WRITE), ("review", REVIEW)]
    with pytest.raises(TypeError):
        acts["report"] = REPORT  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        WRITE.kind = "report"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"draws": -1}, "draws must be a whole number of at least 0; got -1"),
        ({"draws": 0}, "memory must be none with 0 draws; got 'keep'"),
        ({"template": ""}, "set template, because its turns make calls"),
        ({"attempts": 0}, "attempts must be a whole number of at least 1; got 0"),
        ({"after": "retry"}, "after must be one of stop, none; got 'retry'"),
        ({"memory": "forget"}, "memory must be one of keep, fork, none; got 'forget'"),
        ({"labelling": "you"}, "labelling must be one of anonymous, numbered, named, you-other; got 'you'"),
    ],
)
def test_an_act_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScheduleError, match=f"^act 'write': {words}"):
        replace(WRITE, **changes)


# -- what a schedule declares --------------------------------------------------------------------------------


def test_a_schedule_that_inherits_the_base_declares_what_is_left() -> None:
    class Own(Schedule):
        n_agents, steps, acts = 2, 1, named(WRITE)

        def turns(self) -> Iterator[Turn]:
            yield Turn(0, 1, 0, "write")

    own = Own()
    assert check_schedule(own) is own
    assert (tuple(own.others), dict(own.externals), tuple(own.needs), n_members(own)) == ((), {}, (), 2)
    own.others = ("moderator", "critic")
    assert n_members(own) == 4


class _Plain:
    """A schedule that inherits nothing."""

    n_agents, steps, acts, others, externals, needs = 2, 1, named(WRITE), (), {}, ()

    def turns(self) -> Iterator[Turn]:
        yield Turn(0, 1, 0, "write")


def test_a_schedule_may_declare_everything_itself() -> None:
    assert check_schedule(_Plain())


@pytest.mark.parametrize("name", ["n_agents", "steps", "acts", "others", "externals", "needs"])
def test_a_declaration_that_is_missing_is_named(name: str) -> None:
    declared = {key: value for key, value in vars(_Plain).items() if not key.startswith("__") and key != name}
    with pytest.raises(ScheduleError, match=f"^Odd declares no {name}; inherit from opinionsim.schedules.Schedule"):
        check_schedule(type("Odd", (), declared)())


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(ScheduleError, match=r"^object declares no n_agents, steps, acts, others, externals, needs;"):
        check_schedule(object())
    with pytest.raises(ScheduleError, match=r"^Schedule declares no n_agents, steps, acts; "):
        check_schedule(Schedule())


@pytest.mark.parametrize("kind", ["", "good, bad", "Post", 3])
def test_a_kind_of_text_is_a_word(kind: Any) -> None:
    with pytest.raises(ScheduleError, match=r"^act 'say': kind must be one word of .*; got "):
        ActSpec("say", "say", kind)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"turns": None}, r"Odd yields no turns; define turns\(\) or decide\(outcomes\)"),
        ({"acts": {"write": REVIEW}}, r"Odd\.acts: 'write' must be the ActSpec of that name; got ActSpec"),
        ({"acts": {"write": "write"}}, r"Odd\.acts: 'write' must be the ActSpec of that name; got 'write'"),
        (
            {"others": "moderator"},
            r"Odd\.others must be a sequence of names, such as \('moderator',\); got 'moderator'",
        ),
        ({"needs": "stance"}, r"Odd\.needs must be a sequence of names, such as \('stance',\); got 'stance'"),
        ({"given": {0: "text"}}, r"Odd\.given must map participants to names of externals; got \{0: 'text'\}"),
        ({"given": ("text",)}, r"Odd\.given must map participants to names of externals; got \('text',\)"),
        ({"others": ("critic", "participant")}, r"Odd\.others: participants are counted by n_agents; name another"),
    ],
)
def test_a_declaration_that_is_not_valid(declared: dict[str, Any], words: str) -> None:
    with pytest.raises(ScheduleError, match=f"^{words}"):
        check_schedule(type("Odd", (_Plain,), declared)())


@pytest.mark.parametrize(
    "interaction",
    [
        Dyads(steps=3),
        Broadcast(steps=3),
        SimilarityDyads(steps=3, strength=1),
        BoundedConfidenceDyads(steps=3, confidence=1),
        Feed(steps=3, posts=2),
        Exposure(steps=3, messages=("it rained",)),
    ],
)
def test_schedules_of_the_package_say_whether_they_act_on_opinions(interaction: Interaction) -> None:
    bare: Any = interaction.schedule(Setting.of(4))
    for schedule in (bare, with_probes(bare, 1, 1)):
        assert tuple(schedule.needs) == (("stance",) if hasattr(schedule, "decide") else ())


@pytest.mark.parametrize(("ranking", "needs"), [("similarity", ("stance",)), ("recency", ()), ("random", ())])
def test_a_feed_needs_opinions_where_they_rank(ranking: Any, needs: tuple[str, ...]) -> None:
    interaction = Feed(steps=20, posts=2, ranking=ranking)
    feed: Any = interaction.schedule(Setting.of(5, 4, opinions=[-2, -1, 0, 1, 2]))
    awaited: list[int] = []

    class Telling:
        async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
            awaited.append(turn)
            return 0.0

    async def story() -> list[Turn]:
        return [turn async for turn in feed.decide(Telling())]

    turns = asyncio.run(story())
    assert len(turns) == 5 + 2 * 20
    assert (tuple(feed.needs), bool(awaited)) == (needs, bool(needs))


class _Declaring(Schedule):
    """Declares something everywhere."""

    n_agents, steps, acts, others = 3, 9, named(WRITE, REVIEW), ("critic",)
    externals, needs, moderated = {"news": "it rained"}, ("tone",), "named"
    changes = (TieChange(2, 0, 1, 2),)

    def turns(self) -> Iterator[Turn]:
        return iter([Turn(0, 1, 0, "write"), Turn(1, 1, 1, "review", (0,))])


@pytest.mark.parametrize(
    ("wrapped", "changed"),
    [
        (lambda schedule: with_probes(schedule, 1, 1), {"acts"}),
        (lambda schedule: with_moderator(schedule), {"acts", "others"}),
        (lambda schedule: with_events(schedule, [Event("leave", 2, (0,))]), set()),
        (lambda schedule: with_phases(schedule, [Phase(4, schedule, (TieChange(3, 0, 2, 1),))]), {"changes"}),
    ],
    ids=["probes", "moderator", "events", "phases"],
)
def test_schedules_around_another_declare_what_it_declares(wrapped: Any, changed: set[str]) -> None:
    declared = {"n_agents", "steps", "acts", "others", "externals", "needs", "changes", "moderated"}
    found, bare = wrapped(_Declaring()), _Declaring()
    assert {name for name in declared if getattr(found, name) != getattr(bare, name)} == changed
    assert check_schedule(found) is found


# -- who acts first ------------------------------------------------------------------------------------------


def test_the_first_to_keep_is_the_first_whose_act_keeps_memory() -> None:
    assert first_keeper(Listed(*_acts("probe", "report-once", "self-report", "write", "review"))) == 3
    assert first_keeper(Listed(*_acts("report", "write"))) == 2


@pytest.mark.parametrize("names", [(), ("probe", "report-once"), ("self-report",)])
def test_where_nobody_keeps_anything_nobody_is_first(names: tuple[str, ...]) -> None:
    assert first_keeper(Listed(*_acts(*names))) is None
    assert first_keeper(Decided(*_acts(*names))) is None


def test_of_schedules_of_the_package_it_is_the_first_writer() -> None:
    assert first_keeper(GivenDyads(4, [(2, 0), (1, 3)])) == 2
    remembered: Any = RememberedReports(steps=5).schedule(Setting.of(4))
    assert first_keeper(remembered) == next(remembered.turns()).agent
    assert first_keeper(IndependentReports(reports=5).schedule(Setting.of(4))) is None
    assert first_keeper(Feed(steps=5, posts=1).schedule(Setting.of(4))) == 0


@pytest.mark.parametrize("act", ["probe", "self-report"])
def test_questions_off_the_record_make_nobody_the_first(act: Any) -> None:
    assert first_keeper(with_probes(GivenDyads(4, [(2, 0)]), 2, 1, act)) == 2
    similar = _similar(5, 1.0, [0] * 4)
    assert first_keeper(with_probes(similar, 2, 1, act)) == first_keeper(similar)


def test_the_first_dyad_of_an_adaptive_schedule_rests_on_assigned_opinions() -> None:
    """Nothing is measured before it, so that it is known who acts first."""
    for seed in range(20):
        schedule = _similar(5, 9.0, [-2, -2, 2, 2], seed)
        assert first_keeper(schedule) in range(4)
        assert first_keeper(schedule) == first_keeper(schedule)


@pytest.mark.parametrize("what", ["reply", "decision", "opinion"])
def test_what_depends_on_what_is_said_is_not_known_beforehand(what: str) -> None:
    turns = _acts("probe", "probe", "write")
    words = "Decided: the order of memory-keeping turns depends on earlier messages"
    with pytest.raises(ScheduleError, match=f"^{words}, but memory 'reflective-as-run'"):
        first_keeper(Decided(*turns, waits={2: what}))


@given(st.lists(st.sampled_from(sorted(ALL)), max_size=6), st.none() | st.integers(1, 5))
def test_it_is_known_as_long_as_nothing_is_waited_for_before(names: list[str], waits: int | None) -> None:
    turns = _acts(*names)
    keeping = next((turn for turn in turns if ALL[turn.act].memory == "keep"), None)
    late = waits is not None and waits < len(turns) and (keeping is None or waits <= keeping.index)
    schedule = Decided(*turns, waits={} if waits is None else {waits: "reply"})
    if late:
        with pytest.raises(ScheduleError, match="depends on earlier messages"):
            first_keeper(schedule)
    else:
        assert first_keeper(schedule) == (None if keeping is None else keeping.agent)


def test_a_schedule_that_waits_for_something_else_is_not_known_beforehand() -> None:
    class Slow(Listed):
        turns = None  # type: ignore[assignment]

        async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
            await asyncio.sleep(0)
            yield Turn(0, 1, 0, "write")

    with pytest.raises(ScheduleError, match=r"^Slow: the order of memory-keeping turns"):
        first_keeper(Slow())


def test_who_is_first_may_be_asked_from_within_an_event_loop() -> None:
    """And leaves no trace on the schedule, which is then carried out."""
    schedule = _similar(3, 1.0, [0] * 4)

    async def story() -> int | None:
        return first_keeper(schedule)

    assert asyncio.run(story()) == first_keeper(schedule)
