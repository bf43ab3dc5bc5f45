"""The experiment specification: what a user may write, with the meaning of every field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from opinionsim.documents import DocumentModel, KeyPath
from opinionsim.experiments._measurement_spec import (
    MAX_STEPS,
    ClassifierSpec,
    MeasurementSpec,
    ScaleSpec,
    WantedInstrument,
    distinct,
)
from opinionsim.experiments._model_spec import AnyModelSpec, ClassicModelSpec, ModelSpec, models_of
from opinionsim.measurement import STANCE

__all__ = [
    "BoundedConfidenceSpec",
    "BroadcastSpec",
    "BudgetSpec",
    "CognitionSpec",
    "CountsSpec",
    "DyadicSpec",
    "ExecutionSpec",
    "ExperimentSpec",
    "ExternalSpec",
    "FeedSpec",
    "IndependentSpec",
    "InlineTopicSpec",
    "InteractionSpec",
    "NamedTopicSpec",
    "NativeSpec",
    "NetworkSpec",
    "NoRolePlaySpec",
    "PopulationSpec",
    "RememberedSpec",
    "RetrySpec",
    "RewiringSpec",
    "SimilaritySpec",
    "TopicSpec",
    "conflicts",
    "json_schema",
]

#: Largest integer every store keeps exactly.
_MAX_INT = 2**63 - 1
#: Far above any run that can be paid for; keeps a slip of the finger from exhausting the memory.
_MAX_SIZE = 1_000_000


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
        Literal[
            "uniform",
            "skewed-positive",
            "skewed-negative",
            "all-positive",
            "all-negative",
            "personas",
            "continuous",
            "normal",
        ]
        | CountsSpec
    ) = "uniform"
    """Distribution of initial opinions; `personas` takes those of the persona file, `{counts: ...}` gives numbers.
    Of classic models also `continuous`, uniform over the scale between its points, and `normal`."""
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

    memory: Literal["cumulative", "reflective", "reflective-as-run", "none"] = "cumulative"
    """Every event, one replaced summary, the summaries as the published code kept them, or nothing."""
    token_budget: int | None = Field(None, ge=1, le=_MAX_INT)
    """Tokens of memory a prompt may hold; the oldest events are left out beyond it. Null sets no limit."""
    confirmation_bias: Literal["none", "weak", "strong"] = "none"
    """Instruction to favour what agrees with the agent's belief."""
    world: Literal["closed", "open"] = "closed"
    """Whether agents are told that nobody but the other agents can inform them."""


_Positive = Annotated[int, Field(ge=1, le=_MAX_SIZE)]
_Natural = Annotated[int, Field(ge=0, le=_MAX_SIZE)]
_Probability = Annotated[float, Field(ge=0, le=1)]
_Row = Annotated[tuple[_Probability, ...], Field(strict=False)]


class _Network(DocumentModel):
    def too_small(self, size: int) -> str | None:
        """Why this network cannot join `size` agents; None when it can."""
        return None

    def mapping(self) -> dict[str, Any]:
        """The form that :func:`opinionsim.networks.build_network` takes."""
        return self.model_dump(mode="json", exclude_none=True)


class CompleteNetworkSpec(_Network):
    """Everybody with everybody."""

    kind: Literal["complete"]


def _even(k: int) -> str | None:
    """Why a ring cannot have k nearest neighbours; None when it can."""
    return f"k must be even, half of it on either side; got {k}" if k % 2 else None


class RingSpec(_Network):
    """A closed circle."""

    kind: Literal["ring"]
    k: int = Field(2, ge=2, le=_MAX_SIZE)
    """Nearest neighbours each agent is joined to: even, at most N."""

    def too_small(self, size: int) -> str | None:
        """K neighbours need at least k agents, as many on one side as on the other."""
        return f"k must be at most population.size = {size}; got {self.k}" if self.k > size else _even(self.k)


class SimpleNetworkSpec(_Network):
    """A network without parameters."""

    kind: Literal["path", "star"]
    """An open line, or agent 0 in the middle of all others."""


_Pair = Annotated[tuple[_Positive, _Positive], Field(strict=False)]


