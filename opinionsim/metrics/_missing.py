"""Missing texts in runs, and their effect on whose messages agents receive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from opinionsim.messages import UNHEARD
from opinionsim.metrics._evidence import chosen_kind
from opinionsim.metrics._opinion_rows import OPINION_COLUMNS, require, scale_of, stance_rows

#: Columns of a turns frame that are counted.
TURN_COLUMNS = (
    "run_id",
    "turn",
    "step",
    "agent",
    "kind",
    "reads",
    "status",
    "first_status",
    "failed_reflections",
    "signs",
    "taken",
)
#: Sides of neutral, by the sign of an author's last opinion.
SIDES = {-1.0: "negative", 0.0: "neutral", 1.0: "positive"}


#: Minimum measured share of the participants with a turn, if runs do not give one.
LEAST_MEASURED = 0.5


def with_skipped(
    stance: pd.DataFrame, runs: pd.DataFrame, cells: pd.DataFrame, turns: pd.DataFrame | None
) -> pd.DataFrame:
    """Add a row to the stance frame for each skipped turn of a kind that instruments read.

    A turn is skipped if every message that it should read was refused. Its participant then had a turn but was not
    measured.
    """
    columns = ["run_id", "turn", "step", "agent", "kind", "status"]
    # A user's frame that says less is taken for figures.
    if turns is None or not set(columns) <= set(turns.columns):
        return stance
    skipped = turns.loc[turns["status"] == "skipped", columns]
    if skipped.empty:
        return stance
    known = stance[["instrument_id", "classifier", "kind"]].drop_duplicates()
    keys = ["row", "instrument_id"]
    named = pd.concat([cells[cells["instrument_id"].notna()][keys], stance[keys]]).drop_duplicates()
    named = named.merge(cells.drop(columns="instrument_id"), on="row").merge(skipped, on="run_id")
    # An instrument reads the kinds of text that it has read in other runs; without any, the first that was skipped.
    if known.empty:
        known = runs.reindex(columns=["instrument_id", "classifier"]).drop_duplicates()
        known = known.assign(kind=chosen_kind(None, named["kind"], runs))
    named = named.merge(known)
    rows = named[named["agent"] < named["n_agents"]].assign(variable="stance", value=np.nan)
    if rows.empty:
        return stance
    return pd.concat([stance, rows.reindex(columns=stance.columns)], ignore_index=True).sort_values(
        ["row", "turn"], kind="stable", ignore_index=True
    )


def counts_of_kind(turns: pd.DataFrame) -> pd.DataFrame:
    """Count turns, by run and kind of text, that were skipped, refused at first, or show signs of conduct.

    Returns
    -------
    DataFrame
        Indexed by ``run_id, kind``: ``n_skipped, n_refused_at_first, n_flagged``.
    """
    counted = pd.DataFrame(
        {
            "n_skipped": turns["status"] == "skipped",
            "n_refused_at_first": turns["first_status"] == "refused",
            "n_flagged": turns["signs"] != "",
        }
    )
    return counted.groupby([turns["run_id"], turns["kind"]]).sum().astype(int)


def counts_of_run(turns: pd.DataFrame) -> pd.DataFrame:
    """Count failed reflections in each run, and intended readings of messages that did not take place.

    Returns
    -------
    DataFrame
        Indexed by ``run_id``: ``n_failed_reflections``; ``n_stripped``, turns from which a part was removed;
        ``n_readings``, messages of the run that turns should have read; ``n_unheard``, those of them that have no
        answer, were left out because of a sign, were skipped or were silent.
    """
    own = turns.assign(n_failed_reflections=turns["failed_reflections"], n_stripped=turns["taken"] != "")
    pairs = readings(turns)
    unheard = pairs["status"].isin(UNHEARD)
    read = unheard.groupby(pairs["run_id"]).agg(n_readings="size", n_unheard="sum")
    counted = own.groupby("run_id")[["n_failed_reflections", "n_stripped"]].sum()
    return counted.join(read).fillna(0).astype(int)


def readings(turns: pd.DataFrame, *, outside: bool = False) -> pd.DataFrame:
    """Messages that turns of a run should have read, in order: ``run_id, reader`` and the message's columns.

    With `outside`, the frame also has messages from outside the run, whose ``turn`` is -1 and whose other columns are
    missing.
    """
    reads = turns[["run_id", "turn", "reads"]].explode("reads").rename(columns={"turn": "reader"})
    reads = reads[reads["reads"].notna()]
    inside = np.array([isinstance(ref, int | np.integer) for ref in reads["reads"]], dtype=bool)
    named = reads.assign(turn=reads["reads"].where(inside, -1).astype("int64")).drop(columns="reads")
    messages = turns.filter(["run_id", "turn", "agent", "status", "first_status"])
    return named.merge(messages, on=["run_id", "turn"], how="left" if outside else "inner")


def replies(runs: pd.DataFrame, turns: pd.DataFrame, opinions: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Count the outcomes of turns by kind of text and side of the author; each turn counts once.

    Parameters
    ----------
    runs, turns, opinions, agents : DataFrame
        Frames of a store; only runs in `runs` are used, measured or not.

    Returns
    -------
    DataFrame
        One row per run, cell, kind of text and side that has any: ``run_id, cell, kind, side, n_replies`` (turns that
        made a call), and how many of these had a refusal as their first reply (``n_refused_at_first``) or last reply
        (``n_refused``), were withheld by a filter of the provider (``n_filtered``), or were published without a part
        that showed a sign of conduct (``n_stripped``); ``evidence``. The side comes from the author's last opinion
        measured before the turn, or else from its assigned opinion: ``negative``, ``neutral``, ``positive`` or
        ``unknown``. ``others`` are members of the cast who are not participants, such as a moderator.

    Raises
    ------
    MeasurementError
        If a frame lacks a column.
    """
    require(turns, "turns", (*TURN_COLUMNS, "taken"))
    keys = ["run_id", "cell", "agent"]
    heads = runs[["run_id", "cell", "n_agents", "evidence"]].drop_duplicates(["run_id", "cell"]).astype({"cell": str})
    asked = turns[turns["status"] != "skipped"].drop(columns="evidence", errors="ignore").merge(heads, on="run_id")
    stance = stance_rows(runs, opinions)
    neutral = scale_of(stance).neutral if len(stance) else 0.0
    known = stance.loc[stance["value"].notna(), [*keys, "turn", "value"]].astype({"cell": str})
    asked, known = (frame.sort_values("turn", kind="stable") for frame in (asked, known))
    joined = pd.merge_asof(asked, known, on="turn", by=keys, allow_exact_matches=False)
    side = (_or_assigned(joined, agents) - neutral).map(np.sign).map(SIDES).fillna("unknown")
    found: dict[str, Any] = {
        "n_replies": 1,
        "n_refused_at_first": joined["first_status"] == "refused",
        **{f"n_{status}": joined["status"] == status for status in ("refused", "filtered")},
        "n_stripped": joined["taken"] != "",
    }
    joined = joined.assign(side=side.where(joined["agent"] < joined["n_agents"], "others"), **found)
    counts = joined.groupby(["run_id", "cell", "kind", "side", "evidence"], sort=False)[list(found)].sum()
    return counts.astype(int).reset_index()


