"""Trajectories and metrics of whole runs, from the tidy frames of a store.

Only measured opinions of participants enter. A participant that never gave a text that could be coded has no opinion,
even if it was assigned one; such participants are counted. Others of a run's cast, such as a moderator, are neither
measured nor counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from opinionsim.evidence import instrument_validation, validation_statement
from opinionsim.metrics._instruments import (
    OPINION_COLUMNS,
    by_participants,
    point_columns,
    points_of,
    require,
    scale_of,
    stance_rows,
)
from opinionsim.metrics._missing import TURN_COLUMNS, counts_of_kind, counts_of_run
from opinionsim.metrics._opinions import check_ddof, nearest_points
from opinionsim.opinions import OpinionScale

_RUN_COLUMNS = ("run_id", "cell", "n_agents", "steps", "instrument_id", "evidence", "validation")
_AGENT_COLUMNS = ("run_id", "agent", "assigned_opinion")

#: Values of column `condition` of an opinions frame for texts that are no answers.
_CAUSES = ("refused", "empty", "truncated")
#: Counts of texts without a value, with the condition of the text; of any condition for None.
_MISSING: Mapping[str, str | None] = MappingProxyType(
    {
        "n_missing": None,
        "n_refused": "refused",
        "n_empty": "empty",
        "n_truncated": "truncated",
        "n_off_scale": "answered",
    }
)
#: Runs with a smaller share of measured agents are marked.
_ENOUGH = 0.5


def _cells(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a (run, cell) with the columns that metrics need, numbered in column `row`."""
    require(runs, "runs", _RUN_COLUMNS)
    cells = runs.drop_duplicates(["run_id", "cell"]).reset_index(drop=True)
    every = cells["every_report"] if "every_report" in runs.columns else False
    return cells[list(_RUN_COLUMNS)].assign(row=np.arange(len(cells)), every_report=every)


def _stance(cells: pd.DataFrame, opinions: pd.DataFrame, *more: str) -> pd.DataFrame:
    """Stance of participants in the given cells in turn order, each with the `row` of its cell, and columns `more`."""
    stance = stance_rows(cells, opinions)[[*OPINION_COLUMNS, *more]]
    own = ["run_id", "cell", "row", "n_agents", "every_report"]
    stance = stance.merge(cells[own], on=["run_id", "cell"], how="inner")
    return stance.sort_values(["row", "turn"], kind="stable", ignore_index=True)


@dataclass(frozen=True)
class _Grid:
    """Opinions on a dense grid series x agent x step, flattened; series may differ in size.

    `heads` has one row a series, which is a (run, cell, instrument). The arrays have one entry a grid point, except
    `length` with one a series.
    """

    heads: pd.DataFrame
    length: np.ndarray
    group: np.ndarray
    agent: np.ndarray
    step: np.ndarray
    value: np.ndarray
    measured: np.ndarray
    age: np.ndarray
    missing: dict[str, np.ndarray]


def _heads(cells: pd.DataFrame, stance: pd.DataFrame) -> pd.DataFrame:
    """One row a (cell, instrument) with `length`, the number of its steps from step 0; cells without texts too."""
    by_instrument = stance.groupby(["row", "instrument_id"], dropna=False)["step"]
    last = by_instrument.max().rename("last_step").reset_index()
    silent = cells.loc[~cells["row"].isin(last["row"]), ["row", "instrument_id"]].assign(last_step=0)
    known = pd.concat([last, silent], ignore_index=True) if len(last) else silent
    heads = known.merge(cells.drop(columns="instrument_id"), on="row").sort_values(
        "row", kind="stable", ignore_index=True
    )
    return heads.assign(
        length=np.maximum(heads["steps"], heads["last_step"]).astype(int) + 1, group=np.arange(len(heads))
    )


