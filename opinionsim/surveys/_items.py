"""Held-out items of a survey: questions to ask agents, and the answers of respondents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

import numpy as np

from opinionsim.errors import SurveyError
from opinionsim.surveys._respondents import Survey
from opinionsim.surveys._survey_mapping import SurveyColumn, spelled

#: Name of the mean over items, used instead of the name of an item.
ALL_ITEMS = "all"
#: Maximum number of values of a numeric variable that form subgroups; with more, quarters of the respondents do.
_MOST_VALUES = 12

_WHOLE = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class SurveyItem:
    """A question with its answers.

    Attributes
    ----------
    name : str
        Its name in the mapping.
    question : str
        Wording of the question.
    asked : date or None
        Day on which it was first asked, if the mapping gives it.
    points : tuple of int, length k
        Number of each option, as agents see it: the option itself if all are whole numbers in order, otherwise 1 to k.
    labels : tuple of str, length k
        Words of each option, as agents see them.
    answers : ndarray of float, shape (n,)
        Position of each respondent's answer among the options, from 0; NaN if there is none.
    again : ndarray of float, shape (n,), or None
        The same for the second answers, if respondents were asked again.
    """

    name: str
    question: str
    asked: date | None
    points: tuple[int, ...]
    labels: tuple[str, ...]
    answers: np.ndarray
    again: np.ndarray | None

    @classmethod
    def of(cls, survey: Survey, column: SurveyColumn) -> SurveyItem:
        """Make an item from a column.

        Raises
        ------
        SurveyError
            If the column has no question or options, the persona has a sentence about it, a value is neither an option
            nor skipped, two options have the same words, or nobody answered.
        """
        name = column.variable
        if name == ALL_ITEMS:
            raise SurveyError(f"an item cannot be named {name!r}, the name of the mean over items; rename it")
        if not column.question or not column.options:
            lacks = "question" if not column.question else "options"
            raise SurveyError(f"{name!r} cannot be asked, because the mapping gives it no {lacks}")
        told = [each.variable for each in survey.mapping.columns if each.column == column.column and each.clause]
        if told:
            raise SurveyError(
                f"{name!r} cannot be asked, because the persona states it in the clause of {told[0]!r}; remove it"
            )
        labels = tuple(column.recode.get(answer, answer) for answer in column.answers)
        answers = _positions(survey, column, name)
        if np.isnan(answers).all():
            raise SurveyError(f"nobody has answered {name!r}")
        again = None if column.retest is None else _positions(survey, column, column.retest)
        asked = None if column.asked is None else date.fromisoformat(column.asked)
        return cls(name, column.question, asked, _points(name, labels), labels, answers, again)

    def __len__(self) -> int:
        """Number of options."""
        return len(self.points)


def _points(name: str, labels: tuple[str, ...]) -> tuple[int, ...]:
    """The number that agents see before each label."""
    if len(set(labels)) < len(labels):
        raise SurveyError(f"options of {name!r} must differ in words; got {', '.join(labels)}")
    numbers = [int(label) for label in labels if _WHOLE.fullmatch(label)]
    ordered = len(numbers) == len(labels) and all(a < b for a, b in pairwise(numbers))
    return tuple(numbers) if ordered else tuple(range(1, len(labels) + 1))


def _positions(survey: Survey, column: SurveyColumn, variable: str) -> np.ndarray:
    """Positions of a variable's values among the options of a column; NaN for skipped and missing ones."""
    places: dict[str, float] = dict.fromkeys(map(spelled, column.skip), np.nan)
    places.update({answer: float(i) for i, answer in enumerate(column.answers)})
    found = np.full(survey.n, np.nan)
    for i, value in enumerate(survey.values[variable].tolist()):
        if value is None or value != value:
            continue
        if (answer := spelled(value)) not in places:
            raise SurveyError(
                f"{variable!r} has the value {answer!r}, neither an option of {column.variable!r} nor skipped; "
                f"options: {', '.join(column.answers)}"
            )
        found[i] = places[answer]
    return found


