"""Conditions of an experiment: which ones vary, their order, and metrics averaged over topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.messages import MISSING
from opinionsim.metrics._evidence import NOT_SET, validation_statement
from opinionsim.metrics._opinion_rows import require
from opinionsim.metrics._run_metrics import CHANGE
from opinionsim.metrics._wordings import pack_of

#: Columns of the runs frame that describe a condition, in the order tables and figures use them.
_CONDITIONS = (
    "framing", "confirmation_bias", "memory", "world", "model", "interaction", "network", "n_agents", "steps",
    "topic",
)  # fmt: skip

#: Columns that neither agents of equations nor recorded people have.
_MINDS = frozenset({"confirmation_bias", "memory", "world"})

#: Columns every runs frame has; each other one is a swept axis.
_FIXED = frozenset((
    "run_id", "experiment", "cell", "replicate", "redraw", "block", "status", "evidence", "seed", "topic", "category",
    "framing", "claim", "question", "task", "truth", "confirmation_bias", "memory", "world", "model", "interaction",
    "network", "n_agents", "steps", "topic_title", "every_report", "texts", "instrument_id", "classifier", "validation",
    "wording", "begun_at", "error", "event_steps", "dropped_turns",
))  # fmt: skip

#: Swept axes that repeat runs rather than set a condition.
_REPEATS = ("sweep.seed",)

#: Columns that the label of an axis can stand for, if the axis sets several fields at once or one in detail.
_DESCRIBED: Mapping[str, tuple[str, ...]] = {
    "cognition": ("confirmation_bias", "memory", "world"),
    "sweep.interaction": ("interaction", "network", "steps", "n_agents"),
    "interaction.network": ("network",),
    "sweep.model": ("model",),
    "model.name": ("model",),
    "population": ("n_agents",),
}

#: Levels in their natural order, where that is neither alphabetical nor numerical.
_LEVELS = (
    "falsehood", "truth", "none", "weak", "strong", "cumulative", "reflective", "reflective-as-run", "closed",
    "open", "Science", "History", "Common sense", "all-positive", "skewed-positive", "uniform",
    "skewed-negative", "all-negative", NOT_SET,
)  # fmt: skip

#: Counts that are averaged over replicates and topics; never a condition.
_COUNTS = (
    "n_texts", "n_missing", *(f"n_{status}" for status in MISSING), "n_off_scale", "n_ambiguous", "n_skipped",
    "n_refused_at_first", "n_flagged", "n_agents", "n_never", "n_failed_reflections", "n_stripped", "n_readings",
    "n_unheard", "withheld", "n_with_turn", "n_both", "n_not_both", "measured_start",
)  # fmt: skip
#: Shares of texts and skipped turns.
_CAUSES = ("refused_at_first", *MISSING, "off_scale", "skipped", "ambiguous", "flagged")


def order_levels(values: Iterable[Any]) -> list[Any]:
    """Distinct values of a condition in the order to show them.

    Parameters
    ----------
    values : iterable
        Values of one column; missing ones are left out.

    Returns
    -------
    list
        Framings, bias levels, memories, worlds and categories come in the order of the study (Chuang et al. 2023, Table
        1), initial opinions from positive to negative, numbers in increasing order, and anything else in order of first
        appearance.
    """
    distinct = list(dict.fromkeys(value for value in values if not pd.isna(value)))
    if all(value in _LEVELS for value in distinct):
        return sorted(distinct, key=_LEVELS.index)
    if all(isinstance(value, int | float | np.number) for value in distinct):
        return sorted(distinct)
    return distinct


def in_order(frame: pd.DataFrame, axes: Sequence[str], of: pd.DataFrame | None = None) -> pd.DataFrame:
    """Rows of a frame in the order of the levels of some conditions (:func:`order_levels`).

    Parameters
    ----------
    frame : DataFrame
        One column per condition; it may have other columns.
    axes : sequence of str
        The conditions, the first being the outermost.
    of : DataFrame, optional
        The runs that the rows describe. If their cells are ordered (:attr:`opinionsim.Results.ordered_runs`), levels
        follow the order in which they first appear there.

    Returns
    -------
    DataFrame
        The same rows. Rows without a level come last; rows with equal levels keep their order.
    """
    given = of if of is not None and isinstance(of["cell"].dtype, pd.CategoricalDtype) else None
    orders: dict[str, Iterable[Any]] = {
        axis: order_levels(frame[axis]) if given is None else given[axis].dropna().unique() for axis in axes
    }
    ranks = {axis: {level: place for place, level in enumerate(order)} for axis, order in orders.items()}
    return frame.sort_values(
        list(axes), key=lambda column: column.map(ranks[str(column.name)]).astype(float), kind="stable"
    )


def named_levels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Levels of a condition as texts; :data:`NOT_SET` where there is none."""
    return column.astype(object).where(column.notna(), NOT_SET).astype(str)


