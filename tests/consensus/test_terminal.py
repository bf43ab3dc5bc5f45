"""Taking part in a session at the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.store import open_store
from tests.support.command import invoked, refused

SPEC = """\
name: seats
replicates: 2
seed: 1
task: Should the centre be closed to cars?
cast: [{}, {name: Ben, seat: {words: 5, timeout_s: 600, invitation: "Ben, it is your turn."}}, {}]
roles: {mediator: {}}
interaction: {kind: consensus, candidates: 2, rounds: 0, ratings: {passes: 1}}
measurement: {self_report: {after: 1}}
topic: {name: t-rex}
"""
#: A text that is too long, one that is not; ratings, the first off the scale; rankings, one unfinished; a number.
LINES = "one two three four five six\n\nLeave it\nas it is.\n\n9\n3\n4\n3\n5\n6\nB\nB > A\n2\n"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    file = tmp_path / "seats.yaml"
    file.write_text(SPEC, encoding="utf-8")
    return file


def test_a_session_at_the_terminal(room: Path) -> None:
    result = invoked("room", room, "--terminal", text=LINES)
    assert (result.exit_code, result.stdout) == (0, "")
    said = result.stderr
    for words in (
        "Agreement, from 1 to 7 (1 strongly disagree, 2 disagree, 3 somewhat disagree, 4 neutral, 5 somewhat agree,",
        "This answer cannot be used: Agreement: choose a number from 1 to 7",
        "This answer cannot be used: give each of A, B a place, 1 for the best",
    ):
        assert words in said
    results = osim.load("results/seats-room.sqlite")
    own = results.turns[results.turns["agent"] == 1].set_index("act")["message"]
    assert own["state"] == "Leave it\nas it is."
    assert own["self-report"] == "slightly negative"
    assert sorted(results.runs["status"]) == ["pending", "trial"]
    assert set(results.runs["evidence"]) == {"mixed"}


def test_the_same_command_goes_on_where_the_input_ended(room: Path) -> None:
    """Each session once, and no answer on record is asked for again."""
    lines = LINES.splitlines(keepends=True)
    cut = invoked("room", room, "--terminal", "--store", "s.sqlite", text="".join(lines[:5]))
    assert cut.exit_code == 1
    assert "the input has ended; repeat the command to continue from here" in cut.stderr
    with open_store("s.sqlite", write=False) as store:
        assert [wait.question["act"] for wait in store.waits()] == ["rate"]
    assert "1 run waiting for a person's answer" in invoked("status", "s.sqlite").stdout
    assert invoked("room", room, "--terminal", "--store", "s.sqlite", text="".join(lines[5:])).exit_code == 0
    assert invoked("room", room, "--terminal", "--store", "s.sqlite", text=LINES).exit_code == 0
    assert set(osim.load("s.sqlite").runs["status"]) == {"trial"}
    assert "all sessions are over" in invoked("room", room, "--terminal", "--store", "s.sqlite").stderr
    assert "waiting" not in invoked("status", "s.sqlite").stdout


def test_what_was_only_tried_is_tabulated_by_no_command(room: Path) -> None:
    invoked("room", room, "--terminal", "--set", "replicates=1", "--store", "s.sqlite", text=LINES)
    for command in ("table", "plot outcome"):
        said = refused(*command.split(), "s.sqlite")
        assert "(1 trial): results exclude trial and withdrawn runs" in said
        assert "`opinionsim run` resumes" not in said


def test_who_takes_several_seats_is_told_for_which_one_each_question_is(room: Path) -> None:
    cast = 'cast=[{"seat": {}}, {"name": "Ben", "seat": {}}]'
    options = ("--set", cast, "--set", "measurement={}", "--set", "interaction.ratings.passes=0")
    said = invoked("room", room, "--terminal", *options, text="One.\n\nTwo.\n\nA > B\nB > A\n").stderr
    # Questions to several seats are open at the same time, in no order.
    assert sorted(each.partition(":")[0] for each in said.split("This is for ")[1:]) == ["Ben"] * 2 + ["Citizen 1"] * 2


def test_what_others_say_moves_no_cursor(room: Path) -> None:
    change = 'cast=[{"text": "\\u001b[2Jgone"}, {"seat": {}}, {}]'
    said = invoked("room", room, "--terminal", "--set", change, "--set", "measurement={}", text="Me.\n\n").stderr
    assert "\x1b[2J" not in said