class LatticeSpec(_Network):
    """A rectangular grid, filled row by row."""

    kind: Literal["lattice"]
    sides: _Pair | None = None
    """Rows and columns, whose product is N; null makes the grid as square as it can be."""
    periodic: bool = True
    """Whether opposite borders meet."""
    neighbours: Literal[4, 8] = 4
    """Those beside, above and below, or the diagonal ones too."""

    def too_small(self, size: int) -> str | None:
        """The grid holds every agent once."""
        if self.sides is None or self.sides[0] * self.sides[1] == size:
            return None
        rows, columns = self.sides
        return f"sides must have the product population.size = {size}; got {rows} times {columns}"


class WattsStrogatzSpec(_Network):
    """A small world: a ring lattice, partly rewired."""

    kind: Literal["watts-strogatz"]
    k: int = Field(ge=2, le=_MAX_SIZE)
    """Nearest neighbours on the ring: even, at most N."""
    p: float = Field(ge=0, le=1)
    """Probability that an edge is rewired."""

    def too_small(self, size: int) -> str | None:
        """K neighbours need at least k agents, as many on one side as on the other."""
        return f"k must be at most population.size = {size}; got {self.k}" if self.k > size else _even(self.k)


class ErdosRenyiSpec(_Network):
    """A random network: give either p or mean_degree."""

    kind: Literal["erdos-renyi"]
    p: float | None = Field(None, gt=0, le=1)
    """Probability of each edge."""
    mean_degree: float | None = Field(None, gt=0, le=_MAX_SIZE)
    """Expected number of neighbours, p (N - 1)."""

    @model_validator(mode="after")
    def _one_density(self) -> ErdosRenyiSpec:
        if (self.p is None) == (self.mean_degree is None):
            raise ValueError("needs exactly one of p (a probability, > 0) and mean_degree (expected neighbours, > 0)")
        return self

    def too_small(self, size: int) -> str | None:
        """Nobody has more neighbours than there are others."""
        if self.mean_degree is None or self.mean_degree <= size - 1:
            return None
        return f"mean_degree must be at most population.size - 1 = {size - 1}; got {self.mean_degree:g}"


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


class BlocksSpec(_Network):
    """Blocks of agents, joined more or less within and between; agents are numbered block by block."""

    kind: Literal["stochastic-block-model"]
    sizes: Annotated[tuple[_Natural, ...], Field(strict=False, min_length=1)] | None = None
    """Agents of each block, which sum to N; give either this or shares."""
    shares: (
        Annotated[tuple[Annotated[float, Field(gt=0, le=_MAX_SIZE)], ...], Field(strict=False, min_length=1)] | None
    ) = None
    """Share of each block, of any sum; give either this or sizes."""
    p_within: _Probability | None = None
    """Probability of an edge within a block."""
    p_between: _Probability | None = None
    """Probability of an edge between two blocks."""
    p: Annotated[tuple[_Row, ...], Field(strict=False)] | None = None
    """Probability for each two blocks, a symmetric matrix, in the place of p_within and p_between."""

    @model_validator(mode="after")
    def _one_form(self) -> BlocksSpec:
        if (self.sizes is None) == (self.shares is None):
            raise ValueError("needs exactly one of sizes (agents of each block) and shares (of any sum)")
        given = self.p_within is not None, self.p_between is not None
        if given != ((self.p is None),) * 2:
            raise ValueError("needs either p (a matrix) or both p_within and p_between (probabilities)")
        count = len(self.sizes or self.shares or ())
        if self.p is not None:
            columns = {len(row) for row in self.p}
            if len(self.p) != count or columns != {count} or tuple(zip(*self.p, strict=True)) != self.p:
                raise ValueError(f"p must be a symmetric matrix with a row and a column for each of {count} blocks")
        return self

    def too_small(self, size: int) -> str | None:
        """The blocks hold every agent once."""
        if self.sizes is None or sum(self.sizes) == size:
            return None
        return f"sizes must sum to population.size = {size}; the sum is {sum(self.sizes)}"


