"""The experiment specification: its fields and their meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from opinionsim.classifiers import DECIDED, RECORDED
from opinionsim.foundation.documents import MAX_INT, DocumentModel, KeyPath
from opinionsim.llm import Lanes, Limits, RetryPolicy
from opinionsim.personas import Assignment, InitialOpinions
from opinionsim.prompts import CognitionFields
from opinionsim.registry import NamedPart
from opinionsim.schedules import (
    INSTRUCT,
    MAX_SIZE,
    MAX_STEPS,
    MODERATE,
    MODERATOR,
    PROBE,
    REPORT,
    SELF_REPORT,
    ActSpec,
    InteractionField,
    acts_with,
)
from opinionsim.specification._analysis_fields import AnalysisSpec, VariantSpec, distinct
from opinionsim.specification._ethics import EthicsSpec
from opinionsim.specification._event_fields import EventSpec, event_conflicts
from opinionsim.specification._measurement import (
    ClassifierSpec,
    InstrumentSpec,
    MeasurementSpec,
    ProbeSpec,
    ScaleSpec,
    question_conflicts,
)
from opinionsim.specification._member_fields import MemberSpec, RoleSpec, SeatSpec
from opinionsim.specification._model_fields import AnyModelSpec, ModelSpec, endpoints
from opinionsim.specification._prompt_wording import PromptsSpec, pack_of
from opinionsim.specification._source_cells import ForkSpec
from opinionsim.specification._survey_fields import SurveySpec, survey_conflicts

#: Variable that is coded of a moderator that decides by values.
_VERDICT = "verdict"
#: Number of agents where neither a specification nor a persona file gives one.
USUAL_SIZE = 10


class CountsSpec(DocumentModel):
    """Initial opinions given point by point."""

    counts: dict[int, Annotated[int, Field(ge=0)]] = Field(min_length=1)
    """Number of agents that start at each scale point; sums to population.size."""


class PopulationSpec(DocumentModel):
    """The agents and their initial opinions."""

    personas: str | dict[str, Any] = "chuang2024"
    """Name of a persona set of the package, path of a persona file (YAML, JSON or CSV), or the set itself. `survey`
    draws new respondents from the survey for each run, and `{margins: ...}` draws new persons from the margins that you
    give."""
    size: int | None = Field(None, ge=1, le=MAX_SIZE)
    """Number of agents N. Null uses every persona in the file once, or 10 agents if they are drawn from a survey or
    from margins."""
    initial_opinions: Literal[InitialOpinions, "continuous", "normal"] | CountsSpec | None = None
    """Distribution of initial opinions. `personas` uses the opinions in the persona file, `none` assigns no opinions,
    and `{counts: ...}` sets the number of agents at each point. Classic models also accept `continuous`, which is
    uniform between the ends of the scale, and `normal`. Null uses `personas` if the file gives every persona an opinion
    on the scale, and otherwise `uniform`."""
    assignment: Assignment = "fixed"
    """How initial opinions are assigned to agents: `fixed` pairs them as in the file, `random` permutes them for each
    replicate, and `latin-square` rotates them in a balanced way."""
    shown: Literal["full", "demographics", "name", "none"] = "full"
    """Which part of its persona an agent sees."""
    template: str | None = Field(None, min_length=1)
    """Persona template, if the prompt pack has any: a name, or a text that contains ${persona}. Null uses the default
    of the pack."""
    query: str | None = Field(None, min_length=1)
    """Which respondents of the survey to draw from. The query compares variables with their original values."""

    @property
    def continuous(self) -> bool:
        """Whether initial opinions are real numbers, which only agents that no prompt asks can have."""
        return self.initial_opinions in ("continuous", "normal")

    @property
    def distribution(self) -> Any:
        """Name of the distribution of initial opinions, or number of agents at each scale point."""
        given = self.initial_opinions or "uniform"
        return given if isinstance(given, str) else given.counts


class NamedTopicSpec(DocumentModel):
    """A topic, by name."""

    definition: ClassVar[None] = None

    name: str = Field(min_length=1)
    """Name of the topic."""
    file: str | None = Field(None, min_length=1)
    """Path of a topics file. Null uses the topics of the package."""
    framing: str | None = None
    """Side of the topic that the claim affirms. Null uses `falsehood`, or the only side if there is just one."""
    masked: bool | None = None
    """Whether prompts call the claim an unnamed theory ("Theory XYZ") instead of naming it. Null uses the setting of
    the topic: true for topics of the package, and false for your own topics unless they set `masked: true`."""


class InlineTopicSpec(DocumentModel):
    """A topic written out in the specification."""

    definition: dict[str, Any]
    """The topic, with the same fields as in a topics file."""
    framing: str | None = None
    """Side of the topic that the claim affirms. Null uses `falsehood`, or the only side if there is just one."""
    masked: bool | None = None
    """Whether prompts call the claim an unnamed theory ("Theory XYZ") instead of naming it. Null uses the setting of
    the topic: true for topics of the package, and false for your own topics unless they set `masked: true`."""


class CognitionSpec(CognitionFields):
    """The memory and bias of the agents."""

    memory: NamedPart = Field(default_factory=lambda: NamedPart(name="cumulative"))
    """Memory of the agents: `cumulative`, `reflective`, `reflective-as-run`, `none`, or your own. Give a name, or a
    mapping with name and options."""
    token_budget: int | None = Field(None, ge=1, le=MAX_INT)
    """Maximum number of tokens of memory in a prompt. The oldest events are left out first. Null sets no limit."""
    draws: int = Field(1, ge=1, le=100)
    """Number of replies to draw for each answer. `selector` picks the one that counts. Off-record answers use a single
    reply."""
    selector: NamedPart = Field(default_factory=lambda: NamedPart(name="first"))
    """Selector that picks one of several replies: `first`, `shortest`, `longest`, or your own."""


class ExecutionSpec(Lanes):
    """How runs are carried out. No field changes a result, and each may change between invocations."""

    max_concurrency: int = Field(64, ge=1, le=MAX_SIZE)
    """Maximum number of model calls in flight at once, over all runs."""
    timeout_s: float = Field(120.0, gt=0)
    """Maximum wait for one reply, in seconds. Replies through the flexible tier may take at least 900 seconds."""
    max_prompt_characters: int = Field(1_000_000, ge=1_000, le=MAX_INT)
    """Maximum number of characters in all messages of a prompt, and therefore in a reply that prompts will show."""
    lookahead: int | None = Field(None, ge=0, le=MAX_STEPS)
    """Maximum number of steps that may start beyond the first unfinished one. Null sets no limit."""
    budget: Limits = Field(default_factory=Limits)
    """Limits that stop the experiment before a call could exceed them."""
    prices: str | None = Field(None, min_length=1)
    """Path of a price table. Null uses the table of the package."""
    retry: RetryPolicy = Field(default_factory=RetryPolicy)
    """How often to repeat calls after temporary failures."""


def _topic_form(value: Any) -> str:
    """Whether a topic is written out or named."""
    written_out = "definition" in value if isinstance(value, dict) else getattr(value, "definition", None) is not None
    return "inline" if written_out else "named"


TopicSpec = Annotated[
    Annotated[NamedTopicSpec, Tag("named")] | Annotated[InlineTopicSpec, Tag("inline")], Discriminator(_topic_form)
]


def _no_topic() -> InlineTopicSpec:
    """The topic where a specification names none."""
    claims = {"high": "the position at the high end of the scale is right"}
    return InlineTopicSpec(
        definition={"name": "none", "title": "No topic", "category": "none", "claims": claims, "accepted": None},
        masked=True,
    )


class ExperimentSpec(DocumentModel):
    """An experiment: one run, or a sweep of them, each repeated `replicates` times."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    """Name of the experiment. It may contain letters, digits, dots, hyphens and underscores."""
    description: str = ""
    """Purpose of the experiment."""
    seed: int = Field(0, ge=0, le=MAX_INT)
    """Root seed of all random numbers."""
    replicates: int = Field(1, ge=1, le=MAX_SIZE)
    """Number of runs of each cell."""
    redraws: int = Field(1, ge=1, le=MAX_SIZE)
    """Number of runs of each replicate. They share pairs, initial opinions and assignment, but their calls have
    different seeds."""
    population: PopulationSpec = Field(default_factory=PopulationSpec)
    """The agents and their initial opinions."""
    survey: SurveySpec | None = None
    """The survey from which respondents are drawn."""
    cast: Annotated[tuple[MemberSpec, ...], Field(strict=False, max_length=MAX_SIZE)] = ()
    """A list of agents, instead of a population."""
    roles: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")], RoleSpec] = Field(default_factory=dict)
    """Members of the cast in addition to the agents, by role. These are the roles that the interaction needs, such as
    `mediator`. If the turns are known in advance, you can also add a `moderator`, which reads all posts and answers at
    the end. `{}` is a role with default settings."""
    task: str = ""
    """What agents should do, in words. If there is also a topic, every prompt contains the task. If there is no topic,
    nothing is coded unless you define an instrument for it."""
    topic: TopicSpec = Field(default_factory=_no_topic)
    """The topic of the opinions. Classic models do not need one, and neither do agents that have a task."""
    cognition: CognitionSpec = Field(default_factory=CognitionSpec)
    """The memory and bias of the agents."""
    interaction: InteractionField
    """The order of turns, and the messages that agents read."""
    events: tuple[EventSpec, ...] = ()
    """Interventions from outside: messages, zealots, media, and agents that leave or join."""
    fork: ForkSpec | None = None
    """Another cell whose runs this cell shares up to a step, and the step from which its own runs continue."""
    model: AnyModelSpec = Field(default_factory=ModelSpec)
    """The chat model that plays the agents, a list of models with shares, a model for each value of an attribute, or a
    classic model."""
    measurement: MeasurementSpec = Field(default_factory=MeasurementSpec)
    """How opinions are read from texts."""
    prompts: Annotated[str, Field(min_length=1)] | PromptsSpec | None = None
    """Prompt pack: a name that `opinionsim list templates` shows, the path of a folder, or a mapping with `pack` and
    `variant`. Null uses the pack of the interaction."""
    scale: ScaleSpec = Field(default_factory=ScaleSpec)
    """The opinion scale."""
    ethics: EthicsSpec = Field(default_factory=EthicsSpec)
    """What people at seats are told and asked."""
    execution: ExecutionSpec = Field(default_factory=ExecutionSpec)
    """How runs are carried out. These settings change no result."""
    sweep: dict[str, tuple[Any, ...]] | tuple[dict[str, tuple[Any, ...]], ...] = Field(default_factory=dict)
    """Grid of axes. Each axis is the dotted path of a field with a list of values. A list of grids is their union."""
    independent_over: Annotated[tuple[str, ...], AfterValidator(distinct)] = ()
    """Dotted paths of fields whose values get independent random draws. Cells that differ only in other fields share
    their draws."""
    analysis: AnalysisSpec = Field(default_factory=AnalysisSpec)
    """Which results to compare. These settings change no run."""
    robustness: tuple[VariantSpec, ...] = ()
    """Changes to the specification for which `run --robustness` computes the primary contrast again."""

    @property
    def size(self) -> int:
        """Number of participants N."""
        return len(self.cast) or self.population.size or USUAL_SIZE

    @property
    def pack(self) -> str:
        """The prompt pack, with its wording if that is not the usual one."""
        return pack_of(self.prompts, self.interaction.prompts)

    @property
    def moderator(self) -> RoleSpec | None:
        """The moderator after all turns; None if there is none, or if the interaction places it."""
        return None if MODERATOR in self.interaction.others else self.roles.get(MODERATOR)

    @property
    def given(self) -> dict[int, str]:
        """Texts of participants that were written beforehand, by agent."""
        return {agent: each.text for agent, each in enumerate(self.cast) if each.text and each.seat is None}

    @property
    def seats(self) -> dict[int | str, SeatSpec]:
        """Seats for people: participants by number, other members by role."""
        found: dict[int | str, SeatSpec | None] = {agent: each.seat for agent, each in enumerate(self.cast)}
        found |= {role: each.seat for role, each in self.roles.items()}
        return {member: seat for member, seat in found.items() if seat is not None}

    @property
    def has_topic(self) -> bool:
        """Whether opinions are about a claim; a task alone has none."""
        return not self.model.prompted or self.topic != _no_topic()

    @property
    def prompted(self) -> bool:
        """Whether prompts ask the agents: not those on record, nor those that follow an equation."""
        return self.model.prompted and not self.interaction.recorded

    @property
    def world(self) -> Literal["closed", "open"]:
        """Whether agents are told that only the other agents can inform them."""
        return self.cognition.world or ("open" if self.cast else "closed")

    @property
    def chat_models(self) -> tuple[ModelSpec, ...]:
        """All chat models that may play a member of the cast; empty if no prompt asks the agents."""
        asked = [each.model for each in self.cast if each.text is None and each.seat is None]
        own = [*asked, *(each.model for each in self.roles.values() if each.seat is None)]
        unplayed = self.interaction.recorded or (self.cast and None not in own)
        shared = () if unplayed else self.model.chat_models
        found: list[ModelSpec] = []
        for each in (*shared, *own):
            # Not by slices of all: a cast of thousands has few models.
            if each is not None and each not in found:
                found.append(each)
        return tuple(found)

    @property
    def model_label(self) -> str:
        """The names of all models that play, as one text; those of the experiment if the cast names none."""
        return " + ".join(dict.fromkeys(each.name for each in self.chat_models)) or self.model.label

    @property
    def instruments(self) -> tuple[InstrumentSpec, ...]:
        """The instruments of a run, that of `classifier` first; one that reads numbers if no prompt asks the agents."""
        if not self.model.prompted:
            return (self.measurement.stance(ClassifierSpec(name="exact"), self.scale, self.stating),)
        if self.interaction.recorded:
            common: dict[str, Any] = {"classifier": ClassifierSpec(name=RECORDED), "scale": self.scale}
            rated = self.interaction.rated_kinds.items()
            listed = [each.resolved(self.scale, self.stating) for each in self.measurement.instruments]
            return (*(InstrumentSpec(variable=name, texts=tuple(kinds), **common) for name, kinds in rated), *listed)
        found = list(self.measurement.wanted(self.scale, self.stating, unasked=self.has_topic))
        measured, own = {each.variable for each in found}, ClassifierSpec(name=DECIDED)
        if self.moderator is not None and self.moderator.values is not None and _VERDICT not in measured:
            classifier = ClassifierSpec(name="stated", options={"after": "Verdict"})
            scale = ScaleSpec(points=(-1, 0, 1), labels=("rejected", "undecided", "accepted"))
            verdict = InstrumentSpec(variable=_VERDICT, classifier=classifier, scale=scale, texts=(MODERATE.kind,))
            found.insert(len(found) - len(self.measurement.instruments), verdict)
        # Numbers that replies say, but for variables that are listed.
        for name, (points, kinds) in self.interaction.decided.items():
            if name not in measured:
                scale, texts = ScaleSpec(points=points, labels=tuple(map(str, points))), tuple(kinds)
                found.append(InstrumentSpec(variable=name, classifier=own, scale=scale, texts=texts, about="reads"))
        return tuple(found)

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Statuses and signs of texts that tables and figures leave out; the same for all chat models."""
        return next((model.replies.uncounted for model in self.chat_models), ("truncated",))

    @property
    def ends_runs(self) -> list[list[str]]:
        """Statuses and signs with which a reply ends its run, for each chat model."""
        return [model.replies.ends for model in self.chat_models]

    @property
    def asked(self) -> tuple[tuple[ProbeSpec, ActSpec], ...]:
        """The off-record questions of measurement, with their acts."""
        return (self.measurement.probe, PROBE), (self.measurement.self_report, SELF_REPORT)

    @property
    def acts(self) -> list[ActSpec]:
        """The acts of a run's turns; empty if no prompt asks the agents."""
        if not self.prompted:
            return []
        moderating = () if self.moderator is None else (MODERATE, *((INSTRUCT,) if self.moderator.automatic else ()))
        questions = (act for each, act in self.asked if each.asks)
        acts = acts_with(self.interaction.acts, [event.kind for event in self.events])
        return [*acts.values(), *moderating, *questions]

    @property
    def stating(self) -> tuple[str, ...]:
        """Kinds of text in which an opinion is stated."""
        acts = self.interaction.acts.values()
        # Agents that meet as an equation defines report their numbers, without acts of a schedule.
        return tuple(act.kind for act in acts if act.opinion == "states") if acts else (REPORT.kind,)

    @property
    def ratable(self) -> dict[str, bool]:
        """Kinds of text that agents produce, and whether a specification can have their opinion coded."""
        acts = (*self.interaction.acts.values(), *self.acts)
        codes = {act.kind: act.opinion != "none" and act.kind != SELF_REPORT.kind for act in acts}
        return {**dict.fromkeys(self.stating, True), **codes}

    @property
    def acts_of_persons(self) -> list[ActSpec]:
        """The same acts in their form for people at seats; none without seats."""
        return [act.for_person for act in self.acts] if self.seats else []