def _grid(runs: pd.DataFrame, opinions: pd.DataFrame, kind: str) -> _Grid:
    """Lay the measured opinions of one kind of text on the grid and carry each forward."""
    cells = _cells(runs)
    stance = _stance(cells, opinions)
    stance = stance[stance["kind"] == kind]
    heads = _heads(cells, stance)
    n_agents, length = heads["n_agents"].to_numpy(int), heads["length"].to_numpy(int)
    tracks = np.repeat(np.arange(len(heads)), n_agents)
    first_track = np.concatenate([[0], np.cumsum(n_agents)])
    track_length = length[tracks]
    start = np.concatenate([[0], np.cumsum(track_length)])
    track = np.repeat(np.arange(len(tracks)), track_length)

    stance = stance.merge(heads[["row", "instrument_id", "group"]], on=["row", "instrument_id"], how="left")
    stance = stance.sort_values(["row", "turn"], kind="stable")
    position = start[first_track[stance["group"].to_numpy(int)] + stance["agent"].to_numpy(int)]
    position = position + stance["step"].to_numpy(int)
    value = stance["value"].to_numpy(float)
    has_value = ~np.isnan(value)

    grid = np.full(start[-1], np.nan)
    # Rows are in turn order, so the last of several texts of a step stays.
    grid[position[has_value]] = value[has_value]
    measured = ~np.isnan(grid)
    without, condition = position[~has_value], stance["condition"].to_numpy(object)[~has_value]
    source = _last_known(grid, start[track])
    return _Grid(
        heads=heads,
        length=length,
        group=tracks[track],
        agent=(np.arange(len(tracks)) - first_track[tracks])[track],
        step=np.arange(start[-1]) - start[track],
        value=np.where(source >= 0, grid[np.maximum(source, 0)], np.nan) if len(grid) else grid,
        measured=measured,
        age=np.where(source >= 0, np.arange(len(grid)) - source, np.nan),
        missing={
            name: np.bincount(without[condition == cause] if cause else without, minlength=len(grid))
            for name, cause in _MISSING.items()
        },
    )


