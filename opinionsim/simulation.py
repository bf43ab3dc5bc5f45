"""One run: agents, schedule, engine and measurement put together."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from opinionsim.actors import PersonaActor
from opinionsim.classifiers import AskingClassifier, Classifier, asks, parse_closed
from opinionsim.engine import Actor, Engine
from opinionsim.errors import MeasurementError, OpinionSimError, SpecError, StoreError
from opinionsim.llm import CallKey, CallRecord, RunCalls
from opinionsim.memory import MEMORIES, new_memory
from opinionsim.messages import ChatMessage, Message, Reply, text_id
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.personas import Population
from opinionsim.prompts import PromptPack
from opinionsim.schedules import ACTS, ActSpec, AdaptiveSchedule, StaticSchedule, Turn
from opinionsim.topics import Claim

if TYPE_CHECKING:
    from opinionsim.llm._caller import CallSite

__all__ = ["SELF_REPORT", "Cognition", "Estimate", "Happening", "Simulation", "measure", "rate", "self_reported"]

#: The kind of text that is a closed answer: it says what it says, and no classifier is asked.
SELF_REPORT = "self-report"


_Site = TypeVar("_Site", bound="CallSite")
_Found = TypeVar("_Found")

#: Turns a run has under way for each call slot: enough that no slot waits for a prompt, few enough for memory.
_TURNS_PER_SLOT = 4


class _Unchecked(NamedTuple):
    """What is demanded of the replies to a classifier, which reads them itself."""

    validator: None = None
    attempts: int = 1


_UNCHECKED = _Unchecked()


@dataclass(frozen=True)
class Cognition:
    """How agents are told to think, and what they are shown of themselves.

    Attributes
    ----------
    memory : str
        ``cumulative`` (A7), ``reflective`` (A8) or ``reflective-as-run`` (A11).
    token_budget : int or None
        Estimated tokens of memory a prompt may carry; the oldest events are left out beyond it.
    confirmation_bias : str
        ``none``, ``weak`` or ``strong`` (A6).
    world : str
        ``closed`` or ``open`` (A6).
    persona_shown : str
        ``full``, ``demographics``, ``name`` or ``none``.
    masked : bool
        Whether the claim is called "Theory XYZ" after it is first stated (A5).
    """

    memory: str = "cumulative"
    token_budget: int | None = None
    confirmation_bias: Literal["none", "weak", "strong"] = "none"
    world: Literal["closed", "open"] = "closed"
    persona_shown: Literal["full", "demographics", "name", "none"] = "full"
    masked: bool = True

    @property
    def calls_per_event(self) -> int:
        """Calls an agent makes to remember one turn."""
        return MEMORIES[self.memory].calls_per_event


class Estimate(NamedTuple):
    """What an instrument says about one text."""

    value: float
    """The most probable scale point; NaN where the text gives no answer."""
    probabilities: tuple[float, ...]
    """Distribution over the scale points, NaN where there is no answer."""
    off_scale: float
    """Probability that the text is no answer, in [0, 1]; NaN where no instrument saw it."""


class Happening(NamedTuple):
    """A turn that has happened."""

    turn: Turn
    message: Message
    kind: str
    """Kind of text: ``post``, ``report``, ``response``, ``probe`` or ``self-report``."""
    estimate: Estimate | None
    """Its measurement; None where the run measures no text of that kind."""


def measure(classifier: Classifier, claim: Claim, messages: Sequence[Message]) -> list[Estimate]:
    """Code the opinions that messages express of one claim, in order; those that are no answers are missing."""
    texts = [message.text for message in messages if message.condition == "answered"]
    coded = iter(_coded(classifier, claim, texts) if texts else ())
    return [next(coded) if message.condition == "answered" else _missing(classifier.scale) for message in messages]


def self_reported(scale: OpinionScale, message: Message) -> Estimate:
    """The position an agent gave itself in a closed answer; missing where it names no point of the scale."""
    if message.condition != "answered":
        return _missing(scale)
    point = parse_closed(message.text, scale)
    if point is None:
        return Estimate(math.nan, (math.nan,) * len(scale), 1.0)
    return Estimate(float(point), tuple(float(each == point) for each in scale.points), 0.0)


async def rate(
    classifier: AskingClassifier,
    claim: Claim,
    published: Sequence[tuple[CallSite, Message]],
    calls: RunCalls,
    measurement_id: str = "",
    *,
    priority: float = 0.0,
) -> list[Estimate]:
    """Have messages of a run coded by a classifier that asks: its questions are calls of the run.

    Parameters
    ----------
    classifier : AskingClassifier
        The instrument.
    claim : Claim
        What the opinions are about.
    published : sequence of (CallSite, Message)
        Turns and what they said.
    calls : RunCalls
        Of the run. Its journal answers what was asked before, under parts named ``judge`` and the beginning of
        the measurement's id, so that several measurements of a run stand side by side.
    measurement_id : str
        Identity of the measurement.
    priority : float
        Larger is served first; the default comes after every turn.

    Raises
    ------
    ModelCallError, BudgetExceeded, JournalMismatch
        As the first question that failed; what the others brought is on record by then.
    asyncio.CancelledError
        If the calls were stopped.
    """
    prefix = _prefix(measurement_id)

    async def one(site: CallSite, message: Message) -> Estimate:
        return await _rated(classifier, claim, site, message, calls, prefix, priority)

    return await _each(published, one, _TURNS_PER_SLOT * calls.limit)


def _prefix(measurement_id: str) -> str:
    """Of the parts under which a measurement asks."""
    return f"judge.{measurement_id[:8]}" if measurement_id else "judge"


async def _each(
    published: Sequence[tuple[_Site, Message]], one: Callable[[_Site, Message], Awaitable[_Found]], most: int
) -> list[_Found]:
    """What comes of each, at most so many under way; raises the first error when those under way have ended."""
    queue = iter(enumerate(published))
    found: dict[int, _Found] = {}
    errors: list[BaseException] = []

    async def work() -> None:
        for place, (site, message) in queue:
            if errors:
                return
            try:
                found[place] = await one(site, message)
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                errors.append(error)

    await asyncio.gather(*(work() for _ in range(min(len(published), most))))
    if errors:
        raise errors[0]
    return [found[place] for place in range(len(published))]


async def _rated(
    classifier: AskingClassifier,
    claim: Claim,
    site: CallSite,
    message: Message,
    calls: RunCalls,
    prefix: str,
    priority: float,
) -> Estimate:
    if message.condition != "answered":
        return _missing(classifier.scale)

    def ask(part: str, messages: Iterable[ChatMessage], *, dropped: int = 0) -> Awaitable[Reply]:
        named = prefix + part.removeprefix("judge")
        return calls.ask(site, _UNCHECKED, priority, named, messages, dropped=dropped, endpoint=classifier.endpoint)

    try:
        return _estimates(await classifier.rate(ask, claim, message.text))[0]
    except OpinionSimError:
        raise
    except Exception as error:  # a classifier of the user's own may raise anything
        raise _failed(classifier, error) from error


def _missing(scale: OpinionScale) -> Estimate:
    """Of a text that no instrument saw, since it is no answer."""
    return Estimate(math.nan, (math.nan,) * len(scale), math.nan)


def _failed(classifier: Classifier, error: Exception) -> MeasurementError:
    return MeasurementError(f"classifier {classifier.name!r} failed with {type(error).__name__}: {error}")


def _estimates(found: OpinionEstimates) -> list[Estimate]:
    """One a row."""
    return [
        Estimate(value, tuple(probabilities), off_scale)
        for value, probabilities, off_scale in zip(
            found.value.tolist(), found.probabilities.tolist(), found.off_scale.tolist(), strict=True
        )
    ]


def _coded(classifier: Classifier, claim: Claim, texts: Sequence[str]) -> list[Estimate]:
    """What a classifier says of texts."""
    try:
        found = classifier.classify([claim] * len(texts), texts)
    except OpinionSimError:
        raise
    except Exception as error:  # a classifier of the user's own may raise anything
        raise _failed(classifier, error) from error
    return _estimates(found)


class _Shared:
    """Work that several may wait for: it is cancelled when the last of them has given up, and not before."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.ensure_future(work)
        # Whoever would have raised its error may have been cancelled.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._waiting = 0

    @property
    def over(self) -> bool:
        """Whether it is too late to wait for it."""
        return self._task.done() or self._task.cancelling() > 0

    async def wait(self) -> None:
        """Until it has ended; raises what it raised."""
        self._waiting += 1
        try:
            await asyncio.shield(self._task)
        finally:
            self._waiting -= 1
            if not self._waiting and not self._task.done():
                self._task.cancel()
                await asyncio.wait([self._task])