#: Most agents that language models play: each is drawn, named and stored before the first call.
MOST_PLAYED = 100_000


def json_schema() -> dict[str, Any]:
    """JSON Schema of a specification file, sweep included.

    Returns
    -------
    dict
        Draft 2020-12. Fields that a sweep supplies are nevertheless listed as required.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ExperimentSpec.model_json_schema(),
        "title": "opinionsim experiment",
    }


def conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Conflicts between fields that are each valid.

    Parameters
    ----------
    spec : ExperimentSpec
        Specification of one run.

    Yields
    ------
    (KeyPath, str)
        The field, and the problem.
    """
    size, interaction = spec.size, spec.interaction
    if size > MOST_PLAYED and spec.prompted:
        problem = f"must be at most {MOST_PLAYED:,} when language models play the agents; got {size:,}"
        yield ("population", "size"), "; ".join([problem, *(each.allows_more for each in endpoints().values())])
    elif size < interaction.smallest:
        problem = f"must be at least {interaction.smallest} for interaction kind {interaction.kind!r}; got {size}"
        yield (("cast",) if spec.cast else ("population", "size")), problem
    else:
        for keys, problem in interaction.conflicts(size):
            yield ("interaction", *keys), problem
    yield from event_conflicts(spec.events, interaction, size, "" if spec.model.prompted else spec.model.told)
    if interaction.needs_memory and spec.cognition.memory.name == "none":
        yield ("interaction", "remember"), "needs a memory, but cognition.memory is none"
    yield from _agent_conflicts(spec)
    yield from _cast_conflicts(spec)
    yield from survey_conflicts(spec)
    if not isinstance(counts := spec.population.distribution, str):
        yield from _count_conflicts(counts, size, spec.scale.points)
    questions = (spec.measurement.probe, spec.measurement.self_report)
    if not interaction.asks and not any(each.before or each.after for each in questions):
        yield (
            ("interaction", "reports"),
            "0 leaves nothing to ask; set a number, or measurement.probe or measurement.self_report",
        )
    yield from question_conflicts(spec.measurement, interaction, size)
    if spec.cognition.draws == 1 and spec.cognition.selector.name != "first":
        yield ("cognition", "selector"), "has no effect with one draw; also set cognition.draws"
    for name in dict.fromkeys(model.name for model in spec.chat_models):
        if name != "scripted" and spec.has_topic and spec.measurement.takes_lexicon_for_granted:
            yield (
                ("measurement", "classifier"),
                f"is required when the model is not 'scripted'; got model {name!r}{_meant(name)} and no classifier",
            )
            break
    yield from _instrument_conflicts(spec)
    yield from _budget_conflicts(spec)


