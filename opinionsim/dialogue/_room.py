"""A moderated room: models and people discuss a topic, a moderator leads, and an analyzer tracks the argument."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from opinionsim.dialogue import _room_acts as acts
from opinionsim.dialogue._floor import Floor
from opinionsim.dialogue._moves import ENDINGS, Ending, Move, Signals, speaker_called
from opinionsim.dialogue._room_acts import LIKERT, RATED, Guideline
from opinionsim.errors import SpecError
from opinionsim.messages import Message
from opinionsim.registry import part
from opinionsim.schedules import CONSENT, MAX_STEPS, MODERATOR, External, Interaction, Setting, Turn, named

if TYPE_CHECKING:
    from opinionsim.schedules import ActSpec, Conflict, Outcomes, Ref

#: Names of messages from outside: who takes part, and what a moderator is told of the rules.
_DECLARE, _REFUSED, _DEBRIEFING = "may-end", "not-ended", "debriefing"
_NEXT, _LAST, _CLOCK, _ENDED = "next-{}", "last-{}", "turn-{}", "ended-{}"
#: Characters of a token, as a window of a number of tokens counts them.
_CHARACTERS_A_TOKEN = 4


def _speakers(reader: int | None) -> str:
    """Name of the note that says who takes part, to one of the speakers or to somebody else."""
    return "speakers" if reader is None else f"speakers-{reader}"


@part("interaction", name="room")
class RoomInteraction(Interaction):
    """A moderated discussion between models and people at seats (ArgsBase, Turkstra et al. 2026; C1-C7).

    The moderator opens the discussion, comments on it and proposes the next speaker. The code enforces rules that apply
    regardless of its proposals. An analyzer reads along and does not speak. Any number of models and people can take
    part, including none.
    """

    played_by = ("chat models",)
    length_field = "steps"
    prompts = "room"
    smallest = 2
    places_questions = True
    record = "room"
    beside: ClassVar[Mapping[str, str]] = {"analysis": "an analysis, which stands beside the dialogue"}
    worded: ClassVar[Mapping[str, Mapping[str, str]]] = {acts.END.kind: acts.PAGES["ended"]}
    wants: ClassVar[Mapping[str, str]] = acts.PAGES["wants"]
    adjustable: ClassVar[Mapping[str, str]] = acts.PAGES["settings"]

    steps: int = Field(12, ge=1, le=MAX_STEPS)
    """Maximum number of speaker turns T. Turns of the moderator do not count."""
    every: int = Field(3, ge=2, le=MAX_STEPS)
    """Each person gets at least one of any this many consecutive speaker turns."""
    unheard: int | None = Field(None, ge=1, le=MAX_STEPS)
    """A speaker that has not spoken for this many turns is next, after people whose turn it is. Null uses twice the
    number of speakers."""
    moderator: bool = True
    """Whether a moderator leads. Without one, the speaker that has been silent longest is next. One model and one
    person without a moderator form the single-assistant condition."""
    opens: bool = True
    """Whether the moderator opens with scope, criteria, timeline and roles."""
    closes: bool = True
    """Whether the moderator closes with the results and the open questions."""
    analyze_every: int | None = Field(6, ge=0, le=MAX_STEPS)
    """Number of speaker turns between analyses. With null, there is an analysis only when a person asks for one, and
    with 0 there is never one."""
    most: int = Field(5, ge=1, le=100)
    """Maximum number of sentences in the summary of an analysis, and of items in each of its lists."""
    words: int | None = Field(150, ge=1)
    """Maximum number of words that prompts request for a reply. With null, prompts do not mention length. Longer
    replies are kept in full."""
    remember: bool = True
    """Whether models have the memory set in `cognition` and read only what is new to them. Otherwise they read the
    whole dialogue."""
    last_n: int | None = Field(None, ge=1, le=MAX_STEPS)
    """Maximum number of messages of the dialogue, starting with the latest, that moderator and models see in addition
    to the opening if models do not remember. Null shows all."""
    token_budget: int | None = Field(None, ge=1)
    """Maximum number of tokens in these messages, counted as four characters each. Null sets no limit."""
    without: tuple[Guideline, ...] = ()
    """Lines of guidance on reasoning to leave out of the prompts for moderator and models."""
    topic: Literal["given", "ask"] = "given"
    """With `ask`, the first person proposes the topic of the room."""
    consent: bool = True
    """Whether people are first asked for their consent. People who do not consent are asked nothing else."""
    questionnaire: bool = False
    """Whether people rate the room afterwards and comment on it."""
    debriefing: str | None = Field(None, pattern=r"\S")
    """Text that people see at the end. Null shows none."""

    @property
    def needs_task(self) -> bool:  # type: ignore[override]
        """Whether the room needs a topic or task; it does not if a person proposes the topic."""
        return self.topic == "given"

    @property
    def needs_memory(self) -> bool:
        """Whether speakers see only what is new to them."""
        return self.remember

    @property
    def others(self) -> Sequence[str]:  # type: ignore[override]
        """The moderator and the analyzer."""
        return [*([MODERATOR] if self.moderator else []), *([acts.ANALYZER] if self.analyze_every != 0 else [])]

    @property
    def acts(self) -> Mapping[str, ActSpec]:  # type: ignore[override]
        """The acts of its turns."""
        told = {
            "turns": str(self.steps),
            "words": "" if self.words is None else str(self.words),
            "most": str(self.most),
            "without": " ".join(self.without),
            "moderated": "yes" if self.moderator else "",
        }
        return named(*acts.acts_of(told, self.most, remember=self.remember))

    @property
    def decided(self) -> Mapping[str, tuple[tuple[int, ...], frozenset[str]]]:
        """The ratings of the questionnaire."""
        rated = RATED if self.questionnaire else ()
        return {name: (LIKERT, frozenset({acts.QUESTIONNAIRE.kind})) for name in rated}

    def steps_for(self, size: int) -> int:
        """Steps T: the maximum number of speaker turns."""
        return self.steps

    def turns_a_step(self, size: int) -> int:
        """A signal, a pause and a report by each participant, a vote, a remark, an analysis and a speech."""
        return 4 * size + 3

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Conflicts between fields, or problems for `size` speakers."""
        if self.unheard is not None and self.unheard < size - 1:
            yield ("unheard",), f"{size} speakers cannot all be heard in {self.unheard} turns; give {size - 1} or more"
        for field in ("last_n", "token_budget"):
            if self.remember and getattr(self, field) is not None:
                yield (field,), "has no effect on models that remember what they read; give remember: false as well"
        for field in ("opens", "closes"):
            if not self.moderator and field in self.model_fields_set and getattr(self, field):
                yield (field,), "needs a moderator"
        yield from super().conflicts(size)

    def check(self, setting: Setting) -> None:
        """Refuse a room in which people cannot all speak in time, and fields for people in a room without any."""
        if problem := Floor.problem(setting.size, len(setting.seats), self.every):
            raise SpecError(problem, "interaction.every")
        wanted = {
            "topic": self.topic == "ask",
            "questionnaire": self.questionnaire,
            "debriefing": self.debriefing is not None,
            "analyze_every": self.analyze_every is None,
            "every": self.every != type(self).model_fields["every"].default,
            "consent": not self.consent,
        }
        for field, value in wanted.items():
            if value and not setting.seats:
                raise SpecError("needs a person; give a seat to a member of the cast", f"interaction.{field}")

    def externals(self, setting: Setting) -> Mapping[str, Message | str]:
        """Notes for participants on names and rules, on how the room can end, and the debriefing."""
        names = self.names(setting)
        found = {
            _DECLARE: "You may declare a resolution or a deadlock in this turn: in the place of the line that begins "
            'with "Next:", write one that begins with "Resolution:" or "Deadlock:" and says in one sentence what it '
            "consists in. The speakers are then asked whether they agree.",
            _REFUSED: "Somebody said no to the end that was declared last. Another one can be declared once "
            f"there have been {setting.size} turns since that vote.",
        }
        for reader in (None, *names):
            told = [f"- {name}{' (you)' if agent == reader else ''}" for agent, name in names.items()]
            found[_speakers(reader)] = "\n".join(["These take part in the discussion:", *told])
        for agent, name in names.items():
            found[_NEXT.format(agent)] = f"{name} is next by the rules of the room, so that all are heard in time."
            found[_LAST.format(agent)] = f"{name} had the last turn and cannot be next."
        found |= {_CLOCK.format(n): f"Turn {n} of at most {self.steps} comes next." for n in range(1, self.steps + 1)}
        found |= {_ENDED.format(each): each for each in ENDINGS}
        return found | ({} if self.debriefing is None else {_DEBRIEFING: self.debriefing})

    def names(self, setting: Setting) -> dict[int, str]:
        """Names of the speakers."""
        given = setting.names or [""] * setting.size
        return {agent: name or self.unnamed(agent) for agent, name in enumerate(given)}

    # Turns

    async def decide(self, setting: Setting, outcomes: Outcomes) -> AsyncIterator[Turn]:
        """Turns of the room, each decided once the earlier messages are known."""
        flow, answer = _Course(self, setting).flow(), None
        while (each := flow.send(answer)) is not None:
            answer = None
            if isinstance(each, Turn):
                yield each
            else:
                answer = await asyncio.gather(*map(outcomes.reply, each))

    def outline(self, setting: Setting) -> Iterator[Turn]:
        """The turns of a room in which people request everything possible and never agree on a declared end."""
        flow, answer, yielded = _Course(self, setting).flow(), None, dict[int, Turn]()
        while (each := flow.send(answer)) is not None:
            answer = None
            if isinstance(each, Turn):
                yielded[each.index] = each
                yield each
            else:
                answer = [_at_most(yielded[index]) for index in each]


