"""A run as a Mesa model, whose steps are committed in order while calls run ahead."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar

import mesa
import numpy as np
from langchain_core.language_models import BaseChatModel
from mesa.agent import AgentSet
from pydantic import Field

from opinionsim.classifiers import Classifier, load_classifier
from opinionsim.engine import Casting, Direction, Engine, Member, PersonaActor, Simulation, TurnResult
from opinionsim.errors import OpinionSimError, ScheduleError, SpecError, whole_number
from opinionsim.foundation import background
from opinionsim.foundation.data import data_file
from opinionsim.foundation.documents import validate
from opinionsim.foundation.streams import canonical_json, digest, stream
from opinionsim.llm import (
    Endpoint,
    Journal,
    MemoryJournal,
    ModelClient,
    RunCalls,
    ScriptedChatModel,
    Seat,
    SlotPool,
    load_chat_model,
)
from opinionsim.measurement import Instrument, Measuring, Queues
from opinionsim.metrics import bias, diversity, evidence_of
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona, Population, draw_population, load_personas
from opinionsim.prompts import Conditions, PromptPack, load_pack
from opinionsim.registry import NamedPart
from opinionsim.schedules import AnySchedule, Dyads, Setting, called, check_schedule
from opinionsim.topics import Claim, load_topics


class _WeakCounts(weakref.WeakKeyDictionary[mesa.Model, Iterator[int]]):
    """Counters from 1, one per model, dropped with the model."""

    def __getitem__(self, model: mesa.Model) -> Iterator[int]:
        return self.setdefault(model, itertools.count(1))


class PersonaAgent(mesa.Agent):
    """An agent as of the last committed step.

    It shows the last committed step. You cannot assign its attributes below, step it or remove it: each raises a
    SpecError.

    Attributes
    ----------
    index : int
        Number in the population, from 0.
    persona : Persona
        Persona that it plays.
    assigned_opinion : int or None
        Assigned opinion at the start.
    opinion : float
        Last measured opinion; NaN until there is one.
    posts, reports : int
        Numbers of posts and reports it has written.
    last_post, last_report : str
        The latest of each; empty until there is one.
    """

    #: Mesa 3.3 numbers agents by a table that would keep every model alive, and with it the calls of its run.
    _ids: ClassVar[_WeakCounts] = _WeakCounts()

    index: int
    persona: Persona
    assigned_opinion: int | None
    opinion: float
    posts: int
    reports: int
    last_post: str
    last_report: str

    def __init__(self, model: OpinionModel, index: int, persona: Persona, assigned_opinion: int | None) -> None:
        super().__init__(model)
        self._show(index=index, persona=persona, assigned_opinion=assigned_opinion, opinion=float("nan"))
        self._show(posts=0, reports=0, last_post="", last_report="")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _COMMITTED:
            raise SpecError(
                f"agent {self.index}: {name} shows what is committed and cannot be assigned; set initial opinions in "
                "the model's population, and later turns in its schedule"
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in _COMMITTED:
            raise SpecError(f"agent {self.index}: {name} shows what is committed and cannot be deleted")
        super().__delattr__(name)

    def step(self) -> None:
        """Raise an error, because the schedule decides when agents act."""
        raise SpecError(
            f"agent {self.index}: an agent cannot be stepped on its own; its turns follow the model's schedule, so "
            "call step() of the model"
        )

    def remove(self) -> None:
        """Raise an error, because no agent can leave a run."""
        raise _fixed(f"agent {self.index} cannot be removed")

    def _show(self, **values: Any) -> None:
        """Take over committed values."""
        self.__dict__.update(values)

    def _see(self, result: TurnResult) -> None:
        """Take over the outcome of one of its turns; a skipped one has none."""
        if result.message.status == "skipped":
            return
        act = result.act
        if not act.answers:
            self._show(posts=self.posts + 1, last_post=result.message.text)
        elif act.opinion == "states" and not act.heard:
            self._show(reports=self.reports + 1, last_report=result.message.text)
        # Posts are written for others, and forks of a memory are off the record.
        told = act.answers and act.memory != "fork" and result.estimate is not None
        if told and not np.isnan(result.estimate.value):  # type: ignore[union-attr]
            self._show(opinion=result.estimate.value)  # type: ignore[union-attr]


#: Attributes of an agent that committed steps alone change.
_COMMITTED = frozenset(PersonaAgent.__annotations__) - {"_ids"}


class _Everybody(AgentSet):
    """All agents of a model, for Mesa; its copies and selections are ordinary agent sets."""

    def add(self, agent: mesa.Agent) -> None:
        """Raise an error, because no agent can join a run."""
        raise _fixed("an agent cannot be added")

    def discard(self, agent: mesa.Agent) -> None:
        """Raise an error, because no agent can leave a run."""
        raise _fixed("an agent cannot be removed")

    remove = discard

    def __copy__(self) -> AgentSet:
        return AgentSet(self, self.random)


def _fixed(problem: str) -> SpecError:
    """The error for an attempt to change the agents of a model."""
    return SpecError(
        f"{problem}: the agents of a model are those of its population, which its schedule needs; make a model with "
        "another population, or use a selection, which model.agents.select(...) returns"
    )


class _Cognition(Conditions):
    """Memory of the agents, and the conditions of their prompts."""

    memory: NamedPart = Field(default_factory=lambda: NamedPart(name="cumulative"))
    token_budget: int | None = None

    @property
    def conditions(self) -> Conditions:
        """The conditions alone."""
        return Conditions(**{name: getattr(self, name) for name in Conditions.model_fields})

    @property
    def identity(self) -> dict[str, Any]:
        """What can reach a prompt."""
        memory = {"memory": self.memory.name, "options": self.memory.options}
        return {**dict(self.conditions), **memory, "token_budget": self.token_budget}


class _Unnamed(Enum):
    """The default classifier, which must be named unless all texts are scripted."""

    LEXICON = "lexicon"


class _Interrupted(OpinionSimError):
    """The step was interrupted from the keyboard."""


class OpinionModel(mesa.Model):
    """Opinion dynamics among persona agents, step by step in Mesa.

    Parameters
    ----------
    population : Population or str
        The agents, or the name of a persona set. All personas of the set take part with their opinions.
    topic : Claim, str or None
        The claim that opinions are about, or the name of a topic, used with `framing`. None means no claim, which
        requires a `classifier` that needs none, or None.
    schedule : StaticSchedule, AdaptiveSchedule or int
        Who does what when; a number means that many random dyads on the complete graph.
    chat_model : str or BaseChatModel
        ``"scripted"``, a ``provider:model`` name, or any LangChain chat model.
    classifier : str, Classifier or None
        Classifier that codes stance; default ``lexicon``. You have to name it if a real model or a person takes part.
        None measures nothing.
    seed : int
        Root seed, >= 0.
    framing : str, optional
        Side of the topic if `topic` is a name; default ``falsehood``.
    cognition : mapping
        Memory, with its `token_budget`, and the conditions of all prompts, by the names of :class:`Conditions`; by
        default the claim is masked as its topic says.
    prompts : str or PromptPack
        ``default``, a folder, or a pack.
    scale : OpinionScale, optional
        Default -2..2.
    max_concurrency : int
        Maximum number of calls in flight.
    timeout_s : float
        Longest wait for one call, seconds.
    lookahead : int, optional
        Number of steps dispatched in advance; default N. It is always bounded, so a model stops spending when you stop
        stepping it.
    journal : Journal, optional
        Journal that records and answers calls; in memory by default.
    others : mapping of str to str, BaseChatModel or Seat, optional
        Chat model, or person at a seat, that answers for each of the schedule's other roles; the role ``seat`` needs
        a person. Default `chat_model`. These roles have no persona and no memory.
    seats : mapping of int to Seat, optional
        People who answer for participants, by number, instead of `chat_model`. Their questions use wording for people,
        and they see no persona.
    task : str
        Instructions to agents in free words, in addition to the requests of their acts.

    Raises
    ------
    SpecError
        If an argument is not valid, or population and schedule do not fit.

    Notes
    -----
    ``step()`` waits until the next step is done and measured, updates the agents, and then collects data. If a call
    fails or the step is interrupted, no further calls are made, replies under way are journalled, and ``step()`` raises
    an error. You can call it again; answered calls are not repeated. ``close()``, a ``with`` block and garbage
    collection cancel everything that still runs.
    """

    def __init__(
        self,
        population: Population | str = "chuang2024",
        topic: Claim | str | None = "flat-earth",
        schedule: AnySchedule | int = 100,
        chat_model: str | BaseChatModel = "scripted",
        classifier: str | Classifier | _Unnamed | None = _Unnamed.LEXICON,
        seed: int = 0,
        *,
        framing: str | None = None,
        cognition: Mapping[str, Any] | None = None,
        prompts: str | PromptPack = "default",
        scale: OpinionScale | None = None,
        max_concurrency: int = 64,
        timeout_s: float = 120.0,
        lookahead: int | None = None,
        journal: Journal | None = None,
        others: Mapping[str, str | BaseChatModel | Seat] | None = None,
        seats: Mapping[int, Seat] | None = None,
        task: str = "",
    ) -> None:
        whole_number("seed", seed, 0)
        whole_number("lookahead", lookahead or 0, 0)
        if not timeout_s > 0:
            raise SpecError(f"timeout_s must be above 0 seconds; got {timeout_s}")
        if scale is not None and not isinstance(scale, OpinionScale):
            raise SpecError(f"scale must be an OpinionScale; got {type(scale).__name__}")
        super().__init__(rng=seed)
        self.scale = scale or OpinionScale()
        self.population = _population(population, self.scale, seed)
        self.claim = _claim(topic, framing)
        self.schedule = _schedule(schedule, len(self.population), seed)
        self.pack = load_pack(prompts) if isinstance(prompts, str) else prompts
        self.cognition = _cognition(cognition, self.claim)
        self._max_concurrency = max_concurrency
        self._task = task
        self._client = self._client_of(chat_model)
        self._others, agents = self._answering(others or {}), range(len(self.population))
        self._seats = dict(seats or {})
        if wrong := [agent for agent, each in self._seats.items() if not isinstance(each, Seat) or agent not in agents]:
            raise SpecError(f"seats: a Seat for an agent from 0 to {len(agents) - 1} is expected; check {wrong[0]!r}")
        kinds = {_evidence(each) for each in (*self._others, *self._seats.values())}
        kinds |= {self._client.evidence} if len(self._seats) < len(agents) else set()
        self.evidence = evidence_of(kinds)
        self.classifier = _classifier(classifier, self.scale, self.evidence)
        kinds_of_text = {act.kind for act in self.schedule.acts.values()}
        self._instruments = [] if self.classifier is None else [Instrument.of(self.classifier, kinds_of_text)]
        measured = {each.variable for each in self._instruments}
        for variable in self.schedule.needs:
            if variable not in measured:
                raise SpecError(
                    f"classifier: {called(self.schedule)} acts on {variable!r}, which no instrument measures; "
                    f"measured: {', '.join(measured) or 'none'}"
                )
        self._queues = Queues(background.measuring_thread())
        self._journal = journal if journal is not None else MemoryJournal()
        self._timeout_s = timeout_s
        self._lookahead = len(self.population) if lookahead is None else lookahead
        self._run_id = self._identity(seed)
        self._simulation: Simulation | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._committed = 0
        # Built and not yet started: errors in the arguments are raised before the first step.
        self._new_simulation()
        self.history: list[TurnResult] = []
        members = zip(self.population.personas, self.population.opinions, strict=True)
        self._members = [
            PersonaAgent(self, index, persona, opinion) for index, (persona, opinion) in enumerate(members)
        ]
        self.datacollector = mesa.DataCollector(
            model_reporters={"bias": _bias, "diversity": _diversity, "n_measured": _n_measured, "evidence": "evidence"},
            agent_reporters={"opinion": "opinion"},
        )
        self.datacollector.collect(self)

    @property
    def agents(self) -> AgentSet:
        """All agents, in the order of the population. Each access returns a new set, which you can reorder."""
        return _Everybody(self._members, self.random)

    @property
    def agents_by_type(self) -> dict[type[mesa.Agent], AgentSet]:
        """All agents by type; there is only one type."""
        return {PersonaAgent: self.agents}

    def register_agent(self, agent: mesa.Agent) -> None:
        """Register an agent of the population; called by Mesa. Other agents are an error."""
        if hasattr(self, "_members"):
            raise _fixed("an agent cannot be added")
        super().register_agent(agent)

    def deregister_agent(self, agent: mesa.Agent) -> None:
        """Raise an error, because no agent can leave a run."""
        raise _fixed("an agent cannot be removed")

    def step(self) -> None:
        """Commit the next step.

        Raises
        ------
        ModelCallError, MeasurementError, StoreError
            The error that stopped the run; the step is not committed, and you can try it again.
        ScheduleError
            If the schedule has no further step.
        """
        # Mesa has counted this step already; time here is the number of commits.
        target = self._committed + 1
        try:
            if target > self.schedule.steps:
                raise ScheduleError(f"the schedule ends at step {self.schedule.steps}")
            happened = background.run(self._commit(target))
        except BaseException as error:
            if isinstance(error, OpinionSimError | KeyboardInterrupt):
                self._drain(error)
            self.steps = self._committed
            self.close()
            raise
        for result in happened:
            if result.turn.agent < len(self._members):
                self._members[result.turn.agent]._see(result)
        self.history.extend(happened)
        self._committed = self.steps = target
        self.running = target < self.schedule.steps
        self.datacollector.collect(self)

    def run(self) -> None:
        """Commit every remaining step."""
        while self._committed < self.schedule.steps:
            self.step()

    def close(self) -> None:
        """Cancel everything that still runs; a later step restarts it from the journal."""
        if self._finalizer is not None:
            self._finalizer()
        self._simulation = None

    def __enter__(self) -> OpinionModel:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _identity(self, seed: int) -> str:
        """Hash of what can reach a prompt, a draw or a model: call seeds differ where any of it does."""
        model = self._client.model
        parts = [
            seed,
            None if self.claim is None else self.claim.text,
            [persona.name for persona in self.population.personas],
            self.population.opinions,
            self.cognition.identity,
            [called(self.schedule), self.schedule.steps, *self.schedule.others],
            *([self._task] if self._task else []),
            [model._llm_type, str(model._identifying_params)],
        ]
        return digest(canonical_json(["model", *parts]))

    async def _commit(self, step: int) -> list[TurnResult]:
        """The turns since the last commit, up to `step`; starts the run if it does not run yet."""
        happened: list[TurnResult] = []
        if self._simulation is None:
            self._simulation = self._begin()
            for earlier in range(step):
                again = await self._simulation.commit(earlier)
                # A run that starts anew after a failure has returned these turns before; a first start has not.
                happened += [] if self._committed else again
        return happened + await self._simulation.commit(step)

    def _drain(self, error: OpinionSimError | KeyboardInterrupt) -> None:
        """Let replies on their way reach the journal; a further interrupt ends the wait."""
        if self._simulation is not None:
            reason = error if isinstance(error, OpinionSimError) else _Interrupted("the step was interrupted")
            try:
                background.run(self._simulation.end(reason))
            except KeyboardInterrupt:
                self.close()
                raise

    def _begin(self) -> Simulation:
        """Start the run; calls that the journal holds are answered at once."""
        simulation = self._new_simulation()
        simulation.engine.start()
        self._finalizer = weakref.finalize(self, _cancel, simulation.engine)
        self._finalizer.atexit = False
        return simulation

    def _new_simulation(self) -> Simulation:
        cast = self._cast()
        answering = [member.endpoint for member in cast]
        # A new pool: a step that is tried again may use a client that the old pool refused.
        pool = SlotPool(self._max_concurrency)
        calls = RunCalls(self._run_id, self._journal, answering, pool, timeout_s=self._timeout_s)
        authors = [member.author for member in cast]
        measuring = Measuring(self._instruments, self._queues, calls, self.claim, authors)
        return Simulation(self.schedule, cast, calls, measuring=measuring, lookahead=self._lookahead)

    def _cast(self) -> list[Member]:
        """The cast before its first turn."""
        played = Endpoint(self._client, account=self._client.account, networked=self._client.networked)
        agents = range(self.schedule.n_agents)
        endpoints = [*(self._seats.get(agent, played) for agent in agents), *self._others]
        told = [Direction(invitation="" if isinstance(each, Seat) else None) for each in endpoints]
        casting = Casting(
            population=self.population,
            schedule=self.schedule,
            pack=self.pack,
            claim=self.claim,
            scale=self.scale,
            memory=self.cognition.memory,
            token_budget=self.cognition.token_budget,
            conditions=self.cognition.conditions,
            task=self._task,
            directions=tuple(told[: len(agents)]),
            others=dict(zip(self.schedule.others, told[len(agents) :], strict=True)),
        )
        personas = [*self.population.personas, *(None for _ in self._others)]
        opinions = [*self.population.opinions, *(None for _ in self._others)]
        return [*map(_member, casting.actors(), endpoints, personas, opinions)]

    def _client_of(self, chat_model: str | BaseChatModel) -> ModelClient:
        """A chat model ready to be asked; the scripted one reads this model's prompts and scale."""
        model = load_chat_model(chat_model) if isinstance(chat_model, str) else chat_model
        return ModelClient(model.bound(self.pack.marks, self.scale) if isinstance(model, ScriptedChatModel) else model)

    def _answering(self, others: Mapping[str, str | BaseChatModel | Seat]) -> list[Endpoint | Seat]:
        """The endpoint or seat of each of the schedule's other roles."""
        roles = self.schedule.others
        for role in others:
            if role not in roles:
                raise SpecError(
                    f"others: the schedule has no {role!r}; it has {', '.join(roles) or 'participants only'}"
                )
        found: list[Endpoint | Seat] = []
        for role in roles:
            given = others.get(role)
            if role == "seat" and not isinstance(given, Seat):
                raise SpecError("others: a seat needs a person; give others={'seat': Seat(person)}")
            if isinstance(given, Seat):
                found.append(given)
            else:
                client = self._client if given is None else self._client_of(given)
                found.append(Endpoint(client, account=client.account, networked=client.networked))
        return found


