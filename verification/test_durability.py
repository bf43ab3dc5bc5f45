"""The durability bar: 200 deaths of a sweep, fired after a drawn number of durable calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests._durability import CALLS, PROMISED_S, study


def test_two_hundred_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = study(tmp_path, 200)
    with capsys.disabled():
        print(
            f"\n{sum(each.kills for each in figures)} kills over {len(figures)} sweeps of {CALLS} calls: "
            f"no stored call asked again; {sum(each.in_flight for each in figures)} calls were in flight, "
            f"{sum(each.lost for each in figures)} replies had arrived and were lost, the oldest "
            f"{max(each.oldest_lost_s for each in figures):.3f} s old (bar {PROMISED_S} s); tables equal"
        )