def condition_axes(runs: pd.DataFrame) -> tuple[str, ...]:
    """Columns of a runs frame that differ between conditions.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store; all columns except the fixed ones are swept axes.

    Returns
    -------
    tuple of str
        Columns with more than one value. Named columns such as framing, confirmation bias and memory come first, then
        swept paths that the named columns do not express, and ``topic`` last. A label that a sweep gives to several
        fields at once replaces the columns that it determines. Seeds and replicates are left out because they repeat a
        condition.
    """
    named = [column for column in _CONDITIONS if column in runs.columns and _varies(_levels(runs, column))]
    swept = [str(column) for column in runs.columns if column not in _FIXED and column not in _REPEATS]
    paths = [path for path in swept if _varies(runs[path]) and not _is_spelled_out(runs, path, named)]
    told = {column for path in paths for column in _told_by(runs, path, named)}
    # The named column has a value for every run, so it is shown in place of a path with the same values.
    paths = [path for path in paths if not any(_equals(runs, path, column) for column in named)]
    axes = [column for column in named if column not in told and column != "topic"]
    return (*axes, *paths, *(("topic",) if "topic" in named else ()))


def _levels(runs: pd.DataFrame, column: str) -> pd.Series[Any]:
    """A column of the runs whose agents can have a level in it: equations have no memory or prompts, people no model.

    Agents without a persona have no world, so a single world of the other agents does not count as varying.
    """
    found = runs[column]
    if column in _MINDS | {"model"} and "evidence" in runs.columns:
        found = found[~runs["evidence"].isin(["human"] if column == "model" else ["human", "equation"])]
    return found.dropna() if column == "world" else found


def _varies(column: pd.Series[Any]) -> bool:
    """Whether a column has more than one level."""
    found = column.unique()
    missing = pd.isna(found)
    return len(found) > 1 and len({str(level) for level in found[~missing]}) + bool(missing.any()) > 1


def _equals(runs: pd.DataFrame, path: str, column: str) -> bool:
    """Whether a swept path equals a named column in all runs that set the path."""
    known = runs[path].notna().to_numpy()
    pairs = zip(runs[path].to_numpy(object)[known], runs[column].to_numpy(object)[known], strict=True)
    return all(level == value for level, value in pairs)


def _is_function(runs: pd.DataFrame, column: str, of: Sequence[str]) -> bool:
    """Whether runs that agree on the columns `of` agree on `column`."""
    if not of:
        return False
    levels = pd.DataFrame({name: named_levels(runs[name]) for name in {column, *of}})
    return bool((levels.groupby(list(of), sort=False)[column].nunique() == 1).all())


def _is_spelled_out(runs: pd.DataFrame, path: str, named: Sequence[str]) -> bool:
    """Whether named columns express a swept path in full: its labels are bare mappings, or it sweeps topics."""
    if path == "sweep.topic":
        return _is_function(runs, path, [column for column in named if column in ("topic", "framing")])
    bare = all(str(label).startswith(("{", "[")) for label in runs[path].dropna())
    return bare and path in _DESCRIBED and _is_function(runs, path, [c for c in named if c in _DESCRIBED[path]])


def _told_by(runs: pd.DataFrame, path: str, named: Sequence[str]) -> list[str]:
    """Named columns that the labels of a path determine; they are not shown in addition to it."""
    # The label of the models that play has that of each member of the cast.
    known = _DESCRIBED.get(path, ("model",) if ".model" in path else ())
    described = [column for column in known if column in named]
    return [column for column in described if _is_function(runs, column, [path]) and not _equals(runs, path, column)]


