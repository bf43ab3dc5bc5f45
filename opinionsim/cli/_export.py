"""All frames of an experiment as files that need nothing of this package."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.store import Results

__all__ = ["write_export"]

_FRAMES = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics")
_MANIFEST = "manifest.json"
#: In the order of writing: a folder with a manifest is complete.
_NAMES = (*(f"{name}.csv" for name in _FRAMES), _MANIFEST)


def write_export(results: Results, folder: Path) -> list[Path]:
    """Write every frame as CSV and the manifest as JSON, all or nothing.

    Parameters
    ----------
    results : Results
        One experiment.
    folder : Path
        New, empty, or holding nothing but an earlier export, which is replaced.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    SpecError
        If the folder holds anything else.
    OSError
        If it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"{folder} is a file; give a folder to export to")
    if folder.is_dir():
        strangers = sorted(path.name for path in folder.iterdir() if path.name not in _NAMES)
        if strangers:
            raise SpecError(f"{folder} holds {strangers[0]!r}, which no export wrote; give a new or empty folder")
    place = folder.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, thus on the same file system: files appear there whole, and only when all could be written.
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as scratch:
        _write(results, Path(scratch))
        place.mkdir(exist_ok=True)
        for name in _NAMES:
            (Path(scratch) / name).replace(place / name)
    return [folder / name for name in _NAMES]


def _write(results: Results, folder: Path) -> None:
    for name in _FRAMES:
        frame: pd.DataFrame = getattr(results, name)
        if name == "turns":
            frame = frame.assign(reads=[json.dumps(list(reads)) for reads in frame["reads"]])
        frame.to_csv(folder / f"{name}.csv", index=False)
    text = json.dumps(results.manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / _MANIFEST).write_text(text, encoding="utf-8")
