"""Numbers of replicates or topics for an interval of a given half-width, from the variance of a pilot."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import pandas as pd

from opinionsim.analysis._contrasts import declared_effects
from opinionsim.analysis._means import LEAST_UNITS, Design, Estimate, Spread, design_of, of_mean_squares, usual_estimand
from opinionsim.analysis._printed_table import Table, finished
from opinionsim.analysis._units import METRIC_KEYS
from opinionsim.errors import SpecError
from opinionsim.metrics import named_metrics, one_wording, run_metrics, scale_of
from opinionsim.planning import Forecast
from opinionsim.specification import AnalysisSpec, Experiment
from opinionsim.store import Results

#: Most replicates or topics that are considered.
_MOST = 100_000
#: Confidence of the upper bound of the pilot's standard deviation, and power of the effect that is detected.
_BOUND, POWER = 0.8, 0.8
#: Columns as printed, with their formats.
_PRINTED = dict(zip(("topics", "replicates", "runs", "money", "half_width", "detectable"),
                    (",.0f", ",.0f", ",.0f", ",.2f", ".3g", ".3g"), strict=True))  # fmt: skip


def study_sizes(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    analysis: AnalysisSpec,
    half_width: float,
    size: tuple[int, int],
    level: float = 0.95,
    design: Design | None = None,
) -> tuple[str, Estimate, pd.DataFrame]:
    r"""Find the sizes that give the interval of the primary contrast a half-width, from the variance of a pilot.

    Parameters
    ----------
    runs, metrics : DataFrame
        Frames of the pilot, with at least three independent units.
    analysis : AnalysisSpec
        Analysis whose primary or only contrast has the interval.
    half_width : float
        Half-width of the interval, > 0, in units of the measure.
    size : (int, int)
        Topics, and replicates per topic, in the specified study.
    level : float
        Confidence level.
    design : str, optional
        Whether blocks of the study are ``nested`` in topics or ``crossed`` with them; by default as in the pilot.

    Returns
    -------
    name : str
        Name of the contrast.
    estimate : Estimate
        Estimate from the pilot.
    sizes : DataFrame
        Rows: the study as specified, with more replicates, and with more topics if topics are a sample; first with
        the pilot's variance, then with the upper bound :math:`s^2 f/\chi^2_{f,\,0.2}` that exceeds the true one with
        80 % confidence. Columns: ``variance, sd, size, topics, replicates`` (missing if no number attains the
        half-width), ``share`` of the runs specified, expected ``half_width``, and ``detectable``, the effect that a
        two-sided test finds with a power of 80 %.

    Raises
    ------
    SpecError
        If no contrast is primary; if the pilot has too few units for an interval of the estimand, which is by default
        ``topics-like-these`` for three topics or more; or if its blocks are nested in topics and those of the study
        are not.
    """
    from scipy.special import chdtri

    if not (half_width > 0 and math.isfinite(half_width)):
        raise SpecError(f"half-width must be a positive number; got {half_width!r}")
    name = analysis.decides
    if name is None:
        raise SpecError("the half-width is that of a contrast: declare it as analysis.primary in the specification")
    runs, _ = one_wording(runs, None)
    estimand = analysis.estimand or usual_estimand(range(size[0]))
    (found,) = declared_effects(runs, metrics, analysis.deciding, estimand=estimand)
    own = found.estimate
    if own.spread is None:
        raise SpecError(f"the pilot has no interval of {name!r}: {own.reason}")
    place = int(own.spread.halves(level).argmax())
    df = float(own.spread.df[place])
    spread = _expected(found.differences, own, own.spread, design)
    rows = []
    for variance, factor in (("pilot", 1.0), ("upper bound", math.sqrt(df / float(chdtri(df, _BOUND))))):
        wanted = half_width / factor
        ways: list[tuple[str, int | None, int | None]] = [("as specified", *size)]
        ways.append(("more replicates", size[0], least(lambda n: _attained(spread(size[0], n), level)[0], wanted)))
        if own.estimand == "topics-like-these":
            ways.append(("more topics", least(lambda n: _attained(spread(n, size[1]), level)[0], wanted), size[1]))
        for way, topics, replicates in ways:
            attained = (math.nan,) * 3
            if topics is not None and replicates is not None:
                half, found_effect = _attained(spread(topics, replicates), level)
                attained = (topics * replicates / math.prod(size), factor * half, factor * found_effect)
            rows.append((variance, factor * own.sd, way, topics, replicates, *attained))
    columns = ["variance", "sd", "size", "topics", "replicates", "share", "half_width", "detectable"]
    return name, own, pd.DataFrame(rows, columns=columns).astype({"topics": "Int64", "replicates": "Int64"})


def size_table(experiment: Experiment, forecast: Forecast, pilot: Results, half_width: float) -> Table:
    """Tabulate the sizes at which the interval of the primary contrast has a given half-width.

    Parameters
    ----------
    experiment : Experiment
        The specified study.
    forecast : Forecast
        Forecast of the study from :func:`opinionsim.plan`.
    pilot : Results
        Results of a pilot.
    half_width : float
        Half-width of the interval, in units of the measure.

    Returns
    -------
    Table
        One row per variance and way to change the size, with runs, money, expected half-width, and the effect that is
        detected with a power of 80 %.

    Raises
    ------
    SpecError
        As for :func:`study_sizes`.
    """
    analysis = experiment.spec.analysis
    pairs = {(str(run.cell.fields.get("topic", {}).get("name")), run.block) for run in experiment.runs}
    topics = len({topic for topic, _ in pairs})
    runs, opinions, agents, turns = pilot.counted()
    metrics = run_metrics(runs, opinions, agents, turns=turns)
    if named := experiment.spec.measurement.metrics:
        metrics = metrics.merge(named_metrics(runs, opinions, named, scale_of(opinions), turns), on=METRIC_KEYS)
    size, design = (topics, max(1, len(pairs) // topics)), None if topics == 1 else design_of(*zip(*pairs, strict=True))
    name, own, sizes = study_sizes(runs, metrics, analysis, half_width, size, design=design)
    money = math.nan if forecast.cost is None else forecast.cost
    frame = sizes.assign(
        runs=(sizes["share"] * forecast.runs).round(), money=sizes["share"] * money, evidence=runs["evidence"].iloc[0]
    )
    columns = [
        [f"{x:{form}}" if math.isfinite(x) else "-" for x in frame[name].astype(float)]
        for name, form in _PRINTED.items()
    ]
    rows = list(zip(frame["variance"], frame["size"], *columns, strict=True))
    heads = ("topics", "replicates", "runs", f"money ({forecast.currency})", "half-width", "detects")
    notes = [
        f"Pilot {pilot.name}: {name} {own.mean:.3g}, standard deviation {own.sd:.3g} over {own.units}; {own.method}.",
        f"Upper bound: the variance that exceeds the true one with {_BOUND:.0%} confidence (chi-square). The pilot's "
        "own variance is as likely to be too small as too large.",
        f"Detects: the difference that a two-sided test at 5 % detects with a power of {POWER:.0%}. A dash: no "
        "number of units gives this half-width, or the price is unknown.",
    ]
    title = f"Sizes for a half-width of {half_width:g}"
    return finished(title, frame, (("variance", "size", *heads),), rows, 2, notes, "sizes")


def least(half: Callable[[int], float], wanted: float, most: int = _MOST) -> int | None:
    """The least number from 2 to `most` whose half-width is no wider than wanted; None where none is."""
    sizes = range(2, most + 1)
    place = bisect_left(sizes, -wanted, key=lambda n: -half(n))
    return None if place == len(sizes) else sizes[place]


def _attained(spread: Spread, level: float) -> tuple[float, float]:
    """Half-width of the longest interval, infinite without degrees of freedom, and the effect found with 80 % power."""
    from scipy.special import nctdtrinc, stdtrit

    if not (spread.df >= 1).all():
        return math.inf, math.inf
    halves = spread.halves(level)
    place = int(halves.argmax())
    df, error = float(spread.df[place]), float(spread.errors[place])
    return float(halves[place]), float(nctdtrinc(df, 1 - POWER, stdtrit(df, (1 + level) / 2))) * error


def _expected(
    values: pd.DataFrame, own: Estimate, found: Spread, design: Design | None
) -> Callable[[int, int], Spread]:
    """The spread to be expected of a mean over T topics with R blocks in a design, by the variances of a pilot."""
    rows = values.dropna(subset="value")
    zero = np.zeros(())
    of_pilot = design_of(rows["topic"], rows["block"])
    if design == "crossed" and of_pilot == "nested":
        # What blocks that topics share have in common stays unknown.
        raise SpecError("the pilot has blocks nested in topics, the study has not: list topic.name in independent_over")

    def units(variance: float, n: int, df: float) -> Spread:
        error = np.array([math.sqrt(variance / n)])
        return Spread(zero, np.sqrt(variance + zero), error, np.array([float(df)]), found.methods)

    by_topic = rows.groupby("topic")["value"]
    counts = by_topic.count()
    within = float((by_topic.var(ddof=1) * (counts - 1)).sum() / max((counts - 1).sum(), 1))
    if found.components is not None:
        topics, blocks, rest = (float(each) for each in found.components)
        if design == "nested":
            return lambda n_topics, n_blocks: units(topics + (blocks + rest) / n_blocks, n_topics, n_topics - 1)

        def crossed(n_topics: int, n_blocks: int) -> Spread:
            squares = n_blocks * topics + rest, n_topics * blocks + rest, rest
            if min(n_topics, n_blocks) < 2:
                return units(rest, 1, 0)
            return of_mean_squares(zero, *squares, (n_topics, n_blocks))

        return crossed
    if own.unit == "block" and "nested" in (of_pilot, design):
        each = by_topic.var(ddof=1).to_numpy()
        # Where topics vary differently, a few of them hold most of the degrees of freedom (Satterthwaite).
        even = float(each.sum() ** 2 / (each**2).sum() / len(each))

        def of_each(n_topics: int, n_blocks: int) -> Spread:
            df = n_topics * even * (n_blocks - 1) if n_blocks >= LEAST_UNITS else 0.0
            return units(float(each.mean()), n_topics * n_blocks, df)

        return of_each
    if own.unit == "block":
        return lambda n_topics, n_blocks: units(own.sd**2, n_blocks, n_blocks - 1)
    between = max(own.sd**2 - within * float((1 / counts).mean()), 0.0)
    return lambda n_topics, n_blocks: units(between + within / n_blocks, n_topics, n_topics - 1)
