"""Numbers of a study: its primary outcome by condition, its contrasts, and how agents changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from opinionsim.analysis._asked import Asked
from opinionsim.analysis._contrasts import Effect, answers_of, contrast_frame, contrast_notes, declared_effects
from opinionsim.analysis._means import Estimand
from opinionsim.analysis._opinion_tables import opinion_notes
from opinionsim.analysis._units import MEASURES, METRIC_KEYS, by_condition, default_axes, interval_notes
from opinionsim.metrics import evidence_statement, none_complete, one_wording, topic_titles, wording_statement
from opinionsim.store import Results


@dataclass(frozen=True, eq=False)
class Outcome:
    """Numbers of the primary outcome of a study.

    Attributes
    ----------
    measure : str
        Primary outcome: the measure of the primary contrast, or of the only contrast. Without contrasts, ``bias``, the
        mean opinion at the end.
    axes : tuple of str
        Columns of `conditions` and `units` that define a condition.
    conditions : DataFrame
        One row per condition, in the order of the specification, with the columns of the table ``opinions``: the means
        and intervals of the primary outcome, of mean opinion and diversity, how many agents and runs were measured, and
        the change of agents with an opinion at both ends, with its bounds.
    units : DataFrame
        One value of the outcome for every condition, topic and block.
    contrasts : DataFrame
        One row per contrast, with the columns of the table ``contrasts``; empty without any.
    effects : tuple of Effect
        The contrasts themselves.
    notes : tuple of str
        How to read the numbers, as under the tables.
    titles : mapping of str to str
        Titles of topics by their names.
    """

    measure: str
    axes: tuple[str, ...]
    conditions: pd.DataFrame
    units: pd.DataFrame
    contrasts: pd.DataFrame
    effects: tuple[Effect, ...]
    notes: tuple[str, ...]
    titles: Mapping[str, str]

    @property
    def evidence(self) -> str:
        """Kind of evidence of the runs, in words."""
        return evidence_statement(self.conditions["evidence"])

    @property
    def frame(self) -> pd.DataFrame:
        """All numbers in one frame; its first column, ``of``, says whether a row is a condition, unit or contrast."""
        parts = {"condition": self.conditions, "unit": self.units, "contrast": self.contrasts}
        named = [each.assign(of=name).astype({"of": object}) for name, each in parts.items() if len(each)]
        found = pd.concat(named, ignore_index=True)
        return found[["of", *found.columns.drop("of")]]


def outcome_data(
    results: Results, kind: str | None = None, wording: str | None = None, estimand: Estimand | None = None
) -> Outcome:
    """Compute the primary outcome of a study by condition, its contrasts, and the change of agents.

    Parameters
    ----------
    results : Results
        Results; only complete runs are used.
    kind, wording, estimand
        As for :func:`opinionsim.analysis.table`; the estimand defaults to that of the specification.

    Returns
    -------
    Outcome
        The numbers that the tables ``opinions`` and ``contrasts`` print.

    Raises
    ------
    SpecError
        If no run is complete or has that wording, or no stance was measured; if a contrast is of a condition or measure
        that these runs do not have.
    """
    asked = Asked(results, kind, wording, estimand=estimand)
    runs, left_out = one_wording(asked.runs, wording)
    if not (runs["status"] == "complete").any():
        raise none_complete(runs, "to draw")
    analysis, metrics = asked.analysis, asked.metrics
    if asked.values is not None:
        metrics = metrics.merge(asked.values, on=METRIC_KEYS)
    deciding = analysis.contrasts.get(analysis.decides or "")
    measure, axes = deciding.quantity if deciding else MEASURES[0], default_axes(runs)
    effects = declared_effects(runs, metrics, analysis, asked.kind, asked.estimand, answers_of(results))
    measures = tuple(dict.fromkeys((measure, *MEASURES)))
    made = by_condition(runs, metrics, axes, asked.kind, asked.estimand, measures)
    about = interval_notes(made.estimates[0])
    notes = opinion_notes(runs, metrics, made.rows, made.kind, about, ends=measure == "diversity")
    # Captions begin each note with a capital letter, which names of contrasts need not have.
    named = tuple(f"{each.name}:" for each in effects)
    compared = (f"Contrast {each}" if each.startswith(named) else each for each in contrast_notes(effects))
    told = wording_statement(left_out["wording"], wording) if len(left_out) else ""
    return Outcome(
        measure,
        tuple(axes),
        made.frame,
        made.units[[*dict.fromkeys([*axes, "evidence", "topic", "block", measure])]],
        contrast_frame(effects),
        tuple(effects),
        (*notes, *(compared if effects else ()), *filter(None, [told])),
        topic_titles(runs),
    )
