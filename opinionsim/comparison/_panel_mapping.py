"""The fields of a mapping: which columns of a table say who said and rated what, when, and under which conditions."""

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
    """The mapping of a panel: how the rows of a table become a record of people.

    A table has one row for each thing that a person said or rated (name `wave`, and `order` where a wave has several),
    or one row a person with a column for each rating (name several columns as `rating`).
    """

    name: str = Field(min_length=1)
    """Name of the panel."""
    source: str = ""
    """Where the data come from."""
    licence: str = ""
    """Terms of use of the data, and what the people consented to."""
    pass_on: bool = False
    """Whether these terms let others have the texts. If not, reports and archives withhold them."""
    collected: str | None = None
    """Last day of data collection, as YYYY-MM-DD."""
    person: str
    """Column of the person: a pseudonym."""
    group: str | None = None
    """Column of the group; people of a group read one another, and groups are the units. Null: persons are units."""
    topic: str | None = None
    """Column of the topic that opinions are about; null for a single one."""
    claims: dict[str, dict[Literal["for", "against"], str]] = Field(default_factory=dict)
    """By topic, or by the name of the panel, the statement that people rated, and that worded the other way round."""
    wave: str | None = None
    """Column of the wave, a number that grows; null where one row has all of a person."""
    order: str | None = None
    """Column of the order within a wave, a number; null takes that of the rows."""
    kind: str | None = None
    """Column of the kind of text; null takes `post` for a text without a rating, `self-report` for ratings of a table
    without texts, and `report` for those of one with texts."""
    kinds: dict[str, str] = Field(default_factory=dict)
    """Kind of text for each value of `kind` that is none itself."""
    text: str | None = None
    """Column of what was said."""
    sender: str | None = None
    """Column of who wrote the text, where rows also tell what their person received. Null: what is said in a group is
    read by its recipient, or by all others."""
    recipient: str | None = None
    """Column of the person that a text is for; an empty one is for all of the group."""
    rating: str | _Columns
    """Column of ratings; several, in order of time, where one row has all of a person."""
    read: _Columns = ()
    """Columns of what was read before the last rating, in order, where one row has all of a person."""
    messages: dict[str, str] = Field(default_factory=dict)
    """Texts for values of `read` that only name them."""
    points: _Points | dict[Literal["from", "to"], int] = (-2, -1, 0, 1, 2)
    """Points of the scale of ratings, strictly increasing; `{from: 0, to: 100}` where any number between is one, as of
    a slider or of half points."""
    labels: tuple[str, ...] = Field((), strict=False)
    """What people were shown for each of them, lowest first; the package has words for 2, 3, 4, 5 and 7 points."""
    reversed: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = Field(default_factory=dict)
    """Values of columns for which the statement was worded against the topic: their ratings are turned round, and the
    condition `wording` tells them apart."""
    attributes: _Columns = ()
    """Columns of what is known of a person, in the order in which prompts of a twin list them."""
    conditions: _Columns = ()
    """Columns that become factors of the design; constant within a unit and topic."""
    answers: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")], str] = Field(default_factory=dict)
    """Columns of what models answered in the person's place as its last rating, by names of the models."""
    retest: str | None = None
    """Column of the first rating asked again before anything was read, where there is one."""

    missing: _Columns | None = None
    """Cells that are missing, besides empty ones; null takes NA and NaN, and for numbers also N/A, null and a point."""

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
        """The scale of ratings; the two ends of a continuous one."""
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
    """The mapping of a panel, checked.

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