class ConfigurationSpec(_Network):
    """Agents of given numbers of neighbours, or of numbers from a power law, joined by chance."""

    kind: Literal["configuration"]
    degrees: Annotated[tuple[_Natural, ...], Field(strict=False, min_length=1)] | None = None
    """Neighbours of each agent; give either this or exponent."""
    exponent: float | None = Field(None, ge=-100, le=100)
    """Degrees are drawn with probabilities proportional to degree to the power of -exponent."""
    min_degree: int = Field(1, ge=1, le=_MAX_SIZE)
    """Smallest degree that is drawn."""
    max_degree: int | None = Field(None, ge=1, le=_MAX_SIZE)
    """Largest degree that is drawn; null allows all others."""

    @model_validator(mode="after")
    def _one_form(self) -> ConfigurationSpec:
        if (self.degrees is None) == (self.exponent is None):
            raise ValueError("needs exactly one of degrees (neighbours of each agent) and exponent (of a power law)")
        if self.degrees is not None and {"min_degree", "max_degree"} & self.model_fields_set:
            raise ValueError("min_degree and max_degree go with exponent")
        if self.max_degree is not None and self.max_degree < self.min_degree:
            raise ValueError(f"max_degree must be at least min_degree = {self.min_degree}; got {self.max_degree}")
        return self

    def mapping(self) -> dict[str, Any]:
        """The form that :func:`opinionsim.networks.build_network` takes."""
        return {"kind": self.kind, "degrees": list(self.degrees)} if self.degrees else super().mapping()

    def too_small(self, size: int) -> str | None:
        """One degree an agent, none as large as N, and two ends to each edge."""
        if self.degrees is not None:
            if len(self.degrees) != size:
                return f"degrees must be population.size = {size} numbers; got {len(self.degrees)}"
            if max(self.degrees) >= size:
                return f"degrees must be below population.size = {size}; got {max(self.degrees)}"
            total = sum(self.degrees)
            return f"degrees must have an even sum; got {total}" if total % 2 else None
        largest = max(self.min_degree, self.max_degree or 1)
        if largest >= size:
            return f"min_degree and max_degree must be below population.size = {size}; got {largest}"
        if self.min_degree == self.max_degree and size * largest % 2:
            return f"population.size times the degree must be even; got {size} times {largest}"
        return None


class FileNetworkSpec(_Network):
    """A network from a file."""

    kind: Literal["file"]
    path: str = Field(min_length=1)
    """GraphML, or an edge list with two agents, and perhaps a weight, a line."""


_Agent = Annotated[int, Field(ge=0)]
# A list may stand for a tuple here although values are strict: they pass through `_spelled_network` first.
_Edge = Annotated[tuple[_Agent, _Agent], Field(strict=False)]


class EdgesNetworkSpec(_Network):
    """A network written out."""

    kind: Literal["edges"]
    edges: tuple[_Edge, ...] = Field(min_length=1, strict=False)
    """Pairs of agents, numbered from 0."""
    weights: Annotated[tuple[float, ...], Field(strict=False)] | None = None
    """Weight of each edge; null gives all the weight 1."""
    directed: bool = False
    """Whether the first agent of a pair can speak to the second only; otherwise each can speak to the other."""

    @model_validator(mode="after")
    def _one_weight_each(self) -> EdgesNetworkSpec:
        if self.weights is not None and len(self.weights) != len(self.edges):
            raise ValueError(f"weights must be as many as edges, {len(self.edges)}; got {len(self.weights)}")
        return self


_AnyNetwork = Annotated[
    CompleteNetworkSpec
    | RingSpec
    | SimpleNetworkSpec
    | LatticeSpec
    | WattsStrogatzSpec
    | ErdosRenyiSpec
    | BarabasiAlbertSpec
    | RandomRegularSpec
    | BlocksSpec
    | ConfigurationSpec
    | FileNetworkSpec
    | EdgesNetworkSpec,
    Field(discriminator="kind"),
]


def _spelled_network(value: Any) -> Any:
    """Read ``ring`` as ``{kind: ring}``, and ``{edges: ...}`` and the kind ``edge-list`` as of kind ``edges``."""
    if isinstance(value, str):
        return {"kind": value}
    if isinstance(value, dict) and ("edges" in value or value.get("kind") == "edge-list"):
        kind = value.get("kind", "edges")
        return {**value, "kind": "edges" if kind == "edge-list" else kind}
    return value


NetworkSpec = Annotated[
    _AnyNetwork,
    BeforeValidator(
        _spelled_network,
        json_schema_input_type=Literal["complete", "ring", "path", "star", "lattice"] | _AnyNetwork,
    ),
]


class _Interaction(DocumentModel):
    smallest: ClassVar[int] = 1
    """Agents it takes at least."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Variables on whose opinions the schedule acts, which makes their instruments part of the run."""
        return ()

    def steps_for(self, size: int) -> int:
        """Steps T of a population of `size` agents."""
        raise NotImplementedError


