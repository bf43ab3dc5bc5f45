"""A structure on the page of its run."""

from __future__ import annotations

from pathlib import Path

import opinionsim as osim
from tests.support.running import SMALL, beyond, changed


def test_a_structure_is_named(tmp_path: Path) -> None:
    spec = changed(SMALL, interaction={"kind": "chain"})
    assert beyond(osim.run(osim.load_experiment(spec), str(tmp_path / "s.sqlite"))) == {"name": "chain"}
