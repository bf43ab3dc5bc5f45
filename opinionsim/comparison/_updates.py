"""Recorded updates: readings, opinions before and after, and how far opinions moved."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from scipy.stats import t as student

from opinionsim.comparison._update_arrays import Updates
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.messages import UNHEARD
from opinionsim.metrics import between_points, one_wording, readings, scale_of, stance_rows
from opinionsim.store import Results

#: Classifier of numbers that authors publish as they are.
_EXACT = "exact"


def studies(results: Results, wording: str | None = None, cells: Collection[str] | None = None) -> dict[str, Updates]:
    """The updates of each condition.

    Parameters
    ----------
    results : Results
        Loaded results; runs that are not complete are left out.
    wording : str, optional
        Prompt pack whose runs count; default that of the run that began last.
    cells : collection of str, optional
        Conditions to include; default all.

    Returns
    -------
    dict of str to Study
        Conditions by label, in the order of the design, without those in which no agent reads another's message.

    Raises
    ------
    MeasurementError
        If there is no complete run, no run has a measured message or reader, or a condition mixes evidence or scales.
    SpecError
        If a condition is unknown or has no updates.
    """
    every, opinions, _, turns = results.counted()
    complete, _ = one_wording(every[every["status"] == "complete"], wording)
    if complete.empty:
        raise MeasurementError("no run is complete, so there is nothing to compare; run the experiment first")
    stance = stance_rows(complete, opinions)
    found = {}
    for cell, runs in complete[complete["cell"].isin(cells or complete["cell"])].groupby("cell", sort=False):
        mine = stance[stance["cell"] == cell].merge(
            runs[["run_id", "instrument_id"]], on=["run_id", "instrument_id"], how="inner"
        )
        study = _study(str(cell), runs, turns[turns["run_id"].isin(runs["run_id"])], mine)
        if study is not None:
            found[str(cell)] = study
    if unknown := [cell for cell in cells or () if cell not in found]:
        valid = ", ".join(each for each in complete["cell"].unique() if each not in unknown)
        raise SpecError(f"there is no condition {unknown[0]!r} with updates; valid: {valid}")
    if not found:
        raise MeasurementError(
            "no run has a measured agent that read a measured message of another agent. Comparing needs an "
            "interaction in which agents read each other, and a measurement.texts that includes what they write and "
            "what they report, such as [post, report]"
        )
    return found


def _numbers(column: pd.Series[int]) -> np.ndarray:
    """A column as an array of its own: kernels are compiled anew for one that may only be read, as those of frames."""
    return column.to_numpy(np.int64, copy=True)


def _study(cell: str, runs: pd.DataFrame, turns: pd.DataFrame, stance: pd.DataFrame) -> Updates | None:
    """The updates of one condition; None where nobody that was measured has read a measured message."""
    evidence = sorted(set(runs["evidence"]))
    if len(evidence) > 1 or evidence == ["mixed"] or "+" in evidence[0]:
        raise MeasurementError(
            f"{cell} mixes evidence ({', '.join(evidence)}), but a fit needs authors of one kind; choose other cells"
        )
    if stance["scale"].nunique() > 1 or stance["classifier"].nunique() > 1:
        raise MeasurementError(f"{cell} is measured on several scales or by several classifiers; a fit needs one")
    size = runs.set_index("run_id")["n_agents"]
    order = {run_id: place for place, run_id in enumerate(runs["run_id"])}
    own = turns[turns["agent"] < turns["run_id"].map(size)]
    own = own.assign(run=own["run_id"].map(order)).sort_values(["run", "turn"], ignore_index=True)
    own = own.merge(stance[["run_id", "turn", "value"]], on=["run_id", "turn"], how="left")
    at = own[["run_id", "turn"]].assign(at=own.index)
    by = own[["run_id", "agent"]].assign(reader=own["turn"], by=own["agent"], reading=own.index).drop(columns="agent")
    pairs = readings(own).merge(at, on=["run_id", "turn"]).merge(by, on=["run_id", "reader"])
    # Probes leave no memory, and what an agent wrote itself is no message of another.
    pairs = pairs[(pairs["agent"] != pairs["by"]) & ~pairs["status"].isin(UNHEARD)]
    pairs = pairs.sort_values("reading", kind="stable")
    reading, reads = _numbers(pairs["reading"]), _numbers(pairs["at"])
    counts = np.bincount(reading, minlength=len(own))
    value = own["value"].to_numpy(float)
    if not (~np.isnan(value[reads]) & ~np.isnan(value[reading])).any():
        return None
    return Updates(
        cell=cell,
        evidence=evidence[0],
        points=np.asarray(scale_of(stance).points, dtype=float),
        exact=bool((stance["classifier"] == _EXACT).all()) or between_points(stance),
        run_ids=tuple(runs["run_id"]),
        blocks=tuple(runs["block"]),
        n_agents=_numbers(runs["n_agents"]),
        first=np.concatenate([[0], np.cumsum(np.bincount(own["run"], minlength=len(runs)))]),
        turn=_numbers(own["turn"]),
        step=_numbers(own["step"]),
        agent=_numbers(own["agent"]),
        first_read=np.concatenate([[0], np.cumsum(counts)]),
        reads=reads,
        value=value,
    )


def events(results: Results, wording: str | None = None) -> pd.DataFrame:
    """Return the recorded updates, one row each, with the measurements before and after.

    Parameters
    ----------
    results, wording
        As for :func:`compare`.

    Returns
    -------
    DataFrame
        One row per turn whose author read a message of another: ``run_id, cell, block, step, turn, agent``; ``before``,
        its last measured opinion, never an assigned one; ``said``, the mean measured opinion of the messages;
        ``after``, the measured opinion of the turn (each NaN if not measured); ``exposure``, the agent's count of
        updates, from 1; ``n_messages``, the messages read, and ``n_unmeasured``, those not measured; ``evidence``.

    Raises
    ------
    MeasurementError
        As for :func:`compare`.
    """
    frames = [updates_of(study) for study in studies(results, wording).values()]
    return pd.concat(frames, ignore_index=True)


def updates_of(study: Updates) -> pd.DataFrame:
    """The updates of a study as rows of :func:`events`."""
    count = np.diff(study.first_read)
    message = np.repeat(np.arange(len(count)), count)
    said = study.value[study.reads]
    known = np.bincount(message[~np.isnan(said)], minlength=len(count))
    total = np.bincount(message, np.nan_to_num(said), minlength=len(count))
    frame = pd.DataFrame(
        {
            "run_id": np.array(study.run_ids, dtype=object)[study.run],
            "cell": study.cell,
            "block": np.array(study.blocks, dtype=object)[study.run],
            "step": study.step,
            "turn": study.turn,
            "agent": study.agent,
            "before": study.held,
            "said": np.divide(total, known, out=np.full(len(count), np.nan), where=known > 0),
            "after": study.value,
            "n_messages": count,
            "n_unmeasured": count - known,
            "evidence": study.evidence,
        }
    )[count > 0].reset_index(drop=True)
    frame.insert(9, "exposure", frame.groupby(["run_id", "agent"], sort=False).cumcount() + 1)
    return frame


def response_curve(updates: pd.DataFrame) -> pd.DataFrame:
    """Mean change and share of changes, by the distance of the message.

    Parameters
    ----------
    updates : DataFrame
        Frame of :func:`opinionsim.comparison.events`.

    Returns
    -------
    DataFrame
        One row per condition and distance: ``cell, discrepancy`` (message minus opinion before, in scale points);
        ``change`` (mean of opinion after minus opinion before) with the 95 % band ``low, high``, and ``changed`` (share
        of updates that change the opinion) with ``changed_low, changed_high``; ``n_updates``, ``n_blocks``,
        ``evidence``. Bands are clustered by block, use the variance of a ratio and Student's t, and are NaN with fewer
        than two blocks. Rating noise affects both axes, so even agents that never change appear to regress to the mean.

    Raises
    ------
    MeasurementError
        If no update has an opinion before, a message and an opinion after.
    """
    known = updates.dropna(subset=["before", "said", "after"])
    if known.empty:
        raise MeasurementError("no update has an opinion before it, a measured message and an opinion after it")
    known = known.assign(
        discrepancy=known["said"] - known["before"],
        change=known["after"] - known["before"],
        changed=(known["after"] != known["before"]).astype(float),
    )
    keys = ["cell", "discrepancy"]
    sums = known.groupby([*keys, "block"], sort=True).agg(
        change=("change", "sum"), changed=("changed", "sum"), n=("changed", "size"), evidence=("evidence", "first")
    )
    rows = sums.groupby(level=keys, sort=True).agg(
        n_updates=("n", "sum"), n_blocks=("n", "size"), evidence=("evidence", "first")
    )
    for name, ends in (("change", ("low", "high")), ("changed", ("changed_low", "changed_high"))):
        mean = sums[name].groupby(level=keys).sum() / rows["n_updates"]
        own = mean.reindex(sums.reset_index("block").index).to_numpy()
        squares = ((sums[name] - own * sums["n"]) ** 2).groupby(level=keys).sum()
        blocks = rows["n_blocks"].where(rows["n_blocks"] > 1)
        error = np.sqrt(squares * blocks / (blocks - 1)) / rows["n_updates"]
        half = error * student.ppf(0.975, blocks - 1)
        low, high = (-np.inf, np.inf) if name == "change" else (0.0, 1.0)
        rows[name], rows[ends[0]], rows[ends[1]] = mean, (mean - half).clip(low, high), (mean + half).clip(low, high)
    columns = ["change", "low", "high", "changed", "changed_low", "changed_high", "n_updates", "n_blocks", "evidence"]
    return rows[columns].reset_index()
