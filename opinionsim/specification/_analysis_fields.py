"""The field `analysis`: contrasts of conditions that an experiment declares before there are results."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from typing_extensions import TypeAliasType

from opinionsim.errors import SpecError, meant
from opinionsim.foundation.documents import DocumentModel, validate

#: Field of the framing of a topic, and measures that are made of its two framings: what falsehood counts in them.
FRAMING = "topic.framing"
OF_FRAMINGS: Mapping[str, float] = {"truth-pull": -1.0, "agreement-bias": 1.0}

_NOTHING = "none, because no condition is swept"

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


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) else value


Levels = Annotated[tuple[Level, ...], BeforeValidator(_listed, json_schema_input_type=Level | tuple[Level, ...])]
Condition = dict[str, Levels]
Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=Level)]
Compared = TypeAliasType("Compared", "Text | Condition | tuple[Compared, Compared]")


def _split(value: Any) -> Any:
    """What is compared, with texts like ``a - b`` as pairs."""
    if isinstance(value, str):
        sides = value.split(" - ")
        value = sides if len(sides) == 2 else value
    if isinstance(value, list | tuple):
        value = tuple(map(_split, value))
        if len(value) != 2 or value[0] == value[1]:
            raise ValueError("must be one condition, or two that differ, the second of which is subtracted")
    return value


class ContrastSpec(DocumentModel):
    """A contrast of conditions, paired by block."""

    measure: str = Field("bias", min_length=1)
    """Measure to compare: `bias` (the mean opinion B), `diversity`, or a metric of `measurement.metrics`. Two measures
    combine the two framings of each topic: `truth-pull`, (B_truth - B_falsehood)/2, and `agreement-bias`, (B_truth +
    B_falsehood)/2."""
    of: Annotated[Compared, BeforeValidator(_split)] = Field(default_factory=dict)
    """Conditions to compare: `strong - none` subtracts one level from another, and `[a - b, c - d]` subtracts one
    difference from another. Write `AXIS=LEVEL` if several axes have the level, and join levels of several axes with
    `&`. A mapping of axes to levels averages several levels of one axis. Axes that you do not name are averaged. `not
    set` selects runs of grids that lack the axis. A single condition is compared with 0. By default, that condition is
    all runs."""
    interaction: Annotated[tuple[str, ...], Field(min_length=2, max_length=2), AfterValidator(distinct)] | None = None
    """Two axes with two levels each, instead of `of`. With levels a1, a2 and b1, b2 in the order of the sweep, it means
    `[a2 & b2 - a1 & b2, a2 & b1 - a1 & b1]`."""
    smallest: float | None = Field(None, gt=0)
    """Smallest effect of interest for this contrast. Null uses the value in `analysis`."""

    @model_validator(mode="after")
    def _has_a_null(self) -> ContrastSpec:
        if self.interaction and self.of:
            raise ValueError("of and interaction both say what to compare; set only one of them")
        if self.measure == "diversity" and not (self.interaction or isinstance(self.of, tuple)):
            raise ValueError("of must subtract a condition, as in a - b, because diversity is never below 0")
        if isinstance(self.of, tuple) and sum(weight for weight, _ in _weighted(self.of)) != 0:
            raise ValueError("of cannot mix conditions and differences; compare two conditions or two differences")
        if self.measure in OF_FRAMINGS and any(FRAMING in side for _, side in _weighted(self.of)):
            raise ValueError(f"{FRAMING} cannot be used with {self.measure}, which combines both framings")
        return self

    @property
    def quantity(self) -> str:
        """The metric of runs that is compared."""
        return "bias" if self.measure in OF_FRAMINGS else self.measure

    @property
    def metric(self) -> str:
        """The name of that metric, without options."""
        return self.quantity.partition("(")[0]

    @property
    def by_level(self) -> bool:
        """Whether a condition is given by levels alone, or by `interaction`, so that :meth:`among` must find axes."""
        return bool(self.interaction) or any(isinstance(side, str) for _, side in _weighted(self.of))

    @property
    def terms(self) -> tuple[tuple[float, Condition], ...]:
        """The contrast as a sum: a weight and conditions for each term.

        Raises
        ------
        SpecError
            If a condition is given by levels alone, or by `interaction`; :meth:`among` finds the axes.
        """
        terms = []
        for weight, side in _weighted(self.of):
            if self.interaction or isinstance(side, str):
                raise SpecError(f"{self.interaction or side!r} uses axes that appear only in `among`")
            terms.append((weight, side))
        if self.measure not in OF_FRAMINGS:
            return tuple(terms)
        framings = (("truth", 0.5), ("falsehood", 0.5 * OF_FRAMINGS[self.measure]))
        return tuple(
            (weight * share, {**side, FRAMING: (framing,)}) for weight, side in terms for framing, share in framings
        )

    @property
    def words(self) -> str:
        """The conditions and what is subtracted from them, as notes and forms print them."""
        return _in_words(self.of)

    def among(self, axes: Mapping[str, Sequence[str]]) -> ContrastSpec:
        """The contrast with its conditions as mappings of axes to levels.

        Parameters
        ----------
        axes : mapping of str to sequence of str
            The levels of each axis that varies, in their order.

        Raises
        ------
        SpecError
            If a level without an axis fits no axis or several, or an axis of `interaction` does not have two
            levels.
        """
        of = _mapped(self.of if self.interaction is None else _interaction(self.interaction, axes), axes)
        return validate(ContrastSpec, {**self.model_dump(mode="json"), "of": of, "interaction": None})


def _weighted(of: Compared, weight: float = 1.0) -> Iterator[tuple[float, str | Condition]]:
    """Each condition of what is compared, with its weight."""
    if isinstance(of, tuple):
        yield from _weighted(of[0], weight)
        yield from _weighted(of[1], -weight)
    else:
        yield weight, of


def _in_words(of: Compared) -> str:
    """What is compared, in words."""
    if isinstance(of, tuple):
        return " less ".join(f"({_in_words(each)})" if isinstance(each, tuple) else _in_words(each) for each in of)
    if isinstance(of, str):
        return of
    return " and ".join(f"{path} = {' or '.join(map(str, each))}" for path, each in of.items()) or "all conditions"


def _mapped(of: Compared, axes: Mapping[str, Sequence[str]]) -> Any:
    """What is compared, with each text as the mapping that it stands for."""
    if isinstance(of, tuple):
        return tuple(_mapped(each, axes) for each in of)
    if not isinstance(of, str):
        return of
    found: dict[str, Levels] = {}
    for text in of.split(" & "):
        # Levels are texts, and that of true is Python's.
        part = re.sub(r"(^|= *)(true|false)$", lambda each: each[1] + each[2].capitalize(), text.strip())
        path, named, level = (each.strip() for each in part.partition("="))
        homes = [axis for axis, levels in axes.items() if part in levels]
        if len(homes) == 1:
            path, level = homes[0], part
        elif not named:
            told = "; ".join(f"{axis}: {', '.join(levels)}" for axis, levels in axes.items()) or _NOTHING
            several = f"a level of {' and '.join(homes)}; write {homes[0]}={part}" if homes else ""
            raise SpecError(f"{part!r} is {several or f'not a level of a condition that varies; valid: {told}'}")
        if path in found:
            raise SpecError(f"{of!r} has two levels of {path}; use a mapping to average: {{{path}: [..., ...]}}")
        found[path] = (level,)
    return found


def _interaction(factors: Sequence[str], axes: Mapping[str, Sequence[str]]) -> Any:
    """The difference of differences of two axes, each the second level less the first."""
    for each in factors:
        require_axis(each, axes)
    one, other = factors
    of = tuple(tuple({one: a, other: b} for a in axes[one][1::-1]) for b in axes[other][1::-1])
    for each in factors:
        if len(axes[each]) > 2:
            told = json.dumps([" - ".join(" & ".join(map("=".join, side.items())) for side in pair) for pair in of])
            count = f"{len(axes[each])} levels ({', '.join(axes[each])})"
            raise SpecError(f"{each} has {count} but interaction needs two; choose two, as in of: {told}")
    return of


def require_axis(path: str, axes: Collection[str]) -> None:
    """Refuse a path that is none of the axes that vary."""
    if path not in axes:
        told = ", ".join(axes) or _NOTHING
        raise SpecError(f"{path!r}{meant(path, axes)} is not a condition that varies; valid: {told}")


class ChoicesSpec(DocumentModel):
    """Ways to analyse the stored runs, in every combination. A field that is left out has its default."""

    texts: Chosen[str] = ()
    """Kinds of text from which to read opinions, such as `report` and `probe`."""
    classifiers: Chosen[str] = ()
    """Names of the classifiers to use for stance."""
    last: Chosen[Annotated[int, Field(ge=1)]] = ()
    """Numbers of last steps to use: 1 uses the opinions at the end, and k uses the mean over the last k steps."""
    truncated: Chosen[Literal["missing", "measure"]] = ()
    """Whether truncated texts count."""


class VariantSpec(DocumentModel):
    """A change of the specification, under which all runs are repeated on the same blocks."""

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
    """Comparisons of results. They do not change any run; the record of the design contains them."""

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
        """Name of the primary contrast, or of the only one; None if there is neither."""
        only = next(iter(self.contrasts)) if len(self.contrasts) == 1 else None
        return only if self.primary is None else self.primary or None

    def without(self, metrics: Collection[str]) -> AnalysisSpec:
        """The analysis without contrasts of some metrics; if the deciding contrast is among them, nothing decides."""
        kept = {name: each for name, each in self.contrasts.items() if each.metric not in metrics}
        if len(kept) == len(self.contrasts):
            return self
        lost = {} if self.decides in kept else {"primary": "", "choices": None}
        return self.model_copy(update={"contrasts": kept, **lost})

    @property
    def deciding(self) -> AnalysisSpec:
        """The analysis with only that contrast."""
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
                raise ValueError("choices apply to the primary contrast; set analysis.primary")
            measure = self.contrasts[self.decides].quantity
            if max(self.choices.last, default=1) > 1 and measure not in ("bias", "diversity"):
                raise ValueError(f"choices.last above 1 needs bias or diversity; {self.decides!r} is of {measure}")
        return self


def analysis_of(spec: Mapping[str, Any], left_out: Collection[str] = ()) -> AnalysisSpec:
    """Return the analysis of a resolved specification in a store, without contrasts of omitted metrics.

    It is empty if the specification has none.
    """
    return validate(AnalysisSpec, spec.get("analysis", {})).without(left_out)
