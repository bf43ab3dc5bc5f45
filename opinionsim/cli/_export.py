"""Export of all frames of an experiment as plain files."""

from __future__ import annotations

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from opinionsim.cli._console import note
from opinionsim.errors import SpecError
from opinionsim.spreadsheets import texts_changed, write_csv

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.store import Results

_FRAMES = ("runs", "agents", "edges", "turns", "opinions", "calls", "metrics")
_POINTS = "points"
_MANIFEST, _CODEBOOK = "manifest.json", "codebook.csv"


#: Kind of file that frames are exported to.
FileKind = Literal["csv", "parquet"]
#: In the order of writing: a folder with a manifest is complete.
_NAMES = (*(f"{name}.{kind}" for kind in get_args(FileKind) for name in (*_FRAMES, _POINTS)), _CODEBOOK, _MANIFEST)


def write_export(results: Results, folder: Path, kind: FileKind = "csv") -> list[Path]:
    r"""Write every frame as CSV or Parquet, their codebook, and the manifest as JSON; on failure none of them.

    Columns have names that R takes unquoted (:func:`opinionsim.store.plain_names`); the codebook has both names.
    Characters that no such file can hold (half a surrogate pair, NUL) are written as ``\udXXX`` and ``\x00``. In
    CSV, texts that a spreadsheet would run get an apostrophe; :func:`opinionsim.spreadsheets.read_csv` takes it away.

    Parameters
    ----------
    results : Results
        One experiment.
    kind : FileKind
        Kind of file.
    folder : Path
        A new or empty folder, or one with only an earlier export, which is replaced.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    SpecError
        If the folder holds anything else, or a package is missing.
    OSError
        If it cannot be written.
    """
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise SpecError("Parquet files need pyarrow: pip install 'opinionsim[parquet]'")
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"{folder} is a file; give a folder to export to")
    if folder.is_dir():
        strangers = sorted(path.name for path in folder.iterdir() if path.name not in _NAMES)
        if strangers:
            raise SpecError(f"{folder} holds {strangers[0]!r}, which no export wrote; give a new or empty folder")
    place = folder.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, thus on the same file system: finished files are moved into it once all are written.
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as scratch:
        _write(results, Path(scratch), kind)
        place.mkdir(exist_ok=True)
        written = [name for name in _NAMES if (Path(scratch) / name).exists()]
        for name in written:
            (Path(scratch) / name).replace(place / name)
        for name in {*_NAMES} - {*written}:
            (place / name).unlink(missing_ok=True)
    return [folder / name for name in written]


def _write(results: Results, folder: Path, kind: FileKind) -> None:
    from opinionsim.store import codebook, plain_names

    # A classic sweep has one frame, other experiments all the others.
    frames = {name: getattr(results, name) for name in ((_POINTS,) if results.swept else _FRAMES)}
    write_csv(texts_changed(codebook(frames), _escaped), folder / _CODEBOOK)
    for name, frame in frames.items():
        if name == "turns":
            frame = frame.assign(reads=[json.dumps(list(reads)) for reads in frame["reads"]])
        plain = texts_changed(frame.rename(columns=plain_names(map(str, frame.columns))), _escaped)
        if kind == "csv":
            write_csv(plain, folder / f"{name}.csv")
        else:
            plain.to_parquet(folder / f"{name}.parquet", index=False, engine="pyarrow")
    text = json.dumps(results.manifest, indent=2, ensure_ascii=False) + "\n"
    # Half a surrogate pair is written as its escape, which JSON reads back unchanged.
    (folder / _MANIFEST).write_bytes(text.encode("utf-8", "backslashreplace"))


def _escaped(value: Any) -> Any:
    """A text with the characters escaped that no file can hold; any other value as it is."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def write_frame(frame: pd.DataFrame, target: Path) -> None:
    """Save a frame as CSV, and say so."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_csv(frame, target)
    except OSError as error:
        raise SpecError(f"cannot write {target}: {error.strerror}") from error
    note(f"wrote {target}")
