"""Opinions of a sweep's runs as Parquet files, one for each task: any tool reads the folder as one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.classic.points import Point, RunOfPoint, cell
from opinionsim.errors import SpecError, StoreError

if TYPE_CHECKING:
    import pyarrow as pa

#: Key under which files say at which steps opinions were taken on the way.
_STEPS = b"opinionsim_at"
#: Columns beside those of axes.
_OWN = ("model", "point", "replicate", "step", "ended", "opinions")


class OpinionFiles:
    """A folder of opinions: one row a run and moment.

    Columns: model, one for each swept axis, point (identity), replicate, step, ended (whether the row is that of the
    end of the run), opinions (a list of N numbers, or of N lists of D).

    Parameters
    ----------
    folder : str or Path
        It is made with the first file. Files of the same axes and steps may be in it, to which others are added.
    points : sequence of Point
        The points of the sweep.

    Raises
    ------
    SpecError
        If pyarrow is missing, or the folder holds anything else.
    StoreError
        If a file cannot be read.
    """

    def __init__(self, folder: str | Path, points: Sequence[Point]) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            message = "opinions are kept as Parquet, which needs pyarrow: pip install 'opinionsim[parquet]'"
            raise SpecError(message) from None
        self.folder = Path(folder)
        self._at = points[0].at
        fields = {name: _type(pa, [cell(point.values[name]) for point in points]) for name in points[0].values}
        nested = pa.list_(pa.float64())
        own = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.bool_(), nested)
        if getattr(points[0].initial, "ndim", 1) > 1:
            own = (*own[:-1], pa.list_(nested))
        model, *rest = zip(_OWN, own, strict=True)
        self._schema = pa.schema([model, *fields.items(), *rest], metadata={_STEPS: json.dumps(self._at)})
        #: Replicates of each point whose opinions are there.
        self.there: dict[str, set[int]] = {}
        if self.folder.exists():
            self._look()

    def _look(self) -> None:
        """Find out what is there."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.folder.is_dir():
            raise SpecError(f"{self.folder} is a file; give a folder for opinions")
        for path in sorted(self.folder.iterdir()):
            if path.suffix == ".part":
                continue
            if path.suffix != ".parquet":
                raise SpecError(f"{self.folder} holds {path.name!r}, which no sweep wrote; give a new or empty folder")
            try:
                file = pq.ParquetFile(path)
                found = file.schema_arrow
                if found.equals(self._schema) and (found.metadata or {}).get(_STEPS) == self._schema.metadata[_STEPS]:
                    table = file.read(columns=["point", "replicate"])
                    for point, replicate in zip(*(column.to_pylist() for column in table.columns), strict=True):
                        self.there.setdefault(point, set()).add(replicate)
                    continue
            except (pa.ArrowException, OSError) as error:
                raise StoreError(
                    f"{path} cannot be read: {error}; remove it, and its runs are carried out again"
                ) from None
            raise SpecError(
                f"{self.folder} holds opinions of other columns or steps than those of this sweep "
                f"({', '.join(self._schema.names[1:-5]) or 'no axes'}; on the way {list(self._at)}); give another"
            )

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
            _lists(pa, opinions) if name == "opinions" else pa.array(columns[name], self._schema.field(name).type)
            for name in self._schema.names
        ]
        point, replicates = runs[0][0], [run.replicate for _, run in runs]
        path = self.folder / f"{point.id}-{min(replicates)}-{max(replicates)}.parquet"
        part = path.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_arrays(arrays, schema=self._schema), part, compression="zstd")
            # All of a file is there, or nothing.
            part.replace(path)
        except OSError as error:
            raise StoreError(f"opinions cannot be written into {self.folder}: {error}") from None
        self.there.setdefault(point.id, set()).update(replicates)


def _type(pa: Any, values: Sequence[Any]) -> pa.DataType:
    """The type of a column."""
    for kinds, found in ((bool, pa.bool_()), (int, pa.int64()), ((int, float), pa.float64())):
        if all(isinstance(value, kinds) for value in values):
            return found
    return pa.string()


def _lists(pa: Any, opinions: np.ndarray) -> Any:
    """Opinions (R, N) or (R, N, D) as an array of R lists."""
    found = pa.array(opinions.reshape(-1))
    for size in opinions.shape[:0:-1]:
        count = len(found) // size
        found = pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * size), found)
    return found
