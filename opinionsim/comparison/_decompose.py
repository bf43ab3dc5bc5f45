"""Decompose final opinions into parts, each a difference between cells that differ in one respect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from opinionsim.analysis import Estimand, Table, estimate, finished, interval_notes, no_estimate, number_text, p_text
from opinionsim.comparison._updates import events
from opinionsim.errors import MeasurementError
from opinionsim.metrics import WITHOUT_FINDING, condition_axes, final_opinions, one_wording, stance_rows
from opinionsim.store import Results

#: What tells conditions apart in how agents interact, or how topics are put.
_PARTS = frozenset({"interaction", "network", "steps", "framing", "topic", "topic.framing", "sweep.interaction"})
#: Controls in which agents read nothing on the topic.
_ALONE = ("independent", "remembered")
_CONTROLS = (*_ALONE, "placebo", "yoked", "self-echo", "external", "no-role-play")
#: Fewest blocks for a slope over blocks, and updates for one within a run.
_BLOCKS, _UPDATES = 4, 8


class _Sum(NamedTuple):
    """A part of opinions: its equation, the number that it is made of, and weight and cell of each term.

    A cell is the first that there is of some kinds of interaction, None for the one that is taken apart, under a
    framing, None for all.
    """

    equation: str
    number: str
    terms: tuple[tuple[float, tuple[str, ...] | None, str | None], ...]


#: The equations of the parts, what they are made of, and their terms.
_EQUATIONS: Mapping[str, _Sum] = {
    "topic prior": _Sum("(B[{control}, truth] - B[{control}, falsehood]) / 2", "bias",
                         ((0.5, _ALONE, "truth"), (-0.5, _ALONE, "falsehood"))),
    "agreement bias": _Sum("(B[{control}, truth] + B[{control}, falsehood]) / 2", "bias",
                            ((0.5, _ALONE, "truth"), (0.5, _ALONE, "falsehood"))),
    "anchoring": _Sum("slope of last on assigned opinion: [{cell}] - [{control}]", "anchor",
                       ((1.0, ("remembered",), None), (-1.0, ("independent",), None))),
    "first speaker": _Sum("slope of the others' mean last opinion on the assigned one of the first speaker: [{cell}] "
                           "- [{control}]", "others", ((1.0, None, None), (-1.0, ("placebo", "yoked"), None))),
    "social influence": _Sum("slope of opinion after on the message, own opinion before held equal: [{cell}] - "
                              "[{control}], where the same pairs are drawn and the message is not read", "influence",
                              ((1.0, None, None), (-1.0, ("placebo",), None))),
    "non-additivity": _Sum("((B[{cell}] - B[{control}])[truth] - (B[{cell}] - B[{control}])[falsehood]) / 2", "bias",
                            ((0.5, None, "truth"), (-0.5, _ALONE, "truth"),
                             (-0.5, None, "falsehood"), (0.5, _ALONE, "falsehood"))),
}  # fmt: skip


def decompose(
    results: Results, *, kind: str = "report", wording: str | None = None, estimand: Estimand | None = None
) -> Table:
    """Estimate topic prior, agreement bias, anchoring, first speaker and social influence, each from two cells.

    Parameters
    ----------
    results : Results
        Loaded results; runs that are not complete are left out.
    kind : str
        Kind of text whose opinions count as final opinions.
    wording : str, optional
        Prompt pack whose runs count; default that of the run begun last.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`.

    Returns
    -------
    Table
        One row per part and condition. The frame has the axes that tell conditions apart, ``part, equation, cell,
        control, value, value_ci_low, value_ci_high``, the basis of the interval, ``p`` (NaN where evidence is scripted
        or mixed), ``claim`` (``effect`` if chance decided who read whom, otherwise ``association`` or ``description``),
        ``missing`` (the missing cell that the value needs, with the line of a specification that adds it) and
        ``evidence`` (``mixed`` if the cells of a condition differ in it).

    Raises
    ------
    MeasurementError
        If no run is complete, or no run has a measured reader.

    Notes
    -----
    B is the mean final opinion of the claim. Without interaction, the topic prior is half the difference between the
    true and the false claim, and the agreement bias is the part that both share. Anchoring is the increase in the
    effect of the assigned opinion when agents remember their own reports. The first speaker is drawn at random, so the
    slope over blocks is an effect on the other agents; values of blocks are jackknife pseudo-values. Social influence
    is measured in scale points moved per point of the message. It holds the previous opinion constant, so regression to
    the mean does not count as influence. Non-additivity is half the part of the interaction effect that occurs under
    one framing but not under the other.
    """
    every, opinions, _, turns = results.counted()
    runs, _ = one_wording(every[every["status"] == "complete"], wording)
    if runs.empty:
        raise MeasurementError("no run is complete, so there is nothing to decompose; run the experiment first")
    numbers = _numbers(runs, stance_rows(runs, opinions), turns, events(results, wording), kind)
    axes = [axis for axis in condition_axes(runs) if axis not in _PARTS and not axis.startswith("interaction.")]
    records, made = [], []
    for key, group in runs.groupby(axes, dropna=False, sort=False) if axes else [((), runs)]:
        # Cells of several kinds are no controls of each other.
        evidence = str(group["evidence"].iloc[0]) if group["evidence"].nunique() == 1 else "mixed"
        for name, cell in _named(group):
            control, values, missing = _values(_EQUATIONS[name], cell, group, numbers)
            found = no_estimate(missing or "too few updates or blocks")
            if values is not None and bool(values.notna().any()):
                topics, blocks = (values.index.get_level_values(level) for level in ("topic", "block"))
                found = estimate(topics, blocks, values, estimand)
                made.append(found)
            equation = _EQUATIONS[name].equation.format(cell=cell, control=control)
            claim = "effect" if cell == "dyadic" else "association" if cell else "description"
            record: dict[str, Any] = {**dict(zip(axes, key, strict=True)), "part": name, "equation": equation}
            record |= {"cell": cell or control, "control": control if cell else "", **found.columns("value")}
            p = math.nan if evidence in WITHOUT_FINDING else found.p_value
            records.append(record | found.basis | {"p": p, "claim": claim, "missing": missing, "evidence": evidence})
    rows = [
        (*(str(row[axis]) for axis in axes), row["part"], " less ".join(filter(None, (row["cell"], row["control"]))),
         number_text(row, "value"), p_text(row["p"]), row["claim"])
        for row in records
        if not row["missing"]
    ]  # fmt: skip
    frame = pd.DataFrame(records)
    known = frame[frame["missing"] == ""]
    said = [
        f"{name}: {equation}." for name, equation in dict(zip(known["part"], known["equation"], strict=True)).items()
    ]
    lacking = (
        frame[frame["missing"] != ""]
        .groupby("missing", sort=False)["part"]
        .agg(lambda each: ", ".join(dict.fromkeys(each)))
    )
    said += [f"Missing for {parts}: {text}." for text, parts in lacking.items()]
    head = (*(axis.removeprefix("sweep.") for axis in axes), "part", "cells", "value [95 %]", "p", "claim")
    notes = [*interval_notes(made), *said]
    return finished("What opinions are made of", frame, (head,), rows, len(axes) + 2, notes, "decomposition")


def _named(group: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Names of the parts of the cells of a condition, each with the kind of interaction that is taken apart."""
    kinds = dict.fromkeys(group.loc[~group["interaction"].isin(_CONTROLS), "interaction"])
    for name, part in _EQUATIONS.items():
        fixed = part.terms[0][1]
        # What is there without interaction is the same whichever interaction stands beside it.
        for kind in ("remembered" if name == "anchoring" else "",) if fixed else kinds:
            yield name, kind


def _values(
    part: _Sum, cell: str, group: pd.DataFrame, numbers: pd.DataFrame
) -> tuple[str, pd.Series[float] | None, str]:
    """The control of a part, its values by topic and block, or what is missing for them."""
    total, first, control, missing = None, None, "", dict[str, None]()
    for weight, kinds, framing in reversed(part.terms):
        framed = group if framing is None else group[group["framing"] == framing]
        there = [kind for kind in kinds or (cell,) if kind in set(framed["interaction"])] or list(kinds or (cell,))
        control = control or there[0]
        own = numbers[numbers["cell"].isin(framed.loc[framed["interaction"] == there[0], "cell"])]
        if own.empty:
            missing[_supplied(there[0], framing, group)] = None
        blocks = own.groupby(["topic", "block"], sort=False)
        total = weight * blocks[part.number].mean() + (0.0 if total is None else total)
        first = blocks["first"].mean()
    if missing:
        return control, None, "; ".join(missing)
    if part.number == "others" and first is not None and total is not None:
        total = _pseudo_values(first, total)
    return control, total, ""


def _supplied(kind: str, framing: str | None, group: pd.DataFrame) -> str:
    """What is said of a missing cell, with the line of a specification that supplies it."""
    if framing is not None and framing not in set(group["framing"]):
        return f"the framing {framing}; under sweep, `topic.framing: [truth, falsehood]`"
    if set(group["evidence"]) == {"equation"}:
        return f"{kind}, which equations do not support"
    size = "reports: 3" if kind == "independent" else f"steps: {group['steps'].max()}"
    return f"a cell of kind {kind}; under sweep, as an entry of interaction, `{{kind: {kind}, {size}}}`"


def _numbers(
    runs: pd.DataFrame, stance: pd.DataFrame, turns: pd.DataFrame, updates: pd.DataFrame, kind: str
) -> pd.DataFrame:
    """One row per run: cell, topic and block; mean opinion, slopes on assigned opinions and messages, first speaker."""
    own = stance.merge(runs[["run_id", "instrument_id"]], on=["run_id", "instrument_id"])
    heads, finals = final_opinions(runs, own, turns)
    # Runs in which too few were measured have no mean.
    enough = heads.loc[heads["kind"].eq(kind) & pd.Series(map(len, finals)).gt(0), "run_id"]
    own = own.sort_values(["run_id", "turn"], kind="stable").dropna(subset=["value"])
    last = own[(own["kind"] == kind) & own["run_id"].isin(enough)]
    last = last.drop_duplicates(["run_id", "agent"], keep="last")
    if last.empty:
        raise MeasurementError(f"no text of kind {kind!r} was measured; present are {', '.join(set(own['kind']))}")
    speaker = turns.sort_values("turn").drop_duplicates("run_id").set_index("run_id")["agent"]
    assigned = own.dropna(subset=["assigned_opinion"]).drop_duplicates(["run_id", "agent"])
    firsts = assigned[assigned["agent"] == assigned["run_id"].map(speaker)].set_index("run_id")["assigned_opinion"]
    met = pd.concat([updates, _unread(own[own["run_id"].isin(runs.loc[runs["interaction"] == "placebo", "run_id"])])])
    met = met.dropna(subset=["before", "said", "after"])
    others = last[last["agent"] != last["run_id"].map(speaker)]
    found = {
        "bias": last.groupby("run_id")["value"].mean(),
        "others": others.groupby("run_id")["value"].mean(),
        "first": firsts,
        "anchor": _slopes(last.dropna(subset=["assigned_opinion"]), "value", ["assigned_opinion"]),
        "influence": _slopes(met, "after", ["said", "before"]),
    }
    return runs[["run_id", "cell", "topic", "block"]].merge(pd.DataFrame(found), left_on="run_id", right_index=True)


def _unread(own: pd.DataFrame) -> pd.DataFrame:
    """Updates in which the message of the same step was not read: opinions of the reader before and after, and it."""
    before = own.groupby(["run_id", "agent"])["value"].shift()
    posts = own.loc[own["kind"] == "post", ["run_id", "step", "value"]].rename(columns={"value": "said"})
    reports = own.assign(before=before)[own["kind"] == "report"].rename(columns={"value": "after"})
    return reports.merge(posts, on=["run_id", "step"])


def _slopes(frame: pd.DataFrame, outcome: str, on: list[str]) -> pd.Series[float]:
    """Slope of an outcome on the first of some columns in each run, the others held equal; NaN where there is none."""
    found = {}
    for run_id, rows in frame.groupby("run_id"):
        design = np.column_stack([np.ones(len(rows)), rows[on].to_numpy(float)])
        enough = len(rows) >= (_UPDATES if len(on) > 1 else 3) and np.linalg.matrix_rank(design) == design.shape[1]
        found[run_id] = np.linalg.lstsq(design, rows[outcome].to_numpy(float))[0][1] if enough else math.nan
    return pd.Series(found, dtype=float)


def _pseudo_values(first: pd.Series[float], others: pd.Series[float]) -> pd.Series[float]:
    """Jackknife pseudo-values of a slope over the blocks of each topic: their mean is the slope, but for rounding."""
    known = pd.DataFrame({"x": first, "y": others}).dropna()
    by_topic, n = known.groupby(level="topic"), known.groupby(level="topic")["x"].transform("size")
    x, y = (known[name] - by_topic[name].transform("mean") for name in ("x", "y"))
    squares, products = ((x * each).groupby(level="topic").transform("sum") for each in (x, y))
    slope = products / squares.where((squares > 0) & (n >= _BLOCKS))
    rest = 1 - 1 / n - x**2 / squares
    return slope + (n - 1) * x * (y - slope * x) / (squares * rest.where(rest > 0))
