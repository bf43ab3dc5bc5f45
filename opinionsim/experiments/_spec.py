"""The experiment specification: what a user may write, with the meaning of every field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from opinionsim.documents import DocumentModel, KeyPath
from opinionsim.experiments._model_spec import AnyModelSpec, ModelSpec, Options, models_of
from opinionsim.opinions import OpinionScale

__all__ = [
    "BroadcastSpec",
    "BudgetSpec",
    "ClassifierSpec",
    "CognitionSpec",
    "CountsSpec",
    "DyadicSpec",
    "ExecutionSpec",
    "ExperimentSpec",
    "ExternalSpec",
    "IndependentSpec",
    "InlineTopicSpec",
    "InteractionSpec",
    "MeasurementSpec",
    "NamedTopicSpec",
    "NetworkSpec",
    "NoRolePlaySpec",
    "PopulationSpec",
    "ProbeSpec",
    "RememberedSpec",
    "RetrySpec",
    "ScaleSpec",
    "SimilaritySpec",
    "TopicSpec",
    "conflicts",
    "json_schema",
]

_Item = TypeVar("_Item")

#: Largest integer every store keeps exactly.
_MAX_INT = 2**63 - 1
#: Far above any run that can be paid for; keeps a slip of the finger from exhausting the memory.
_MAX_SIZE = 1_000_000
#: Turns of one run, whose schedule is held in memory.
_MAX_STEPS = 10_000_000


def _distinct(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    """Refuse repeated entries."""
    repeated = [item for position, item in enumerate(items) if item in items[:position]]
    if repeated:
        raise ValueError(f"entries must be distinct; {repeated[0]!r} is given twice")
    return items


class CountsSpec(DocumentModel):
    """Initial opinions given point by point."""

    counts: dict[int, Annotated[int, Field(ge=0)]] = Field(min_length=1)
    """Number of agents that start at each scale point; sums to population.size."""


class PopulationSpec(DocumentModel):
    """Who takes part and what they believe at first."""

    personas: str | dict[str, Any] = "chuang2024"
    """Name of a persona set of the package, path of a persona file, or the set itself."""
    size: int = Field(10, ge=1, le=_MAX_SIZE)
    """Number of agents N."""
    initial_opinions: (
        Literal["uniform", "skewed-positive", "skewed-negative", "all-positive", "all-negative", "personas"]
        | CountsSpec
    ) = "uniform"
    """Distribution of initial opinions; `personas` takes those of the persona file, `{counts: ...}` gives numbers."""
    assignment: Literal["fixed", "random", "latin-square"] = "fixed"
    """Who gets which initial opinion: as the file pairs them, a permutation a replicate, or a balanced rotation."""
    shown: Literal["full", "demographics", "name", "none"] = "full"
    """How much of its persona an agent is told."""


class NamedTopicSpec(DocumentModel):
    """A topic by its name in a topics file."""

    name: str = Field(min_length=1)
    """Name of the topic."""
    file: str | None = Field(None, min_length=1)
    """Path of a topics file; null looks among the topics of the package."""
    framing: Literal["falsehood", "truth"] = "falsehood"
    """Which side the claim affirms."""
    masked: bool = True
    """Whether agents know the subject as an unnamed theory ("theory XYZ"); otherwise the claim is put plainly."""


class InlineTopicSpec(DocumentModel):
    """A topic written out in the specification."""

    definition: dict[str, Any]
    """The topic, with the fields it would have in a topics file."""
    framing: Literal["falsehood", "truth"] = "falsehood"
    """Which side the claim affirms."""
    masked: bool = True
    """Whether agents know the subject as an unnamed theory ("theory XYZ"); otherwise the claim is put plainly."""


class CognitionSpec(DocumentModel):
    """How agents remember and weigh what they read."""

    memory: Literal["cumulative", "reflective", "reflective-as-run"] = "cumulative"
    """Every event, one replaced summary, or the summaries as the published code kept them."""
    token_budget: int | None = Field(None, ge=1, le=_MAX_INT)
    """Tokens of memory a prompt may hold; the oldest events are left out beyond it. Null sets no limit."""
    confirmation_bias: Literal["none", "weak", "strong"] = "none"
    """Instruction to favour what agrees with the agent's belief."""
    world: Literal["closed", "open"] = "closed"
    """Whether agents are told that nobody but the other agents can inform them."""


class _Network(DocumentModel):
    def too_small(self, size: int) -> str | None:
        """Why this network cannot join `size` agents; None when it can."""
        return None

    def mapping(self) -> dict[str, Any]:
        """The form that :func:`opinionsim.schedules.build_network` takes."""
        return self.model_dump(mode="json")


