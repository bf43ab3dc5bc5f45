"""Assembly of the objects that carry out a planned run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from opinionsim import schedules
from opinionsim.assembly._source_runs import Seeds, seeds_of_fork
from opinionsim.engine import Casting, Direction, Member, OnRecord
from opinionsim.errors import SpecError
from opinionsim.foundation.streams import call_seed, stream
from opinionsim.llm import Endpoint, ReplayOnly
from opinionsim.measurement import Text
from opinionsim.networks import Network
from opinionsim.opinions import OpinionScale, draw_initial
from opinionsim.personas import BARE, Persona, Population, draw_population
from opinionsim.specification import (
    Cast,
    ExperimentSpec,
    ModelSpec,
    PlannedRun,
    Resources,
    RunEndpoint,
    agent_label,
    cast_of,
    cast_personas,
    cast_respondents,
    changed_networks,
    conditions_of,
    events_of,
    known_participants,
    naming_own_part,
    participant_names,
    setting_of,
    uses_survey,
)
from opinionsim.topics import Topic

#: Texts in the place of one that was read, and of one that was written, in a run which has not been carried out.
_READ, _TAKEN = "(a text that its counterpart read)", "(a text of another run)"


@dataclass(frozen=True, kw_only=True)
class RunParts(Casting):
    """All parts of a run, drawn and loaded: its casting, and the attributes below.

    Attributes
    ----------
    topic : Topic
        The topic of opinions; a task alone has no claim.
    network : Network or None
        Ties between agents; None if all agents can meet, or if none do.
    lookahead : int or None
        Steps dispatched beyond the last complete one.
    opinions : tuple of float or None, length N
        Initial opinions: points of the scale, or any numbers within its range if no prompt asks the agents.
    names : tuple of str, length N
        Names of the agents in results; if empty, results use the names of their personas.
    models : tuple of ModelSpec, length N + number of others
        Chat model of each member; empty if no prompt asks the agents.
    model_labels : tuple of str, length N + number of others
        Name in results of the chat model or other endpoint of each member.
    endpoint : RunEndpoint or None
        What acts for the agents if no prompt asks them; None if chat models play personas.
    events : tuple of Event
        Interventions from outside, which the schedule already contains.
    recorded : bool
        Whether its texts were written by people and imported from a table.
    seed_of : callable
        Seed of a call by turn, call and attempt.
    begins : int
        First step whose calls are made; earlier steps are copied from another run.
    """

    topic: Topic
    network: Network | None
    lookahead: int | None
    opinions: tuple[float | None, ...]
    names: tuple[str, ...]
    models: tuple[ModelSpec, ...]
    model_labels: tuple[str, ...]
    seed_of: Seeds
    begins: int = 0
    endpoint: RunEndpoint | None = None
    events: tuple[schedules.Event, ...] = ()
    recorded: bool = False

    @property
    def calls_per_event(self) -> int:
        """Number of calls that an agent makes to remember a turn."""
        return self.remembering.calls_per_event if self.endpoint is None else 0

    def cast(self) -> tuple[Member, ...]:
        """The cast of the run before its first turn; its endpoints make no calls."""
        actors: list[Any]
        if self.endpoint is not None:
            actors, kind, unnamed = [*self.endpoint.actors()], self.endpoint.evidence, f"({self.endpoint.evidence})"
        elif self.recorded:
            actors, kind, unnamed = [OnRecord()] * len(self.population), "human", "(person)"
        else:
            actors, kind, unnamed = list(self.actors()), "scripted", "(no role)"
        others = [each.role for each in actors[len(self.population) :]]
        members = zip(
            actors,
            [*(schedules.PARTICIPANT for _ in self.opinions), *others],
            [*self.names, *map(str.capitalize, others)],
            [*self.population.personas, *(BARE for _ in others)],
            [*self.opinions, *(None for _ in others)],
            self.model_labels,
            strict=True,
        )
        nobody = Endpoint(ReplayOnly())
        return tuple(
            Member(actor, role, nobody, name or unnamed, kind, model, opinion, _attributes(persona), persona.record)
            for actor, role, name, persona, opinion, model in members
        )

    def longest(self, agent: int) -> int | None:
        """Maximum number of tokens in a member's reply, as its model states it."""
        return self.models[agent].max_tokens if self.models else None

    def acts(self, agent: int) -> Mapping[str, schedules.ActSpec]:
        """The acts of a member of the cast as they make calls; those of a person make none."""
        acts, others = self.schedule.acts, len(self.directions)
        if agent in self.seats:
            return {name: replace(act.for_person, draws=0) for name, act in acts.items()}
        return self.directions[agent].acts(acts) if agent < others else acts

    @cached_property
    def seats(self) -> Mapping[int, int | str]:
        """Members of the cast that people play: by agent, the number of a participant or the role of another."""
        told: list[tuple[int | str, Direction]] = [*enumerate(self.directions), *self.others.items()]
        return {agent: key for agent, (key, each) in enumerate(told) if each.invitation is not None}


