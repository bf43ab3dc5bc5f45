"""Trajectories and metrics of whole runs, from the tidy frames of a store.

Only measured opinions of participants enter. A participant that never gave a text that could be coded has no opinion,
even if it was assigned one; such participants are counted. Others of a run's cast, such as a moderator, are neither
measured nor counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from opinionsim.evidence import instrument_validation, validation_statement
from opinionsim.metrics._instruments import OPINION_COLUMNS, point_columns, points_of, require, scale_of, stance_rows
from opinionsim.metrics._opinions import check_ddof, nearest_points
from opinionsim.opinions import OpinionScale

_RUN_COLUMNS = ("run_id", "cell", "n_agents", "steps", "instrument_id", "evidence", "validation")
_AGENT_COLUMNS = ("run_id", "agent", "assigned_opinion")

#: Values of column `condition` of an opinions frame for texts that are no answers.
_CAUSES = ("refused", "empty", "truncated")


def _cells(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a (run, cell) with the columns that metrics need, numbered in column `row`."""
    require(runs, "runs", _RUN_COLUMNS)
    cells = runs[list(_RUN_COLUMNS)].drop_duplicates(["run_id", "cell"]).reset_index(drop=True)
    return cells.assign(row=np.arange(len(cells)))


def _stance(cells: pd.DataFrame, opinions: pd.DataFrame, *more: str) -> pd.DataFrame:
    """Stance of participants in the given cells in turn order, each with the `row` of its cell, and columns `more`."""
    stance = stance_rows(cells, opinions)[[*OPINION_COLUMNS, *more]]
    stance = stance.merge(cells[["run_id", "cell", "row", "n_agents"]], on=["run_id", "cell"], how="inner")
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
    missing: np.ndarray


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
    return _Grid(
        heads=heads,
        length=length,
        group=tracks[track],
        agent=(np.arange(len(tracks)) - first_track[tracks])[track],
        step=np.arange(start[-1]) - start[track],
        value=_carry_forward(grid, start[track]),
        measured=measured,
        missing=np.bincount(position[~has_value], minlength=len(grid)),
    )


