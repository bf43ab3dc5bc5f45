"""Validation of a model against a survey, in which the model answers items as a respondent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.classifiers import parse_closed
from opinionsim.comparison.people._answer_agreement import ItemAgreement, intervals
from opinionsim.errors import SpecError, SurveyError, whole_number
from opinionsim.foundation.templates import sentences
from opinionsim.metrics import evidence_statement, played_by
from opinionsim.opinions import OpinionScale
from opinionsim.specification import Experiment, Overrides, load_experiment
from opinionsim.store import Results
from opinionsim.surveys import Survey, SurveyItem, items_of, load_mapping, load_survey, subgroups_of

#: Fields of the specification that can be changed.
_CHANGEABLE = ("model", "execution", "prompts")

#: Whether the training data of the model may hold the answers to an item, which depends on when it was asked.
_MAY_BE_KNOWN = "may be in the training data"
_LATER = "asked after the cutoff"
_NO_CUTOFF = "may be in the training data: no cutoff is given"
_UNDATED = "may be in the training data: the mapping gives no date"


@dataclass(frozen=True, eq=False)
class SurveyValidation:
    """How well a model's answers match those of respondents.

    Attributes
    ----------
    title : str
        Begins with the kind of evidence.
    measures : DataFrame
        One row for each ``item`` (``all`` for the mean over several items), ``measure`` and ``of`` (the source of the
        answers), with ``value``, ``low`` and ``high`` (:func:`opinionsim.comparison.intervals`).
    items : DataFrame
        One row per item: ``item``, ``question``, ``asked``, ``training_data``; ``drawn`` respondents, how many of them
        have no answer (``missing``) or none from the model (``model_missing``, ``again_missing``), ``pairs`` of
        answers, and ``trained_on``, the number of other respondents in the regression's training data.
    subgroups : DataFrame
        One row per subgroup and item (:meth:`opinionsim.comparison.ItemAgreement.subgroups`).
    findings : tuple of str
        Statements about the intervals; none for scripted answers.
    notes : tuple of str
        How to read the numbers.

    Notes
    -----
    Every frame has a column ``evidence``.
    """

    title: str
    measures: pd.DataFrame
    items: pd.DataFrame
    subgroups: pd.DataFrame
    findings: tuple[str, ...]
    notes: tuple[str, ...]


def validation_experiment(
    survey: str | Path,
    mapping: str | Path,
    *,
    items: Sequence[str] | None = None,
    size: int = 200,
    model: str = "scripted",
    seed: int = 0,
    overrides: Overrides = (),
) -> Experiment:
    """Build the experiment that asks simulated respondents of a survey each held-out item twice.

    Parameters
    ----------
    survey, mapping : str or Path
        Data and mapping, as for :func:`opinionsim.surveys.load_survey`.
    items : sequence of str, optional
        Names of the items; default all columns of the mapping with a question and options.
    size : int
        Number of respondents, drawn by weight without replacement; at least 2, and at most half of the survey, which
        leaves the other half to train the regression.
    model : str
        Chat model that plays the respondents.
    seed : int
        Root of all randomness.
    overrides : mapping or iterable of str
        Changes of the fields `model`, `execution` and `prompts`, as for :func:`opinionsim.load_experiment`.

    Returns
    -------
    Experiment
        One run for each item. All runs have the same respondents, who have no assigned opinion and no memory and only
        answer off-record questions.

    Raises
    ------
    SurveyError
        If survey, mapping, items or size do not fit.
    SpecError
        If a model or another field is not valid, or `overrides` changes another field.
    """
    overrides = overrides if isinstance(overrides, Mapping) else tuple(overrides)
    for path in overrides:
        if re.split(r"[.=]", path)[0].strip() not in _CHANGEABLE:
            raise SpecError(f"{path!r}: in a validation, only {', '.join(_CHANGEABLE)} can be changed")
    loaded = load_survey(survey, load_mapping(mapping))
    chosen = items_of(loaded, items)
    _check_size(loaded, size)
    for item in chosen:
        _check_readable(item)
    known = re.sub(r"[^A-Za-z0-9._-]+", "-", loaded.mapping.name)[:80]
    spec = {
        "name": f"validate-{known}",
        "description": "Held-out items of a survey, asked of its respondents.",
        "seed": seed,
        "population": {"personas": "survey", "size": size, "initial_opinions": "none"},
        "survey": {"file": str(survey), "mapping": str(mapping)},
        "cognition": {"memory": "none", "world": "open"},
        "interaction": {"kind": "independent", "reports": 0},
        "model": {"name": model},
        # Self-reports are numbers: the instrument has nothing to interpret.
        "measurement": {"classifier": "exact", "self_report": {"before": 2}},
        "sweep": [
            {
                "task": [item.question],
                "scale": [{"label": item.name, "points": list(item.points), "labels": list(item.labels)}],
            }
            for item in chosen
        ],
    }
    return load_experiment(spec, overrides)


def _check_readable(item: SurveyItem) -> None:
    """Refuse options whose words would be read as other options, such as numbers out of order."""
    scale = OpinionScale(item.points, item.labels)
    for point, label in zip(item.points, item.labels, strict=True):
        if parse_closed(label, scale) not in (point, None) or parse_closed(str(point), scale) != point:
            raise SurveyError(
                f"the answer {point}: {label} to {item.name!r} could be confused with another answer; agents see "
                f"{', '.join(f'{p}: {each}' for p, each in zip(item.points, item.labels, strict=True))}; reword the "
                "options with recode, or use whole numbers in increasing order"
            )


def _check_size(survey: Survey, size: int) -> None:
    """Refuse samples that are none, and those that leave too few respondents for the regression."""
    whole_number("size", size, 2, SurveyError)
    there = survey.n if survey.weights is None else int((survey.weights > 0).sum())
    if size > there // 2:
        raise SurveyError(
            f"size {size} leaves {max(there - size, 0)} of {there} respondents to train the regression on, fewer than "
            f"are drawn; " + (f"valid: 2 to {there // 2}" if there >= 4 else "a survey needs at least 4 respondents")
        )


def read_validation(experiment: Experiment, results: Results, *, cutoff: date | None = None) -> SurveyValidation:
    """Compare the model's answers in a completed validation with those of the respondents.

    Parameters
    ----------
    experiment : Experiment
        From :func:`validation_experiment`.
    results : Results
        Return value of :func:`opinionsim.run` for the experiment. Items with an incomplete run are left out, and a note
        names them.
    cutoff : date, optional
        Last day that the model's training data may cover.

    Raises
    ------
    SurveyError
        If no item has a complete run, or no respondent outside the drawn ones has answered an item.
    """
    survey = experiment.resources.survey(experiment.spec)
    runs = results.runs.drop_duplicates("run_id").set_index("run_id")
    found, evidence, models, left_out = [], list[str](), list[str](), []
    groups = subgroups_of(survey)
    told = groups.of([column.variable for column in survey.mapping.columns if column.clause is not None])
    if not told.names:
        raise SurveyError(f"the mapping of survey {survey.mapping.name!r} has no column with a clause for agents")
    names = [str(planned.cell.axes["scale"]) for planned in experiment.runs]
    for planned, item in zip(experiment.runs, items_of(survey, names), strict=True):
        if planned.run_id not in runs.index or runs.at[planned.run_id, "status"] != "complete":
            left_out.append(item.name)
            continue
        drawn, first, second = _answers(survey, item, planned.run_id, results)
        found.append(ItemAgreement(item, survey.weights, groups, told, drawn, first, second))
        evidence.append(str(runs.at[planned.run_id, "evidence"]))
        models.append(str(runs.at[planned.run_id, "model"]))
    if not found:
        reasons = [str(error) for error in results.runs["error"] if error]
        raise SurveyError(f"no item has a complete run{': ' + reasons[0] if reasons else ''}")
    measures = intervals(found)
    listed = pd.DataFrame([_described(each, cutoff) for each in found])
    compared = pd.concat([each.subgroups() for each in found], ignore_index=True)
    size = len(found[0].own)
    kinds = set(evidence)
    by = played_by(models, evidence)
    title = (
        f"{evidence_statement(kinds)}. Survey {survey.mapping.name!r}, {size:,} of {survey.n:,} respondents drawn by "
        f"weight, {len(found)} {'item' if len(found) == 1 else 'items'}{'; ' + by if by else ''}"
    )
    known = "+".join(sorted(kinds))
    return SurveyValidation(
        title,
        measures.assign(evidence=known),
        listed.assign(evidence=known),
        compared.assign(evidence=known),
        _findings(measures) if kinds == {"model"} else (),
        tuple(
            sentences(
                "opinionsim.comparison.people",
                "validation.txt",
                cutoff=cutoff,
                certain=_certain(survey, size),
                left_out=left_out,
                scripted=kinds != {"model"},
            )
        ),
    )


def _answers(
    survey: Survey, item: SurveyItem, run_id: str, results: Results
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions of the drawn respondents, and of the answers that were given for each the first and the second time."""
    agents = results.agents[results.agents["run_id"] == run_id].sort_values("agent")
    places = {f"Respondent {row}": place for place, row in enumerate(survey.rows.tolist())}
    drawn = np.array([places[name] for name in agents["name"]])
    opinions = results.opinions
    own = opinions[(opinions["run_id"] == run_id) & (opinions["kind"] == "self-report")].sort_values("turn")
    options = {float(point): float(place) for place, point in enumerate(item.points)}
    said = np.full((2, len(drawn)), np.nan)
    for agent, time, value in zip(own["agent"], own.groupby("agent").cumcount(), own["value"], strict=True):
        said[time, agent] = options.get(value, np.nan)
    return drawn, said[0], said[1]


