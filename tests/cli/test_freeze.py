"""``opinionsim freeze``: the two files, and the runs of what was frozen beside those of the pilot."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Invoke
from tests.support.command import refused


def test_a_pilot_is_frozen_and_what_was_frozen_is_run(invoke: Invoke, spec: Path) -> None:
    assert invoke("run", spec, "--pilot").exit_code == 0
    made = invoke("freeze", spec)
    assert made.stdout.split() == ["small.frozen.json", "small-preregistration.md"]
    assert "2 runs begun" in Path("small-preregistration.md").read_text(encoding="utf-8")
    assert "4 of 4 runs complete" in invoke("run", "small.frozen.json").stderr
    (told,) = json.loads(invoke("status", "results/small.sqlite", "--json").stdout)
    assert [(each["runs"], each["complete"]) for each in told["designs"]] == [(4, 2), (4, 4)]
    assert [each["frozen"] for each in told["designs"]] == [False, True]
    assert "design 2 (frozen, run last)" in invoke("status", "results/small.sqlite").stdout
    assert "design 2 of 2" in invoke("table", "results/small.sqlite").stderr


def test_what_is_changed_of_a_frozen_study_is_told_when_it_is_run(invoke: Invoke, spec: Path) -> None:
    invoke("freeze", spec)
    assert "Changed since" not in invoke("run", "small.frozen.json").stderr
    changed = invoke("run", "small.frozen.json", "--set", "replicates=3").stderr
    assert "Changed since the design was frozen; the store records this: replicates\n" in changed


def test_frozen_files_are_never_replaced(invoke: Invoke, spec: Path) -> None:
    Path("small-preregistration.md").write_text("mine", encoding="utf-8")
    refused = invoke("freeze", spec)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "small-preregistration.md already exists" in refused.stderr
    assert not Path("small.frozen.json").exists()
    assert invoke("freeze", spec, "--out", "second.frozen.json", "--set", "replicates=3").exit_code == 0
    assert json.loads(Path("second.frozen.json").read_text(encoding="utf-8"))["frozen"]["runs"] == 6
    assert Path("second-preregistration.md").exists()


def test_an_edited_file_is_not_run(invoke: Invoke, spec: Path) -> None:
    invoke("freeze", spec)
    file = Path("small.frozen.json")
    file.write_text(file.read_text(encoding="utf-8").replace('"steps": 6', '"steps": 7'), encoding="utf-8")
    assert "edited since" in refused("run", file)
    assert not Path("results").exists()
