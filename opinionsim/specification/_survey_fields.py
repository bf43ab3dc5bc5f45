"""Fields of a specification about surveys and drawn personas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from opinionsim.foundation.documents import DocumentModel, KeyPath, validate

if TYPE_CHECKING:
    from opinionsim.specification._fields import ExperimentSpec

#: What `population.personas` says where respondents of the survey are drawn.
FROM_SURVEY = "survey"


class SurveySpec(DocumentModel):
    """A survey whose respondents the agents play."""

    file: str = Field(min_length=1)
    """Path of a .csv, .parquet, .dta or .sav file, or the name of a survey of the package. A manifest identifies the
    mapped columns and weights by their content."""
    mapping: str = Field(min_length=1)
    """Name of a mapping of the package, or path of a YAML file, that turns columns into personas."""
    replace: bool = False
    """Whether a run can draw the same respondent more than once."""
    weighting: Literal["draw", "analysis"] = "draw"
    """Where the weights count. `draw` draws respondents in proportion to their weights, and the analysis is unweighted.
    `analysis` draws all respondents with equal probability and records the weights for the analysis."""


class MarginsSpec(DocumentModel):
    """Personas drawn from given margins."""

    margins: dict[str, dict[str, float]] = Field(min_length=1)
    """Share of each value of each attribute."""
    seed: tuple[dict[str, Any], ...] | None = Field(None, min_length=1)
    """Rows of a table with a value of each attribute and a `share`, whose odds ratios the joint distribution takes;
    null makes attributes independent."""


def draws_respondents(spec: ExperimentSpec) -> bool:
    """Whether the population of a run is drawn from the survey."""
    return spec.population.personas == FROM_SURVEY


def uses_survey(spec: ExperimentSpec) -> bool:
    """Whether any agent of a run is a respondent drawn from the survey."""
    return draws_respondents(spec) or any(each.drawn for each in spec.cast)


def margins_of(spec: ExperimentSpec) -> MarginsSpec | None:
    """The margins from which the personas of a run are drawn; None if they are not drawn from margins.

    Raises
    ------
    SpecError
        If they have unknown fields, or fields of the wrong type.
    """
    personas = spec.population.personas
    if isinstance(personas, str) or "margins" not in personas:
        return None
    return validate(MarginsSpec, personas, "population.personas")


def draws_personas(spec: ExperimentSpec) -> bool:
    """Whether each run draws its personas from a survey or from margins instead of using a given list."""
    return draws_respondents(spec) or (
        not isinstance(spec.population.personas, str) and "margins" in spec.population.personas
    )


def survey_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Respondents without a survey, and a query without respondents."""
    population = spec.population
    if uses_survey(spec) and spec.survey is None:
        drawing = "population.personas: survey draws" if draws_respondents(spec) else "a query or group of cast draws"
        yield ("survey",), f"is required but missing: {drawing} from it"
    elif not draws_respondents(spec) and population.query is not None:
        yield ("population", "query"), "needs population.personas: survey"
