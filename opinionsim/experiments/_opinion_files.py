"""Opinions of a sweep's runs as Parquet files, one for each task: any tool reads the folder as one table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from opinionsim.classic.points import Point, RunOfPoint, cell, shared
from opinionsim.errors import SpecError, StoreError
from opinionsim.streams import canonical_json

#: Key under which files say what all their runs have in common, and when opinions were taken on the way.
_SAME = b"opinionsim_sweep"
#: Columns beside those of axes.
_OWN = ("model", "point", "replicate", "step", "ended", "opinions")


class OpinionFiles:
    """A folder of opinions: one row a run and moment.

    Columns: model, one for each swept axis (numbers as float64 but for n), point (identity), replicate, step, ended
    (whether the row is that of the end of the run), opinions (a list of N numbers, or of N lists of D).

    Parameters
    ----------
    folder : str or Path
        Files of a sweep over the same axes, with equal settings beside them, may be in it; others are added to them.
        Names that begin with a dot or an underscore are left alone, as readers of Parquet do.
    points : sequence of Point
        The points of the sweep.

    Raises
    ------
    SpecError
        If pyarrow is missing, the folder is a file, or the points differ in whether opinions are vectors.
    """

    def __init__(self, folder: str | Path, points: Sequence[Point]) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            message = "opinions are kept as Parquet, which needs pyarrow: pip install 'opinionsim[parquet]'"
            raise SpecError(message) from None
        self.folder = Path(folder)
        if not self.folder.name:
            raise SpecError(f"the folder of opinions needs a name; got {str(folder)!r}")
        if self.folder.exists() and not self.folder.is_dir():
            raise SpecError(f"{self.folder} is a file; give a folder for opinions")
        if len({point.vectors for point in points}) > 1:
            raise SpecError("opinions of one and of several dimensions cannot be kept in one folder; sweep them apart")
        self._at = points[0].at
        fields = {
            name: pa.int64() if name == "n" else _type(pa, [cell(point.values[name]) for point in points])
            for name in points[0].values
        }
        numbers = pa.list_(pa.float64())
        opinions = pa.list_(numbers) if points[0].vectors else numbers
        own = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.bool_(), opinions)
        model, *rest = zip(_OWN, own, strict=True)
        # Measures alone depend on how clusters are told apart.
        same = canonical_json({"at": list(self._at), **shared(points), "delta": None})
        self._schema = pa.schema([model, *fields.items(), *rest], metadata={_SAME: same})
        #: Replicates of each point whose opinions are there.
        self.there: dict[str, set[int]] = {}

    def look(self) -> None:
        """Find out what is there.

        Raises
        ------
        SpecError
            If the folder holds anything but opinions of sweeps over the same axes, with equal settings.
        StoreError
            If a file cannot be read.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.there.clear()
        if not self.folder.exists():
            return
        for path in sorted(self.folder.iterdir()):
            if path.name.startswith((".", "_")):
                continue
            if path.suffix != ".parquet":
                raise SpecError(f"{self.folder} holds {path.name!r}, which no sweep wrote; give a new or empty folder")
            try:
                file = pq.ParquetFile(path)
                differing = _differing(file.schema_arrow, self._schema)
                rows = file.read(columns=["point", "replicate"]) if not differing else None
            except (pa.ArrowException, OSError) as error:
                message = f"{path} cannot be read: {error}; without it, its runs are carried out again"
                raise StoreError(message) from None
            if rows is None:
                raise SpecError(f"{self.folder} holds opinions of another sweep: {differing}; give another folder")
            for point, replicate in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                self.there.setdefault(point, set()).add(replicate)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make the folder, if it is not there, and keep other runs from writing into it.

        Raises
        ------
        SpecError, StoreError
            As :meth:`look`; also if files cannot be written, or another run writes into the folder.
        """
        lock = FileLock(self.folder / ".opinionsim.lock")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder):
                pass
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"the folder {self.folder} is in use by another run; wait until it has ended, or give another folder"
            ) from None
        except OSError as error:
            raise StoreError(f"opinions cannot be written into {self.folder}: {error}") from None
        try:
            self.look()
            yield
        finally:
            # While it is held, so that the file of no other run is removed; some systems keep open files.
            with suppress(OSError):
                Path(lock.lock_file).unlink()
            lock.release()

    def keep(self, found: list[tuple[Point, RunOfPoint]]) -> list[tuple[Point, RunOfPoint]]:
        """Write the opinions of runs as they are done, and give the runs back without them.

        Raises
        ------
        StoreError
            If a file cannot be written.
        """
        parts: dict[str, list[tuple[Point, RunOfPoint]]] = {}
        for point, run in found:
            if run.opinions is not None and run.replicate not in self.there.get(point.id, ()):
                parts.setdefault(point.id, []).append((point, run))
        for runs in parts.values():
            self._write(runs)
        return [(point, run._replace(opinions=None)) for point, run in found]

    def _write(self, runs: list[tuple[Point, RunOfPoint]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, list[Any]] = {name: [] for name in self._schema.names if name != "opinions"}
        for point, run in runs:
            own: Mapping[str, Any] = {
                "model": point.key["model"], "point": point.id, "replicate": run.replicate,
                **{name: cell(value) for name, value in point.values.items()},
            }  # fmt: skip
            for place, step in enumerate((*self._at, run.time)):
                row = {**own, "step": step, "ended": place == len(self._at)}
                for name, values in columns.items():
                    values.append(row[name])
        opinions = np.concatenate([run.opinions for _, run in runs if run.opinions is not None])
        arrays = [
            _lists(pa, opinions) if name == "opinions" else _column(pa, columns[name], self._schema.field(name).type)
            for name in self._schema.names
        ]
        point, replicates = runs[0][0], [run.replicate for _, run in runs]
        path = self.folder / f"{point.id}-{min(replicates)}-{max(replicates)}.parquet"
        part = self.folder / f".{path.name}.part"
        try:
            pq.write_table(pa.Table.from_arrays(arrays, schema=self._schema), part, compression="zstd")
            # All of a file is there, or nothing.
            part.replace(path)
        except OSError as error:
            raise StoreError(f"opinions cannot be written into {self.folder}: {error}") from None
        self.there.setdefault(point.id, set()).update(replicates)


def _differing(found: Any, wanted: Any) -> str:
    """In what the columns and settings of two schemas differ; empty if in nothing."""
    if not found.equals(wanted):
        told = [", ".join(f"{field.name} ({field.type})" for field in schema) for schema in (found, wanted)]
        return f"its columns are {told[0]}, those of this sweep {told[1]}"
    before, now = (json.loads((schema.metadata or {}).get(_SAME, b"{}")) for schema in (found, wanted))
    keys = [key for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
    return ", ".join(f"{key} was {json.dumps(before.get(key))} and is {json.dumps(now.get(key))}" for key in keys)


def _type(pa: Any, values: Sequence[Any]) -> Any:
    """The type of the column of an axis: numbers are floats, so that values between whole ones can be added."""
    if all(isinstance(value, bool) for value in values):
        return pa.bool_()
    return pa.float64() if all(isinstance(value, (int, float)) for value in values) else pa.string()


def _column(pa: Any, values: Sequence[Any], kind: Any) -> Any:
    """A column; where some values of an axis are texts, numbers are too."""
    if pa.types.is_string(kind):
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(values, kind)


def _lists(pa: Any, opinions: np.ndarray) -> Any:
    """Opinions (R, N) or (R, N, D) as an array of R lists."""
    found = pa.array(opinions.reshape(-1))
    for size in opinions.shape[:0:-1]:
        count = len(found) // size
        found = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * size), found)
    return found
