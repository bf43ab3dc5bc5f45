"""The primary contrast under choices of analysis, and under variants of the specification compared with itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from opinionsim.analysis import _means as means
from opinionsim.analysis._analysis_choices import choice_effects, metrics_of
from opinionsim.analysis._contrasts import NO_FINDING, Effect, declared_effects
from opinionsim.analysis._printed_table import Table, finished, interval_text, number_text
from opinionsim.analysis._units import interval_notes
from opinionsim.errors import SpecError
from opinionsim.foundation.documents import validate
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import one_wording
from opinionsim.registry import part
from opinionsim.specification import ChoicesSpec, VariantSpec, analysis_of
from opinionsim.store import Results, load, open_store

#: Fewest levels of a factor whose share of variance is estimated.
LEAST_LEVELS = 5
_UNIT = ["topic", "block"]
_WHY = "shift_no_interval"
#: What a study can vary beside its analysis: beginnings of the paths of the fields, and of those that another one has.
_ASPECTS: Mapping[str, tuple[str, str]] = {
    "wording": ("prompts", ""),
    "model": ("model", "model.temperature"),
    "memory": ("cognition.memory", ""),
    "temperature": ("model.temperature", ""),
    "order": ("interaction", "interaction.network"),
    "network": ("interaction.network", ""),
}


def findings(shifts: means.Spread, compared: int, smallest: float | None = None, level: float = 0.95) -> np.ndarray:
    """Classify how variants change a contrast.

    Parameters
    ----------
    shifts : Spread
        Paired differences of contrasts (...), from :func:`opinionsim.analysis.spread_of`.
    compared : int
        Number of variants compared with one specification.
    smallest : float, optional
        Smallest effect of interest.
    level : float
        Joint confidence level of all intervals, adjusted by Bonferroni's inequality.

    Returns
    -------
    ndarray of str (...)
        ``equivalent`` if two one-sided tests, each at (1 - level)/compared, place the difference within `smallest`;
        otherwise ``changes`` if its interval excludes 0, and ``undecided`` if it does not.
    """
    low, high = shifts.interval(1 - (1 - level) / compared)
    found = np.where((low > 0) | (high < 0), "changes", "undecided")
    if smallest is None:
        return found
    return np.where(shifts.p_within(smallest) < (1 - level) / compared, "equivalent", found)


def variance_share(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    r"""Estimate the share of a factor in the variance of a measure, with its interval.

    Parameters
    ----------
    values : array_like (L, n)
        Value for each of L levels of the factor (at least five) in each of n units, such as topics. All levels have the
        same units.
    level : float
        Confidence level.

    Returns
    -------
    (float, float, float)
        :math:`\sigma_L^2 / (\sigma_L^2 + \sigma_u^2 + \sigma_e^2)` in a two-way layout in which levels and units are
        samples, and the ends of its interval, none below 0. NaN without residual variance.

    Notes
    -----
    The intraclass correlation of levels, case 2 of Shrout & Fleiss 1979, doi 10.1037/0033-2909.86.2.420, whose interval
    approximates degrees of freedom by Satterthwaite.
    """
    from scipy.special import fdtri

    grid = np.asarray(values, dtype=float)
    n, k = grid.shape
    between, units, error = means.mean_squares(grid)
    if not error > 1e-24 * max(1.0, float(np.abs(grid).max()) ** 2):
        return np.nan, np.nan, np.nan
    share = max(0.0, (between - error) / (between + (k - 1) * error + k * (units - error) / n))
    ratio, weight = k * share * units / error, n * (1 + (k - 1) * share) - k * share
    df = (n - 1) * (k - 1) * (ratio + weight) ** 2 / ((n - 1) * ratio**2 + weight**2)
    upper, lower = fdtri(n - 1, df, (1 + level) / 2), fdtri(df, n - 1, (1 + level) / 2)
    others = k * units + (k * n - k - n) * error
    low = n * (between - upper * error) / (upper * others + n * between)
    high = n * (lower * between - error) / (others + n * lower * between)
    return share, max(0.0, float(low)), max(0.0, float(high))


def variant_effects(
    results: Results, kind: str | None = None, estimand: means.Estimand | None = None, wording: str | None = None
) -> list[tuple[VariantSpec, Effect]]:
    """Compute the primary contrast under each variant of an experiment that was run.

    Parameters
    ----------
    results, kind, estimand, wording
        As for :func:`opinionsim.analysis.choice_effects`; variants come from the same store. A variant without runs of
        that wording of the prompts uses the wording of its last run.
    """
    designs = results.manifest["environment"].get("variants", {})
    if not designs:
        return []
    with open_store(results.url, write=False) as opened:
        numbers = {row.design_id: row.design for row in opened.designs() if row.name == results.name}
    only, found = analysis_of(results.spec, results.left_out).deciding, []
    for variant in (validate(VariantSpec, each) for each in results.spec["robustness"]):
        if designs[variant.label] in numbers:
            own = load(results.url, results.name, design=numbers[designs[variant.label]], own_parts=results.own_parts)
            runs = own.ordered_runs
            has = wording is not None and runs["wording"].str.contains(rf"(?:^|@){re.escape(wording)}").any()
            runs, _ = one_wording(runs, wording if has else None)
            metrics = metrics_of(own, runs, own.opinions, only.contrasts[str(only.primary)].quantity)
            (effect,) = declared_effects(runs, metrics, only, kind, estimand)
            found.append((variant, effect))
    return found


def shift(
    reference: Effect, effect: Effect, level: float = 0.95, estimand: means.Estimand | None = None
) -> means.Estimate:
    """Estimate a contrast under a variant minus the same contrast under the specification, paired by topic and block.

    Parameters
    ----------
    reference, effect : Effect
        The contrast under the specification, and under the variant.
    level, estimand
        As for :func:`opinionsim.analysis.estimate`.
    """
    lacking = [each.estimate.reason for each in (reference, effect) if "value" not in each.differences]
    if lacking:
        return means.no_estimate(lacking[0])
    pairs = reference.differences.merge(effect.differences, on=_UNIT, suffixes=("_reference", ""))
    values = pairs["value"] - pairs["value_reference"]
    if not values.notna().any():
        return means.no_estimate("no block has complete runs of both")
    own = [reference.differences[name] for name in _UNIT]
    chosen = estimand or means.usual_estimand(own[0])
    return means.estimate(pairs["topic"], pairs["block"], values, chosen, level, means.design_of(*own))


def robustness_frame(
    results: Results, kind: str | None = None, estimand: means.Estimand | None = None, wording: str | None = None
) -> pd.DataFrame:
    """Compute the primary contrast under all choices of analysis and all variants of the specification.

    Parameters
    ----------
    results, kind, estimand, wording
        As for :func:`variant_effects`.

    Returns
    -------
    DataFrame
        One row per combination of choices (the default if none is declared), then one row per variant that was run:
        ``label``; ``of``, which is ``analysis`` for choices and the level of a variant; the choices by field;
        ``difference`` and ``shift`` (the variant less the specification), each with the ends of its interval and
        ``units``, and ``no_interval`` (why there is none); ``finding`` (:func:`findings`); ``evidence``. Its ``attrs``
        have the name of the contrast, ``notes`` and ``tested``.

    Raises
    ------
    SpecError
        If no contrast is primary.
    """
    analysis = analysis_of(results.spec, results.left_out)
    if analysis.decides is None:
        raise SpecError("robustness is that of a contrast: declare it as analysis.primary in the specification")
    usual = analysis.model_copy(update={"choices": None})
    ((_, reference),) = choice_effects(results, usual, kind, estimand, wording)
    # The rows are about the same, also where runs of a topic are missing.
    about = estimand or analysis.estimand or (reference.estimate.estimand if reference.estimate.unit else None)
    choices = list(choice_effects(results, analysis, kind, about, wording))
    variants = variant_effects(results, kind, about, wording)
    varied = [way for way in ChoicesSpec.model_fields if len({choice[way] for choice, _ in choices}) > 1]
    rows = []
    for choice, effect in choices:
        label = ", ".join(f"{way}: {choice[way]}" for way in varied) or "as specified"
        rows.append(
            {"label": label, "of": "analysis", **choice, **_record(effect.estimate), "evidence": effect.evidence}
        )
    # All that are declared are compared in the end, however many have been carried out.
    declared = [str(each["label"]) for each in results.spec.get("robustness", ())]
    level = 1 - 0.05 / max(len(declared), 1)
    for variant, effect in variants:
        own = shift(reference, effect, level, about)
        spread = None if reference.scripted or effect.scripted else own.spread
        finding = "" if spread is None else str(findings(spread, len(declared), reference.smallest))
        row = {"label": variant.label, "of": variant.changed_level, "finding": finding, "evidence": effect.evidence}
        rows.append(row | _record(effect.estimate) | _record(own, "shift"))
    frame = pd.DataFrame(rows)
    if variants:
        frame["finding"] = frame["finding"].fillna("")
    notes = sentences(
        "opinionsim.analysis",
        "robustness.txt",
        about=interval_notes([effect.estimate for _, effect in choices]),
        compared=variants,
        reference=reference,
        level=level,
        shares=list(_shares(reference, variants)),
        undefined=[(row["label"], row[_WHY]) for row in rows if row.get(_WHY)],
        lacking=[label for label in declared if label not in {variant.label for variant, _ in variants}],
        scripted=any(effect.scripted for _, effect in (*choices, *variants)),
        no_finding=NO_FINDING,
        not_varied=_not_varied(results, [path for variant, _ in variants for path in variant.change], varied),
    )
    frame.attrs.update(contrast=analysis.decides, notes=notes, level=level)
    return frame


def _record(own: means.Estimate, name: str = "difference") -> dict[str, Any]:
    return own.columns(name) | {f"{name}_units": own.units, f"{name}_no_interval": own.reason}


def _shares(reference: Effect, variants: list[tuple[VariantSpec, Effect]]) -> Iterator[tuple[str, int, int, str]]:
    """Shares of variance of fields that at least four variants change alone: levels, topics and the share."""
    fields: dict[str, list[Effect]] = {}
    for variant, effect in variants:
        fields.setdefault(", ".join(variant.change), [reference]).append(effect)
    for path, effects in fields.items():
        values = [each.differences.set_index(_UNIT)["value"] for each in effects if "value" in each.differences]
        if len(values) < LEAST_LEVELS:
            continue
        wide = pd.concat(values, axis=1).dropna().groupby(level="topic").mean()
        if len(wide) >= means.LEAST_UNITS:
            yield path, len(values), len(wide), interval_text(*variance_share(wide.to_numpy().T))


def _not_varied(results: Results, changed: list[str], ways: list[str]) -> list[str]:
    """What neither variants nor choices nor conditions vary."""
    sweep = results.spec.get("sweep") or {}
    paths = [*changed, *(path for grid in (sweep if isinstance(sweep, list) else [sweep]) for path in grid)]
    left = [
        name
        for name, (fields, others) in _ASPECTS.items()
        if not any(f"{path}.".startswith(f"{fields}.") and not (others and path.startswith(others)) for path in paths)
    ]
    return left + [way for way in ChoicesSpec.model_fields if way not in ways]


def _fits(asked: Any) -> bool:
    analysis = asked.analysis
    wanted = analysis.choices or asked.results.spec.get("robustness")
    return bool(asked.stance and not asked.as_published and analysis.decides is not None and wanted)


@part("table", name="robustness", fits=_fits, metrics=True)
def robustness_table(
    results: Results, kind: str | None = None, estimand: means.Estimand | None = None, wording: str | None = None
) -> Table:
    """Tabulate the results of :func:`robustness_frame`, with the same parameters and errors."""
    frame = robustness_frame(results, kind, estimand, wording)
    level = f"{100 * frame.attrs['level']:.4g} %"
    rows = []
    for row in frame.to_dict("records"):
        names = [name for name in ("difference", "shift") if name in frame]
        parts = [number_text(row, name, "-") for name in names]
        rows.append((row["label"], row["of"], *parts, *([str(row["finding"] or "-")] if "finding" in frame else [])))
    heads = ["", "of", "difference [95 % CI]", *([f"change [{level} CI]", "finding"] if "shift" in frame else [])]
    notes = [
        f"{frame.attrs['contrast']} under choices of analysis and variants of the specification. The number of "
        "intervals that exclude 0 proves nothing.",
        *frame.attrs["notes"],
    ]
    return finished("Robustness", frame, (tuple(heads),), rows, 2, notes, "robustness")
