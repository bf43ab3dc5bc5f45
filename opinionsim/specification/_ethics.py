"""Information and questions for people before they take part: fields of a specification, and the consent file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from opinionsim.errors import SpecError
from opinionsim.foundation.addresses import is_near
from opinionsim.foundation.documents import DocumentModel, read_document, validate
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.llm import in_process

if TYPE_CHECKING:
    from opinionsim.specification._cells import Experiment


def _said(text: str) -> str:
    """Refuse a text that says nothing, or that was left as the template has it."""
    if not text.strip() or text.lstrip().startswith("["):
        raise ValueError("must be complete; replace the text in brackets")
    return text.strip()


_Said = Annotated[str, AfterValidator(_said)]


class EthicsSpec(DocumentModel):
    """Information and questions for people at seats before they take part. This does not replace an approval."""

    consent: str | None = Field(None, min_length=1)
    """Path of the consent form, made from the template that a room serves as `/static/consent.yaml`. With null, only
    the owner can try the experiment, alone."""
    protocol: str | None = Field(None, min_length=1, max_length=200)
    """Number of the protocol under which an ethics board approved the experiment. Sensitive topics require one."""
    age: int = Field(18, ge=0, le=120)
    """Minimum age of people in years."""


class Comprehension(DocumentModel):
    """A question on the text of the consent, which people must answer correctly before they take part."""

    question: _Said
    """The question."""
    answers: tuple[str, ...] = Field(min_length=2)
    """Possible answers, of which one is right."""
    right: str
    """The right one."""

    @model_validator(mode="after")
    def _known(self) -> Comprehension:
        if self.right not in self.answers:
            raise ValueError(f"right must be one of the answers; got {self.right!r}")
        return self


class Consent(DocumentModel):
    """The text to which people consent, with its required content, and the text that they read afterwards."""

    version: str = Field(min_length=1, max_length=40)
    """Version of the text."""
    purpose: _Said
    """What is studied, and what taking part means."""
    speakers: _Said
    """That the other speakers are language models and not people, or which of them are."""
    provider: _Said
    """To whom the texts are sent, by name, or that they stay on this machine."""
    observers: _Said
    """Who reads along."""
    keeping: _Said
    """How long the texts are kept, and where."""
    publication: _Said | None = None
    """In what form what people write is published. Where it stands people are asked whether they agree to that too; an
    archive and a report withhold the words of everybody who was not asked, or does not."""
    contact: _Said
    """Whom to ask."""
    debriefing: _Said
    """What people are told when they leave."""
    comprehension: tuple[Comprehension, ...] = ()
    """Questions that show whether people have understood the text."""

    @property
    def hash(self) -> str:
        """Content identity of the text."""
        return digest(canonical_json(self.model_dump(mode="json")))


def consent_of(experiment: Experiment) -> Consent | None:
    """The text to which people at the seats of an experiment consent; None if the specification names none.

    Raises
    ------
    SpecError
        If the file is missing, lacks required content, or does not name who receives texts: the provider of a
        model, or the host of its `base_url`. Texts sent to this machine or its private network need no such name.
    """
    named = experiment.resources.path(experiment.spec.ethics.consent)
    if named is None:
        return None
    document = read_document(named)
    consent = validate(Consent, document)
    models = [model for cell in experiment.cells for model in cell.spec.chat_models if not in_process(model.name)]
    sent = [(model.name.partition(":")[0], model.options.get("base_url")) for model in models if ":" in model.name]
    asked = {(provider, str(address or "")) for provider, address in sent}
    for provider, address in sorted(each for each in asked if not is_near(each[1])):
        receiver = urlsplit(address).hostname or provider
        if receiver.casefold() not in consent.provider.casefold():
            raise document.error(("provider",), f"must name {receiver}, which receives people's texts")
    return consent


def require_protocol(experiment: Experiment) -> None:
    """Refuse people on sensitive topics without an approved protocol.

    Raises
    ------
    SpecError
        Naming the topic.
    """
    for cell in experiment.cells:
        claim = experiment.resources.claim(cell.spec)
        if claim is not None and claim.sensitive and cell.spec.ethics.protocol is None:
            raise SpecError(
                f"topic {claim.topic!r} is sensitive and needs an approved protocol; set its "
                "number as ethics: {protocol: ID}"
            )