def _evidence(endpoint: Endpoint | Seat) -> str:
    """Kind of evidence that the texts of an endpoint or seat are."""
    return str(getattr(endpoint if isinstance(endpoint, Seat) else endpoint.client, "evidence", "model"))


def _member(actor: PersonaActor, endpoint: Endpoint | Seat, persona: Persona | None, opinion: int | None) -> Member:
    """A member of the cast."""
    return Member(
        actor,
        actor.role,
        endpoint,
        name="" if persona is None else persona.name or "",
        evidence=_evidence(endpoint),
        opinion=opinion,
        attributes={} if persona is None else dict(persona.attributes),
        record={} if persona is None else persona.record,
    )


def _cancel(engine: Engine) -> None:
    """End a run from any thread, without waiting for it."""
    background.submit(engine.cancel())


def _population(population: Population | str, scale: OpinionScale, seed: int) -> Population:
    """A population as given, or all personas of a named set with the opinions their file gives them."""
    if isinstance(population, Population):
        return population
    personas = load_personas(data_file("personas", population))
    return draw_population(
        personas,
        len(personas.personas),
        scale=scale,
        initial_opinions="personas",
        opinions_rng=stream(seed, "initial opinions"),
        assignment_rng=stream(seed, "assignment"),
    )


def _claim(topic: Claim | str | None, framing: str | None) -> Claim | None:
    """A claim as given, or that of a topic in the package's data; None where there is none."""
    if topic is None or isinstance(topic, Claim):
        return topic
    topics = load_topics(data_file("topics", "chuang2024"))
    if topic not in topics:
        raise SpecError(f"topic: unknown {topic!r}; valid: {', '.join(topics)}")
    return topics[topic].claim(framing)


