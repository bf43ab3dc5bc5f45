"""From a planned run to the objects that carry it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opinionsim.actors import Cognition, Member, PersonaActor, persona_actors
from opinionsim.classic import draw_opinions
from opinionsim.errors import SpecError
from opinionsim.experiments._equations import Equation, equation_of
from opinionsim.experiments._interactions import SCHEDULES
from opinionsim.experiments._model_spec import ClassicModelSpec, ModelSpec, agent_label, assign_models, model_label
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._spec import (
    BoundedConfidenceSpec,
    BroadcastSpec,
    CountsSpec,
    DyadicSpec,
    ExperimentSpec,
    ExternalSpec,
    FeedSpec,
    FileNetworkSpec,
    IndependentSpec,
    NativeSpec,
    NoRolePlaySpec,
    RememberedSpec,
    RewiringSpec,
    SimilaritySpec,
)
from opinionsim.experiments._sweep import PlannedRun
from opinionsim.llm import Endpoint, ReplayOnly
from opinionsim.memory import MEMORIES
from opinionsim.networks import Network, build_network
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona, Population, draw_population
from opinionsim.prompts import PromptPack
from opinionsim.schedules import (
    AdaptiveSchedule,
    AnySchedule,
    Broadcast,
    Dyads,
    Exposure,
    IndependentReports,
    RememberedReports,
    with_probes,
)
from opinionsim.streams import stream
from opinionsim.topics import Claim, Topic

__all__ = ["Parts", "assemble"]


@dataclass(frozen=True)
class Parts:
    """Everything a run is made of, drawn and loaded.

    Attributes
    ----------
    topic, claim : Topic, Claim
        What opinions are about.
    population : Population
        Who takes part.
    network : Network or None
        Who can meet whom; None where all can meet all, or nobody meets anybody.
    schedule : StaticSchedule or AdaptiveSchedule
        Who does what when, probes included.
    pack : PromptPack
        Wording.
    scale : OpinionScale
        Of opinions.
    cognition : Cognition
        Memory, bias, world, what agents are shown.
    interactive : bool
        Whether agents see posts at all.
    lookahead : int or None
        Steps dispatched beyond the last complete one.
    opinions : tuple of float or None, length N
        What agents hold at first: points of the scale, or, of an equation, any number within it.
    models : tuple of ModelSpec, length N
        Which chat model plays each agent; empty where agents follow an equation.
    model_labels : tuple of str, length N
        What results call the chat model or the equation of each agent.
    equation : Equation or None
        The agents, where they follow an equation; None where chat models play personas.
    """

    topic: Topic
    claim: Claim
    population: Population
    network: Network | None
    schedule: AnySchedule
    pack: PromptPack
    scale: OpinionScale
    cognition: Cognition
    interactive: bool
    lookahead: int | None
    opinions: tuple[float | None, ...]
    models: tuple[ModelSpec, ...]
    model_labels: tuple[str, ...]
    equation: Equation | None = None

    @property
    def calls_per_event(self) -> int:
        """Calls each participant makes to remember a turn."""
        return 0 if self.equation is not None else MEMORIES[self.cognition.memory].calls_per_event

    def cast(self, endpoints: Sequence[Endpoint] = (), evidence: Sequence[str] = ()) -> tuple[Member, ...]:
        """The cast of the run, before its first turn.

        Parameters
        ----------
        endpoints : sequence of Endpoint
            Who answers for each agent; default nobody.
        evidence : sequence of str
            What the texts of each agent are evidence of; default nothing but a script.
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
            interactive=self.interactive,
        )


def _attributes(persona: Persona) -> dict[str, str]:
    """What a persona's file says of it."""
    return {**persona.attributes, **({"background": persona.background} if persona.background else {})}


def assemble(planned: PlannedRun, resources: Resources) -> Parts:
    """Load and draw everything a planned run needs; calls nobody.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        Where topics, personas, prompts, messages and networks come from.

    Raises
    ------
    SpecError
        If something the specification names does not exist or does not fit.
    """
    spec = planned.spec
    topic = resources.topic(spec.topic)
    scale = spec.scale.scale()
    population = _population(planned, resources, scale)
    network = _network(planned, resources)
    opinions = _opinions(planned, population, scale)
    schedule: AnySchedule
    equation: Equation | None = None
    models: tuple[ModelSpec, ...] = ()
    labels = (model_label(spec.model),) * len(population)
    if isinstance(spec.model, ClassicModelSpec):
        native = isinstance(spec.interaction, NativeSpec)
        shared = None if native else _schedule(planned, resources, opinions, network)
        equation, schedule = equation_of(spec, _seed(planned), planned.replicate, network, opinions, shared)
    else:
        schedule = _schedule(planned, resources, opinions, network)
        models = assign_models(spec.model, population.personas, _drawing(planned, "models"))
        labels = tuple(agent_label(model, spec.model) for model in models)
    probe, asked = spec.measurement.probe, spec.measurement.self_report
    return Parts(
        topic=topic,
        claim=topic.claim(spec.topic.framing),
        population=population,
        network=network,
        schedule=with_probes(
            with_probes(schedule, probe.before, probe.after), asked.before, asked.after, "self-report"
        ),
        pack=resources.pack(spec.prompts),
        scale=scale,
        cognition=_cognition(spec),
        interactive=not isinstance(spec.interaction, IndependentSpec | RememberedSpec | NoRolePlaySpec),
        lookahead=spec.execution.lookahead,
        opinions=opinions,
        models=models,
        model_labels=labels,
        equation=equation,
    )


