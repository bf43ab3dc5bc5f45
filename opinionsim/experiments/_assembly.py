"""Assembly of the objects that carry out a planned run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from opinionsim.actors import Cognition, Member, PersonaActor, persona_actors
from opinionsim.classic import draw_opinions
from opinionsim.errors import SpecError
from opinionsim.experiments._cells import PlannedRun
from opinionsim.experiments._equations import Equation, equation_of
from opinionsim.experiments._events_spec import changed_networks, events_of
from opinionsim.experiments._model_spec import ModelSpec
from opinionsim.experiments._outside import owned
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._spec import ExperimentSpec
from opinionsim.llm import Endpoint, ReplayOnly
from opinionsim.networks import Network, NetworkKind
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona, Population, draw_population
from opinionsim.prompts import PromptPack
from opinionsim.schedules import (
    AnySchedule,
    Event,
    Phase,
    Setting,
    named,
    with_events,
    with_phases,
    with_probes,
    without_turns,
)
from opinionsim.streams import stream
from opinionsim.topics import Claim, Topic


@dataclass(frozen=True)
class Parts:
    """Everything a run is made of, drawn and loaded.

    Attributes
    ----------
    topic, claim : Topic, Claim
        The topic and claim of opinions.
    population : Population
        The personas and initial opinions of the agents.
    network : Network or None
        Ties between agents; None where all can meet all, or nobody meets anybody.
    schedule : StaticSchedule or AdaptiveSchedule
        The turns of the run, probes included.
    pack : PromptPack
        Wording of the prompts.
    scale : OpinionScale
        The scale of opinions.
    cognition : Cognition
        Memory, bias and world of the agents, and what they are told of persona and topic.
    lookahead : int or None
        Steps dispatched beyond the last complete one.
    opinions : tuple of float or None, length N
        Initial opinions: points of the scale, or any number within it for an equation.
    models : tuple of ModelSpec, length N
        Chat model of each agent; empty where agents follow an equation.
    model_labels : tuple of str, length N
        Name in results of the chat model or equation of each agent.
    equation : Equation or None
        The equation that agents follow; None where chat models play personas.
    events : tuple of Event
        What happens from outside, which the schedule contains.
    """

    topic: Topic
    claim: Claim
    population: Population
    network: Network | None
    schedule: AnySchedule
    pack: PromptPack
    scale: OpinionScale
    cognition: Cognition
    lookahead: int | None
    opinions: tuple[float | None, ...]
    models: tuple[ModelSpec, ...]
    model_labels: tuple[str, ...]
    equation: Equation | None = None
    events: tuple[Event, ...] = ()

    @property
    def calls_per_event(self) -> int:
        """Number of calls of an agent to remember a turn."""
        return 0 if self.equation is not None else self.cognition.remembering.calls_per_event

    def cast(self, endpoints: Sequence[Endpoint] = (), evidence: Sequence[str] = ()) -> tuple[Member, ...]:
        """The cast of the run, before its first turn.

        Parameters
        ----------
        endpoints : sequence of Endpoint
            Endpoint of each agent; default one that makes no call.
        evidence : sequence of str
            Kind of evidence of each agent; default ``equation`` for an equation, else ``scripted``.
        """
        if self.equation is not None:
            actors, kind, unnamed = list(self.equation.actors()), "equation", "(equation)"
        else:
            actors, kind, unnamed = list(self._personas()), "scripted", "(no role)"
        n = len(self.population)
        return tuple(
            Member(
                actor,
                name=persona.name or unnamed,
                endpoint=endpoint,
                evidence=of,
                model=model,
                opinion=opinion,
                attributes=_attributes(persona),
            )
            for actor, persona, opinion, model, endpoint, of in zip(
                actors,
                self.population.personas,
                self.opinions,
                self.model_labels,
                endpoints or [Endpoint(ReplayOnly())] * n,
                evidence or [kind] * n,
                strict=True,
            )
        )

    def _personas(self) -> Sequence[PersonaActor]:
        return persona_actors(
            self.population,
            self.schedule,
            self.pack,
            claim=self.claim,
            scale=self.scale,
            cognition=self.cognition,
        )


def _attributes(persona: Persona) -> dict[str, str]:
    """Attributes of a persona, its background included."""
    return {**persona.attributes, **({"background": persona.background} if persona.background else {})}


def assemble(planned: PlannedRun, resources: Resources, left_out: Collection[int] = ()) -> Parts:
    """Load and draw everything that a planned run needs; makes no call.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        Source of topics, personas, prompts, messages and networks.
    left_out : collection of int
        Turns that it leaves out because another run skipped them; by default none.

    Raises
    ------
    SpecError
        If a resource of the specification does not exist or does not fit.
    """
    with owned(planned.spec):
        return _assembled(planned, resources, left_out)


def _assembled(planned: PlannedRun, resources: Resources, left_out: Collection[int]) -> Parts:
    spec = planned.spec
    topic = resources.topic(spec.topic)
    scale = spec.scale.scale()
    population = _population(planned, resources, scale)
    network = _network(planned, resources)
    opinions = _opinions(planned, population, scale)
    setting = Setting(
        spec.population.size, partial(_drawing, planned, "schedule"), network, opinions, resources.messages
    )
    schedule = None if spec.interaction.native else _schedule(spec, setting)
    equation: Equation | None = None
    labels: tuple[str, ...] = (spec.model.label,) * len(population)
    models: tuple[ModelSpec, ...] = ()
    if spec.model.equation is not None or schedule is None:
        equation, schedule = equation_of(spec, _seed(planned), planned.replicate, network, opinions, schedule)
    else:
        models = spec.model.assign(population.personas, _drawing(planned, "models"))
        labels = tuple(map(spec.model.agent_label, models))
    probe, asked = spec.measurement.probe, spec.measurement.self_report
    probed = with_probes(with_probes(schedule, probe.before, probe.after), asked.before, asked.after, "self-report")
    events = events_of(spec.events, population.personas, resources.messages, _drawing(planned, "events"))
    # Around the probes, so that nobody who is absent is probed.
    named_to_others = spec.population.shown in ("full", "name")
    eventful = with_events(probed, events, [each.name if named_to_others else "" for each in population.personas])
    return Parts(
        topic=topic,
        claim=topic.claim(spec.topic.framing),
        population=population,
        network=network,
        schedule=without_turns(eventful, left_out),
        pack=resources.pack(spec.prompts),
        scale=scale,
        cognition=_cognition(spec),
        lookahead=spec.execution.lookahead,
        opinions=opinions,
        models=models,
        model_labels=labels,
        equation=equation,
        events=events,
    )


def _schedule(spec: ExperimentSpec, setting: Setting) -> AnySchedule:
    """The schedule of an interaction without probes, with the number of draws that the specification sets."""
    phases = [
        Phase(step, spec.interaction.schedule(replace(setting, network=network)), changes)
        for step, network, changes in changed_networks(spec.events, setting.network)
    ]
    schedule = with_phases(spec.interaction.schedule(setting), phases)
    cognition = spec.cognition
    if cognition.draws > 1:
        chosen = cognition.selector
        select = partial(chosen.found("selector").target, **chosen.options)
        acts = [
            act if act.draws > 1 else replace(act, draws=cognition.draws, selector=select)
            for act in schedule.acts.values()
        ]
        schedule.acts = named(*acts)
    return schedule


def _cognition(spec: ExperimentSpec) -> Cognition:
    cognition = Cognition(
        spec.cognition.memory.name,
        spec.cognition.memory.options,
        spec.cognition.token_budget,
        belief_tense=spec.cognition.belief_tense,
        post_words=spec.cognition.post_words,
    )
    if not spec.interaction.role_play:
        # The bare model: no person, no room, no bias (A12).
        return replace(
            cognition, confirmation_bias="none", world="open", persona_shown="none", masked=spec.topic.masked
        )
    return replace(
        cognition,
        confirmation_bias=spec.cognition.confirmation_bias,
        world=spec.cognition.world,
        persona_shown=spec.population.shown,
        masked=spec.topic.masked,
    )


def _drawing(planned: PlannedRun, purpose: str, *, every_replicate: bool = False) -> np.random.Generator:
    """The random stream of a purpose in this run's block, or one that all replicates share."""
    replicate = 0 if every_replicate else planned.replicate
    return stream(planned.spec.seed, purpose, replicate, *planned.stream_key)