class SimpleNetworkSpec(_Network):
    """A network without parameters."""

    kind: Literal["complete", "ring", "path", "star"]
    """Everybody with everybody, a closed circle, an open line, or one agent in the middle."""


class WattsStrogatzSpec(_Network):
    """A small world: a ring lattice, partly rewired."""

    kind: Literal["watts-strogatz"]
    k: int = Field(ge=2, le=_MAX_SIZE)
    """Nearest neighbours on the ring, at most N."""
    p: float = Field(ge=0, le=1)
    """Probability that an edge is rewired."""

    def too_small(self, size: int) -> str | None:
        """K neighbours need at least k agents."""
        return f"k must be at most population.size = {size}; got {self.k}" if self.k > size else None


class ErdosRenyiSpec(_Network):
    """A random network."""

    kind: Literal["erdos-renyi"]
    p: float = Field(gt=0, le=1)
    """Probability of each edge."""


class BarabasiAlbertSpec(_Network):
    """A network grown by preferential attachment."""

    kind: Literal["barabasi-albert"]
    m: int = Field(ge=1, le=_MAX_SIZE)
    """Edges a new agent brings, below N."""

    def too_small(self, size: int) -> str | None:
        """M edges need more than m agents."""
        return f"m must be below population.size = {size}; got {self.m}" if self.m >= size else None


class RandomRegularSpec(_Network):
    """A random network in which everybody has the same number of neighbours."""

    kind: Literal["random-regular"]
    d: int = Field(ge=1, le=_MAX_SIZE)
    """Neighbours of each agent, below N, with N times d even."""

    def too_small(self, size: int) -> str | None:
        """A d-regular graph needs d < N and an even sum of degrees."""
        if self.d >= size:
            return f"d must be below population.size = {size}; got {self.d}"
        return f"population.size times d must be even; got {size} times {self.d}" if self.d * size % 2 else None


class FileNetworkSpec(_Network):
    """A network from a file."""

    kind: Literal["file"]
    path: str = Field(min_length=1)
    """GraphML, or an edge list with two agents a line."""


_Agent = Annotated[int, Field(ge=0)]
# A list may stand for a tuple here although values are strict: they pass through `_spelled_network` first.
_Edge = Annotated[tuple[_Agent, _Agent], Field(strict=False)]


class EdgesNetworkSpec(_Network):
    """A network written out."""

    kind: Literal["edge-list"]
    edges: tuple[_Edge, ...] = Field(min_length=1, strict=False)
    """Pairs of agents, numbered from 0."""

    def mapping(self) -> dict[str, Any]:
        """The form that :func:`opinionsim.schedules.build_network` takes."""
        return {"edges": [list(edge) for edge in self.edges]}


_AnyNetwork = Annotated[
    SimpleNetworkSpec
    | WattsStrogatzSpec
    | ErdosRenyiSpec
    | BarabasiAlbertSpec
    | RandomRegularSpec
    | FileNetworkSpec
    | EdgesNetworkSpec,
    Field(discriminator="kind"),
]


def _spelled_network(value: Any) -> Any:
    """Read ``ring`` as ``{kind: ring}`` and ``{edges: ...}`` as of kind ``edge-list``."""
    if isinstance(value, str):
        return {"kind": value}
    return {"kind": "edge-list", **value} if isinstance(value, dict) and "edges" in value else value


NetworkSpec = Annotated[
    _AnyNetwork,
    BeforeValidator(_spelled_network, json_schema_input_type=Literal["complete", "ring", "path", "star"] | _AnyNetwork),
]


class _Interaction(DocumentModel):
    adaptive: ClassVar[bool] = False
    """Whether the schedule acts on measured opinions, which makes the classifier part of the run."""
    smallest: ClassVar[int] = 1
    """Agents it takes at least."""

    def steps_for(self, size: int) -> int:
        """Steps T of a population of `size` agents."""
        raise NotImplementedError


class _Stepped(_Interaction):
    steps: int | None = Field(None, ge=0, le=_MAX_STEPS)
    """Number of steps T; give either this or exposures."""
    exposures: float | None = Field(None, gt=0, le=_MAX_STEPS)
    """Number of steps per agent, T/N, rounded to whole steps; give either this or steps."""

    @model_validator(mode="after")
    def _one_length(self) -> _Stepped:
        if (self.steps is None) == (self.exposures is None):
            raise ValueError("needs exactly one of steps (T, >= 0) and exposures (T/N, > 0)")
        return self

    def steps_for(self, size: int) -> int:
        """Steps T of a population of `size` agents."""
        return self.steps if self.steps is not None else round((self.exposures or 0.0) * size)


