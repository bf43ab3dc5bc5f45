"""Contrasts of conditions, paired by topic and block: raw and standardised effects, tests, and their adjustment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from opinionsim.analysis._means import (
    Estimand,
    Estimate,
    adjusted,
    design_of,
    estimate,
    no_estimate,
    usual_estimand,
)
from opinionsim.analysis._printed_table import Table, finished, number_text, p_text
from opinionsim.analysis._units import METRIC_KEYS, default_axes, interval_notes, key_of, unit_frame
from opinionsim.errors import SpecError
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import (
    ANY,
    BY_MODELS,
    NOT_SET,
    WITHOUT_FINDING,
    condition_axes,
    in_order,
    named_levels,
    one_wording,
    permutation_test,
    usable_runs,
)
from opinionsim.registry import part
from opinionsim.specification import FRAMING, AnalysisSpec, ContrastSpec, Level
from opinionsim.store import Results

Role = Literal["primary", "secondary", "exploratory"]

NO_FINDING = (
    "No p-value and no finding: scripted results show how this software behaves and say nothing about people or models."
)


@dataclass(frozen=True, eq=False)
class Effect:
    """A contrast of the runs of an experiment.

    Attributes
    ----------
    name : str
        Name of the contrast.
    contrast : ContrastSpec
        What is compared.
    role : str
        ``primary``, ``secondary``, or ``exploratory`` if it was not declared.
    estimate : Estimate
        The contrast in units of its measure.
    evidence : str
        Kind of evidence of the compared runs.
    differences : DataFrame
        Its value for every topic and block (:func:`differences`).
    smallest : float or None
        Smallest effect of interest.
    apart : str
        How the compared runs differ in addition to their conditions; empty if they do not.
    """

    name: str
    contrast: ContrastSpec
    role: Role
    estimate: Estimate
    evidence: str
    differences: pd.DataFrame
    smallest: float | None = None
    apart: str = ""

    @property
    def scripted(self) -> bool:
        """Whether the authors include, or may include, the scripted stand-in, for which no finding is stated."""
        return self.evidence in WITHOUT_FINDING

    @property
    def tested(self) -> bool:
        """Whether the contrast can have a p-value: it has an interval, and no author is the scripted stand-in."""
        return not (self.estimate.reason or self.scripted)

    @property
    def p_value(self) -> float:
        """Unadjusted p-value; NaN if the contrast cannot have one."""
        return self.estimate.p_value if self.tested else math.nan

    @property
    def finding(self) -> str:
        """``larger``, ``equivalent`` or ``undecided`` by the smallest effect of interest; empty without one."""
        return self.estimate.finding(self.smallest) if self.tested and self.smallest is not None else ""

    def sign_flips(self) -> tuple[float, float]:
        """P-value of a sign-flip test, and its smallest possible value.

        The test is exact if the effects of independent units are symmetric around 0. It is NaN if topics and blocks are
        both samples, or if blocks are nested in topics that are not a sample.
        """
        values = self.estimate.values
        if not self.tested or not values:
            return math.nan, math.nan
        found = permutation_test(values, np.zeros(len(values)), paired=True)
        return found.p_value, 2 / found.n


def differences(units: pd.DataFrame, by: Sequence[str], contrast: ContrastSpec, name: str = "contrast") -> pd.DataFrame:
    """Compute a contrast for every topic and block.

    Parameters
    ----------
    units : DataFrame
        From :func:`opinionsim.analysis.unit_frame`.
    by : sequence of str
        Columns of `units` that define a condition.
    contrast : ContrastSpec
        What is compared.
    name : str
        Name of the contrast in errors.

    Returns
    -------
    DataFrame
        Columns ``topic, block, value, evidence``, and ``lost_0``, ``lost_1``, ... which say for each condition whether
        one of its runs is withheld because too few agents were measured. A value is NaN if a run of a condition is
        missing or withheld.

    Raises
    ------
    SpecError
        If a condition is unknown or has no value, or if conditions differ in anything else or share no block.
    """
    # Without its attributes, which pandas would copy for every piece of the frame.
    units = pd.DataFrame(units if "withheld" in units.columns else units.assign(withheld=False))
    contrast = _among(contrast, units, by, name)
    columns = {path: condition_column(by, path, name) for _, side in contrast.terms for path in side}
    known = {path: named_levels(units[column]).to_numpy(object) for path, column in columns.items()}
    named, value = list(columns.values()), contrast.quantity
    others = [axis for axis in by if axis not in named]
    if named and others:
        determined = units.groupby(named, dropna=False)[others].nunique(dropna=False).max()
        others = [axis for axis in others if determined[axis] != 1]
    cell = units.groupby(list(by), dropna=False, sort=False).ngroup() if len(by) else pd.Series(0, index=units.index)
    other = [key_of(row) for row in units[others].to_numpy(dtype=object).tolist()]
    sides: list[pd.Series[Any]] = []
    lost: list[pd.Series[Any]] = []
    compared: list[set[tuple[Any, ...]]] = []
    chosen = np.zeros(len(units), dtype=bool)
    for weight, side in contrast.terms:
        own = np.ones(len(units), dtype=bool)
        for path, levels in side.items():
            own &= np.isin(known[path], [str(level) for level in levels])
        part, told = units[own], " and ".join(f"{path} = {' or '.join(map(str, each))}" for path, each in side.items())
        if not own.any():
            there = "; ".join(f"{path}: {', '.join(dict.fromkeys(known[path]))}" for path in side)
            raise SpecError(f"no complete run has {told}; complete runs have {there}", name)
        if part[value].isna().all():
            why = " (too few agents were measured)" * bool(part["withheld"].any())
            raise SpecError(
                f"no run has a value of {value} where {told or 'it is asked'}{why}, so nothing can be paired", name
            )
        lost.append(part.groupby(["topic", "block"], dropna=False)["withheld"].any().rename(f"lost_{len(lost)}"))
        wide = part.groupby(["topic", "block", cell[own].to_numpy()], dropna=False)[value].mean().unstack()
        sides.append(weight * wide.mean(axis=1, skipna=False))
        compared.append({levels for levels, chosen_here in zip(other, own, strict=True) if chosen_here})
        chosen |= own
    if any(each != compared[0] for each in compared):
        raise SpecError(f"the compared conditions also differ in {', '.join(others)}; give both the same levels", name)
    total = pd.concat(sides, axis=1).sum(axis=1, skipna=False)
    if total.isna().all():
        raise SpecError(
            "its conditions share no block with a run of each, so nothing can be paired; blocks are "
            "shared by cells that differ in nothing listed in independent_over, and need complete runs",
            name,
        )
    kinds = units.loc[chosen, "evidence"].unique()
    evidence = next((each for each in WITHOUT_FINDING if each in kinds), str(kinds[0]))
    gone = pd.concat(lost, axis=1).reindex(total.index).eq(True)
    return total.rename("value").to_frame().join(gone).reset_index().assign(evidence=evidence)


def _among(contrast: ContrastSpec, rows: pd.DataFrame, by: Iterable[str], name: str) -> ContrastSpec:
    """A contrast with its conditions as mappings, by the levels that rows of runs or units have."""
    if not contrast.by_level:
        return contrast
    axes = {axis: tuple(named_levels(rows[axis]).unique()) for axis in by}
    try:
        return contrast.among({axis: levels for axis, levels in axes.items() if len(levels) > 1})
    except SpecError as error:
        raise SpecError(error.unplaced, name) from None


#: Share of the blocks that a contrast may not lose to withheld runs, and by which one condition may not lose more.
_LOST, _UNEQUAL = 0.1, 0.05


def _withholding(found: pd.DataFrame) -> str:
    """Why a contrast is withheld, for the blocks that it loses to runs without a value; empty where it is not."""
    lost = found.filter(like="lost_").to_numpy(bool)
    n, of_sides = len(lost), lost.sum(axis=0)
    gone = int(lost.any(axis=1).sum())
    if not gone or (gone < _LOST * n and np.ptp(of_sides) <= _UNEQUAL * n):
        return ""
    each = ", ".join(map(str, of_sides))
    why = f"a tenth of its {n} blocks or more" if gone >= _LOST * n else f"its {n} blocks unequally"
    return f"withheld: it loses {why}, since too few agents were measured ({gone} in all; by condition {each})"


def condition_column(columns: Iterable[str], path: str, name: str) -> str:
    """Return the column of a condition: the swept path, or the named column with the same meaning.

    If a whole field is swept, one column has the labels of the sweep. The named column can also compare runs of
    different cells, such as a fork and its source.

    Raises
    ------
    SpecError
        If there is none.
    """
    valid = [column for column in columns if column != "topic"]
    for column in (f"sweep.{path}", path, path.rpartition(".")[2]):
        if column in valid:
            return column
    raise SpecError(f"{path!r} is no condition of these runs; valid: {', '.join(valid) or 'none'}", name)


def effect(
    units: pd.DataFrame,
    by: Sequence[str],
    contrast: ContrastSpec,
    *,
    name: str = "contrast",
    role: Role = "exploratory",
    smallest: float | None = None,
    estimand: Estimand | None = None,
    level: float = 0.95,
) -> Effect:
    """Estimate a contrast of conditions with its interval.

    Parameters
    ----------
    units, by, contrast, name
        As for :func:`differences`.
    role : str
        ``primary``, ``secondary`` or ``exploratory``.
    smallest : float, optional
        Smallest effect of interest; by default that of the contrast.
    estimand, level
        As for :func:`opinionsim.analysis.estimate`.

    Raises
    ------
    SpecError
        As :func:`differences`.
    """
    contrast = _among(contrast, units, by, name)
    found = differences(units, by, contrast, name)
    design = design_of(units["topic"], units["block"])
    chosen = estimand or usual_estimand(units["topic"])
    one = units.attrs.get("limits", {}).get(contrast.quantity, ANY)
    least = contrast.smallest if contrast.smallest is not None else smallest
    evidence = str(found["evidence"].iloc[0])
    if why := _withholding(found):
        return Effect(name, contrast, role, no_estimate(why), evidence, found.drop(columns="value"), least)
    ends = np.sort([np.multiply(weight, one) for weight, _ in contrast.terms], axis=1).sum(axis=0)
    made = estimate(found["topic"], found["block"], found["value"], chosen, level, design, (ends[0], ends[1]))
    return Effect(name, contrast, role, made, evidence, found, least)


def declared_effects(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    analysis: AnalysisSpec,
    kind: str | None = None,
    estimand: Estimand | None = None,
    answers: pd.DataFrame | None = None,
) -> list[Effect]:
    """Estimate the contrasts of an analysis, primary first; without any, those that framings of topics suggest.

    Parameters
    ----------
    runs, metrics, analysis, kind, estimand
        As for :func:`contrast_tables`.
    answers : DataFrame, optional
        The frame `calls`, which records the models that answered.

    Returns
    -------
    list of Effect
        A declared contrast without a pair of complete runs has no value, and the reason; others are left out then.

    Raises
    ------
    SpecError
        If a contrast uses a condition or measure that these runs do not have.
    """
    usable = usable_runs(runs)
    # A condition of a sweep under way may have no complete run yet.
    known = condition_axes(runs)
    contrasts = [(name, _among(each, runs, known, name), role) for name, each, role in declared(usable, analysis)]
    if not contrasts:
        return []
    paths = {path: name for name, contrast, _ in contrasts for _, side in contrast.terms for path in side}
    if not analysis.contrasts:
        # Exploratory ones name columns of the frame, as the axes do.
        paths = {FRAMING: "contrast"}
    axes = [axis for axis in default_axes(usable) if axis != "topic"]
    by = list(dict.fromkeys([*(condition_column(usable.columns, path, name) for path, name in paths.items()), *axes]))
    measures = list(dict.fromkeys(contrast.quantity for _, contrast, _ in contrasts))
    units = unit_frame(runs, metrics, measures, by, kind)
    effects = []
    for name, contrast, role in contrasts:
        options: dict[str, Any] = {"smallest": analysis.smallest, "estimand": estimand or analysis.estimand}
        try:
            found = effect(units, by, contrast, name=name, role=role, **options)
            effects.append(replace(found, apart=_apart(usable, contrast, name, answers)))
        except SpecError as error:
            # A condition of a sweep under way may have no run yet.
            if role != "exploratory":
                reason, evidence = error.unplaced, str(units["evidence"].iloc[0])
                effects.append(Effect(name, contrast, role, no_estimate(reason), evidence, units[:0]))
    return effects


def _apart(usable: pd.DataFrame, contrast: ContrastSpec, name: str, answers: pd.DataFrame | None) -> str:
    """In what the runs of the conditions of a contrast differ beside these: days and models, where models answer."""
    if not BY_MODELS & set(usable["evidence"]):
        return ""
    days = pd.to_datetime(usable.get("begun_at", pd.Series(np.nan, usable.index)), unit="s").dt.strftime("%Y-%m-%d")
    told = {"the days on which their runs were begun": days.set_axis(usable["run_id"])}
    if answers is not None and not any(path.startswith("model") for _, side in contrast.terms for path in side):
        told["the models that answered"] = answers.set_index("run_id")["model"]
    sides = []
    for _, side in contrast.terms:
        own = usable
        for path, levels in side.items():
            own = own[named_levels(own[condition_column(usable.columns, path, name)]).isin(set(map(str, levels)))]
        sides.append(set(own["run_id"]))
    found = []
    for what, known in told.items():
        texts = [", ".join(sorted(set(known[known.index.isin(side)].dropna()))) for side in sides]
        if len(set(texts)) > 1:
            found.append(f"{what} ({' against '.join(dict.fromkeys(texts))})")
    return " and ".join(found)


def declared(usable: pd.DataFrame, analysis: AnalysisSpec) -> Iterator[tuple[str, ContrastSpec, Role]]:
    """The contrasts of an analysis, the primary one first; without any, those that framings of topics suggest."""
    if analysis.contrasts or analysis.primary is not None:
        for name in sorted(analysis.contrasts, key=lambda each: each != analysis.primary):
            yield name, analysis.contrasts[name], "primary" if name == analysis.primary else "secondary"
        return
    if not {"truth", "falsehood"} <= set(usable["framing"]):
        return
    axes = [axis for axis in default_axes(usable) if axis not in ("framing", "topic", FRAMING)]
    levels = in_order(usable[axes].drop_duplicates(), axes, usable) if axes else pd.DataFrame([{}])
    for measure in ("truth-pull", "agreement-bias"):
        for row in levels.to_numpy(dtype=object).tolist():
            names = [NOT_SET if pd.isna(level) else str(level) for level in row]
            side: dict[str, tuple[Level, ...]] = {axis: (level,) for axis, level in zip(axes, names, strict=True)}
            name = ": ".join([measure.replace("-", " "), *([", ".join(names)] if names else [])])
            yield name, ContrastSpec(measure=measure, of=side), "exploratory"


@part("table", name="contrasts", fits=lambda asked: asked.stance and not asked.as_published, metrics=True)
def contrast_tables(
    runs: pd.DataFrame,
    metrics: pd.DataFrame,
    analysis: AnalysisSpec | None = None,
    values: pd.DataFrame | None = None,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
    results: Results | None = None,
) -> list[Table]:
    """Tabulate the contrasts that a specification declares.

    Parameters
    ----------
    runs, metrics, kind, wording, estimand
        As for :func:`opinionsim.analysis.table`.
    analysis : AnalysisSpec, optional
        Analysis with the contrasts. Without contrasts, the table has truth pull and agreement bias as exploratory
        contrasts in every other condition, if topics have both framings.
    values : DataFrame, optional
        From :func:`opinionsim.metrics.named_metrics`.
    results : Results, optional
        Results whose calls record which models answered.

    Returns
    -------
    list of Table
        One table with one row per contrast: difference and d_z with intervals, p-value and finding. Empty without
        contrasts.

    Raises
    ------
    SpecError
        As :func:`differences`.

    Notes
    -----
    The primary p-value is not adjusted. Secondary p-values are adjusted as one family (:func:`adjusted`). Exploratory
    p-values are not adjusted and prove nothing. Intervals are for single contrasts.
    """
    analysis = analysis or AnalysisSpec()
    runs, _ = one_wording(runs, wording)
    if values is not None:
        metrics = metrics.merge(values, on=METRIC_KEYS)
    effects = declared_effects(runs, metrics, analysis, kind, estimand, answers_of(results) if results else None)
    if not effects:
        return []
    frame = contrast_frame(effects)
    cells = [_printed(record) for record in frame.to_dict("records")]
    # Columns without a number, as of what is not tested, are left out.
    shown = [head for head in cells[0] if any(each[head] != "-" for each in cells)]
    rows = [tuple(each[head] for head in shown) for each in cells]
    notes = [*interval_notes([each.estimate for each in effects]), *contrast_notes(effects)]
    return [finished("Contrasts", frame, (tuple(shown),), rows, 2, notes, "contrasts")]


def answers_of(results: Results) -> pd.DataFrame | None:
    """Return the frame `calls`; it is read only if several models answered under one name."""
    return results.calls if any(len(models) > 1 for models in results.answered.values()) else None


def contrast_frame(effects: Sequence[Effect]) -> pd.DataFrame:
    """Return the numbers of contrasts, one row each, with p-values of secondary contrasts adjusted as a family."""
    p = np.array([each.p_value for each in effects])
    secondary = np.array([each.role == "secondary" for each in effects], dtype=bool)
    p[secondary] = adjusted(p[secondary])
    return pd.DataFrame([_record(each, float(own)) for each, own in zip(effects, p, strict=True)])


def _record(each: Effect, p: float) -> dict[str, Any]:
    """The numbers of a contrast."""
    own = each.estimate
    size = own.effect if each.tested else (math.nan,) * 3
    return {
        **{"contrast": each.name, "measure": each.contrast.measure, "role": each.role},
        **own.columns("difference"),
        **dict(zip(("d_z", "d_z_ci_low", "d_z_ci_high"), size, strict=True)),
        **dict(zip(("p_sign_flip", "p_sign_flip_least"), each.sign_flips(), strict=True)),
        **{"p": each.p_value, "p_reported": p, "smallest": each.smallest, "finding": each.finding},
        **{"n": own.n, **own.basis, "evidence": each.evidence},
    }


def _printed(record: Mapping[Any, Any]) -> dict[str, str]:
    """A contrast as printed, by heading; a dash where there is nothing."""
    return {
        "contrast": record["contrast"],
        "role": record["role"],
        "difference [95 % CI]": number_text(record, "difference"),
        "d_z [95 % CI]": number_text(record, "d_z", "-"),
        "p": p_text(record["p_reported"]),
        "sign-flip p": p_text(record["p_sign_flip"]),
        "finding": record["finding"] or "-",
    }


def contrast_notes(effects: Sequence[Effect]) -> list[str]:
    """Describe what is compared, and how contrasts are paired and tested."""
    least = dict.fromkeys(p_text(each.sign_flips()[1]) for each in effects if each.tested and each.estimate.values)
    smallest = dict.fromkeys(each.smallest for each in effects if each.finding)
    given = {"effects": effects, "least": list(least), "smallest_effects": list(smallest), "no_finding": NO_FINDING}
    return sentences("opinionsim.analysis", "contrasts.txt", **given)