def _cognition(spec: ExperimentSpec) -> Cognition:
    cognition = spec.cognition
    if isinstance(spec.interaction, NoRolePlaySpec):
        # The bare model: no person, no room, no bias (A12).
        return Cognition(cognition.memory, cognition.token_budget, "none", "open", "none", spec.topic.masked)
    return Cognition(
        memory=cognition.memory,
        token_budget=cognition.token_budget,
        confirmation_bias=cognition.confirmation_bias,
        world=cognition.world,
        persona_shown=spec.population.shown,
        masked=spec.topic.masked,
    )


def _drawing(planned: PlannedRun, purpose: str, *, every_replicate: bool = False) -> np.random.Generator:
    """The random stream of one purpose in this run's block, or one that all its replicates share."""
    replicate = 0 if every_replicate else planned.replicate
    return stream(planned.spec.seed, purpose, replicate, *planned.stream_key)


def _seed(planned: PlannedRun) -> int:
    """Root of the random streams of an equation, which blocks of their own draw for themselves."""
    return int(_drawing(planned, "classic").integers(2**32)) if planned.stream_key else planned.spec.seed


def _population(planned: PlannedRun, resources: Resources, scale: OpinionScale) -> Population:
    spec = planned.spec.population
    if isinstance(planned.spec.interaction, NoRolePlaySpec):
        return Population.bare(spec.size)
    initial = spec.initial_opinions
    if initial == "continuous" or initial == "normal":
        return Population.bare(spec.size)
    # A Latin square balances over replicates, so they must be of the same persons and opinions.
    balanced = spec.assignment == "latin-square"
    return draw_population(
        resources.personas(spec),
        spec.size,
        scale=scale,
        initial_opinions=initial.counts if isinstance(initial, CountsSpec) else initial,
        assignment=spec.assignment,
        replicate=planned.replicate,
        opinions_rng=_drawing(planned, "initial opinions", every_replicate=balanced),
        assignment_rng=_drawing(planned, "assignment", every_replicate=balanced),
    )


def _opinions(planned: PlannedRun, population: Population, scale: OpinionScale) -> tuple[float | None, ...]:
    """What agents hold at first."""
    spec = planned.spec.population
    if spec.initial_opinions != "continuous" and spec.initial_opinions != "normal":
        return tuple(None if opinion is None else float(opinion) for opinion in population.opinions)
    rng = _drawing(planned, "initial opinions")
    return tuple(draw_opinions(spec.initial_opinions, spec.size, (scale.lowest, scale.highest), rng).tolist())


def _network(planned: PlannedRun, resources: Resources) -> Network | None:
    size = planned.spec.population.size
    network = getattr(planned.spec.interaction, "network", None)
    if network is None or network.kind == "complete":
        return None
    if isinstance(network, FileNetworkSpec):
        return resources.network(network, size)
    seed = int(_drawing(planned, "network").integers(2**32))
    return build_network(network.mapping(), size, seed, where="interaction.network")


def _schedule(
    planned: PlannedRun, resources: Resources, opinions: Sequence[float | None], network: Network | None
) -> AnySchedule:
    """The schedule of an interaction, without probes."""
    interaction, size = planned.spec.interaction, planned.spec.population.size
    steps = interaction.steps_for(size)
    rng = _drawing(planned, "schedule")
    if isinstance(interaction, IndependentSpec | NoRolePlaySpec):
        return IndependentReports(size, steps)
    if isinstance(interaction, RememberedSpec):
        return RememberedReports(size, steps, rng)
    if isinstance(interaction, ExternalSpec):
        return Exposure(size, steps, resources.messages(interaction), interaction.order, rng)
    joined = size if network is None else network
    if isinstance(interaction, DyadicSpec):
        return Dyads(joined, steps, rng)
    if isinstance(interaction, BroadcastSpec):
        return Broadcast(joined, steps, rng)
    if isinstance(interaction, NativeSpec):
        raise SpecError("interaction.kind: 'native' is for classic models")
    return _adaptive(interaction, joined, steps, opinions, int(rng.integers(2**32)))


def _adaptive(
    interaction: SimilaritySpec | BoundedConfidenceSpec | RewiringSpec | FeedSpec,
    joined: Network | int,
    steps: int,
    assigned: Sequence[float | None],
    seed: int,
) -> AdaptiveSchedule:
    """A schedule that acts on opinions: those assigned, until others are measured."""
    opinions = [float("nan") if opinion is None else opinion for opinion in assigned]
    own = interaction.model_dump(exclude={"kind", "network", "steps", "exposures"})
    build: Any = SCHEDULES[type(interaction)]
    schedule: AdaptiveSchedule = build(joined, steps, opinions=opinions, seed=seed, **own)
    return schedule
