"""The mapping of a survey: how its columns become the persona of a respondent."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from pydantic import Field

from opinionsim.errors import SpecError, SurveyError
from opinionsim.foundation.data import data_folder
from opinionsim.foundation.documents import Document, DocumentModel, is_one_line, read_document, validate
from opinionsim.surveys._query import Query

#: Place of the value of a column in its clause.
SLOT = "${value}"
#: Name of the weight of a respondent in its record.
WEIGHT = "weight"

_SUFFIXES = (".yaml", ".yml", ".json")

#: A value of a survey as mappings spell it.
Value = str | int | float


class SurveyColumn(DocumentModel):
    """One column of a survey."""

    column: str = Field(min_length=1)
    """Name of the column in the data file."""
    name: str | None = None
    """Name in queries and in records. Null uses the name of the column."""
    label: str | None = None
    """Heading in lists. Null uses the name."""
    clause: str | None = None
    """Sentence of the persona, in which `${value}` is replaced by the value. Null keeps the column out of the persona.
"""
    recode: dict[str, str] = Field(default_factory=dict)
    """What the persona says instead of an original value. Other values stay as they are."""
    skip: tuple[Value, ...] = ()
    """Original values that the persona does not mention, like missing values."""
    subtract_from: int | None = None
    """Number from which the value is subtracted first, such as the year of the survey for a year of birth."""
    question: str = ""
    """Wording of the question, for an item that you can ask respondents again."""
    asked: str | None = None
    """Day on which the question was first asked, as YYYY-MM-DD."""
    options: tuple[Value, ...] = ()
    """Original values that answer the question, in their order. Agents see what `recode` gives for them. Values that
    are neither here nor in `skip` are an error."""
    retest: str | None = None
    """Name of another column with the answers that the same respondents gave when they were asked again."""

    @property
    def variable(self) -> str:
        """Name in queries and in records."""
        return self.column if self.name is None else self.name

    @property
    def heading(self) -> str:
        """Heading in lists."""
        return self.variable if self.label is None else self.label

    @property
    def answers(self) -> tuple[str, ...]:
        """The options, spelled as in the data."""
        return tuple(map(spelled, self.options))

    def sentence(self, value: str) -> str:
        """The sentence about a respondent with this original value; empty if there is none."""
        if self.clause is None or value in map(spelled, self.skip):
            return ""
        before, after = self.clause.split(SLOT)
        text = (before + self.recode.get(value, value) + after).strip()
        text = text[:1].upper() + text[1:]
        return text if text.endswith(("!", "?")) else text.rstrip(". ") + "."


class SurveyOpinion(DocumentModel):
    """The column that determines the initial opinion of a respondent."""

    column: str = Field(min_length=1)
    """Name of the column in the data file."""
    recode: dict[str, int] = Field(min_length=1)
    """Point of the scale for each original value. Respondents with other values have no opinion."""


class SurveyMapping(DocumentModel):
    """The mapping of a survey: how its columns become the persona of a respondent."""

    name: str = Field(min_length=1)
    """Name of the survey."""
    source: str = ""
    """Where the data come from."""
    licence: str = ""
    """Terms of use of the data."""
    pass_on: bool = False
    """Whether these terms allow you to pass on the data. If not, reports and archives withhold respondents."""
    weight: str | None = Field(None, min_length=1)
    """Column of the weights. Null means that the survey has no weights."""
    missing: tuple[str, ...] | None = None
    """Cells of a CSV file that count as missing, in addition to empty ones. Null uses NA and NaN, and for numbers also
    N/A, null and a point."""
    columns: tuple[SurveyColumn, ...] = Field(min_length=1)
    """The columns to read, in the order of the persona's sentences."""
    opinion: SurveyOpinion | None = None
    """The initial opinions of respondents. Null gives them none."""
    groups: dict[str, str] = Field(default_factory=dict)
    """Queries by name, such as one for each ideology."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Names in queries and in records, in order."""
        return tuple(column.variable for column in self.columns)

    @property
    def data_columns(self) -> tuple[str, ...]:
        """Columns that the data file must have."""
        others = [self.weight, None if self.opinion is None else self.opinion.column]
        return tuple(dict.fromkeys([*(column.column for column in self.columns), *filter(None, others)]))


