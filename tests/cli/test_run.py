from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.cli._run import report
from opinionsim.errors import DamagedError, JournalMismatch, ModelCallError, OpinionSimError
from opinionsim.running import Summary
from opinionsim.store import Paid, open_store
from tests.cli.conftest import Invoke
from tests.support.command import refused
from tests.support.processes import Command

pytestmark = pytest.mark.long

#: Enough runs that an interrupt after the first line of output finds most of them not yet begun.
MANY = ("--set", "replicates=30", "--set", "interaction.steps=8")
N_RUNS, N_CALLS = 60, 960


def _without_timing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns=[column for column in frame.columns if str(column).endswith(("_s", "_at"))])


def test_run_reports_and_leaves_standard_output_to_data(invoke: Invoke, spec: Path) -> None:
    result = invoke("run", spec)
    assert (result.exit_code, result.stdout) == (0, "")
    told = "Taking part: 4 of the 10 personas of chuang2024, drawn at random; initial opinions: as the file says"
    assert told in result.stderr.splitlines()
    assert "4 of 4 runs complete" in result.stderr
    assert "48 calls made, 0 answered by the store" in result.stderr
    assert "  opinionsim table results/small.sqlite\n" in result.stderr
    assert len(osim.load("results/small.sqlite").runs) == 4


def test_a_second_run_repeats_nothing(invoke: Invoke, spec: Path) -> None:
    assert invoke("run", spec).exit_code == 0
    assert "all 4 runs were complete already; no call was made\n" in invoke("run", spec, "--max-concurrency", 3).stderr
    widened = invoke("run", spec, "--set", "replicates=3").stderr
    assert "6 of 6 runs complete (4 of them already)" in widened
    assert "24 calls made" in widened


def test_a_store_in_use_is_refused(invoke: Invoke, spec: Path) -> None:
    with open_store("busy.sqlite"):
        result = invoke("run", spec, "--store", "busy.sqlite")
    assert result.exit_code == 2
    assert "busy.sqlite is in use by another run" in result.stderr
    assert str(os.getpid()) in result.stderr
    assert invoke("run", spec, "--store", "busy.sqlite").exit_code == 0


def test_a_failed_run_is_reported_and_the_others_finish(invoke: Invoke, spec: Path) -> None:
    networks = "sweep={interaction.network: [complete, {kind: erdos-renyi, p: 1.0e-9}]}"
    result = invoke("run", spec, "--set", networks, "--store", "s.sqlite")
    assert result.exit_code == 1
    assert "2 of 4 runs complete" in result.stderr
    assert "repeat the command" in result.stderr
    (found,) = json.loads(invoke("status", "s.sqlite", "--json").stdout)
    assert (found["complete"], found["incomplete"]) == (2, 2)
    told = [f"2 runs, for instance {error}\n" for error in found["errors"].values()]
    assert [run_id in line for run_id, line in zip(found["errors"], told, strict=True)] == [True, True]
    for output in (invoke("status", "s.sqlite").stdout, result.stderr):
        assert any(line in output for line in told)
    table = invoke("table", "s.sqlite")
    assert (table.exit_code, "Excluded (not complete): 2 incomplete" in table.stdout) == (0, True)


def test_many_reasons_are_counted_and_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    errors = {
        f"{number:x}": ModelCallError(f"reason {'abcdefgh'[number]}", place=f"run {number:x}") for number in range(8)
    }
    report("sqlite:///s.sqlite", Summary(8, 0, 0, errors, False, None, 3, 0, 0, Paid(3, 0, 0, 0.0), 1.0))
    said = capsys.readouterr().err
    assert said.count("  1 run: ") == 5
    assert "  and 3 more (see: opinionsim status s.sqlite)\n" in said


