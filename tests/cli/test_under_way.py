"""Commands that read a store while it is being written, or that holds several designs of an experiment."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.specification import load_experiment
from opinionsim.store import ExperimentRun, open_store
from opinionsim.watching import row_of
from tests.cli.conftest import SMALL, Invoke, backup
from tests.support.running import changed, watched

pytestmark = pytest.mark.long

NOTE = re.compile(r"2 of 4 runs are under way; results as of \d\d:\d\d:\d\d\n")
SPEC: dict[str, Any] = yaml.safe_load(SMALL)


# -- while it is being written -------------------------------------------------------------------------------


def test_status_tells_what_is_under_way_from_what_was_cut_off(invoke: Invoke, half: Path, tmp_path: Path) -> None:
    (found,) = json.loads(invoke("status", half, "--json").stdout)
    assert [found[name] for name in ("runs", "complete", "under_way", "cut_off", "pending")] == [4, 2, 2, 0, 0]
    assert found["calls"] == 29
    said = invoke("status", half).stdout
    assert said.splitlines()[0].split()[:6] == ["experiment", "runs", "complete", "under", "way", "calls"]
    assert f"To watch the runs that are under way: opinionsim view {half}\n" in said
    copy = backup(half, tmp_path / "copy.sqlite")
    (found,) = json.loads(invoke("status", copy, "--json").stdout)
    assert [found[name] for name in ("complete", "under_way", "cut_off")] == [2, 0, 2]
    assert "Runs that were cut off resume after their last reply" in invoke("status", copy).stdout
    listed = invoke("status", copy, "--runs").stdout
    assert len(re.findall(r"=\w+/1 +\w+ +cut off +\d of 12 calls\n", listed + "\n")) == 2


def test_show_says_how_far_a_run_is(invoke: Invoke, half: Path, tmp_path: Path) -> None:
    shown = invoke("show", half, "--run", "none/1")
    far = re.search(r"^run \S+=none/1 is under way; (\d) of 12 calls are on record$", shown.stderr, re.MULTILINE)
    assert far is not None
    assert shown.stdout.count("\nstep ") <= int(far[1]) <= 5
    assert NOTE.match(shown.stderr)
    assert "none/0 is" not in invoke("show", half, "--run", "none/0").stderr
    copy = backup(half, tmp_path / "copy.sqlite")
    said = f"=none/1 was cut off after {far[1]} of 12 calls; `opinionsim run` resumes it\n"
    assert invoke("show", copy, "--run", "none/1").stderr.endswith(said)


def test_show_of_a_run_that_has_not_begun_or_has_failed(invoke: Invoke) -> None:
    experiment = load_experiment(SPEC)
    model = watched(fails=lambda number: number > 14)[0]
    osim.run(experiment, "some.sqlite", only=experiment.pilot, chat_model=model, max_concurrency=1)
    shown = {row: invoke("show", "some.sqlite", "--run", run.run_id[:8]) for row, run in enumerate(experiment.runs)}
    told = [f"run cognition.confirmation_bias={level}/1 has not begun\n" for level in ("none", "strong")]
    assert [shown[1].stderr, shown[3].stderr] == told
    failed = [shown[row].stderr for row in (0, 2) if shown[row].stderr]
    assert len(failed) in (1, 2)
    assert all(
        re.match(r"run \S+/0 is incomplete, after \d+ of 12 calls: .*the provider is gone", each) for each in failed
    )
    assert "No model call was made for this." in invoke("show", "some.sqlite", "--run", "none/1", "--prompt").stdout


def test_tables_figures_and_files_of_what_is_complete_say_so(invoke: Invoke, half: Path) -> None:
    printed = invoke("table", half)
    assert (printed.exit_code, bool(NOTE.fullmatch(printed.stderr))) == (0, True)
    assert "Runs used: 2 complete. Excluded (not complete): 2 running." in printed.stdout
    assert all(json.loads(invoke(command, half, "--json").stdout) for command in ("table", "replay"))
    for options in ((), ("trajectories", "--run", "none/1"), ("ribbons",)):
        drawn = invoke("plot", *options, half, "--out", "figures")
        assert (drawn.exit_code, bool(NOTE.match(drawn.stderr))) == (0, True), drawn.stderr
        assert ("=none/1 is under way; " in drawn.stderr) == ("--run" in options)
    written = invoke("export", half, "out")
    assert (written.exit_code, bool(NOTE.fullmatch(written.stderr))) == (0, True)
    # One state of the store: whatever has an opinion, a call or a metric has its turn, run and agent.
    frames = {path.stem: pd.read_csv(path) for path in Path("out").glob("*.csv")}
    assert len(frames["calls"]) == 29
    keys = set(map(tuple, frames["turns"][["run_id", "turn"]].to_numpy()))
    assert set(map(tuple, frames["opinions"][["run_id", "turn"]].to_numpy())) <= keys
    again = invoke("replay", half)
    assert (again.exit_code, again.stdout) == (0, "2 of 2 complete runs are equal after replay (24 turns)\n")
    assert NOTE.fullmatch(again.stderr)


def test_nothing_is_written_by_reading(invoke: Invoke, half: Path, tmp_path: Path) -> None:
    def state(store: Path) -> list[tuple[str, int]]:
        # What a sweep says of itself goes to the log of a store that is being written.
        return sorted(
            (path.name, 0 if store == half and path.suffix == ".sqlite-wal" else path.stat().st_size)
            for path in store.parent.iterdir()
        )

    (tmp_path / "copied").mkdir()
    for store in (half, backup(half, tmp_path / "copied" / "small.sqlite")):
        before = state(store)
        for command in (("status", "--runs"), ("show", "--run", "none/1", "--prompt"), ("table",), ("replay",)):
            assert invoke(command[0], store, *command[1:]).exit_code == 0
        assert state(store) == before


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("table",), "no run is complete"),
        (("plot",), "no run is complete, so there is nothing to draw"),
        (("plot", "panels"), "no complete run"),
        (("plot", "ribbons"), "complete"),
        (("plot", "trajectories"), "complete"),
        (("plot", "trajectories", "--run", "none/0"), "no stance was measured"),
    ],
)
def test_where_nothing_is_complete_or_measured(invoke: Invoke, command: tuple[object, ...], said: str) -> None:
    osim.run(load_experiment(SPEC), "none.sqlite", chat_model=watched(fails=lambda number: True)[0])
    name, *options = command
    result = invoke(name, *options, "none.sqlite")
    assert (result.exit_code, result.stdout) == (2, "")
    *notes, error = result.stderr.splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert bool(notes) == ("--run" in options)


def test_an_export_of_what_has_led_to_nothing_has_all_columns(invoke: Invoke) -> None:
    osim.run(load_experiment(SPEC), "none.sqlite", chat_model=watched(fails=lambda number: True)[0])
    assert invoke("export", "none.sqlite", "out").exit_code == 0
    assert {"run_id", "turn", "reply"} <= set(pd.read_csv("out/calls.csv").columns)
    assert {"value", "expectation"} <= set(pd.read_csv("out/opinions.csv").columns)
    assert "no run is complete" in invoke("replay", "none.sqlite").stderr


# -- designs -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an experiment whose cells were changed; two of its four cells are in both designs."""
    path = tmp_path_factory.mktemp("designs") / "small.sqlite"
    osim.run(load_experiment(SPEC), path)
    wider = changed(SPEC, sweep={"cognition.confirmation_bias": ["none", "weak"]})
    osim.run(load_experiment(wider), path)
    return path


