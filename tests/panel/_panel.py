"""A panel: a moderator picks who speaks next from a text, an analyst listens, and a person may object.

It is written as a schedule of the package would be, from public names, and has acts with wording of their own.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from langchain_core.messages import AIMessage

from opinionsim.classifiers import Item
from opinionsim.engine import Casting, Member, Simulation
from opinionsim.errors import Rejected
from opinionsim.llm import Endpoint, Journal, MemoryJournal, Question, RunCalls, Seat, SlotPool
from opinionsim.measurement import Instrument, Measuring, Queues
from opinionsim.messages import ChatMessage, Message
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.personas import Persona, Population
from opinionsim.prompts import Conditions, load_pack
from opinionsim.registry import NamedPart
from opinionsim.schedules import ActSpec, Schedule, Turn, named
from opinionsim.topics import Claim

NAMES = ("Ada", "Ben", "Cleo")
CLAIM = Claim("trains should be free", "trains", "truth")
SCALE = OpinionScale()


def pick(call: str, text: str, received: tuple[Message, ...]) -> int:
    """The participant a moderator names."""
    named_ones = [agent for agent, name in enumerate(NAMES) if re.search(rf"\b{name}\b", text)]
    if len(named_ones) != 1:
        raise Rejected(f"names {len(named_ones)} of {', '.join(NAMES)}, and must name one")
    return named_ones[0]


def words(call: str, text: str, received: tuple[Message, ...]) -> tuple[str, int]:
    """Which draw it was, and how many messages its author had before it."""
    return call, len(received)


def longest(texts: Sequence[str]) -> int:
    """The longest text, the first of equals."""
    return max(range(len(texts)), key=lambda draw: len(texts[draw]))


PICK = ActSpec(
    "pick",
    "pick",
    "moderation",
    text="{{ task }} You moderate. {% for each in received %}{{ each.role }} said: {{ each.block }} {% endfor %}"
    "Who of {{ roster }} speaks next?",
    variables=("task", "received"),
    values={"roster": ", ".join(NAMES)},
    memory="none",
    parse=pick,
    attempts=2,
    after="none",
)
SPEAK = ActSpec(
    "speak",
    "speak",
    "response",
    text="{{ name }}, you have the floor. {% for each in received %}"
    "{{ 'You' if each.own else each.author or each.role }}: {{ each.block }}{% endfor %} Speak.",
    variables=("name", "received"),
    labelling="you-other",
    draws=2,
    selector=longest,
    parse=words,
)
ANALYSE = ActSpec(
    "analyse",
    "analyse",
    "analysis",
    text="Sum up: {% for each in received %}{{ each.block }}{% endfor %}",
    variables=("received",),
    memory="none",
    unread="skip",
    background=True,
)
OBJECT = ActSpec(
    "object",
    "object",
    "response",
    text="Do you object? {% for each in received %}{{ each.block }}{% endfor %}",
    variables=("received",),
    memory="none",
    unread="skip",
)


class Panel(Schedule):
    """Rounds of a moderated panel: a pick, a speech, an analysis in the background, and perhaps an objection.

    The moderator reads what was said last. Without a valid pick, the next participant in order speaks. Whoever spoke
    against the claim may be objected to.
    """

    n_agents = len(NAMES)
    others = ("moderator", "analyst", "seat")
    acts = named(PICK, SPEAK, ANALYSE, OBJECT)
    needs = ("stance",)
    MODERATOR, ANALYST, SEAT = 3, 4, 5

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.externals = {"opening": "Welcome to the panel."}

    async def decide(self, outcomes: Any) -> AsyncIterator[Turn]:
        """Three or four turns a round."""
        index, last, speaker = 0, (), -1
        for step in range(1, self.steps + 1):
            yield Turn(index, step, self.MODERATOR, "pick", last)
            picked = await outcomes.decision(index)
            speaker = (speaker + 1) % self.n_agents if picked is None else picked
            speech = index + 1
            yield Turn(speech, step, speaker, "speak", (index, *last))
            yield Turn(speech + 1, step, self.ANALYST, "analyse", (speech,))
            index, last = speech + 2, (speech,)
            if await outcomes.opinion(speech) < 0:
                yield Turn(index, step, self.SEAT, "object", (speech,))
                index, last = index + 1, (speech, index)

    def outline(self) -> Iterator[Turn]:
        """As many turns as there can be."""
        for step in range(1, self.steps + 1):
            start = 4 * (step - 1)
            for place, (agent, act) in enumerate(
                ((self.MODERATOR, "pick"), (0, "speak"), (self.ANALYST, "analyse"), (self.SEAT, "object"))
            ):
                yield Turn(start + place, step, agent, act)


def hashed(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()


@dataclass
class Voice:
    """A chat model that is a function of prompt and seed; `faults` says what is wrong with the n-th reply to an act.

    A fault is ``invalid`` (it names nobody), ``refused`` or ``missing`` (no text); it holds for every attempt at it.
    """

    latency: Callable[[int], float] = lambda seed: 0.0
    faults: Callable[[str], str] = lambda prompt: ""
    evidence: str = "scripted"

    def __post_init__(self) -> None:
        self.asked: list[int] = []

    async def call(self, messages: Sequence[ChatMessage], seed: int) -> AIMessage:
        self.asked.append(seed)
        await asyncio.sleep(self.latency(seed))
        prompt = messages[-1].content
        digest = hashed([tuple(each) for each in messages], seed)
        fault = self.faults(prompt)
        if fault == "refused":
            return AIMessage("", additional_kwargs={"refusal": "I decline."})
        if fault == "missing":
            return AIMessage("")
        if "Who of" in prompt:
            return AIMessage("Somebody else." if fault == "invalid" else f"{NAMES[int(digest[:4], 16) % 3]}, please.")
        if prompt.startswith("Judge"):
            return AIMessage(str(int(digest[:4], 16) % 7 + 1))
        return AIMessage("word " * (1 + int(digest[0], 16) % 4) + digest[:6])


class Toy:
    """A classifier that computes: a point of the scale from the text alone."""

    name, needs_claim, reads_context, reads_about = "toy", False, False, False

    def __init__(self) -> None:
        self.scale = SCALE
        self.options: dict[str, Any] = {}
        self.coded: list[str] = []

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        self.coded += [item.text for item in items]
        rows = np.zeros((len(items), 5))
        for row, item in zip(rows, items, strict=True):
            row[int(hashed("toy", item.text)[:4], 16) % 5] = 1.0
        return OpinionEstimates.from_probabilities(SCALE, rows)


class Bench:
    """A classifier that asks: it judges texts with their context, or together with another text, on 1 to 7."""

    name, needs_claim, reads_context, reads_about = "bench", False, True, True

    def __init__(self, voice: Voice, label: str) -> None:
        self.scale = OpinionScale((1, 2, 3, 4, 5, 6, 7))
        self.options = {"model": label}
        self.endpoint = Endpoint(voice)
        self.items: list[Item] = []

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        raise AssertionError("it judges inside runs only")

    async def rate(self, ask: Any, item: Item) -> OpinionEstimates:
        self.items.append(item)
        reply = await ask("judge", [ChatMessage("user", f"Judge {item!r}")])
        rows = np.full((1, 7), np.nan)
        if reply.status == "answered":
            rows[0] = [float(point == int(reply.text)) for point in range(1, 8)]
        return OpinionEstimates.from_probabilities(self.scale, rows)


@dataclass
class Guest:
    """A double at the seat: answers at once, late, or never, by the turn."""

    late: Callable[[int], float | None] = lambda turn: 0.0
    evidence: str = "scripted"

    def __post_init__(self) -> None:
        self.asked: list[int] = []

    async def answer(self, question: Question) -> str:
        self.asked.append(question.turn)
        wait = self.late(question.turn)
        if wait is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(wait)
        return f"I object, {hashed(question.text)[:5]}."


TIMEOUT_S = 5.0


@dataclass
class Session:
    """One run of a panel, with everything it can be asked about afterwards."""

    simulation: Simulation
    journal: Journal
    toy: Toy
    benches: tuple[Bench, Bench]

    @property
    def turns(self) -> list[tuple[Any, ...]]:
        return [
            (turn.index, turn.step, turn.agent, turn.act, turn.reads, *message[:-1])
            for turn, message in self.simulation.engine.graph.transcript()
        ]

    @property
    def opinions(self) -> list[tuple[Any, ...]]:
        found = self.simulation.measuring.estimates
        return sorted((*map(str, key), repr(estimate)) for key, estimate in found.items())


def session(
    journal: Journal | None = None,
    *,
    steps: int = 4,
    slots: int = 1,
    lookahead: int | None = None,
    voice: Any = None,
    guest: Any = None,
    queues: Queues | None = None,
) -> Session:
    """A panel ready to run."""
    schedule = Panel(steps)
    voice = voice or Voice()
    population = Population(tuple(Persona(name, None, {"job": "driver"}) for name in NAMES), (1, -1, None))
    casting = Casting(
        population=population,
        schedule=schedule,
        pack=load_pack(),
        claim=CLAIM,
        scale=SCALE,
        memory=NamedPart(name="reflective"),
        conditions=Conditions(masked=False),
        task="Keep to the point.",
    )
    actors = casting.actors()
    cast = [
        Member(actor, name=persona.name, endpoint=Endpoint(voice), opinion=opinion, attributes=persona.attributes)
        for actor, persona, opinion in zip(actors, population.personas, population.opinions, strict=False)
    ]
    seat = Seat(guest or Guest(), timeout_s=TIMEOUT_S)
    for actor in actors[len(population) :]:
        person = actor.role == "seat"
        cast.append(
            Member(actor, actor.role, seat if person else Endpoint(voice), evidence="human" if person else "scripted")
        )
    toy, civility, agreement = Toy(), Bench(voice, "civility"), Bench(voice, "agreement")
    instruments = [
        Instrument.of(toy, ["response"]),
        Instrument.of(civility, ["response"], "civility", context=True),
        Instrument.of(agreement, ["response"], "agreement", about="reads"),
    ]
    held = MemoryJournal() if journal is None else journal
    calls = RunCalls("panel", held, [member.endpoint for member in cast], SlotPool(slots))
    measuring = Measuring(instruments, queues or Queues(), calls, CLAIM, [member.author for member in cast])
    simulation = Simulation(schedule, cast, calls, measuring=measuring, lookahead=lookahead)
    return Session(simulation, held, toy, (civility, agreement))


async def carried_out(each: Session) -> Session:
    """Run a panel and code all its texts."""
    await each.simulation.run()
    await each.simulation.measuring.code_all(each.simulation.texts(), each.simulation.text)
    return each
