"""The cast of a run: who acts, in what role, and who answers for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from opinionsim.engine._contracts import Actor, Publish
from opinionsim.errors import OpinionSimError, Rejected, ScheduleError, SpecError
from opinionsim.llm import REPLY, SELECT, CallName, Endpoint, ReplayOnly, Seat
from opinionsim.measurement import Author
from opinionsim.memory import Memory, find_memory, new_memory
from opinionsim.messages import EMPTY_PROMPT, SPOKEN, Ask, ChatMessage, Message, Prompt, Reply
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona, Population
from opinionsim.prompts import AgentPrompts, Brief, Conditions, PromptPack
from opinionsim.registry import RAISED, raised
from opinionsim.schedules import (
    PARTICIPANT,
    ActSpec,
    AnySchedule,
    AskingSelector,
    Turn,
    check_schedule,
    first_keeper,
    n_members,
    outline,
    position,
)
from opinionsim.topics import Claim


@dataclass(frozen=True)
class Cognition:
    """How agents are told to think, and what they are shown of themselves.

    Attributes
    ----------
    memory : str
        ``cumulative`` (A7), ``reflective`` (A8), ``reflective-as-run`` (A11), ``none``, or the import path of a memory
        of the user's own.
    options : mapping
        Further arguments of the memory.
    token_budget : int or None
        Estimated tokens of memory a prompt may carry; the oldest events are left out beyond it.
    confirmation_bias : str
        ``none``, ``weak`` or ``strong`` (A6).
    world : str
        ``closed`` or ``open`` (A6).
    persona_shown : str
        ``full``, ``demographics``, ``name`` or ``none``.
    masked : bool or None
        Whether the claim is called "Theory XYZ" after it is first stated (A5); None asks its topic where it can, and
        is otherwise false.
    belief_tense : str
        ``present`` words the initial belief without a verb (A4), ``past`` in the past tense.
    post_words : int or None
        Most words that a post is asked to have, >= 1; None says nothing of length.
    """

    memory: str = "cumulative"
    options: Mapping[str, Any] = field(default_factory=dict)
    token_budget: int | None = None
    confirmation_bias: Literal["none", "weak", "strong"] = "none"
    world: Literal["closed", "open"] = "closed"
    persona_shown: Literal["full", "demographics", "name", "none"] = "full"
    masked: bool | None = None
    belief_tense: Literal["present", "past"] = "present"
    post_words: int | None = 60

    @property
    def remembering(self) -> type[Memory]:
        """The memory's class."""
        return find_memory(self.memory, self.options)

    @property
    def conditions(self) -> Conditions:
        """What all prompts vary with."""
        return {
            "world": self.world,
            "persona_shown": self.persona_shown,
            "masked": bool(self.masked),
            "confirmation_bias": self.confirmation_bias,
            "belief_tense": self.belief_tense,
            "post_words": self.post_words,
        }


@dataclass(frozen=True)
class Direction:
    """What one member of a cast is told, and does, apart from the others.

    Attributes
    ----------
    brief : Brief or None
        The texts that address it; None for those of all.
    task : str or None
        Its task; None for that of the run.
    draws : int or None
        Replies drawn for each of its answers; None for those of the act. Off-record answers have one.
    selector : callable, AskingSelector or None
        Picks one of several replies.
    invitation : str or None
        For a person at a seat: what it is told in front of each question, which may be nothing; None for others.
    """

    brief: Brief | None = None
    task: str | None = None
    draws: int | None = None
    selector: Any = None
    invitation: str | None = None

    def acts(self, acts: Mapping[str, ActSpec]) -> Mapping[str, ActSpec]:
        """The acts of a schedule as this member carries them out."""
        if self.invitation is not None:
            return {name: act.for_person for name, act in acts.items()}
        if self.draws is None:
            return acts
        return {
            name: replace(act, draws=self.draws, selector=self.selector) if act.memory != "fork" and act.draws else act
            for name, act in acts.items()
        }


