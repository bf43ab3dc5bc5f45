"""Instruments: each has a variable to measure, kinds of text to read, a classifier and a scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opinionsim.classifiers import DECIDED, RECORDED, Classifier, asks_author
from opinionsim.errors import SpecError
from opinionsim.foundation.redaction import kept
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.llm import CallSite
from opinionsim.messages import WORDLESS, ChatMessage, Prompt, ReplyStatus
from opinionsim.metrics import SELF_REPORT
from opinionsim.opinions import OpinionScale
from opinionsim.topics import Claim

#: The variable that bias, diversity, tables and figures are about.
STANCE = "stance"
#: Kinds of answers to off-record questions, which enter no memory.
_OFF_RECORD = (SELF_REPORT, "probe")


class Reading(NamedTuple):
    """What an instrument reads from one text."""

    value: float
    """The most probable scale point; NaN if the text gives no answer."""
    probabilities: tuple[float, ...]
    """Distribution over the scale points; NaN if there is no answer."""
    off_scale: float
    """Probability that the text is not an answer, in [0, 1]; NaN if no classifier read it."""


class OpinionKey(NamedTuple):
    """Identity of an opinion within its run: its text and its instrument."""

    instrument_id: str
    turn: int
    about: int | None = None
    """Index of the second turn, if two texts are judged together."""


def instrument_id(
    variable: str,
    classifier: str,
    options: Mapping[str, Any],
    scale: OpinionScale,
    *,
    context: bool = False,
    about: str = "",
    whole: bool = False,
) -> str:
    """Identity of an instrument: a hash of everything that can change its estimates, 24 hexadecimal characters.

    Parameters
    ----------
    variable : str
        The variable that it measures.
    classifier : str
        Name of its classifier.
    options : mapping of str to JSON value
        The options of the classifier.
    scale : OpinionScale
        The scale on which it codes.
    context : bool
        Whether the classifier sees what the author had read, its persona and its assigned opinion.
    about : str
        ``reads`` to judge each text together with each message that its author was shown; empty to judge it alone.
    whole : bool
        Whether it reads whole replies, including what was stripped from them.
    """
    read = [scale.points, scale.labels, context, about, *(["whole"] if whole else [])]
    return digest(canonical_json([variable, classifier, kept(options), *read]))


@dataclass(frozen=True, eq=False)
class Instrument:
    """Measures a variable of texts with a classifier.

    Attributes
    ----------
    instrument_id : str
        Result of :func:`instrument_id`.
    variable : str
        The variable that it measures: ``stance``, or a name that you choose.
    classifier : Classifier
        Reads the texts and contains the scale.
    kinds : frozenset of str
        Kinds of text that it reads; they are not part of its identity.
    context : bool
        Whether items include what the author had read, its persona and its assigned opinion.
    about : str
        ``reads`` to judge each text together with each earlier message that its author was shown; empty to judge it
        alone.
    name : str
        Name under which its classifier is loaded, with the version if you wrote it; empty if that is the classifier's
        `name`.
    code : str
        Code of a classifier that you wrote; empty for any other.
    whole : bool
        Whether it reads whole replies, including what was stripped from them for readers.
    """

    instrument_id: str
    variable: str
    classifier: Classifier
    kinds: frozenset[str]
    context: bool = False
    about: str = ""
    name: str = ""
    code: str = ""
    whole: bool = False

    @classmethod
    def of(
        cls,
        classifier: Classifier,
        kinds: Iterable[str],
        variable: str = STANCE,
        *,
        context: bool = False,
        about: str = "",
    ) -> Instrument:
        """Make an instrument from a loaded classifier.

        Raises
        ------
        SpecError
            If the classifier would ignore the context or the second text that it receives.
        """
        check_abilities(classifier, variable, context=context, about=about)
        identity = instrument_id(
            variable, classifier.name, classifier.options, classifier.scale, context=context, about=about
        )
        return cls(identity, variable, classifier, frozenset(kinds), context, about)

    @property
    def scale(self) -> OpinionScale:
        """The scale on which it codes."""
        return self.classifier.scale

    @property
    def asks_author(self) -> bool:
        """Whether it asks the author of a text instead of reading the text."""
        return asks_author(self.classifier)

    @property
    def coded(self) -> frozenset[str]:
        """Kinds of text that its classifier must read; no classifier reads self-reports."""
        return self.kinds if self.asks_author else self.kinds - {SELF_REPORT}

    def fork(self, kind: str, text: str, prompt: Prompt, *, shown: bool) -> Prompt | None:
        """The context in which to ask the author of a text: the prompt of its turn, and its text.

        After a question off the record, this is the context without that question. The message of the question stays
        if it also shows what others said, or if nothing precedes it.
        """
        if not self.asks_author:
            return None
        if getattr(self.classifier, "before", False) or (kind in _OFF_RECORD and not shown):
            return prompt.before or Prompt()
        return prompt if kind in _OFF_RECORD else prompt.then(ChatMessage("assistant", text))

    def keys(self, text: Text) -> list[tuple[int, int | None]]:
        """The keys that it codes for a text, as (turn, second turn); none for other kinds or turns without words."""
        if text.kind not in self.kinds or text.status in WORDLESS:
            return []
        return [(text.site.index, about) for about in (text.reads if self.about else (None,))]


def check_abilities(classifier: Classifier, variable: str, *, context: bool, about: str, whole: bool = False) -> None:
    """Refuse a classifier that would ignore the context or the second text that it receives.

    Raises
    ------
    SpecError
        If the classifier does not read what the instrument gives it. The error names both.
    """
    if about not in ("", "reads"):
        raise SpecError(f"about must be 'reads' or left out; got {about!r}")
    given = {
        "the context": context and not classifier.reads_context,
        "a second text": about and not classifier.reads_about,
        "whole replies": whole and (asks_author(classifier) or classifier.name in (DECIDED, RECORDED)),
    }
    for what, ignored in given.items():
        if ignored:
            raise SpecError(f"instrument {variable!r}: classifier {classifier.name!r} does not use {what}")


def check_instruments(instruments: Sequence[Instrument], claim: Claim | None = None) -> None:
    """Refuse instruments that are duplicates or lack a claim that they need.

    Parameters
    ----------
    instruments : sequence of Instrument
        The instruments of one run.
    claim : Claim or None
        What its opinions are about.

    Raises
    ------
    SpecError
        If two instruments have the same identity, or a classifier needs a claim and there is none.
    """
    seen: dict[str, str] = {}
    for each in instruments:
        if each.instrument_id in seen:
            raise SpecError(
                f"two instruments are the same: {each.variable!r} by {each.classifier.name!r} with equal options and "
                "scale; replace them with one instrument that reads the kinds of text of both"
            )
        seen[each.instrument_id] = each.variable
        if claim is None and each.classifier.needs_claim:
            raise SpecError(f"instrument {each.variable!r}: classifier {each.classifier.name!r} needs a claim")


class Author(NamedTuple):
    """What an instrument with context sees of the author of a text."""

    persona: tuple[tuple[str, str], ...] = ()
    """Name and attributes, in order."""
    assigned_opinion: float | None = None
    """The opinion assigned to it at the start."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a run, with everything that instruments need.

    Attributes
    ----------
    site : CallSite
        Its turn: `index`, `step`, `agent`, `act`.
    kind : str
        Kind of text.
    text : str
        The literal text.
    status : str
        Whether it is an answer.
    reads : tuple of int
        Earlier turns whose messages its author was shown, in order.
    received : tuple of str
        Texts of all messages that its author was shown, in order, including those from outside.
    """

    site: CallSite
    kind: str
    text: str
    status: ReplyStatus = "answered"
    reads: tuple[int, ...] = ()
    received: tuple[str, ...] = ()
