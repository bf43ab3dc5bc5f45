"""Write all frames of an experiment as plain files, and read them back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import Made, begins
from opinionsim.foundation.spreadsheets import escaped, header_of, read_csv, texts_changed, write_csv
from opinionsim.registry import built_in
from opinionsim.report._codebook import codebook, plain_names
from opinionsim.store import COLUMNS, Results

_ENTRIES = "entries"
_MANIFEST, CODEBOOK = "manifest.json", "codebook.csv"

#: Kind of file that frames are exported to.
FileKind = Literal["csv", "parquet"]


def _names(own: Iterable[str]) -> tuple[str, ...]:
    """Names of the files of exports, in the order of writing: a folder with a manifest is complete."""
    known = (name for kind in built_in("study").values() for name in kind.target.frames)
    frames = dict.fromkeys((*known, *own))
    return (*(f"{name}.{kind}" for kind in get_args(FileKind) for name in (*frames, _ENTRIES)), CODEBOOK, _MANIFEST)


def write_export(results: Results, folder: Path, kind: FileKind = "csv") -> list[Path]:
    r"""Write every frame as CSV or Parquet, their codebook, and the manifest as JSON; on failure, write nothing.

    Columns have names that R takes unquoted (:func:`opinionsim.report.plain_names`); the codebook has both names.
    Characters that such files cannot contain (half a surrogate pair, NUL) are written as ``\udXXX`` and ``\x00``. In
    CSV, texts that a spreadsheet would run get an apostrophe, which
    :func:`opinionsim.foundation.spreadsheets.read_csv` removes.

    Parameters
    ----------
    results : Results
        One experiment.
    kind : FileKind
        Kind of file.
    folder : Path
        A new or empty folder, or one that contains only an unchanged earlier export, which is replaced.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    SpecError
        If the folder contains anything else, or a package is missing.
    OSError
        If it cannot be written.
    """
    names = _names(results.study.frames)
    with new_folder(folder, names, kind, _as_written(folder)) as scratch:
        write_frames(results, scratch, kind)
        write_json(results.manifest, scratch / _MANIFEST)
        written = [name for name in names if (scratch / name).exists()]
    return [folder / name for name in written]


def _as_written(folder: Path) -> Callable[[Path], bool]:
    """Tells of a file in a folder whether it has the columns that the codebook beside it lists, as an export has."""
    columns: dict[str, list[str]] = {}
    with suppress(OSError, KeyError, ValueError):
        listed = read_csv(folder / CODEBOOK, dtype=str, keep_default_na=False)
        columns = {str(name): list(own["column"]) for name, own in listed.groupby("frame", sort=False)}

    def as_written(path: Path) -> bool:
        if path.stem in columns and path.suffix == ".csv":
            return header_of(path) == [escaped(name) for name in columns[path.stem]]
        return bool(columns) and (path.name in (_MANIFEST, CODEBOOK) or begins(path, b"PAR1"))

    return as_written


@contextmanager
def new_folder(
    folder: Path, names: Collection[str], kind: FileKind = "csv", made: Made = lambda _: True
) -> Iterator[Path]:
    """A folder to write into, whose files replace those of `folder` once all of them are written.

    Parameters
    ----------
    folder : Path
        Final folder of the files: new, empty, or with only files and folders of these names.
    names : collection of str
        Names of the files and folders that may be written.
    kind : FileKind
        Kind of file for the frames.
    made : callable
        Function that says whether an existing file may be replaced.

    Raises
    ------
    SpecError, OSError
        As :func:`write_export`.
    """
    if kind == "parquet" and find_spec("pyarrow") is None:
        raise SpecError("Parquet files need pyarrow: pip install 'opinionsim[parquet]'")
    if str(folder) == "-" or (folder.exists() and not folder.is_dir()):
        raise SpecError(f"{folder} is a file; give a folder to export to")
    if folder.is_dir():
        strangers = sorted(path.name for path in folder.iterdir() if path.name not in names or not made(path))
        if strangers:
            raise SpecError(f"{folder} contains {strangers[0]!r}, which no export wrote; give a new or empty folder")
    place = folder.absolute()
    place.parent.mkdir(parents=True, exist_ok=True)
    # Beside the folder, thus on the same file system: finished files are moved into it once all are written.
    with (
        tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as scratch,
        tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as earlier,
    ):
        yield Path(scratch)
        place.mkdir(exist_ok=True)
        for path in place.iterdir():
            path.replace(Path(earlier) / path.name)
        for name in names:
            if (new := Path(scratch) / name).exists():
                new.replace(place / name)


def write_json(value: Any, target: Path) -> None:
    """Write JSON values for people to read; half a surrogate pair is written as its escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    target.write_bytes(text.encode("utf-8", "backslashreplace"))


