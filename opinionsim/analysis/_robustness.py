"""The primary contrast under variants of the specification, compared with the specification itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from opinionsim.analysis._choices import (
    WAYS,
    choice_effects,
    choice_table,
    difference_text,
    estimate_record,
    metrics_of,
)
from opinionsim.analysis._contrasts import NO_FINDING, Effect, declared_effects
from opinionsim.analysis._estimates import (
    LEAST_UNITS,
    Estimand,
    Estimate,
    Spread,
    design_of,
    estimate,
    no_estimate,
    usual_estimand,
)
from opinionsim.analysis._table import Table, finished
from opinionsim.analysis._units import interval_notes
from opinionsim.contrasts import AnalysisSpec, VariantSpec, analysis_of
from opinionsim.documents import validate
from opinionsim.errors import SpecError
from opinionsim.metrics import one_wording

if TYPE_CHECKING:
    from opinionsim.store import Results

#: Fewest levels of a factor whose share of variance is estimated.
LEAST_LEVELS = 5
#: What a study may vary, with the fields that do.
_ASPECTS: Mapping[str, tuple[str, ...]] = {
    "wording": ("prompts", "task", "topic.masked"),
    "model": ("model", "model.name"),
    "memory": ("cognition.memory",),
    "temperature": ("model.temperature",),
    "order": ("interaction", "interaction.kind", "population.assignment"),
    "network": ("interaction.network", "interaction.network.kind"),
}


@dataclass(frozen=True, eq=False)
class Compared:
    """A contrast under a variant, beside that under the specification.

    Attributes
    ----------
    variant : VariantSpec
        What is changed.
    effect : Effect
        The contrast under the variant.
    shift : Estimate
        The contrast under the variant less that under the specification, paired by topic and block; its interval is
        that of all variants together (:func:`verdicts`).
    finding : str
        ``changes``, ``equivalent`` or ``undecided``; empty where there is no interval or an author is scripted.
    """

    variant: VariantSpec
    effect: Effect
    shift: Estimate
    finding: str


def joint_level(compared: int, level: float = 0.95) -> float:
    """Confidence level of each of several intervals that together have a level, by Bonferroni's inequality."""
    return 1 - (1 - level) / compared


def verdicts(shifts: Spread, compared: int, smallest: float | None = None, level: float = 0.95) -> np.ndarray:
    """What variants do to a contrast.

    Parameters
    ----------
    shifts : Spread
        Paired differences of contrasts (...), from :func:`opinionsim.analysis.spread_of`.
    compared : int
        Number of variants that are compared with one specification.
    smallest : float, optional
        Smallest effect of interest.
    level : float
        Confidence level of all intervals together, which is adjusted by Bonferroni's inequality.

    Returns
    -------
    ndarray of str (...)
        ``equivalent`` where two one-sided tests, each at (1 - level)/compared, put the difference within `smallest`;
        else ``changes`` where its interval excludes 0, and ``undecided`` where it does not.
    """
    each = joint_level(compared, level)
    low, high = shifts.interval(each)
    found = np.where((low > 0) | (high < 0), "changes", "undecided")
    if smallest is None:
        return found
    mirrored = shifts._replace(mean=-shifts.mean)
    within = np.maximum(shifts.p_above(-smallest), mirrored.p_above(-smallest)) < 1 - each
    return np.where(within, "equivalent", found)


