"""Turns, their acts, and the two kinds of schedule that yield them."""

from __future__ import annotations

import re
from array import array
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from numbers import Integral
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from opinionsim.errors import ScheduleError, whole_number
from opinionsim.foundation.forms import TEXT, Form
from opinionsim.messages import Message, Parse
from opinionsim.prompts import Act, Labelling

#: Kinds of text: commands name several with commas between.
_KIND = re.compile(r"[a-z0-9][\w-]*")
#: Role of the agents whose opinions a run is about.
PARTICIPANT = "participant"


class External(NamedTuple):
    """Reference to a message from outside the run, by its name in the schedule's `externals`."""

    name: str


#: What a turn may read: the message of an earlier turn (its index) or an external message.
Ref = int | External


@dataclass(frozen=True, slots=True)
class Turn:
    """One act by one agent.

    A turn depends only on the turns it reads and, if its act uses memory, on the previous memory-keeping turn of the
    same agent.
    """

    index: int
    """Position in the sequential order."""
    step: int
    """Model time from 1 (0: before the first step): one dyad, one broadcast, one cycle."""
    agent: int
    """The acting agent, from 0: participants first, then the schedule's other roles in order."""
    act: str
    """Names an :class:`ActSpec` of the schedule: ``write``, ``review``, ``report``, ``probe``, ``self-report``, ..."""
    reads: tuple[Ref, ...] = ()
    """Messages shown, in order."""
    place: str = ""
    """Position among similar questions, as in ``statement 3 of 8``, which people at seats see and models do not."""


def moved(reads: tuple[Ref, ...], by: int) -> tuple[Ref, ...]:
    """The same messages after all turns have moved by `by` places."""
    return tuple(ref + by if isinstance(ref, int) else ref for ref in reads)


def placed(reads: tuple[Ref, ...], places: Sequence[int]) -> tuple[Ref, ...]:
    """The same messages after each turn has moved to its place in a list."""
    return tuple(places[ref] if isinstance(ref, int) else ref for ref in reads)


def with_own(reads: Sequence[Ref], own: int) -> tuple[Ref, ...]:
    """The messages to read, including the agent's own, in the order of their turns."""
    if own in reads:
        return tuple(reads)
    outside = [ref for ref in reads if not isinstance(ref, int)]
    return (*outside, *sorted([*(ref for ref in reads if isinstance(ref, int)), own]))


