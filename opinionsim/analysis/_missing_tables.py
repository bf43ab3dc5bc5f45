"""Tables of doubtful and missing texts: the numbers with and without them, and messages that were not received."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from opinionsim.analysis._means import Estimand
from opinionsim.analysis._printed_table import Table
from opinionsim.analysis._units import MEASURES, by_condition, counted, default_axes
from opinionsim.errors import SpecError
from opinionsim.metrics import (
    BELIEF,
    SIDES,
    TO_MEASURE,
    condition_axes,
    exposure,
    in_order,
    one_wording,
    replies,
    run_metrics,
    usable_runs,
)
from opinionsim.registry import part

#: What names a turn.
_TURN = ["run_id", "turn"]


@part("table", name="missing", fits=lambda asked: asked.stance)
def missing_tables(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    turns: pd.DataFrame,
    metrics: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
) -> list[Table]:
    """Tabulate opinions without doubtful texts, and messages that agents did not receive.

    Parameters
    ----------
    runs, opinions, agents, turns : DataFrame
        Frames of a store.
    metrics, kind, wording, estimand
        As for :func:`opinionsim.analysis.tables`.

    Returns
    -------
    list of Table
        Mean opinion and diversity without flagged texts if there are any, and with and without cut-off and ambiguous
        texts if these differ. If any message that agents should have read was refused, also the mean opinions of
        intended and delivered speakers. Empty for runs without doubtful texts and refusals.

    Raises
    ------
    SpecError
        If no run is complete or has that wording.
    """
    runs, _ = one_wording(runs, wording)
    if usable_runs(runs).empty:
        raise SpecError(f"no complete run of a cell measures stance, so there is nothing to tabulate: {TO_MEASURE}")
    axes = default_axes(runs)
    _, chosen = counted(runs, metrics, kind)
    return [
        *_sensitivity(runs, opinions, agents, turns, metrics, axes, chosen, estimand),
        *_exposure(runs, opinions, agents, turns, axes, chosen),
    ]


#: What the numbers are of beside all that counts, by their names in tables.
_FLAGGED = "flagged texts left out"
_DOUBTS = {
    _FLAGGED: "texts with a sign of conduct, and texts that were cut off",
    "cut-off texts counted": "texts that were cut off count as they were coded",
    "ambiguous texts left out": "opinions with a probability of at least 0.25 on either side of neutral",
}
#: Share of the width of an interval by which a mean may differ before it is said.
_NOTABLE = 0.1


def _variants(own: pd.DataFrame, turns: pd.DataFrame) -> Iterator[tuple[str, pd.Series[float]]]:
    """Values of texts with and without what is doubtful, each with its name; only those that can differ."""
    doubtful = turns[(turns["signs"] != "") | (turns["status"] != "answered")]
    flagged = pd.MultiIndex.from_frame(own[_TURN]).isin(pd.MultiIndex.from_frame(doubtful[_TURN]))
    if (flagged & own["value"].notna()).any():
        yield _FLAGGED, own["value"].mask(flagged)
    if "coded" in own.columns:
        cut = (own["status"] == "truncated") & own["coded"].notna()
        # Where they count already, they are among the flagged ones.
        if (cut & own["value"].isna()).any():
            yield "cut-off texts counted", own["value"].where(~cut, own["coded"])
    if "ambiguous" in own.columns and (own["ambiguous"] & own["value"].notna()).any():
        yield "ambiguous texts left out", own["value"].mask(own["ambiguous"])


def _sensitivity(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    turns: pd.DataFrame,
    metrics: pd.DataFrame,
    axes: list[str],
    kind: str,
    estimand: Estimand | None,
) -> Iterator[Table]:
    """One table of mean opinion and diversity as tabulated, and of each variant that differs; none without these."""
    ddof = int(metrics["ddof"].max()) if len(metrics) else 0
    own = opinions[opinions["run_id"].isin(set(runs["run_id"])) & (opinions["kind"] == kind)]
    if (counted(runs, metrics, kind)[0]["classifier"] == BELIEF).any():
        return  # what is doubtful about a text says nothing of an author that was asked anew
    variants = list(_variants(own, turns))
    if not variants:
        return

    def numbers(name: str, found: pd.DataFrame) -> pd.DataFrame:
        made = by_condition(runs, found, axes, kind, estimand)
        rows = made.rows
        people = rows.assign(measured=rows["n_measured"].mask(rows["withheld"], 0), agents=rows["n_agents"])
        sums = people.groupby(keys, dropna=False)[["measured", "agents"]].sum().reset_index()
        return made.frame.merge(sums, on=keys).assign(texts=name)

    keys = [*axes, "evidence"]
    main = numbers("as tabulated", metrics)
    frames, notes = [main], ["Measured: the agents whose opinions enter the numbers."]
    for name, values in variants:
        frame = numbers(name, run_metrics(runs, own.assign(value=values), agents, ddof, turns))
        usual = frame[keys].merge(main, on=keys, how="left")
        if name == _FLAGGED or not np.allclose(
            frame[[*MEASURES]], usual[[*MEASURES]], rtol=0, atol=0.005, equal_nan=True
        ):
            frames.append(frame)
            notes.append(f"{name[0].upper()}{name[1:]}: {_DOUBTS[name]}.")
        width = (usual["bias_ci_high"] - usual["bias_ci_low"]).fillna(0)
        moved = (frame["bias"] - usual["bias"]).abs() > np.maximum(_NOTABLE * width, 0.005)
        if name == _FLAGGED and moved.any():
            rows = f"{moved.sum()} of {len(frame)} rows"
            notes.append(
                f"In {rows} they move the mean opinion by a tenth of its interval or more, or at all without one."
            )
    if len(frames) > 1:
        frame = in_order(pd.concat(frames, ignore_index=True), axes, usable_runs(runs))
        few = ["n_withheld"] if frame["n_withheld"].any() else []
        columns = [f"{name}{end}" for name in MEASURES for end in ("", "_ci_low", "_ci_high")]
        frame = frame[[*axes, "texts", "n_runs", *few, "agents", "measured", *columns, "evidence"]]
        made = Table.of("With and without doubtful texts", frame, [*axes, "texts"], notes, "doubtful")
        yield replace(made, header=((*made.header[0][:-2], "mean opinion [95 % CI]", "diversity [95 % CI]"),))


def _exposure(
    runs: pd.DataFrame, opinions: pd.DataFrame, agents: pd.DataFrame, turns: pd.DataFrame, axes: list[str], kind: str
) -> Iterator[Table]:
    """One table of who was to be heard and was; none where nothing that was to be read was refused."""
    # Looking who was to hear whom takes as long as all other tables.
    if not (turns["first_status"] == "refused").any():
        return
    read = usable_runs(runs)
    keys = ["run_id", "cell", "instrument_id"]
    heard = read[[*keys, *axes]].drop_duplicates().merge(exposure(read, turns, opinions, agents, kind), on=keys)
    if heard["intended"].equals(heard["delivered"]):
        return
    means = heard.groupby([*axes, "evidence"], dropna=False, sort=False)[["intended", "delivered"]].mean()
    frame = in_order(means.assign(shift=means["delivered"] - means["intended"]).reset_index(), axes, read)
    notes = [
        "Intended: the mean last opinion (measured, or else assigned) of the authors whose messages turns should"
        " have read. Delivered: the same for authors whose messages were received. A shift changes the mean"
        " opinion without any influence: see docs/missing.md."
    ]
    yield Table.of("Intended and delivered messages", frame, axes, notes, "heard")


@part("table", name="replies")
def reply_table(
    runs: pd.DataFrame, opinions: pd.DataFrame, agents: pd.DataFrame, turns: pd.DataFrame, wording: str | None = None
) -> Table | None:
    """Tabulate refused and stripped replies by kind of text and side of the author.

    Parameters
    ----------
    runs, opinions, agents, turns : DataFrame
        Frames of a store.
    wording : str, optional
        As for :func:`opinionsim.analysis.tables`.

    Returns
    -------
    Table or None
        One row per condition, kind of text and side, for complete runs, measured or not. None if no reply was refused
        or stripped.

    Raises
    ------
    SpecError
        If no run has that wording.
    """
    runs, _ = one_wording(runs, wording)
    complete = runs[runs["status"] == "complete"]
    if not ((turns["taken"] != "") | turns["first_status"].isin(["refused", "filtered"])).any() or complete.empty:
        return None
    axes = list(condition_axes(complete))
    found = replies(complete, turns, opinions, agents).merge(
        complete[["run_id", "cell", *axes]].drop_duplicates(), on=["run_id", "cell"]
    )
    names = [name for name in map(str, found.columns) if name.startswith("n_") and name not in axes]
    told = {name: name.removeprefix("n_").replace("_", " ") for name in names}
    frame = found.groupby([*axes, "kind", "side", "evidence"], dropna=False, sort=False)[[*told]].sum()
    frame = frame.rename(columns=told).reset_index()
    shown = [name for name in told.values() if frame[name].any()]
    happened = frame[shown[1:]].groupby(frame["kind"]).transform("sum").sum(axis=1) > 0
    # Kinds have no place, and stand by their names.
    frame = frame[happened].sort_values(["kind", "side"], key=lambda each: each.replace(_PLACES), kind="stable")
    if frame.empty:
        return None
    frame[shown[1:]] = frame[shown[1:]].div(frame["replies"], axis=0)
    notes = [
        "Shares of the replies, each counted once. Refused: the last attempt was a refusal. Side: the side of the"
        " author's last measured opinion, or else of its assigned opinion. Others: members such as moderators.",
        "Stripped: published without the part that showed a sign of conduct." if "stripped" in shown else "",
    ]
    frame = in_order(frame, axes, complete)[[*axes, "kind", "side", *shown, "evidence"]]
    return Table.of("Refusals by side of the author", frame, [*axes, "kind", "side"], notes, "refusals")


#: Places of the sides in a table.
_PLACES = {side: place for place, side in enumerate((*SIDES.values(), "unknown", "others"))}
