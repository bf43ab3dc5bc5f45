"""What follows from the status of a reply, and from its signs: settings that users make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from opinionsim.foundation.documents import DocumentModel

#: Signs that have a place in a text, and can be taken out of it.
_TAKEN = ("preamble", "names", "lines", "markup")


class NoAnswer(DocumentModel):
    """Treatment of refused, of empty and of other replies that hold no answer in role."""

    reask: int = Field(2, ge=0, le=100)
    """Most times to ask again, each with another seed, saying what was wrong."""
    then: Literal["skip", "fail"] = "skip"
    """`skip` leaves the last one out of what others receive and counts it as missing; `fail` ends its run."""


class CutOff(DocumentModel):
    """Treatment of replies cut off at max_tokens."""

    reask: int = Field(1, ge=0, le=10)
    """Most times to ask again, each time with double the length; never where max_tokens is null."""
    then: Literal["missing", "measure", "fail"] = "missing"
    """The last one is passed on as it stands, and coded. In tables and figures it is `missing`, or counts (`measure`);
    this changes no run. `fail` ends its run."""


class Again(DocumentModel):
    """Treatment of answers with a sign: to ask again."""

    reask: int = Field(2, ge=0, le=100)
    """Most times to ask again, each with another seed, saying what was wrong."""
    then: Literal["keep", "strip", "skip", "missing", "fail"] = "keep"
    """`keep` takes the last one as it stands; `strip` takes the sign out; `skip` treats it as no answer in role;
    `missing` passes it on, and leaves it out of tables and figures; `fail` ends its run."""


def _kept(given: Literal["keep", "strip"] | Again) -> Literal["keep", "strip"] | Again:
    if given == "strip" or (isinstance(given, Again) and given.then == "strip"):
        raise ValueError(f"strip is for signs with a place in the text: {', '.join(_TAKEN)}; give keep, or reask")
    return given


#: Treatment of a sign that can be taken out, and of any other.
Taken = Literal["keep", "strip"] | Again
Kept = Annotated[Literal["keep", "strip"] | Again, AfterValidator(_kept)]


def _silent(treatment: object) -> bool:
    """Whether the texts that it is about are left out of what others receive, and so are missing in any case."""
    return isinstance(treatment, NoAnswer)


class ReplyPolicy(DocumentModel):
    """What follows from what a reply is, and from what it shows beside an answer."""

    refused: NoAnswer = Field(default_factory=NoAnswer)
    """The model declined, or a filter of its provider withheld the text."""
    off_role: NoAnswer = Field(default_factory=NoAnswer)
    """The text holds no answer in role, and declines nothing."""
    empty: NoAnswer = Field(default_factory=NoAnswer)
    """No text arrived, or a word for nothing, such as N/A."""
    truncated: CutOff = Field(default_factory=CutOff)
    """The reply was cut off at max_tokens."""
    preamble: Taken = "strip"
    """The model's own words in front of the text or behind it."""
    names: Taken = "strip"
    """A name or a label in front of the text."""
    markup: Taken = "strip"
    """Marks of Markdown, HTML, JSON or the stage, quotes around the whole, and counts of words."""
    lines: Taken = "keep"
    """Lines that are written for others."""
    language: Kept = "keep"
    """Another language than asked."""
    length: Kept = "keep"
    """More words than asked."""
    echo: Kept = "keep"
    """More than half of its passages of six words are copied from what was read."""
    echo_task: Kept = "keep"
    """More than half of them are copied from the task or the system message."""
    loop: Kept = "keep"
    """More than half of them occur several times."""
    role: Kept = "keep"
    """Words about the role, or out of it."""

    def identity(self) -> dict[str, Any]:
        """What enters the identity of a run: all but what truncated texts count for."""
        stated = self.model_dump(mode="json", exclude_defaults=True)
        if "truncated" in stated:
            stated["truncated"].pop("then", None)
        return {name: each for name, each in stated.items() if each}

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The statuses and signs of texts that tables and figures leave out; where they end runs, there are none."""
        return tuple(
            name for name, each in self if getattr(each, "then", "") in ("missing", "fail") and not _silent(each)
        )

    @property
    def ends(self) -> list[str]:
        """The statuses and signs with which a reply ends its run."""
        return [name for name, each in self if getattr(each, "then", "") == "fail"]

    @property
    def taken(self) -> frozenset[str]:
        """The signs that are taken out of what others read, what is coded and what the author remembers."""
        return frozenset(name for name in _TAKEN if "strip" in (each := getattr(self, name), getattr(each, "then", "")))

    def asks_again(self, signs: Iterable[str], asked: Mapping[str, int]) -> tuple[str, str]:
        """What follows from the signs of an answer beside taking some out.

        Parameters
        ----------
        signs : iterable of str
            Its signs.
        asked : mapping of str to int
            How often each sign was asked about before, in the same call.

        Returns
        -------
        sign, then : str
            The sign that counts, and ``again``, ``skip``, ``missing`` or ``fail``; both empty where none does.
        """
        rules = {name: each for name in signs if isinstance(each := getattr(self, name, None), Again)}
        again = next((name for name, each in rules.items() if asked.get(name, 0) < each.reask), "")
        if again:
            return again, "again"
        ends = {each.then: name for name, each in reversed(rules.items())}
        return next(((ends[then], then) for then in ("fail", "skip", "missing") if then in ends), ("", ""))