def variance_share(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    r"""The share that a factor has in the variance of what is measured, with its interval.

    Parameters
    ----------
    values : array_like (L, n)
        A value for each of L levels of the factor in each of n units, such as topics, the same for all levels.
    level : float
        Confidence level.

    Returns
    -------
    (float, float, float)
        :math:`\sigma_L^2 / (\sigma_L^2 + \sigma_u^2 + \sigma_e^2)` of a two-way layout of which levels and units are
        samples, and the ends of its interval, none of them below 0.

    Raises
    ------
    SpecError
        If there are fewer than five levels, or three units.

    Notes
    -----
    The intraclass correlation of levels, case 2 of Shrout & Fleiss 1979, doi 10.1037/0033-2909.86.2.420, whose interval
    approximates degrees of freedom by Satterthwaite.
    """
    from scipy.special import fdtri

    grid = np.asarray(values, dtype=float)
    n, k = grid.shape
    if n < LEAST_LEVELS or k < LEAST_UNITS:
        raise SpecError(
            f"a share of variance takes {LEAST_LEVELS} levels and {LEAST_UNITS} units at least; got {n}, {k}"
        )
    of_levels, of_units = grid.mean(axis=1), grid.mean(axis=0)
    rest = grid - of_levels[:, None] - of_units + grid.mean()
    between, units = k * of_levels.var(ddof=1), n * of_units.var(ddof=1)
    error = (rest**2).sum() / ((n - 1) * (k - 1))
    share = max(0.0, (between - error) / (between + (k - 1) * error + k * (units - error) / n))
    ratio, weight = units / error, n * (1 + (k - 1) * share) - k * share
    df = (n - 1) * (k - 1) * (k * share * ratio + weight) ** 2 / ((n - 1) * (k * share * ratio) ** 2 + weight**2)
    upper, lower = fdtri(n - 1, df, (1 + level) / 2), fdtri(df, n - 1, (1 + level) / 2)
    others = k * units + (k * n - k - n) * error
    low = n * (between - upper * error) / (upper * others + n * between)
    high = n * (lower * between - error) / (others + n * lower * between)
    return share, max(0.0, float(low)), max(0.0, float(high))


def variant_effects(
    results: Results, analysis: AnalysisSpec, kind: str | None = None, estimand: Estimand | None = None
) -> tuple[Effect, list[Compared]]:
    """The primary contrast of an experiment, and of each of its variants that was carried out.

    Parameters
    ----------
    results, analysis, kind, estimand
        As for :func:`opinionsim.analysis.choice_effects`.

    Returns
    -------
    (Effect, list of Compared)
        The contrast under the specification itself, and under its variants in their order.
    """
    from opinionsim.store import load, open_store

    only = analysis.deciding

    def own(found: Results) -> Effect:
        _, opinions, agents, turns = found.counted()
        runs, _ = one_wording(found.ordered_runs)
        measure = only.contrasts[str(only.primary)].quantity
        (effect,) = declared_effects(
            runs, metrics_of(found, runs, opinions, agents, turns, measure), only, kind, estimand
        )
        return effect

    with open_store(results.url, write=False) as opened:
        numbers = {row.design_id: row.design for row in opened.designs() if row.name == results.name}
    identities = results.manifest["environment"].get("variants", {})
    variants = [validate(VariantSpec, each) for each in results.spec.get("robustness", ())]
    there = [each for each in variants if identities.get(each.label) in numbers]
    reference = own(results)
    found = []
    for variant in there:
        effect = own(load(results.url, results.name, design=numbers[identities[variant.label]]))
        shift = _shift(reference, effect, joint_level(len(there)), estimand or only.estimand)
        tested = reference.tested and effect.tested and shift.spread is not None
        verdict = verdicts(shift.spread, len(there), reference.smallest) if tested and shift.spread else ""
        found.append(Compared(variant, effect, shift, str(verdict)))
    return reference, found


def _shift(reference: Effect, effect: Effect, level: float, estimand: Estimand | None) -> Estimate:
    """The contrast under a variant less that under the specification, over the topics and blocks that have both."""
    for each in (reference, effect):
        if "value" not in each.differences:
            return no_estimate(each.estimate.reason)
    units = ["topic", "block"]
    pairs = reference.differences.merge(effect.differences, on=units, suffixes=("_reference", ""))
    values = pairs["value"] - pairs["value_reference"]
    if not values.notna().any():
        return no_estimate("no block has complete runs of both")
    topics, blocks = (reference.differences[name] for name in units)
    chosen = estimand or usual_estimand(topics)
    return estimate(pairs["topic"], pairs["block"], values, chosen, level, design_of(topics, blocks))


def robustness_tables(results: Results, kind: str | None = None, estimand: Estimand | None = None) -> list[Table]:
    """The tables of a contrast under choices of analysis and under variants of the specification.

    Parameters
    ----------
    results, kind, estimand
        As for :func:`opinionsim.analysis.choice_effects`.

    Returns
    -------
    list of Table
        Those that fit what the specification declares: choices; variants; and shares of variance of factors of five
        levels or more. The last one says what was not varied.
    """
    analysis, made = analysis_of(results.spec), []
    choices = list(choice_effects(results, analysis, kind, estimand)) if analysis.choices else []
    if choices:
        made.append(choice_table(choices))
    reference, compared = variant_effects(results, analysis, kind, estimand) if analysis.decides else (None, [])
    if reference is not None and compared:
        made.append(_variant_table(reference, compared))
        made += _variance_table(reference, compared)
    if made:
        last = made.pop()
        told = _not_varied(results, [each.variant for each in compared], [choice for choice, _ in choices])
        made.append(
            Table(last.title, last.header, last.rows, last.n_labels, last.frame, (*last.notes, told), last.name)
        )
    return made


def _variant_table(reference: Effect, compared: Sequence[Compared]) -> Table:
    """The table of variants: one row each, below that of the specification."""
    records: list[dict[str, Any]] = [
        {"variant": "as specified", "level": "-", "finding": "", **estimate_record(reference)}
    ]
    for each in compared:
        ends = dict(zip(("shift", "shift_ci_low", "shift_ci_high"), (each.shift.mean, each.shift.low, each.shift.high),
                        strict=True))  # fmt: skip
        own = {"variant": each.variant.label, "of": each.variant.changed_level, "finding": each.finding}
        rest = {
            "shift_units": each.shift.units,
            "shift_level": each.shift.level,
            "shift_no_interval": each.shift.reason,
        }
        records.append(own | estimate_record(each.effect) | ends | rest | {"change": str(each.variant.change)})
    rows = [
        (*(record[name] for name in ("variant", "of")), difference_text(record),
         difference_text(record, "shift") if "shift" in record else "-", record["finding"] or "-")
        for record in records
    ]  # fmt: skip
    level = joint_level(len(compared))
    header = (("variant", "of", "difference [95 % CI]", f"change [{100 * level:.4g} % CI]", "finding"),)
    tested = any(each.finding for each in compared)
    smallest = reference.smallest
    notes = [
        *interval_notes([each.shift for each in compared]),
        f"Change: {reference.name} under the variant less that under the specification, paired by topic and block. The "
        f"intervals of all {len(compared)} hold together at 95 %, each at {100 * level:.4g} % (Bonferroni).",
        "Finding: changes, the interval excludes 0"
        + (
            f"; equivalent, two one-sided tests at {1 - level:.2g} put the change within {smallest:g}"
            if smallest
            else ""
        )
        + "; else undecided. How many variants have an interval of their own that excludes 0 proves nothing."
        if tested
        else "",
        NO_FINDING if reference.scripted or any(each.effect.scripted for each in compared) else "",
    ]
    made = finished("Robustness", pd.DataFrame(records), header, rows, 2, notes)
    return Table(made.title, header, tuple(rows), 2, made.frame, made.notes, "robustness")


def _variance_table(reference: Effect, compared: Sequence[Compared]) -> Iterator[Table]:
    """The table of shares of variance, of fields that at least four variants change alone; none without any."""
    fields: dict[str, list[Effect]] = {}
    for each in compared:
        if len(each.variant.change) == 1:
            fields.setdefault(next(iter(each.variant.change)), [reference]).append(each.effect)
    records: list[dict[str, Any]] = []
    for path, effects in fields.items():
        values = [
            each.differences.set_index(["topic", "block"])["value"] for each in effects if "value" in each.differences
        ]
        wide = pd.concat(values, axis=1).dropna() if values else pd.DataFrame()
        if len(values) < LEAST_LEVELS or wide.empty:
            continue
        unit = "topic" if wide.index.get_level_values("topic").nunique() >= LEAST_UNITS else "block"
        grid = wide.groupby(level=unit).mean().T.to_numpy()
        if grid.shape[1] >= LEAST_UNITS:
            share, low, high = variance_share(grid)
            shares = {"share": share, "share_ci_low": low, "share_ci_high": high}
            counts = {"levels": len(grid), "units": f"{grid.shape[1]} {unit}s", "evidence": reference.evidence}
            records.append({"field": path, **shares, **counts})
    if records:
        rows = [(each["field"], str(each["levels"]), each["units"], difference_text(each, "share")) for each in records]
        told = (
            f"Share of the variance of {reference.name} over levels and units that differences between levels have; "
            "interval of an intraclass correlation (Shrout & Fleiss 1979), wide with so few levels."
        )
        header = (("field", "levels", "units", "share [95 % CI]"),)
        made = finished("Share of variance", pd.DataFrame(records), header, rows, 1, [told])
        yield Table(made.title, header, tuple(rows), 1, made.frame, made.notes, "variance")


def _not_varied(results: Results, variants: Sequence[VariantSpec], choices: Sequence[Mapping[str, Any]]) -> str:
    """A statement of what neither variants nor choices nor conditions vary."""
    sweep = results.spec.get("sweep") or {}
    swept = {path for grid in (sweep if isinstance(sweep, list) else [sweep]) for path in grid}
    paths = swept | {path for each in variants for path in each.change}

    def touched(fields: tuple[str, ...]) -> bool:
        return any(path in fields or path.startswith(f"{fields[-1]}.") for path in paths)

    left = [name for name, fields in _ASPECTS.items() if not touched(fields)]
    left += [name for way, name in WAYS.items() if len({choice[way] for choice in choices}) < 2]
    return f"Not varied: {', '.join(left)}." if left else "Everything that can be varied by name was varied."


def curve_frame(results: Results, kind: str | None = None, estimand: Estimand | None = None) -> pd.DataFrame:
    """The primary contrast under all choices and all variants, for a specification curve.

    Parameters
    ----------
    results, kind, estimand
        As for :func:`opinionsim.analysis.choice_effects`.

    Returns
    -------
    DataFrame
        One row a combination of choices, and a variant: the choices by field, ``variant`` (empty for choices),
        ``difference`` with its ends, and ``evidence``; those without a value are left out.

    Raises
    ------
    SpecError
        If the specification declares neither, or no row has a value.
    """
    analysis = analysis_of(results.spec)
    if analysis.decides is None or not (analysis.choices or results.spec.get("robustness")):
        raise SpecError("a specification curve needs analysis.choices or robustness, and a primary contrast")
    rows = [
        {**choice, "variant": "", **estimate_record(found)}
        for choice, found in choice_effects(results, analysis, kind, estimand)
    ]
    _, compared = variant_effects(results, analysis, kind, estimand)
    usual = {way: rows[0][way] for way in WAYS}
    rows += [{**usual, "variant": each.variant.label, **estimate_record(each.effect)} for each in compared]
    frame = pd.DataFrame(rows).dropna(subset="difference")
    if frame.empty:
        raise SpecError(f"no way of analysis has a value: {rows[0]['no_interval']}")
    return frame.sort_values("difference", kind="stable", ignore_index=True)