def _attributes(persona: Persona) -> dict[str, str]:
    """Attributes of a persona, its background included."""
    return {**persona.attributes, **({"background": persona.background} if persona.background else {})}


def assemble(planned: PlannedRun, resources: Resources, taken: Sequence[Any] | None = None) -> RunParts:
    """Load and draw everything that a planned run needs, without making a call.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        Source of topics, personas, prompts, messages and networks.
    taken : list of JSON values, optional
        Content from another run: turns to leave out, or texts read there. By default, no turn is left out and texts
        are placeholders, because that run has not been carried out yet.

    Raises
    ------
    SpecError
        If a resource of the specification does not exist or does not fit.
    """
    with naming_own_part(planned.spec):
        return _assembled(planned, resources, taken)


def _assembled(planned: PlannedRun, resources: Resources, taken: Sequence[Any] | None) -> RunParts:
    spec = planned.spec
    scale = spec.scale.scale()
    population = _population(planned, resources, scale, taken)
    network = _network(planned, resources)
    opinions = _opinions(planned, population, scale)
    claim = resources.claim(spec)
    setting = setting_of(
        spec,
        resources,
        claim,
        draws=partial(_drawing, planned),
        network=network,
        opinions=opinions,
        names=participant_names(spec, population.personas),
        replicate=planned.replicate,
        block=planned.block,
        read=_read(planned, resources, taken),
        record=taken[1:] if taken and spec.interaction.recorded else (),
    )
    making = partial(_schedule, spec, setting)
    endpoint = None if spec.model.prompted else spec.model.for_run(spec, setting, making)
    schedule = making() if endpoint is None else endpoint.schedule
    labels: tuple[str, ...] = (spec.model.label,) * len(population)
    cast = Cast(population, participant_names(spec, population.personas), (), {}, ())
    if spec.interaction.recorded:
        labels = ("",) * len(population)
    elif spec.model.prompted:
        cast = cast_of(spec, population, lambda: spec.model.assign(population.personas, _drawing(planned, "models")))
        models = spec.chat_models
        told = [*cast.directions, *cast.others.values()]
        unasked = {agent for agent, each in enumerate(told) if each.invitation is not None} | spec.given.keys()
        label_of = {id(each): agent_label(each, models) for each in {id(each): each for each in cast.models}.values()}
        labels = tuple("" if agent in unasked else label_of[id(each)] for agent, each in enumerate(cast.models))
        schedule = _moderated(spec, schedule, resources)
    probe, asked = spec.measurement.probe, spec.measurement.self_report
    probed = schedule
    if not (spec.interaction.places_questions or spec.interaction.recorded):
        probed = schedules.with_probes(schedule, probe.before, probe.after, every=probe.every)
        probed = schedules.with_probes(probed, asked.before, asked.after, "self-report", asked.every)
    # Numbers on record may stand between points.
    probed = probed if spec.interaction.recorded else schedules.stated_on(probed, scale)
    known = known_participants(spec, population.personas)
    events = events_of(spec.events, known, resources.messages, _drawing(planned, "events"))
    # Around the probes, so that nobody who is absent is probed.
    named_to_others = spec.cast or spec.population.shown in ("full", "name")
    eventful = schedules.with_events(probed, events, [each.name if named_to_others else "" for each in known])
    seed_of: Seeds = partial(call_seed, planned.run_id)
    if spec.fork is not None:
        (source,) = planned.sources
        seed_of = seeds_of_fork(planned, eventful, source, assemble(source, resources).schedule)
    return RunParts(
        topic=resources.topic(spec.topic),
        claim=claim,
        task=spec.task,
        population=cast.population,
        network=network,
        schedule=eventful,
        pack=resources.pack(spec.pack),
        scale=scale,
        memory=spec.cognition.memory,
        token_budget=spec.cognition.token_budget,
        conditions=conditions_of(spec),
        lookahead=spec.execution.lookahead,
        opinions=opinions,
        names=cast.names,
        directions=cast.directions,
        others=cast.others,
        models=cast.models,
        model_labels=labels,
        seed_of=seed_of,
        begins=0 if spec.fork is None else spec.fork.step,
        endpoint=endpoint,
        events=events,
        recorded=spec.interaction.recorded,
    )


def _read(planned: PlannedRun, resources: Resources, taken: Sequence[Any] | None) -> Sequence[Any]:
    """What a run takes over from others to be read; before they are carried out, in placeholders."""
    if not planned.sources or planned.spec.fork is not None:
        return ()
    twins = planned.spec.interaction.stands_in
    if taken is not None:
        return taken[1] if twins else taken
    if twins:
        rated = planned.sources[0].spec.interaction.rating_steps
        return [(step, agent, (_READ,)) for step in rated[1:] for agent in range(planned.spec.size)]
    texts = []
    for source in planned.sources:
        schedule = assemble(source, resources).schedule
        kinds = {name: act.kind for name, act in schedule.acts.items()}
        received = ((turn, (_READ,) * len(turn.reads)) for turn in schedules.outline(schedule))
        texts.append({turn.index: Text(turn, kinds[turn.act], _TAKEN, received=each) for turn, each in received})
    return list(planned.spec.interaction.takes(planned.spec.size, texts))


