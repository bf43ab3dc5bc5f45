"""Topics as data: a claim for each side, a category, and what is accepted as true."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import Document, DocumentModel, is_one_line, read_document, validate
from opinionsim.opinions import OpinionScale

#: Side that a topic is taken with where no framing is named (Chuang et al. 2023, §3; A5).
_DEFAULT = "falsehood"


@dataclass(frozen=True, slots=True)
class Claim:
    """An assertion that agents have opinions about.

    Attributes
    ----------
    text : str
        What can follow "that": a clause, or a position statement without its full stop.
    topic : str
        Name of the topic it belongs to.
    framing : str
        The side it affirms.
    accepted : str or None
        The side accepted as true; None when there is no ground truth.
    sensitive : bool
        True if the claim should stay out of demonstrations and galleries.
    masked : bool
        True if prompts call the claim an unnamed theory ("Theory XYZ").
    question : str
        The question of its topic; empty if there is none.
    """

    text: str
    topic: str
    framing: str
    accepted: str | None = None
    sensitive: bool = False
    masked: bool = False
    question: str = ""

    @property
    def statement(self) -> str:
        """The claim as a sentence by itself: a position statement."""
        return self.text[:1].upper() + self.text[1:] + ("" if self.text.endswith(("!", "?")) else ".")

    def truth(self, scale: OpinionScale) -> int | None:
        """The opinion that agrees with the accepted truth: an end of `scale`, None without one."""
        if self.accepted is None:
            return None
        return scale.highest if self.framing == self.accepted else scale.lowest


#: Words that begin sentences and are no names: before a claim that follows "that" they lose their capital.
_OPENING = re.compile(
    "(All|An?|Each|Every|If|In|It|Many|Most|No|Not|On|Our|People|Some|The|There|These|This|Those|We) "
)
#: Name of a side: words joined by hyphens.
_Side = Annotated[str, Field(pattern=r"^\w+(-\w+)*$")]


class Topic(DocumentModel):
    """A subject with one claim for each side."""

    name: str
    """Identifier, made of lower-case words joined by hyphens."""
    title: str = ""
    """Name in figures, in one line. By default it is the identifier in words."""
    category: str = "Other"
    """Group in which the topic is reported."""
    claims: dict[_Side, str] = Field(min_length=1)
    """The assertion of each side. The sides of a topic with a ground truth are ``falsehood`` and ``truth`` in the study
    (A5); those of an open question have names of their own, such as ``for`` and ``against``. In a topic with a question
    they are position statements, which may be whole sentences."""
    accepted: str | None = None
    """The side that is accepted as true; all others count as false. None if there is no ground truth."""
    sensitive: bool = False
    """Whether to keep the topic out of demonstrations and galleries."""
    source: str = ""
    """Where the claims come from."""
    masked: bool | None = None
    """Whether prompts call the claim an unnamed theory ("Theory XYZ"), unless a specification says otherwise (A5)."""
    question: str | None = None
    """The question that the claims answer. Empty if there is none."""
    licence: str = ""
    """Terms of use of the claims."""
    pass_on: bool | None = None
    """Whether these terms allow you to pass on the claims. If not, reports and archives withhold them."""

    def claim(self, framing: str | None = None) -> Claim:
        """The claim of a side.

        Parameters
        ----------
        framing : str, optional
            The side; default ``falsehood``, or the only one there is.

        Raises
        ------
        SpecError
            If the topic has no such side, or none is named and no default applies.
        """
        valid = ", ".join(self.claims)
        if framing is None:
            framing = next(iter(self.claims)) if len(self.claims) == 1 else _DEFAULT
            if framing not in self.claims:
                raise SpecError(f"topic {self.name!r} needs a framing; valid: {valid}")
        if framing not in self.claims:
            raise SpecError(f"topic {self.name!r} has no framing {framing!r}; valid: {valid}")
        text = self.claims[framing].removesuffix(".")
        if not self.question and _OPENING.match(text):
            text = text[0].lower() + text[1:]
        return Claim(text, self.name, framing, self.accepted, self.sensitive, bool(self.masked), self.question or "")


class _TopicsModel(DocumentModel):
    topics: list[Topic] = Field(min_length=1)
    source: str = ""
    licence: str = ""
    masked: bool = False
    pass_on: bool = True


def _checked(topic: Topic, document: Document, *place: str | int, of: _TopicsModel | None = None) -> Topic:
    """A topic with what it leaves unsaid.

    `place` is its place in the document, for errors, and `of` its file, which speaks for all.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", topic.name):
        raise document.error((*place, "name"), f"must be lower-case words joined by hyphens; got {topic.name!r}")
    question = (topic.question or "").strip()
    if topic.question is not None and not (question and is_one_line(question)):
        raise document.error((*place, "question"), f"must be one line with a question; got {topic.question!r}")
    claims = {framing: text.strip() for framing, text in topic.claims.items()}
    for framing, claim in claims.items():
        here = (*place, "claims", framing)
        if not claim.strip(" .") or (claim.endswith(".") and not question):
            what = "a sentence" if question else "a clause that can follow 'that', without a full stop"
            raise document.error(here, f"must be {what}; got {topic.claims[framing]!r}")
        if not is_one_line(claim):
            raise document.error(
                here, f"must be one line, without line breaks or other control characters; got {claim!r}"
            )
        if list(claims.values()).count(claim) > 1:
            raise document.error(here, f"repeats the claim of another side; got {claim!r}")
    if topic.accepted is not None and topic.accepted not in topic.claims:
        valid = ", ".join(topic.claims)
        raise document.error((*place, "accepted"), f"{topic.accepted!r} is not a side; valid: {valid}, or null")
    if not is_one_line(topic.title):
        raise document.error((*place, "title"), f"must be one line; got {topic.title!r}")
    title = topic.title.strip() or topic.name.replace("-", " ").capitalize()
    said = {
        "source": topic.source or (of.source if of else ""),
        "licence": topic.licence or (of.licence if of else ""),
        "masked": bool(of and of.masked) if topic.masked is None else topic.masked,
        "pass_on": (of is None or of.pass_on) if topic.pass_on is None else topic.pass_on,
    }
    return topic.model_copy(update={**said, "title": title, "claims": claims, "question": question})