@dataclass(frozen=True, slots=True)
class ActSpec(Act):
    """How an act is carried out, and how its replies are treated; its other attributes are those of `prompts.Act`.

    Attributes
    ----------
    memory : str
        ``keep`` reads the agent's memory and adds to it; ``fork`` reads it and leaves no trace; ``none``
        does neither.
    draws : int
        Replies drawn per turn (calls ``reply``, ``reply.2``, ...). With 0 there is no call: the turn passes on the one
        message that it reads as its own, such as a text written beforehand.
    selector : callable, AskingSelector or None
        Picks one of the drawn texts: returns its position or the text, or asks the model
        (:class:`opinionsim.schedules.AskingSelector`); None takes the first. Replies that are not answers are left out,
        unless none is an answer.
    parse : Parse or None
        Makes a decision from every reply that is an answer, or raises :class:`opinionsim.errors.Rejected`; None accepts
        every reply and makes no decision.
    attempts : int
        Number of rejected replies to one call after which `after` applies, at least 1.
    after : str
        ``stop`` ends the run with an error; ``none`` publishes the last reply with the decision None.
    formal : bool
        Whether replies have a form that no refusal has, such as a verdict on a separate line. A reply that `parse`
        accepts is then an answer, even if its words read like a refusal.
    unread : str
        Treatment of a turn all of whose messages are refused, empty, skipped or silent: ``skip`` publishes a skipped
        message without a call; ``ask`` asks without the messages.
    background : bool
        Whether a step can end while the act's turns are still in progress.
    form : Form or callable
        How a person at a seat answers; a callable makes the form from the messages received.
    person : str
        The template's text for a person at a seat, who does not see the model's; the pack's template ``person-NAME`` of
        the act's template takes precedence.
    opinion : str
        Whether its texts state an opinion. With ``states``, they are coded if a specification names no kinds of text;
        with ``may``, if it names theirs; with ``none``, never.
    written : Parse or None
        Reads a person's text if its form differs from a model's reply; None uses `parse`.
    """

    memory: Literal["keep", "fork", "none"] = "keep"
    draws: int = 1
    selector: Callable[[Sequence[str]], int | str] | Any = None
    parse: Parse | None = None
    attempts: int = 3
    after: Literal["stop", "none"] = "stop"
    formal: bool = False
    unread: Literal["skip", "ask"] = "ask"
    background: bool = False
    form: Form | Callable[[tuple[Message, ...]], Form] = TEXT
    person: str = "It is your turn."
    opinion: Literal["states", "may", "none"] = "states"
    written: Parse | None = None

    @property
    def for_person(self) -> ActSpec:
        """The act for a person at a seat, who is asked once, in words for people, without a model's memory."""
        if not self.draws:
            return self
        own = {"template": f"person-{self.template}", "text": self.person, "parse": self.written or self.parse}
        return replace(self, **own, memory="none", draws=1, selector=None)  # type: ignore[arg-type]

    @property
    def closed(self) -> bool:
        """Whether its question is closed, so that people answer with a form other than text."""
        return not isinstance(self.form, Form) or self.form.kind != "text"

    def form_for(self, received: tuple[Message, ...]) -> Form:
        """The form with which a person answers after receiving these messages."""
        return self.form if isinstance(self.form, Form) else self.form(received)

    @property
    def calls(self) -> int:
        """Calls of a turn if no reply is rejected: one for each draw, and one for a selector that asks."""
        return self.draws + (self.draws > 1 and hasattr(self.selector, "messages"))

    def __post_init__(self) -> None:
        for count, least in (("draws", 0), ("attempts", 1)):
            whole_number(f"act {self.name!r}: {count}", getattr(self, count), least, ScheduleError)
        for function in ("parse", "selector"):
            given = getattr(self, function)
            if function == "selector" and hasattr(given, "messages"):
                continue
            if given is not None and (not callable(given) or iscoroutinefunction(given)):
                raise ScheduleError(f"act {self.name!r}: {function} must be a plain function; got {given!r:.80}")
        choices = {
            "labelling": ("anonymous", "numbered", "named", "you-other"),
            "memory": ("keep", "fork", "none"),
            "after": ("stop", "none"),
            "unread": ("skip", "ask"),
            "opinion": ("states", "may", "none"),
            "audience": ("readers", "room", "nobody", "owner"),
        }
        for name, valid in choices.items():
            if getattr(self, name) not in valid:
                raise ScheduleError(
                    f"act {self.name!r}: {name} must be one of {', '.join(valid)}; got {getattr(self, name)!r}"
                )
        if not isinstance(self.kind, str) or not _KIND.fullmatch(self.kind):
            raise ScheduleError(
                f"act {self.name!r}: kind must be one word of lower-case letters, digits, hyphens and underscores; "
                f"got {self.kind!r}"
            )
        if self.draws and not self.template:
            raise ScheduleError(f"act {self.name!r}: set template, because its turns make calls")
        if not self.draws and self.memory != "none":
            raise ScheduleError(f"act {self.name!r}: memory must be none with 0 draws; got {self.memory!r}")


def named(*acts: ActSpec) -> Mapping[str, ActSpec]:
    """Acts by name, as a schedule declares them."""
    return MappingProxyType({act.name: act for act in acts})


#: The externals of a schedule without messages from outside.
NO_EXTERNALS: Mapping[str, Message | str] = MappingProxyType({})


class Outcomes(Protocol):
    """Outcomes that an adaptive schedule may await, which never include times or orders of completion."""

    async def reply(self, turn: int) -> Message:
        """The message of a turn already yielded, with its status."""

    async def decision(self, turn: int) -> Any:
        """The decision that the act's `parse` read from a turn already yielded; None if there is none."""

    async def opinion(self, turn: int, instrument: str = "stance", about: int | None = None) -> float:
        """Measured opinion of a turn already yielded; NaN if none was measured.

        Parameters
        ----------
        turn : int
            Index of the turn.
        instrument : str
            Variable of the instrument, one of the schedule's `needs`.
        about : int, optional
            Index of a second turn already yielded, for an instrument that judges pairs of texts; default none.
        """


