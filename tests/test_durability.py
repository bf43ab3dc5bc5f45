from __future__ import annotations

from pathlib import Path

from tests._durability import study


def test_a_killed_sweep_pays_for_nothing_twice_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    figures = study(tmp_path, 10)
    assert sum(each.kills for each in figures) == 10
    # The kills met the sweep at work.
    assert sum(each.in_flight for each in figures) > 0