def _seed(planned: PlannedRun) -> int:
    """Root of the random streams of an equation; drawn for each block if `independent_over` names fields."""
    return int(_drawing(planned, "classic").integers(2**32)) if planned.stream_key else planned.spec.seed


def _population(planned: PlannedRun, resources: Resources, scale: OpinionScale) -> Population:
    spec = planned.spec.population
    if spec.continuous or not planned.spec.interaction.role_play:
        return Population.bare(spec.size)
    # A Latin square balances over replicates, so these must have the same personas and opinions.
    balanced = spec.assignment == "latin-square"
    return draw_population(
        resources.personas(spec),
        spec.size,
        scale=scale,
        initial_opinions=spec.distribution,
        assignment=spec.assignment,
        replicate=planned.replicate,
        opinions_rng=_drawing(planned, "initial opinions", every_replicate=balanced),
        assignment_rng=_drawing(planned, "assignment", every_replicate=balanced),
    )


def _opinions(planned: PlannedRun, population: Population, scale: OpinionScale) -> tuple[float | None, ...]:
    """Initial opinions of the agents."""
    spec = planned.spec.population
    if not spec.continuous:
        return tuple(None if opinion is None else float(opinion) for opinion in population.opinions)
    rng = _drawing(planned, "initial opinions")
    return tuple(draw_opinions(str(spec.initial_opinions), spec.size, (scale.lowest, scale.highest), rng).tolist())


def _network(planned: PlannedRun, resources: Resources) -> Network | None:
    """The network of a run; None where all agents can meet all, or nobody meets anybody."""
    network: NetworkKind | None = getattr(planned.spec.interaction, "network", None)
    if network is None or network.kind == "complete":
        return None
    rng = np.random.default_rng(int(_drawing(planned, "network").integers(2**32)))
    try:
        names = resources.names(planned.spec)
        found = network.build(planned.spec.population.size, rng, resources.network, names)
        # Agents that play nobody have no names: they go by the numbers that the names were given.
        return found if names is not None else replace(found, labels=None)
    except SpecError as error:
        raise SpecError(f"interaction.network: {error}") from error.__cause__
