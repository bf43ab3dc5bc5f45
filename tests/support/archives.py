"""Small studies for archives, and all that an archive holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.report import verify, write_archive
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


def rebuild(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of an archive where this package cannot be imported."""
    shut = folder.parent / f"{folder.name}-shut"
    (shut / "opinionsim").mkdir(parents=True, exist_ok=True)
    (shut / "opinionsim" / "__init__.py").write_text("raise ImportError('not here')")
    command = [sys.executable, "-W", "error", str(folder / "rebuild.py")]
    environment = {"PYTHONPATH": str(shut), "PATH": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=folder.parent)


def check_archived(results: Results, folder: Path) -> None:
    """Write an archive, which is verified and makes its tables again."""
    write_archive(results, folder)
    found = verify(folder)
    assert found.problems == ()
    assert len(found.rebuilt) == len(list((folder / "tables").glob("*.csv")))
    assert rebuild(folder).returncode == 0