def parse_topic(document: Document | Mapping[str, Any], source: str = "topic") -> Topic:
    """One topic from a mapping with the fields of :class:`Topic`.

    Raises
    ------
    SpecError
        If a field is unknown, missing or of the wrong type.
    """
    origin = Document.of(document, source)
    return _checked(validate(Topic, origin), origin)


def parse_topics(document: Document | Mapping[str, Any], source: str = "topics") -> dict[str, Topic]:
    """Topics from a document with a list under ``topics``.

    Parameters
    ----------
    document : Document or mapping
        Keys ``topics``, and ``source``, ``licence``, ``pass_on`` and ``masked``, which apply to all of them.
    source : str
        Name of a bare mapping in errors.

    Returns
    -------
    dict of str to Topic
        By name, in file order.

    Raises
    ------
    SpecError
        If a field is unknown, missing or of the wrong type, or two topics share a name.
    """
    origin = Document.of(document, source)
    model = validate(_TopicsModel, origin)
    topics: dict[str, Topic] = {}
    for i, entry in enumerate(model.topics):
        if entry.name in topics:
            raise origin.error(("topics", i, "name"), f"duplicate {entry.name!r}; names must be distinct")
        topics[entry.name] = _checked(entry, origin, "topics", i, of=model)
    return topics


def load_topics(path: str | Path) -> dict[str, Topic]:
    """Topics from a YAML file; see :func:`parse_topics`."""
    return parse_topics(read_document(path), str(path))
