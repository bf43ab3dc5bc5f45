"""What is missing in runs, and what that does to who is heard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from opinionsim.messages import UNHEARD
from opinionsim.metrics._evidence import chosen_kind
from opinionsim.metrics._opinion_rows import OPINION_COLUMNS, require, stance_rows

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
#: Sides of neutral, by the sign of an author's last measured opinion.
SIDES = {-1.0: "negative", 0.0: "neutral", 1.0: "positive"}


#: Least share of the participants with a turn that must be measured, where runs do not say.
LEAST_MEASURED = 0.5


def with_skipped(
    stance: pd.DataFrame, runs: pd.DataFrame, cells: pd.DataFrame, turns: pd.DataFrame | None
) -> pd.DataFrame:
    """Stance with a row for each skipped turn, a text that nobody was asked for, of the kinds that instruments read.

    A participant whose turn was skipped, since all that it was to read was refused, had a turn and was not measured.
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
    """Turns of each run and kind of text that were skipped, refused at first, or show signs of conduct.

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
    """Failed reflections of each run, and how often a message that was to be read was received by nobody.

    Returns
    -------
    DataFrame
        Indexed by ``run_id``: ``n_failed_reflections``; ``n_stripped``, turns of which something was taken out;
        ``n_readings``, messages of the run that turns were to read;
        ``n_unheard``, those of them that were refused, empty, skipped or silent.
    """
    own = turns.assign(n_failed_reflections=turns["failed_reflections"], n_stripped=turns["taken"] != "")
    pairs = readings(turns)
    unheard = pairs["status"].isin(UNHEARD)
    read = unheard.groupby(pairs["run_id"]).agg(n_readings="size", n_unheard="sum")
    counted = own.groupby("run_id")[["n_failed_reflections", "n_stripped"]].sum()
    return counted.join(read).fillna(0).astype(int)


def readings(turns: pd.DataFrame, *, outside: bool = False) -> pd.DataFrame:
    """One row for each message of a run that a turn was to read, in order: ``run_id, reader``, and its columns.

    With `outside`, also messages from outside the run: their ``turn`` is -1, and their other columns are missing.
    """
    reads = turns[["run_id", "turn", "reads"]].explode("reads").rename(columns={"turn": "reader"})
    reads = reads[reads["reads"].notna()]
    inside = np.array([isinstance(ref, int | np.integer) for ref in reads["reads"]], dtype=bool)
    named = reads.assign(turn=reads["reads"].where(inside, -1).astype("int64")).drop(columns="reads")
    messages = turns.filter(["run_id", "turn", "agent", "status", "first_status"])
    return named.merge(messages, on=["run_id", "turn"], how="left" if outside else "inner")


def exposure(runs: pd.DataFrame, turns: pd.DataFrame, opinions: pd.DataFrame, kind: str | None = None) -> pd.DataFrame:
    """Who was to be heard, and who was: refusals by side of their author.

    Speakers of one opinion who refuse are heard less often, and the reports of their listeners fall away with them.
    Mean opinions then differ between conditions, even if nobody influences anybody.

    Parameters
    ----------
    runs, turns, opinions : DataFrame
        Frames of a store; only runs in `runs` are used.
    kind : str, optional
        Kind of text from which the opinions of authors are coded; default the first that is measured, in the order of
        the column `texts` of `runs`.

    Returns
    -------
    DataFrame
        One row a run, cell and instrument of stance: ``run_id, cell, instrument_id, kind``. For each side (negative,
        neutral, positive by the author's last measured opinion before; unmeasured where there is none)
        ``n_<side>``, the messages that turns of the run were to read; ``n_<side>_at_first`` and ``n_<side>_refused``,
        those of them whose first reply, and whose last one, was a refusal. ``intended`` and ``delivered``, the mean
        last opinion of the authors of all these messages, and of those that were received; NaN without any.
        ``evidence``.

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
    side = np.sign(joined["value"]).map(SIDES).fillna("unmeasured")
    refused, first = joined["status"] == "refused", joined["first_status"] == "refused"
    columns: dict[str, Any] = {}
    for name in (*SIDES.values(), "unmeasured"):
        own = side == name
        columns |= {f"n_{name}": own, f"n_{name}_at_first": own & first, f"n_{name}_refused": own & refused}
    groups = [joined[key] for key in keys]
    counts = pd.DataFrame(columns).groupby(groups).sum().astype(int)
    received = joined["value"].where(~joined["status"].isin(UNHEARD))
    means = pd.DataFrame({"intended": joined["value"], "delivered": received}).groupby(groups).mean()
    frame = counts.join(means).reset_index().merge(heads, on=["run_id", "cell"])
    return frame.assign(kind=kind)[[*keys, "kind", *counts.columns, "intended", "delivered", "evidence"]]
