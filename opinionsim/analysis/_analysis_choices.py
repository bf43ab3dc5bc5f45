"""The primary contrast under every combination of analysis choices, from recorded runs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pandas as pd

from opinionsim.analysis._contrasts import Effect, declared_effects
from opinionsim.analysis._means import Estimand, no_estimate
from opinionsim.analysis._units import METRIC_KEYS, counted
from opinionsim.errors import SpecError
from opinionsim.metrics import STANCE, named_metrics, one_wording, run_metrics, scale_of, step_metrics
from opinionsim.specification import AnalysisSpec, ChoicesSpec
from opinionsim.store import Results

_MOMENTS, _SERIES = ["bias", "diversity"], ["run_id", "cell", "instrument_id"]


def choice_effects(
    results: Results,
    analysis: AnalysisSpec,
    kind: str | None = None,
    estimand: Estimand | None = None,
    wording: str | None = None,
) -> Iterator[tuple[dict[str, Any], Effect]]:
    """Compute the primary contrast under every combination of analysis choices.

    Parameters
    ----------
    results : Results
        Results of an experiment.
    analysis : AnalysisSpec
        Analysis with a primary contrast, or with a single contrast.
    kind : str, optional
        Kind of text if the choices do not set it, as for :func:`opinionsim.analysis.table`.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`; default that of the analysis.
    wording : str, optional
        As for :func:`opinionsim.analysis.table`.

    Yields
    ------
    (dict, Effect)
        The choices by field (None for the default), and the contrast. If the runs cannot give the contrast, it has a
        reason instead of a value.
    """
    chosen, only = analysis.choices or ChoicesSpec(), analysis.deciding
    ((name, contrast),) = only.contrasts.items()
    runs, _ = one_wording(results.ordered_runs, wording)
    *_, turns = results.counted()

    @cache
    def coded(classifier: str | None, cut_off: str | None) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Runs, opinions and metrics by one instrument, with or without texts that were cut off."""
        own, values = runs, results.opinions
        if cut_off is not None:
            counts = values["coded"] if cut_off == "measure" else float("nan")
            values = values.assign(value=values["value"].where(values["status"] != "truncated", counts))
        if classifier is not None:
            is_stance = (values["variable"] == STANCE) & values["about"].isna()
            values = values[is_stance & (values["classifier"] == classifier)]
            first = values.groupby("cell")["instrument_id"].first()
            own = own.assign(instrument_id=own["cell"].astype(str).map(first))
        return own, values, metrics_of(results, own, values, contrast.quantity)

    for combination in product(*(values or (None,) for _, values in chosen)):
        choice = dict(zip(ChoicesSpec.model_fields, combination, strict=True))
        own, values, metrics = coded(choice["classifiers"], choice["truncated"])
        try:
            used, text = counted(own, metrics, choice["texts"] or kind)
            if (choice["last"] or 1) > 1:
                last = step_metrics(own, values, text, turns=turns).groupby(_SERIES).tail(choice["last"])
                used = used.drop(columns=_MOMENTS).merge(last.groupby(_SERIES)[_MOMENTS].mean(), on=_SERIES)
            (found,) = declared_effects(own, used, only, text, estimand)
        except SpecError as error:
            found = Effect(name, contrast, "primary", no_estimate(str(error)), str(runs["evidence"].iloc[0]), runs[:0])
        yield choice, found


def metrics_of(results: Results, runs: pd.DataFrame, opinions: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Metrics of runs; includes those that the specification names if a measure is not a default metric."""
    _, _, agents, turns = results.counted()
    metrics = run_metrics(runs, opinions, agents, turns=turns)
    if measure in metrics.columns:
        return metrics
    named = named_metrics(runs, opinions, results.named_metrics, scale_of(opinions), turns)
    return metrics.merge(named, on=METRIC_KEYS)
