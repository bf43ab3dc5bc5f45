from __future__ import annotations

from pathlib import Path

from tests._durability import CALLS, SPEC, check, kill_over_and_over
from tests._running import assert_same, carry_out, loaded

KILLS = 10


def test_a_killed_sweep_pays_for_nothing_twice_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    store = tmp_path / "killed.sqlite"
    kills = kill_over_and_over(store, KILLS, seed=1)
    assert len(kills) == KILLS
    check(store, kills)
    summary, whole = carry_out(SPEC, str(tmp_path / "whole.sqlite"))
    assert summary.made == CALLS
    assert_same(loaded(str(store)), whole)