@dataclass(frozen=True)
class Member:
    """A member of the cast of a run.

    Attributes
    ----------
    actor : Actor
        Carries out its turns; not shared with other members, because actors remember.
    role : str
        ``participant``, or the role that the schedule gives it.
    endpoint : Endpoint or Seat
        Chat model, or person at a seat, that answers; not used for an equation.
    name : str
        Its name in results.
    evidence : str
        What its texts are evidence of: ``scripted``, ``model``, ``equation`` or ``human``.
    model : str
        Name of the chat model or equation.
    opinion : float or None
        The opinion it was assigned at the start.
    attributes : mapping of str to str
        Attributes of its persona.
    record : mapping of str to str
        What else is known of its persona, and told to no model.
    """

    actor: Actor
    role: str = PARTICIPANT
    endpoint: Endpoint | Seat = field(default_factory=lambda: Endpoint(ReplayOnly()))
    name: str = ""
    evidence: str = "scripted"
    model: str = ""
    opinion: float | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, str] = field(default_factory=dict)

    @property
    def author(self) -> Author:
        """What an instrument with context is told of it."""
        persona = (("name", self.name), *self.attributes.items()) if self.name else tuple(self.attributes.items())
        return Author(persona, self.opinion)


def check_cast(schedule: AnySchedule, cast: Sequence[Member]) -> None:
    """Refuse a cast that does not fit its schedule.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        States the number of participants, and the roles of others.
    cast : sequence of Member
        Participants first, then the others in the schedule's order.

    Raises
    ------
    SpecError
        Naming the role or the member that does not fit.
    """
    check_schedule(schedule)
    roles = (*(PARTICIPANT,) * schedule.n_agents, *schedule.others)
    given = tuple(member.role for member in cast)
    if len(given) != n_members(schedule):
        n_participants = given.count(PARTICIPANT)
        raise SpecError(
            f"the schedule is for {schedule.n_agents} participants and {_listed(schedule.others)}; the cast has "
            f"{n_participants} and {_listed([role for role in given if role != PARTICIPANT])}"
        )
    for agent, (wanted, has) in enumerate(zip(roles, given, strict=True)):
        if wanted != has:
            raise SpecError(f"cast: member {agent} is the schedule's {wanted}; got a {has}")
    for agent, member in enumerate(cast[schedule.n_agents :], schedule.n_agents):
        for other, twin in enumerate(cast[:agent]):
            same_name = bool(member.name) and member.name == twin.name and twin.role == PARTICIPANT
            if member.actor is twin.actor or same_name:
                raise SpecError(
                    f"cast: the {member.role} (member {agent}) is also the {twin.role} {other}"
                    f"{f', {twin.name}' if twin.name else ''}; nobody has two roles in one run"
                )


def _listed(roles: Sequence[str]) -> str:
    return f"others ({', '.join(roles)})" if roles else "no others"


class PersonaActor:
    """An agent that answers prompts: it reads, answers through a chat model or a person, and remembers.

    Parameters
    ----------
    agent : int
        Its number in the cast.
    prompts : AgentPrompts
        The prompts for its persona and the run's conditions.
    memory : Memory
        Its memory before the first turn, with its system message, if it has one; it begins every prompt.
    acts : mapping of str to ActSpec
        The schedule's acts by name.
    role : str
        Its role in the run.

    Attributes
    ----------
    calls_per_event : int
        Calls it makes to remember a turn.
    """

    def __init__(
        self,
        agent: int,
        prompts: AgentPrompts,
        memory: Memory,
        acts: Mapping[str, ActSpec],
        role: str = PARTICIPANT,
    ) -> None:
        self.agent = agent
        self.prompts = prompts
        self.memory = memory
        self.role = role
        self.calls_per_event = memory.calls_per_event
        self._blank = memory
        self._acts = acts

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Answer the turn's task from memory, hand the answer over, then remember it."""
        spec = self._acts[turn.act]
        memory = self.memory if spec.memory != "none" else self._blank
        prompt = memory.prompt().then(self.prompts.task(spec, received, memory.past))
        asked = partial(ask, messages=prompt, dropped=memory.dropped, parse=self.prompts.parse(spec.parse))
        reply = await _draw(spec, asked, self.prompts.said)
        publish(self.message(turn, reply))
        if spec.memory == "keep":
            self.memory = await memory.remember(spec, received, reply, ask)

    def message(self, turn: Turn, reply: Reply) -> Message:
        """The message made of a reply, which others may read."""
        text, condition, decision = reply
        return Message(text, self.prompts.author, self.agent, condition, self.role, turn.act, decision)

    def fork(self) -> PersonaActor:
        """A copy of this agent as it is now; memories are immutable values, so sharing one is safe."""
        twin = PersonaActor(self.agent, self.prompts, self.memory, self._acts, self.role)
        twin._blank = self._blank
        return twin

    def preview(self, act: str, received: Sequence[Message] = ()) -> tuple[ChatMessage, ...]:
        """The literal prompt of an act from the present memory, without a call."""
        return tuple(self.memory.prompt().then(self.prompts.task(self._acts[act], received, self.memory.past)))


