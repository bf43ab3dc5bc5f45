"""Frames of a store that are kept between processes, so that only new runs are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd
from pandas.api.types import is_object_dtype

from opinionsim import __version__, store as store_room
from opinionsim.foundation.compilation import sources
from opinionsim.foundation.streams import digest
from opinionsim.store import COLUMNS, DesignRow, Results, open_store, read_frames
from opinionsim.studio._shelf import keep, taken, usual_folder

if TYPE_CHECKING:
    from opinionsim.store import StoreReader

#: The frames that are kept, with the name of their columns and their key. Those of runs and agents are always read:
#: they are small, and personas of all runs together decide the types of their columns.
_KEPT = {
    "acts": ("turns", ["run_id", "turn"]),
    "opinions": ("opinions", ["cell", "run_id", "instrument_id", "turn", "about"]),
}
#: States of runs whose rows stay as they are, unless somebody measures or forgets them.
_ENDED = ("complete", "incomplete")
_Frames = Mapping[str, pd.DataFrame]


def kept(results: Results, folder: Path | None = None) -> Results:
    """Return the same results with all frames that tables count, from one state of the store.

    The rows of runs that have ended come from the file of an earlier call. They count only if the store has the same
    rows by their check sums, and the design the same cells and instruments. All other runs are read. Runs in which
    people take part are always read, because nothing may remain of a person who withdraws.

    Parameters
    ----------
    results : Results
        Results of a store in a file or in PostgreSQL. Results of frames, and studies without runs, return unchanged.
    folder : Path, optional
        Folder of the files; by default one in the user's folder of caches. If it cannot be written, or others could
        write to it, everything is read from the store.

    Raises
    ------
    StoreError
        If the store cannot be read, or a row of a run is missing. A row that was changed is noticed when it is read.
    """
    design, folder = results.design_row, folder or usual_folder()
    if not (type(results) is Results and results.url and design.runs):
        return results
    name = _name(results)
    known, old = cast("tuple[dict[str, str], _Frames]", taken(folder, name) or ({}, {}))
    with open_store(results.url, write=False) as opened, opened.moment() as moment, moment.reading() as connection:
        frames = read_frames(connection, design, ("runs", "agents"), checked=True)
        keys = _keys(moment, design, frames)
        same = {run_id for run_id, key in keys.items() if known.get(run_id) == key}
        others = replace(design, runs=tuple(run for run in design.runs if run.run_id not in same))
        new = read_frames(connection, others, _KEPT, checked=True)
        used = {each for run in design.runs for each in run.instruments}
        points = {point for each in moment.instruments() if each.instrument_id in used for point in each.points}
    if same:
        new = {each: _joined(each, _of_runs(old[each], same), new[each]) for each in _KEPT}
    frames |= new
    columns = [*COLUMNS["opinions"], *(f"p_{each}" for each in sorted(points))]
    frames["opinions"] = new["opinions"].reindex(columns=columns)
    if keys != known:
        keep(folder, name, (keys, {each: _packed(_of_runs(new[each], keys)) for each in _KEPT}))
    return Results(results.url, design, results.designs, results.under_way, frames, own_parts=results.own_parts)


def _name(results: Results) -> str:
    """A name for the design of a store, as this version of the package reads it."""
    design, place = results.design_row, results.url.removeprefix("sqlite:///")
    address = str(results.url) if place == results.url else str(Path(place).resolve())
    code = [sources(Path(str(file)).parent) for file in (store_room.__file__, __file__)]
    return digest(repr((address, design.experiment_id, design.design_id, __version__, code, pd.__version__)))[:32]


def _keys(reader: StoreReader, design: DesignRow, frames: _Frames) -> dict[str, str]:
    """All that the frames of a run rest on, for runs that have ended and in which no people take part, by run id."""
    runs, agents = frames["runs"], frames["agents"]
    people = agents.loc[agents["evidence"] == "human", "run_id"]
    ended = runs["status"].isin(_ENDED) & ~runs["run_id"].isin(people)
    contents = reader.contents(runs["run_id"].unique())
    cells: dict[str, list[Any]] = {}
    for run in design.runs:
        # An analysis reads the name of its instrument from the frame of runs alone.
        cells.setdefault(run.run_id, []).append(replace(run, instrument_id=None))
    used = {each for run in design.runs for each in run.instruments}
    instruments = [each for each in reader.instruments() if each.instrument_id in used]
    lasting = runs.loc[ended, "run_id"].unique()
    return {run_id: digest(f"{contents[run_id]} {cells[run_id]} {instruments}") for run_id in lasting}


def _of_runs(frame: pd.DataFrame, run_ids: Collection[str]) -> pd.DataFrame:
    """The rows of some runs."""
    return frame[frame["run_id"].isin(run_ids)]


def _packed(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with its texts and tuples by categories, which is read in a fraction of the time."""
    texts = [name for name, kind in frame.dtypes.items() if is_object_dtype(kind) or isinstance(kind, pd.StringDtype)]
    return frame.astype(dict.fromkeys(texts, "category")).reset_index(drop=True)


def _joined(name: str, packed: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """A frame of packed and of new rows, sorted by its key."""
    columns, key = _KEPT[name]
    types = {each: kind for each, kind in COLUMNS[columns].items() if each in packed}
    unpacked = packed.astype(types)
    if not len(new):
        return unpacked.reset_index(drop=True)
    whole = pd.concat([each for each in (unpacked, new) if len(each)], ignore_index=True)
    return whole.sort_values(key, kind="stable", ignore_index=True, na_position="first")
