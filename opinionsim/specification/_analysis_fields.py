"""The field `analysis`: contrasts of conditions that an experiment declares before there are results."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from opinionsim.foundation.documents import DocumentModel, validate

#: Field of the framing of a topic, and measures that are made of its two framings: what falsehood counts in them.
FRAMING = "topic.framing"
OF_FRAMINGS: Mapping[str, float] = {"truth-pull": -1.0, "agreement-bias": 1.0}

#: Fields whose change is one of the whole system.
_OF_THE_SYSTEM = ("interaction.network", "population.size")

Level = str | int | float | bool
Item = TypeVar("Item")


def distinct(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Refuse repeated entries."""
    repeated = [item for position, item in enumerate(items) if item in items[:position]]
    if repeated:
        raise ValueError(f"entries must be distinct; {repeated[0]!r} is given twice")
    return items


Chosen = Annotated[tuple[Item, ...], AfterValidator(distinct)]


class ContrastSpec(DocumentModel):
    """A contrast of conditions, paired by block."""

    measure: str = Field("bias", min_length=1)
    """Measure to compare: `bias` (the mean opinion B), `diversity`, or a metric of `measurement.metrics`. Two measures
    combine the two framings of each topic: `truth-pull`, (B_truth - B_falsehood)/2, and `agreement-bias`, (B_truth +
    B_falsehood)/2."""
    of: dict[str, Level | tuple[Level, ...]] = Field(default_factory=dict)
    """Conditions, given by axes of the sweep and their levels. Several levels, and axes that you do not name, are
    averaged. `not set` selects runs of grids that lack the axis. An empty mapping selects all conditions."""
    less: dict[str, Level | tuple[Level, ...]] | None = None
    """Conditions to subtract. Null compares the measure with 0."""
    smallest: float | None = Field(None, gt=0)
    """Smallest effect of interest for this contrast. Null uses the value in `analysis`."""

    @model_validator(mode="after")
    def _has_a_null(self) -> ContrastSpec:
        if self.less is None and self.measure == "diversity":
            raise ValueError("less must say what to subtract, for diversity is never below 0")
        if self.less is not None and dict(self.less) == dict(self.of):
            raise ValueError("of and less name the same conditions; nothing is left to compare")
        if self.measure in OF_FRAMINGS and any(FRAMING in side for side in (self.of, self.less or {})):
            raise ValueError(f"{FRAMING} cannot be named for {self.measure}, which is made of both framings")
        return self

    @property
    def quantity(self) -> str:
        """The metric of runs that is compared."""
        return "bias" if self.measure in OF_FRAMINGS else self.measure

    @property
    def metric(self) -> str:
        """The name of that metric, without the options that may stand behind it."""
        return self.quantity.partition("(")[0]

    @property
    def terms(self) -> tuple[tuple[float, dict[str, tuple[Level, ...]]], ...]:
        """The sum that the contrast is: a weight and conditions for each of its terms."""
        sides = [(1.0, self.of), *([] if self.less is None else [(-1.0, self.less)])]
        terms = [
            (weight, {path: each if isinstance(each, tuple) else (each,) for path, each in side.items()})
            for weight, side in sides
        ]
        if self.measure not in OF_FRAMINGS:
            return tuple(terms)
        framings = (("truth", 0.5), ("falsehood", 0.5 * OF_FRAMINGS[self.measure]))
        return tuple(
            (weight * share, {**side, FRAMING: (framing,)}) for weight, side in terms for framing, share in framings
        )


class ChoicesSpec(DocumentModel):
    """Ways to analyse what is on record, every combination of which is carried out. Left out, the usual one is."""

    texts: Chosen[str] = ()
    """Kinds of text from which to read opinions, such as `report` and `probe`."""
    classifiers: Chosen[str] = ()
    """Names of the classifiers to use for stance."""
    last: Chosen[Annotated[int, Field(ge=1)]] = ()
    """Numbers of last steps to use: 1 uses the opinions at the end, and k uses the mean over the last k steps."""
    truncated: Chosen[Literal["missing", "measure"]] = ()
    """Whether truncated texts count."""


