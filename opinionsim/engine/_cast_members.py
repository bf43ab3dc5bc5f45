"""The cast of a run: its members, their roles, and the models or people who answer for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from opinionsim.engine._contracts import Actor, Publish
from opinionsim.errors import OpinionSimError, Rejected, ScheduleError, SpecError
from opinionsim.llm import REPLY, SELECT, CallName, Endpoint, ReplayOnly, Seat
from opinionsim.measurement import Author
from opinionsim.memory import Memory, NoMemory
from opinionsim.messages import EMPTY_PROMPT, SPOKEN, Ask, ChatMessage, Message, Reply
from opinionsim.opinions import OpinionScale
from opinionsim.personas import Population
from opinionsim.prompts import Addressee, AgentPrompts, Brief, Conditions, Frame, PromptPack
from opinionsim.registry import RAISED, NamedPart, raised
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
    unremembered,
)
from opinionsim.topics import Claim

#: Tokens that are left for each word that a prompt asks for. English takes about 4 tokens for 3 words, other languages
#: take more, and models often write more than they were asked for.
_TOKENS_A_WORD = 2


@dataclass(frozen=True)
class Direction(Brief):
    """The settings of one member of a cast that differ from those of the others.

    Attributes
    ----------
    system, template, instructions, persona, values, without, task, author
        Texts of its prompts, as in :class:`opinionsim.prompts.Brief`.
    draws : int or None
        Number of replies drawn for each of its answers; None uses that of the act. Off-record answers have one.
    selector : callable, AskingSelector or None
        Picks one of several replies.
    invitation : str or None
        For a person at a seat: the text shown before each question, which may be empty. None for others.
    """

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
        Carries out its turns. Members do not share actors, because actors remember.
    role : str
        ``participant``, or the role that the schedule gives it.
    endpoint : Endpoint or Seat
        Chat model or person at a seat that answers. Equations do not use it.
    name : str
        Its name in results.
    evidence : str
        Source of its texts: ``scripted``, ``model``, ``equation`` or ``human``.
    model : str
        Name of the chat model or equation.
    opinion : float or None
        Its assigned opinion at the start.
    attributes : mapping of str to str
        Attributes of its persona.
    record : mapping of str to str
        Further data about its persona, which no model sees.
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
        """The description of it that an instrument with context reads."""
        persona = (("name", self.name), *self.attributes.items()) if self.name else tuple(self.attributes.items())
        return Author(persona, self.opinion)


def check_cast(schedule: AnySchedule, cast: Sequence[Member]) -> None:
    """Refuse a cast that does not fit its schedule.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        Has the number of participants, and the roles of others.
    cast : sequence of Member
        Participants first, then the others in the schedule's order.

    Raises
    ------
    SpecError
        If a role or a member does not fit; the message names it.
    """
    check_schedule(schedule)
    roles = (*(PARTICIPANT,) * schedule.n_agents, *schedule.others)
    given = tuple(member.role for member in cast)
    if len(given) != n_members(schedule):
        n_participants = given.count(PARTICIPANT)
        raise SpecError(
            f"the schedule needs {schedule.n_agents} participants and {_listed(schedule.others)}; the cast has "
            f"{n_participants} and {_listed([role for role in given if role != PARTICIPANT])}"
        )
    for agent, (wanted, has) in enumerate(zip(roles, given, strict=True)):
        if wanted != has:
            raise SpecError(f"cast: member {agent} must have the role {wanted}; got {has}")
    for agent, member in enumerate(cast[schedule.n_agents :], schedule.n_agents):
        for other, twin in enumerate(cast[:agent]):
            same_name = bool(member.name) and member.name == twin.name and twin.role == PARTICIPANT
            if member.actor is twin.actor or same_name:
                raise SpecError(
                    f"cast: member {agent} ({member.role}) is also the {twin.role} "
                    f"{other}{f', {twin.name}' if twin.name else ''}; a member can have only one role in a run"
                )


def _listed(roles: Sequence[str]) -> str:
    return f"others ({', '.join(roles)})" if roles else "no others"


class PersonaActor:
    """An agent that reads messages, answers prompts through a chat model or a person, and remembers.

    Parameters
    ----------
    agent : int
        Its number in the cast.
    prompts : AgentPrompts
        The prompts for its persona and the run's conditions.
    memory : Memory
        Its memory before the first turn, with its system message if it has one. Every prompt begins with it.
    acts : mapping of str to ActSpec
        The schedule's acts by name.
    role : str
        Its role in the run.
    unread : collection of int
        Turns that no later turn of it remembers (:func:`opinionsim.schedules.unremembered`). After these, its memory
        makes no calls and keeps what it can without a reply.

    Attributes
    ----------
    calls_per_event : int
        Number of calls it makes to remember a turn.
    """

    def __init__(
        self,
        agent: int,
        prompts: AgentPrompts,
        memory: Memory,
        acts: Mapping[str, ActSpec],
        role: str = PARTICIPANT,
        unread: Collection[int] = (),
    ) -> None:
        self.agent = agent
        self.prompts = prompts
        self.memory = memory
        self.role = role
        self.calls_per_event = memory.calls_per_event
        self._blank = memory
        self._acts = acts
        self._unread = unread

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Answer the turn's task from memory, publish the answer, then remember it."""
        spec = self._acts[turn.act]
        memory = self.memory if spec.memory != "none" else self._blank
        prompt = memory.prompt().then(self.prompts.task(spec, received, memory.past))
        speech = self.prompts.speech(spec)
        if spec.formal and not spec.heard:
            speech = speech._replace(looks="none")
        asked = partial(
            ask, speech=speech, messages=prompt, dropped=memory.dropped, parse=self.prompts.parse(spec.parse)
        )
        reply = await _draw(spec, asked, self.prompts.said)
        publish(self.message(turn, reply))
        if spec.memory == "keep":
            asks: Ask = _unasked if turn.index in self._unread else partial(ask, speech=self.prompts.speech())
            self.memory = await memory.remember(spec, received, reply, asks)

    def message(self, turn: Turn, reply: Reply) -> Message:
        """The message that others may read, made from a reply."""
        text, status, decision, *_ = reply
        who = self.prompts.author, self.agent, status, self.role
        return Message(text, *who, turn.act, decision, signs=reply.signs, taken=reply.taken)

    def fork(self) -> PersonaActor:
        """A copy of this agent as it is now; memories are immutable values, so sharing one is safe."""
        twin = PersonaActor(self.agent, self.prompts, self.memory, self._acts, self.role, self._unread)
        twin._blank = self._blank
        return twin

    def preview(self, act: str, received: Sequence[Message] = ()) -> tuple[ChatMessage, ...]:
        """The exact prompt of an act from the current memory; makes no call."""
        return tuple(self.memory.prompt().then(self.prompts.task(self._acts[act], received, self.memory.past)))


