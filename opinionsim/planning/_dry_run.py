"""Runs without a model: count turns, or act them out with placeholders for replies."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from opinionsim.assembly import RunParts
from opinionsim.classifiers import Context, Item, asks
from opinionsim.engine import PersonaActor, critical_path, relayed
from opinionsim.errors import SpecError
from opinionsim.llm import REFLECT, REPLY, SELECT, CallName
from opinionsim.measurement import Instrument
from opinionsim.messages import ChatMessage, Message, Parse, Prompt, Reply, Speech, as_message
from opinionsim.metrics import SELF_REPORT
from opinionsim.schedules import ActSpec, AdaptiveSchedule, StaticSchedule, Turn, TurnCheck, dropped_turns, outline
from opinionsim.specification import ModelSpec
from opinionsim.topics import Claim

#: Least number of agents that are acted out.
_FEWEST_AGENTS = 8
#: Claim for a judge where only the number of its questions counts.
_ANY_CLAIM = Claim("this is so", "any", "truth")
#: Turns acted out before other work on the event loop goes on.
_TURNS_AT_A_TIME = 100
#: Characters of a token of memory: the inverse of `opinionsim.memory.estimated_tokens`.
_CHARACTERS_PER_TOKEN = 4

#: A sort of calls: the label of an agent's model and the kind of call, or the identity of a judge's instrument and the
#: act whose texts it codes.
Sort = tuple[str, str]
#: Gives the characters that count, of beginnings with so many characters.
Counted = Callable[[np.ndarray], np.ndarray]
_Asked = tuple[int, int, int]


class _Kept:
    """Counts the turns that each agent keeps in memory."""

    def __init__(self, acts: Mapping[str, ActSpec]) -> None:
        self._acts = acts
        self._kept: Counter[int] = Counter()

    def before(self, turn: Turn) -> int:
        """Number of turns that the agent remembers in this turn; the turn itself counts from then on."""
        memory = self._acts[turn.act].memory
        kept = 0 if memory == "none" else self._kept[turn.agent]
        self._kept[turn.agent] += memory == "keep"
        return kept


class CountedTurns:
    """The counted turns of one run; for an adaptive schedule, the maximum number.

    Turns that a run takes over from another run are remembered but not counted.

    Parameters
    ----------
    parts : RunParts
        The run.

    Attributes
    ----------
    remembered : dict of (str, str) to ndarray of int
        Turns that the agent remembers before each call, by sort of call, without calls of judges.
    models : dict of str to ModelSpec
        Models of the agents, by label.
    needs : collection of str
        Variables whose opinions the schedule acts on.
    dropped : int
        Turns that drop out because of events.
    """

    def __init__(self, parts: RunParts) -> None:
        self.models: Mapping[str, ModelSpec] = dict(zip(parts.model_labels, parts.models, strict=True))
        self.needs: Collection[str] = parts.schedule.needs
        self._schedule, self._after, self._acts = parts.schedule, parts.calls_per_event, parts.acts
        self._begins, self._unread = parts.begins, parts.unread
        self.dropped = dropped_turns(parts.schedule)
        self._turns, self._reads = Counter[str](), Counter[str]()
        labels, kept = parts.model_labels, _Kept(parts.schedule.acts)
        found: defaultdict[Sort, list[int]] = defaultdict(list)
        check, static = TurnCheck(parts.schedule), isinstance(parts.schedule, StaticSchedule)
        for turn in outline(parts.schedule):
            static and check(turn)
            before, act = kept.before(turn), parts.acts(turn.agent)[turn.act]
            if turn.step < parts.begins:
                continue
            found[labels[turn.agent], turn.act] += [before] * act.draws
            found[labels[turn.agent], SELECT] += [0] * (act.calls - act.draws)
            if self._after and act.memory == "keep" and turn.index not in self._unread:
                found[labels[turn.agent], REFLECT] += [before] * self._after
            self._turns[turn.act] += 1
            for ref in turn.reads:
                self._reads[turn.act] += isinstance(ref, int)
        self.remembered: Mapping[Sort, np.ndarray] = {sort: np.array(each) for sort, each in found.items()}

    @property
    def calls(self) -> int:
        """Number of calls of agents."""
        return sum(map(len, self.remembered.values()))

    @cached_property
    def path(self) -> int | None:
        """Length of the longest chain of dependent calls of agents; None for adaptive schedules."""
        if isinstance(self._schedule, AdaptiveSchedule):
            return None
        return critical_path(
            self._schedule, calls_per_event=self._after, acts=self._acts, begins=self._begins, unread=self._unread
        ).length

    @property
    def awaited(self) -> set[str]:
        """Kinds of text whose opinion a schedule waits for: private statements of belief."""
        return {act.kind for act in self._schedule.acts.values() if act.opinion == "states" and not act.heard}

    def items(self, kinds: Collection[str], about: str = "") -> dict[str, int]:
        """Items of these kinds of text that a classifier codes, by act; with `about`, one for each message read.

        No classifier reads self-reports; `kinds` are the kinds that it codes (:attr:`Instrument.coded`).
        """
        acts, counted = self._schedule.acts, self._reads if about else self._turns
        return {name: counted[name] for name in self._turns if acts[name].kind in kinds}


class _Lengths:
    """Characters of prompts as a function of the number of turns that the agent remembers.

    Means of the prompts that were made; beyond the longest memory among them a straight line, up to the token budget.
    If one sort has too few prompts, the slope is that of all sorts.
    """

    def __init__(self, seen: list[tuple[int, int]], every: list[tuple[int, int]], token_budget: int | None) -> None:
        remembered, self._seen = np.array(seen).T
        self._x, self._place = np.unique(remembered, return_inverse=True)
        self._y = self._means(self._seen)
        # The first prompt of an agent lacks parts that all later ones have, such as a summary.
        later = np.array([pair for pair in (seen if len(self._x) > 2 else every) if pair[0]] or [(0, 0)])
        slope = np.polyfit(later[:, 0], later[:, 1], 1)[0] if np.ptp(later[:, 0]) else 0.0
        self._slope = max(0.0, float(slope))
        most = np.inf if token_budget is None else self._y[0] + _CHARACTERS_PER_TOKEN * token_budget
        self._room = max(0.0, most - self._y[-1])

    def _means(self, characters: np.ndarray) -> np.ndarray:
        return np.bincount(self._place, characters) / np.bincount(self._place)

    def total(self, remembered: np.ndarray, counted: Counted | None = None) -> float:
        """Total characters of prompts whose agents remember these numbers of turns; of each, those that count."""
        longest = self._x[-1]
        beyond = self._y[-1] + np.minimum(np.maximum(remembered - longest, 0) * self._slope, self._room)
        means = self._y if counted is None else self._means(counted(self._seen))
        within = np.interp(remembered, self._x, means)
        return float(np.where(remembered > longest, beyond if counted is None else counted(beyond), within).sum())


@dataclass
class DryRun:
    """One run acted out turn by turn; a placeholder answers each call at once.

    Parameters
    ----------
    parts : RunParts
        The run.
    reply : callable
        ``reply(sort)`` gives the placeholder for replies of a sort: a text of the assumed length.

    Attributes
    ----------
    asked : dict of (str, str) to list of (int, int, int)
        For each call, by sort: turns that the agent remembered, characters of the prompt, and characters of its longest
        beginning shared with an earlier prompt to the same model. Judges remember nothing, and their prompts share no
        beginning.
    words : dict of (str, str) to int or None
        Words that the prompts of a sort ask for: 0 for a closed question, None if they state no number.
    """

    parts: RunParts
    reply: Callable[[Sort], str]
    asked: defaultdict[Sort, list[_Asked]] = field(default_factory=lambda: defaultdict(list))
    words: dict[Sort, int | None] = field(default_factory=dict)
    _lengths: dict[tuple[Sort, bool], _Lengths] = field(default_factory=dict)
    _beginnings: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _prompt: Prompt = field(default_factory=Prompt)
    _n_asked: int = 0

    def characters(self, sort: Sort, remembered: np.ndarray, shared: Counted | None = None) -> int:
        """Characters of prompts of a sort; if there are none, those for this kind by another model, or for all kinds.

        With `shared`, those that count of the beginnings that they share with earlier prompts.
        """
        key = sort, shared is not None
        if key not in self._lengths:
            alike = (seen for each, seen in self.asked.items() if each[1] == sort[1])
            every = [asked for seen in self.asked.values() for asked in seen]
            own, of_all = (
                [(asked[0], asked[2 if shared else 1]) for asked in seen]
                for seen in (self.asked.get(sort) or next(alike, every), every)
            )
            self._lengths[key] = _Lengths(own, of_all, self.parts.token_budget)
        return round(self._lengths[key].total(remembered, shared))

    @cached_property
    def _names(self) -> dict[str, str]:
        """Names of the agents' models, by label: a provider's cache serves all prompts to a model."""
        return {label: model.name for label, model in zip(self.parts.model_labels, self.parts.models, strict=True)}

    def _shared(self, prompt: Prompt, label: str) -> int:
        """Characters of the longest beginning that an earlier prompt to the model had; this one counts from then on."""
        link, new, known = prompt, [], self._beginnings[self._names[label]]
        while link.before is not None and link.identity not in known:
            new.append(link.identity)
            link = link.before
        known.update(new)
        return link.characters

    async def act_out(self, share: float, most: int, judges: Collection[Instrument]) -> None:
        """Act out the run, or only the first turns of some agents.

        Parameters
        ----------
        share : float
            Share of the agents to act out.
        most : int
            Calls of agents after which only the first turn of a new act is acted out.
        judges : collection of Instrument
            Instruments whose classifiers use a model. They judge texts of all acts, also of kinds they do not read.
        """
        schedule, cast, labels = self.parts.schedule, self.parts.cast(), self.parts.model_labels
        # A fixed seed: two forecasts of one experiment must agree.
        order = np.random.default_rng(0).permutation(len(cast)).tolist()
        chosen = set(order[: max(_FEWEST_AGENTS, round(share * len(cast)))])
        kept, acted, known = _Kept(schedule.acts), set[str](), dict[tuple[str, Item], list[_Asked]]()
        published: list[Message] = []
        for turn in outline(schedule):
            member, act = cast[turn.agent], self.parts.acts(turn.agent)[turn.act]
            if isinstance(member.actor, PersonaActor):
                self.words[labels[turn.agent], turn.act] = 0 if act.closed else member.actor.prompts.words(act)
            if turn.act in acted and (turn.agent not in chosen or most <= 0):
                text = self.reply((labels[turn.agent], turn.act))
                published.append(Message(text, member.name, turn.agent, role=member.role, act=turn.act))
                continue
            if not len(published) % _TURNS_AT_A_TIME:
                await asyncio.sleep(0)
            acted.add(turn.act)
            received = [
                published[ref] if isinstance(ref, int) else as_message(schedule.externals[ref.name])
                for ref in turn.reads
            ]
            actor = member.actor.fork() if act.memory == "fork" else member.actor
            ask = partial(self._ask, labels[turn.agent], turn.act, kept.before(turn))
            before = self._n_asked
            if turn.agent in self.parts.seats:
                text = self.reply((labels[turn.agent], turn.act))
                published.append(Message(text, member.name, turn.agent, role=member.role, act=turn.act))
            elif act.draws:
                await actor.act(turn, received, ask, published.append)
            else:
                published.append(relayed(turn, received, member.role))
            most -= act.calls + (self.parts.calls_per_event if act.memory == "keep" else 0)
            self._check_memory(act, self._n_asked - before)
            for each in (each for each in judges if act.kind != SELF_REPORT or each.asks_author):
                read = tuple(message.text for message in received)
                context = Context(read, *member.author) if each.context else None
                others = [published[ref].text for ref in turn.reads if isinstance(ref, int)]
                for about in others if each.about else [None]:
                    said = published[-1].text
                    fork = each.fork(act.kind, said, self._prompt, shown=bool(read))
                    item = Item(said, self.parts.claim, about, context, fork)
                    await self._judge(each, turn.act, item, known)

    def _check_memory(self, act: ActSpec, n_asked: int) -> None:
        """Refuse a memory that asks more often than it declares."""
        declared = self.parts.calls_per_event if act.memory == "keep" else 0
        if n_asked > act.calls + declared:
            raise SpecError(
                f"cognition.memory: {self.parts.memory.name} asks {n_asked - act.calls} times per event, but its "
                f"calls_per_event is {declared}"
            )

    async def _judge(self, each: Instrument, act: str, item: Item, known: dict[tuple[str, Item], list[_Asked]]) -> None:
        """Have a judge ask about an item; equal items are asked about once, and counted each time."""
        sort = each.instrument_id, act
        if (each.instrument_id, item) in known:
            self.asked[sort] += known[each.instrument_id, item]
        elif asks(each.classifier):
            before = len(self.asked[sort])
            await each.classifier.rate(partial(self._ask, *sort, 0, text=_valid_answer(each)), item)
            known[each.instrument_id, item] = self.asked[sort][before:]

    async def _ask(
        self,
        who: str,
        act: str,
        remembered: int,
        call: str,
        messages: Iterable[ChatMessage],
        *,
        parse: Parse | None = None,
        dropped: int = 0,
        speech: Speech | None = None,
        text: str | None = None,
    ) -> Reply:
        """Count a prompt, and return a placeholder."""
        sort = who, CallName.of(call).priced_as(act)
        self._n_asked += 1
        prompt = Prompt.of(messages)
        self._prompt = prompt if call == REPLY else self._prompt
        self.asked[sort].append((remembered, prompt.characters, 0 if text is not None else self._shared(prompt, who)))
        return Reply(self.reply(sort) if text is None else text)


async def questions(instrument: Instrument) -> int:
    """Number of questions that the judge of an instrument asks per item, if each first reply is valid."""
    asked: list[str] = []

    async def ask(call: str, messages: Iterable[ChatMessage], **options: object) -> Reply:
        asked.append(call)
        return Reply(_valid_answer(instrument))

    if asks(instrument.classifier):
        about = "Another." if instrument.about else None
        await instrument.classifier.rate(ask, Item("A text.", _ANY_CLAIM, about, fork=Prompt()))
    return len(asked)


def _valid_answer(instrument: Instrument) -> str:
    """A reply with which a judge does not ask again: a point of the scale, or one that takes the most calls."""
    return str(getattr(instrument.classifier, "longest", instrument.scale.points[0]))
