"""Tables of raw and corrected numbers, and all that a report shows."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from opinionsim.analysis import Estimand, Table, interval_notes
from opinionsim.audit._correct import BOTH, bias_frames, conditions
from opinionsim.audit._diversity import FAMILIES, correct_diversity
from opinionsim.audit._sample import KEYS, Sample, axes_of, counted_texts, sample_of
from opinionsim.audit._score import judged, people_of, score_tables
from opinionsim.errors import SpecError
from opinionsim.specification import analysis_of
from opinionsim.store import Results


def correction_tables(
    results: Results,
    sample: Sample,
    estimand: Estimand | None = None,
    *,
    diversity: bool = True,
    simulations: int = 100,
    seed: int = 0,
) -> list[Table]:
    """Tabulate raw and corrected mean opinions, their contrasts, and diversity under two families of true opinions.

    Parameters
    ----------
    results : Results
        Results of the experiment.
    sample : Sample
        Sample with labels from people.
    estimand : str, optional
        As for :func:`opinionsim.analysis.estimate`; by default that of the specification.
    diversity : bool
        Whether to correct diversity as well.
    simulations, seed
        As for :func:`correct_diversity`.

    Raises
    ------
    SpecError
        If no person has labelled the sample.
    """
    if not (people := people_of(sample)):
        raise SpecError(
            f"audit {sample.audit.audit_id} has no labels from people; add them with `opinionsim audit score`. Labels "
            "from models only check consistency and do not correct numbers"
        )
    labels, _ = judged(results, sample)
    texts, _ = counted_texts(results, sample.audit.sample["kind"])
    texts, by = texts.assign(evidence=texts["evidence_of_run"]), axes_of(sample)
    frame, contrasts, estimates = bias_frames(
        texts, labels, by, estimand or analysis_of(results.spec, results.left_out).estimand
    )
    shown = {name: name for name in (*by, "labels")} | {"without": "no opinion"}
    shown |= {name: name for name in ("error", *BOTH)}
    late = int((texts["begun_at"] > sample.audit.made_at).sum())
    told = {"n_labels": len(labels), "coders": people, "intervals": interval_notes(*estimates)}
    told["without"] = int(labels["label"].isna().sum())
    told["pooled"] = texts.loc[~texts["run_id"].isin(labels.dropna(subset="label")["run_id"]), "run_id"].nunique()
    made = [sample.table("bias", "Mean opinion as read and corrected", frame, shown, len(by), late=late, **told)]
    if len(contrasts):
        reasons = list(dict.fromkeys(filter(None, contrasts["no_interval"])))
        shown = {name: name for name in ("contrast", *BOTH)}
        made.append(sample.table("contrasts", "Contrasts as read and corrected", contrasts, shown, 1, reasons=reasons))
    if diversity:
        made.append(_diversity(texts, labels, sample, simulations, seed))
    return made


def report_tables(results: Results) -> list[Table]:
    """Make all tables of the last audit.

    Raises
    ------
    StoreError
        If no audit was drawn.
    SpecError
        If nobody has labelled it.
    """
    sample = sample_of(results)
    return [*score_tables(results, sample), *correction_tables(results, sample)]


def _diversity(texts: pd.DataFrame, labels: pd.DataFrame, sample: Sample, simulations: int, seed: int) -> Table:
    rows, by = [], axes_of(sample)
    # Opinions alone have a spread: a text that is known to have none has no part, nor one without a reading.
    texts = texts.merge(labels[[*KEYS, "label"]], on=KEYS, how="left", indicator="drawn")
    opinion = texts["value"].notna() & ((texts["drawn"] == "left_only") | texts["label"].notna())
    for levels, group in conditions(texts.assign(opinion=opinion), by):
        own = group[group["opinion"]]
        row: dict[str, Any] = {**levels, "labels": int(own["label"].notna().sum())}
        for family in FAMILIES if row["labels"] else ():
            told = (own["value"], own["run_id"], own["label"], sample.scale.points, family)
            found = correct_diversity(*told, simulations=simulations, seed=seed)
            row |= {"raw": found.raw, family: found.corrected, f"{family}_removed": found.removed}
            row |= {f"{family}_ci_low": found.low, f"{family}_ci_high": found.high}
        rows.append(row)
    shown = {name: name for name in (*by, "labels", "raw")} | {"free": "free classes", "camps": "one or two camps"}
    rows = [dict.fromkeys(shown, math.nan) | row for row in rows]
    counts = {"simulations": simulations, "without": int(labels["label"].isna().sum()), "n_labels": len(labels)}
    return sample.table("diversity", "Diversity as read and corrected", rows, shown, len(by), **counts)