def test_status_lists_each_design_and_sums_what_was_paid(invoke: Invoke, designs: Path) -> None:
    (found,) = json.loads(invoke("status", designs, "--json").stdout)
    assert (found["runs"], found["complete"], found["calls"]) == (6, 6, 72)
    assert found["designs"] == [
        {
            "design": number, "frozen": False, "run_last": number == 2,
            "runs": 4, "complete": 4, "incomplete": 0, "under_way": 0, "withdrawn": 0, "cut_off": 0,
            "pending": 0, "being_coded": 0,
        }
        for number in (1, 2)
    ]  # fmt: skip
    lines = invoke("status", designs).stdout.splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["design", "1", "4", "4"],
        ["design", "2", "(run", "last)", "4", "4"],
    ]
    listed = invoke("status", designs, "--runs").stdout
    assert ("\nsmall, design 1\n" in listed, "\nsmall, design 2\n" in listed) == (True, True)


def test_what_was_forgotten_was_paid_for(invoke: Invoke) -> None:
    osim.run(load_experiment(SPEC), "anew.sqlite")
    with open_store("anew.sqlite") as store:
        store.forget(list(store.states())[:1])
    (found,) = json.loads(invoke("status", "anew.sqlite", "--json").stdout)
    assert (found["complete"], found["pending"], found["calls"]) == (3, 1, 48)


