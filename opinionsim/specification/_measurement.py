"""The fields of a specification on measurement: instruments, questions and scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from opinionsim.classifiers import CONDUCT, NO_YES
from opinionsim.errors import meant
from opinionsim.foundation.documents import MAX_INT, DocumentModel, KeyPath
from opinionsim.measurement import STANCE, instrument_id
from opinionsim.metrics import BELIEF
from opinionsim.opinions import OpinionScale
from opinionsim.registry import NamedPart, find
from opinionsim.schedules import MAX_STEPS, PROBE, SELF_REPORT, Interaction
from opinionsim.specification._analysis_fields import distinct


class ClassifierSpec(NamedPart):
    """A classifier and its options."""


class ProbeSpec(DocumentModel):
    """Off-record questions, which agents do not remember."""

    before: int = Field(0, ge=0, le=MAX_STEPS)
    """Number of questions to each agent before the first step."""
    after: int = Field(0, ge=0, le=MAX_STEPS)
    """Number of questions to each agent after the last step."""
    every: int | None = Field(None, ge=1, le=MAX_STEPS)
    """Interval in steps between further questions to each agent. `after` covers the last step. Null asks no questions
    in between."""

    @property
    def asks(self) -> bool:
        """Whether there is any question."""
        return bool(self.before or self.after or self.every)

    def rounds(self, steps: int) -> int:
        """Number of questions to each agent in a run of so many steps."""
        between = 0 if self.every is None else max(steps - 1, 0) // self.every
        return self.before + self.after + between


class ScaleSpec(DocumentModel):
    """The opinion scale."""

    points: tuple[Annotated[int, Field(ge=-MAX_INT, le=MAX_INT)], ...] = Field((-2, -1, 0, 1, 2), min_length=2)
    """Opinion values, in strictly increasing order."""
    labels: Annotated[tuple[str, ...], AfterValidator(distinct)] = ()
    """One verbal anchor for each point, lowest first. There are defaults for 2, 3, 4, 5 and 7 points."""

    @model_validator(mode="after")
    def _ordered(self) -> ScaleSpec:
        if any(later <= earlier for earlier, later in zip(self.points, self.points[1:], strict=False)):
            raise ValueError(f"points must be strictly increasing; got {list(self.points)}")
        if self.labels and len(self.labels) != len(self.points):
            raise ValueError(f"labels must have one entry for each of the {len(self.points)} points")
        if not self.labels and len(self.points) not in (2, 3, 4, 5, 7):
            raise ValueError(f"labels are required for {len(self.points)} points; defaults exist for 2, 3, 4, 5 and 7")
        return self

    def scale(self) -> OpinionScale:
        """The scale as an object."""
        return OpinionScale(self.points, self.labels)


_Kinds = Annotated[tuple[str, ...], AfterValidator(distinct)]


class InstrumentSpec(DocumentModel):
    """An instrument: a variable, and the classifier that measures it in texts."""

    variable: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60)
    """Variable that it measures: `stance`, `role-break`, `closed-world`, or your own name in lower case."""
    classifier: ClassifierSpec
    """Name of the classifier, or a mapping with `name` and `options`. For `role-break` and `closed-world`, the
    classifier `chat` asks the question that defines the variable, unless you give it another."""
    scale: ScaleSpec | None = None
    """Scale of its readings. Null uses no and yes for `role-break` and `closed-world`, and otherwise the scale of the
    experiment."""
    texts: _Kinds | None = Field(None, min_length=1)
    """Kinds of text to code. Null uses those in which agents state an opinion."""
    context: bool = False
    """Whether the classifier sees the author's persona and assigned opinion, and the messages that the author had read.
"""
    about: Literal["reads"] | None = None
    """`reads` codes each text together with each message that its author read. Null codes each text alone."""
    replies: Literal["whole"] | None = None
    """`whole` codes replies as the model gave them, with what `model.replies` strips. Null codes what readers got."""

    @model_validator(mode="after")
    def _knows_what_was_received(self) -> InstrumentSpec:
        if self.variable == "closed-world" and not self.context:
            raise ValueError(
                "closed-world is about sources other than the received messages, so it needs context: true"
            )
        return self

    def resolved(self, scale: ScaleSpec, stating: Iterable[str], asked: Iterable[str] = ()) -> InstrumentSpec:
        """The instrument with its kinds of text, or those in `stating` and `asked`.

        Parameters
        ----------
        scale : ScaleSpec
            The scale of the experiment.
        stating : iterable of str
            Kinds of text in which an opinion is stated.
        asked : iterable of str
            Kinds of answers to off-record questions; if there are any, the classifier `belief` reads only these.
        """
        conduct = CONDUCT.get(self.variable)
        usual = ScaleSpec(points=NO_YES.points, labels=NO_YES.labels) if conduct else scale
        classifier = self.classifier
        if conduct and classifier.name == "chat":
            classifier = ClassifierSpec(name="chat", options={"question": conduct.question, **classifier.options})
        read = () if asked and classifier.name == BELIEF else stating
        texts = tuple(dict.fromkeys((*(self.texts or read), *asked)))
        return self.model_copy(update={"classifier": classifier, "scale": self.scale or usual, "texts": texts})

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of text that it reads, once it is resolved."""
        return frozenset(self.texts or ())

    @property
    def opinions(self) -> OpinionScale:
        """The scale of its opinions, once it is resolved."""
        return (self.scale or ScaleSpec()).scale()

    @property
    def instrument_id(self) -> str:
        """Identity of the instrument, once it is resolved."""
        name, options = find("classifier", self.classifier.name).identity, self.classifier.options
        about, whole = self.about or "", bool(self.replies)
        return instrument_id(
            self.variable, name, options, self.opinions, context=self.context, about=about, whole=whole
        )


