"""Interactions: their fields in a specification, and the turns that they make from a run's settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from opinionsim.errors import ScheduleError, SpecError
from opinionsim.foundation.streams import stream
from opinionsim.messages import Message
from opinionsim.networks import AnyNetwork, Neighbours, Network, NetworkField, NetworkKind
from opinionsim.prompts import Labelling
from opinionsim.registry import KindModel
from opinionsim.schedules._dyadic_acts import PROBE, SELF_REPORT
from opinionsim.schedules._source_cell import SourceCell
from opinionsim.schedules._turns import (
    NO_EXTERNALS,
    ActSpec,
    AnySchedule,
    Outcomes,
    Ref,
    Schedule,
    TieChange,
    Turn,
)

if TYPE_CHECKING:
    from opinionsim.measurement import Text

#: Most turns of one run: its schedule is held in memory.
MAX_STEPS = 10_000_000
#: Most agents of a run, far above any that can be paid for: a mistyped number must not exhaust memory.
MAX_SIZE = 1_000_000

#: Name of the external message that holds the text of a participant that was written beforehand.
GIVEN = "text-{}"

#: A field inside a document, as its keys, and the problem with it.
Conflict = tuple[tuple[str | int, ...], str]


def _as_given(messages: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(messages, str):
        raise SpecError(f"{messages!r} is a file, but nothing here can read it", "interaction.messages")
    return tuple(messages)


@dataclass(frozen=True)
class Setting:
    """The settings of a run from which its interaction makes turns; :meth:`of` creates them in Python.

    Attributes
    ----------
    size : int
        Number of participants N.
    draws : callable
        Returns a new generator at the beginning of a random stream of the run, by purpose and further keys; default
        that of its schedule.
    network : Network or None
        Who can speak to whom; None if everyone can speak to everyone.
    opinions : sequence of float or None, length N
        Assigned opinions of participants at the start; by default none.
    messages : callable
        Returns the messages that a specification contains, or those in the file it names.
    names : sequence of str, length N
        Names of participants; by default none.
    replicate : int
        Number of the replicate, from 0; orders balanced over replicates depend on it.
    given : mapping of int to str
        Texts of participants written beforehand; by default none.
    position : str
        The position statement: the claim that opinions are about; empty if there is none.
    question : str
        The question that participants answer; empty if there is none.
    block : str
        Name of the set of runs that share random draws; empty outside experiments.
    questioned : bool
        Whether participants answer questions after the last step.
    questions : sequence of (str, int, int)
        Off-record questions of measurement: the act, and how often it comes before the first step and after the last;
        only for interactions that place them themselves.
    seats : frozenset of int
        Participants who are people; by default none.
    read : sequence of (int, int, sequence of str)
        Texts that :meth:`Interaction.takes` copied from other runs; by default none.
    record : sequence
        For a record of people: step, agent, kind and reads of each turn, then outside messages by name.

    Raises
    ------
    SpecError
        If only some participants have opinions.
    """

    size: int
    draws: Callable[..., np.random.Generator]
    network: Network | None = None
    opinions: Sequence[float | None] = ()
    messages: Callable[[str | tuple[str, ...]], tuple[str, ...]] = _as_given
    names: Sequence[str] = ()
    replicate: int = 0
    given: Mapping[int, str] = field(default_factory=dict)
    position: str = ""
    question: str = ""
    block: str = ""
    questioned: bool = False
    questions: Sequence[tuple[str, int, int]] = ()
    seats: frozenset[int] = frozenset()
    read: Sequence[tuple[int, int, Sequence[str]]] = ()
    record: Sequence[Any] = ()
    _streams: dict[tuple[Any, ...], np.random.Generator] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if len(self.opinions) not in (0, self.size):
            raise SpecError(f"opinions must give one for each of the {self.size} agents; got {self.opinions!r:.80}")

    @classmethod
    def of(cls, network: AnyNetwork, seed: int = 0, **others: Any) -> Setting:
        """The settings of a run outside of experiments.

        Parameters
        ----------
        network : Network, networkx graph, int or other
            Who can speak to whom, as :meth:`Network.of` takes it; a number means that many agents who can all speak to
            each other.
        seed : int
            Root seed >= 0 of the random stream.
        **others
            Further attributes, such as `opinions`.
        """
        joined = Network.of(network)

        def draws(purpose: str = "schedule", *keys: Any) -> np.random.Generator:
            return stream(seed, purpose, 0, *keys)

        return cls(joined.n, draws, None if joined.complete else joined, **others)

    def begun(self) -> Setting:
        """The same settings with all random streams at their start, for one pass over the turns."""
        anew = copy(self)
        object.__setattr__(anew, "_streams", {})
        return anew

    @property
    def rng(self) -> np.random.Generator:
        """The random stream of the run's turns; repeated use continues it."""
        return self.stream("schedule")

    def stream(self, purpose: str, *keys: int) -> np.random.Generator:
        """A random stream of the run, which restarts with each pass over the turns; repeated use continues it.

        Parameters
        ----------
        purpose : str
            Purpose of the numbers. Streams for two purposes are independent.
        *keys : int
            Numbers that separate streams of one purpose, such as the round and the agent.
        """
        name = (purpose, *keys)
        if name not in self._streams:
            self._streams[name] = self.draws(*name)
        return self._streams[name]

    @property
    def seed(self) -> int:
        """The first draw of the stream of :attr:`rng`, for your own generators."""
        return int(self.draws().integers(2**32))

    @cached_property
    def neighbours(self) -> Neighbours:
        """Who speaks to whom and hears whom.

        Raises
        ------
        SpecError
            If no agent can speak to another.
        """
        return Neighbours(self.size if self.network is None else self.network)

    @property
    def assigned(self) -> np.ndarray:
        """Assigned opinions, shape (N,); NaN for an agent without one."""
        known = self.opinions or (None,) * self.size
        return np.array([np.nan if opinion is None else opinion for opinion in known], dtype=float)