def test_the_design_run_last_is_shown_and_the_other_named(invoke: Invoke, designs: Path) -> None:
    cells = {1: "strong", 2: "weak"}
    for options, number, other in (
        ((), 2, "--design 1 for the earlier"),
        (("--design", 1), 1, "--design 2 for the later"),
    ):
        note = f"design {number} of 2; {other} one\n"
        for command in (
            ("table",),
            ("export", "out"),
            ("replay",),
            ("plot", "--out", "figures"),
            ("show", "--run", f"{cells[number]}/1"),
        ):
            result = invoke(command[0], designs, *command[1:], *options)
            assert (result.exit_code, result.stderr) == (0, note)
            if command[0] in ("table", "show"):
                told = result.stdout if command[0] == "table" else result.stdout.splitlines()[0]
                assert (cells[number] in told, cells[3 - number] in told) == (True, False)
        assert set(pd.read_csv("out/runs.csv")["confirmation_bias"]) == {"none", cells[number]}
    assert {path.name for path in Path("figures").iterdir()} == {"small-outcome.png", "small-outcome-design-1.png"}


def test_the_design_that_was_run_again_is_the_last(invoke: Invoke, designs: Path, tmp_path: Path) -> None:
    copy = backup(designs, tmp_path / "copy.sqlite")
    osim.run(load_experiment(SPEC), copy)
    assert invoke("table", copy).stderr == "design 1 of 2; --design 2 for the later one\n"
    (found,) = json.loads(invoke("status", copy, "--json").stdout)
    assert [each["run_last"] for each in found["designs"]] == [True, False]
    osim.run(load_experiment(changed(SPEC, sweep={"cognition.memory": ["cumulative", "reflective"]})), copy)
    assert invoke("table", copy).stderr == "design 3 of 3; --design 1 or 2 for the others\n"


@pytest.mark.parametrize("command", [("table",), ("plot",), ("show",), ("export", "out"), ("replay",)])
def test_a_design_there_is_not(invoke: Invoke, designs: Path, command: tuple[str, ...]) -> None:
    result = invoke(command[0], designs, *command[1:], "--design", 3)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: experiment 'small' in ")
    assert result.stderr.endswith("has no design 3; it has 1, 2\n")


# -- names of runs -------------------------------------------------------------------------------------------


def test_runs_of_a_design_are_rows_of_the_frame() -> None:
    """Also where cells share a run, or read no stance."""
    civility = [{"variable": "civility", "classifier": "lexicon", "texts": ["report"]}]
    grids = [
        {"measurement.classifier": ["lexicon", "exact"], "topic.framing": ["truth", "falsehood"]},
        {"measurement": [{"classifier": None, "instruments": civility, "label": "civil"}]},
    ]
    osim.run(load_experiment(changed(SPEC, sweep=grids)), "rows.sqlite")
    frame = osim.load("rows.sqlite").runs
    assert frame["run_id"].nunique() < len(frame) == 10
    with open_store("rows.sqlite", write=False) as store:
        cells = store.designs()[0].rows
    assert [(cell.cell, cell.replicate, cell.run_id) for cell in cells] == list(
        frame[["cell", "replicate", "run_id"]].itertuples(index=False, name=None)
    )


def test_a_run_is_named_by_condition_and_replicate_or_the_start_of_its_id() -> None:
    named = [("abc1", "a.b=x, c=1/0"), ("abc2", "a.b=x, c=2/0"), ("abc2", "a.b=y/10"), ("1234567890", "a.b=y/10.1")]
    runs = [ExperimentRun(run_id, None, int(name[-1]), "", name.rpartition("/")[0]) for run_id, name in named[:2]]
    runs += [ExperimentRun(run_id, None, 10, "", "a.b=y", redraw=place) for place, (run_id, _) in enumerate(named[2:])]
    assert [each.name for each in runs] == [name for _, name in named]
    wanted = {
        "a.b=x,c=1/0": 0,
        "c=2/0": 1,
        "2/0": 1,
        "b=y/10": 2,
        "y/10": 2,
        "10.1": 3,
        "abc1": 0,
        "abc2": 1,
        "12345": 3,
    }
    assert {given: row_of("e", runs, given) for given in wanted} == wanted
    for given in ("", "0/0", "x", "abc", "123", "y/1", "zz", "0", ".*"):
        with pytest.raises(
            SpecError, match=rf"run {re.escape(given)}: (no|2) runs have such a name or id; give a cond"
        ):
            row_of("e", runs, given)
    with pytest.raises(SpecError, match="'e' has no stored runs"):
        row_of("e", [], "0")