def spelled(value: Any) -> str:
    """A value of a survey as text; whole numbers have no decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def load_mapping(name_or_path: str | Path) -> SurveyMapping:
    """Load and check the mapping of a survey.

    Parameters
    ----------
    name_or_path : str or Path
        Name of a mapping of the package, or path of a YAML or JSON file. The fields are those of
        :class:`SurveyMapping`.

    Raises
    ------
    SurveyError
        If there is no such mapping; if a field is unknown, missing or of the wrong type; if two columns have the same
        name, or a name that records use; if a clause is not a single line that contains ``${value}`` once; if a value
        is both recoded and skipped; if a date is not valid; or if a group is not a query on the columns.
    """
    text = str(name_or_path)
    named = isinstance(name_or_path, str) and not text.endswith(_SUFFIXES) and "/" not in text and "\\" not in text
    path = data_folder("personas") / "surveys" / f"{text}.yaml" if named else Path(text)
    if named and not path.is_file():
        valid = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml")))
        raise SurveyError(f"unknown survey mapping {text!r}; valid: {valid}, or the path of a .yaml file")
    try:
        return checked_mapping(read_document(path))
    except SpecError as error:
        problems = (SurveyError(each.problem, each.places, each.advice) for each in error.problems)
        raise SurveyError.joined(problems) from None


def checked_mapping(document: Document) -> SurveyMapping:
    """Check the mapping in a document and return it."""
    mapping = validate(SurveyMapping, document)
    reserved = {"background", *([WEIGHT] if mapping.weight else [])}
    seen: set[str] = set()
    unsaid = {column.variable for column in mapping.columns if column.clause is None}
    for i, column in enumerate(mapping.columns):
        place = ("columns", i)
        named = (*place, "column" if column.name is None else "name")
        if not column.variable.strip() or not is_one_line(column.variable) or "`" in column.variable:
            raise document.error(named, f"must be one line, not blank, and without backticks; got {column.variable!r}")
        if column.variable in seen:
            raise document.error(named, f"duplicate {column.variable!r}; names must be distinct")
        if column.variable in reserved:
            raise document.error(named, f"{column.variable!r} is a name that records use already; give another name")
        seen.add(column.variable)
        _check_persona(document, place, column)
        _check_item(document, place, column, unsaid)
    for name, query in mapping.groups.items():
        try:
            Query(query).check(mapping.variables)
        except SurveyError as error:
            raise document.error(("groups", name), str(error)) from None
    return mapping


def _check_persona(document: Document, place: tuple[str, int], column: SurveyColumn) -> None:
    """Refuse clauses that do not have their value once, values both recoded and skipped, and dates that are none."""
    clause = column.clause
    if clause is not None and (clause.count(SLOT) != 1 or clause.count("${") != 1 or not is_one_line(clause)):
        raise document.error((*place, "clause"), f"must be one line with {SLOT} once, and no other ${{; got {clause!r}")
    for value, told in column.recode.items():
        if not is_one_line(told):
            raise document.error((*place, "recode", value), f"must be one line; got {told!r}")
    both = set(column.recode) & set(map(spelled, column.skip))
    if both:
        raise document.error((*place, "skip"), f"{min(both)!r} is also recoded; choose one")
    if column.asked is not None:
        try:
            date.fromisoformat(column.asked)
        except ValueError:
            raise document.error((*place, "asked"), f"must be a date as YYYY-MM-DD; got {column.asked!r}") from None


def _check_item(document: Document, place: tuple[str, int], column: SurveyColumn, unsaid: set[str]) -> None:
    """Refuse options without a question or that agents could not tell apart, and second answers that are nowhere."""
    answers = column.answers
    if answers and not column.question:
        raise document.error((*place, "options"), "need a question")
    if answers and (len(answers) < 2 or len(set(answers)) < len(answers)):
        raise document.error((*place, "options"), f"must be two or more distinct values; got {', '.join(answers)}")
    if both := set(answers) & set(map(spelled, column.skip)):
        raise document.error((*place, "skip"), f"{min(both)!r} is also an option; choose one")
    if column.retest is not None and (not answers or column.retest not in unsaid - {column.variable}):
        valid = ", ".join(sorted(unsaid - {column.variable})) or "none"
        problem = f"must name another column without a clause, for an item with options; got {column.retest!r}"
        raise document.error((*place, "retest"), f"{problem}; columns without one: {valid}")