#: What leads to the most turns, by act.
_MOST: Mapping[str, Any] = {
    CONSENT.name: "yes",
    acts.SIGNAL.name: Signals(frozenset(("analysis", "pause")), ("",)),
    acts.MODERATE.name: Move("", "resolution"),
    acts.CONFIRM.name: False,
}


def _at_most(turn: Turn) -> Message:
    """The message of a turn that leads to the most turns."""
    return Message("", agent=turn.agent, act=turn.act, turn=turn.index, decision=_MOST.get(turn.act))


#: Turns in order, turns whose messages are asked for, and None at the end.
_Flow = Generator[Turn | Sequence[int] | None, Any, Any]


class _Course:
    """The course of one room: what has been said, who is there, and what comes next."""

    def __init__(self, fields: RoomInteraction, setting: Setting) -> None:
        self._fields, self._setting = fields, setting
        roles = {role: setting.size + place for place, role in enumerate(fields.others)}
        self._moderator, self._analyzer = roles.get(MODERATOR), roles.get(acts.ANALYZER)
        self._floor = Floor(tuple(range(setting.size)), setting.seats, fields.every, fields.unheard or 2 * setting.size)
        #: What was said to all, in order, and how much of it each member has read.
        self._dialogue: list[Message] = []
        self._read: dict[int, int] = {}
        #: Messages at its beginning that everybody is shown: the topic that was proposed, and the opening.
        self._lead = 0
        self._analyses: list[int] = []
        self._analyzed = self._declared = 0
        self._names, self._index = fields.names(setting), 0

    def _turn(self, step: int, agent: int, act: ActSpec | str, reads: Sequence[Ref] = ()) -> _Flow:
        """A turn; returns its index."""
        self._index += 1
        yield Turn(index := self._index - 1, step, agent, act if isinstance(act, str) else act.name, tuple(reads))
        return index

    def _heard(self, step: int, agent: int, act: ActSpec, reads: Sequence[Ref] = ()) -> _Flow:
        """A turn that is waited for; returns its message."""
        (message,) = yield [(yield from self._turn(step, agent, act, reads))]
        return message

    def _said(self, step: int, agent: int, act: ActSpec, *notes: Ref) -> _Flow:
        """A turn whose message all receive, where there is one; returns it."""
        reads = [*self._shown(agent), *notes]
        self._read[agent] = len(self._dialogue)
        message = yield from self._heard(step, agent, act, reads)
        if message.passed_on:
            self._dialogue.append(message)
        return message

    def _shown(self, agent: int) -> list[Ref]:
        """The messages that a member is shown: what is new to one that remembers, else the dialogue or its end."""
        said = self._dialogue
        if agent < self._setting.size and self._fields.remember:
            begun = self._read.get(agent)
            first: list[Ref] = [External(_speakers(agent))] if begun is None else []
            own = [each for each in said[begun or 0 :] if each.agent != agent or each.act != acts.SPEAK.name]
            return [*first, *(each.turn for each in own if each.turn is not None)]
        head, tail = said[: self._lead], said[self._lead :]
        tail = tail[-(self._fields.last_n or len(tail)) :]
        room = self._fields.token_budget
        while room is not None and len(tail) > 1 and sum(len(each.text) for each in tail) > room * _CHARACTERS_A_TOKEN:
            tail = tail[1:]
        reader = agent if agent < self._setting.size else None
        return [External(_speakers(reader)), *(each.turn for each in [*head, *tail] if each.turn is not None)]

    def flow(self) -> _Flow:
        """The whole room."""
        fields = self._fields
        ending: Ending | None = (yield from self._begin()) or self._over()
        if ending is None and self._moderator is not None and fields.opens:
            yield from self._said(0, self._moderator, acts.OPEN_ROOM)
        self._lead = len(self._dialogue)
        while ending is None:
            step = self._floor.spoken + 1
            ending = (yield from self._signals(step)) or (yield from self._step(step)) or self._over()
        yield from self._end(fields.steps, ending)
        yield None

    def _over(self) -> Ending | None:
        """How the room ends where it cannot go on."""
        if len(self._floor.speakers) < 2:
            return "vacated"
        return "turns" if self._floor.spoken == self._fields.steps else None

    def _begin(self) -> _Flow:
        """Consent, the topic, and opinions before; returns how the room ends where it cannot begin."""
        people = sorted(self._setting.seats)
        if self._fields.consent and people:
            asked = []
            for seat in people:
                asked.append((yield from self._turn(0, seat, CONSENT)))
            answers = yield asked
            refused = [seat for seat, answer in zip(people, answers, strict=True) if answer.decision != "yes"]
            self._floor = self._floor.without(refused)
        if self._fields.topic == "ask":
            for seat in sorted(self._floor.seats):
                proposed = yield from self._said(0, seat, acts.PROPOSE)
                if self._dialogue and proposed.passed_on:
                    break
            else:
                return "vacated"
        yield from self._questions(0)
        return None

    def _questions(self, step: int) -> _Flow:
        """The questions of measurement before the first step or after the last; people answer before it goes on."""
        asked = []
        for act, before, after in self._setting.questions:
            for _ in range(after if step else before):
                for agent in self._floor.speakers:
                    turn = yield from self._turn(step, agent, act, self._shown(agent) if self._dialogue else ())
                    asked += [turn] if agent in self._floor.seats else []
        if asked:
            yield asked

    def _signals(self, step: int) -> _Flow:
        """What people want out of turn; returns how the room ends where one ends it."""
        wants: set[str] = set()
        for seat in sorted(self._floor.seats):
            signal = yield from self._heard(step, seat, acts.SIGNAL)
            told = signal.decision if isinstance(signal.decision, Signals) else Signals()
            wants |= told.wants
            if told.harm:
                yield from self._turn(step, seat, acts.HARM, [signal.turn])
            if "pause" in told.wants:
                resumed = yield from self._heard(step, seat, acts.RESUME)
                wants |= {"end"} if resumed.decision == "end" else set()
        if "analysis" in wants:
            yield from self._analyze(step)
        return "person" if "end" in wants else None

    def _step(self, step: int) -> _Flow:
        """A remark and a proposal of the moderator, and a turn of the next speaker; returns how the room ends there."""
        proposed: int | None = None
        if self._moderator is not None:
            choices = self._floor.choices()
            settled = [_NEXT.format(choices[0])] if len(choices) == 1 else []
            last = [] if settled or self._floor.latest is None else [_LAST.format(self._floor.latest)]
            # Once in as many turns as there are speakers: votes are no way to fill a room.
            may_end = self._floor.spoken - self._declared >= self._setting.size
            refused = [_REFUSED] if self._declared and not may_end else []
            notes = [_CLOCK.format(step), *settled, *last, *refused, *([_DECLARE] if may_end else [])]
            message = yield from self._said(step, self._moderator, acts.MODERATE, *map(External, notes))
            move = message.decision if isinstance(message.decision, Move) else Move()
            proposed = speaker_called(move.speaker, self._names)
            if move.declared and may_end and (yield from self._confirmed(step)):
                return move.declared
        speaker = self._floor.next(proposed)
        speech = yield from self._said(step, speaker, acts.SPEAK)
        self._floor = self._floor.after(speaker, said=speech.passed_on)
        every = self._fields.analyze_every
        if every and self._floor.spoken % every == 0:
            yield from self._analyze(step)
        return None

    def _confirmed(self, step: int) -> _Flow:
        """Whether the speakers agree that the room ends: somebody says yes, and nobody says no."""
        self._declared, turns = self._floor.spoken, []
        for speaker in self._floor.speakers:
            turns.append((yield from self._turn(step, speaker, acts.CONFIRM, self._shown(speaker))))
        votes = yield turns
        self._dialogue += [vote for vote in votes if vote.passed_on]
        said = [vote.decision for vote in votes if isinstance(vote.decision, bool)]
        return bool(said) and all(said)

    def _analyze(self, step: int) -> _Flow:
        """An analysis of the whole dialogue, unless nothing was said since the last one."""
        if self._analyzer is None or self._analyzed == len(self._dialogue):
            return
        self._analyzed = len(self._dialogue)
        reads = [*self._analyses[-1:], *(each.turn for each in self._dialogue if each.turn is not None)]
        self._analyses.append((yield from self._turn(step, self._analyzer, acts.ANALYZE, reads)))

    def _end(self, step: int, ending: Ending) -> _Flow:
        """How the room ended, the closing remark, opinions after, and what people are asked and told last."""
        agent = self._setting.size if self._fields.others else 0
        ended = yield from self._turn(step, agent, acts.END, [External(_ENDED.format(ending))])
        if self._moderator is not None and self._fields.closes and self._dialogue:
            yield from self._said(step, self._moderator, acts.CLOSE, ended)
        yield from self._questions(step)
        for seat in sorted(self._floor.seats):
            if self._fields.questionnaire:
                yield from self._heard(step, seat, acts.QUESTIONNAIRE, [ended])
                for comment in acts.COMMENTS:
                    yield from self._heard(step, seat, comment)
            if self._fields.debriefing is not None:
                yield from self._heard(step, seat, acts.DEBRIEF, [External(_DEBRIEFING)])
