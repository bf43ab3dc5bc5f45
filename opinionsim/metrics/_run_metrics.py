"""Trajectories and metrics of whole runs, from the tidy frames of a store.

The metrics use only measured opinions of participants. A participant that never wrote a text that could be coded has no
opinion, even if it was assigned one, and the frames count these participants. Other members of the cast, such as a
moderator, are neither measured nor counted.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from opinionsim.messages import MISSING
from opinionsim.metrics import _opinion_rows as opinion_rows
from opinionsim.metrics._arrays import ratio
from opinionsim.metrics._evidence import chosen_kind, instrument_validation, validation_statement
from opinionsim.metrics._missing import LEAST_MEASURED, TURN_COLUMNS, counts_of_kind, counts_of_run, with_skipped
from opinionsim.metrics._opinions import check_ddof, nearest_points
from opinionsim.opinions import OpinionScale

_RUN_COLUMNS = ("run_id", "cell", "n_agents", "steps", "instrument_id", "evidence", "validation")
_AGENT_COLUMNS = ("run_id", "agent", "assigned_opinion")


def _cells(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a (run, cell) with the columns that metrics need, numbered in column `row`."""
    opinion_rows.require(runs, "runs", _RUN_COLUMNS)
    cells = runs.drop_duplicates(["run_id", "cell"]).reset_index(drop=True)
    usual = {"every_report": False, "least_measured": LEAST_MEASURED}
    own = {name: cells[name] if name in runs.columns else each for name, each in usual.items()}
    return cells[list(_RUN_COLUMNS)].assign(row=np.arange(len(cells)), **own)


