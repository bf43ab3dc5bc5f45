"""Sessions to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.rooms import RoomServer, room
from tests.support.seats import free, owner, session

#: Fixtures of tests of seats, which a test module with a fixture ``server`` may use.
__all__ = ["free", "owner", "session"]


@pytest.fixture
def spec(tmp_path: Path) -> Callable[..., Path]:
    """Writes a small experiment into a file: dyads of two scripted models and one seat."""

    def write(**changed: Any) -> Path:
        document = {
            "name": "small",
            "seed": 3,
            "task": "Should the library open on Sundays?",
            "cast": [{"name": "Ada", "persona": "a nurse"}, {"name": "Ben", "persona": "a cook"},
                     {"name": "Guest", "seat": {}}],
            "interaction": {"kind": "dyadic", "steps": 12},
            **changed,
        }  # fmt: skip
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path

    return write


@pytest.fixture
def served(spec: Callable[..., Path], tmp_path: Path) -> Iterator[RoomServer]:
    """A small experiment, open."""
    with room(spec(), tmp_path) as server:
        yield server