class TieChange(NamedTuple):
    """A listener stops following one agent, starts following another, or both."""

    step: int
    """Step of the change, from 1; the new tie counts from the next step."""
    listener: int
    """The agent that changes its tie."""
    dropped: int | None
    """The agent that it stops following; None if a tie is added."""
    followed: int | None
    """The agent that it starts following; None if a tie is removed."""


class Schedule:
    """Base of schedules: the attributes that every schedule declares, with the usual values.

    To write your own schedule, inherit from this class, set `n_agents`, `steps` and `acts`, and add ``turns()`` or
    ``decide(outcomes)``. Engine, forecast, replay and measurement read these attributes.

    Attributes
    ----------
    n_agents : int
        Participants N >= 1, numbered from 0.
    others : sequence of str
        Roles of further members of the cast, such as ``("moderator",)``, which are numbered from N.
    steps : int
        Steps T >= 0.
    acts : mapping of str to ActSpec
        The acts of its turns, by name.
    externals : mapping of str to Message or str
        Messages from outside that its turns may read.
    needs : sequence of str
        Variables whose measured opinions it uses; their instruments become part of a run's identity.
    changes : sequence of TieChange
        Changes of its network so far, in order of steps.
    moderated : str
        How prompts introduce its messages to a moderator: a labelling of :class:`ActSpec`.
    given : mapping of int to str
        Names of externals by participant: texts written beforehand that replace the participant's calls.
    """

    n_agents: int
    steps: int
    acts: Mapping[str, ActSpec]
    others: Sequence[str] = ()
    externals: Mapping[str, Message | str] = NO_EXTERNALS
    needs: Sequence[str] = ()
    changes: Sequence[TieChange] = ()
    moderated: Labelling = "numbered"
    given: Mapping[int, str] = MappingProxyType({})

    def closing(self) -> Mapping[int, tuple[Ref, ...]]:
        """Messages shown with questions after the last step, by participant; by default none.

        Agents without memory see what they could not know otherwise: the messages that a further turn would show, and
        their own last message. For an adaptive schedule, the engine calls this method after its turns; before that, the
        result is the maximum.
        """
        return {}


def closing(schedule: AnySchedule) -> Mapping[int, tuple[Ref, ...]]:
    """Messages that a schedule shows with questions after the last step; none if it does not define them."""
    found: Callable[[], Mapping[int, tuple[Ref, ...]]] | None = getattr(schedule, "closing", None)
    return {} if found is None else found()


def tie_changes(schedule: AnySchedule) -> Sequence[TieChange]:
    """Changes of a schedule's network so far, in order of steps; none for a schedule with fixed ties.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        A schedule in progress or finished, with or without probes around it.
    """
    changes: Sequence[TieChange] = getattr(schedule, "changes", ())
    return changes


def called(schedule: object) -> str:
    """Name of a schedule in errors: the class of its interaction, or its own class."""
    return str(getattr(schedule, "called", type(schedule).__name__))


class _Declared(Protocol):
    """Attributes that schedules of both kinds declare, as in :class:`Schedule`."""

    n_agents: int
    steps: int
    acts: Mapping[str, ActSpec]
    others: Sequence[str]
    externals: Mapping[str, Message | str]
    needs: Sequence[str]


@runtime_checkable
class StaticSchedule(_Declared, Protocol):
    """A schedule whose turns do not depend on messages and are known before the first call."""

    def turns(self) -> Iterator[Turn]:
        """All turns in index order, the same at every call."""


@runtime_checkable
class AdaptiveSchedule(_Declared, Protocol):
    """A schedule that decides later turns from the outcome of earlier ones."""

    def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Yield turns in index order, awaiting outcomes of turns already yielded if needed."""


AnySchedule = StaticSchedule | AdaptiveSchedule


def n_members(schedule: AnySchedule) -> int:
    """Number of members of a schedule's cast: participants and others."""
    return schedule.n_agents + len(schedule.others)