def _described(found: ItemAgreement, cutoff: date | None) -> dict[str, Any]:
    """The row of an item."""
    item = found.item
    if item.asked is None:
        known = _UNDATED
    elif cutoff is None:
        known = _NO_CUTOFF
    else:
        known = _LATER if item.asked > cutoff else _MAY_BE_KNOWN
    return {
        "item": item.name,
        "question": item.question,
        "asked": None if item.asked is None else item.asked.isoformat(),
        "training_data": known,
        "drawn": len(found.own),
        "missing": int(np.isnan(found.own).sum()),
        "model_missing": int(np.isnan(found.answers).sum()),
        "again_missing": int(np.isnan(found.again).sum()),
        "pairs": int((~np.isnan(found.own) & ~np.isnan(found.answers)).sum()),
        "trained_on": found.trained_on,
    }


def _findings(measures: pd.DataFrame) -> tuple[str, ...]:
    """What the intervals show of the variance within subgroups."""
    every = measures[(measures["measure"] == "variance ratio") & (measures["of"] == "model")]
    row = every.iloc[-1]
    if not np.isfinite([row["low"], row["high"]]).all():
        return ()
    if row["high"] < 1:
        shown = "flattened: agents of a subgroup answer more alike than its respondents"
    elif row["low"] > 1:
        shown = "agents of a subgroup differ more than its respondents"
    else:
        shown = "no difference from respondents shows"
    return (f"Variance ratio within subgroups {row['value']:.2f} ({row['low']:.2f} to {row['high']:.2f}): {shown}.",)


def _certain(survey: Survey, size: int) -> int:
    """Number of respondents with so much weight that they are drawn for certain."""
    weights = survey.weights
    return 0 if weights is None else int((size * weights / weights.sum() >= 1).sum())
