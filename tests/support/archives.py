"""Small studies for archives, and all that an archive holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.store import Results

STUDY: dict[str, Any] = {
    "name": "small",
    "seed": 5,
    "replicates": 2,
    "population": {"size": 4},
    "topic": {"name": "t-rex"},
    "interaction": {"kind": "dyadic", "steps": 6},
    "sweep": {"cognition.confirmation_bias": ["none", "strong"]},
}


def carried_out(spec: dict[str, Any], folder: Path, **options: Any) -> Results:
    """The results of an experiment, in a store of its own."""
    experiment = osim.load_experiment(spec)
    return osim.run(experiment, f"sqlite:///{folder / 'store.sqlite'}", **options)


def all_bytes(folder: Path) -> bytes:
    """What all files of a folder hold, one after the other, with their names."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return b"\n".join(str(path.relative_to(folder)).encode() + b"\n" + path.read_bytes() for path in files)