class Simulation:
    """One run on the engine, from the first turn to the last measurement.

    Parameters
    ----------
    population : Population
        N agents.
    claim : Claim
        What opinions are about.
    schedule : StaticSchedule or AdaptiveSchedule
        For N agents.
    calls : RunCalls
        The run's journal, slots and model.
    pack : PromptPack
        Prompt templates.
    scale : OpinionScale
        Of assigned and measured opinions.
    cognition : Cognition
        Memory, bias, world, and what agents are shown.
    classifier : Classifier or None
        The instrument; None measures nothing but self-reports. One that asks a chat model does so in calls of
        the run.
    kinds : collection of str
        Kinds of text it codes.
    acts : mapping of str to ActSpec
        What the schedule's acts mean.
    interactive : bool
        Whether agents are told of strangers whose posts they will see; False for the controls (A12).
    lookahead : int or None
        Steps dispatched beyond the last complete one; None for no bound.
    executor : concurrent.futures.Executor or None
        Where classification runs; None runs it on the event loop.
    measurement_id : str
        Identity of the measurement, which tells its calls from those of others.
    actors : sequence of Actor, optional
        Who acts, one an agent; default personas that a chat model plays.

    Notes
    -----
    Used from one event loop. Results do not depend on timing: see `docs/architecture.md`.
    """

    def __init__(
        self,
        *,
        population: Population,
        claim: Claim,
        schedule: StaticSchedule | AdaptiveSchedule,
        calls: RunCalls,
        pack: PromptPack,
        scale: OpinionScale,
        cognition: Cognition | None = None,
        classifier: Classifier | None = None,
        kinds: Collection[str] = ("report", "post", "probe", SELF_REPORT),
        acts: Mapping[str, ActSpec] = ACTS,
        interactive: bool = True,
        lookahead: int | None = None,
        executor: Executor | None = None,
        measurement_id: str = "",
        actors: Sequence[Actor] | None = None,
    ) -> None:
        cognition = cognition or Cognition()
        if schedule.n_agents != len(population):
            raise SpecError(f"the schedule is for {schedule.n_agents} agents; the population has {len(population)}")
        if isinstance(schedule, AdaptiveSchedule) and classifier is None:
            raise SpecError("this schedule acts on opinions, so the run needs a classifier")
        self.population = population
        self.claim = claim
        self.schedule = schedule
        self._calls = calls
        self._classifier = classifier
        self._kinds = frozenset(kinds)
        self._lookahead = lookahead
        self._executor = executor
        self._measurement_id = measurement_id
        self._scale = scale
        self._estimates: dict[int, Estimate] = {}
        #: Coding under way, by turn, for as long as anybody waits for it.
        self._coding: WeakValueDictionary[int, _Shared] = WeakValueDictionary()
        self._committed = 0
        self.actors = self._cast(pack, scale, cognition, acts, interactive) if actors is None else actors
        self.engine = Engine(
            schedule,
            self.actors,
            calls,
            acts=acts,
            calls_per_event=cognition.calls_per_event,
            rate=self._rate,
            horizon=None if lookahead is None else lookahead + 1,
            most=_TURNS_PER_SLOT * calls.limit,
        )
        self._acts = acts

    def _cast(
        self,
        pack: PromptPack,
        scale: OpinionScale,
        cognition: Cognition,
        acts: Mapping[str, ActSpec],
        interactive: bool,
    ) -> Sequence[Actor]:
        """One persona an agent."""
        actors = []
        members = zip(self.population.personas, self.population.opinions, strict=True)
        for agent, (persona, opinion) in enumerate(members):
            prompts = pack.for_agent(
                persona=persona,
                opinion=opinion,
                claim=self.claim,
                scale=scale,
                persona_shown=cognition.persona_shown,
                masked=cognition.masked,
                confirmation_bias=cognition.confirmation_bias,
                world=cognition.world,
                interactive=interactive,
            )
            memory = new_memory(cognition.memory, prompts, cognition.token_budget)
            actors.append(PersonaActor(agent, prompts, memory, acts, self._is_first))
        return actors

    def _is_first(self, turn: Turn) -> bool:
        return turn.index == self.engine.first_keeping

    async def run(self) -> None:
        """Carry out the whole schedule; raises what stops the run. :meth:`measure` codes its texts."""
        self.engine.start()
        try:
            if self._lookahead is not None:
                await self._move_on(self._lookahead)
            await self.engine.wait()
        except asyncio.CancelledError:
            await self.engine.cancel()
            raise
        except OpinionSimError as error:
            await self.end(error)
            raise

    async def end(self, error: OpinionSimError) -> None:
        """Start nothing more, and wait for calls in flight: their replies are paid for and belong in the journal."""
        self.engine.stop(error)
        with suppress(OpinionSimError):
            await self.engine.wait()

    async def _move_on(self, lookahead: int) -> None:
        """Keep dispatch `lookahead` steps ahead of the last complete one."""
        for step in range(self.schedule.steps + 1):
            await self.engine.wait_step(step)
            self.engine.allow(step + 1 + lookahead)

    async def commit(self, step: int) -> list[Happening]:
        """Wait until all turns up to `step` are done and measured; returns those since the last commit, by index."""
        if self._lookahead is not None:
            self.engine.allow(step + self._lookahead)
        await self.engine.wait_step(step)
        await self.measure(step)
        happened = self.happenings(self._committed, step)
        self._committed += len(happened)
        return happened

    async def measure(self, until: int | None = None) -> None:
        """Code every published text, up to step `until`, that is to be coded and is not yet."""
        await self._code(
            (turn, message)
            for turn, message in self.engine.transcript(self._committed, until)
            if (kind := self._acts[turn.act].kind) in self._kinds
            and (kind == SELF_REPORT or self._classifier is not None)
        )

    def happenings(self, start: int = 0, until: int | None = None) -> list[Happening]:
        """Turns from index `start` to step `until` that have published, with what is measured so far."""
        return [
            Happening(turn, message, kind, self._estimates.get(turn.index) if kind in self._kinds else None)
            for turn, message in self.engine.transcript(start, until)
            for kind in (self._acts[turn.act].kind,)
        ]

    async def _code(self, published: Iterable[tuple[Turn, Message]]) -> None:
        """Estimates of texts that have none yet: each is coded once, however many wait for it at a time."""
        unknown = []
        for turn, message in published:
            if turn.index in self._estimates:
                continue
            if self._acts[turn.act].kind == SELF_REPORT:
                self._estimates[turn.index] = self_reported(self._scale, message)
            else:
                unknown.append((turn, message))
        if asks(self._classifier):
            await _each(unknown, self._code_one, _TURNS_PER_SLOT * self._calls.limit)
            return
        if own := [(turn, message) for turn, message in unknown if self._under_way(turn) is None]:
            await self._share(own).wait()
        for turn, message in unknown:
            await self._code_one(turn, message)

    async def _code_one(self, turn: Turn, message: Message) -> None:
        if turn.index not in self._estimates:
            await (self._under_way(turn) or self._share([(turn, message)])).wait()

    def _under_way(self, turn: Turn) -> _Shared | None:
        """The coding of a turn's text that can be waited for."""
        shared = self._coding.get(turn.index)
        return None if shared is None or shared.over else shared

    def _share(self, published: list[tuple[Turn, Message]]) -> _Shared:
        """Begin to code texts."""
        shared = _Shared(self._classify(published))
        self._coding.update((turn.index, shared) for turn, _ in published)
        return shared

    async def _classify(self, published: list[tuple[Turn, Message]]) -> None:
        classifier, calls = self._classifier, self._calls
        if classifier is None:
            raise SpecError("measuring needs a classifier")
        messages = [message for _, message in published]
        if asks(classifier):
            prefix = _prefix(self._measurement_id)
            estimates = [
                await _rated(classifier, self.claim, turn, message, calls, prefix, self._urgency(turn))
                for turn, message in published
            ]
        elif self._executor is None:
            estimates = measure(classifier, self.claim, messages)
        else:
            loop = asyncio.get_running_loop()
            estimates = await loop.run_in_executor(self._executor, measure, classifier, self.claim, messages)
        self._estimates.update(zip((turn.index for turn, _ in published), estimates, strict=True))

    def _urgency(self, turn: Turn) -> float:
        """Priority of a question about a turn: where a schedule acts on opinions, all turns that are left wait."""
        return float(self.schedule.steps - turn.step + 1) if isinstance(self.schedule, AdaptiveSchedule) else 0.0

    async def _rate(self, turn: Turn, message: Message) -> float:
        """The measured opinion an adaptive schedule acts on: journalled, so that a resumed run acts alike."""
        key, text, journal = CallKey(turn.index, "rating", 0), text_id(message.text), self._calls.journal
        record = journal.lookup(key)
        if record is None:
            await self._code([(turn, message)])
            # Another that waited for the same text may have put it on record.
            record = journal.lookup(key)
        if record is None:
            value = repr(self._estimates[turn.index].value)
            record = CallRecord(
                key, turn.step, turn.agent, turn.act, text, value, outcome="rating", arrived_at=time.time()
            )
            journal.append(record)
        elif record.prompt_hash != text:
            raise StoreError(f"run {self._calls.run_id}, turn {turn.index}: the stored rating is of another text")
        return float(record.text)