def write_frames(results: Results, folder: Path, kind: FileKind = "csv") -> dict[str, list[str]]:
    """Write every frame and their codebook into a folder.

    Returns
    -------
    dict of str to list of str
        By frame, the columns in which an empty text is a text; in all other columns it means a missing one.
    """
    frames = {name: results.study.frame(results, name) for name in (*results.study.frames, *results.extras("frames"))}
    write_csv(texts_changed(codebook(frames), _escaped), folder / CODEBOOK)
    empty = {}
    for name, frame in frames.items():
        empty[name] = [str(column) for column in frame.columns if _holds_empty(frame[column])]
        if name == "turns":
            frame = frame.assign(reads=[json.dumps(list(reads)) for reads in frame["reads"]])
        plain = texts_changed(frame.rename(columns=plain_names(map(str, frame.columns))), _escaped)
        if kind == "csv":
            write_csv(plain, folder / f"{name}.csv")
        else:
            plain.to_parquet(folder / f"{name}.parquet", index=False, engine="pyarrow")
    return empty


def _holds_empty(values: pd.Series) -> bool:
    return values.dtype.kind not in "biuf" and bool((values == "").any())


def read_frames(
    folder: Path, empty: Mapping[str, Collection[str]], only: Collection[str] = ()
) -> dict[str, pd.DataFrame]:
    """The frames that :func:`write_frames` wrote, as they were.

    Parameters
    ----------
    folder : Path
        Folder of the frames.
    empty : mapping of str to collection of str
        Result of :func:`write_frames`.
    only : collection of str
        Names of the frames to read; default all.

    Raises
    ------
    SpecError
        If a file is missing or was changed.
    """
    book = read_csv(folder / CODEBOOK, dtype=str, keep_default_na=False)
    found = {}
    for name, columns in (book[book["frame"].isin(only)] if only else book).groupby("frame", sort=False):
        path = next((path for kind in get_args(FileKind) if (path := folder / f"{name}.{kind}").is_file()), None)
        try:
            if path is None:
                raise ValueError("it is missing")
            csv = path.suffix == ".csv"
            frame = read_csv(path, dtype=str, keep_default_na=False) if csv else pd.read_parquet(path)
            own = columns.set_index("column")[["name", "type"]]
            frame = pd.DataFrame({told["name"]: _typed(frame[column], told["type"]) for column, told in own.iterrows()})
            blank = [each for each in empty.get(str(name), ()) if each in frame]
            frame[blank] = frame[blank].fillna("")
            if name == "turns":
                frame["reads"] = [tuple(json.loads(reads)) for reads in frame["reads"]]
        except (OSError, ValueError, KeyError) as error:
            raise SpecError(f"the frame {name} cannot be read: {error}") from None
        found[str(name)] = frame
    return found


def _typed(values: pd.Series, kind: str) -> pd.Series[Any]:
    """A column of a file with its type; empty where the value is missing."""
    if kind == "bool":
        return values.astype(str).str.upper().eq("TRUE")  # TRUE in CSV; a truth value in Parquet
    known: pd.Series[Any] = values.astype(object).where(values.notna() & values.ne(""))
    if kind == "Int64":
        return pd.Series([None if pd.isna(value) else int(value) for value in known], dtype="Int64")
    return known.astype(COLUMNS["runs"]["cell"] if kind == "string" else kind)  # type: ignore[arg-type]


def _escaped(value: Any) -> Any:
    """A text with the characters escaped that no file can hold; any other value as it is."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")