def _or_assigned(joined: pd.DataFrame, agents: pd.DataFrame) -> pd.Series[float]:
    """The value of each row, or else the opinion that its agent was assigned."""
    assigned = agents.drop_duplicates(["run_id", "agent"])[["run_id", "agent", "assigned_opinion"]]
    held = joined.merge(assigned, on=["run_id", "agent"], how="left")["assigned_opinion"].astype(float)
    return joined["value"].fillna(held)


def exposure(
    runs: pd.DataFrame, turns: pd.DataFrame, opinions: pd.DataFrame, agents: pd.DataFrame, kind: str | None = None
) -> pd.DataFrame:
    """Compare the opinions of the authors whose messages were to be read with those whose messages were received.

    If speakers with one opinion refuse more often, agents receive fewer of their messages, and the reports of their
    listeners are missing too. Mean opinions can then differ between conditions even without any influence among agents.

    Parameters
    ----------
    runs, turns, opinions, agents : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str, optional
        Kind of text from which the opinions of authors are coded; default the first that is measured, in the order of
        the column `texts` of `runs`.

    Returns
    -------
    DataFrame
        One row per run, cell and instrument of stance: ``run_id, cell, instrument_id, kind``; ``intended`` and
        ``delivered``, mean opinions of the authors of all messages that turns of the run should have read, and of the
        messages that they received (NaN without any); ``evidence``. An author's opinion is the last one measured
        before, or else the assigned one.

    Raises
    ------
    MeasurementError
        If a frame lacks a column.
    """
    require(runs, "runs", ("run_id", "cell", "evidence"))
    require(turns, "turns", TURN_COLUMNS)
    heads = runs[["run_id", "cell", "evidence"]].drop_duplicates(["run_id", "cell"])
    stance = stance_rows(runs, opinions)[[*OPINION_COLUMNS]]
    kind = chosen_kind(kind, stance["kind"], runs)
    stance = stance[(stance["kind"] == kind) & stance["value"].notna()]
    keys = ["run_id", "cell", "instrument_id"]
    instruments = stance[keys].drop_duplicates()
    pairs = readings(turns[turns["run_id"].isin(set(heads["run_id"]))])
    asked = pairs.merge(instruments, on="run_id").sort_values("turn", kind="stable")
    known = stance[[*keys, "agent", "turn", "value"]].sort_values("turn", kind="stable")
    joined = pd.merge_asof(asked, known, on="turn", by=[*keys, "agent"], allow_exact_matches=False)
    held = _or_assigned(joined, agents)
    means = pd.DataFrame({"intended": held, "delivered": held.where(~joined["status"].isin(UNHEARD))})
    frame = means.groupby([joined[key] for key in keys]).mean().reset_index().merge(heads, on=["run_id", "cell"])
    return frame.assign(kind=kind)[[*keys, "kind", "intended", "delivered", "evidence"]]
