"""Instruments: the variable that is measured, the kinds of text, the classifier and the scale."""

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
    """What an instrument says about one text."""

    value: float
    """The most probable scale point; NaN where the text gives no answer."""
    probabilities: tuple[float, ...]
    """Distribution over the scale points, NaN where there is no answer."""
    off_scale: float
    """Probability that the text is no answer, in [0, 1]; NaN where no classifier saw it."""


class OpinionKey(NamedTuple):
    """Identity of an opinion within its run: the text it is of, and the instrument."""

    instrument_id: str
    turn: int
    about: int | None = None
    """Index of the second turn, where two texts are judged together."""


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
    """Identity of an instrument: a hash of all that can change its estimates, 24 hexadecimal characters.

    Parameters
    ----------
    variable : str
        What it measures.
    classifier : str
        Name of its classifier.
    options : mapping of str to JSON value
        The options of the classifier.
    scale : OpinionScale
        The scale it codes on.
    context : bool
        Whether the classifier is told what the author had read, who it is, and what it was assigned.
    about : str
        ``reads`` where each text is judged together with each message its author was shown; empty where it is judged
        by itself.
    whole : bool
        Whether it reads whole replies, with what was stripped from them.
    """
    read = [scale.points, scale.labels, context, about, *(["whole"] if whole else [])]
    return digest(canonical_json([variable, classifier, kept(options), *read]))


@dataclass(frozen=True, eq=False)
class Instrument:
    """An instrument: measures a variable of texts with a classifier.

    Attributes
    ----------
    instrument_id : str
        As :func:`instrument_id` makes it.
    variable : str
        What it measures: ``stance``, or a name of the user's own.
    classifier : Classifier
        Reads the texts, and has the scale.
    kinds : frozenset of str
        Kinds of text it reads; no part of its identity.
    context : bool
        Whether items carry what the author had read, who it is, and what it was assigned.
    about : str
        ``reads`` where each text is judged together with each earlier message its author was shown; empty where it is
        judged by itself.
    name : str
        Name under which its classifier is loaded, with the version of one of the user's own; empty for the
        classifier's own name.
    code : str
        Code of a classifier of the user's own; empty for any other.
    whole : bool
        Whether it reads whole replies, with what was stripped from them for readers.
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
        """An instrument made of a loaded classifier.

        Raises
        ------
        SpecError
            If the classifier would ignore a context or a second text that it is given.
        """
        check_abilities(classifier, variable, context=context, about=about)
        identity = instrument_id(
            variable, classifier.name, classifier.options, classifier.scale, context=context, about=about
        )
        return cls(identity, variable, classifier, frozenset(kinds), context, about)

    @property
    def scale(self) -> OpinionScale:
        """The scale it codes on."""
        return self.classifier.scale

    @property
    def asks_author(self) -> bool:
        """Whether the author of a text is asked itself, instead of the text being read."""
        return asks_author(self.classifier)

    @property
    def coded(self) -> frozenset[str]:
        """Kinds of text that its classifier has work with: no classifier reads self-reports."""
        return self.kinds if self.asks_author else self.kinds - {SELF_REPORT}

    def fork(self, kind: str, text: str, prompt: Prompt, *, shown: bool) -> Prompt | None:
        """The context from which the author of a text is asked: the prompt of its turn, and its text.

        Of a question off the record, the context without it; but with its message where that also shows what others
        said, or there is nothing before it.
        """
        if not self.asks_author:
            return None
        if getattr(self.classifier, "before", False) or (kind in _OFF_RECORD and not shown):
            return prompt.before or Prompt()
        return prompt if kind in _OFF_RECORD else prompt.then(ChatMessage("assistant", text))

    def keys(self, text: Text) -> list[tuple[int, int | None]]:
        """The keys that it codes of a text, as (turn, second turn); none of other kinds, or of turns without words."""
        if text.kind not in self.kinds or text.status in WORDLESS:
            return []
        return [(text.site.index, about) for about in (text.reads if self.about else (None,))]


def check_abilities(classifier: Classifier, variable: str, *, context: bool, about: str, whole: bool = False) -> None:
    """Refuse a classifier that would ignore a context or a second text that it is given.

    Raises
    ------
    SpecError
        Naming the instrument and what its classifier does not read.
    """
    if about not in ("", "reads"):
        raise SpecError(f"about must be 'reads', or left out; got {about!r}")
    given = {
        "the context": context and not classifier.reads_context,
        "a second text": about and not classifier.reads_about,
        "whole replies": whole and (asks_author(classifier) or classifier.name in (DECIDED, RECORDED)),
    }
    for what, ignored in given.items():
        if ignored:
            raise SpecError(f"instrument {variable!r}: classifier {classifier.name!r} does not use {what}")


def check_instruments(instruments: Sequence[Instrument], claim: Claim | None = None) -> None:
    """Refuse instruments that cannot stand side by side, or lack what they need.

    Parameters
    ----------
    instruments : sequence of Instrument
        Those of one run.
    claim : Claim or None
        What its opinions are about.

    Raises
    ------
    SpecError
        If two instruments have one identity, or a classifier needs a claim and there is none.
    """
    seen: dict[str, str] = {}
    for each in instruments:
        if each.instrument_id in seen:
            raise SpecError(
                f"two instruments are the same: {each.variable!r} by {each.classifier.name!r} with equal options and "
                "scale; give one instrument with the kinds of text of both"
            )
        seen[each.instrument_id] = each.variable
        if claim is None and each.classifier.needs_claim:
            raise SpecError(f"instrument {each.variable!r}: classifier {each.classifier.name!r} needs a claim")


class Author(NamedTuple):
    """What an instrument with context is told of the author of a text."""

    persona: tuple[tuple[str, str], ...] = ()
    """Name and attributes, in order."""
    assigned_opinion: float | None = None
    """The opinion it was assigned at the start."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text of a run, as far as instruments need to know it.

    Attributes
    ----------
    site : CallSite
        Its turn: `index`, `step`, `agent`, `act`.
    kind : str
        Kind of text.
    text : str
        The literal text.
    status : str
        Whether it is an answer at all.
    reads : tuple of int
        Earlier turns whose messages its author was shown, in order.
    received : tuple of str
        Texts of all messages its author was shown, in order, those from outside included.
    """

    site: CallSite
    kind: str
    text: str
    status: ReplyStatus = "answered"
    reads: tuple[int, ...] = ()
    received: tuple[str, ...] = ()