def _instrument_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Repeated instruments, unused texts, and variables that a schedule needs and no instrument measures."""
    wanted = spec.instruments
    offset = len(wanted) - len(spec.measurement.instruments)
    seen: dict[str, int] = {}
    for position, each in enumerate(wanted):
        if each.instrument_id in seen:
            yield (
                ("measurement", "instruments", position - offset),
                f"repeats the instrument of {each.variable!r} by {each.classifier.name!r}; two of one variable "
                "must differ in classifier, options, scale or context; to read several kinds of text, list them in one",
            )
        seen[each.instrument_id] = position
        if not each.texts:
            may = ", ".join(kind for kind, codes in spec.ratable.items() if codes) or "none"
            yield (
                ("measurement", "instruments", position - offset) if position >= offset else ("measurement", "texts"),
                f"the instrument of {each.variable!r} by {each.classifier.name!r} has no text to read, because "
                f"no act of {spec.interaction.kind!r} states an opinion; set texts, valid: {may}",
            )
    if spec.measurement.leaves_texts_unused:
        yield (
            ("measurement", "texts"),
            "has no effect when instruments lists one of stance; set its texts, or set classifier",
        )
    variables = {each.variable for each in wanted}
    for variable in spec.interaction.needs:
        if variable not in variables:
            yield (
                ("measurement", "instruments"),
                f"interaction kind {spec.interaction.kind!r} needs {variable!r}, which no instrument measures; "
                f"measured are {', '.join(sorted(variables)) or 'none'}",
            )


def _agent_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Fields that fit only agents that prompts ask, or only others."""
    interaction, model = spec.interaction, spec.model
    if not model.prompted:
        if model.players not in interaction.played_by:
            yield ("interaction", "kind"), f"{interaction.kind!r} needs a chat model; got {model.told}"
        yield from model.conflicts(spec)
        return
    if interaction.needs_task and not spec.has_topic and not spec.task:
        own = [each.task for each in spec.cast]
        if not own or None in own:
            yield ("topic",), "is required but missing; give a topic, or a task"
    if model.players not in interaction.played_by and not interaction.recorded:
        named = {each.players: f"a {each.words}; set model: {{{name}: NAME}}" for name, each in endpoints().items()}
        needed = " or ".join(named.get(each, each) for each in interaction.played_by)
        problem = f"{interaction.kind!r} needs {needed}, or use another kind"
        yield ("interaction", "kind"), problem
    if len({model.replies.uncounted for model in spec.chat_models}) > 1:
        yield ("model",), "replies: all models must treat the same replies as missing, because tables need one rule"
    if spec.population.continuous:
        others = " or ".join(f"{each.words}s" for each in endpoints().values()) or "equations"
        problem = f"{spec.population.initial_opinions!r} is only for {others}; chat models have opinions on the scale"
        yield ("population", "initial_opinions"), problem