def _last_known(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Position of the last value up to each entry of its track, -1 before any; `start` is where the track begins."""
    source = np.where(np.isnan(values), -1, np.arange(len(values)))
    source = np.maximum.accumulate(source) if len(values) else source
    return np.where(source >= start, source, -1)


def trajectories(
    runs: pd.DataFrame, agents: pd.DataFrame, opinions: pd.DataFrame, kind: str = "report"
) -> pd.DataFrame:
    """Opinion of every participant at every step, the last measured value carried forward.

    Parameters
    ----------
    runs, agents, opinions : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str
        Kind of text: ``report``, ``response``, ``post``, ``probe`` or ``self-report``.

    Returns
    -------
    DataFrame
        One row a run, cell, instrument of stance, participant and step 0..T, in this order: ``run_id, cell,
        instrument_id, agent, step, value, measured, age, assigned_opinion, evidence``. A cell without such texts has
        one row a participant and step. ``value`` is NaN until the agent is first measured; of several values at one
        step the last turn's stays. ``measured`` is True where a value was measured at this step; ``age`` is the
        number of steps since then. A text without a value changes nothing. ``assigned_opinion`` is the opinion the
        agent was told to hold at the start; it never enters ``value``.

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.

    Notes
    -----
    Chuang et al. 2023, Algorithm 1 (A1): agents that do not listen keep their opinion.
    """
    require(agents, "agents", _AGENT_COLUMNS)
    grid = _grid(runs, opinions, kind)
    heads = grid.heads.iloc[grid.group]
    frame = pd.DataFrame(
        {
            "run_id": heads["run_id"].array,
            "cell": heads["cell"].array,
            "instrument_id": heads["instrument_id"].array,
            "agent": grid.agent,
            "step": grid.step,
            "value": grid.value,
            "measured": grid.measured,
            "age": grid.age,
        }
    )
    assigned = agents[list(_AGENT_COLUMNS)].drop_duplicates(["run_id", "agent"])
    frame = frame.merge(assigned, on=["run_id", "agent"], how="left")
    return frame.assign(assigned_opinion=frame["assigned_opinion"].astype(float), evidence=heads["evidence"].array)


def step_metrics(runs: pd.DataFrame, opinions: pd.DataFrame, kind: str = "report", ddof: int = 0) -> pd.DataFrame:
    """Bias and diversity after every step, over the participants measured so far.

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str
        Kind of text: ``report``, ``response``, ``post``, ``probe`` or ``self-report``.
    ddof : int
        Correction of the standard deviation (:func:`diversity`).

    Returns
    -------
    DataFrame
        One row a run, cell, instrument of stance and step 0..T: ``run_id, cell, instrument_id, step, bias,
        diversity, n_measured, n_never, mean_age, n_missing, n_refused, n_empty, n_truncated, n_off_scale, ddof,
        evidence``. By this step, ``n_measured`` agents have been measured, on average ``mean_age`` steps ago, and
        ``n_never`` have not. So far ``n_missing`` texts had no value: those that are refused, empty, cut off and not
        counted, and answers in which no opinion was found (``n_off_scale``).

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.
    """
    check_ddof(ddof)
    grid = _grid(runs, opinions, kind)
    first = np.concatenate([[0], np.cumsum(grid.length)])
    group = np.repeat(np.arange(len(grid.heads)), grid.length)
    step = np.arange(first[-1]) - first[group]
    cell = first[grid.group] + grid.step
    present = ~np.isnan(grid.value)
    n, mean, spread = _moments(cell[present], grid.value[present], int(first[-1]), ddof)
    _, age, _ = _moments(cell[present], grid.age[present], int(first[-1]), 0)
    heads = grid.heads.iloc[group]

    def so_far(missing: np.ndarray) -> np.ndarray:
        fresh = np.bincount(cell, weights=missing, minlength=first[-1]).astype(int)
        total = np.concatenate([[0], np.cumsum(fresh)])
        return np.asarray(total[first[group] + step + 1] - total[first[group]])

    return pd.DataFrame(
        {
            "run_id": heads["run_id"].array,
            "cell": heads["cell"].array,
            "instrument_id": heads["instrument_id"].array,
            "step": step,
            "bias": mean,
            "diversity": spread,
            "n_measured": n,
            "n_never": heads["n_agents"].to_numpy(int) - n,
            "mean_age": age,
            **{name: so_far(missing) for name, missing in grid.missing.items()},
            "ddof": ddof,
            "evidence": heads["evidence"].array,
        }
    )


def _moments(group: np.ndarray, value: np.ndarray, size: int, ddof: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and standard deviation of `value` in each of `size` groups; NaN where undefined."""
    n = np.bincount(group, minlength=size)
    total = np.bincount(group, weights=value, minlength=size)
    mean = np.divide(total, n, out=np.full(size, np.nan), where=n > 0)
    squares = np.bincount(group, weights=(value - mean[group]) ** 2, minlength=size)
    variance = np.divide(squares, n - ddof, out=np.full(size, np.nan), where=n > ddof)
    return n, mean, np.sqrt(variance)


def _finals(stance: pd.DataFrame, group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values that count in tables, as (group, value, step); `stance` is in turn order within a group.

    They are the last measured value of each agent, or all its values where no report depends on another.
    """
    kept = np.flatnonzero(stance["value"].notna().to_numpy())
    group, agent = group[kept], stance["agent"].to_numpy(int)[kept]
    order = np.lexsort((agent, group))
    group, agent, kept = group[order], agent[order], kept[order]
    last = np.ones(len(group), dtype=bool)
    last[:-1] = (group[1:] != group[:-1]) | (agent[1:] != agent[:-1])
    last |= stance["every_report"].to_numpy(bool)[kept]
    rows = kept[last]
    return group[last], stance["value"].to_numpy(float)[rows], stance["step"].to_numpy(int)[rows]


def _shares(group: np.ndarray, value: np.ndarray, n: np.ndarray, scale: OpinionScale) -> dict[str, np.ndarray]:
    """Columns ``share_<point>``: fraction of each group's n values at each scale point."""
    size, k = len(n), len(scale)
    counts = np.bincount(group * k + nearest_points(value, scale), minlength=size * k).reshape(size, k)
    shares = np.divide(counts, n[:, None], out=np.full((size, k), np.nan), where=n[:, None] > 0)
    return {f"share_{point}": shares[:, column] for column, point in enumerate(scale.points)}


def _without_foreign_points(
    metrics: pd.DataFrame, stance: pd.DataFrame, first: np.ndarray, scale: OpinionScale
) -> pd.DataFrame:
    """Shares only at the points of each instrument's own scale; `first` are rows of `stance`, one a row of metrics."""
    instrument = stance.groupby("instrument_id", dropna=False).ngroup().to_numpy(int)
    # An instrument of unknown scale may have any point.
    known = [points_of(part) or scale.points for _, part in stance.groupby(instrument)]
    own = np.array([[point in points for point in scale.points] for points in known])
    shares = [f"share_{point}" for point in scale.points]
    return metrics.assign(**metrics[shares].where(own[instrument[first]]))


def _assigned(cells: pd.DataFrame, agents: pd.DataFrame, ddof: int) -> pd.DataFrame:
    """Bias and diversity of the opinions that participants of each run were assigned."""
    require(agents, "agents", _AGENT_COLUMNS)
    participants = agents[by_participants(agents, cells)]
    known = participants.assign(assigned_opinion=participants["assigned_opinion"].astype(float))
    by_run = known.drop_duplicates(["run_id", "agent"]).groupby("run_id", sort=False)["assigned_opinion"]
    return pd.DataFrame({"assigned_bias": by_run.mean(), "assigned_diversity": by_run.std(ddof=ddof)})


def _validation(cells: pd.DataFrame, heads: pd.DataFrame) -> list[str]:
    """Statement on the validation of the instrument of each row of `heads`; `cells` has the same rows."""
    pairs = zip(cells.itertuples(index=False), heads["instrument_id"], heads["kind"].astype(str), strict=True)
    # The runs frame holds the validation of the instrument it names; no other instrument has an audit on record.
    return [
        validation_statement([cell.validation], kind)
        if cell.instrument_id == instrument
        else instrument_validation(str(cell.evidence), [kind])
        for cell, instrument, kind in pairs
    ]


def final_opinions(runs: pd.DataFrame, opinions: pd.DataFrame) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """The measured opinions that count in tables, by run, cell, instrument of stance and kind of text.

    The last one of every participant; all of them where no report depends on another (column `every_report`).

    Returns
    -------
    heads : DataFrame
        One row for each: ``run_id, cell, instrument_id, kind``.
    finals : list of ndarray
        Opinions, one array a row of `heads`.
    """
    stance = _stance(_cells(runs), opinions)
    group = stance.groupby(["row", "instrument_id", "kind"], dropna=False).ngroup().to_numpy(int)
    _, first = np.unique(group, return_index=True)
    final_group, final, _ = _finals(stance, group)
    heads = stance.iloc[first][["run_id", "cell", "instrument_id", "kind"]].reset_index(drop=True)
    return heads, [final[final_group == number] for number in range(len(heads))]


def _ends(stance: pd.DataFrame, group: np.ndarray, size: int, scale: OpinionScale) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest point of the scale of each group: its instrument's own, or `scale` where that is unknown."""
    ends = np.array([[scale.lowest, scale.highest]] * size, dtype=float).reshape(size, 2)
    if "scale" in stance.columns:
        for text, part in stance.groupby("scale"):
            points = [int(point) for point in str(text).split(",")]
            ends[np.unique(group[part.index.to_numpy(int)])] = (min(points), max(points))
    return ends[:, 0], ends[:, 1]


def _with_silent(
    stance: pd.DataFrame, runs: pd.DataFrame, cells: pd.DataFrame, turns: pd.DataFrame | None
) -> pd.DataFrame:
    """Stance with one row for each kind of text whose turns were all skipped in a run: a text nobody was asked for."""
    if turns is None or "classifier" not in runs.columns:
        return stance
    skipped = turns.loc[turns["condition"] == "skipped", ["run_id", "kind"]].drop_duplicates()
    if skipped.empty:
        return stance
    own = runs[["run_id", "cell", "classifier"]].drop_duplicates(["run_id", "cell"])
    named = cells[cells["instrument_id"].notna()].merge(own, on=["run_id", "cell"]).merge(skipped, on="run_id")
    # An instrument reads the kinds of text that it has read in other runs; without any, reports.
    known = set(zip(stance["instrument_id"], stance["kind"], strict=True))
    reads = [(each, kind) in known or (not known and kind == "report") for each, kind in
             zip(named["instrument_id"], named["kind"], strict=True)]  # fmt: skip
    there = set(zip(stance["row"], stance["instrument_id"], stance["kind"], strict=True))
    keys = zip(named["row"], named["instrument_id"], named["kind"], reads, strict=True)
    silent = named[[read and (row, each, kind) not in there for row, each, kind, read in keys]]
    if silent.empty:
        return stance
    columns = ["run_id", "cell", "instrument_id", "classifier", "kind", "row", "n_agents", "every_report"]
    rows = silent[columns].assign(variable="stance", turn=-1, step=0, agent=-1, condition="skipped", value=np.nan)
    return pd.concat([stance, rows.reindex(columns=stance.columns)], ignore_index=True).sort_values(
        ["row", "turn"], kind="stable", ignore_index=True
    )


#: What only turns tell of a run and kind of text, and of a run.
_TOLD = ("n_skipped", "n_refused_at_first", "n_flagged")
_TOLD_OF_RUN = ("n_failed_reflections", "n_readings", "n_unheard")


def _with_turns(frame: pd.DataFrame, turns: pd.DataFrame | None) -> pd.DataFrame:
    """Metrics with counts of turns; NaN without a turns frame."""
    if turns is None:
        return frame.assign(**dict.fromkeys((*_TOLD, *_TOLD_OF_RUN), np.nan))
    require(turns, "turns", TURN_COLUMNS)
    frame = frame.join(counts_of_kind(turns), on=["run_id", "kind"]).join(counts_of_run(turns), on="run_id")
    return frame.assign(**{name: frame[name].fillna(0).astype(int) for name in (*_TOLD, *_TOLD_OF_RUN)})


def run_metrics(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    ddof: int = 0,
    scale: OpinionScale | None = None,
    turns: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Metrics of the final opinions of every run: each participant's last measured value.

    In runs with a true value in column `every_report` of `runs`, where no report depends on another, all values count.

    Parameters
    ----------
    runs, opinions, agents : DataFrame
        Frames of a store; only runs in `runs` are used, whatever their status.
    ddof : int
        Correction of the standard deviation (:func:`diversity`); repeated in column ``ddof``.
    scale : OpinionScale, optional
        Points at which shares are counted; default the points of all instruments of stance in these runs.
    turns : DataFrame, optional
        Frame of the same store. Without it, what only turns tell is NaN: skipped turns, first replies, flags, failed
        reflections, readings.

    Returns
    -------
    DataFrame
        One row a run, cell, instrument of stance and kind of text present, with the columns of the frame ``metrics``
        (docs/frames.md). A neutral opinion is a value; bias and diversity are NaN where no agent was measured.

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.

    Notes
    -----
    Chuang et al. 2023, §4 (A13). Agents that never listened are left out of B and D, as in the paper's
    scripts (A10), and reported.
    """
    check_ddof(ddof)
    cells = _cells(runs)
    scaled = [column for column in opinions.columns if column == "scale"]
    marked = [column for column in opinions.columns if column == "ambiguous"]
    stance = _stance(cells, opinions, *scaled, *marked, *point_columns(opinions))
    stance = _with_silent(stance, runs, cells, turns)
    own_points = scale is None and not stance.empty
    if scale is None:
        # Without a measurement there may be no columns to read a scale from.
        scale = OpinionScale() if stance.empty else scale_of(stance)
    group = stance.groupby(["row", "instrument_id", "kind"], dropna=False).ngroup().to_numpy(int)
    _, first = np.unique(group, return_index=True)
    heads = stance.iloc[first]
    head_cells = cells.iloc[heads["row"].to_numpy(int)]
    size = len(heads)
    final_group, final, step = _finals(stance, group)
    n_values, mean, spread = _moments(final_group, final, size, ddof)
    known = stance.loc[stance["value"].notna(), "agent"]
    n = known.groupby(group[known.index.to_numpy(int)]).nunique().reindex(range(size), fill_value=0).to_numpy(int)
    every = heads["every_report"].to_numpy(bool)
    steps = runs.drop_duplicates("run_id").set_index("run_id")["steps"]
    age = heads["run_id"].map(steps).to_numpy(float)[final_group] - step
    is_text = (stance["condition"] != "skipped").to_numpy(bool)
    n_texts = np.bincount(group[is_text], minlength=size)
    missing = stance["value"].isna().to_numpy() & is_text
    n_missing = np.bincount(group[missing], minlength=size)
    has = {cause: (stance["condition"] == cause).to_numpy(bool) for cause in ("answered", *_CAUSES)}
    told = {f"n_{cause}": np.bincount(group[has[cause]], minlength=size) for cause in _CAUSES}
    told["n_off_scale"] = np.bincount(group[missing & has["answered"]], minlength=size)
    split = stance["ambiguous"].fillna(False).to_numpy(bool) & ~missing if marked else np.zeros(len(stance), dtype=bool)
    told["n_ambiguous"] = np.bincount(group[split], minlength=size)
    n_agents = head_cells["n_agents"].to_numpy(int)
    low, high = _ends(stance, group, size, scale)
    total = np.bincount(final_group, weights=final, minlength=size)
    whole = np.where(every, n_texts, n_agents)
    frame = pd.DataFrame(
        {
            **{column: heads[column].array for column in ("run_id", "cell", "instrument_id", "classifier", "kind")},
            "bias": mean,
            "diversity": spread,
            "ddof": ddof,
            "n_agents": n_agents,
            "n_measured": n,
            "n_never": n_agents - n,
            "never_measured_rate": (n_agents - n) / n_agents,
            "sparse": n < _ENOUGH * n_agents,
            "mean_age": np.where(every, np.nan, _moments(final_group, age, size, 0)[1]),
            "bias_low": (total + (whole - n_values) * low) / whole,
            "bias_high": (total + (whole - n_values) * high) / whole,
            "n_texts": n_texts,
            "n_missing": n_missing,
            **told,
        }
    )
    if "replicate" in runs.columns:
        own = runs.drop_duplicates(["run_id", "cell"])["replicate"].to_numpy()
        frame.insert(2, "replicate", own[heads["row"].to_numpy(int)])
    frame = _with_turns(frame, turns)
    skipped = frame["n_skipped"].fillna(0)
    frame["missing_rate"] = (n_missing + skipped) / (n_texts + skipped)
    frame = pd.concat([frame, pd.DataFrame(_shares(final_group, final, n_values, scale))], axis="columns")
    if own_points:
        frame = _without_foreign_points(frame, stance, first, scale)
    frame = frame.join(_assigned(cells, agents, ddof), on="run_id")
    return frame.assign(evidence=head_cells["evidence"].array, validation=_validation(head_cells, heads))