def check_acts(where: str, acts: object) -> None:
    """Refuse acts that are not a mapping by name, or that contradict each other about a kind of text.

    Parameters
    ----------
    where : str
        The class or schedule that declares them.
    acts : object
        The declared value of `acts`.

    Raises
    ------
    ScheduleError
        If an act is not valid; the message names it and says what is expected.
    """
    if not isinstance(acts, Mapping):
        raise ScheduleError(f"{where}.acts must be a mapping by name, as named(ACT, ...) makes it; got {acts!r:.80}")
    kinds: dict[str, ActSpec] = {}
    for name, act in acts.items():
        if not isinstance(act, ActSpec) or act.name != name:
            raise ScheduleError(f"{where}.acts: {name!r} must be the ActSpec of that name; got {act!r:.80}")
        other = kinds.setdefault(act.kind, act)
        for said in ("opinion", "audience"):
            if getattr(act, said) != getattr(other, said):
                raise ScheduleError(
                    f"{where}.acts: {other.name!r} and {name!r} make texts of kind {act.kind!r}, and declare {said} "
                    f"{getattr(other, said)!r} and {getattr(act, said)!r}; declare the same, or give each its own kind"
                )


def check_names(where: str, names: object) -> None:
    """Raise a ScheduleError if the declared value is not a sequence of texts; a single text does not count."""
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    if not (listed and all(isinstance(each, str) for each in names)):  # type: ignore[attr-defined]
        hint = f", such as ({names!r},)" if isinstance(names, str) else ""
        raise ScheduleError(f"{where} must be a sequence of names{hint}; got {names!r:.80}")


def check_schedule(schedule: object) -> AnySchedule:
    """Return a schedule after checking its declarations.

    Parameters
    ----------
    schedule : object
        The object to check.

    Raises
    ------
    ScheduleError
        If a declaration is missing or not valid; the message names it.
    """
    kind = called(schedule)
    declared = ("n_agents", "steps", "acts", "others", "externals", "needs")
    missing = [name for name in declared if not hasattr(schedule, name)]
    if missing:
        raise ScheduleError(
            f"{kind} declares no {', '.join(missing)}; inherit from opinionsim.schedules.Schedule for default values"
        )
    if not isinstance(schedule, StaticSchedule | AdaptiveSchedule):
        raise ScheduleError(f"{kind} yields no turns; define turns() or decide(outcomes)")
    for name, least in (("n_agents", 1), ("steps", 0)):
        whole_number(f"{kind}.{name}", getattr(schedule, name), least, ScheduleError)
    check_acts(kind, schedule.acts)
    if not isinstance(schedule.externals, Mapping):
        raise ScheduleError(f"{kind}.externals must be a mapping by name; got {schedule.externals!r:.80}")
    for name in ("others", "needs"):
        check_names(f"{kind}.{name}", getattr(schedule, name))
    given = getattr(schedule, "given", Schedule.given)
    if not isinstance(given, Mapping) or not set(given.values()) <= set(schedule.externals):
        raise ScheduleError(f"{kind}.given must map participants to names of externals; got {given!r:.80}")
    if PARTICIPANT in schedule.others:
        raise ScheduleError(f"{kind}.others: participants are counted by n_agents; name another role")
    return schedule