def _carry_forward(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Replace NaN by the last value before it in its track; `start` is the first position of each entry's track."""
    source = np.where(np.isnan(values), -1, np.arange(len(values)))
    source = np.maximum.accumulate(source) if len(values) else source
    return np.where(source >= start, values[np.maximum(source, 0)], np.nan) if len(values) else values


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
        instrument_id, agent, step, value, measured, assigned_opinion, evidence``. A cell without such texts has one
        row a participant and step. ``value`` is NaN until the agent is first measured; of several values at one
        step the last turn's stays. ``measured`` is True where a value was measured at this step. A text without a
        value changes nothing. ``assigned_opinion`` is the opinion the agent was told to hold at the start; it never
        enters ``value``.

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
        diversity, n_measured, n_never, n_missing, ddof, evidence``. By this step, ``n_measured`` agents have been
        measured and ``n_never`` have not, and ``n_missing`` texts had no value.

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
    fresh = np.bincount(cell, weights=grid.missing, minlength=first[-1]).astype(int)
    total = np.concatenate([[0], np.cumsum(fresh)])
    heads = grid.heads.iloc[group]
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
            "n_missing": total[first[group] + step + 1] - total[first[group]],
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


def _finals(stance: pd.DataFrame, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Last measured value of each (group, agent) as (group, value); `stance` is in turn order within a group."""
    value = stance["value"].to_numpy(float)
    kept = ~np.isnan(value)
    group, agent, value = group[kept], stance["agent"].to_numpy(int)[kept], value[kept]
    order = np.lexsort((agent, group))
    group, agent, value = group[order], agent[order], value[order]
    last = np.ones(len(group), dtype=bool)
    last[:-1] = (group[1:] != group[:-1]) | (agent[1:] != agent[:-1])
    return group[last], value[last]


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
    n_agents = cells.drop_duplicates("run_id").set_index("run_id")["n_agents"]
    participants = agents[agents["agent"] < agents["run_id"].map(n_agents)]
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
    """The last measured opinion of every participant, by run, cell, instrument of stance and kind of text.

    Returns
    -------
    heads : DataFrame
        One row for each: ``run_id, cell, instrument_id, kind``.
    finals : list of ndarray
        Opinions of the agents that were measured, one array a row of `heads`.
    """
    stance = _stance(_cells(runs), opinions)
    group = stance.groupby(["row", "instrument_id", "kind"], dropna=False).ngroup().to_numpy(int)
    _, first = np.unique(group, return_index=True)
    final_group, final = _finals(stance, group)
    heads = stance.iloc[first][["run_id", "cell", "instrument_id", "kind"]].reset_index(drop=True)
    return heads, [final[final_group == number] for number in range(len(heads))]


def run_metrics(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    ddof: int = 0,
    scale: OpinionScale | None = None,
) -> pd.DataFrame:
    """Metrics of the final opinions of every run: each participant's last measured value.

    Parameters
    ----------
    runs, opinions, agents : DataFrame
        Frames of a store; only runs in `runs` are used, whatever their status.
    ddof : int
        Correction of the standard deviation (:func:`diversity`); repeated in column ``ddof``.
    scale : OpinionScale, optional
        Points at which shares are counted; default the points of all instruments of stance in these runs.

    Returns
    -------
    DataFrame
        One row a run, cell, instrument of stance and kind of text present: ``run_id, cell, instrument_id,
        classifier, kind, bias, diversity, ddof, n_agents, n_measured, n_never, never_measured_rate,
        n_texts, n_missing, n_refused, n_empty, n_truncated, missing_rate, share_<point>..., assigned_bias,
        assigned_diversity, evidence, validation``.
        Bias and diversity are NaN where no agent was measured, shares also at points that are not on the
        scale of the instrument. ``never_measured_rate`` is a share of the participants, ``missing_rate`` of
        their texts. Among the ``n_missing`` texts without a value, ``n_refused`` are refusals, ``n_empty`` have no
        text and ``n_truncated`` were cut off; the others are answers in which the instrument found no opinion. A
        neutral opinion is a value. ``assigned_bias`` and ``assigned_diversity`` describe the opinions assigned at the
        start and are no measurement. ``validation`` is that of the run, or that of :func:`instrument_validation` for
        an instrument that the runs frame does not name; empty for self-reports.

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
    stance = _stance(cells, opinions, *scaled, *point_columns(opinions))
    own_points = scale is None and not stance.empty
    if scale is None:
        # Without a measurement there may be no columns to read a scale from.
        scale = OpinionScale() if stance.empty else scale_of(stance)
    group = stance.groupby(["row", "instrument_id", "kind"], dropna=False).ngroup().to_numpy(int)
    _, first = np.unique(group, return_index=True)
    heads = stance.iloc[first]
    head_cells = cells.iloc[heads["row"].to_numpy(int)]
    size = len(heads)
    final_group, final = _finals(stance, group)
    n, mean, spread = _moments(final_group, final, size, ddof)
    n_texts = np.bincount(group, minlength=size)
    missing = stance["value"].isna().to_numpy()
    n_missing = np.bincount(group[missing], minlength=size)
    causes = {
        f"n_{cause}": np.bincount(group[missing & (stance["condition"] == cause).to_numpy(bool)], minlength=size)
        for cause in _CAUSES
    }
    n_agents = head_cells["n_agents"].to_numpy(int)
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
            "n_texts": n_texts,
            "n_missing": n_missing,
            **causes,
            "missing_rate": n_missing / n_texts,
            **_shares(final_group, final, n, scale),
        }
    )
    if own_points:
        frame = _without_foreign_points(frame, stance, first, scale)
    frame = frame.join(_assigned(cells, agents, ddof), on="run_id")
    return frame.assign(evidence=head_cells["evidence"].array, validation=_validation(head_cells, heads))
