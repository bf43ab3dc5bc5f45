"""The record of a run and the list of experiments, while runs are written, begun anew, tried and withdrawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim import watching
from opinionsim.store import EdgeRow, Store, TurnRow, open_store
from tests.support.running import SMALL, changed

SPEC = changed(
    SMALL,
    measurement={"classifier": "lexicon"},
    replicates=2,
    sweep={"cognition.confirmation_bias": ["none", "strong"]},
)


class _Written:
    """A store with an experiment, one of whose runs is written anew by hand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.design = store.designs()[0]
        self.run = self.design.rows[0].run_id
        self.agents = store.agents(self.run)

    def begin(self) -> None:
        """Begin the run anew."""
        self.store.forget([self.run])
        epoch = self.store.lease(self.run, "host 1") or 0
        self.record = self.store.record(self.run, epoch, self.design.experiment_id)
        self.record.begin(self.agents, [EdgeRow(0, 1)])
        self.record.flush()

    def say(self, turn: int, text: str = "Well.") -> None:
        """Add a turn."""
        self.record.add_turn(TurnRow(turn, turn + 1, 0, "write", "post", (), text))
        self.record.flush()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[_Written]:
    url = str(tmp_path / "s.sqlite")
    osim.run(osim.load_experiment(SPEC), url)
    with open_store(url) as store:
        yield _Written(store)


def test_what_follows_a_row_is_told_alone(written: _Written) -> None:
    with open_store(written.store.url, write=False) as reader:
        written.begin()
        first = watching.run_record(reader, written.run)
        assert (first["seq"], first["turns"]["turn"], first["edges"]) == (0, [], [[0, 1, 1.0]])
        assert len(first["agents"]) == len(written.agents)
        assert (first["state"], first["held"]) == ("under way", True)
        for turn in (1, 0):
            written.say(turn)
        # Before the first row all is told again, since a run has no agents before it begins.
        again = watching.run_record(reader, written.run, since=f"{first['generation']}.0")
        assert (again["seq"], again["turns"]["turn"], len(again["agents"])) == (2, [0, 1], len(written.agents))
        written.say(5)
        more = watching.run_record(reader, written.run, since=f"{again['generation']}.{again['seq']}")
        assert (more["seq"], more["turns"]["turn"]) == (3, [5])
        assert [more[name] for name in ("about", "agents", "instruments", "edges", "siblings")] == [None] * 5
        nothing = watching.run_record(reader, written.run, since=f"{more['generation']}.3")
        assert (nothing["seq"], nothing["turns"]["turn"], nothing["words"]) == (3, [], [])


def test_a_run_that_is_begun_anew_is_told_from_the_start(written: _Written) -> None:
    with open_store(written.store.url, write=False) as reader:
        before = watching.run_record(reader, written.run)
        written.begin()
        written.say(0, "Anew.")
        after = watching.run_record(reader, written.run, since=f"{before['generation']}.{before['seq']}")
        assert (after["generation"], after["seq"]) == (before["generation"] + 1, 1)
        assert after["about"] == before["about"] | {"notices": []}
        assert watching.run_turns(reader, written.run)["turns"][0]["text"] == "Anew."


def test_an_experiment_tells_each_run_in_the_order_of_rows(written: _Written) -> None:
    written.begin()
    with open_store(written.store.url, write=False) as reader:
        told = watching.experiment(reader, "small")
    frame = osim.load(written.store.url).runs
    assert [each["run_id"] for each in told["runs"]] == frame["run_id"].tolist()
    assert [each["row"] for each in told["runs"]] == [0, 1, 2, 3]
    assert [each["state"] for each in told["runs"]] == ["under way", *["complete"] * 3]
    assert (told["counts"]["complete"], told["counts"]["under way"], told["over"]) == (3, 1, False)
    assert told["axes"] == [{"name": "cognition.confirmation_bias", "levels": ["none", "strong"]}]
    assert [each["axes"]["cognition.confirmation_bias"] for each in told["runs"]] == ["none"] * 2 + ["strong"] * 2
    assert "SCRIPTED" in told["stamp"]
    assert all("SCRIPTED" in each["stamp"] for each in told["runs"])
    assert told["runs"][1]["calls"] == told["runs"][1]["expected"] > 0


def test_siblings_are_the_other_runs_of_a_block(written: _Written) -> None:
    with open_store(written.store.url, write=False) as reader:
        record = watching.run_record(reader, written.run)
        rows = {each["run_id"]: each for each in watching.experiment(reader, "small")["runs"]}
    block = {name for name, each in rows.items() if each["block"] == rows[written.run]["block"]}
    assert {each["run_id"] for each in record["siblings"]} == block - {written.run}
    assert len(block) == 2


def _state(written: _Written) -> tuple[str, str, list[str]]:
    with open_store(written.store.url, write=False) as reader:
        record = watching.run_record(reader, written.run)
        (listed,) = (each for each in watching.experiment(reader, "small")["runs"] if each["run_id"] == written.run)
    return record["state"], listed["state"], record["about"]["notices"]


def test_characters_that_turn_a_line_are_spelled_out_in_names(written: _Written) -> None:
    written.agents = [replace(each, name=f"{each.name}\u202edesrever") for each in written.agents]
    written.begin()
    written.say(0, "Well said.")
    with open_store(written.store.url, write=False) as reader:
        found = [
            watching.run_record(reader, written.run)["agents"],
            watching.search(reader, experiment="small", text="Well")["hits"],
            watching.run_agent(reader, written.run, 0),
        ]
    assert all("\\\\u202edesrever" in json.dumps(each, ensure_ascii=False) for each in found)
    assert "\u202e" not in json.dumps(found, ensure_ascii=False)


def test_trials_and_withdrawn_runs_say_what_they_are(written: _Written) -> None:
    written.store.change_seat(written.run, 1, lambda seat: replace(seat, trial=True))
    state, listed, (notice,) = _state(written)
    assert (state, listed) == ("trial", "trial")
    assert "tables leave it out" in notice
    written.store.withdraw(written.run, 0)
    state, listed, (notice,) = _state(written)
    assert (state, listed) == ("withdrawn", "withdrawn")
    assert "deleted" in notice


def test_an_empty_store_has_no_experiments(tmp_path: Path) -> None:
    url = str(tmp_path / "empty.sqlite")
    open_store(url).close()
    with open_store(url, write=False) as reader:
        assert watching.experiments(reader)["experiments"] == []


def _same(one: Any, other: Any) -> None:
    assert {**one, "at": 0} == {**other, "at": 0}


def test_what_is_told_while_it_is_written_is_one_state(written: _Written) -> None:
    """Inside a moment nothing that is written meanwhile is seen."""
    written.begin()
    with open_store(written.store.url, write=False) as reader, reader.moment() as moment:
        before = watching.run_record(moment, written.run)
        written.say(0)
        _same(watching.run_record(moment, written.run), before)
        assert watching.run_record(reader, written.run)["seq"] == 1