class TurnCheck:
    """Checks the turns of a schedule in their order.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        The schedule that yields them.
    """

    def __init__(self, schedule: AnySchedule) -> None:
        self._schedule = schedule
        self._members, self._step = n_members(schedule), 0
        #: Author of each turn that nobody else hears; -1 for the others.
        self._unheard = array("q")

    def __call__(self, turn: Turn) -> ActSpec:
        """Return the act of the next turn after checking the turn.

        Raises
        ------
        ScheduleError
            If the turn is out of order, its act, agent or step does not exist, or it reads what it cannot read.
        """
        schedule, index = self._schedule, len(self._unheard)
        if not isinstance(turn, Turn):
            raise ScheduleError(f"{called(schedule)} must yield objects of the class Turn; got {turn!r:.80}")
        if turn.index != index or (index and turn.step < self._step):
            raise ScheduleError(f"turn {turn.index} of step {turn.step} is out of order; expected index {index}")
        if not isinstance(turn.step, Integral) or not 0 <= turn.step <= schedule.steps:
            raise ScheduleError(f"turn {index} is of step {turn.step}; valid: 0..{schedule.steps}")
        act = schedule.acts.get(turn.act)
        if act is None or not isinstance(turn.agent, Integral) or not 0 <= turn.agent < self._members:
            raise ScheduleError(
                f"turn {index} names act {turn.act!r} and agent {turn.agent}; "
                f"valid: {', '.join(schedule.acts) or 'no act, since acts declares none,'} and agents "
                f"0..{self._members - 1}"
            )
        for ref in turn.reads:
            if isinstance(ref, int):
                if not 0 <= ref < index:
                    raise ScheduleError(f"turn {index} reads turn {ref}, which is not an earlier turn")
                if self._unheard[ref] not in (-1, turn.agent):
                    raise ScheduleError(
                        f"turn {index} shows agent {turn.agent} what agent {self._unheard[ref]} said in turn {ref}, "
                        "whose act declares audience 'nobody'; declare 'readers', or leave it out of reads"
                    )
            elif getattr(ref, "name", None) not in schedule.externals:
                raise ScheduleError(
                    f"turn {index} reads external message {getattr(ref, 'name', ref)!r}, which the schedule lacks"
                )
        self._step = turn.step
        self._unheard.append(-1 if act.heard else turn.agent)
        return act


def outline(schedule: AnySchedule) -> Iterator[Turn]:
    """Return the turns of a schedule that are known before the first call; forecasts count them.

    Parameters
    ----------
    schedule : StaticSchedule or AdaptiveSchedule
        An adaptive schedule needs a method `outline` that yields the largest possible set of turns; their agents may
        differ from those of a run.

    Returns
    -------
    iterator of Turn
        All turns of a static schedule, the outline of an adaptive one.

    Raises
    ------
    ScheduleError
        If an adaptive schedule has no such method.
    """
    if isinstance(schedule, StaticSchedule):
        return schedule.turns()
    told: Callable[[], Iterator[Turn]] | None = getattr(schedule, "outline", None)
    if told is None:
        raise ScheduleError(f"{called(schedule)} has no outline, so its turns cannot be forecast")
    return told()


def first_keeper(schedule: AnySchedule) -> int | None:
    """The agent of the memory-keeping turn with the lowest index; None if no turn keeps memory.

    Raises
    ------
    ScheduleError
        If it depends on the outcomes of earlier turns.
    """
    turns = schedule.turns() if isinstance(schedule, StaticSchedule) else _without_waiting(schedule)
    return next((turn.agent for turn in turns if schedule.acts[turn.act].memory == "keep"), None)


def unremembered(schedule: AnySchedule) -> frozenset[int]:
    """Memory-keeping turns whose memory no later turn of the agent reads; none for adaptive schedules."""
    last: dict[int, tuple[int, str]] = {}
    for turn in schedule.turns() if isinstance(schedule, StaticSchedule) else ():
        if (memory := schedule.acts[turn.act].memory) != "none":
            last[turn.agent] = turn.index, memory
    return frozenset(index for index, memory in last.values() if memory == "keep")


def _without_waiting(schedule: AdaptiveSchedule) -> Iterator[Turn]:
    """The turns an adaptive schedule yields before it waits for any outcome."""
    decided = schedule.decide(_Silent())
    while True:
        try:
            anext(decided).__await__().send(None)
        except StopIteration as found:
            yield found.value
        except StopAsyncIteration:
            return
        except _NotYet:
            break
        else:  # it waits for something else
            break
    raise ScheduleError(
        f"{called(schedule)}: the order of memory-keeping turns depends on earlier messages, but memory "
        "'reflective-as-run' needs it in advance"
    )


class _NotYet(Exception):
    """An outcome is awaited before the run has begun."""


class _Silent:
    """Outcomes of a run that has not begun."""

    async def _refuse(self, turn: int, instrument: str = "stance", about: int | None = None) -> Any:
        raise _NotYet

    reply = decision = opinion = _refuse
