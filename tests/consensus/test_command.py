"""The command `consensus`."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.support.command import refused
from tests.support.running import SMALL


def test_an_experiment_that_looks_for_no_consensus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(SMALL), encoding="utf-8")
    said = refused("consensus", tmp_path / "spec.yaml", "--store", tmp_path / "none.sqlite")
    assert "looks for no consensus" in said
    assert "deliberate" in said
    assert not (tmp_path / "none.sqlite").exists()