async def _draw(spec: ActSpec, ask: Callable[..., Awaitable[Reply]], said: Callable[[Reply], Reply]) -> Reply:
    """The reply of a turn as it is published: the only one, or the one that the act's selector picks from several."""
    if spec.draws == 1:
        return said(await ask(REPLY))
    calls = [str(CallName("reply", draw)) for draw in range(1, spec.draws + 1)]
    # If a draw fails, the others are awaited all the same: their replies are paid for and go on record.
    drawn = await asyncio.gather(*map(ask, calls), return_exceptions=True)
    for reply in drawn:
        if isinstance(reply, BaseException):
            raise reply
    every = [said(reply) for reply in drawn if isinstance(reply, Reply)]
    # A refused or empty draw is chosen only where all draws are refused or empty.
    replies = [reply for reply in every if reply.status in SPOKEN] or every[:1]
    if len(replies) == 1:
        return replies[0]
    texts = [reply.text for reply in replies]
    try:
        if isinstance(spec.selector, AskingSelector):
            return replies[await _judged(spec.selector, texts, ask)]
        chosen = 0 if spec.selector is None else spec.selector(texts)
    except OpinionSimError:
        raise
    except RAISED as error:  # a selector is a function of the user's
        raise ScheduleError(f"the selector of act {spec.name!r} failed with {raised(error)}") from error
    try:
        return replies[position(chosen, texts)]
    except ValueError as error:
        raise ScheduleError(f"the selector of act {spec.name!r}: {error}") from error


async def _judged(selector: AskingSelector, texts: Sequence[str], ask: Callable[..., Awaitable[Reply]]) -> int:
    """The position that the agent's model names; the first where it names none within the attempts of the act."""

    def parse(call: str, text: str, received: tuple[Message, ...]) -> int:
        place = selector.parse(call, text, received)
        if not 0 <= place < len(texts):
            raise Rejected(f"there are {len(texts)} replies; number {place + 1} is none of them")
        return place

    told = await ask(SELECT, messages=selector.messages(texts), parse=parse, dropped=0)
    return 0 if told.decision is None else int(told.decision)


def _start(prompts: AgentPrompts, invitation: str | None) -> Prompt:
    """The beginning of every prompt: an agent's system message or a person's invitation; or nothing."""
    first = prompts.system() if invitation is None else ChatMessage("user", invitation)
    return EMPTY_PROMPT if first is None or not first.content else EMPTY_PROMPT.then(first)


def _occasions(schedule: AnySchedule) -> tuple[bool, bool]:
    """Whether participants can ever write a post, and whether they can ever be shown messages."""
    writes = reads = False
    try:
        for turn in outline(schedule):
            act = schedule.acts.get(turn.act) if isinstance(turn, Turn) else None
            if act is None or (writes and reads):  # the engine refuses a turn that is none
                break
            if turn.agent < schedule.n_agents:
                writes, reads = writes or not act.answers, reads or bool(turn.reads)
    except ScheduleError:  # an adaptive schedule need not know its turns beforehand
        return not all(act.answers for act in schedule.acts.values()), True
    return writes, reads


