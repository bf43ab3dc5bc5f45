"""Measures of runs over the parameters that were swept: the numbers of a phase diagram."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from opinionsim import metrics
from opinionsim.classic.figures._levels import Levels, level_text, parameter_name
from opinionsim.drawing import LINES
from opinionsim.errors import SpecError
from opinionsim.metrics import setting_text
from opinionsim.plots import FigureNumbers, HasFrames, of_runs, runs_to_draw, select
from opinionsim.registry import loaded

#: Columns of a sweep that hold settings whatever the model is.
_COMMON = frozenset(("model", "n", "network", "initial", "range", "isolates", "steps", "until"))
#: Column of a table that marks runs which had not stopped by themselves.
_CENSORED = "(censored)"


@dataclass(frozen=True, eq=False)
class PhaseData(FigureNumbers):
    """Data of a phase diagram.

    Attributes
    ----------
    frame : DataFrame
        One row per measure and crossing of levels: ``measure``, the columns `x`, and `y` or `lines` where given,
        ``mean, low, high, spread, n_runs, n_censored, evidence``. ``spread`` is the standard deviation over runs; it,
        ``low`` and ``high`` are NaN for fewer than two runs. Runs without a finite value are not counted in ``n_runs``.
        ``n_censored`` of the runs had not stopped at their limit of steps. If a measure of clusters uses a different
    gap for runs at rest, it covers only the runs at rest, if there are any.
    x, y, lines : str, and str or None
        The swept parameters: across, up, and one line each.
    labels : dict of str to str
        Measures in words by name, in the requested order.
    band : str
        Meaning of ``low`` and ``high``, in words; empty where no crossing has two runs.
    runs : DataFrame
        The runs of crossings with two to seven runs, which are drawn one by one: ``measure, value`` and the levels.
    evidence : str
        Kind of evidence the runs are, in words.
    notes : tuple of str
        Settings that all runs share, the number of runs and what is missing, and the validation of the instruments.
    titles : dict of str to str
        Titles of topics by name, for an axis of topics.
    """

    x: str
    y: str | None
    lines: str | None
    labels: Mapping[str, str]
    band: str
    runs: pd.DataFrame
    titles: Mapping[str, str] = field(default_factory=dict)

    def of(self, measure: str) -> pd.DataFrame:
        """The rows of one measure."""
        return self.frame[self.frame["measure"] == measure]


@dataclass(frozen=True, eq=False)
class PhasePanel:
    """A panel of a phase diagram: the quantity of a measure, the levels across, the curves and the axes.

    `size` is in inches; `log` says whether its numbers have a logarithmic scale.
    """

    data: PhaseData
    measure: str
    quantity: Literal["mean", "spread"]
    x: Levels
    theory: Mapping[str, tuple[np.ndarray, np.ndarray]]
    ax: Axes
    size: tuple[float, float]
    log: bool

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows of its measure."""
        return self.data.of(self.measure)

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of its measure where they are too few for a band."""
        return self.data.runs[self.data.runs["measure"] == self.measure]

    @property
    def marked(self) -> bool:
        """Whether to mark places at which some runs had not stopped, because they change the mean of the measure."""
        return self.quantity == "mean" and (self.measure == "time" or _of_clusters(self.measure))

    @property
    def label(self) -> str:
        """What is shown, in words."""
        return f"{'spread over runs of ' if self.quantity == 'spread' else ''}{self.data.labels[self.measure]}"

    def draw_theory(self, look: Mapping[str, Any]) -> list[Line2D]:
        """Draw its curves within the axes, which stay as they are, and return their entries of the legend."""
        drawn = []
        for place, (label, (at, values)) in enumerate(self.theory.items(), start=1):
            own = {**look, "color": "black", "linestyle": LINES[place % len(LINES)]}
            self.ax.plot(at, values, **own, scalex=False, scaley=False)
            drawn.append(Line2D([], [], **own, label=label))
        return drawn


def phase_data(
    source: HasFrames | pd.DataFrame,
    x: str,
    y: str | None = None,
    value: str | Sequence[str] = "diversity",
    where: Mapping[str, Any] | None = None,
    kind: str | None = None,
    band: Literal["runs", "mean"] = "runs",
    level: float = 0.9,
    wording: str | None = None,
    *,
    lines: str | None = None,
) -> PhaseData:
    """Return the data of a phase diagram.

    Parameters
    ----------
    source : Results, Frames or DataFrame
        Complete runs of a store; or a frame with one row per run, as :func:`opinionsim.classic.sweep` gives it: swept
        parameters, measures, ``evidence``, and ``replicate`` where there are several. The title states the
        model, size, steps, ``until`` and parameters from its attributes. For results of a classic sweep, this frame
        is used.
    x, y, lines : str
        Columns of ``runs`` or of the frame that were swept. With `y` the diagram is a map; without, lines over `x`,
        one for each level of `lines`.
    value : str or sequence of str
        For runs of a store keys of :data:`opinionsim.metrics.METRICS`, computed from final opinions; for a frame
        columns.
    where : mapping, optional
        Column of ``runs`` or of the frame to the value it must have.
    kind : str, optional
        Kind of text the opinions of a store were coded from.
    band : {"runs", "mean"}
        Interval between two quantiles of the runs, or t interval of their mean; from eight runs on.
    level : float
        Share of the runs in the band, or confidence level.
    wording : str, optional
        Wording of the prompts whose runs are drawn from a store, as for :func:`opinionsim.plots.ribbon_data`.

    Returns
    -------
    PhaseData
        Each run counts once.

    Raises
    ------
    SpecError
        If a column or wording does not exist, a column does not contain numbers, no run is left, or runs differ in
        something other than `x` and `y` or `lines`: choose one level by `where`. Topics and replicates of a store may
        differ.
    MeasurementError
        If there is no such metric, or it cannot be computed.
    """
    metrics.say_band(band, level)
    axes, values = _asked(x, y, lines, value)
    swept = _sweep_of(source)
    if swept is not None:
        if kind is not None or wording is not None:
            raise SpecError("kind and wording choose runs of a store; a frame with one row per run is drawn whole")
        table, notes = _of_frame(swept, axes, values, where or {})
        labels = {name: parameter_name(name) for name in values}
    else:
        table, notes = _of_store(source, axes, values, where or {}, kind, wording)
        labels = {name: f"{metrics.axis_name(name)}: {metrics.find_metric(name).meaning}" for name in values}
    known = table.dropna(subset=axes)
    if known.empty:
        raise SpecError(f"no run has levels of {' and '.join(axes)}")
    if len(known) < len(table):
        notes.append(f"{_without(len(table) - len(known), len(table), axes)} left out")
    for name in values:
        finite = np.isfinite(known[name].to_numpy(float))
        if not finite.any():
            raise SpecError(f"no run has a number of {name!r}, so there is nothing to draw")
        if not finite.all():
            notes.append(f"{int((~finite).sum()):,} of {len(known):,} runs without a number of {labels[name]} left out")
        known = known.assign(**{name: known[name].where(finite)})
    span = table.attrs.get("span", metrics.ANY)

    def banded(name: str, values: np.ndarray, blocks: Any) -> tuple[float, ...]:
        found = metrics.run_band(values[:, None], band, level, blocks, metrics.limits_of(name, *span))
        return tuple(float(each[0]) for each in found)

    apart = {name for name in values if swept is not None and "delta" in swept.attrs and _of_clusters(name)}
    frame = pd.DataFrame(_crossing(at, part, name, axes, banded, at_rest=name in apart)
                         for at, part in known.groupby(axes, sort=False) for name in values)  # fmt: skip
    # The measures stay in the order asked for, and so do their crossings in that of the levels.
    frame = pd.concat([metrics.in_order(frame[frame["measure"] == name], axes) for name in values], ignore_index=True)
    counts = frame.loc[frame["n_runs"].between(2, metrics.LEAST_RUNS - 1), ["measure", *axes]]
    runs = known.melt(axes, values, "measure").merge(counts, on=["measure", *axes]).dropna(subset="value")
    of_sweep = swept is not None and "replicate" in swept.columns and "model" in swept.attrs
    return PhaseData(
        frame,
        metrics.evidence_statement(known["evidence"]),
        (*notes, _counted(frame, "replicates" if of_sweep else "runs")),
        x,
        y,
        lines,
        labels,
        metrics.say_band(band, level, frame["n_runs"], "pale dots"),
        runs,
        metrics.topic_titles(source if isinstance(source, pd.DataFrame) else source.runs) if "topic" in axes else {},
    )


def _of_clusters(measure: str) -> bool:
    """Whether a measure at the end of runs tells clusters apart."""
    return "@" not in measure and metrics.takes_delta([measure])


def _sweep_of(source: HasFrames | pd.DataFrame) -> pd.DataFrame | None:
    """The frame with one row per run that is given, or that results of a sweep hold."""
    if isinstance(source, pd.DataFrame):
        return source
    if getattr(source, "run_ids", True):
        return None
    found: pd.DataFrame = source.study.source(source)  # type: ignore[attr-defined]
    return found


def _asked(x: str, y: str | None, lines: str | None, value: str | Sequence[str]) -> tuple[list[str], list[str]]:
    """The swept columns and the measures."""
    if y is not None and lines is not None:
        raise SpecError(f"give either y (for a map) or lines (one line per level), not both; got {y!r} and {lines!r}")
    axes = [name for name in (x, y, lines) if name is not None]
    if len(set(axes)) < len(axes):
        raise SpecError(f"x and {'y' if y else 'lines'} must be two different columns; got {x!r} twice")
    values = [value] if isinstance(value, str) else list(value)
    if not values or len(set(values)) < len(values):
        raise SpecError(f"value must name one measure or several different ones; got {value!r}")
    if set(values) & {*axes, "measure"}:
        raise SpecError(f"a measure cannot also be a swept column; got {', '.join({*values} & {*axes, 'measure'})}")
    return axes, values


def _crossing(
    at: Sequence[Any], part: pd.DataFrame, name: str, axes: Sequence[str], banded: Callable[..., Any], *, at_rest: bool
) -> dict[str, Any]:
    """The row of one measure at one crossing of levels, of runs `at_rest` alone where there are any."""
    counted = ~part[_CENSORED] if at_rest and not part[_CENSORED].all() else slice(None)
    values = part.loc[counted, name].to_numpy(float)
    mean, low, high, n = banded(name, values, part["block"][counted] if "block" in part else ())
    return {
        "measure": name,
        **dict(zip(axes, at, strict=True)),
        "mean": mean,
        "low": low,
        "high": high,
        "spread": float(np.nanstd(values, ddof=1)) if n > 1 else math.nan,
        "n_runs": int(n),
        "n_censored": int(part[_CENSORED].sum()),
        "evidence": " + ".join(dict.fromkeys(part["evidence"])),
    }


def _counted(frame: pd.DataFrame, what: str) -> str:
    counts = frame.loc[frame["n_runs"] > 0, "n_runs"]
    low, high = int(counts.min()), int(counts.max())
    if high == 1:
        return f"one {what[:-1]} per point"
    return f"mean of {high:,} {what} per point" if low == high else f"mean of {low:,} to {high:,} {what} per point"


def _without(n: int, of: int, axes: Iterable[str]) -> str:
    return f"{n:,} of {of:,} runs without a level of {' and '.join(map(parameter_name, axes))}"


def _settings(runs: pd.DataFrame) -> list[str]:
    """Columns that are known to hold the model and its settings, not measures."""
    models = runs["model"].unique().tolist() if "model" in runs.columns else [runs.attrs.get("model")]
    declared = set(_COMMON)
    for model in (loaded("classic_model", str(each)) for each in models):
        declared |= set() if model is None else {*model.declared, *model.schemes}
    columns = [str(column) for column in runs.columns]
    # A measure has the name of a parameter of some models; in a frame of runs, measures follow the replicate.
    measured = columns[columns.index("replicate") :] if "replicate" in columns else []
    declared -= set(metrics.METRICS) & set(measured)
    return [column for column in columns if column in declared or column.startswith(("network.", "initial."))]


def _simulated(runs: pd.DataFrame, without: Collection[str]) -> str:
    """Model, size, length and constant settings of the runs of a frame, as far as its columns and attributes say.

    `without` names columns whose level is stated elsewhere. Settings that are not set, or no number, go unsaid.
    """
    attributes = runs.attrs if "model" in runs.attrs else {}
    levels = {column: runs[column].unique().tolist() for column in _settings(runs)}
    given = {name: attributes.get(name) for name in ("model", "n", "network")} | dict(
        attributes.get("parameters") or {}
    )
    constant = {column: each[0] for column, each in levels.items() if len(each) == 1}
    constant |= {name: value for name, value in given.items() if name not in levels}
    told = {name: value for name, value in constant.items() if name not in without and _can_be_told(value)}
    parts = [setting_text(told.pop("model"))] if "model" in told else []
    n = told.pop("n", None)
    parts += [f"{n:,} agents"] if isinstance(n, int | np.integer) else []
    parts += [_length(attributes, runs, without)] if "steps" not in without else []
    parts += [_spell("network", told.pop("network"))] if "network" in told else []
    parts += [_spell(name, value) for name, value in told.items() if name not in ("steps", "until")]
    return ", ".join(part for part in parts if part)


def _can_be_told(value: Any) -> bool:
    """Whether a setting is set, and is no stand-in for a number."""
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _length(attributes: Mapping[Any, Any], runs: pd.DataFrame, without: Collection[str]) -> str:
    """Steps of the runs, or what stops them and their limit."""
    found = {}
    for name in ("steps", "until"):
        levels = runs[name].unique().tolist() if name in runs.columns else [attributes.get(name)]
        found[name] = levels[0] if len(levels) == 1 and name not in without else None
    steps = f"{found['steps']:,} steps" if isinstance(found["steps"], int | np.integer) else ""
    if found["until"] is None:
        return steps
    return f"{_spell('until', found['until'])}{f', at most {steps}' if steps else ''}"


def _spell(name: str, value: Any) -> str:
    """A setting with its name; the parts of one that has several."""
    if isinstance(value, Mapping):
        kind = value.get("kind")
        rest = [f"{metrics.axis_name(str(key))} {setting_text(each)}" for key, each in value.items() if key != "kind"]
        return " ".join([parameter_name(name), *([] if kind is None else [str(kind)]), *rest])
    return f"{parameter_name(name)} {setting_text(value)}"


def _of_frame(
    frame: pd.DataFrame, axes: Sequence[str], values: Sequence[str], where: Mapping[str, Any]
) -> tuple[pd.DataFrame, list[str]]:
    """Levels, measures and evidence of each row."""
    for column in (*axes, *values, "evidence"):
        if column not in frame.columns:
            raise SpecError(f"the frame has no column {column!r}; it has {', '.join(map(str, frame.columns))}")
    chosen = select(frame, where)
    stopped = chosen["stopped"].eq(False) if "stopped" in chosen.columns else pd.Series(False, chosen.index)
    table = chosen[[*axes, "evidence"]].assign(**{_CENSORED: stopped.fillna(False).astype(bool)})
    for column in values:
        # Where some runs have no value, pandas holds numbers and truth values as objects.
        if not chosen[column].dropna().map(lambda each: isinstance(each, int | float | np.number | np.bool_)).all():
            raise SpecError(f"column {column!r} must contain numbers; its type is {frame[column].dtype}")
        table[column] = chosen[column].astype(float)
    _check_alike(chosen, axes)
    held = ", ".join(f"{parameter_name(column)}: {level_text(level)}" for column, level in where.items())
    told = [_simulated(chosen, (*axes, *where)), held]
    if "delta" in chosen.attrs and metrics.takes_delta(values):
        told.append(f"clusters separated by gaps above {chosen.attrs['delta']}")
    return table, [text for text in (*told, _censoring(table, values, chosen.attrs)) if text]


def _check_alike(chosen: pd.DataFrame, axes: Sequence[str]) -> None:
    """Refuse rows of one crossing that differ in a setting, or that repeat a replicate."""
    others = [name for name in _settings(chosen) if name not in axes]
    grouped = chosen.groupby(list(axes), sort=False, dropna=False)
    vary = [name for name in others if len(chosen) and (grouped[name].nunique(dropna=False) > 1).any()]
    repeats = [column for column in ("replicate", "seed") if column in chosen.columns and column not in axes]
    if vary or (repeats and chosen.duplicated([*axes, *repeats]).any()):
        raise SpecError(
            f"several rows agree in {', '.join([*axes, *repeats])}, so {' and '.join(vary) or 'something else'} varied "
            "too; draw a line for each with lines, or choose a level with where"
        )


def _censoring(table: pd.DataFrame, values: Sequence[str], attributes: Mapping[Any, Any]) -> str:
    """Note on runs that had not stopped at their limit, where that matters to what is drawn."""
    n = int(table[_CENSORED].sum())
    if not n or not ("time" in values or attributes.get("until") is not None):
        return ""
    said = f"{n:,} of {len(table):,} runs had not stopped at the limit of steps"
    if "delta" in attributes and any(map(_of_clusters, values)):
        said += "; where others had, means of clusters are theirs"
    if "time" not in values:
        return said
    counted = table.loc[table[_CENSORED], "time"].notna().any()
    return f"{said}{', which counts as their time: means are too low' if counted else ''}"


def _of_store(
    results: Any,
    axes: Sequence[str],
    values: Sequence[str],
    where: Mapping[str, Any],
    kind: str | None,
    wording: str | None,
) -> tuple[pd.DataFrame, list[str]]:
    """Levels, metrics of the final opinions, and evidence of each run."""
    if not hasattr(results, "runs"):
        raise SpecError(f"a phase diagram is drawn from Results, Frames or a DataFrame; got {type(results).__name__}")
    runs, left_out = runs_to_draw(results, kind, where, wording)
    metrics.check_columns(runs, axes)
    known = runs.dropna(subset=list(axes))
    if known.empty:
        raise SpecError(f"no complete run has levels of {' and '.join(axes)}")
    metrics.check_conditions(known, list(axes))
    drawn = of_runs(results, known.assign(condition=np.arange(len(known)).astype(str)), kind)
    finals = [runs_of[0].values[-1] for runs_of in drawn.cells.values()]
    measured = [metrics.compute_metrics(final, list(values), range=drawn.span) for final in finals]
    notes = [*drawn.notes, *left_out]
    pooled = known.groupby(list(axes))["topic"].nunique().max()
    if pooled > 1:
        notes.append(f"up to {pooled} topics per point")
    if len(known) < len(runs):
        notes.append(f"{_without(len(runs) - len(known), len(runs), axes)} left out")
    table = known[[*axes, "evidence", "block"]].assign(**{_CENSORED: False})
    table = table.assign(**{name: [float(each[name]) for each in measured] for name in values})
    table.attrs["span"] = drawn.span
    return table, notes