class _Stepped(_Interaction):
    steps: int | None = Field(None, ge=0, le=MAX_STEPS)
    """Number of steps T; give either this or exposures."""
    exposures: float | None = Field(None, gt=0, le=MAX_STEPS)
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
    reports: int = Field(10, ge=1, le=MAX_STEPS)
    """Reports each agent gives."""

    def steps_for(self, size: int) -> int:
        """Steps T: one report of every agent each."""
        return self.reports


class _Networked(_Stepped):
    smallest: ClassVar[int] = 2

    network: NetworkSpec = Field(default_factory=lambda: CompleteNetworkSpec(kind="complete"))
    """Who can speak to whom: a name, or a mapping with kind and that kind's parameters, or with edges."""


class DyadicSpec(_Networked):
    """In each step a random speaker writes a post and a random neighbour reviews it."""

    kind: Literal["dyadic"]


class BroadcastSpec(_Networked):
    """In each step a random speaker writes a post and all its neighbours review it."""

    kind: Literal["broadcast"]


class _Adaptive(_Networked):
    @property
    def needs(self) -> tuple[str, ...]:
        """The stance of those who may meet."""
        return (STANCE,)


class SimilaritySpec(_Adaptive):
    """Dyads in which a listener meets speakers of similar opinion more often."""

    kind: Literal["similarity"]
    strength: float = Field(1.0, ge=0)
    """Fall of the log-odds of meeting per scale unit of distance, or exponent of the power law; 0 is indifferent."""
    form: Literal["exponential", "power"] = "exponential"
    """How probability falls with distance d: as exp(-strength d), or as d to the power of -strength."""
    floor: float = Field(0.5, gt=0)
    """Least distance the power law tells apart, in scale units; shorter ones count as this."""


class BoundedConfidenceSpec(_Adaptive):
    """Dyads in which nobody reads what is too far from its own opinion."""

    kind: Literal["bounded-confidence"]
    confidence: float = Field(ge=0)
    """Largest distance of opinions at which agents meet, in scale units."""
    choose: Literal["drawn", "near"] = "drawn"
    """If the drawn speaker is too far, nothing is read; or the speaker is drawn among those who are near."""
    strict: bool = False
    """Whether a distance of exactly confidence is too far."""


class RewiringSpec(_Adaptive):
    """Dyads in which a listener may unfollow a speaker it disagrees with, and follow another agent."""

    kind: Literal["rewiring"]
    tolerance: float = Field(ge=0)
    """Largest distance of opinions that is put up with, in scale units."""
    rewire: float = Field(1.0, ge=0, le=1)
    """Probability that a listener beyond it unfollows; otherwise it reads all the same."""
    target: Literal["random", "similar", "friend-of-friend"] = "random"
    """Whom it follows instead: anybody, somebody within tolerance, or somebody followed by whom it still follows."""


class FeedSpec(_Adaptive):
    """In each step a random reader reviews several posts, ranked for it, and then writes one."""

    kind: Literal["feed"]
    posts: int = Field(3, ge=1, le=_MAX_SIZE)
    """Posts shown at a time, at most: the latest one of each author."""
    ranking: Literal["similarity", "recency", "random"] = "similarity"
    """Which authors come first: those of similar opinion, those who wrote last, or any."""
    strength: float = Field(1.0, ge=0)
    """Of the ranking by similarity: fall of the log-odds of being shown next per scale unit; 0 ranks at random."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The stance of authors, where it ranks them."""
        return (STANCE,) if self.ranking == "similarity" else ()


class NativeSpec(_Networked):
    """Agents of a classic model meet as the model has it: in pairs, in groups or all at once."""

    kind: Literal["native"]
    isolates: Literal["error", "keep"] = "error"
    """What becomes of agents without a partner: the run stops, or they keep their opinions."""

    def steps_for(self, size: int) -> int:
        """Steps T: sweeps of one elementary update an agent, so that one exposure is one sweep."""
        return self.steps if self.steps is not None else round(self.exposures or 0.0)


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
    DyadicSpec
    | BroadcastSpec
    | SimilaritySpec
    | BoundedConfidenceSpec
    | RewiringSpec
    | FeedSpec
    | NativeSpec
    | IndependentSpec
    | RememberedSpec
    | NoRolePlaySpec
    | ExternalSpec,
    Field(discriminator="kind"),
]


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
    lookahead: int | None = Field(None, ge=0, le=MAX_STEPS)
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