class _Reports(_Interaction):
    reports: int = Field(10, ge=1, le=_MAX_STEPS)
    """Reports each agent gives."""

    def steps_for(self, size: int) -> int:
        """Steps T: one report of every agent each."""
        return self.reports


class _Networked(_Stepped):
    smallest: ClassVar[int] = 2

    network: NetworkSpec = Field(default_factory=lambda: SimpleNetworkSpec(kind="complete"))
    """Who can speak to whom: a name, or a mapping with kind and that kind's parameters, or with edges."""


class DyadicSpec(_Networked):
    """In each step a random speaker writes a post and a random neighbour reviews it."""

    kind: Literal["dyadic"]


class BroadcastSpec(_Networked):
    """In each step a random speaker writes a post and all its neighbours review it."""

    kind: Literal["broadcast"]


class SimilaritySpec(_Networked):
    """Dyads in which a listener meets speakers of similar opinion more often."""

    adaptive: ClassVar[bool] = True

    kind: Literal["similarity"]
    strength: float = Field(1.0, ge=0)
    """Fall of the log-odds of meeting per scale unit of distance; 0 is indifferent."""


class IndependentSpec(_Reports):
    """Control: no interaction; every report as if it were the first."""

    kind: Literal["independent"]


class RememberedSpec(_Stepped):
    """Control: no interaction; a random agent reports in each step and remembers it."""

    kind: Literal["remembered"]


class NoRolePlaySpec(_Reports):
    """Control: the bare chat model reports, playing nobody."""

    kind: Literal["no-role-play"]


class ExternalSpec(_Stepped):
    """In each step a random agent reviews a message from outside."""

    kind: Literal["external"]
    messages: str | tuple[str, ...]
    """The messages, or the path of a file: YAML or JSON with a list under messages, else one message a line."""
    order: Literal["sequence", "random"] = "random"
    """Whether messages are shown in turn or drawn."""


InteractionSpec = Annotated[
    DyadicSpec | BroadcastSpec | SimilaritySpec | IndependentSpec | RememberedSpec | NoRolePlaySpec | ExternalSpec,
    Field(discriminator="kind"),
]


class ClassifierSpec(DocumentModel):
    """A classifier and its options."""

    name: str = Field(min_length=1)
    """Name of the classifier."""
    options: Options = Field(default_factory=dict)
    """Further arguments of the classifier."""


class ProbeSpec(DocumentModel):
    """Off-record questions, which leave no trace in any memory."""

    before: int = Field(0, ge=0, le=_MAX_STEPS)
    """Questions to each agent before the first step."""
    after: int = Field(0, ge=0, le=_MAX_STEPS)
    """Questions to each agent after the last step."""


def _spelled_classifier(value: Any) -> Any:
    """Read ``lexicon`` as ``{name: lexicon}``."""
    return {"name": value} if isinstance(value, str) else value


class MeasurementSpec(DocumentModel):
    """How opinions are coded from texts."""

    classifier: Annotated[
        ClassifierSpec, BeforeValidator(_spelled_classifier, json_schema_input_type=str | ClassifierSpec)
    ] = Field(default_factory=lambda: ClassifierSpec(name="lexicon"))
    """Name of the classifier, or a mapping with name and options."""
    texts: Annotated[tuple[Literal["post", "report", "response", "probe"], ...], AfterValidator(_distinct)] = Field(
        ("report", "post"), min_length=1
    )
    """Kinds of text that are coded."""
    probe: ProbeSpec = Field(default_factory=ProbeSpec)
    """Off-record questions to every agent, answered in its own words, which are coded like other texts."""
    self_report: ProbeSpec = Field(default_factory=ProbeSpec)
    """Off-record questions to every agent, answered with a point of the scale, which no classifier codes."""