@pytest.mark.parametrize(
    ("error", "advised"),
    [(ModelCallError("anders"), True), (JournalMismatch("anders"), False), (DamagedError("anders"), False)],
    ids=["call", "journal", "damage"],
)
def test_going_on_is_advised_where_the_same_command_can_do_it(
    error: OpinionSimError, advised: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    report("s.sqlite", Summary(1, 0, 0, {"r": error}, False, None, 0, 0, 0, Paid(), 1.0))
    assert ("repeat the command" in capsys.readouterr().err) == advised


@pytest.mark.parametrize(("made", "said"), [(0, "no call was made"), (8, "8 calls made to code texts")])
def test_runs_that_were_complete_say_whether_judges_were_asked(
    made: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report("sqlite:///s.sqlite", Summary(4, 4, 4, {}, False, None, made, 0, 0, Paid(made, 0, 0, 0.0), 1.0))
    assert capsys.readouterr().err == f"all 4 runs were complete already; {said}\n"


def test_a_sweep_in_which_every_run_fails_can_still_be_read(invoke: Invoke, spec: Path) -> None:
    network = "interaction.network={kind: erdos-renyi, p: 1.0e-9}"
    result = invoke("run", spec, "--set", network, "--set", "replicates=4")
    assert result.stderr.count("  8 runs, for instance run ") == 1
    for command in (("table",), ("plot",)):
        empty = invoke(*command, "results/small.sqlite")
        assert (empty.exit_code, empty.stdout) == (2, "")
        assert "complete" in empty.stderr
    assert "no run is complete" in invoke("replay", "results/small.sqlite").stderr
    assert invoke("show", "results/small.sqlite").exit_code == 0
    assert invoke("export", "results/small.sqlite", "out").exit_code == 0


def test_an_edited_template_stops_the_run_until_fresh(invoke: Invoke, spec: Path, checkout: Path) -> None:
    pack = spec.parent / "pack"
    shutil.copytree(checkout / "opinionsim" / "prompts" / "default", pack)
    assert invoke("run", spec, "--prompts", "pack").exit_code == 0
    review = pack / "review.j2"
    review.write_text(review.read_text(encoding="utf-8") + "\nBe brief.", encoding="utf-8")
    result = invoke("run", spec, "--prompts", "pack")
    assert result.exit_code == 1
    assert "0 of 4 runs complete" in result.stderr
    assert result.stderr.count("--fresh") == 1
    assert "  4 runs, for instance run " in result.stderr
    assert "repeat the command" not in result.stderr
    assert invoke("run", spec, "--prompts", "pack", "--fresh").exit_code == 0


def test_a_fault_of_a_pack_that_no_cell_meets_stops_nothing(invoke: Invoke, spec: Path, checkout: Path) -> None:
    pack = spec.parent / "pack"
    shutil.copytree(checkout / "opinionsim" / "prompts" / "default", pack)
    situation = (pack / "_situation.j2").read_text(encoding="utf-8")
    (pack / "_situation.j2").write_text(
        situation.replace('{% if world == "closed" %}', '{% if world == "closed" %}{{ 1 // 0 }}'), encoding="utf-8"
    )
    assert invoke("run", spec, "--prompts", "pack", "--set", "cognition.world=open").exit_code == 0
    assert "_situation.j2:2" in refused("run", spec, "--prompts", "pack", "--set", "cognition.world=closed")


def _start(folder: Path, *arguments: str) -> Command:
    """A run in a process of its own; returns when its work has begun."""
    process = Command("run", "small.yaml", *MANY, *arguments, folder=folder)
    assert f"{N_RUNS} runs into" in process.stderr.readline()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_goes_on_to_the_same_results(invoke: Invoke, spec: Path, number: signal.Signals) -> None:
    process = _start(spec.parent, "--store", "cut.sqlite")
    process.send_signal(number)
    code, output, errors = process.communicate()
    assert (code, output) == (130, "")
    assert "stopping after the calls in flight" in errors
    assert "Repeat the command to continue" in errors
    assert "Traceback" not in errors
    with open_store("cut.sqlite", write=False) as store:
        statuses = [state.status for state in store.states().values()]
    assert statuses.count("complete") < len(statuses) == N_RUNS
    assert "running" not in statuses
    assert invoke("run", spec, *MANY, "--store", "cut.sqlite").exit_code == 0
    assert invoke("run", spec, *MANY, "--store", "whole.sqlite").exit_code == 0
    cut, whole = osim.load("cut.sqlite"), osim.load("whole.sqlite")
    for name in ("runs", "agents", "turns", "opinions", "calls"):
        pd.testing.assert_frame_equal(_without_timing(getattr(cut, name)), _without_timing(getattr(whole, name)))
    assert invoke("table", "cut.sqlite").stdout == invoke("table", "whole.sqlite").stdout


def test_a_second_interrupt_ends_at_once_and_loses_nothing_durable(invoke: Invoke, spec: Path) -> None:
    process = _start(spec.parent, "--store", "cut.sqlite")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    code, _, errors = process.communicate()
    assert code == 130
    assert "Traceback" not in errors
    assert invoke("run", spec, *MANY, "--store", "cut.sqlite").exit_code == 0
    assert invoke("replay", "cut.sqlite").stdout.startswith("60 of 60 complete runs are equal")


def test_two_processes_on_one_store_pay_nothing_twice(invoke: Invoke, spec: Path) -> None:
    first = _start(spec.parent, "--store", "shared.sqlite")
    first.send_signal(signal.SIGSTOP)
    second = invoke("run", spec, *MANY, "--store", "shared.sqlite")
    first.send_signal(signal.SIGCONT)
    code, _, errors = first.communicate()
    assert code == 0
    assert second.exit_code == 2
    assert f"in use by another run (process {first.pid})" in second.stderr
    assert f"{N_CALLS} calls made, 0 answered by the store" in errors


def test_readers_see_a_store_without_complete_runs(invoke: Invoke, spec: Path) -> None:
    with open_store("empty.sqlite"):
        pass
    assert invoke("status", "empty.sqlite").stdout == "the store contains no experiment\n"
    assert "holds no experiment" in invoke("table", "empty.sqlite").stderr