def _cognition(given: Mapping[str, Any] | None, claim: Claim | None) -> _Cognition:
    """Memory and conditions from a mapping of their names; the claim is masked as its topic has it."""
    masked = claim is not None and claim.masked
    return validate(_Cognition, {"masked": masked, **(given or {})}, "cognition")


def _classifier(
    classifier: str | Classifier | _Unnamed | None, scale: OpinionScale, evidence: str
) -> Classifier | None:
    """The classifier as given or named; the default only for scripted texts."""
    if isinstance(classifier, _Unnamed):
        if evidence != "scripted":
            raise SpecError(
                "classifier must be named if a model other than 'scripted', or a person, takes part; for example, "
                "'flan-t5'"
            )
        return load_classifier(classifier.value, scale)
    return load_classifier(classifier, scale) if isinstance(classifier, str) else classifier


def _schedule(schedule: AnySchedule | int, n_agents: int, seed: int) -> AnySchedule:
    """A schedule as given, or random dyads on the complete graph."""
    if isinstance(schedule, int) and not isinstance(schedule, bool):
        whole_number("schedule", schedule, 0)
        return Dyads(steps=schedule).schedule(Setting.of(n_agents, seed))
    if isinstance(schedule, (str, bool)) or schedule is None:
        raise SpecError(f"schedule must be a schedule or a number of steps; got {schedule!r}")
    return check_schedule(schedule)


def _measured(model: OpinionModel) -> np.ndarray:
    return np.array([agent.opinion for agent in model._members])


def _bias(model: OpinionModel) -> float:
    return float(bias(_measured(model)))


def _diversity(model: OpinionModel) -> float:
    return float(diversity(_measured(model)))


def _n_measured(model: OpinionModel) -> int:
    return int(np.count_nonzero(~np.isnan(_measured(model))))