class VariantSpec(DocumentModel):
    """A change of the specification under which all runs are carried out once more, on the same blocks."""

    label: str = Field(min_length=1)
    """Name of the variant."""
    change: dict[str, Any] = Field(min_length=1)
    """Dotted paths of fields with their values in the variant, under `cognition`, `events`, `interaction`, `model`,
    `population`, `prompts`, `roles`, `task` or `topic.masked`."""
    level: Literal["agent", "interaction", "system"] | None = None
    """What the change affects: a single agent, how agents interact, or the whole system. Null infers it from the paths.
"""

    @property
    def changed_level(self) -> str:
        """The level as stated, or that of the paths: `interaction.network` and `population.size` are of the system."""
        found = {"system" if path.startswith(_OF_THE_SYSTEM) else path.split(".")[0] for path in self.change}
        implied = "system" if "system" in found else "interaction" if found & {"interaction", "events"} else "agent"
        return self.level or implied


class AnalysisSpec(DocumentModel):
    """What of the results is compared. It changes no run, and stands in the record of the design."""

    primary: str | None = None
    """Name of the primary contrast. Its p-value is not adjusted, and the p-values of all others are adjusted for one
    another."""
    contrasts: dict[str, ContrastSpec] = Field(default_factory=dict)
    """Contrasts by name."""
    smallest: float | None = Field(None, gt=0)
    """Smallest effect of interest, in scale points. If you set it, every contrast is larger, equivalent, or undecided.
"""
    estimand: Literal["topics-like-these", "these-topics"] | None = None
    """What means are about: topics like those of the experiment, which count as a sample, or only these topics. Null
    uses `topics-like-these` if there are three or more topics."""
    choices: ChoicesSpec | None = None
    """Alternative analyses for which to compute the primary (or only) contrast as well."""

    @property
    def decides(self) -> str | None:
        """Name of the primary contrast, or of the only one; None without either."""
        only = next(iter(self.contrasts)) if len(self.contrasts) == 1 else None
        return only if self.primary is None else self.primary or None

    def without(self, metrics: Collection[str]) -> AnalysisSpec:
        """The analysis without contrasts of some metrics; where the one that decides is among them, nothing decides."""
        kept = {name: each for name, each in self.contrasts.items() if each.metric not in metrics}
        if len(kept) == len(self.contrasts):
            return self
        lost = {} if self.decides in kept else {"primary": "", "choices": None}
        return self.model_copy(update={"contrasts": kept, **lost})

    @property
    def deciding(self) -> AnalysisSpec:
        """The analysis with that contrast alone."""
        name = str(self.decides)
        return self.model_copy(update={"primary": name, "contrasts": {name: self.contrasts[name]}})

    @model_validator(mode="after")
    def _primary_is_declared(self) -> AnalysisSpec:
        if self.primary is not None and self.primary not in self.contrasts:
            valid = ", ".join(self.contrasts) or "none; declare it under contrasts"
            raise ValueError(f"primary must be the name of a contrast; got {self.primary!r}; valid: {valid}")
        if self.smallest is not None and not self.contrasts:
            raise ValueError("smallest has no effect without contrasts")
        if self.choices is not None:
            if self.decides is None:
                raise ValueError("choices are of the primary contrast, which is not named")
            measure = self.contrasts[self.decides].quantity
            if max(self.choices.last, default=1) > 1 and measure not in ("bias", "diversity"):
                raise ValueError(f"choices.last beyond 1 are of bias and diversity; {self.decides!r} is of {measure}")
        return self


def analysis_of(spec: Mapping[str, Any], left_out: Collection[str] = ()) -> AnalysisSpec:
    """The analysis of a resolved specification, as a store has it, without contrasts of metrics that are left out.

    It is an empty one where the specification was written without.
    """
    return validate(AnalysisSpec, spec.get("analysis", {})).without(left_out)