def _cast_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Problems of a cast and a moderator, and of fields that they take the place of."""
    for place, each in enumerate(spec.cast):
        yield from ((("cast", place, *keys), problem) for keys, problem in each.conflicts())
    names = Counter(each.name or spec.interaction.unnamed(agent) for agent, each in enumerate(spec.cast))
    if spec.cast:
        names.update(role.capitalize() for role in spec.roles)
    for name, number in names.items():
        if number > 1:
            yield ("cast",), f"{name!r} names two agents; names must be distinct"
    if not spec.cast and "cast" in spec.model_fields_set and "population" not in spec.model_fields_set:
        yield ("cast",), "must list at least one agent; remove it to use a population"
    if spec.cast and spec.population != PopulationSpec():
        yield ("population",), "cannot be combined with cast, which lists the agents"
    if spec.task and not spec.task.strip():
        yield ("task",), "must not be blank; remove it to have no task"
    for field in ("cast", "roles", "task"):
        if not spec.model.prompted and getattr(spec, field):
            yield (field,), f"is only for chat models; got {spec.model.told}"
    if spec.cast and not isinstance(spec.model, ModelSpec) and spec.model.prompted:
        yield ("model",), "must be one chat model when there is a cast; set other models on its members"
    if spec.cast and not spec.interaction.role_play:
        yield ("interaction", "kind"), f"{spec.interaction.kind!r} has no role play, so it cannot have a cast"
    if spec.given and not spec.interaction.takes_texts:
        yield ("cast", min(spec.given), "text"), f"has no effect in {spec.interaction.kind!r}, which asks every agent"
    yield from _role_conflicts(spec)


def _role_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Roles that the interaction does not have, or needs and are missing."""
    interaction, kind = spec.interaction, spec.interaction.kind
    known_beforehand = not interaction.adaptive
    valid = [*interaction.others, *([MODERATOR] if known_beforehand and MODERATOR not in interaction.others else [])]
    for role, each in spec.roles.items():
        behind = role == MODERATOR and role not in interaction.others
        if behind and not known_beforehand:
            yield ("roles", role), f"needs turns that are known in advance, unlike those of {kind!r}"
        elif role not in valid:
            yield ("roles", role), f"is not a role of {kind!r}; valid: {', '.join(valid) or 'none'}"
        else:
            yield from ((("roles", role, *keys), problem) for keys, problem in each.conflicts(moderates=behind))
    # A role that nobody has may be one that is needed, mistyped: one error for it is enough.
    mistyped = any(role not in (*valid, MODERATOR) for role in spec.roles)
    for role in interaction.others if not mistyped and spec.model.prompted else ():
        if role not in spec.roles:
            yield (
                ("roles",),
                f"has no {role!r}, which {kind!r} needs; with `{role}: {{}}` the model of the experiment plays it",
            )


def _budget_conflicts(spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
    """Limits that cannot be kept because the longest reply is not known."""
    budget = spec.execution.budget
    for field in ("tokens", "money"):
        if getattr(budget, field) is not None and any(model.max_tokens is None for model in spec.chat_models):
            yield (
                ("execution", "budget", field),
                "needs model.max_tokens, because a call is made only if its longest reply would be within budget",
            )


def _meant(name: str) -> str:
    """A hint on a name without a provider: a misspelled 'scripted', or a name of the user's own."""
    if ":" in name:
        return ""
    close = get_close_matches(name.lower(), ["scripted"])
    return " (did you mean 'scripted'?)" if close else " (your own name, neither 'scripted' nor 'provider:model')"


def _count_conflicts(counts: Mapping[int, int], size: int, points: tuple[int, ...]) -> Iterator[tuple[KeyPath, str]]:
    """Initial counts off the scale, or with a sum other than the population size."""
    where: KeyPath = ("population", "initial_opinions", "counts")
    for value in counts:
        if value not in points:
            yield ((*where, str(value)), f"opinion {value} is not on the scale; valid: {', '.join(map(str, points))}")
    if sum(counts.values()) != size:
        yield where, f"must sum to population.size = {size}; the sum is {sum(counts.values())}"
