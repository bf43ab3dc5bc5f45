"""A store beside copies of its log into the file: 60 deaths inside them, and 20,000 opens beside a healthy writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from opinionsim.foundation.streams import stream
from tests.store._children import kill_in_copies, open_beside_writer


def test_sixty_kills_inside_copies_of_the_log(tmp_path: Path) -> None:
    kill_in_copies(tmp_path / "a.sqlite", stream(1, "kills"), 60)


def test_twenty_disks_that_are_full_inside_copies_of_the_log(tmp_path: Path) -> None:
    for number in range(4):
        kill_in_copies(tmp_path / f"{number}.sqlite", stream(number, "disks"), 5, dies=False)


def test_twenty_thousand_opens_beside_a_healthy_writer_raise_no_alarm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        open_beside_writer(tmp_path / f"{number}.sqlite", 1000)
    assert caplog.messages == []
