"""Runs that are more than turns in a row, as their pages show them."""

from __future__ import annotations

from pathlib import Path

import opinionsim as osim
from tests.support.running import SMALL, beyond


def test_a_run_that_is_its_turns_has_nothing_beyond_them(tmp_path: Path) -> None:
    assert beyond(osim.run(osim.load_experiment(SMALL), str(tmp_path / "s.sqlite"))) == {}
