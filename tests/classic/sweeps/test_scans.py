"""Scans as a kind of study: what the commands of the core do with them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import opinionsim as osim
from opinionsim.classic.sweeps import load_sweep, run_sweep
from opinionsim.registry import find
from opinionsim.specification import study_of
from tests.support.command import invoked, refused
from tests.support.sweeps import DIAGRAM


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A small scan, which says its kind."""
    path = tmp_path / "scan.yaml"
    path.write_text(yaml.safe_dump({"study": "scan", **DIAGRAM, "replicates": 2}), encoding="utf-8")
    return str(path)


def test_a_scan_is_planned_run_and_continued_like_any_study(file: str, tmp_path: Path) -> None:
    store = str(tmp_path / "scan.sqlite")
    assert invoked("plan", file, "--store", store).stdout.split()[:2] == ["points", "8"]
    assert "16 new" in invoked("run", file, "--store", store).stderr
    assert "all 16 runs were done already" in invoked("run", file, "--store", store).stderr
    assert len(osim.load(store).units) == 16
    abm = str(tmp_path / "abm.sqlite")
    invoked("abm", file, "--store", abm)
    assert osim.load(abm).units.equals(osim.load(store).units)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("run", "--leave"), "--leave has no effect on a study of kind 'scan'"),
        (("plan", "--latency", "2"), "--latency has no effect on a study of kind 'scan'"),
        (("preview",), "is a study of kind 'scan', which has no preview; valid: run, plan"),
        (("freeze",), "study: this is a study of kind 'scan', not 'agents'; `opinionsim run FILE` takes every kind"),
    ],
)
def test_what_a_scan_does_not_take_is_refused(file: str, arguments: tuple[str, ...], problem: str) -> None:
    command, *options = arguments
    assert problem in refused(command, file, *options)


def test_the_kind_is_named_or_told_by_what_the_file_has(file: str, tmp_path: Path) -> None:
    assert study_of(file) == "scan"
    bare = tmp_path / "bare.yaml"
    for changes, kind in (({}, "scan"), ({"interaction": {"kind": "dyadic", "steps": 2}}, "agents")):
        bare.write_text(yaml.safe_dump({**DIAGRAM, **changes}), encoding="utf-8")
        assert study_of(bare) == kind
    assert study_of("quickstart") == "agents"
    bare.write_text(yaml.safe_dump({**DIAGRAM, "study": "tree"}), encoding="utf-8")
    assert "unknown kind of study 'tree'; valid: agents, scan" in refused("run", bare)


def test_results_of_a_scan_have_their_units_alone(file: str, tmp_path: Path) -> None:
    store = str(tmp_path / "scan.sqlite")
    invoked("run", file, "--store", store)
    results = osim.load(store)
    assert isinstance(results.study, find("study", "scan").target)
    assert (results.run_ids, results.runs.empty, results.left_out) == ((), True, [])
    assert len(osim.classic.phase_data(results, "epsilon", "n", "diversity").frame) == 8
    found = refused("measure", store, "--classifier", "lexicon")
    assert "diagram keeps no texts" in found


def test_a_scan_without_a_run_has_no_table(file: str, tmp_path: Path) -> None:
    store = str(tmp_path / "scan.sqlite")
    assert run_sweep(load_sweep(file), store, stopping=lambda: True).progress.made == 0
    assert "no run is stored yet" in invoked("table", store).stderr
    assert invoked("report", store, "--out", tmp_path / "a.html").exit_code == 0


def test_a_scan_that_is_not_installed_is_named(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path / "scan.sqlite")
    invoked("run", file, "--store", store)
    monkeypatch.setattr("opinionsim.store._results.installed", lambda kind, name: False)
    assert "is a study of kind 'scan', which is not installed here" in refused("table", store)
