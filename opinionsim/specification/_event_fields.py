"""The field `events` of a specification: its forms, its checks, and the events of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import DocumentModel, KeyPath, spell_path
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.networks import Network
from opinionsim.personas import Persona
from opinionsim.schedules import MAX_STEPS, Event, Interaction, TieChange, takes_reads, takes_reviews
from opinionsim.specification._analysis_fields import distinct

#: Texts written out, or those of a file.
Messages = Callable[[str | tuple[str, ...]], tuple[str, ...]]


class EventError(SpecError):
    """A problem with an event, and its field."""

    def __init__(self, keys: KeyPath, problem: str) -> None:
        super().__init__(problem, place=spell_path(keys))
        self.keys = keys


def _not_blank(text: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
    for each in (text,) if isinstance(text, str) else text or ():
        if not each.strip():
            raise ValueError("must not be blank")
    if text == ():
        raise ValueError("must have at least 1 entry")
    return text


def _two_agents(pair: tuple[int, int]) -> tuple[int, int]:
    if pair[0] == pair[1]:
        raise ValueError(f"connects agent {pair[0]} to itself")
    return pair


class GroupSpec(DocumentModel):
    """Agents by attribute, or drawn."""

    where: dict[str, str | int | float] = Field(default_factory=dict)
    """Attributes of the personas, with the values they must have."""
    share: float | None = Field(None, gt=0, le=1)
    """Share of these agents to draw, rounded to whole agents. Null uses all."""

    @model_validator(mode="after")
    def _some(self) -> GroupSpec:
        if not self.where and self.share is None:
            raise ValueError("needs where, share or both")
        return self


class _StepSpec(DocumentModel):
    """Base of all events."""

    kind: Any
    step: int = Field(ge=1, le=MAX_STEPS)
    """First step, from 1."""

    @property
    def last(self) -> int | None:
        """Last step; None for the end."""
        return getattr(self, "until", None)

    @property
    def group(self) -> Literal["all"] | tuple[int | str, ...] | GroupSpec | None:
        """The agents that it concerns; None if it concerns none."""
        return getattr(self, "agents", None)

    @property
    def drawn(self) -> bool:
        """Whether its agents are drawn."""
        return isinstance(self.group, GroupSpec) and self.group.share is not None

    def texts(self, messages: Messages) -> tuple[str, ...]:
        """The texts; none unless a subclass defines them."""
        return ()

    def lack(self, interaction: Interaction) -> str:
        """What the agents of an interaction never do, which makes it ineffective; empty if it has an effect."""
        return ""

    def conflicts(self, interaction: Interaction, size: int) -> Iterator[tuple[KeyPath, str]]:
        """Problems with other fields, each with its place in the event."""
        steps = interaction.steps_for(size)
        if self.step > steps:
            valid = f"1..{steps}" if steps else "none, because the run has no steps"
            yield ("step",), f"{self.step} is after the last step; valid: {valid}"
        elif self.last is not None and not self.step <= self.last <= steps:
            yield ("until",), f"must be a step from {self.step} to {steps}; got {self.last}"
        if what := self.lack(interaction):
            yield ("kind",), f"{self.kind!r} has no effect in {interaction.kind!r}, whose agents {what}"

    def clash(self, other: Any) -> str:
        """Why an agent cannot be in this event and in another one; empty where it can."""
        return ""

    def changes(self) -> Iterator[tuple[KeyPath, bool, tuple[int, int]]]:
        """Ties that it changes: the place in the event, whether the tie is added, and its agents."""
        return iter(())


Pair = Annotated[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], AfterValidator(_two_agents)]


class TiesEventSpec(_StepSpec):
    """Ties of the network to add or remove. They affect the pairs drawn from this step on."""

    kind: Literal["ties"]
    add: Annotated[tuple[Pair, ...], AfterValidator(distinct)] = ()
    """Pairs of agents to connect, by number. In a directed network, a pair is (speaker, listener)."""
    remove: Annotated[tuple[Pair, ...], AfterValidator(distinct)] = ()
    """Pairs of agents to disconnect."""

    @model_validator(mode="after")
    def _some(self) -> TiesEventSpec:
        if not self.add and not self.remove:
            raise ValueError("needs add, remove or both")
        return self

    def conflicts(self, interaction: Interaction, size: int) -> Iterator[tuple[KeyPath, str]]:
        """Problems with other fields, each with its place in the event."""
        yield from super().conflicts(interaction, size)
        network = interaction.contacts
        if interaction.reads_earlier:
            yield (
                ("kind",),
                f"'ties' needs dyadic or broadcast; the turns of {interaction.kind!r} read those of earlier steps",
            )
        elif network is None:
            yield ("kind",), f"'ties' has no effect in {interaction.kind!r}, which has no network"
        elif network.kind == "complete":
            yield (
                ("kind",),
                "'ties' needs a network that lists its ties; 'complete' connects everybody, so set interaction.network",
            )
        for field in ("add", "remove"):
            for position, pair in enumerate(getattr(self, field)):
                if max(pair) >= size:
                    yield (field, position), f"agent {max(pair)} does not exist; valid: 0..{size - 1}"

    def changes(self) -> Iterator[tuple[KeyPath, bool, tuple[int, int]]]:
        """Ties that it changes; removed ties come first."""
        for field, added in (("remove", False), ("add", True)):
            for position, pair in enumerate(getattr(self, field)):
                yield (field, position), added, pair


class _EventSpec(_StepSpec):
    """Base of events that are about agents."""

    agents: Literal["all"] | tuple[Annotated[int, Field(ge=0)] | str, ...] | GroupSpec = "all"
    """`all`; a list of names and numbers, from 0; or a mapping with `where`, `share` or both."""


class _SaidSpec(_EventSpec):
    """Base of events in which something is said."""

    text: Annotated[str | tuple[str, ...] | None, AfterValidator(_not_blank)] = None
    """The text, or a list of texts. Give either this or `file`."""
    file: str | None = Field(None, min_length=1)
    """Path of a file with the texts: YAML or JSON with a list under `messages`, or otherwise one text per line."""

    @model_validator(mode="after")
    def _one_source(self) -> _SaidSpec:
        if (self.text is None) == (self.file is None):
            raise ValueError("needs exactly one of text and file")
        return self

    def texts(self, messages: Messages) -> tuple[str, ...]:
        """The texts, in order."""
        if self.file is not None:
            return messages(self.file)
        return (self.text,) if isinstance(self.text, str) else self.text or ()


class _LastingSpec(_SaidSpec):
    """Base of events that last."""

    until: int | None = Field(None, ge=1, le=MAX_STEPS)
    """Last step. Null means the end of the run."""


class MessageEventSpec(_SaidSpec):
    """A message from outside that each agent reviews at the start of the step. Several texts are shown at once.

    If agents respond without reviewing, it is shown with the next turn that reads.
    """

    kind: Literal["message"]

    def lack(self, interaction: Interaction) -> str:
        """What agents never do, so that it has no effect."""
        return "" if takes_reviews(interaction.acts) or takes_reads(interaction.acts) else "read nothing"


class ZealotEventSpec(_LastingSpec):
    """Agents that post a fixed text without any model call. If there are several texts, each post uses the next one."""

    kind: Literal["zealot"]

    def lack(self, interaction: Interaction) -> str:
        """What agents never do, so that it has no effect."""
        return "" if any(act.heard for act in interaction.acts.values()) else "post nothing"

    def clash(self, other: Any) -> str:
        """Why an agent cannot be in both events."""
        first, second = sorted((self, other), key=lambda each: each.step)
        apart = other.kind != self.kind or (first.last is not None and first.last < second.step)
        return "" if apart else "is a zealot in another event at the same steps"


class MediaEventSpec(_LastingSpec):
    """A source that agents read in addition to other messages; each reading uses the next of its texts."""

    kind: Literal["media"]
    probability: float = Field(ge=0, le=1)
    """Probability that an agent sees it in a turn in which it reads."""

    def lack(self, interaction: Interaction) -> str:
        """What agents never do, so that it has no effect."""
        return "" if takes_reads(interaction.acts) and interaction.shows else "read nothing"


class LeaveEventSpec(_EventSpec):
    """Agents that leave. They are absent from this step on."""

    kind: Literal["leave"]

    def clash(self, other: Any) -> str:
        """Why an agent cannot be in both events."""
        if other.kind == self.kind:
            return "cannot leave twice"
        late = other.kind == "join" and other.step >= self.step
        return f"must join before it leaves at step {self.step}; got {other.step}" if late else ""


class JoinEventSpec(_EventSpec):
    """Agents that join. They are absent before this step."""

    kind: Literal["join"]

    def clash(self, other: Any) -> str:
        """Why an agent cannot be in both events."""
        return "cannot join twice" if other.kind == self.kind else other.clash(self) if other.kind == "leave" else ""


EventSpec = Annotated[
    MessageEventSpec | ZealotEventSpec | MediaEventSpec | LeaveEventSpec | JoinEventSpec | TiesEventSpec,
    Field(discriminator="kind"),
]


def event_labels(events: Sequence[_StepSpec]) -> tuple[str, ...]:
    """Each event in a few words, as in ``zealot (3) at 50``."""
    return tuple(f"{event.kind}{_who(event)} at {event.step}" for event in events)


def _who(event: _StepSpec) -> str:
    if event.group is None or event.group == "all":
        return ""
    if isinstance(event.group, GroupSpec):
        told = [f"{key}={value}" for key, value in event.group.where.items()]
        told += [f"{event.group.share:.3g} of them" if told else f"share {event.group.share:.3g}"] * event.drawn
    else:
        told = [str(agent) for agent in event.group]
    # A semicolon parts the events of a run.
    return f" ({', '.join(told)})".replace(";", ",")


def event_identity(events: Sequence[_StepSpec], messages: Messages) -> list[dict[str, Any]]:
    """The part of events that enters the identity of a run: texts by content, not by file."""
    found = []
    for event in events:
        stated = event.model_dump(mode="json", exclude_defaults=True, exclude={"text", "file"})
        texts = event.texts(messages)
        found.append({**stated, **({"texts": digest(canonical_json(texts))} if texts else {})})
    return found


def event_conflicts(
    events: Sequence[_StepSpec], interaction: Interaction, size: int, unprompted: str = ""
) -> Iterator[tuple[KeyPath, str]]:
    """Problems of events with other fields, each with its place in the specification.

    Parameters
    ----------
    events : sequence of event
        The field `events`.
    interaction : Interaction
        The interaction.
    size : int
        Number of agents.
    unprompted : str
        What plays the agents, in words, if prompts do not ask them.
    """
    if not events:
        return
    if unprompted:
        yield ("events",), f"need agents that a chat model plays; got {unprompted}"
    elif interaction.adaptive:
        yield (
            ("events",),
            f"need turns that are known in advance, but {interaction.kind!r} decides them as it runs; use a kind "
            "such as dyadic, broadcast, remembered or external",
        )
    else:
        for place, event in enumerate(events):
            for keys, problem in event.conflicts(interaction, size):
                yield ("events", place, *keys), problem


# -- whom they are about -------------------------------------------------------------------------------------


def check_events(events: Sequence[_StepSpec], personas: Sequence[Persona], size: int, messages: Messages) -> None:
    """Refuse events without agents, or with texts that cannot be read.

    Parameters
    ----------
    events : sequence of event
        The field `events`.
    personas : sequence of Persona
        Those of the agents, in order; or those that agents are drawn from, if there are more or fewer than agents.
    size : int
        Number of agents.
    messages : callable
        Returns texts written out, or those in a file.

    Raises
    ------
    EventError
        Naming the field.
    """
    for place, event in enumerate(events):
        try:
            event.texts(messages)
        except SpecError as error:
            raise EventError(("events", place, "file"), str(error)) from None
        keys: KeyPath = ("events", place, "agents")
        _named(keys, event, personas, size)
        if len(personas) != size and isinstance(event.group, tuple) and _by_persona(event):
            problem = (
                f"names need population.size to be the number of personas in the set, {len(personas)}, so that "
                "every run has the same agents; use numbers"
            )
            raise EventError(keys, problem)
    # Names and attributes of drawn agents are known only once a run is drawn.
    known = {place: event for place, event in enumerate(events) if len(personas) == size or not _by_persona(event)}
    _chosen(known, personas, size, [np.arange(size)] * len(events))


def events_of(
    events: Sequence[_StepSpec], personas: Sequence[Persona], messages: Messages, rng: np.random.Generator
) -> tuple[Event, ...]:
    """The events of a run.

    Parameters
    ----------
    events : sequence of event
        The field `events`.
    personas : sequence of Persona
        Those of the agents, in order.
    messages : callable
        Returns texts written out, or those in a file.
    rng : numpy.random.Generator
        Draws agents and media; the draws of an event depend only on its place in the list, and a larger share
        includes a smaller one.

    Raises
    ------
    SpecError
        If the agents of an event are not among the personas.
    """
    if not events:
        return ()
    own = rng.spawn(len(events))
    size = len(personas)
    orders = [each.permutation(size) for each in own]
    chosen = _chosen(dict(enumerate(events)), personas, size, orders)
    return tuple(
        Event(
            event.kind,
            event.step,
            chosen[place],
            event.texts(messages),
            event.last,
            getattr(event, "probability", 1.0),
            int(each.integers(2**63)),
        )
        for place, (event, each) in enumerate(zip(events, own, strict=True))
    )


def _chosen(
    events: Mapping[int, _StepSpec], personas: Sequence[Persona], size: int, orders: Sequence[np.ndarray]
) -> dict[int, tuple[int, ...]]:
    """The agents of events, by place; those that are drawn are taken in the order given for the place, after others."""
    found: dict[int, tuple[int, ...]] = {}
    for place in sorted(events, key=lambda place: events[place].drawn):
        event, keys = events[place], ("events", place, "agents")
        among = _named(keys, event, personas, size)
        taken = {
            agent: (other, problem)
            for other, agents in found.items()
            if (problem := event.clash(events[other]))
            for agent in agents
        }
        if not event.drawn:
            if clashing := [agent for agent in among if agent in taken]:
                other, problem = taken[clashing[0]]
                raise EventError(keys, f"agent {clashing[0]} {problem} (events[{other}])")
            found[place] = tuple(among)
            continue
        wanted, free = _number(event, among), frozenset(among) - taken.keys()
        if len(free) < wanted:
            raise EventError(keys, f"share takes {wanted} agents, but other events leave only {len(free)}")
        found[place] = tuple(sorted([agent for agent in orders[place].tolist() if agent in free][:wanted]))
    return found


def _by_persona(event: _StepSpec) -> bool:
    """Whether agents are chosen by name or attribute."""
    if isinstance(event.group, GroupSpec):
        return bool(event.group.where)
    return isinstance(event.group, tuple) and any(isinstance(agent, str) for agent in event.group)


def _named(keys: KeyPath, event: _StepSpec, personas: Sequence[Persona], size: int) -> list[int]:
    """Agents that are named, have the attributes, or are drawn from; ascending."""
    agents = event.group
    if agents is None or agents == "all":
        return [] if agents is None else list(range(size))
    if isinstance(agents, GroupSpec):
        found = list(range(len(personas))) if agents.where else list(range(size))
        for attribute, value in agents.where.items():
            values = [str(persona.attributes.get(attribute, "")) for persona in personas]
            had = dict.fromkeys(filter(None, values))
            if str(value) not in had:
                known = dict.fromkeys(name for persona in personas for name in persona.attributes)
                told = f"; it is {_listed(had)}" if had else f"; attributes are {_listed(known)}"
                raise EventError((*keys, "where"), f"no persona has {attribute} = {str(value)!r}{told}")
            found = [agent for agent in found if values[agent] == str(value)]
        if not found:
            raise EventError((*keys, "where"), "no persona has all of these values")
        if event.drawn and not _number(event, found):
            raise EventError((*keys, "share"), f"{agents.share:g} of {len(found)} agents rounds to 0")
        return found
    chosen: list[int] = []
    for position, agent in enumerate(agents):
        own = [agent] if isinstance(agent, int) else [i for i, each in enumerate(personas) if each.name == agent]
        if isinstance(agent, int) and agent >= size:
            raise EventError((*keys, position), f"agent {agent} does not exist; valid: 0..{size - 1}")
        if not own:
            names = dict.fromkeys(persona.name for persona in personas if persona.name)
            raise EventError((*keys, position), f"no agent has the name {agent!r}; valid names: {_listed(names)}")
        if set(own) & set(chosen):
            raise EventError((*keys, position), f"lists the same agent twice: {agent!r}")
        chosen += own
    if not chosen:
        raise EventError(keys, "must list at least one agent")
    return sorted(chosen)


def _number(event: _StepSpec, among: Sequence[int]) -> int:
    """How many agents a share takes, halves rounded up."""
    share = event.group.share if isinstance(event.group, GroupSpec) else None
    return len(among) if share is None else int(share * len(among) + 0.5)


def _listed(names: Mapping[str, Any]) -> str:
    most = 12
    shown = ", ".join(map(repr, list(names)[:most])) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


# -- networks that change ------------------------------------------------------------------------------------


def changed_networks(
    events: Sequence[_StepSpec], network: Network | None
) -> Iterator[tuple[int, Network, tuple[TieChange, ...]]]:
    """Yield the networks that result from changes of ties.

    Parameters
    ----------
    events : sequence of event
        The field `events`.
    network : Network or None
        The network at the start, which is not complete; None if there is none, so no tie can change.

    Yields
    ------
    (int, Network, tuple of TieChange)
        First step, the network from this step on, and the changes made before it; in order of steps.

    Raises
    ------
    SpecError
        If a removed tie does not exist, an added tie already exists, or no tie is left.
    """
    changing = [(place, event) for place, event in enumerate(events) if any(event.changes())]
    if network is None or not changing:
        return
    pairs, weights = network.edges
    heavy = [1.0] * len(pairs) if weights is None else weights.tolist()
    ties = {(speaker, listener): weight for (speaker, listener), weight in zip(pairs.tolist(), heavy, strict=True)}
    for place, event in sorted(changing, key=lambda each: each[1].step):
        changes: list[TieChange] = []
        for keys, added, pair in event.changes():
            speaker, listener = tie = pair if network.directed else (min(pair), max(pair))
            if (tie in ties) == added:
                told = "are already connected" if added else "are not connected"
                raise EventError(("events", place, *keys), f"agents {pair[0]} and {pair[1]} {told}")
            if added:
                ties[tie] = 1.0
                changes.append(TieChange(event.step - 1, listener, None, speaker))
            else:
                del ties[tie]
                changes.append(TieChange(event.step - 1, listener, speaker, None))
        if not ties:
            raise EventError(("events", place, "remove"), "removes the last tie")
        found = Network.from_edges(list(ties), network.n, list(ties.values()), directed=network.directed)
        yield event.step, found, tuple(changes)