def check_conditions(runs: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse to average over a condition that is not among the columns `by`.

    Raises
    ------
    SpecError
        If runs that agree on the columns `by` differ in a condition other than the topic, or in the wording of
        their prompts.
    """
    require(runs, "runs", ["topic", *by])
    groups = pd.Series("", index=runs.index)
    for column in by:
        groups = groups + "\x1f" + named_levels(runs[column])
    for axis in condition_axes(runs):
        if axis in by or axis == "topic":
            continue
        for _, values in named_levels(runs[axis]).groupby(groups):
            if values.nunique() > 1:
                levels = ", ".join(str(level) for level in order_levels(values))
                raise SpecError(
                    f"runs of one condition differ in {axis} ({levels}); add it to `by` or pass the runs of one"
                )
    if "wording" in runs.columns and "wording" not in by:
        _check_wordings(runs["wording"].dropna(), groups)


def _check_wordings(wordings: pd.Series[str], groups: pd.Series[str]) -> None:
    """Refuse to average over several wordings of one prompt pack. Different packs differ in a condition."""
    for _, values in wordings.groupby([groups.loc[wordings.index], wordings.map(pack_of)]):
        if values.nunique() > 1:
            raise SpecError(
                f"runs of one condition have several wordings of the prompts ({', '.join(values.unique())}); add "
                "'wording' to `by` or pass the runs of one, as one_wording returns them"
            )


def usable_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Complete runs of cells in which stance is measured; of all cells where the frame lacks this column."""
    usable = runs["status"] == "complete"
    return runs[usable & runs["instrument_id"].notna() if "instrument_id" in runs.columns else usable]


def none_complete(runs: pd.DataFrame, undone: str) -> SpecError:
    """Return the error for results without a complete run, which says how far the runs are and what you can do."""
    told = ", ".join(f"{n} {status}" for status, n in runs["status"].value_counts().items())
    go_on = "continue with `opinionsim run`, or with `opinionsim room` if people take part"
    if set(runs["status"]) <= {"trial", "withdrawn"}:
        go_on = "results exclude trial and withdrawn runs, and no command continues them"
    return SpecError(f"no run is complete, so there is nothing {undone} ({told}): {go_on}")


def condition_rows(
    runs: pd.DataFrame, metrics: pd.DataFrame, by: Sequence[str] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Join metrics of runs with their conditions, after checking that each run counts once.

    Parameters
    ----------
    runs, metrics, by
        As for :func:`condition_metrics`.

    Returns
    -------
    frame : DataFrame
        The metrics of complete runs of cells with an instrument of stance, with the columns `by`, ``topic`` and
        ``block``.
    by : list of str
        The columns that define a condition.

    Raises
    ------
    SpecError, MeasurementError
        As :func:`condition_metrics`.
    """
    # Conditions in which only cells without an instrument of stance differ are left out.
    complete = usable_runs(runs)
    axes = [axis for axis in condition_axes(complete) if axis != "topic"] if by is None else list(by)
    check_conditions(complete, axes)
    if metrics["ddof"].nunique() > 1:
        raise MeasurementError("metrics mix values of ddof; compute all with one value")
    joined = _join(complete, metrics, [*axes, "topic", "block"])
    _check_once(joined, [*axes, "kind", "evidence"])
    _check_scales(joined, [*axes, "kind", "evidence"])
    return joined, axes


def condition_metrics(runs: pd.DataFrame, metrics: pd.DataFrame, by: Sequence[str] | None = None) -> pd.DataFrame:
    """Mean and standard error of bias and diversity for every condition.

    The function first averages blocks within each topic, so each topic counts once. It then takes the mean and standard
    error over topics, or over blocks if there is only one topic. Only complete runs of cells with an instrument of
    stance count.

    Parameters
    ----------
    runs : DataFrame
        Frame of a store.
    metrics : DataFrame
        From :func:`run_metrics`.
    by : sequence of str, optional
        Columns of `runs` that define a condition; default all that vary (:func:`condition_axes`) except the topic.

    Returns
    -------
    DataFrame
        One row per condition, kind of text and kind of evidence: the columns `by`, ``kind, evidence, bias, bias_se,
        diversity, diversity_se, assigned_bias, assigned_diversity, n, over, n_runs, n_withheld, n_agents, n_measured,
        n_never, n_with_turn, never_measured_rate, bias_low, bias_high, mean_age, off_scale_mass, change, change_low,
        change_high, n_both, n_not_both, measured_start, n_turns, missing_rate, refused_at_first_rate, refused_rate,
        empty_rate, truncated_rate, off_scale_rate, skipped_rate, ambiguous_rate, flagged_rate, unheard_rate,
        n_failed_reflections, n_stripped, validation, ddof``. ``n`` is the number of units with a bias. ``n_withheld``
        of the ``n_runs`` runs have no bias because too few of their participants were measured (:func:`run_metrics`).
        ``bias_low`` and ``bias_high`` cover all runs; ``change``, its bounds and its numbers of agents cover only the
        runs with a bias. ``unheard_rate`` is the share of the messages to be read that nobody received; the rates from
        ``missing_rate`` to ``flagged_rate`` are shares of texts and skipped turns (:func:`run_metrics`), NaN if they
        need turns and the metrics were computed without them. Standard errors are population SD/sqrt(n), and NaN for
        fewer than two units. This is the published convention; for intervals, use :func:`opinionsim.analysis.estimate`.

    Raises
    ------
    SpecError
        If runs that agree on `by` differ in another condition, in the wording of their prompts (:func:`one_wording`
        gives the runs of one wording), or in their scale.
    MeasurementError
        If a run would count twice, as when two classifiers coded it, or `metrics` mixes values of ddof.

    Notes
    -----
    The standard error is the convention of the published tables (Chuang et al. 2023, Tables 1-2; A13).
    """
    return condition_means(*condition_rows(runs, metrics, by))


def condition_means(rows: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """Compute the frame of :func:`condition_metrics` from checked rows (:func:`condition_rows`)."""
    unit = "topic" if "topic" not in axes and rows["topic"].nunique() > 1 else "block"
    keys = [*axes, "kind", "evidence"]
    names = ["bias", "diversity", "assigned_bias", "assigned_diversity", "bias_low", "bias_high", "mean_age"]
    names += ["off_scale_mass", *CHANGE]
    # A change is of the runs that have one.
    n_both = rows["n_both"].mask(rows["withheld"], 0)
    rows = rows.assign(n_both=n_both, n_not_both=rows["n_agents"].mask(rows["withheld"], 0) - n_both)
    units = rows.groupby([*keys, unit], dropna=False, sort=False)[names].mean()
    grouped = units.groupby(level=list(range(len(keys))), dropna=False, sort=False)
    mean, n = grouped.mean(), grouped[["bias", "diversity"]].count()
    error = grouped[["bias", "diversity"]].std(ddof=0).where(n > 1) / n**0.5
    conditions = rows.groupby(keys, dropna=False, sort=False)
    counts = conditions[list(_COUNTS)].sum(min_count=1)
    turns = counts["n_texts"] + counts["n_skipped"].fillna(0)
    frame = pd.DataFrame(
        {
            "bias": mean["bias"],
            "bias_se": error["bias"],
            "diversity": mean["diversity"],
            "diversity_se": error["diversity"],
            **{name: mean[name] for name in ("assigned_bias", "assigned_diversity")},
            "n": n["bias"],
            "over": unit,
            "n_runs": conditions.size(),
            "n_withheld": counts["withheld"].astype(int),
            "n_with_turn": counts["n_with_turn"],
            **({} if "n_agents" in axes else {"n_agents": counts["n_agents"]}),
            "n_measured": counts["n_agents"] - counts["n_never"],
            "n_never": counts["n_never"],
            "never_measured_rate": counts["n_never"] / counts["n_agents"],
            **{name: mean[name] for name in ("bias_low", "bias_high", "mean_age", "off_scale_mass", *CHANGE)},
            **{name: counts[name].astype(int) for name in ("n_both", "n_not_both")},
            "measured_start": counts["measured_start"] > 0,
            "n_turns": turns.astype(int),
            "missing_rate": (counts["n_missing"] + counts["n_skipped"].fillna(0)) / turns,
            **{f"{cause}_rate": counts[f"n_{cause}"] / turns for cause in _CAUSES},
            "unheard_rate": counts["n_unheard"] / counts["n_readings"].where(counts["n_readings"] > 0),
            **{name: counts[name] for name in ("n_failed_reflections", "n_stripped")},
            "validation": conditions["validation"].agg(validation_statement),
        }
    ).reset_index()
    by_kind = frame.assign(ddof=rows["ddof"].max()).sort_values("kind", kind="stable")
    return in_order(by_kind, axes).reset_index(drop=True)


def _join(runs: pd.DataFrame, metrics: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The metrics with those of the given columns of `runs` that they lack."""
    require(runs, "runs", ["run_id", "cell", *columns])
    wanted = [column for column in dict.fromkeys(columns) if column not in metrics.columns]
    return metrics.merge(runs[["run_id", "cell", *wanted]], on=["run_id", "cell"], how="inner")


def _check_once(joined: pd.DataFrame, keys: Sequence[str]) -> None:
    """Refuse conditions in which a run has two rows."""
    twice = joined.duplicated([*keys, "run_id"])
    if twice.any():
        run_id = joined.loc[twice, "run_id"].iloc[0]
        raise MeasurementError(
            f"run {run_id!r} counts twice in one condition; add the axis that separates its instruments to `by` "
            "or pass the metrics of one instrument"
        )


def _check_scales(joined: pd.DataFrame, keys: Sequence[str]) -> None:
    """Refuse conditions whose runs were coded on different scales, as their columns of shares show."""
    shares = [str(column) for column in joined.columns if str(column).startswith("share_")]
    points = np.array([share.removeprefix("share_") for share in shares])
    measured = joined[joined["bias"].notna()]
    on_scale = measured[shares].notna().to_numpy()
    scales = pd.Series([", ".join(points[row]) for row in on_scale], index=measured.index, dtype=object)
    if scales.nunique() < 2:
        return
    for _, found in scales.groupby([measured[key] for key in keys], dropna=False):
        if found.nunique() > 1:
            raise SpecError(
                f"runs of one condition are coded on different scales ({' and '.join(found.unique())}); "
                "add the axis that sets the scale to `by` or pass the runs of one scale"
            )
