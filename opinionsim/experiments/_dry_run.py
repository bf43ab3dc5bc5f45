"""Runs acted out without a model: the real engine, prompts and memories, with placeholders for replies."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from opinionsim import background
from opinionsim.experiments._assembly import Parts
from opinionsim.experiments._assumptions import Rates, call_kind
from opinionsim.experiments._model_spec import ModelSpec
from opinionsim.llm import Endpoint, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.messages import AS_IS, ChatMessage, Message, Reading, Reply
from opinionsim.personas import Population
from opinionsim.schedules import (
    ActSpec,
    AdaptiveSchedule,
    AnySchedule,
    External,
    Outcomes,
    Ref,
    Schedule,
    StaticSchedule,
    Turn,
    outline,
)
from opinionsim.simulation import Simulation
from opinionsim.streams import canonical_json

__all__ = ["Sort", "Tally", "count_characters", "model_keys", "survey"]

#: The kind of call by which reflective memories sum up.
_REFLECT = "reflect"
#: Agents that are acted out at least where not all are.
_FEWEST_AGENTS = 8
#: Characters a token of memory may stand for: the opposite of `opinionsim.memory.estimated_tokens`.
_CHARACTERS_PER_TOKEN = 4


class Sort(NamedTuple):
    """What calls have in common: who is asked, and what for."""

    model: str
    """Key of the model, of :func:`model_keys` or of a judge."""
    kind: str
    """The act of the turn, ``reflect`` or ``judge``."""


class Tally(NamedTuple):
    """What calls of one sort come to."""

    calls: int
    characters: float
    """Of their prompts."""


class _Asked(NamedTuple):
    """One question of a run that was acted out."""

    turn: Turn
    sort: Sort
    characters: int
    dropped: int


def model_keys(models: Sequence[ModelSpec]) -> list[str]:
    """What tells the models of agents apart as far as a forecast goes: name, longest reply and options."""
    known: dict[int, str] = {}
    for model in models:
        if id(model) not in known:
            known[id(model)] = canonical_json([model.name, model.max_tokens, model.options])
    return [known[id(model)] for model in models]


class _Like(Schedule):
    """A schedule that declares what another one declares."""

    def __init__(self, schedule: AnySchedule) -> None:
        self.n_agents, self.others, self.steps = schedule.n_agents, schedule.others, schedule.steps
        self.acts, self.externals, self.needs = schedule.acts, schedule.externals, schedule.needs


class _Outline(_Like):
    """All turns an adaptive schedule can have, as a schedule."""

    def __init__(self, schedule: AdaptiveSchedule) -> None:
        super().__init__(schedule)
        self._whole = schedule

    def turns(self) -> Iterator[Turn]:
        """As far as they are known."""
        return outline(self._whole)


def survey(parts: Parts) -> dict[Sort, np.ndarray]:
    """The calls of the agents of a run, known from its schedule alone; of an adaptive one, as many as it can have.

    Parameters
    ----------
    parts : Parts
        The run.

    Returns
    -------
    dict of Sort to ndarray of int
        How many turns the agent remembers before each call of a sort.
    """
    found: dict[Sort, array[int]] = {}
    if parts.equation is not None:
        return {}
    keys = model_keys(parts.models)
    after, acts = parts.calls_per_event, parts.schedule.acts
    remembered = _Remembered(acts)
    for turn in outline(parts.schedule):
        before = remembered.before(turn)
        key = keys[turn.agent]
        found.setdefault(Sort(key, turn.act), array("i")).append(before)
        if after and acts[turn.act].memory == "keep":
            found.setdefault(Sort(key, _REFLECT), array("i")).extend([before] * after)
    return {sort: np.asarray(each) for sort, each in found.items()}


class _Remembered:
    """Counts the turns each agent keeps in memory."""

    def __init__(self, acts: Mapping[str, ActSpec]) -> None:
        self._acts = acts
        self._kept: Counter[int] = Counter()

    def before(self, turn: Turn) -> int:
        """How many the agent remembers in a turn; the turn is counted from then on."""
        memory = self._acts[turn.act].memory
        if memory == "none":
            return 0
        kept = self._kept[turn.agent]
        if memory == "keep":
            self._kept[turn.agent] = kept + 1
        return kept


def count_characters(
    parts: Parts, rates: Mapping[str, Rates], most: int | None = None
) -> tuple[dict[Sort, Tally], int]:
    """Calls of the agents of a run, and characters of all their prompts, if replies are of the assumed lengths.

    Parameters
    ----------
    parts : Parts
        The run.
    rates : dict of str to Rates
        By key of model.
    most : int or None
        Calls to act out, about, of a run that has more: some of its agents act, for the first of their turns. What
        is left follows by a straight line in the number of turns an agent remembers, up to the limit of its memory.
        None acts out everything.

    Returns
    -------
    tallies : dict of Sort to Tally
        All calls of the run.
    acted : int
        Calls that were acted out.
    """
    if isinstance(parts.schedule, AdaptiveSchedule) and getattr(parts.schedule, "skips", False):
        # Which steps will go by without a turn is not known: none of them is taken to.
        parts = replace(parts, schedule=_Outline(parts.schedule))
    if most is None:
        asked = _act_out(parts, rates)
        return _added(asked), len(asked)
    surveyed = survey(parts)
    length = -(-most // (1 + parts.calls_per_event))
    if isinstance(parts.schedule, AdaptiveSchedule):
        excerpt = replace(parts, schedule=_Beginning(parts.schedule, length))
    else:
        excerpt = _excerpt(parts, parts.schedule, list(surveyed), rates, length)
    asked = _act_out(excerpt, rates)
    budget = parts.cognition.token_budget
    ceiling = None if budget is None else _CHARACTERS_PER_TOKEN * budget
    return _extended(asked, surveyed, parts.schedule.acts, ceiling), len(asked)


def _added(asked: list[_Asked]) -> dict[Sort, Tally]:
    """Calls and characters by sort."""
    calls, characters = Counter(each.sort for each in asked), Counter[Sort]()
    for each in asked:
        characters[each.sort] += each.characters
    return {sort: Tally(calls[sort], characters[sort]) for sort in calls}


# -- acting out --------------------------------------------------------------------------------------------


class _Counting(RunCalls):
    """Answers every question at once with a placeholder, and counts the characters of what was asked."""

    def __init__(self, parts: Parts, rates: Mapping[str, Rates]) -> None:
        super().__init__("dry", MemoryJournal(), ReplayOnly(), SlotPool(16))
        self.asked: list[_Asked] = []
        self._keys = model_keys(parts.models)
        self._rates = rates
        self._replies: dict[Sort, Reply] = {}

    async def ask(
        self,
        turn: Any,
        part: str,
        messages: Iterable[ChatMessage],
        *,
        reading: Reading = AS_IS,
        priority: float = 0.0,
        dropped: int = 0,
        endpoint: Endpoint | None = None,
    ) -> Reply:
        """Count, and answer at once."""
        sort = Sort(self._keys[turn.agent], call_kind(turn.act, part))
        self.asked.append(_Asked(turn, sort, sum([len(message.content) for message in messages]), dropped))
        if sort not in self._replies:
            self._replies[sort] = Reply(_placeholder(self._rates, sort))
        return self._replies[sort]


def _placeholder(rates: Mapping[str, Rates], sort: Sort) -> str:
    """A reply of the assumed length that no prompt pack takes for anything but text."""
    return "x" * rates[sort.model].of(sort.kind).characters


async def _no_opinion(turn: Turn, message: Message, instrument: str) -> float:
    """The opinion of a placeholder: none."""
    return math.nan


def _act_out(parts: Parts, rates: Mapping[str, Rates]) -> list[_Asked]:
    """Everything that is asked in a run; replies are not parsed."""
    calls = _Counting(parts, rates)
    background.run(Simulation(parts.schedule, parts.cast(), calls, rate=_no_opinion).run())
    return calls.asked


# -- acting out a part -------------------------------------------------------------------------------------


def _excerpt(
    parts: Parts, schedule: StaticSchedule, sorts: Sequence[Sort], rates: Mapping[str, Rates], length: int
) -> Parts:
    """A run of some of the agents, for the first of their turns; the posts of others are placeholders to them.

    What an agent is asked depends on its own turns and on the length of what it reads, and on nothing else.
    """
    chosen = _choose(schedule, length)
    population = Population(
        tuple(parts.population.personas[agent] for agent in chosen),
        tuple(parts.population.opinions[agent] for agent in chosen),
    )
    placeholders = {_external(sort).name: Message(_placeholder(rates, sort)) for sort in sorts}
    return replace(
        parts,
        population=population,
        opinions=tuple(parts.opinions[agent] for agent in chosen),
        models=tuple(parts.models[agent] for agent in chosen),
        model_labels=tuple(parts.model_labels[agent] for agent in chosen),
        schedule=_Excerpt(schedule, chosen, model_keys(parts.models), placeholders, length),
    )


def _choose(schedule: StaticSchedule, length: int) -> list[int]:
    """Agents drawn until they have turns enough between them."""
    turns_of = Counter(turn.agent for turn in schedule.turns())
    # The same draw every time: two plans of one experiment must agree.
    order = np.random.default_rng(0).permutation(schedule.n_agents).tolist()
    chosen: list[int] = []
    turns = 0
    for agent in order:
        if turns >= length and len(chosen) >= _FEWEST_AGENTS:
            break
        chosen.append(agent)
        turns += turns_of[agent]
    return chosen


class _Excerpt(_Like):
    """The first turns of the chosen agents, who are numbered anew, as their turns are."""

    def __init__(
        self,
        whole: StaticSchedule,
        chosen: Sequence[int],
        keys: Sequence[str],
        placeholders: Mapping[str, Message],
        length: int,
    ) -> None:
        super().__init__(whole)
        self._whole = whole
        self._numbers = {agent: number for number, agent in enumerate(chosen)}
        self._keys = keys
        self._length = length
        self.n_agents = len(chosen)
        self.externals = {**whole.externals, **placeholders}

    def turns(self) -> Iterator[Turn]:
        """Turns that read what others wrote read a placeholder."""
        known: dict[int, Ref] = {}
        index = 0
        for turn in self._whole.turns():
            agent = self._numbers.get(turn.agent)
            if agent is None:
                known[turn.index] = _external(Sort(self._keys[turn.agent], turn.act))
                continue
            if index == self._length:
                return
            reads = tuple(known[ref] if isinstance(ref, int) else ref for ref in turn.reads)
            yield replace(turn, index=index, agent=agent, reads=reads)
            known[turn.index] = index
            index += 1


def _external(sort: Sort) -> External:
    """What stands in for a message of a sort."""
    return External(f"placeholder {sort.model} {sort.kind}")


class _Beginning(_Like):
    """The first turns of an adaptive schedule."""

    def __init__(self, schedule: AdaptiveSchedule, length: int) -> None:
        super().__init__(schedule)
        self._whole = schedule
        self._length = length

    async def decide(self, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """As the whole one, up to a number of turns."""
        async for turn in self._whole.decide(outcomes):
            if turn.index >= self._length:
                return
            yield turn


def _extended(
    asked: list[_Asked], surveyed: Mapping[Sort, np.ndarray], acts: Mapping[str, ActSpec], ceiling: int | None
) -> dict[Sort, Tally]:
    """All calls of a run, of which some were acted out."""
    remembered = _Remembered(acts)
    turns = {each.turn.index: each.turn for each in asked}
    before = {index: remembered.before(turns[index]) for index in sorted(turns)}
    lines: dict[str, _Line] = {}
    for kind in {sort.kind for sort in surveyed}:
        # A kind of call that comes only at the end of a long run is taken to be like the others.
        alike = [each for each in asked if each.sort.kind == kind] or asked
        lines[kind] = _Line.through(
            np.array([before[each.turn.index] for each in alike]),
            np.array([each.characters for each in alike], dtype=float),
            np.array([each.dropped > 0 for each in alike]),
            ceiling,
        )
    return {sort: Tally(len(numbers), float(lines[sort.kind](numbers).sum())) for sort, numbers in surveyed.items()}


@dataclass(frozen=True)
class _Line:
    """Characters of a prompt by the number of turns its agent remembers.

    Attributes
    ----------
    start : float
        With an empty memory.
    intercept, slope : float
        Otherwise: a straight line.
    most : float
        Which it does not exceed.
    """

    start: float
    intercept: float
    slope: float
    most: float

    @classmethod
    def through(cls, remembered: np.ndarray, characters: np.ndarray, cut: np.ndarray, ceiling: int | None) -> _Line:
        """The line through prompts with a whole memory; the mean of prompts with a cut one is the most."""
        whole = (remembered > 0) & ~cut
        start = characters[remembered == 0].mean() if (remembered == 0).any() else characters.min()
        most = math.inf
        if cut.any():
            most = characters[cut].mean()
        elif ceiling is not None:
            most = max(start + ceiling, characters.max())
        if not whole.any():
            return cls(start, most if cut.any() else start, 0.0, most)
        slope = 0.0
        if len(set(remembered[whole].tolist())) > 1:
            slope = max(0.0, float(np.polyfit(remembered[whole], characters[whole], 1)[0]))
        intercept = characters[whole].mean() - slope * remembered[whole].mean()
        return cls(start, intercept, slope, most)

    def __call__(self, remembered: np.ndarray) -> np.ndarray:
        """Of each prompt."""
        return np.where(remembered == 0, self.start, np.minimum(self.intercept + self.slope * remembered, self.most))
