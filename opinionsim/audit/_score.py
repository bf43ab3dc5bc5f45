"""Compare an instrument with labels: agreement, errors, mirrored claims, and the statement that tables show."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis import Table, number_text, spread_of
from opinionsim.audit._correct import mean_error
from opinionsim.audit._diversity import misclassification
from opinionsim.audit._label_agreement import coefficients, confusion
from opinionsim.audit._labels import combined, labels_of
from opinionsim.audit._sample import NO_OPINION, Sample, axes_of, sample_of
from opinionsim.classifiers import Item, load_classifier
from opinionsim.errors import SpecError
from opinionsim.metrics import NOT_VALIDATED, named_levels, order_levels
from opinionsim.specification import Experiment, PlannedRun, load_experiment
from opinionsim.store import Results, open_store
from opinionsim.topics import Claim

#: Fewest texts for which coefficients are given.
ENOUGH = 50
_COEFFICIENTS = {
    name: name.replace("_", " ") for name in ("kappa", "weighted_kappa", "alpha_ordinal", "alpha_interval")
}
#: What texts call a masked claim.
_MASK = re.compile(r"(?i)\b(theory XYZ|XYZ|this theory|the claim)\b")


def people_of(sample: Sample) -> list[str]:
    """Return the coders of a sample who are people."""
    return sorted(name for name, evidence in sample.audit.coders.items() if evidence == "human")


def judged(results: Results, sample: Sample) -> tuple[pd.DataFrame, list[str]]:
    """Return the texts of a sample with their labels (column ``label``), and the coders whose labels are combined.

    If there are labels from people, only these count. Otherwise, labels from models check consistency.
    """
    labels = labels_of(results, sample)
    used = people_of(sample) or sorted(sample.audit.coders)
    return sample.texts.assign(label=combined(labels[used])), used


def score_tables(results: Results, sample: Sample, *, mirror: bool = False, seed: int = 0) -> list[Table]:
    """Make tables that compare an instrument with labels.

    Parameters
    ----------
    results : Results
        The results.
    sample : Sample
        Sample with labels.
    mirror : bool
        Whether to code the texts again with the opposite claim.
    seed : int
        Seed of the resamples.

    Returns
    -------
    list of Table
        Agreement by coder, topic, framing and condition; confusion matrices; errors by condition; mirrored claims.
    """
    texts, used = judged(results, sample)
    made = [_agreement(results, sample, texts, used, seed), _matrices(sample, texts), _errors(sample, texts)]
    return [*made, _mirrored(results, sample)] if mirror else made


def keep_findings(results: Results, sample: Sample, seed: int = 0) -> list[str]:
    """Store the findings for each instrument and model, which tables then state, and return the statements."""
    texts, used = judged(results, sample)
    people, kind = people_of(sample), sample.audit.sample["kind"]
    findings = []
    for (instrument, model), own in texts.groupby(["instrument_id", "model"], dropna=False):
        without = int(own["label"].isna().sum())
        who = f"{len(used)} {'person' if len(used) == 1 else 'people'}" if people else f"the model {', '.join(used)}"
        those = f", {without} of them without an opinion" if without else ""
        error = number_text(_error(own), "error")
        said = [f"labels of {who} on {len(own)} texts of kind {kind}{those}: mean error {error}"]
        found = _coefficients(_pair(own, sample), own, sample, seed)
        for name, mark in (("kappa", " with no opinion as a category"), ("weighted_kappa", "")):
            if not math.isnan(found[name]) and (without or not mark):
                said.append(f"{_COEFFICIENTS[name]} {number_text(found, name)}{mark}")
        text = ("audited by " if people else f"{NOT_VALIDATED}; consistency with ") + ", ".join(said)
        findings.append({"instrument_id": instrument, "model": model, "people": bool(people), "text": text})
    with open_store(results.url) as opened:
        opened.save_audit(replace(sample.audit, findings=tuple(findings)))
    return [str(each["text"]) for each in findings]


def misreadings(results: Results, audit: str | None = None) -> tuple[np.ndarray, str]:
    """Estimate the errors of an instrument from labels of people.

    Parameters
    ----------
    results : Results
        The results.
    audit : str, optional
        Identity of the sample; by default the last one drawn.

    Returns
    -------
    (ndarray (3, k, k), str)
        Probability of each reading given the true point: the best estimate, and estimates with errors as rare and as
        common as the 95 % interval of their rate allows. The text names the audit and its number of labels.

    Raises
    ------
    StoreError
        If there is no such audit.
    SpecError
        If the sample has no labels from people.
    """
    from scipy.stats import beta

    sample = sample_of(results, audit)
    texts, _ = judged(results, sample)
    known = texts[texts[["label", "value"]].notna().all(axis=1)]
    if not people_of(sample) or known.empty:
        raise SpecError(f"audit {sample.audit.audit_id} has no labels from people; `opinionsim audit score` adds them")
    label, reading = _pair(known, sample)
    pairs = confusion(label, reading, sample.scale.points)
    matrix, wrong = misclassification(pairs), int((label != reading).sum())
    rates = 1.0 - np.diag(matrix)
    # After Jeffreys, whose interval holds where few texts or none are misread.
    ends = beta.ppf((0.025, 0.975), wrong + 0.5, len(known) - wrong + 0.5)
    ends /= np.average(rates, weights=pairs.sum(axis=1))
    # No point becomes one that is read wrongly more often than not, unless labels say so.
    factors = [np.minimum(each, np.maximum(0.5 / rates, 1.0))[:, None] for each in (1.0, *ends)]
    found = np.array([each * matrix + (1.0 - each) * np.eye(len(matrix)) for each in factors])
    return found, f"audit {sample.audit.audit_id}, {len(known)} labels"


def _error(texts: pd.DataFrame) -> dict[str, float]:
    """Mean of readings less mean of labels, by inverse inclusion probabilities, and its interval for these texts."""
    weights = 1 / texts["probability"].to_numpy(float)
    mean, parts = mean_error(texts["value"].to_numpy(float), texts["label"].to_numpy(float), weights, weights)
    low, high = spread_of([mean + len(texts) * parts], "crossed", "these-topics").interval()
    return {"n": len(texts), "error": mean, "error_ci_low": float(low), "error_ci_high": float(high)}


def _coefficients(labels: np.ndarray, texts: pd.DataFrame, sample: Sample, seed: int) -> dict[str, Any]:
    """Coefficients of labels (coders, texts), ends of their intervals, and reasons; counts alone below 50 texts."""
    n, placed = labels.shape[1], int(((~np.isnan(labels)).sum(axis=0) > 1).sum())
    row: dict[str, Any] = {"n": n, "placed": placed, **dict.fromkeys(_COEFFICIENTS, math.nan)}
    weights = 1 / texts["probability"].to_numpy(float)
    for name, own in coefficients(labels, sample.scale.points, weights, seed).items() if n >= ENOUGH else ():
        if name == "kappa" or placed >= ENOUGH:
            row |= {name: own.value, f"{name}_ci_low": own.low, f"{name}_ci_high": own.high}
            row[f"{name}_reason"] = own.reason
    return row


def _pair(texts: pd.DataFrame, sample: Sample) -> np.ndarray:
    """Labels and readings, (2, texts)."""
    return np.stack([_points(texts["label"], sample), texts["value"].to_numpy(float)])


def _points(labels: pd.Series[float], sample: Sample) -> np.ndarray:
    """Labels as points of the scale: a half point becomes the one nearer to neutral."""
    known = {value: float(sample.scale.nearest(value)) for value in labels.dropna().unique()}
    return labels.map(known).to_numpy(float)


def _strata(sample: Sample, texts: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """All texts, then those of each level of conditions, topic and framing."""
    yield "all", texts
    for axis in dict.fromkeys((*axes_of(sample), "topic", "framing")):
        levels = named_levels(texts[axis])
        if levels.nunique() > 1:
            for level in order_levels(levels):
                yield f"{axis}={level}", texts[levels == level]


def _agreement(results: Results, sample: Sample, texts: pd.DataFrame, used: list[str], seed: int) -> Table:
    labels, rows = labels_of(results, sample), list[dict[str, Any]]()
    for stratum, own in _strata(sample, texts):
        found = _coefficients(_pair(own, sample), own, sample, seed)
        rows.append({"of": "instrument and labels", "texts": stratum, **found})
    for names in [*map(list, combinations(labels.columns, 2)), *([used] if used[2:] else [])]:
        found = _coefficients(labels[names].to_numpy(float).T, texts, sample, seed)
        rows.append({"of": " and ".join(names), "texts": "all", **found})
    divided = labels[used].isna().mean(axis=1).between(0, 1, "neither").sum()
    reasons = {str(value) for row in rows for name, value in row.items() if name.endswith("_reason")}
    told = {"coders": used, "people": people_of(sample), "texts": len(texts), "divided": divided, "enough": ENOUGH}
    told |= {"without": int(texts["label"].isna().sum()), "unread": int(texts["value"].isna().sum())}
    told |= {"reasons": sorted(reasons - {""})}
    shown = {"of": "between", "texts": "texts", "n": "n", "placed": "on the scale", **_COEFFICIENTS}
    return sample.table("agreement", "Agreement of instrument and labels", rows, shown, 2, **told)


def _matrices(sample: Sample, texts: pd.DataFrame) -> Table:
    points = [*sample.scale.points, math.inf]
    names = [*sample.scale.points, NO_OPINION]
    rows: list[dict[str, Any]] = []
    for stratum, own in _strata(sample, texts):
        both = np.nan_to_num(_pair(own, sample), nan=math.inf)
        for name, counts in zip(names, confusion(both[0], both[1], points), strict=True):
            read = {f"read {each}": int(count) for each, count in zip(names, counts, strict=True)}
            rows.append({"texts": stratum, "label": name, **read})
    return sample.table("confusion", "Labels and readings", rows, {each: each for each in rows[0]}, 2)


def _errors(sample: Sample, texts: pd.DataFrame) -> Table:
    rows: list[dict[str, Any]] = [{"texts": stratum, **_error(own)} for stratum, own in _strata(sample, texts)]
    told = []
    for axis in axes_of(sample):
        for first, second in combinations([row for row in rows if str(row["texts"]).startswith(f"{axis}=")], 2):
            gap = second["error"] - first["error"]
            half = math.hypot(*(row["error_ci_high"] - row["error"] for row in (first, second)))
            if abs(gap) > half:
                ends = {"gap": gap, "gap_ci_low": gap - half, "gap_ci_high": gap + half}
                told.append(f"{second['texts']} less {first['texts']} {number_text(ends, 'gap')}")
    shown = {"texts": "texts", "n": "n", "error": "mean error"}
    return sample.table("errors", "Errors of the instrument", rows, shown, 1, differing=told)


def _mirrored(results: Results, sample: Sample) -> Table:
    """The texts coded again with the claim of the other side: an instrument without a side answers the opposite."""
    experiment = load_experiment(results.manifest)
    planned = {run.run_id: run for run in experiment.runs}
    texts = sample.texts.reset_index(drop=True)
    # What a masked claim is called says the same of either side, so that the claim is put in its place.
    names = [f"the theory that {claim}".replace("\\", r"\\") for claim in texts["claim"]]
    said = [_MASK.sub(name, str(text)) for name, text in zip(names, texts["text"], strict=True)]
    masked = texts["text"] != said
    texts["text"] = said
    for instrument, places in texts.groupby("instrument_id").indices.items():
        own = texts.iloc[places]
        spec = planned[own["run_id"].iloc[0]].spec
        chosen = next(each for each in spec.instruments if each.instrument_id == instrument)
        coder = load_classifier(chosen.classifier.name, chosen.opinions, **chosen.classifier.options)
        claims = {run_id: _other_side(experiment, planned[run_id]) for run_id in set(own["run_id"])}
        found = coder.classify([Item(str(row.text), claims[row.run_id]) for row in own.itertuples()]).value
        texts.loc[places, "label"] = 2 * sample.scale.neutral - found
        if len(own := own[masked.iloc[places]]):
            sides = {run_id: experiment.resources.claim(planned[run_id].spec) for run_id in set(own["run_id"])}
            found = coder.classify([Item(str(row.text), sides[row.run_id]) for row in own.itertuples()]).value
            texts.loc[own.index, "value"] = found
    rows = []
    for stratum, every in _strata(sample, texts):
        own = every.dropna(subset=["label", "value"])
        both, same = _error(own), float((own["label"] == own["value"]).mean())
        ends = {f"yes{end}": both[f"error{end}"] / 2 for end in ("", "_ci_low", "_ci_high")}
        rows.append({"texts": stratum, "n": both["n"], "opposite": same, **ends})
    shown = {"texts": "texts", "n": "n", "opposite": "opposite", "yes": "towards yes"}
    return sample.table("mirror", "Mirrored claims", rows, shown, 1, masked=int(masked.sum()))


def _other_side(experiment: Experiment, planned: PlannedRun) -> Claim:
    """The claim of the other side of a run's topic."""
    given = planned.spec.topic
    topic = None if given is None else experiment.resources.topic(given)
    sides = [] if topic is None or given is None else [side for side in topic.claims if side != given.framing]
    if topic is None or len(sides) != 1:
        raise SpecError(f"the mirror check needs a topic with two sides; run {planned.run_id} has none")
    return topic.claim(sides[0])
