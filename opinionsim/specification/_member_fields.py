"""The agents of a run and its other roles, one by one, as fields of a specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from opinionsim.foundation.documents import DocumentModel, KeyPath, is_one_line
from opinionsim.registry import NamedPart
from opinionsim.specification._model_fields import ModelSpec
from opinionsim.surveys import Survey

#: Query of a survey that every respondent matches.
ANYBODY = "all"


def _one_line(text: str) -> str:
    """Refuse blank names and line breaks, which would garble prompts and tables."""
    if not text.strip() or not is_one_line(text):
        raise ValueError("must be one line that is not blank and has no control characters")
    return text.strip()


def _not_blank(text: str) -> str:
    """Refuse texts that say nothing."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


_Text = Annotated[str, AfterValidator(_not_blank)]


class SeatSpec(DocumentModel):
    """A seat for a person."""

    invitation: _Text | None = None
    """Text that the person sees before each question."""
    timeout_s: float | None = Field(None, gt=0)
    """Time limit for each answer in seconds, which the person sees. After two consecutive questions without an answer,
    the person counts as gone. Null sets no limit. This field is not part of the identity of a run."""
    words: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of words in a text. Null sets no limit."""
    min_words: Annotated[int, Field(ge=1)] | None = None
    """Minimum number of words in a required text. Null sets no limit."""
    paste: bool = True
    """Whether the page accepts pasted text."""


def _alone(member: DocumentModel) -> Iterator[tuple[KeyPath, str]]:
    """Problem of a seat with fields beside it that tell a model what to do."""
    others = [name for name in type(member).model_fields if name not in ("name", "seat")]
    if stated := [name for name in others if getattr(member, name) != type(member).model_fields[name].default]:
        yield ("seat",), f"cannot be combined with {', '.join(stated)}; set only seat and name"
    seat: SeatSpec = member.seat  # type: ignore[attr-defined]
    if seat.min_words is not None and seat.min_words > (seat.words or seat.min_words):
        yield ("seat", "min_words"), f"must not exceed words, which is {seat.words}"


class MemberSpec(DocumentModel):
    """One agent of a cast. It plays no persona unless it has a system text, persona, query or group."""

    name: Annotated[str, AfterValidator(_one_line)] | None = None
    """Name that other agents see with its answers. Null names it by its number, as in `Agent 0`."""
    system: _Text | None = None
    """The complete system message. ${task} is replaced by the task."""
    persona: _Text | None = None
    """Description of the person that it plays."""
    text: _Text | None = None
    """Its opinion in its own words, written by a person in advance. No model is called for it."""
    query: _Text | None = None
    """Query of the survey. The persona is drawn from the respondents that match it; `all` matches every respondent."""
    group: _Text | None = None
    """Group that the survey's mapping defines, such as an ideology, instead of a query."""
    template: _Text | None = None
    """Persona template: a name in the prompt pack, or a text that contains ${persona}. Null uses the default of the
    pack, or its template for survey respondents."""
    without: tuple[str, ...] = ()
    """Ideals of deliberation to leave out of its persona template and instructions."""
    task: _Text | None = None
    """Its own task, instead of the task of the experiment."""
    instructions: _Text | None = None
    """Its own instructions for reading answers: a name in the prompt pack, or a text that contains
    ${previous_responses}."""
    model: ModelSpec | None = None
    """Chat model that plays it. Null uses the model of the experiment."""
    draws: Annotated[int, Field(ge=1, le=100)] | None = None
    """Number of replies to draw for each answer. Null uses the value in `cognition`."""
    selector: NamedPart | None = None
    """Selector that picks one of several replies. Null uses the selector in `cognition`."""
    seat: SeatSpec | None = None
    """A seat for a person, as in `seat: {}`. The only other field allowed with it is a name."""

    def query_of(self, survey: Survey) -> str | None:
        """The query for respondents that it can play; None if it can play any.

        Raises
        ------
        SurveyError
            If the survey's mapping has no such group.
        """
        if self.group is not None:
            return survey.group(self.group)
        return None if self.query == ANYBODY else self.query

    @property
    def drawn(self) -> bool:
        """Whether its persona is drawn from the survey."""
        return (self.query is not None or self.group is not None) and self.seat is None

    def conflicts(self) -> Iterator[tuple[KeyPath, str]]:
        """Fields that do not go together."""
        if self.seat is not None:
            yield from _alone(self)
            return
        who = [name for name in ("system", "persona", "text", "query", "group") if getattr(self, name) is not None]
        if len(who) > 1:
            yield (who[1],), f"cannot be combined with {who[0]}; set only one of system, persona, text, query and group"
        told = ("task", "instructions", "model", "draws")
        yield from (((name,), "has no effect with text") for name in told if who == ["text"] and getattr(self, name))
        if self.template is not None and (self.system is not None or self.text is not None or not who):
            yield ("template",), "has no effect without a persona, query or group"
        if self.selector is not None and (self.draws or 0) < 2:
            yield ("selector",), "has no effect with one draw; also set draws"
        if (self.draws or 1) > 1 and self.selector is None:
            yield ("draws",), f"{self.draws} replies need a selector; `first` picks the first"


class RoleSpec(DocumentModel):
    """A member of the cast in addition to the participants, such as a moderator, a mediator or a predictor.

    A moderator reads all answers once they are given, and answers last; only it has a persona, values, instructions and
    ideals.
    """

    persona: _Text | None = None
    """Its system message: a name in the prompt pack, or a text. ${task} is replaced by the task. Null sends no system
    message."""
    system: _Text | None = None
    """The complete system message, instead of a persona. ${task} is replaced by the task."""
    automatic: bool = False
    """Whether it first writes its own instructions from the task."""
    values: _Text | None = None
    """Set of values. Using only these values, it accepts or rejects what the task asks for, or leaves it undecided."""
    without: tuple[str, ...] = ()
    """Ideals of deliberation to leave out of its texts."""
    instructions: _Text | None = None
    """Instructions for the answers: a name in the prompt pack, or a text that contains ${previous_responses}. Null uses
    `default`, or `verdict` if there are values."""
    task: _Text | None = None
    """Its own task. Null uses the task of the experiment. It sees the task once: in its system message if that contains
    ${task}, and otherwise with the answers."""
    model: ModelSpec | None = None
    """Chat model that plays it. Null uses the model of the experiment."""
    seat: SeatSpec | None = None
    """A seat for a person, as in `seat: {}`. No other field is allowed with it."""

    def conflicts(self, *, moderates: bool) -> Iterator[tuple[KeyPath, str]]:
        """Fields that cannot be combined, or that only a moderator has."""
        if self.seat is not None:
            yield from _alone(self)
            return
        for name in () if moderates else ("persona", "automatic", "values", "without", "instructions"):
            if getattr(self, name):
                yield (name,), "is only for a moderator; set system, or use your own prompt pack"
        who = [name for name in ("persona", "system", "automatic", "values") if getattr(self, name)]
        if len(who) > 1:
            yield (who[1],), f"cannot be combined with {who[0]}; set only one of persona, system, automatic and values"