class ScaleSpec(DocumentModel):
    """The opinion scale."""

    points: tuple[Annotated[int, Field(ge=-_MAX_INT, le=_MAX_INT)], ...] = Field((-2, -1, 0, 1, 2), min_length=2)
    """Opinion values, strictly increasing."""
    labels: Annotated[tuple[str, ...], AfterValidator(_distinct)] = ()
    """One verbal anchor a point, lowest first; the package has its own for 2, 3, 4, 5 and 7 points."""

    @model_validator(mode="after")
    def _ordered(self) -> ScaleSpec:
        if any(later <= earlier for earlier, later in zip(self.points, self.points[1:], strict=False)):
            raise ValueError(f"points must be strictly increasing; got {list(self.points)}")
        if self.labels and len(self.labels) != len(self.points):
            raise ValueError(f"labels must give one label for each of the {len(self.points)} points")
        if not self.labels and len(self.points) not in (2, 3, 4, 5, 7):
            raise ValueError(f"labels must be given for {len(self.points)} points; defaults exist for 2, 3, 4, 5 and 7")
        return self

    def scale(self) -> OpinionScale:
        """The scale itself."""
        return OpinionScale(self.points, self.labels)


class BudgetSpec(DocumentModel):
    """What an experiment may use, over all its calls on record. Null sets no limit."""

    calls: int | None = Field(None, ge=0, le=_MAX_INT)
    """Replies of models."""
    tokens: int | None = Field(None, ge=0, le=_MAX_INT)
    """Tokens in and out."""
    money: float | None = Field(None, ge=0)
    """In the currency of the price table."""


class RetrySpec(DocumentModel):
    """How calls that fail in passing are tried again."""

    transient: int = Field(5, ge=0, le=1000)
    """Further tries after time-outs, lost connections and server errors."""
    rate_limited: int = Field(20, ge=0, le=1000)
    """Further tries after a provider's "too many requests"."""
    first_wait_s: float = Field(0.5, gt=0)
    """Longest wait before the first further try, in seconds; doubled from one to the next."""
    longest_wait_s: float = Field(60.0, gt=0)
    """Longest wait before any, in seconds, unless the provider asks for more."""


class ExecutionSpec(DocumentModel):
    """How runs are carried out. Nothing here changes a result, and all of it may change between runs."""

    max_concurrency: int = Field(64, ge=1, le=_MAX_SIZE)
    """Model calls in flight at once, over all runs."""
    timeout_s: float = Field(120.0, gt=0)
    """Longest wait for one reply, in seconds."""
    lookahead: int | None = Field(None, ge=0, le=_MAX_STEPS)
    """Steps that may be started beyond the first unfinished one; null sets no limit."""
    budget: BudgetSpec = Field(default_factory=BudgetSpec)
    """Limits that stop the experiment before a call could exceed them."""
    prices: str | None = Field(None, min_length=1)
    """Path of a price table; null takes that of the package."""
    retry: RetrySpec = Field(default_factory=RetrySpec)
    """What is done about calls that fail in passing."""
    canary: bool = True
    """Whether models behind a network are asked a few fixed questions first and last, to see whether they changed."""


def _topic_form(value: Any) -> str:
    """Whether a topic is written out or named."""
    written_out = isinstance(value, InlineTopicSpec) or (isinstance(value, dict) and "definition" in value)
    return "inline" if written_out else "named"


TopicSpec = Annotated[
    Annotated[NamedTopicSpec, Tag("named")] | Annotated[InlineTopicSpec, Tag("inline")], Discriminator(_topic_form)
]


class ExperimentSpec(DocumentModel):
    """An experiment: one run, or a sweep of them, each repeated `replicates` times."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    """Name of the experiment: letters, digits, dots, hyphens and underscores."""
    description: str = ""
    """What it is for."""
    seed: int = Field(0, ge=0, le=_MAX_INT)
    """Root of all randomness."""
    replicates: int = Field(1, ge=1, le=_MAX_SIZE)
    """Runs of each cell."""
    population: PopulationSpec = Field(default_factory=PopulationSpec)
    """Who takes part and what they believe at first."""
    topic: TopicSpec
    """What opinions are about."""
    cognition: CognitionSpec = Field(default_factory=CognitionSpec)
    """How agents remember and weigh what they read."""
    interaction: InteractionSpec
    """Who acts when, and who reads whom."""
    model: AnyModelSpec = Field(default_factory=ModelSpec)
    """The chat model that plays the agents; or a list of models with shares; or one for each value of an attribute."""
    measurement: MeasurementSpec = Field(default_factory=MeasurementSpec)
    """How opinions are coded from texts."""
    prompts: str = Field("default", min_length=1)
    """`default`, or the path of a folder with a prompt pack."""
    scale: ScaleSpec = Field(default_factory=ScaleSpec)
    """The opinion scale."""
    execution: ExecutionSpec = Field(default_factory=ExecutionSpec)
    """How runs are carried out; changes no result."""
    sweep: dict[str, tuple[Any, ...]] | tuple[dict[str, tuple[Any, ...]], ...] = Field(default_factory=dict)
    """Axes: the dotted path of any field of a run and the values it takes; a list is a union of such grids."""
    independent_over: Annotated[tuple[str, ...], AfterValidator(_distinct)] = ()
    """Dotted paths of fields whose values get random draws of their own; all other cells share theirs."""


def json_schema() -> dict[str, Any]:
    """JSON Schema of a specification file, sweep included.

    Returns
    -------
    dict
        Draft 2020-12. Fields that a sweep supplies are listed as required all the same.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ExperimentSpec.model_json_schema(),
        "title": "opinionsim experiment",
    }


def conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """What is wrong between fields that are each valid.

    Parameters
    ----------
    spec : ExperimentSpec
        One run's specification.

    Yields
    ------
    (KeyPath, str)
        The field to name, and what is wrong with it.
    """
    size, interaction = spec.population.size, spec.interaction
    if size < interaction.smallest:
        yield (
            ("population", "size"),
            f"must be at least {interaction.smallest} for interaction kind {interaction.kind!r}; got {size}",
        )
    elif isinstance(interaction, _Networked) and (problem := interaction.network.too_small(size)):
        yield ("interaction", "network"), problem
    initial = spec.population.initial_opinions
    if isinstance(initial, CountsSpec):
        yield from _count_conflicts(initial.counts, size, spec.scale.points)
    yield from _length_conflicts(spec)
    if isinstance(interaction, ExternalSpec):
        if not interaction.messages:
            yield ("interaction", "messages"), "must have at least 1 entry"
        elif isinstance(interaction.messages, str):
            if not interaction.messages.strip():
                yield ("interaction", "messages"), "must not be blank"
        else:
            for position, text in enumerate(interaction.messages):
                if not text.strip():
                    yield ("interaction", "messages", position), "must not be blank"
    for name in dict.fromkeys(model.name for model in models_of(spec.model)):
        if name != "scripted" and "classifier" not in spec.measurement.model_fields_set:
            yield (
                ("measurement", "classifier"),
                f"must be named when the model is not 'scripted'; got model {name!r}{_meant(name)} and no classifier",
            )
            break
    yield from _budget_conflicts(spec)


def _budget_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Limits that cannot be kept, since the longest reply is not known."""
    budget = spec.execution.budget
    for field in ("tokens", "money"):
        if getattr(budget, field) is not None and any(model.max_tokens is None for model in models_of(spec.model)):
            yield (
                ("execution", "budget", field),
                "needs model.max_tokens: a call is made only when the longest reply would be within the budget",
            )


def _meant(name: str) -> str:
    """What a model's name that is neither the scripted one's nor that of a provider may have been meant to be."""
    if ":" in name:
        return ""
    close = get_close_matches(name.lower(), ["scripted"])
    return " (did you mean 'scripted'?)" if close else " (a name of your own, neither 'scripted' nor 'provider:model')"


def _length_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Runs without a step although some are asked for, and runs of more turns than memory holds."""
    size, interaction = spec.population.size, spec.interaction
    steps = interaction.steps_for(size)
    if isinstance(interaction, _Stepped):
        field = "steps" if interaction.exposures is None else "exposures"
        if field == "exposures" and steps == 0:
            yield (
                ("interaction", field),
                f"{interaction.exposures:g} gives no step for population.size = {size}; "
                f"must be greater than {0.5 / size:g}, or give steps",
            )
        each = size if isinstance(interaction, BroadcastSpec) and interaction.network.kind == "complete" else 1
    else:
        field, each = "reports", size
    lengths: list[tuple[KeyPath, int]] = [(("interaction", field), steps * each)]
    for name in ("probe", "self_report"):
        asked = getattr(spec.measurement, name)
        lengths.append((("measurement", name), (asked.before + asked.after) * size))
    for keys, turns in lengths:
        if turns > _MAX_STEPS:
            yield keys, f"makes {turns} turns for population.size = {size}; at most {_MAX_STEPS} are possible"


def _count_conflicts(counts: Mapping[int, int], size: int, points: tuple[int, ...]) -> Iterator[tuple[KeyPath, str]]:
    """Initial counts off the scale, or of another sum than the population."""
    where: KeyPath = ("population", "initial_opinions", "counts")
    for value in counts:
        if value not in points:
            yield (
                (*where, str(value)),
                f"opinion {value} is not on the scale; valid: {', '.join(map(str, points))}",
            )
    if sum(counts.values()) != size:
        yield where, f"must sum to population.size = {size}; the sum is {sum(counts.values())}"