async def _unasked(call: str, messages: Iterable[ChatMessage], **how: Any) -> Reply:
    """The empty reply that replaces a call."""
    return Reply("", "empty")


async def _draw(spec: ActSpec, ask: Callable[..., Awaitable[Reply]], said: Callable[[Reply], Reply]) -> Reply:
    """The reply that a turn publishes: the only one, or the one that the act's selector picks."""
    if spec.draws == 1:
        return said(await ask(REPLY))
    calls = [str(CallName("reply", draw)) for draw in range(1, spec.draws + 1)]
    # If a draw fails, the others are awaited all the same: their replies are paid for and go on record.
    drawn = await asyncio.gather(*map(ask, calls), return_exceptions=True)
    for reply in drawn:
        if isinstance(reply, BaseException):
            raise reply
    every = [said(reply) for reply in drawn if isinstance(reply, Reply)]
    # A refused or empty draw is chosen only if all draws are refused or empty.
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
    """The position that the agent's model names, or the first if no attempt of the act names one."""

    def parse(call: str, text: str, received: tuple[Message, ...]) -> int:
        place = selector.parse(call, text, received)
        if not 0 <= place < len(texts):
            raise Rejected(f"there are {len(texts)} replies, but the selector returned number {place + 1}")
        return place

    told = await ask(SELECT, messages=selector.messages(texts), parse=parse, dropped=0, speech=None)
    return 0 if told.decision is None else int(told.decision)


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


def conditions_of_others(masked: bool) -> Conditions:
    """Conditions of members other than participants: an open world and no bias.

    Parameters
    ----------
    masked : bool
        Whether the claim is called "Theory XYZ".
    """
    return Conditions(world="open", masked=masked, post_words=None)