def _no_topic() -> InlineTopicSpec:
    """What opinions of a classic model are about where nothing is named."""
    claims = {"falsehood": "the position at the high end of the scale is right"}
    return InlineTopicSpec(
        definition={"name": "none", "title": "No topic", "category": "none", "claims": claims, "accepted": None}
    )


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
    topic: TopicSpec = Field(default_factory=_no_topic)
    """What opinions are about; only classic models can do without."""
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
    independent_over: Annotated[tuple[str, ...], AfterValidator(distinct)] = ()
    """Dotted paths of fields whose values get random draws of their own; all other cells share theirs."""

    @property
    def instruments(self) -> tuple[WantedInstrument, ...]:
        """The instruments of a run, that of stance first; where agents are numbers, one that takes them as such."""
        if isinstance(self.model, ClassicModelSpec):
            return (self.measurement.stance(ClassifierSpec(name="exact"), self.scale.scale()),)
        return self.measurement.wanted(self.scale.scale())


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
    yield from _adaptive_conflicts(interaction)
    yield from _classic_conflicts(spec)
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
        if name != "scripted" and spec.measurement.takes_lexicon_for_granted:
            yield (
                ("measurement", "classifier"),
                f"must be named when the model is not 'scripted'; got model {name!r}{_meant(name)} and no classifier",
            )
            break
    yield from _instrument_conflicts(spec)
    yield from _budget_conflicts(spec)


def _instrument_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Instruments that are one and the same, and those that a schedule acts on and the cell lacks."""
    wanted = spec.instruments
    offset = len(wanted) - len(spec.measurement.instruments)
    seen: dict[str, int] = {}
    for position, each in enumerate(wanted):
        if each.instrument_id in seen:
            yield (
                ("measurement", "instruments", position - offset),
                f"is the instrument of {each.variable!r} by {each.classifier.name!r} once more; two of one variable "
                "must differ in classifier, options, scale or context, and kinds of text go into one list",
            )
        seen[each.instrument_id] = position
    if spec.measurement.leaves_texts_unused:
        yield (
            ("measurement", "texts"),
            "has no effect beside a listed instrument of stance; name the kinds of text there, or give classifier",
        )
    variables = {each.variable for each in wanted if not each.about}
    for variable in spec.interaction.needs:
        if variable not in variables:
            yield (
                ("measurement", "instruments"),
                f"interaction kind {spec.interaction.kind!r} acts on {variable!r}, which no instrument measures; "
                f"measured are {', '.join(sorted(variables)) or 'none'}",
            )


def _classic_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """What only equations can do, and what they cannot."""
    initial, kind = spec.population.initial_opinions, spec.interaction.kind
    if isinstance(spec.model, ClassicModelSpec):
        if isinstance(spec.interaction, IndependentSpec | RememberedSpec | NoRolePlaySpec | ExternalSpec):
            yield ("interaction", "kind"), f"{kind!r} needs a chat model; got the classic model {spec.model.classic!r}"
        return
    if "topic" not in spec.model_fields_set:
        yield ("topic",), "is required and missing"
    if isinstance(spec.interaction, NativeSpec):
        yield ("interaction", "kind"), "'native' is for classic models: give model: {classic: NAME}, or another kind"
    if initial in ("continuous", "normal"):
        yield (
            ("population", "initial_opinions"),
            f"{initial!r} is for classic models; agents of a chat model hold points of the scale",
        )


def _adaptive_conflicts(interaction: _Interaction) -> Iterator[tuple[KeyPath, str]]:
    """Ways of meeting that a network or another field leaves without effect."""
    if isinstance(interaction, RewiringSpec) and interaction.network.kind == "complete":
        yield ("interaction", "network"), "'complete' leaves nobody else to follow; give a network with fewer ties"
    floor = SimilaritySpec.model_fields["floor"].default
    if isinstance(interaction, SimilaritySpec) and interaction.form != "power" and interaction.floor != floor:
        yield ("interaction", "floor"), f"has no effect with form {interaction.form!r}; it belongs to form: power"


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
        crowd = isinstance(interaction, BroadcastSpec) and interaction.network.kind == "complete"
        each = size if crowd or isinstance(interaction, NativeSpec) else 1
    else:
        field, each = "reports", size
    lengths: list[tuple[KeyPath, int]] = [(("interaction", field), steps * each)]
    for name in ("probe", "self_report"):
        asked = getattr(spec.measurement, name)
        lengths.append((("measurement", name), (asked.before + asked.after) * size))
    for keys, turns in lengths:
        if turns > MAX_STEPS:
            yield keys, f"makes {turns} turns for population.size = {size}; at most {MAX_STEPS} are possible"


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
