"""The archive of a session, whose table of elections is made again from its frames."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from opinionsim.foundation.data import data_folder
from tests.support.archives import carried_out, check_archived


def test_a_session_is_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Figures take most of the time, and are what is tested elsewhere.
    monkeypatch.setattr("opinionsim.report._study.figures_of", lambda results: iter(()))
    spec = yaml.safe_load((data_folder("experiments") / "consensus_quickstart.yaml").read_text(encoding="utf-8"))
    check_archived(carried_out(spec, tmp_path), tmp_path / "archive")
    tables = (path.read_text(encoding="utf-8") for path in (tmp_path / "archive" / "tables").glob("*.txt"))
    assert any("What each rule would have chosen" in table for table in tables)
