"""Taking part at the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from tests.cli.conftest import Invoke
from tests.support.command import refused

SPEC = """\
name: seats
replicates: 2
seed: 1
cast: [{}, {name: Ben, seat: {words: 5, timeout_s: 600, invitation: "Ben, it is your turn."}}, {}]
interaction: {kind: independent, reports: 1}
measurement: {self_report: {after: 1}}
topic: {name: t-rex}
"""


@pytest.fixture
def room(tmp_path: Path) -> Path:
    file = tmp_path / "seats.yaml"
    file.write_text(SPEC, encoding="utf-8")
    return file


def test_a_text_and_a_choice_at_the_terminal(invoke: Invoke, room: Path) -> None:
    lines = "one two three four five six\n\nLeave it\nas it is.\n\n9\n2\n"
    result = invoke("room", room, "--terminal", "--store", "s.sqlite", text=lines)
    assert (result.exit_code, result.stdout) == (0, "")
    for words in (
        "Ben, it is your turn.",
        "You have 600 seconds to answer.",
        "Your text, at most 5 words; a blank line ends it:",
        "This answer cannot be used: the text has 6 words; at most 5 are possible",
        "1: strongly negative",
        "1 of 1 run complete",
    ):
        assert words in result.stderr
    results = osim.load("s.sqlite")
    own = results.turns[results.turns["agent"] == 1]["message"]
    assert own.tolist() == ["Leave it\nas it is.", "slightly negative"]
    assert sorted(results.runs["status"]) == ["pending", "trial"]


def test_without_a_seat_there_is_no_room(spec: Path) -> None:
    assert "small has no seat for a person" in refused("room", spec, "--terminal")


def test_run_names_the_room(room: Path) -> None:
    assert "opinionsim room" in refused("run", room)
    assert not Path("results").exists()
