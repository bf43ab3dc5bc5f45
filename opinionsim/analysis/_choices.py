"""The primary contrast under every combination of choices of analysis, from what is on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from opinionsim.analysis._contrasts import NO_FINDING, Effect, declared_effects
from opinionsim.analysis._estimates import Estimand, no_estimate
from opinionsim.analysis._table import Table, finished, interval_text
from opinionsim.analysis._units import METRIC_KEYS, counted, interval_notes
from opinionsim.contrasts import AnalysisSpec, ChoicesSpec
from opinionsim.errors import SpecError
from opinionsim.measurement import STANCE
from opinionsim.metrics import named_metrics, one_wording, run_metrics, scale_of, step_metrics

if TYPE_CHECKING:
    from opinionsim.store import Results

#: Choices of analysis by field, in words.
WAYS: Mapping[str, str] = {
    "texts": "kind of text",
    "classifiers": "instrument",
    "last": "last steps",
    "truncated": "texts cut off",
    "sparse": "sparse runs",
}
_MOMENTS = ["bias", "diversity"]


def choice_effects(
    results: Results, analysis: AnalysisSpec, kind: str | None = None, estimand: Estimand | None = None
) -> Iterator[tuple[dict[str, Any], Effect]]:
    """The primary contrast under every combination of the choices of an analysis.

    Parameters
    ----------
    results : Results
        Results of an experiment, whose frames are read.
    analysis : AnalysisSpec
        Its analysis, with a primary contrast or only one.
    kind : str, optional
        Kind of text where the choices name none, as for :func:`opinionsim.analysis.table`.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`; default that of the analysis.

    Yields
    ------
    (dict, Effect)
        The choice by its field, None for the usual one; and the contrast, without a value but with a reason where the
        runs do not have it.
    """
    chosen, only = analysis.choices or ChoicesSpec(), analysis.deciding
    contrast = only.contrasts[str(only.primary)]
    runs, _ = one_wording(results.ordered_runs)
    _, opinions, agents, turns = results.counted()

    @cache
    def coded(classifier: str | None, cut_off: str | None) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Runs, opinions and metrics by one instrument, with texts that were cut off or without."""
        own, values, cut = runs, opinions, opinions["condition"] == "truncated"
        if cut_off is not None:
            other = values["coded"] if cut_off == "measure" else float("nan")
            values = values.assign(value=values["value"].where(~cut, other))
        if classifier is not None:
            is_stance = (values["variable"] == STANCE) & values["about"].isna()
            values = values[is_stance & (values["classifier"] == classifier)]
            first = values.groupby("cell")["instrument_id"].first()
            own = own.assign(instrument_id=own["cell"].astype(str).map(first))
        return own, values, metrics_of(results, own, values, agents, turns, contrast.quantity)

    for combination in product(*(getattr(chosen, way) or (None,) for way in WAYS)):
        choice = dict(zip(WAYS, combination, strict=True))
        own, values, metrics = coded(choice["classifiers"], choice["truncated"])
        try:
            used, text = counted(own, metrics, choice["texts"] or kind)
            if (choice["last"] or 1) > 1:
                steps = step_metrics(own, values, text)
                keys = [key for key in METRIC_KEYS if key != "kind"]
                means = steps.groupby(keys).tail(choice["last"]).groupby(keys)[_MOMENTS].mean()
                used = used.drop(columns=_MOMENTS).merge(means, on=keys)
            used = used[~used["sparse"]] if choice["sparse"] == "left out" else used
            (found,) = declared_effects(own, used, only, text, estimand)
        except SpecError as error:
            evidence = str(runs["evidence"].iloc[0])
            found = Effect(str(only.primary), contrast, "primary", no_estimate(str(error)), evidence, used[:0])
        yield choice, found


def metrics_of(
    results: Results,
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    agents: pd.DataFrame,
    turns: pd.DataFrame,
    measure: str,
) -> pd.DataFrame:
    """Metrics of runs, those that the specification names included where a measure is none of the usual ones."""
    metrics = run_metrics(runs, opinions, agents, turns=turns)
    if measure in metrics.columns:
        return metrics
    named = named_metrics(runs, opinions, results.spec["measurement"]["metrics"], scale_of(opinions))
    return metrics.merge(named, on=METRIC_KEYS)


def choice_table(effects: list[tuple[dict[str, Any], Effect]]) -> Table:
    """The table of a contrast under choices of analysis, from :func:`choice_effects`: one row a combination."""
    varied = [way for way in WAYS if len({choice[way] for choice, _ in effects}) > 1]
    records = [{**choice, **estimate_record(found)} for choice, found in effects]
    rows = [
        (*(str(record[way]) for way in varied), record["units"] or "-", difference_text(record)) for record in records
    ]
    header = ((*(WAYS[way] for way in varied), "units", "difference [95 % CI]"),)
    frame, name = pd.DataFrame(records), effects[0][1].name
    known = frame["difference"].dropna()
    notes = [
        *interval_notes([found.estimate for _, found in effects]),
        f"{name}, under every combination of analysis.choices: from {known.min():.2f} to {known.max():.2f}."
        if len(known)
        else f"{name} has a value under no combination.",
        "One set of runs read in several ways: intervals are not adjusted, and how many exclude 0 proves nothing.",
        NO_FINDING if any(found.scripted for _, found in effects) else "",
    ]
    made = finished("Choices of analysis", frame, header, rows, len(varied), notes)
    return Table(made.title, header, tuple(rows), len(varied), frame, made.notes, "choices")


def estimate_record(found: Effect) -> dict[str, Any]:
    """The numbers of a contrast, as columns of frames."""
    own = found.estimate
    names = ("estimand", "unit", "n", "units", "method", "level", "left_out")
    ends = {"difference": own.mean, "difference_ci_low": own.low, "difference_ci_high": own.high}
    rest = {"no_interval": own.reason, "evidence": found.evidence}
    return {"contrast": found.name, **ends, **{name: getattr(own, name) for name in names}, **rest}


def difference_text(record: Mapping[str, Any], name: str = "difference") -> str:
    """A difference with its interval as printed."""
    return interval_text(*(record[column] for column in (name, f"{name}_ci_low", f"{name}_ci_high")))
