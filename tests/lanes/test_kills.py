"""Studies in batch queues whose process is killed: nothing is bought twice, and they end as if nobody had killed it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from opinionsim.store import Results
from tests.support.batch_kills import LOST, PACE, Forks, Machines, forks, machines, places
from tests.support.batch_runs import PROVIDERS, WITH_FILES, deepest
from tests.support.running import loaded

#: Dialects whose requests go with the submission, so that nothing can be deleted before it begins.
WITHOUT_FILES = tuple(each for each in PROVIDERS if each not in WITH_FILES)
#: Those of them whose batches have no names either, so that only their results tell whose they are.
WITHOUT_NAMES = ("anthropic", "openrouter")
#: All dialects; those that do in the same way what another one does take part in long tests.
SOME = [pytest.param(each, marks=[pytest.mark.long] * (each not in ("openai", "anthropic"))) for each in PROVIDERS]
#: Places where the dialects differ; the last makes a new batch of calls whose batch did not begin.
DIFFERENT = ("after submission", LOST, "before end", "after release")
#: Kills at each place of the full grid, those of one study among them, and kills at any time.
KILLS, AT_ONCE, ANY_TIME = 5, 3, 20
#: Seconds by which batches come late, on the server's clock.
LATE_S = 500.0
#: Calls of a study make so many steps, and more where a process must have kept many replies.
STEPS, MANY = 4, 10


@pytest.fixture(scope="module")
def pool() -> Iterator[Forks]:
    """Where processes are forked."""
    with forks() as found:
        yield found


@pytest.fixture(scope="module")
def whole(pool: Forks, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Results]:
    """The results of a study that nobody disturbs, by dialect and number of steps."""
    found: dict[tuple[str, int], Results] = {}

    def undisturbed(dialect: str, steps: int = STEPS) -> Results:
        if (dialect, steps) not in found:
            folder = tmp_path_factory.mktemp("whole") / "study"
            with machines(pool, dialect, str(folder), steps=steps) as study:
                study.finish()
                found[dialect, steps] = loaded(study.store)
                study.check(found[dialect, steps])
        return found[dialect, steps]

    return undisturbed


Whole = Callable[..., Results]


# --- kills -----------------------------------------------------------------------------------------------


def test_a_study_that_is_killed_at_each_point_buys_nothing_twice(pool: Forks, whole: Whole) -> None:
    with machines(pool, "openai", "each", steps=MANY) as study:
        alive = [place for place in places("openai") if not study.kill(place)]
        assert alive == []
        study.finish()
        study.check(whole("openai", MANY))


@pytest.mark.parametrize("dialect", [each for each in SOME if each.values[0] != "openai"])
def test_every_dialect_finds_again_what_a_killed_process_submitted(dialect: str, pool: Forks, whole: Whole) -> None:
    with machines(pool, dialect, "some") as study:
        alive = [place for place in DIFFERENT if not study.kill(place)]
        assert alive == []
        study.finish()
        study.check(whole(dialect))


def test_without_its_records_a_killed_study_buys_again(pool: Forks) -> None:
    """What the other tests count can be seen at all."""
    for place in ("after submission", "before journal"):
        with machines(pool, "openai", place) as study:
            assert study.kill(place)
            study.finish(broken="unread")
            assert study.twice() > 0


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
@pytest.mark.parametrize("most", [0, 2])
def test_calls_that_a_batch_did_not_answer_are_bought_once(most: int, dialect: str, pool: Forks, whole: Whole) -> None:
    """Some calls expire, some meet errors, and with `most` several batches are out at a time."""
    with machines(pool, dialect, "partly", steps=MANY, expire=0.3, item_errors={"500": 0.1, "429": 0.1}) as study:
        for place in places(dialect):
            assert study.kill(place, most=most)
        study.finish(most=most)
        study.check(whole(dialect, MANY))


# --- batches that come late ------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", SOME)
def test_a_batch_that_comes_late_is_not_bought_beside_another(dialect: str, pool: Forks, whole: Whole) -> None:
    with machines(pool, dialect, "late", late_creation_s=LATE_S, late=(0,)) as study:
        assert study.kill(LOST)
        assert not study.provider.batches
        if dialect in WITHOUT_FILES:
            after(study, "listed", lambda: come(study))
        # Otherwise it comes when all is over, but its file has been deleted.
        study.finish(pace=PACE._replace(begins_s=30.0))
        study.check(whole(dialect))


def test_a_batch_that_comes_late_is_bought_beside_another_if_its_file_is_still_there(pool: Forks) -> None:
    with machines(pool, "openai", "late", late_creation_s=LATE_S, late=(0,)) as study:
        assert study.kill(LOST)
        study.finish(broken="unrevoked")
        assert study.twice() > 0


def test_a_batch_that_comes_just_before_its_file_is_deleted_is_found_in_a_list_that_lags(
    pool: Forks, whole: Whole
) -> None:
    with machines(pool, "openai", "lag", late_creation_s=LATE_S, late=(0,), list_lag_s=0.4) as study:
        assert study.kill(LOST)
        # The file is first looked up when it is to be deleted.
        after(study, "file", lambda: come(study))
        study.finish(pace=PACE._replace(lost_s=0.6))
        study.check(whole("openai"))


@pytest.mark.parametrize("dialect", [each for each in SOME if each.values[0] in WITHOUT_NAMES])
def test_a_batch_that_may_be_the_lost_one_is_waited_for_however_long_it_takes(
    dialect: str, pool: Forks, whole: Whole
) -> None:
    with machines(pool, dialect, "slow", delay=lambda number: 0.04 if number else LATE_S) as study:
        assert study.kill("after submission")
        over = time.monotonic() + 1.0
        after(study, "listed", lambda: time.monotonic() > over and study.provider.advance(LATE_S))
        study.finish(pace=PACE._replace(begins_s=0.2))
        study.check(whole(dialect))


@pytest.mark.parametrize("dialect", [each for each in SOME if each.values[0] in WITHOUT_FILES])
def test_a_batch_that_is_nowhere_is_bought_again_only_when_told_to(dialect: str, pool: Forks, whole: Whole) -> None:
    with machines(pool, dialect, "nowhere", drop_before_create=(0,)) as study:
        assert study.kill(LOST)
        patient = PACE._replace(begins_s=86_400.0)
        for _ in range(2):
            assert study.go(pace=patient, leave=True).said["left"] == 1
        assert not study.provider.batches
        study.finish(pace=patient, resubmit=True)
        study.check(whole(dialect))


def after(study: Machines, name: str, then: Callable[[], object]) -> None:
    """Have something happen right after each use of a method of the server."""
    method = getattr(study.provider, name)

    def used(*given: Any) -> Any:
        found = method(*given)
        then()
        return found

    setattr(study.provider, name, used)


def come(study: Machines) -> None:
    """Have the batches come that are late."""
    provider = study.provider
    if provider._late:
        provider.advance(provider._late[0][0] - provider.now_s)


# --- leaving ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["openai", pytest.param("anthropic", marks=pytest.mark.long)])
def test_a_study_that_moves_from_machine_to_machine_buys_nothing_twice(dialect: str, pool: Forks, whole: Whole) -> None:
    with machines(pool, dialect, "machine-0", steps=MANY, delay=LATE_S) as study:
        number = 0
        while (said := study.go(leave=True).said)["complete"] < said["total"]:
            assert said["left"]
            study.provider.advance(LATE_S)
            number += 1
            before, study.folder = study.folder, Path(f"machine-{number}").resolve()
            shutil.copytree(before, study.folder)
        assert number >= 10
        assert deepest(loaded(study.store)) <= len(study.provider.batches)
        study.check(whole(dialect, MANY))


# --- the full grid ---------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """What some studies that were killed have shown."""

    kills: int = 0
    twice: int = 0


def killed_at(place: str, dialect: str, pool: Forks, whole: Whole) -> Tally:
    """Kill studies at drawn passings of a place; each must end as if nobody had."""
    rng, kills, twice, number = np.random.default_rng([46, *dialect.encode(), *place.encode()]), 0, 0, 0
    steps = MANY if "journal" in place else STEPS
    while kills < KILLS:
        with machines(pool, dialect, f"{place}-{number}", steps=steps) as study:
            for _ in range(min(AT_ONCE, KILLS - kills)):
                kills += study.kill(place, int(rng.integers(1, 4)))
            study.finish()
            twice += study.twice()
            study.check(whole(dialect, steps))
        number += 1
    return Tally(kills, twice)


def killed_at_any_time(dialect: str, pool: Forks, whole: Whole) -> Tally:
    """The same at drawn times after the start of a process."""
    rng, kills, twice, number = np.random.default_rng([46, *dialect.encode()]), 0, 0, 0
    while kills < ANY_TIME:
        with machines(pool, dialect, f"time-{number}") as study:
            for _ in range(min(AT_ONCE, ANY_TIME - kills)):
                kills += study.go(after_s=float(rng.uniform(0.02, 1.2))).code < 0
            study.finish()
            twice += study.twice()
            study.check(whole(dialect))
        number += 1
    return Tally(kills, twice)


def killed_while_late(dialect: str, pool: Forks, whole: Whole, broken: str = "") -> Tally:
    """Kill studies when one of their batches is to come late."""
    twice = 0
    for number in range(KILLS):
        name = f"late-{broken}-{number}"
        with machines(pool, dialect, name, late_creation_s=LATE_S, late=(number % 4,)) as study:
            assert study.kill(LOST)
            if dialect in WITHOUT_FILES:
                after(study, "listed", lambda study=study: come(study))
            study.finish(broken=broken, pace=PACE._replace(begins_s=30.0))
            twice += study.twice()
            if not broken:
                study.check(whole(dialect))
    return Tally(KILLS, twice)


def killed_unread(dialect: str, pool: Forks) -> Tally:
    """Kill studies whose later processes do not read the records of batches."""
    twice = 0
    for number, place in enumerate(
        ("after submission", "after its record", "after end", "before fetch", "after fetch")
    ):
        with machines(pool, dialect, f"unread-{number}") as study:
            assert study.kill(place)
            study.finish(broken="unread")
            twice += study.twice()
    return Tally(5, twice)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dialect", PROVIDERS)
def test_kills_at_all_points(dialect: str, pool: Forks, whole: Whole) -> None:
    """With ``-s`` it prints what it counted: kills, and calls that were bought twice."""
    sound = {place: killed_at(place, dialect, pool, whole) for place in places(dialect)}
    sound["a batch that comes late"] = killed_while_late(dialect, pool, whole)
    if dialect == "openai":
        sound["any time"] = killed_at_any_time(dialect, pool, whole)
    broken = {"records unread": killed_unread(dialect, pool)}
    if dialect in WITH_FILES:
        broken["late, its file still there"] = killed_while_late(dialect, pool, whole, "unrevoked")
    print(f"\n{dialect}: kills, bought twice")
    for name, tally in (sound | broken).items():
        print(f"  {name:<30} {tally.kills:>3} {tally.twice:>3}", flush=True)
    assert min(each.kills for each in sound.values()) >= KILLS
    assert {each.twice for each in sound.values()} == {0}
    assert all(each.twice for each in broken.values())