def _stance(
    runs: pd.DataFrame, opinions: pd.DataFrame, turns: pd.DataFrame | None, *more: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells of runs, and the stance of their participants in turn order with the `row` of its cell.

    It has columns `more`, and rows for skipped turns.
    """
    cells = _cells(runs)
    stance = opinion_rows.stance_rows(cells, opinions)[[*opinion_rows.OPINION_COLUMNS, *more]]
    own = ["run_id", "cell", "row", "n_agents", "every_report", "least_measured"]
    stance = stance.merge(cells[own], on=["run_id", "cell"], how="inner")
    stance = stance.sort_values(["row", "turn"], kind="stable", ignore_index=True)
    return cells, with_skipped(stance, runs, cells, turns)


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


def _carried(
    runs: pd.DataFrame, opinions: pd.DataFrame, kind: str | None, turns: pd.DataFrame | None
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The measured opinions of one kind of text at every step, each carried forward.

    Returns
    -------
    heads : DataFrame
        One row per series, which is a (run, cell, instrument), from :func:`_heads`.
    opinions : DataFrame
        One row per series, agent and step: ``group, agent, step, value, measured, age, n_with_turn, withheld``.
    texts : DataFrame
        One row per text, with the `group` of its series.
    """
    cells, stance = _stance(runs, opinions, turns)
    stance = stance[stance["kind"] == chosen_kind(kind, stance["kind"], runs)]
    heads = _heads(cells, stance)
    texts = stance.merge(heads[["row", "instrument_id", "group"]], on=["row", "instrument_id"], how="left")
    grid = heads.loc[heads.index.repeat(heads["n_agents"] * heads["length"]), ["group", "length", "least_measured"]]
    place = grid.groupby("group").cumcount()
    grid = grid.assign(agent=place // grid["length"], step=place % grid["length"])
    keys = ["group", "agent", "step"]
    # Texts are in turn order: the last of several of one step stays.
    last = texts.dropna(subset="value").drop_duplicates(keys, keep="last").astype(dict.fromkeys(keys, int))
    first = texts.groupby(["group", "agent"])["step"].min().rename("first").reset_index()
    grid = grid.drop(columns="length").merge(last[[*keys, "value"]], on=keys, how="left")
    grid = grid.merge(first, on=["group", "agent"], how="left")
    grid = grid.assign(value=grid["value"].astype(float), measured=grid["value"].notna())
    grid["age"] = grid["step"].where(grid["measured"])
    grid[["value", "age"]] = grid.groupby(["group", "agent"])[["value", "age"]].ffill()
    grid = grid.assign(age=grid["step"] - grid["age"], known=grid["value"].notna(), due=grid["first"] <= grid["step"])
    n = grid.groupby(["group", "step"])[["known", "due"]].transform("sum")
    return heads, grid.assign(n_with_turn=n["due"], withheld=n["known"] < grid["least_measured"] * n["due"]), texts


def trajectories(
    runs: pd.DataFrame,
    agents: pd.DataFrame,
    opinions: pd.DataFrame,
    kind: str | None = None,
    turns: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Opinion of every participant at every step, with the last measured value carried forward.

    Parameters
    ----------
    runs, agents, opinions : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str, optional
        Kind of text; default the first that is measured, in the order of the column `texts` of `runs`.
    turns : DataFrame, optional
        As for :func:`run_metrics`.

    Returns
    -------
    DataFrame
        One row per run, cell, instrument of stance, participant and step 0..T, in this order: ``run_id, cell,
        instrument_id, agent, step, value, measured, age, withheld, assigned_opinion, evidence``. A cell without such
        texts has one row per participant and step. ``value`` is NaN until the agent is first measured. If a step has
        several values, the last turn's value counts. ``measured`` is True where a value was measured at this step, and
        ``age`` is the number of steps since the last measurement. A text without a value changes nothing. ``withheld``
        is True at steps by which too few participants were measured to describe all of them (:func:`run_metrics`).
        ``assigned_opinion`` is the opinion that the prompt gave the agent at the start; it never enters ``value``.

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.

    Notes
    -----
    Chuang et al. 2023, Algorithm 1 (A1): agents that do not listen keep their opinion.
    """
    opinion_rows.require(agents, "agents", _AGENT_COLUMNS)
    heads, grid, _ = _carried(runs, opinions, kind, turns)
    frame = heads[["group", "run_id", "cell", "instrument_id", "evidence"]].merge(grid, on="group")
    assigned = agents[list(_AGENT_COLUMNS)].drop_duplicates(["run_id", "agent"])
    frame = frame.merge(assigned, on=["run_id", "agent"], how="left")
    columns = ["run_id", "cell", "instrument_id", "agent", "step", "value", "measured", "age", "withheld"]
    return frame[[*columns, "assigned_opinion", "evidence"]].astype({"assigned_opinion": float})


def step_metrics(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    kind: str | None = None,
    ddof: int = 0,
    turns: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Bias and diversity after every step, over the participants measured so far.

    Parameters
    ----------
    runs, opinions : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str, optional
        Kind of text; default the first that is measured, in the order of the column `texts` of `runs`.
    ddof : int
        Correction of the standard deviation (:func:`diversity`).
    turns : DataFrame, optional
        As for :func:`run_metrics`.

    Returns
    -------
    DataFrame
        One row per run, cell, instrument of stance and step 0..T, with the columns ``run_id, cell, instrument_id, step,
        bias, diversity, n_measured, n_never, n_with_turn, withheld, mean_age, n_missing``, a count for each cause of
        missing texts, ``ddof, evidence``. By this step, ``n_with_turn`` agents have had a turn, ``n_measured`` have
        been measured (on average ``mean_age`` steps ago) and ``n_never`` have not. Bias and diversity are NaN where
        ``withheld`` is True (:func:`run_metrics`). So far ``n_missing`` texts had no value: texts that are not answers,
        texts that were cut off and do not count, and answers in which the instrument found no opinion
        (``n_off_scale``).

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.
    """
    check_ddof(ddof)
    heads, grid, texts = _carried(runs, opinions, kind, turns)
    frame = heads.loc[heads.index.repeat(heads["length"])]
    frame = frame.assign(step=frame.groupby("group").cumcount()).reset_index(drop=True)
    places = pd.MultiIndex.from_frame(frame[["group", "step"]])
    known = grid.dropna(subset="value")
    place = places.get_indexer(pd.MultiIndex.from_frame(known[["group", "step"]]))
    n, frame["bias"], frame["diversity"] = _moments(place, known["value"].to_numpy(), len(frame), ddof)
    _, frame["mean_age"], _ = _moments(place, known["age"].to_numpy(), len(frame), 0)
    told = grid.drop_duplicates(["group", "step"]).set_index(["group", "step"])[["n_with_turn", "withheld"]]
    frame = frame.join(told, on=["group", "step"])
    frame[["bias", "diversity"]] = frame[["bias", "diversity"]].mask(frame["withheld"])
    fresh = _counts(texts[texts["value"].isna()], ["group", "step"]).drop(columns=["n_texts", "n_ambiguous"])
    so_far = fresh.reindex(places, fill_value=0).groupby(level="group").cumsum().astype(int)
    frame = frame.assign(n_measured=n, n_never=frame["n_agents"] - n, ddof=ddof, **so_far.reset_index(drop=True))
    columns = ["run_id", "cell", "instrument_id", "step", "bias", "diversity", "n_measured", "n_never", "n_with_turn"]
    return frame[[*columns, "withheld", "mean_age", *so_far, "ddof", "evidence"]]


def _moments(group: np.ndarray, value: np.ndarray, size: int, ddof: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and standard deviation of `value` in each of `size` groups; NaN where undefined."""
    n = np.bincount(group, minlength=size)
    total = np.bincount(group, weights=value, minlength=size)
    mean = np.divide(total, n, out=np.full(size, np.nan), where=n > 0)
    squares = np.bincount(group, weights=(value - mean[group]) ** 2, minlength=size)
    variance = np.divide(squares, n - ddof, out=np.full(size, np.nan), where=n > ddof)
    return n, mean, np.sqrt(variance)


def _grouped(stance: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Texts with the number `group` of their run, cell, instrument and kind; and those of them that count in tables.

    They are the last text with a value of each agent, or all of them where no report depends on another. `stance` is
    in turn order within a group.
    """
    texts = stance.assign(group=stance.groupby(["row", "instrument_id", "kind"], dropna=False).ngroup())
    known = texts.dropna(subset="value").sort_values(["group", "agent"], kind="stable")
    last = ~known.duplicated(["group", "agent"], keep="last")
    return texts, known[last | known["every_report"].astype(bool)]


def _people(texts: pd.DataFrame, finals: pd.DataFrame) -> pd.DataFrame:
    """Participants of each group who had a turn and who were measured, and whether they are too few for a number."""
    n = texts.groupby("group").agg(n_with_turn=("agent", "nunique"), least=("least_measured", "first"))
    n["n_measured"] = finals.groupby("group")["agent"].nunique().reindex(n.index, fill_value=0)
    return n.assign(withheld=n["n_measured"] < n.pop("least") * n["n_with_turn"])


def _own_points(texts: pd.DataFrame, heads: pd.DataFrame, scale: OpinionScale) -> np.ndarray:
    """Whether each of the k points of `scale` is on the scale of the instrument of each head, (n, k)."""
    instrument = texts.groupby("instrument_id", dropna=False).ngroup()
    # An instrument of unknown scale may have any point.
    known = [opinion_rows.points_of(part) or scale.points for _, part in texts.groupby(instrument)]
    own = np.array([[point in points for point in scale.points] for points in known], dtype=bool)
    return own.reshape(-1, len(scale))[instrument[heads.index]]


def _assigned(cells: pd.DataFrame, agents: pd.DataFrame, ddof: int) -> pd.DataFrame:
    """Bias and diversity of the opinions that participants of each run were assigned."""
    opinion_rows.require(agents, "agents", _AGENT_COLUMNS)
    participants = agents[opinion_rows.by_participants(agents, cells)]
    known = participants.assign(assigned_opinion=participants["assigned_opinion"].astype(float))
    by_run = known.drop_duplicates(["run_id", "agent"]).groupby("run_id", sort=False)["assigned_opinion"]
    return pd.DataFrame({"assigned_bias": by_run.mean(), "assigned_diversity": by_run.std(ddof=ddof)})


def _changes(
    heads: pd.DataFrame, texts: pd.DataFrame, finals: pd.DataFrame, agents: pd.DataFrame, ends: pd.DataFrame
) -> pd.DataFrame:
    """Mean change of the participants of each group that have an opinion at both ends, their number, and its bounds.

    The start is measured before the first step, or assigned where no text of the kind was asked for then.
    """
    keys = ["group", "agent"]
    grid = heads.loc[heads.index.repeat(heads["n_agents"]), ["run_id"]].reset_index()
    grid = grid.assign(agent=grid.groupby("group").cumcount()).join(ends, on="group")
    early = texts[texts["step"] == 0]
    held = agents.drop_duplicates(["run_id", "agent"]).set_index(["run_id", "agent"])["assigned_opinion"].astype(float)
    before = early.dropna(subset="value").drop_duplicates(keys, keep="last").set_index(keys)["value"]
    after = finals[(finals["step"] > 0) | ~finals["group"].isin(early["group"])].groupby(keys)["value"].mean()
    grid = grid.join(before.rename("start"), on=keys).join(after.rename("end"), on=keys)
    assigned = grid.join(held.rename("held"), on=["run_id", "agent"])["held"]
    start, end = grid["start"].where(grid["group"].isin(early["group"]), assigned), grid["end"]
    found = {
        "change": end - start,
        "n_both": (end - start).notna(),
        "change_low": end.fillna(grid["low"]) - start.fillna(grid["high"]),
        "change_high": end.fillna(grid["high"]) - start.fillna(grid["low"]),
    }
    own = pd.DataFrame(found).groupby(grid["group"])
    return own.mean().assign(n_both=own["n_both"].sum(), measured_start=heads.index.isin(early["group"]))


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


def final_opinions(
    runs: pd.DataFrame, opinions: pd.DataFrame, turns: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """The measured opinions that count in tables, by run, cell, instrument of stance and kind of text.

    These are the last opinion of every participant, or all of them if no report depends on another (column
    `every_report`).

    Returns
    -------
    heads : DataFrame
        One row for each: ``run_id, cell, instrument_id, kind``.
    finals : list of ndarray
        Opinions, one array per row of `heads`; empty if too few were measured (:func:`run_metrics`).
    """
    texts, finals = _grouped(_stance(runs, opinions, turns)[1])
    heads = texts.drop_duplicates("group").sort_values("group")[["run_id", "cell", "instrument_id", "kind"]]
    few = _people(texts, finals)["withheld"]
    values = dict(list(finals[~finals["group"].map(few).astype(bool)].groupby("group")["value"]))
    none = np.zeros(0)
    found = [values[group].to_numpy(float) if group in values else none for group in range(len(heads))]
    return heads.reset_index(drop=True), found


#: Change of agents with an opinion at both ends, and its bounds for all agents.
CHANGE = ("change", "change_low", "change_high")
#: Columns that only turns provide: per run and kind of text, and per run.
_TOLD = ("n_skipped", "n_refused_at_first", "n_flagged")
_TOLD_OF_RUN = ("n_failed_reflections", "n_stripped", "n_readings", "n_unheard")


def _with_turns(frame: pd.DataFrame, turns: pd.DataFrame | None) -> pd.DataFrame:
    """Metrics with counts of turns; NaN without a turns frame."""
    if turns is None:
        return frame.assign(**dict.fromkeys((*_TOLD, *_TOLD_OF_RUN), np.nan))
    opinion_rows.require(turns, "turns", TURN_COLUMNS)
    frame = frame.join(counts_of_kind(turns), on=["run_id", "kind"]).join(counts_of_run(turns), on="run_id")
    return frame.assign(**{name: frame[name].fillna(0).astype(int) for name in (*_TOLD, *_TOLD_OF_RUN)})


def run_metrics(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    ddof: int = 0,
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
    turns : DataFrame, optional
        Frame of the same store. Without it, columns that need turns are NaN (skipped turns, first replies, flags,
        failed reflections and readings), and participants whose every turn was skipped count as having had no turn.

    Returns
    -------
    DataFrame
        One row per run, cell, instrument of stance and kind of text present, with the columns of the frame ``metrics``
        (docs/frames.md). A neutral opinion counts as a value. Bias, diversity and shares are NaN if no participant was
        measured, or if the run is ``withheld`` because the measured share of the participants who had a turn is below
        ``least_measured`` of `runs` (default one half).

    Raises
    ------
    MeasurementError
        If a frame lacks a column or an agent has a negative number.

    Notes
    -----
    Chuang et al. 2023, §4 (A13). As in the paper's scripts (A10), B and D leave out agents that never listened; the
    frame reports their number.
    """
    check_ddof(ddof)
    told = [column for column in ("scale", "ambiguous", "off_scale") if column in opinions.columns]
    cells, stance = _stance(runs, opinions, turns, *told, *opinion_rows.point_columns(opinions))
    # Without a measurement there may be no columns to read a scale from.
    scale = OpinionScale() if stance.empty else opinion_rows.scale_of(stance)
    texts, finals = _grouped(stance)
    heads = texts.drop_duplicates("group").sort_values("group")
    head_cells = cells.iloc[heads["row"].to_numpy(int)]
    size, group, values = len(heads), finals["group"].to_numpy(int), finals["value"].to_numpy(float)
    n_values, mean, spread = _moments(group, values, size, ddof)
    people = _people(texts, finals)
    n, withheld = people["n_measured"].to_numpy(int), people["withheld"].to_numpy(bool)
    every = heads["every_report"].to_numpy(bool)
    steps = runs.drop_duplicates("run_id").set_index("run_id")["steps"]
    age = finals["run_id"].map(steps).to_numpy(float) - finals["step"].to_numpy(float)
    counts = _counts(texts, ["group"]).reset_index(drop=True)
    n_agents = head_cells["n_agents"].to_numpy(int)
    own = _own_points(texts, heads, scale)
    low, high = np.where(own, scale.values, np.inf).min(axis=1), np.where(own, scale.values, -np.inf).max(axis=1)
    total = np.bincount(group, weights=values, minlength=size)
    whole = np.where(every, counts["n_texts"], n_agents)
    at_points = np.bincount(group * len(scale) + nearest_points(values, scale), minlength=size * len(scale))
    shares = ratio(at_points.reshape(size, len(scale)), n_values[:, None])
    shares = np.where(own & ~withheld[:, None], shares, np.nan)
    frame = pd.DataFrame(
        {
            **{column: heads[column].array for column in ("run_id", "cell", "instrument_id", "classifier", "kind")},
            "bias": np.where(withheld, np.nan, mean),
            "diversity": np.where(withheld, np.nan, spread),
            "ddof": ddof,
            "n_agents": n_agents,
            "n_measured": n,
            "n_never": n_agents - n,
            "never_measured_rate": (n_agents - n) / n_agents,
            "n_with_turn": people["n_with_turn"].to_numpy(int),
            "withheld": withheld,
            "mean_age": np.where(every, np.nan, _moments(group, age, size, 0)[1]),
            "bias_low": (total + (whole - n_values) * low) / whole,
            "bias_high": (total + (whole - n_values) * high) / whole,
            **counts,
            "off_scale_mass": _off_scale_mass(texts),
        }
    )
    if "replicate" in runs.columns:
        replicates = runs.drop_duplicates(["run_id", "cell"])["replicate"].to_numpy()
        frame.insert(2, "replicate", replicates[heads["row"].to_numpy(int)])
    frame = _with_turns(frame, turns)
    skipped = frame["n_skipped"].fillna(0)
    frame["missing_rate"] = (frame["n_missing"] + skipped) / (frame["n_texts"] + skipped)
    frame = frame.assign(**{f"share_{point}": shares[:, place] for place, point in enumerate(scale.points)})
    frame = frame.join(_assigned(cells, agents, ddof), on="run_id")
    changes = _changes(heads.set_index("group"), texts, finals, agents, pd.DataFrame({"low": low, "high": high}))
    frame = frame.join(changes)
    frame[[*CHANGE]] = frame[[*CHANGE]].mask(frame["withheld"])
    return frame.assign(evidence=head_cells["evidence"].array, validation=_validation(head_cells, heads))


def _off_scale_mass(texts: pd.DataFrame) -> pd.Series[float]:
    """Mean off-scale mass of the texts of each group that have a value."""
    mass = texts["off_scale"] if "off_scale" in texts.columns else pd.Series(np.nan, texts.index)
    return mass.where(texts["value"].notna()).groupby(texts["group"].to_numpy()).mean()


def _counts(texts: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Numbers of texts by some columns: in all, without a value, by cause, and ambiguous ones."""
    is_text = texts["status"] != "skipped"
    missing = texts["value"].isna() & is_text
    split = texts["ambiguous"].fillna(False).astype(bool) if "ambiguous" in texts.columns else False
    flags = {"n_texts": is_text, "n_missing": missing}
    flags |= {f"n_{cause}": texts["status"] == cause for cause in MISSING}
    flags |= {"n_off_scale": missing & (texts["status"] == "answered"), "n_ambiguous": ~missing & split}
    return pd.DataFrame(flags).groupby([texts[name] for name in by]).sum().astype(int)
