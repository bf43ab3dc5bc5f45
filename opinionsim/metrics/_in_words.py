"""Conditions, runs and instruments in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from opinionsim.errors import SpecError
from opinionsim.metrics._conditions import check_conditions, condition_axes, in_order
from opinionsim.metrics._evidence import BELIEF, NOT_SET, SELF_REPORT


def axis_name(axis: str) -> str:
    """Return the name of a condition in words: the last part of its path."""
    return axis.rsplit(".", 1)[-1].replace("_", " ")


def topic_titles(runs: pd.DataFrame) -> dict[str, str]:
    """Return the titles of topics by name; topics without a title are left out."""
    if "topic_title" not in runs.columns:
        return {}
    known = runs.loc[runs["topic_title"].notna() & (runs["topic_title"] != ""), ["topic", "topic_title"]]
    own = known.drop_duplicates("topic").drop_duplicates("topic_title", keep=False)
    return dict(zip(own["topic"], own["topic_title"], strict=True))


def level_name(axis: str | None, level: Any, titles: Mapping[str, str]) -> str:
    """Return a level with the name of its condition. For a topic with a title in `titles`, return only the title."""
    if axis == "topic" and level in titles:
        return titles[level]
    return f"{axis_name(str(axis))}: {level}"


def describe(run: pd.Series, without: tuple[str, ...] = (), among: pd.DataFrame | None = None) -> str:
    """Describe a run's condition without some columns, with its levels of all that varies `among` the runs."""
    bias, memory = run["confirmation_bias"], run["memory"]
    if run["evidence"] == "equation" and run["topic"] == "none":
        # Opinions of an equation need no topic.
        without = (*without, "topic", "framing")
    title = run.get("topic_title")
    words = {
        "topic": title if isinstance(title, str) and title else run["topic"],
        "framing": f"framing: {run['framing']}",
        "confirmation_bias": f"{'no' if bias == 'none' else bias} confirmation bias",
        "memory": f"{'no' if memory == 'none' else memory} memory",
    }
    told = [text for column, text in words.items() if column not in without and _is_set(run[column])]
    if among is not None:
        varied = [axis for axis in condition_axes(among) if axis not in words and _is_set(run[axis])]
        told += [level_name(axis, run[axis], {}) for axis in varied]
    return ", ".join(told)


def _is_set(level: Any) -> bool:
    """Whether a level of a condition is set; controls may have none."""
    return not pd.isna(level) and level != NOT_SET


def outdated(runs: Sequence[pd.Series]) -> str:
    """Say how many of the runs in the figure answer an earlier wording or could not be coded; empty if none."""
    n = sum(run["status"] == "complete" and _is_set(run["error"]) and run["error"] != "" for run in runs)
    if not n:
        return ""
    answer = "answers" if n == 1 else "answer"
    fault = "an earlier wording of the prompts than the current one, or could not be coded"
    return f"{n} of the runs drawn {answer} {fault}; see runs.error"


def name_instrument(kind: str, classifier: str) -> str:
    """The instrument in words: kind of text and classifier."""
    texts = f"{kind}es" if kind.endswith("ch") else f"{kind}s"
    if classifier == BELIEF:
        return f"expectations over token probabilities at {texts}, and diversity of expectations"
    return texts if kind == SELF_REPORT else f"{texts} coded by {classifier}"


def provenance(run: pd.Series, n_replicates: int) -> str:
    """Return the replicate of a run in words."""
    return f"replicate {run['replicate']} (of {n_replicates})" if n_replicates > 1 else "one run"


def check_columns(runs: pd.DataFrame, columns: Iterable[str]) -> None:
    """Refuse columns that do not occur in the runs.

    Raises
    ------
    SpecError
        If a column does not exist; the message names the conditions that vary.
    """
    for column in columns:
        if column not in runs.columns:
            valid = ", ".join(condition_axes(runs)) or "none, for no condition varies"
            raise SpecError(f"the runs have no column {column!r}; conditions that vary: {valid}")


def named_conditions(
    runs: pd.DataFrame, by: str | Sequence[str] | None = None, most: int | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Conditions by name.

    Parameters
    ----------
    runs : DataFrame
        Runs of a store.
    by : str or sequence of str, optional
        Columns that define a condition; topics may differ within one. Default: each cell is a condition.
    most : int, optional
        Maximum number of conditions to keep.

    Returns
    -------
    runs : DataFrame
        Runs of the kept conditions, with the name of the condition in column ``condition``.
    factors : DataFrame
        One row per condition, indexed by its name, with its level of each factor in words.
    notes : list of str
        Notes on the number of topics per condition and the number of conditions left out.

    Raises
    ------
    SpecError
        If a column does not exist, conditions would be mixed, or a run counts twice in one.
    """
    axes = [by] if isinstance(by, str) else None if by is None else list(by)
    check_columns(runs, axes or ())
    if axes is not None:
        check_conditions(runs, axes)
    shown = list(condition_axes(runs)) if axes is None else axes
    runs = in_order(runs, shown)
    titles = topic_titles(runs)
    worded = {axis: [level_name(axis, level, titles) if known else "" for level, known in
                     zip(runs[axis], runs[axis].notna(), strict=True)] for axis in shown}  # fmt: skip
    factors = pd.DataFrame(worded, runs.index, dtype=object)
    # Not by itertuples: before pandas 3 it finds no row where there is no column.
    names = [", ".join(filter(None, row)) or "all runs" for row in factors.to_numpy().tolist()]
    named = runs.assign(condition=pd.Series(names, index=runs.index, dtype=object))
    if axes is None:
        # Cells that differ in their instrument alone are named by their labels.
        alike = named.groupby("condition")["cell"].transform("nunique") > 1
        named.loc[alike, "condition"] = named.loc[alike, "cell"].astype(object)
    twice = named.duplicated(["condition", "run_id"])
    if twice.any():
        raise SpecError(
            f"run {named.loc[twice, 'run_id'].iloc[0]!r} counts twice in one condition; add the column that separates "
            "its instruments to `by` or pass the runs of one"
        )
    notes = []
    pooled = named.groupby("condition")["topic"].nunique().max()
    if pooled > 1:
        notes.append(f"up to {pooled} topics per condition")
    kept = list(dict.fromkeys(named["condition"]))
    if most is not None and len(kept) > most:
        notes.append(f"{len(kept) - most} of {len(kept)} conditions left out")
    named = named[named["condition"].isin(kept[:most])]
    return named, factors.loc[named.index].set_axis(named["condition"]).groupby(level=0, sort=False).first(), notes