def _moderated(spec: ExperimentSpec, schedule: schedules.AnySchedule, resources: Resources) -> schedules.AnySchedule:
    """The schedule with the moderator that the specification wants, if any."""
    moderator = spec.moderator
    if moderator is None:
        return schedule
    texts = resources.pack(spec.pack).named
    automatic = (
        schedules.automatic_instructions(texts.file.automatic.marker)
        if moderator.automatic and texts is not None
        else None
    )
    return schedules.with_moderator(schedule, automatic=automatic, decides=moderator.values is not None)


def _schedule(spec: ExperimentSpec, setting: schedules.Setting) -> schedules.AnySchedule:
    """The schedule of an interaction without probes, with the number of draws that the specification sets."""
    phases = [
        schedules.Phase(step, spec.interaction.schedule(replace(setting, network=network)), changes)
        for step, network, changes in changed_networks(spec.events, setting.network)
    ]
    schedule = schedules.with_phases(spec.interaction.schedule(setting), phases)
    cognition = spec.cognition
    if cognition.draws > 1:
        select = schedules.selector_of(cognition.selector)
        acts = [
            replace(act, draws=cognition.draws, selector=select) if act.draws == 1 else act
            for act in schedule.acts.values()
        ]
        schedule.acts = schedules.named(*acts)
    return schedule


def _drawing(
    planned: PlannedRun, purpose: str = "schedule", *keys: int, every_replicate: bool = False
) -> np.random.Generator:
    """The random stream of a purpose in this run's block, or one that all replicates share; keys tell it apart."""
    replicate = 0 if every_replicate else planned.replicate
    return stream(planned.spec.seed, purpose, replicate, *planned.cell.stream_key, *keys)


def _population(
    planned: PlannedRun, resources: Resources, scale: OpinionScale, taken: Sequence[Any] | None
) -> Population:
    spec = planned.spec.population
    if planned.spec.interaction.recorded or planned.spec.interaction.stands_in:
        if taken is None:
            return Population.bare(planned.spec.size)
        personas = tuple(Persona(name, attributes=attributes) for name, attributes, _ in taken[0])
        return Population(personas, tuple(opinion for _, _, opinion in taken[0]))
    if planned.spec.cast:
        personas = _cast_personas(planned, resources)
        return Population(personas, (None,) * len(personas))
    if spec.continuous or not planned.spec.interaction.role_play:
        return Population.bare(planned.spec.size)
    # A Latin square balances over replicates, so these must have the same personas and opinions.
    balanced = spec.assignment == "latin-square"
    drawn = draw_population(
        resources.drawn(planned.spec, _drawing(planned, "survey", every_replicate=balanced)),
        planned.spec.size,
        scale=scale,
        initial_opinions=spec.distribution,
        assignment=spec.assignment,
        replicate=planned.replicate,
        opinions_rng=_drawing(planned, "initial opinions", every_replicate=balanced),
        assignment_rng=_drawing(planned, "assignment", every_replicate=balanced),
    )
    # Without a topic there is nothing that an initial opinion could be about.
    return drawn if planned.spec.has_topic else Population(drawn.personas, (None,) * len(drawn))


def _cast_personas(planned: PlannedRun, resources: Resources) -> tuple[Persona, ...]:
    """The personas of a cast: those written out, and respondents of the survey."""
    spec, found = planned.spec, dict[int, Persona]()
    if uses_survey(spec):
        found = cast_respondents(spec, resources.survey(spec), _drawing(planned, "survey"))
    return cast_personas(spec, lambda agent, member: found[agent])


def _opinions(planned: PlannedRun, population: Population, scale: OpinionScale) -> tuple[float | None, ...]:
    """Initial opinions of the agents."""
    spec = planned.spec.population
    if not spec.continuous:
        return tuple(None if opinion is None else float(opinion) for opinion in population.opinions)
    u = _drawing(planned, "initial opinions").random(len(population))
    return tuple(draw_initial(str(spec.initial_opinions), u, (scale.lowest, scale.highest)).tolist())


def _network(planned: PlannedRun, resources: Resources) -> Network | None:
    """The network of a run; None where all agents can meet all, or nobody meets anybody."""
    network = planned.spec.interaction.contacts
    if network is None or network.kind == "complete":
        return None
    rng = np.random.default_rng(int(_drawing(planned, "network").integers(2**32)))
    try:
        names = resources.names(planned.spec)
        found = network.build(planned.spec.size, rng, resources.network, names)
        # Agents that play nobody have no names: they go by the numbers that the names were given.
        return found if names is not None else replace(found, labels=None)
    except SpecError as error:
        raise SpecError(str(error), "interaction.network") from error.__cause__