class MeasurementSpec(DocumentModel):
    """How opinions and other variables are coded from texts."""

    classifier: ClassifierSpec | None = Field(default_factory=lambda: ClassifierSpec(name="lexicon"))
    """Classifier of stance: its name, or a mapping with `name` and `options`. Null measures no stance."""
    texts: _Kinds | None = Field(None, min_length=1)
    """Kinds of text whose stance is coded. Null uses those in which agents state an opinion."""
    instruments: Annotated[tuple[InstrumentSpec, ...], Field(strict=False)] = ()
    """Further instruments. If you do not set `classifier`, an instrument of stance replaces `classifier` and `texts`.
"""
    probe: ProbeSpec = Field(default_factory=ProbeSpec)
    """Off-record questions that every agent answers in its own words. The answers are coded like other texts."""
    self_report: ProbeSpec = Field(default_factory=ProbeSpec)
    """Off-record questions that every agent answers with a point of the scale. No classifier codes the answers."""
    least_measured: float = Field(0.5, ge=0, le=1)
    """Minimum share of the agents with a turn of a kind of text whose opinion must be measured for the run to have a
    mean, a diversity and other numbers for that kind. 0 sets no minimum. This field changes no run."""
    metrics: Annotated[tuple[NamedPart, ...], Field(strict=False)] = ()
    """Metrics of final opinions to show in tables, in addition to bias and diversity. `opinionsim list metrics` lists
    them."""

    @property
    def takes_lexicon_for_granted(self) -> bool:
        """Whether the default classifier codes stance because the specification names none."""
        return "classifier" not in self.model_fields_set and not self._lists_stance

    @property
    def leaves_texts_unused(self) -> bool:
        """Whether `texts` is given although a listed instrument of stance replaces it."""
        return self._lists_stance and "texts" in self.model_fields_set and "classifier" not in self.model_fields_set

    @property
    def _lists_stance(self) -> bool:
        return any(each.variable == STANCE for each in self.instruments)

    def stance(self, classifier: ClassifierSpec, scale: ScaleSpec, stating: Iterable[str]) -> InstrumentSpec:
        """The instrument of stance from `classifier` and `texts`; `stating` as for :meth:`wanted`."""
        return InstrumentSpec(variable=STANCE, classifier=classifier, texts=self.texts).resolved(
            scale, stating, self._asked
        )

    def wanted(self, scale: ScaleSpec, stating: Iterable[str], *, unasked: bool = True) -> tuple[InstrumentSpec, ...]:
        """All instruments: that of `classifier` first, then the listed ones.

        Parameters
        ----------
        scale : ScaleSpec
            The scale of the experiment.
        stating : iterable of str
            Kinds of text in which an opinion is stated.
        unasked : bool
            Whether stance is measured even if the specification names no classifier, which is so for a topic.
        """
        named = "classifier" in self.model_fields_set
        short = self.classifier if named or (unasked and not self._lists_stance) else None
        found = [] if short is None else [self.stance(short, scale, stating)]
        # One that nobody named is left out where there is nothing to read.
        found = [each for each in found if named or each.texts]
        for each in self.instruments:
            first = each.variable == STANCE and not any(other.variable == STANCE for other in found)
            asked = first or (each.classifier.name == BELIEF and each.texts is None)
            found.append(each.resolved(scale, stating, self._asked if asked else ()))
        return tuple(found)

    @property
    def _asked(self) -> list[str]:
        """Kinds of answers to the off-record questions that there are."""
        asked = {PROBE.kind: self.probe, SELF_REPORT.kind: self.self_report}
        return [kind for kind, each in asked.items() if each.asks]


def text_problems(measurements: Iterable[MeasurementSpec], kinds: Mapping[str, bool]) -> Iterator[tuple[KeyPath, str]]:
    """Listed kinds of text that cannot be coded, each with its place; `kinds` are those that agents produce."""
    valid = [kind for kind, codes in kinds.items() if codes]
    named: dict[tuple[KeyPath, str], None] = {}
    for measurement in measurements:
        places: list[tuple[KeyPath, Any]] = [(("measurement",), measurement)]
        places += [(("measurement", "instruments", n), each) for n, each in enumerate(measurement.instruments)]
        for place, each in places:
            # An author can be asked anew at any of its turns.
            asks = each.classifier is not None and each.classifier.name == BELIEF
            texts = [(n, kind) for n, kind in enumerate(each.texts or ()) if not (asks and kind in kinds)]
            named |= {((*place, "texts", n), kind): None for n, kind in texts}
    for place, kind in named:
        if kind not in valid:
            why = "names a kind without an opinion" if kind in kinds else f"unknown value {kind!r}{meant(kind, valid)}"
            yield place, f"{why}; valid: {', '.join(valid) or 'none'}"


def question_conflicts(
    measurement: MeasurementSpec, interaction: Interaction, size: int
) -> Iterator[tuple[KeyPath, str]]:
    """Problems with off-record questions: too many, or agents of an interaction cannot answer them between steps."""
    shows = type(interaction).closing is not Interaction.closing
    forgetful = shows and not interaction.remembers
    for name in ("probe", "self_report"):
        asked: ProbeSpec = getattr(measurement, name)
        if asked.every and interaction.places_questions:
            problem = f"has no effect in {interaction.kind!r}, which places questions itself"
            yield ("measurement", name, "every"), problem
        elif asked.every and forgetful:
            problem = f"needs agents that remember, unlike those of {interaction.kind!r}"
            yield ("measurement", name, "every"), problem
        turns = asked.rounds(interaction.steps_for(size)) * size
        if turns > MAX_STEPS:
            problem = f"makes {turns} turns for population.size = {size}; the maximum is {MAX_STEPS}"
            yield ("measurement", name), problem