class Interaction(KindModel):
    """Base of all interactions.

    An interaction is one class that inherits from this one, :class:`SteppedInteraction` or
    :class:`NetworkedInteraction`. Its annotated attributes are its fields. It declares `acts` and yields turns from
    :meth:`turns`. If later turns depend on messages, it uses :meth:`decide` instead, and :meth:`outline` for the
    largest possible set of turns.
    """

    part_kind: ClassVar[str] = "interaction"
    acts: ClassVar[Mapping[str, ActSpec]] = MappingProxyType({})
    """The acts of its turns, by name."""
    others: ClassVar[Sequence[str]] = ()
    """Roles beside the participants."""
    smallest: ClassVar[int] = 1
    """Least number of participants."""
    role_play: ClassVar[bool] = True
    """Whether agents play personas."""
    played_by: ClassVar[tuple[str, ...]] = ("chat models", "equations")
    """Kinds of agents that can carry it out."""
    every_report: ClassVar[bool] = False
    """Whether all reports of an agent count in tables, because none depends on another; otherwise its last."""
    recorded: ClassVar[bool] = False
    """Whether its turns come from a record of people and make no calls."""
    member_name: ClassVar[str] = "Agent {index}"
    """Name of a member of a cast without one; {index} is its number from 0, {number} from 1."""
    moderated: ClassVar[Labelling] = "numbered"
    """How prompts introduce answers to a moderator."""
    takes_texts: ClassVar[bool] = False
    """Whether texts written beforehand can replace participants."""
    needs_task: ClassVar[bool] = True
    """Whether agents need a topic or a task; otherwise, the fields of the interaction define the questions."""
    places_questions: ClassVar[bool] = False
    """Whether it places the off-record questions of measurement among its own turns."""

    @property
    def shows(self) -> bool:
        """Whether agents ever read messages of others, which other texts could replace."""
        return True

    @property
    def public(self) -> frozenset[str]:
        """Kinds of text that everyone in the room hears; without any, people at seats see what their turns read."""
        return frozenset(act.kind for act in self.acts.values() if act.audience == "room")

    @property
    def private(self) -> frozenset[str]:
        """Kinds of text that no dialogue contains: only their author and the record have them."""
        acts = (*self.acts.values(), PROBE, SELF_REPORT)
        return frozenset(act.kind for act in acts if not act.heard and act.opinion != "states")

    @property
    def texts(self) -> list[str]:
        """Kinds of text that can be coded, in order; tables read the first one that is measured.

        Later acts come first, and opinions in the dialogue come before answers to off-record questions.
        """
        acts = list(self.acts.values())[::-1]
        states, may = ([act.kind for act in acts if act.opinion == how] for how in ("states", "may"))
        return list(dict.fromkeys([*states, PROBE.kind, SELF_REPORT.kind, *may]))

    prompts: ClassVar[str] = "default"
    """Prompt pack for its acts if a specification names none."""
    length_field: ClassVar[str] = "kind"
    """The field that says how long it takes."""

    def unnamed(self, agent: int) -> str:
        """Name of a member of a cast without one."""
        return self.member_name.replace("{index}", str(agent)).replace("{number}", str(agent + 1))

    def steps_for(self, size: int) -> int:
        """Steps T of a population of `size` agents."""
        raise ScheduleError(f"{type(self).__name__} has no steps_for(size), the number of its steps")

    @property
    def decided(self) -> Mapping[str, tuple[tuple[int, ...], frozenset[str]]]:
        """Variables that replies state with numbers of messages (:class:`opinionsim.messages.Said`), by default none.

        By variable, the points of its scale and the kinds of text that state it.
        """
        return {}

    names_steps: ClassVar[bool] = True
    """Whether errors about a turn name its step."""
    reads_earlier: ClassVar[bool] = False
    """Whether turns read turns of earlier steps, which a change of ties must not separate."""

    yoked: ClassVar[bool] = False
    """Whether agents read what their counterparts read in the runs of its source."""
    stands_in: ClassVar[bool] = False
    """Whether each agent plays a recorded person, with that person's attributes and first opinion."""

    remembers: ClassVar[bool] = True
    """Whether agents have the memory of cognition."""

    @property
    def needs_memory(self) -> bool:
        """Whether its agents must have a memory."""
        return False

    @property
    def asks(self) -> bool:
        """Whether agents have any turns other than off-record questions."""
        return True

    @property
    def contacts(self) -> NetworkKind | None:
        """Who can speak to whom; None if there is no network."""
        return None

    @property
    def sources(self) -> Mapping[str, SourceCell]:
        """Other cells from which it takes texts, by field."""
        return {name: value for name, value in self if isinstance(value, SourceCell)}

    @property
    def rating_steps(self) -> Sequence[int]:
        """Steps at which recorded people gave ratings, with 0 before they read anything; by default none."""
        return ()

    @property
    def rated_kinds(self) -> Mapping[str, tuple[str, ...]]:
        """Variables that recorded people rated, each with the kinds of text that have a rating; by default none."""
        return {}

    def replicates(self, n: int) -> Sequence[int]:
        """Numbers of its replicates, if a specification asks for `n`."""
        return range(n)

    def counterparts(self, replicate: int, n: int) -> Sequence[int]:
        """The replicates, out of `n`, of each source from which a replicate copies texts."""
        return (replicate,)

    def takes(self, size: int, runs: Sequence[Mapping[int, Text]]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Steps, agents and texts, in its own numbering, that it copies from its sources' runs."""
        yield from ()

    @property
    def guidance(self) -> str | None:
        """Default instructions for agents that read messages; None if there are none."""
        return None

    def notes(self, size: int, replicates: int) -> Iterator[str]:
        """Sentences about anything that may surprise a reader of the specification."""
        yield from ()

    methods: ClassVar[Sequence[str]] = ()
    """Sentences for a report on the method and, if no stance is measured, on the basis of means."""
    tables: ClassVar[tuple[str, ...]] = ()
    """Further tables of its experiments, by name."""
    frames: ClassVar[tuple[str, ...]] = ()
    """Further frames that an archive needs to reproduce its tables."""
    figures: ClassVar[tuple[str, ...]] = ()
    """Further figures of its experiments, by name."""
    record: ClassVar[str] = ""
    """Further details of a run: a part of kind `record`, whose JSON values the page of a run shows."""
    beside: ClassVar[Mapping[str, str]] = {}
    """Kinds of text for which pages have parts of kind `page` beside the dialogue, with words for them in its place."""
    worded: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """What pages say in the place of formal texts, by kind of text and text."""
    wants: ClassVar[Mapping[str, str]] = {}
    """What people can want out of turn, in its acts with a form of kind `signal`, with words for it on pages."""
    adjustable: ClassVar[Mapping[str, str]] = {}
    """Fields with numbers that the form of a session's settings shows, with their labels; by default the usual ones."""

    @property
    def kept(self) -> dict[str, Any]:
        """Its fields that readers of a store need, as JSON values; by default none."""
        return {}

    @property
    def declared(self) -> dict[str, Any]:
        """Its description for readers of a store, as JSON values, so they need not import it."""
        found = {
            "texts": self.texts,
            # Nobody is asked for these: they stand in the specification, whoever puts them before the others.
            "given": [act.name for act in self.acts.values() if not act.draws and act.opinion != "none"],
            "tables": list(self.tables),
            "figures": list(self.figures),
            "frames": list(self.frames),
            "record": self.record,
            "beside": dict(self.beside),
            "recorded": self.recorded,
            "stands_in": self.stands_in,
            "methods": list(self.methods),
            "fields": self.kept,
        }
        return {name: each for name, each in found.items() if each}

    @property
    def needs(self) -> Sequence[str]:
        """Variables whose opinions it uses; their instruments become part of a run's identity."""
        return ()

    @property
    def adaptive(self) -> bool:
        """Whether later turns depend on the outcomes of earlier ones."""
        return type(self).decide is not Interaction.decide

    def turns_a_step(self, size: int) -> int:
        """Estimate of the maximum number of turns per step."""
        return 1

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems between valid fields, or with them for a population of `size` agents.

        Yields
        ------
        (tuple of str or int, str)
            The field, as keys inside the interaction, and the problem.
        """
        turns = self.steps_for(size) * self.turns_a_step(size)
        if turns > MAX_STEPS:
            problem = f"makes {turns} turns for population.size = {size}; at most {MAX_STEPS} are possible"
            yield (self.length_field,), problem

    def check(self, setting: Setting) -> None:
        """Raise a SpecError for problems that depend on names, messages or the network; by default, do nothing.

        A specification is checked without its network, a schedule with it.
        """

    def identity(self, setting: Setting) -> dict[str, Any]:
        """Part of a run's identity, as JSON values: fields that differ from their defaults, and contents of files.

        The network is not included here because it enters the identity separately.
        """
        return {**self.stated("steps", "exposures", "network"), "steps": self.steps_for(setting.size)}

    def schedule(self, setting: Setting) -> AnySchedule:
        """The schedule of a run.

        Raises
        ------
        SpecError
            If the schedule cannot be made, for instance on a network without an edge.
        """
        network = getattr(self, "network", None)
        if setting.network is None and network is not None and network.kind != "complete":
            raise SpecError(
                f"experiments build {network.kind!r}; give the network to Setting.of", "interaction.network"
            )
        self.check(setting)
        return _Decided(self, setting) if self.adaptive else _Known(self, setting)

    def externals(self, setting: Setting) -> Mapping[str, Message | str]:
        """Messages from outside that its turns read, by name; by default none."""
        return NO_EXTERNALS

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """All turns in order, the same at every call, if they are known before the run's first call."""
        raise ScheduleError(f"{type(self).__name__} has neither turns(setting) nor decide(setting, outcomes)")

    def decide(self, setting: Setting, outcomes: Outcomes) -> AsyncIterator[Turn | TieChange | Closing]:
        """Turns in order, which may depend on the outcomes of turns already yielded.

        It may also yield changes of ties and, last, the messages that questions show after the last step.
        """
        raise ScheduleError(f"{type(self).__name__} has no decide(setting, outcomes)")

    def outline(self, setting: Setting) -> Iterator[Turn]:
        """The largest set of turns that :meth:`decide` can yield; forecasts count them."""
        raise ScheduleError(f"{type(self).__name__} has no outline(setting), so its turns cannot be forecast")

    def closing(self, setting: Setting) -> Mapping[int, tuple[Ref, ...]]:
        """Messages shown with questions after the last step, by participant; by default none."""
        return {}


class _Made(Schedule):
    """A schedule with the turns of an interaction."""

    def __init__(self, interaction: Interaction, setting: Setting) -> None:
        self.n_agents, self.steps = setting.size, interaction.steps_for(setting.size)
        self.acts, self.others, self.needs = interaction.acts, interaction.others, interaction.needs
        self.externals, self.moderated = interaction.externals(setting), interaction.moderated
        self.given = {agent: GIVEN.format(agent) for agent in setting.given}
        self.called = type(interaction).__name__
        self._interaction, self._setting = interaction, setting


class _Known(_Made):
    def turns(self) -> Iterator[Turn]:
        return self._interaction.turns(self._setting.begun())

    @cached_property
    def _closing(self) -> Mapping[int, tuple[Ref, ...]]:
        return self._interaction.closing(self._setting.begun())

    def closing(self) -> Mapping[int, tuple[Ref, ...]]:
        return self._closing


class Closing(dict[int, tuple[Ref, ...]]):
    """Messages shown with questions after the last step, by participant, once an adaptive schedule knows them."""


class _Decided(_Made):
    _closing: Mapping[int, tuple[Ref, ...]] | None = None

    def closing(self) -> Mapping[int, tuple[Ref, ...]]:
        return self._interaction.closing(self._setting.begun()) if self._closing is None else self._closing

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        # A list of each call, so that one begun anew takes nothing from one that others still read.
        self.changes = changes = list[TieChange]()
        self._closing = None
        async for each in self._interaction.decide(self._setting.begun(), outcomes):
            if isinstance(each, TieChange):
                changes.append(each)
            elif isinstance(each, Closing):
                self._closing = each
            else:
                yield each

    def outline(self) -> Iterator[Turn]:
        return self._interaction.outline(self._setting.begun())


class SteppedInteraction(Interaction):
    """Base of interactions whose length is given in steps, or in steps per agent."""

    steps: int | None = Field(None, ge=0, le=MAX_STEPS)
    """Number of steps T. Give either this or `exposures`."""
    exposures: float | None = Field(None, gt=0, le=MAX_STEPS)
    """Number of steps per agent, T/N, rounded to whole steps. Give either this or `steps`."""

    @model_validator(mode="after")
    def _one_length(self) -> SteppedInteraction:
        if (self.steps is None) == (self.exposures is None):
            raise ValueError("needs exactly one of steps (T, >= 0) and exposures (T/N, > 0)")
        return self

    @property
    def length_field(self) -> str:  # type: ignore[override]
        """The field that says how long it takes."""
        return "steps" if self.exposures is None else "exposures"

    def steps_for(self, size: int) -> int:
        """Steps T of a population of `size` agents."""
        return self.steps if self.steps is not None else round((self.exposures or 0.0) * size)

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, including exposures that give no step."""
        if self.exposures is not None and self.steps_for(size) == 0:
            yield (
                ("exposures",),
                f"{self.exposures:g} gives no step for population.size = {size}; "
                f"must be greater than {0.5 / size:g}, or give steps",
            )
        yield from super().conflicts(size)


class NetworkedInteraction(SteppedInteraction):
    """Base of interactions on a network."""

    smallest = 2

    network: NetworkField = Field(default_factory=lambda: NetworkKind.read("complete"))
    """Who can speak to whom: a name, or a mapping with `kind` and its parameters, or with `edges`."""

    @property
    def contacts(self) -> NetworkKind:
        """Who can speak to whom."""
        return self.network


class AskedOnce(Interaction):
    """Base of interactions with a single act, in which every agent is asked once."""

    played_by = ("chat models",)

    def steps_for(self, size: int) -> int:
        """One step."""
        return 1

    def turns_a_step(self, size: int) -> int:
        """As many as agents."""
        return size

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """One turn of each agent."""
        (act,) = self.acts
        for agent in range(setting.size):
            yield Turn(agent, 1, agent, act)


#: The type of a field that holds an interaction of any kind.
InteractionField = Annotated[SerializeAsAny[Interaction], BeforeValidator(Interaction.read)]
