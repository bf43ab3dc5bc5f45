"""Fields of a mapping: the columns with persons, texts, ratings, times and conditions."""

from __future__ import annotations

from datetime import date
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel, read_document, validate
from opinionsim.opinions import OpinionScale

_PANELS = Path(__file__).parent / "panels"

_Columns = Annotated[tuple[str, ...], Field(strict=False)]
_Points = Annotated[tuple[int, ...], Field(min_length=2, strict=False)]


class PanelMapping(DocumentModel):
    """The mapping of a panel, which turns the rows of a table into a record of people.

    A table has one row for each text or rating of a person (name `wave`, and `order` if a wave has several), or one row
    per person with a column for each rating (name several columns as `rating`).
    """

    name: str = Field(min_length=1)
    """Name of the panel."""
    source: str = ""
    """Where the data come from."""
    licence: str = ""
    """Terms of use of the data, and what the people consented to."""
    pass_on: bool = False
    """Whether these terms allow you to pass on the texts. If not, reports and archives withhold them."""
    collected: str | None = None
    """Last day of data collection, as YYYY-MM-DD."""
    person: str
    """Column that identifies the person, by a pseudonym."""
    group: str | None = None
    """Column of the group. People in a group read one another, and groups are the units. With null, persons are the
    units."""
    topic: str | None = None
    """Column of the topic that opinions are about. Null means that there is a single topic."""
    claims: dict[str, dict[Literal["for", "against"], str]] = Field(default_factory=dict)
    """The statement that people rated and its reversed wording, by topic or by the name of the panel."""
    wave: str | None = None
    """Column of the wave, an increasing number. Null means that one row contains everything about a person."""
    order: str | None = None
    """Column of the order within a wave, a number. Null uses the order of the rows."""
    kind: str | None = None
    """Column of the kind of text. Null uses `post` for a text without a rating, `self-report` for ratings in a table
    without texts, and `report` for ratings in a table with texts."""
    kinds: dict[str, str] = Field(default_factory=dict)
    """Kind of text for each value of `kind` that is not itself a kind of text."""
    text: str | None = None
    """Column of the text."""
    sender: str | None = None
    """Column of the author of the text, if rows also contain texts that their person received. With null, the recipient
    of a text in a group, or everyone else in the group, reads it."""
    recipient: str | None = None
    """Column of the recipient of a text. If it is empty, the text is for the whole group."""
    rating: str | _Columns
    """Column of ratings, or several columns in order of time if one row contains everything about a person."""
    read: _Columns = ()
    """Columns of texts that the person read before the last rating, in order, if one row contains everything about a
    person."""
    messages: dict[str, str] = Field(default_factory=dict)
    """Texts for values of `read` that are only names of texts."""
    points: _Points | dict[Literal["from", "to"], int] = (-2, -1, 0, 1, 2)
    """Points of the rating scale, in strictly increasing order. Use `{from: 0, to: 100}` if any number in between is
    valid, as with a slider or half points."""
    labels: tuple[str, ...] = Field((), strict=False)
    """Labels that people saw for the points, lowest first. There are defaults for 2, 3, 4, 5 and 7 points."""
    reversed: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = Field(default_factory=dict)
    """Values of columns for which the statement was worded against the topic. Their ratings are reversed, and the
    condition `wording` distinguishes them."""
    attributes: _Columns = ()
    """Columns with attributes of a person, in the order in which the prompts of a twin list them."""
    conditions: _Columns = ()
    """Columns that become factors of the design. They must be constant within a unit and topic."""
    answers: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")], str] = Field(default_factory=dict)
    """Columns with the last rating that models predicted for the person, by name of the model."""
    retest: str | None = None
    """Column with a repeated first rating, given before the person read anything, if there is one."""

    missing: _Columns | None = None
    """Cells that count as missing, in addition to empty ones. Null uses NA and NaN, and for numbers also N/A, null and
    a point."""

    @field_validator("collected")
    @classmethod
    def _is_a_day(cls, value: str | None) -> str | None:
        try:
            return value and str(date.fromisoformat(value))
        except ValueError:
            raise ValueError(f"must be a day, as in 2026-05-31; got {value!r}") from None

    @field_validator("points")
    @classmethod
    def _has_ends(cls, value: Any) -> Any:
        if isinstance(value, dict) and not value.get("from", 0) < value.get("to", 0):
            raise ValueError(f"must be points, or {{from: LOW, to: HIGH}}; got {value!r}")
        return value

    @model_validator(mode="wrap")
    @classmethod
    def _checked(
        cls, value: Any, handler: ModelWrapValidatorHandler[PanelMapping], info: ValidationInfo
    ) -> PanelMapping:
        """Tell what is wrong with fields that are given in Python as it is told of a file."""
        if info.mode == "python":
            validate(cls, value, "mapping")
        return handler(value)

    @property
    def scale(self) -> OpinionScale:
        """The scale of ratings; for a continuous scale, its two ends."""
        given = self.points
        return OpinionScale((given["from"], given["to"]) if isinstance(given, dict) else given, self.labels)

    @property
    def ratings(self) -> tuple[str, ...]:
        """Columns of ratings, in order of time."""
        return (self.rating,) if isinstance(self.rating, str) else self.rating

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers."""
        given = (*self.ratings, self.wave, self.order, self.retest, *self.answers.values())
        return tuple(filter(None, given))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the table must have."""
        single = ("person", "group", "topic", "wave", "order", "kind", "text", "sender", "recipient", "retest")
        several = (self.ratings, self.read, self.reversed, self.attributes, self.conditions, self.answers.values())
        return tuple(dict.fromkeys([*filter(None, map(self.__getattribute__, single)), *chain(*several)]))


def load_panel_mapping(name_or_path: str | Path) -> PanelMapping:
    """Load and check the mapping of a panel.

    Parameters
    ----------
    name_or_path : str or Path
        ``debate`` or ``belief-updates``, or the path of a YAML or JSON file with the fields of :class:`PanelMapping`.

    Raises
    ------
    SpecError
        If there is no such mapping, or a field is unknown, missing or not valid.
    """
    path = _PANELS / f"{name_or_path}.yaml"
    if not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in _PANELS.glob("*.yaml")))
        raise SpecError(f"unknown panel mapping {str(name_or_path)!r}; valid: {known}, or the path of a .yaml file")
    return validate(PanelMapping, read_document(path))
