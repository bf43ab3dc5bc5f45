"""Persons in structures and interviews, as agents and as moderators."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.llm import Seat
from opinionsim.planning import plan
from opinionsim.running import run
from opinionsim.specification import load_experiment
from tests.support.people import Double, check_person_takes_part
from tests.support.running import changed

CHAIN: dict[str, Any] = {
    "name": "seats",
    "seed": 3,
    "task": "Should the centre be closed to cars?",
    "cast": [{}, {"name": "Ben", "seat": {}}, {}],
    "interaction": {"kind": "chain", "cycles": 2},
    "measurement": {},
}
WAYS: dict[str, dict[str, Any]] = {
    "chain": changed(CHAIN, roles={"moderator": {"seat": {"words": 40}}}),
    "debate": changed(CHAIN, cast=[{}, {"seat": {}}], interaction={"kind": "debate", "cycles": 2}),
    "ensemble": changed(CHAIN, interaction={"kind": "ensemble"}, roles={"moderator": {}}),
    "graph": changed(CHAIN, interaction={"kind": "graph", "edges": [[0, 1], [1, 2]]}),
    "interview": changed(CHAIN, interaction={"kind": "interview", "questions": ["Why?"]}),
    "all seats": changed(CHAIN, cast=[{"seat": {}}, {"seat": {}}], roles={"moderator": {"seat": {}}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_person_takes_part_in_every_structure(way: str) -> None:
    check_person_takes_part(WAYS[way], "Your response:")


@pytest.mark.parametrize("given", [{}, {"seats": {1: Seat(Double())}}])
def test_run_refuses_seats_that_nobody_takes_before_anything_is_written(given: dict[str, Any], tmp_path: Any) -> None:
    spec = changed(CHAIN, roles={"moderator": {"seat": {}}})
    with pytest.raises(SpecError, match=r"has a seat for a person .*opinionsim room SPEC"):
        run(load_experiment(spec), tmp_path / "s.sqlite", **given)
    assert list(tmp_path.iterdir()) == []
    run(load_experiment(spec), tmp_path / "s.sqlite", seats={1: Seat(Double())}, people=Double())


def test_a_seat_of_a_moderator_identifies_a_run_and_needs_no_model() -> None:
    seats = [{"seat": {}}, {"seat": {}}]
    runs = [load_experiment(changed(CHAIN, cast=seats, roles={"moderator": role})) for role in ({}, {"seat": {}})]
    assert runs[0].runs[0].run_id != runs[1].runs[0].run_id
    assert runs[1].spec.chat_models == ()
    assert sorted(map(str, runs[1].spec.seats)) == ["0", "1", "moderator"]
    assert plan(runs[1]).calls == 0


def test_a_seat_is_on_no_path_of_a_forecast() -> None:
    for cast, calls in (([{}, {}, {}], 6), ([{}, {"seat": {}}, {}], 4)):
        forecast = plan(load_experiment(changed(CHAIN, cast=cast)))
        assert (forecast.calls, forecast.longest_path) == (calls, calls)