def items_of(survey: Survey, names: Sequence[str] | None = None) -> tuple[SurveyItem, ...]:
    """The held-out items of a survey.

    Parameters
    ----------
    survey : Survey
        The survey; columns of its mapping with a question and options are items.
    names : sequence of str, optional
        Items to return; default all.

    Raises
    ------
    SurveyError
        If a name is unknown or given twice, there is no item, two items would look alike to agents, or one cannot be
        asked (:meth:`SurveyItem.of`).
    """
    columns = {column.variable: column for column in survey.mapping.columns}
    valid = [name for name, column in columns.items() if column.question and column.options]
    if not valid and not names:
        raise SurveyError(
            f"survey {survey.mapping.name!r} has no items; give a column in its mapping a question and options"
        )
    chosen = valid if names is None else list(names)
    if not chosen:
        raise SurveyError(f"no item is named; valid: {', '.join(valid)}")
    for name in chosen:
        if name not in columns:
            raise SurveyError(
                f"survey {survey.mapping.name!r} has no item {name!r}; valid: {', '.join(valid) or 'none'}"
            )
        if chosen.count(name) > 1:
            raise SurveyError(f"item {name!r} is named twice")
    items = tuple(SurveyItem.of(survey, columns[name]) for name in chosen)
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for item in items:
        other = seen.setdefault((item.question, item.labels), item.name)
        if other != item.name:
            raise SurveyError(f"items {other!r} and {item.name!r} have the same question and options")
    return items


@dataclass(frozen=True)
class Subgroups:
    """Respondents by the values of variables.

    Attributes
    ----------
    names : tuple of (str, str), length S
        Variable and value of each subgroup; the values of a variable are adjacent.
    members : ndarray of bool, shape (n, S)
        Who is in which subgroup. Respondents without a value are in no subgroup of the variable.
    """

    names: tuple[tuple[str, str], ...]
    members: np.ndarray

    def of(self, variables: Sequence[str]) -> Subgroups:
        """The subgroups of some variables."""
        kept = [i for i, (variable, _) in enumerate(self.names) if variable in variables]
        return Subgroups(tuple(self.names[i] for i in kept), self.members[:, kept])


def subgroups_of(survey: Survey) -> Subgroups:
    """Subgroups by all variables that are neither items nor second answers to them.

    Returns
    -------
    Subgroups
        One for each value. A numeric variable with more than 12 values has one for each weighted quarter of the
        respondents instead.
    """
    again = {column.retest for column in survey.mapping.columns}
    names: list[tuple[str, str]] = []
    members = []
    for column in survey.mapping.columns:
        if column.question or column.variable in again:
            continue
        values = survey.values[column.variable]
        present = [value for value in dict.fromkeys(values.tolist()) if value is not None and value == value]
        if values.dtype != object and len(present) > _MOST_VALUES:
            found = _quarters(values, survey.weights)
        else:
            found = [(spelled(value), values == value) for value in sorted(present)]
        names += [(column.variable, name) for name, _ in found]
        members += [inside for _, inside in found]
    return Subgroups(tuple(names), np.array(members, dtype=bool).reshape(len(names), survey.n).T)


def _quarters(values: np.ndarray, weights: np.ndarray | None) -> list[tuple[str, np.ndarray]]:
    """Names and members of the weighted quarters of a numeric variable."""
    weights = np.ones(len(values)) if weights is None else weights
    order = np.argsort(values)[: int((~np.isnan(values)).sum())]
    shares = np.cumsum(weights[order]) / weights[order].sum()
    cuts = values[order][np.searchsorted(shares, (0.25, 0.5, 0.75))]
    quarter = np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="left"))
    found = []
    for each in range(4):
        inside = quarter == each
        if inside.any():
            found.append((f"{values[inside].min():g} to {values[inside].max():g}", inside))
    return found
