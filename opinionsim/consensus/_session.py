"""Turns of a consensus session, stage by stage, and the outcomes that they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from opinionsim.consensus import _session_acts as acts
from opinionsim.consensus._question_turns import same_question
from opinionsim.consensus.voting import Election
from opinionsim.errors import ScheduleError, SpecError
from opinionsim.schedules import GIVEN, Closing, External, Outcomes, Ref, Setting, Turn

if TYPE_CHECKING:
    from opinionsim.consensus._consensus import ConsensusInteraction, DrafterSpec

#: Name of the external message that is the position statement.
POSITION = "position"
#: Numbers of opinions of the examples that a few-shot prompt shows (Bakker et al.; D4).
_EXAMPLES = (3, 4, 5)


class Heard(NamedTuple):
    """Asks which turns are usable: their messages are passed on, and their replies could be read."""

    turns: Sequence[int]
    decided: bool = False
    """Whether the reply must have been read; a turn that passes on a text needs no reading."""

    async def outcome(self, outcomes: Outcomes) -> list[int]:
        """Those whose messages others receive."""
        messages = await asyncio.gather(*map(outcomes.reply, self.turns))
        found = zip(self.turns, messages, strict=True)
        heard = [(turn, each) for turn, each in found if each.passed_on]
        return [
            turn for turn, each in heard if each.decision is not None or each.act == acts.PUT.name or not self.decided
        ]


class AskNumbers(NamedTuple):
    """Requests the numbers that turns give to statements, as a matrix of voters and statements."""

    turns: Sequence[Sequence[int]]
    """Turns of each voter."""
    statements: Sequence[int]
    variable: str

    async def outcome(self, outcomes: Outcomes) -> np.ndarray:
        """Means over the turns of each voter; NaN for statements without a number."""
        found = np.full((len(self.turns), len(self.statements)), np.nan)
        for voter, turns in enumerate(self.turns):
            said = await asyncio.gather(*map(outcomes.decision, turns))
            for place, statement in enumerate(self.statements):
                own = [each[statement][self.variable] for each in said if each and statement in each]
                found[voter, place] = np.mean(own) if own else np.nan
        return found


class Scores(NamedTuple):
    """Requests from an instrument the predicted agreement of authors of opinions with statements."""

    opinions: Sequence[int]
    statements: Sequence[int]
    beside: Sequence[int]
    """Further statements, which the outcome leaves out."""

    async def outcome(self, outcomes: Outcomes) -> np.ndarray:
        """One row per opinion."""
        pairs = [(each, own) for own in self.opinions for each in (*self.statements, *self.beside)]
        found = await asyncio.gather(*(outcomes.opinion(each, acts.PREDICTED, about=own) for each, own in pairs))
        return np.reshape(np.array(found, dtype=float), (len(self.opinions), -1))[:, : len(self.statements)]


def examples_by_size(setting: Setting, number: int, way: DrafterSpec) -> list[list[str]]:
    """Names of external messages that are examples for a way of drafting, by number of opinions.

    Examples with the session's own question are left out because they would hint at what the group may agree on.

    Raises
    ------
    SpecError
        If none is left.
    """
    own = {same_question(text).rstrip(".") for text in (setting.question, setting.position)}
    others = {
        f"example-{number}-{place}": text
        for place, text in enumerate(setting.messages(way.examples))
        if same_question(text.partition("\n")[0].removeprefix("Question:")).rstrip(".") not in own
    }
    found = [
        [name for name, text in others.items() if f"\nOpinion {n}: " in text and f"\nOpinion {n + 1}: " not in text]
        for n in _EXAMPLES
    ]
    if not any(found):
        raise SpecError(
            f"examples of {way.name!r}: no session on another question has 3 to 5 opinions", "interaction.drafters"
        )
    return [names for names in found if names]


#: Turns in order, what follows the last one, and questions that whoever carries them out answers. What is sent after a
#: turn counts for nothing.
Flow = Generator[Turn | Closing | Heard | AskNumbers | Scores, Any, Any]


@dataclass
class OpenSession:
    """State of a session in progress.

    Attributes
    ----------
    fields : ConsensusInteraction
        Its fields.
    setting : Setting
        Its setting.
    opinions : dict of int to int
        Turn of each citizen's opinion, as far as others receive it.
    """

    fields: ConsensusInteraction
    setting: Setting

    def __post_init__(self) -> None:
        self.opinions: dict[int, int] = {}
        self._index = 0
        self._position: int | None = None
        self._drafted: list[str] = []
        #: What each citizen is shown of the round before: the winner, unless it stands again, and its critique of it.
        self._criticised: dict[int, tuple[int, ...]] = {}
        self._roles = {role: self.setting.size + place for place, role in enumerate(self.fields.others)}
        self._asked = [agent for agent in range(self.setting.size) if agent not in self.setting.given]

    def _turn(self, step: int, agent: int, act: str, reads: Sequence[Ref] = (), place: str = "") -> Flow:
        """A turn; returns its index."""
        self._index += 1
        yield Turn(index := self._index - 1, step, agent, act, tuple(reads), place)
        return index

    def _shuffled(self, items: Sequence[Any], purpose: str, *keys: int) -> list[Any]:
        order = self.setting.stream(purpose, *keys).permutation(len(items))
        return [items[place] for place in order.tolist()]

    def flow(self) -> Flow:
        """The whole session."""
        fields, ratings = self.fields, self.fields.ratings
        position: int | None = None
        if ratings.position or "position" in fields.standing:
            position = self._position = yield from self._put(1, External(POSITION))
        if ratings.position == "before" and position is not None:
            for citizen in self._asked:
                yield from self._turn(1, citizen, acts.RATE_POSITION.name, (position,))
        yield from self._state()
        critiques: dict[int, int] = {}
        winner: int | None = None
        for number in range(fields.rounds + 1):
            step = number + 1
            standing, beside = yield from self._drafting(step, winner, critiques)
            if not number:
                # First, as its turn is: statements stand in the order of their turns.
                if position is not None and "position" in fields.standing:
                    standing.insert(0, position)
                elif position is not None and ratings.position == "after":
                    beside.append(position)
            if len(standing) < 2:
                raise ScheduleError(
                    f"round {number}: {len(standing)} statements are usable, but an election needs at least 2; "
                    f"drafts with a statement: {', '.join(self._drafted)}; the others were refused, empty, or lacked "
                    "a required statement (see opinionsim show)"
                )
            winner = yield from self._election(step, standing, beside)
            if number < fields.rounds:
                critiques = yield from self._criticise(step, winner)
                last = () if fields.incumbent else (winner,)
                self._criticised = {citizen: (*last, critique) for citizen, critique in critiques.items()}
                if fields.between:
                    for citizen in self._asked:
                        yield from self._turn(step, citizen, fields.between, self._shown(citizen, winner))
        for citizen in self._asked if ratings.winner else ():
            yield from self._turn(fields.rounds + 2, citizen, acts.RATE_WINNER.name, self._shown(citizen, winner))
        yield Closing({citizen: self._shown(citizen, winner) for citizen in self._asked})

    def _shown(self, citizen: int, winner: int | None) -> tuple[int, ...]:
        """A citizen's own opinion, and the winner."""
        own = self.opinions.get(citizen)
        return tuple(each for each in (own, winner) if each is not None)

    def _before(self, citizen: int) -> tuple[int, ...]:
        """What a citizen is shown before the statements that it is to judge."""
        return *self._shown(citizen, None), *self._criticised.get(citizen, ())

    def _put(self, step: int, text: Ref) -> Flow:
        """A text put before the group; returns its turn."""
        return (yield from self._turn(step, self._roles[self.fields.ways[0].role], acts.PUT.name, (text,)))

    def _state(self) -> Flow:
        """The opinions."""
        turns: dict[int, int] = {}
        for citizen in range(self.setting.size):
            given = citizen in self.setting.given
            reads = (External(GIVEN.format(citizen)),) if given else ()
            turns[citizen] = yield from self._turn(1, citizen, (acts.SUBMIT if given else acts.STATE).name, reads)
        heard = yield Heard([*turns.values()])
        self.opinions = {citizen: turn for citizen, turn in turns.items() if turn in heard}
        if len(self.opinions) < 2:
            raise ScheduleError(f"{len(self.opinions)} citizens have stated an opinion; a group needs at least 2")

    def _drafting(self, step: int, winner: int | None, critiques: Mapping[int, int]) -> Flow:
        """The statements of a round: those that stand, and those that are only rated."""
        fields, standing, beside = self.fields, list[int](), list[int]()
        first: list[int] = []
        for number, way in enumerate(fields.ways):
            first.append(len(standing))
            act = fields.act_of(acts.DRAFT if winner is None else acts.REVISE, way)
            for copy in range(way.count):
                keys = (step, number, copy)
                reads = self._examples(number, way, keys) if winner is None else [winner]
                for citizen in self._shuffled(list(self.opinions), "opinions of a draft", *keys):
                    reads.append(self.opinions[citizen])
                    reads += [critiques[citizen]] if citizen in critiques else []
                standing.append((yield from self._turn(step, self._roles[way.role], act, reads)))
        if winner is None:
            for opinion in self.opinions.values() if "opinions" in fields.standing else ():
                standing.append((yield from self._put(step, opinion)))
            for place in range(len(self.setting.messages(fields.controls)) if fields.controls else 0):
                beside.append((yield from self._put(step, External(f"control-{place}"))))
            beside += yield from self._without_one(step)
        usable = yield Heard([*standing, *beside], decided=True)
        self._drafted = [
            f"{sum(turn in usable for turn in standing[start : start + way.count])} of {way.count} by the {way.role} "
            f"({way.name})"
            for start, way in zip(first, fields.ways, strict=True)
        ]
        stood = [winner] if fields.incumbent and winner is not None else []
        return stood + [each for each in standing if each in usable], [each for each in beside if each in usable]

    def _without_one(self, step: int) -> Flow:
        """Drafts that leave the opinion of one citizen out, in the first way of drafting."""
        found, way = list[int](), self.fields.ways[0]
        act = self.fields.act_of(acts.DRAFT, way)
        for citizen in self.opinions:
            for copy in range(self.fields.leave_one_out):
                others = [own for other, own in self.opinions.items() if other != citizen]
                reads = self._examples(0, way, (step, 0, copy))
                reads += self._shuffled(others, "opinions of a draft without one", citizen, copy)
                found.append((yield from self._turn(step, self._roles[way.role], act, reads)))
        return found

    def _examples(self, number: int, way: DrafterSpec, keys: tuple[int, ...]) -> list[Ref]:
        """Examples of a few-shot draft: one of each size, of other questions than this one."""
        if not way.examples:
            return []
        rng = self.setting.stream("examples", *keys)
        sized = examples_by_size(self.setting, number, way)
        return [External(names[int(rng.integers(len(names)))]) for names in sized]

    def _election(self, step: int, standing: list[int], beside: list[int]) -> Flow:
        """Ballots on the statements that stand; returns the winner, or None where nothing in the run depends on it."""
        fields, shown = self.fields, standing
        asked: dict[str, tuple[list[int], AskNumbers | Scores]] = {}
        if "predicted" in fields.ballots:
            asked["predicted"] = standing, (yield from self._predictions(step, standing, beside))
            if fields.shortlist is not None:
                ballots = yield asked["predicted"][1]
                order = self._elected(step, ballots, "predicted").order.argsort(kind="stable")
                shown = sorted(standing[place] for place in order[: fields.shortlist].tolist())
        rated = yield from self._ratings(step, [*shown, *beside])
        if "stated" in fields.ballots:
            asked["stated"] = shown, (yield from self._stated(step, shown, rated))
        statements, question = asked[fields.elects]
        ballots = yield question
        if step > fields.rounds and not self.setting.questioned and not fields.ratings.winner:
            return None
        return statements[int(self._elected(step, ballots, fields.elects).order.argmin())]

    def _elected(self, step: int, ballots: np.ndarray, kind: Literal["stated", "predicted"]) -> Election:
        """The outcome of an election; of statements that are left tied, the first wins."""
        return self.fields.elect(ballots, self.setting.block, step - 1, scores=self.fields.scores(kind))

    def _predictions(self, step: int, standing: list[int], beside: list[int]) -> Flow:
        """Predicted ballots, one an opinion; returns the question for them. Statements beside are rated too."""
        fields = self.fields
        if fields.predictor == "instrument":
            return Scores(list(self.opinions.values()), standing, beside)
        agent, turns = self._roles[acts.PREDICTOR], list[list[int]]()
        rated = fields.ballot == "rating"
        act, predicted = (acts.PREDICT_RATING, [*standing, *beside]) if rated else (acts.PREDICT, standing)
        for citizen, opinion in self.opinions.items():
            order = self._shuffled(predicted, "statements of a prediction", step, citizen)
            turns.append([])
            for shown in [[each] for each in order] if rated else [order]:
                turns[-1].append((yield from self._turn(step, agent, act.name, (opinion, *shown))))
        return AskNumbers(turns, standing, acts.PREDICTED if rated else "predicted_rank")

    def _ratings(self, step: int, statements: Sequence[int]) -> Flow:
        """Ratings of statements; returns the turns of each citizen."""
        turns: dict[int, list[int]] = {citizen: [] for citizen in self._asked}
        for each in range(self.fields.passes):
            for citizen in self._asked:
                own = self._before(citizen)
                order = self._shuffled(statements, "statements of a rating", step, citizen, each)
                for number, statement in enumerate(order, 1):
                    act = acts.RATE_POSITION if statement == self._position else acts.RATE
                    place = f"statement {number + each * len(order)} of {self.fields.passes * len(order)}"
                    place = f"new {place}, written after the critiques" if step > 1 else place
                    place += ". You rate each once more, in another order" if each else ""
                    turns[citizen].append((yield from self._turn(step, citizen, act.name, (*own, statement), place)))
        return turns

    def _stated(self, step: int, standing: list[int], rated: Mapping[int, list[int]]) -> Flow:
        """Stated ballots, one a citizen that can be asked; returns the question for them."""
        if self.fields.ballot == "rating":
            return AskNumbers(list(rated.values()), standing, "agreement")
        turns = []
        for citizen in self._asked:
            reads = [*self._before(citizen), *self._shuffled(standing, "statements of a ballot", step, citizen)]
            turns.append([(yield from self._turn(step, citizen, acts.RANK.name, reads))])
        return AskNumbers(turns, standing, "rank")

    def _criticise(self, step: int, winner: int) -> Flow:
        """Critiques of the winner by those who have stated an opinion; returns the turn of each."""
        turns: dict[int, int] = {}
        for citizen in self._asked:
            if (own := self.opinions.get(citizen)) is not None:
                turns[citizen] = yield from self._turn(step, citizen, acts.CRITICISE.name, (own, winner))
        heard = yield Heard([*turns.values()])
        if not heard:
            raise ScheduleError(f"round {step}: no critique is usable, so drafters have nothing to revise by")
        return {citizen: turn for citizen, turn in turns.items() if turn in heard}