def persona_actors(
    population: Population,
    schedule: AnySchedule,
    pack: PromptPack,
    *,
    claim: Claim | None,
    scale: OpinionScale,
    cognition: Cognition,
    task: str = "",
    directions: Sequence[Direction] = (),
) -> list[PersonaActor]:
    """The participants of a run as personas, before their first turn.

    Parameters
    ----------
    population : Population
        One persona an agent, with the opinions they are assigned.
    schedule : StaticSchedule or AdaptiveSchedule
        The schedule they will carry out.
    pack : PromptPack
        Wording.
    claim : Claim or None
        What opinions are about.
    scale : OpinionScale
        The scale of assigned opinions.
    cognition : Cognition
        Memory, bias, world, and what agents are shown.
    task : str
        What they are asked to do, in free words; empty for nothing beyond their acts.
    directions : sequence of Direction, length N or 0
        What each is told, and does, apart from the others; by default nothing.

    Raises
    ------
    SpecError
        If the population has another size than the schedule, or the pack lacks what the acts need.
    """
    if schedule.n_agents != len(population):
        raise SpecError(f"the schedule is for {schedule.n_agents} agents; the population has {len(population)}")
    wording = pack.bind(_asked(schedule, directions), cognition.remembering.templates, **cognition.conditions)
    writes, reads = _occasions(schedule)
    # One historical memory treats the agent that acts first differently.
    leader = first_keeper(schedule) if cognition.remembering.treats_first else None
    actors = []
    directions = directions or (Direction(),) * len(population)
    members = zip(population.personas, population.opinions, directions, strict=True)
    for agent, (persona, opinion, direction) in enumerate(members):
        prompts = wording.for_agent(
            persona=persona,
            opinion=opinion,
            claim=claim,
            task=task if direction.task is None else direction.task,
            scale=scale,
            reads=reads,
            writes=writes,
            agent=agent,
            brief=direction.brief,
            **cognition.conditions,
        )
        leads, start = agent == leader, _start(prompts, direction.invitation)
        memory = new_memory("none", prompts, start=start)
        if direction.invitation is None:
            memory = new_memory(
                cognition.memory, prompts, cognition.token_budget, leads=leads, start=start, options=cognition.options
            )
        actors.append(PersonaActor(agent, prompts, memory, direction.acts(schedule.acts)))
    return actors


def _asked(schedule: AnySchedule, directions: Iterable[Direction]) -> list[ActSpec]:
    """The acts of a schedule, and the same for persons if there are any."""
    acts = [*schedule.acts.values()]
    return acts + [act.for_person for act in acts if any(each.invitation is not None for each in directions)]


def conditions_of_others(masked: bool | None) -> Conditions:
    """The conditions of members other than participants: an open world, and no bias.

    Parameters
    ----------
    masked : bool or None
        As in :class:`Cognition`.
    """
    return {"world": "open", "masked": bool(masked)}


def other_actors(
    schedule: AnySchedule,
    pack: PromptPack,
    *,
    claim: Claim | None,
    scale: OpinionScale,
    personas: Mapping[str, Persona] | None = None,
    memory: str = "none",
    masked: bool | None = None,
    task: str = "",
    directions: Mapping[str, Direction] | None = None,
) -> list[PersonaActor]:
    """The members of a run other than its participants, before their first turn.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        Names their roles.
    pack : PromptPack
        Wording.
    claim, scale, masked, task
        As for :func:`persona_actors`.
    personas : mapping of str to Persona, optional
        The persona of a role; default none.
    memory : str
        The memory they have.
    directions : mapping of str to Direction, optional
        What the member of a role is told, and does, apart from the others; default nothing.

    Raises
    ------
    SpecError
        If the pack lacks what the acts need.
    """
    told = conditions_of_others(masked)
    acts = _asked(schedule, (directions or {}).values())
    wording = pack.bind(acts, find_memory(memory).templates, **told)
    actors = []
    for agent, role in enumerate(schedule.others, schedule.n_agents):
        direction = (directions or {}).get(role, Direction())
        prompts = wording.for_agent(
            persona=(personas or {}).get(role),
            claim=claim,
            task=task if direction.task is None else direction.task,
            scale=scale,
            agent=agent,
            role=role,
            brief=direction.brief,
            **told,
        )
        kept = memory if direction.invitation is None else "none"
        blank = new_memory(kept, prompts, start=_start(prompts, direction.invitation))
        actors.append(PersonaActor(agent, prompts, blank, direction.acts(schedule.acts), role))
    return actors


class OnRecord:
    """A person whose texts are on record: what it said is read from the journal, and nobody is asked."""

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Publish what is on record."""
        said = await ask(REPLY, EMPTY_PROMPT)
        publish(Message(said.text, "", turn.agent, said.status, PARTICIPANT, turn.act))

    def fork(self) -> OnRecord:
        """The person itself: it does not change."""
        return self
