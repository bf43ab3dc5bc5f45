"""Table of a classic sweep: the mean of every measure at every point."""

from __future__ import annotations

from typing import Any

import pandas as pd

from opinionsim.analysis import Table, finished, mean_text, spell, spell_all
from opinionsim.errors import SpecError
from opinionsim.metrics import ANY, limits_of, takes_delta
from opinionsim.registry import part

#: Name of the kind of study, in specifications and stores.
SCAN = "scan"
#: What stands behind the mean of several replicates, and its meaning.
INTERVAL = " [95 % CI]"
INTERVAL_MEANS = "[95 % CI]: t interval of the mean over replicates, if at least three replicates differ"
#: Columns of a frame of runs that are neither axes nor measures.
_FIXED = ("model", "replicate", "time", "stopped", "error", "evidence")


def point_axes(points: pd.DataFrame) -> list[str]:
    """Return the columns of the frame `points` that vary."""
    columns = list(points.columns)
    return columns[columns.index("model") + 1 : columns.index("replicate")]


def point_measures(points: pd.DataFrame) -> list[str]:
    """Return the columns of the frame `points` that contain measures."""
    axes = point_axes(points)
    return [name for name in points.columns if name not in (*_FIXED, *axes)]


@part("table", name="points", studies=(SCAN,))
def points_table(units: pd.DataFrame) -> Table:
    """Tabulate the mean of every measure at the end of runs by point of a classic sweep.

    Parameters
    ----------
    units : DataFrame
        The frame ``points`` (:attr:`opinionsim.Results.units`), with at least one row.

    Returns
    -------
    Table
        One row per point, or one per point and way in which runs ended. Its frame has the means and numbers of runs.
    """
    if units.empty:
        raise SpecError("no run is stored yet, so there is nothing to tabulate")
    axes, frame, attrs = point_axes(units), units, units.attrs
    # Those on the way are for figures: side by side they fit no line.
    names = [name for name in point_measures(units) if "@" not in name]
    until = attrs.get("until")
    steps = f"{attrs['steps']} steps" if until is None else f"until {spell(until)}, at most {attrs['steps']} steps"
    if until is not None:
        # Runs at their limit are in another state than those at rest, and no mean is of both.
        ended = frame["stopped"].map({True: spell(until), False: "at the limit"})
        sound = frame["error"] == ""
        frame = frame.assign(ended=ended)[sound if sound.any() else ~sound]
        axes = [*axes, "ended"]
    parts = list(frame.groupby(axes, sort=False, dropna=False)) if axes else [((), frame)]
    # A store may hold more runs of some points than of others, some measures of a few of them, and runs that failed.
    counts = {int(count) for _, group in parts for count in (len(group), *group[names].count())}
    uneven = len(counts) > 1
    most = max(len(group) for _, group in parts)
    timed = [*names, *([] if until is None else ["time"])]
    rows, records = [], []
    for values, group in parts:
        known = {name: group[name].dropna() for name in timed}
        behind = {name: f" ({len(each)})" if uneven and name != "time" else "" for name, each in known.items()}
        cells = [f"{_mean(name, each)}{behind[name]}" for name, each in known.items()]
        rows.append((*map(spell, values), *cells, *([] if until is None else [str(len(group))])))
        means = {name: each.mean() for name, each in known.items()}
        records.append({**dict(zip(axes, values, strict=True)), **means, "runs": len(group), "evidence": "equation"})
    interval = INTERVAL if most > 1 else ""
    header = (*axes, *(name + interval for name in timed), *([] if until is None else ["runs"]))
    same = spell_all(attrs.get("parameters", {}), attrs.get("scheme", {}))
    agents = [f"{attrs['n']} agents"] if "n" in attrs else []
    varied = point_axes(units)
    at_a_point = int(frame.groupby(varied, dropna=False).size().max()) if varied else len(frame)
    replicates = f"{at_a_point} replicate{'' if at_a_point == 1 else 's'}"
    notes = [
        "Final opinions, mean over replicates.",
        f"At most {replicates} at a point, fewer at some points: see the numbers in brackets." if uneven else "",
        f"{INTERVAL_MEANS}." if interval else "",
        f"A gap separates clusters if it exceeds {attrs['delta']}." if "delta" in attrs and takes_delta(names) else "",
        "Runs that reached the limit of steps have a separate row, because mean times use only the shorter runs."
        if until is not None and (frame["stopped"] == False).any()  # noqa: E712 - or NA
        else "",
    ]
    heading = f"{attrs['model']}: {same or 'nothing else to set'}; {', '.join([*agents, steps, replicates])}"
    return finished(heading, pd.DataFrame(records), (header,), rows, len(axes), notes)


def _mean(name: str, values: pd.Series[Any]) -> str:
    """Mean of a measure, with its interval if there are several values; a dash without any."""
    return mean_text(values, limits_of(name, *ANY)) if len(values) else "-"