@dataclass(frozen=True, kw_only=True)
class Casting:
    """The members of a run before their first turn, with the settings of their prompts.

    Attributes
    ----------
    population : Population
        The persona and the assigned opinion of each participant.
    schedule : StaticSchedule or AdaptiveSchedule
        The schedule that they will carry out, with the roles of the others.
    pack : PromptPack
        The templates of prompts.
    claim : Claim or None
        The claim that opinions are about.
    scale : OpinionScale
        The scale of assigned opinions.
    memory : NamedPart
        The memory of participants; other members have none.
    token_budget : int or None
        Maximum number of estimated tokens of memory in a prompt; prompts omit the oldest events first.
    conditions : Conditions
        Conditions that change the prompts of participants.
    task : str
        Their task, in free words; empty if they have only their acts.
    directions : tuple of Direction, length N or 0
        Settings of each participant; by default, none differs from the others.
    others : mapping of str to Direction
        The same for other members, by role; by default empty.
    """

    population: Population
    schedule: AnySchedule
    pack: PromptPack
    claim: Claim | None
    scale: OpinionScale
    memory: NamedPart = field(default_factory=lambda: NamedPart(name="cumulative"))
    token_budget: int | None = None
    conditions: Conditions = field(default_factory=Conditions)
    task: str = ""
    directions: tuple[Direction, ...] = ()
    others: Mapping[str, Direction] = field(default_factory=dict)

    @property
    def remembering(self) -> type[Memory]:
        """The class of the memory."""
        found: type[Memory] = self.memory.found("memory").target
        return found

    @cached_property
    def unread(self) -> frozenset[int]:
        """Turns that no later turn of their agent remembers, where remembering takes a call."""
        return unremembered(self.schedule) if self.remembering.calls_per_event else frozenset()

    def actors(self) -> list[PersonaActor]:
        """Create all members of the cast before their first turn, participants first.

        Raises
        ------
        SpecError
            If population and schedule differ in size, or the pack lacks a template that an act needs.
        """
        population, schedule = self.population, self.schedule
        if schedule.n_agents != len(population):
            raise SpecError(f"the schedule needs {schedule.n_agents} agents; the population has {len(population)}")
        writes, reads = _occasions(schedule)
        # One historical memory treats the agent that acts first differently.
        leader = first_keeper(schedule) if self.remembering.treats_first else None
        about = Addressee(self.scale, self.conditions, claim=self.claim, task=self.task, reads=reads, writes=writes)
        wording = self._wording(self.remembering.templates, self.conditions)
        directions = self.directions or (Direction(),) * len(population)
        actors = []
        for agent, (persona, opinion) in enumerate(zip(population.personas, population.opinions, strict=True)):
            told = replace(about, persona=persona, opinion=opinion, agent=agent, brief=directions[agent])
            told = replace(told, answer_words=self._words(agent))
            actors.append(self._actor(wording.for_agent(told), told, directions[agent], leads=agent == leader))
        if schedule.others:
            conditions = conditions_of_others(self.conditions.masked)
            about = Addressee(self.scale, conditions, claim=self.claim, task=self.task)
            wording = self._wording((), conditions)
        for agent, role in enumerate(schedule.others, schedule.n_agents):
            direction = self.others.get(role, Direction())
            told = replace(about, agent=agent, role=role, brief=direction, answer_words=self._words(agent))
            actors.append(self._actor(wording.for_agent(told), told, direction))
        return actors

    def longest(self, agent: int) -> int | None:
        """Maximum number of tokens of a member's reply; None uses the provider's limit."""
        return None

    def _words(self, agent: int) -> int | None:
        """Maximum number of words that prompts request, to avoid truncated replies; None if they name no number."""
        longest = None if self.conditions.post_words is None else self.longest(agent)
        return None if longest is None else max(longest // _TOKENS_A_WORD, 1)

    def _wording(self, frames: Sequence[str | Frame], conditions: Conditions) -> PromptPack:
        """The pack, bound to the acts of the schedule, and to the same for persons if there are any."""
        acts = [*self.schedule.acts.values()]
        persons = any(each.invitation is not None for each in (*self.directions, *self.others.values()))
        return self.pack.bind([*acts, *(act.for_person for act in acts if persons)], frames, conditions)

    def _actor(
        self, prompts: AgentPrompts, told: Addressee, direction: Direction, *, leads: bool = False
    ) -> PersonaActor:
        """A member of the cast, by its prompts."""
        person = direction.invitation is not None
        # Every prompt begins with an agent's system message or a person's invitation; or with nothing.
        first = ChatMessage("user", direction.invitation or "") if person else prompts.system()
        start = EMPTY_PROMPT if first is None or not first.content else EMPTY_PROMPT.then(first)
        remembers = told.role == PARTICIPANT and not person
        build: Any = self.remembering if remembers else NoMemory
        options = self.memory.options if remembers else {}
        memory = build(prompts, self.token_budget, start, leads=leads, **options)
        acts = direction.acts(self.schedule.acts)
        return PersonaActor(told.agent or 0, prompts, memory, acts, told.role, self.unread if remembers else ())


class OnRecord:
    """A person whose replies come from the journal, as in a replay."""

    async def act(self, turn: Turn, received: Sequence[Message], ask: Ask, publish: Publish) -> None:
        """Publish the recorded reply."""
        said = await ask(REPLY, EMPTY_PROMPT)
        publish(Message(said.text, "", turn.agent, said.status, PARTICIPANT, turn.act))

    def fork(self) -> OnRecord:
        """The person itself, which does not change."""
        return self
