"""Sessions that look for a consensus: small ones, and a model that notes its prompts and says what a test gives it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

import opinionsim as osim
from opinionsim.assembly import LoadedParts, assemble
from opinionsim.classifiers import Item
from opinionsim.engine import Simulation
from opinionsim.llm import Endpoint, MemoryJournal, RunCalls, ScriptedChatModel, Seat, SlotPool
from opinionsim.measurement import Measuring, Queues
from opinionsim.messages import ChatMessage, Message
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.prompts import load_pack
from opinionsim.schedules import Turn
from opinionsim.specification import load_experiment
from opinionsim.testing import run_virtual

REFUSED = AIMessage("", additional_kwargs={"refusal": "I will not."})
#: Tasks by the phrase that stands in the prompts of each and in no other.
_CUES = {phrase: task for task, phrase in load_pack("deliberation").marks.cues.items()}

TOPIC: dict[str, Any] = {
    "definition": {
        "name": "cars",
        "title": "Cars",
        "category": "policy",
        "question": "Should the town centre be closed to cars?",
        "claims": {"for": "The town centre should be closed to cars.", "against": "It should stay open to cars."},
    },
    "framing": "for",
}


def session(size: int = 3, **fields: Any) -> dict[str, Any]:
    """A specification of a small session; keys with ``__`` stand for paths, others for fields of the interaction."""
    spec: dict[str, Any] = {
        "name": "session",
        "seed": 1,
        "topic": TOPIC,
        "population": {"size": size},
        "interaction": {"kind": "consensus", "candidates": 2, "rounds": 0},
        "roles": {"mediator": {}},
        "measurement": {},
        "model": {"name": "scripted"},
    }
    for path, value in fields.items():
        *folders, last = path.split("__") if "__" in path else ("interaction", path)
        node = spec
        for folder in folders:
            node[folder] = dict(node.get(folder, {}))
            node = node[folder]
        node[last] = value
    if "drafters" in spec["interaction"]:
        spec["interaction"].pop("candidates", None)
    predicts = "predicted" in spec["interaction"].get("ballots", ()) and "predictor" not in spec["interaction"]
    return {**spec, "roles": {**spec["roles"], **({"predictor": {}} if predicts else {})}}


def with_texts(spec: dict[str, Any]) -> dict[str, Any]:
    """The session with two texts that were written beforehand beside two personas."""
    without = {key: value for key, value in spec.items() if key != "population"}
    return {**without, "cast": [{"text": "I want it > all."}, {}, {"text": "I do not."}, {}]}


@st.composite
def sessions(draw: st.DrawFn) -> dict[str, Any]:
    """Small sessions of every kind."""
    fields: dict[str, Any] = {"candidates": draw(st.integers(2, 4)), "rounds": draw(st.integers(0, 2))}
    fields["ballot"] = draw(st.sampled_from(["ranking", "rating"]))
    fields["ballots"] = draw(st.sampled_from([["stated"], ["predicted"], ["stated", "predicted"]]))
    fields["ties"] = draw(st.sampled_from(["allowed", "random", "ballots"]))
    rules: list[Any] = ["schulze", "borda", "copeland", "plurality", {"kind": "approval", "top": 1}]
    if fields["ballot"] == "rating":
        rules += ["utilitarian", "nash", "egalitarian", {"kind": "approval", "threshold": 4}]
    fields["rule"] = draw(st.sampled_from(rules))
    fields["standing"] = draw(st.sampled_from([[], ["opinions"], ["position"], ["opinions", "position"]]))
    passes = draw(st.integers(0, 2))
    rated = passes or (fields["ballot"] == "rating" and "stated" in fields["ballots"])
    position = draw(st.sampled_from([None, "before", "after"] if rated else [None, "before"]))
    fields["ratings"] = {"position": position, "passes": passes}
    if rated:
        fields["leave_one_out"] = draw(st.integers(0, 1))
        fields["controls"] = draw(st.sampled_from([[], ["Others say so."]]))
    if fields["rounds"]:
        fields["incumbent"] = draw(st.booleans())
        fields["between"] = draw(st.sampled_from([None, "probe", "self-report"]))
    if fields["ballots"] == ["stated", "predicted"]:
        elects = draw(st.sampled_from(["stated", "predicted"]))
        fields |= {"choose_by": elects, **({"shortlist": 2} if elects == "stated" and draw(st.booleans()) else {})}
    if "predicted" in fields["ballots"] and draw(st.booleans()):
        fields |= {"predictor": "instrument", "measurement__instruments": [PREDICTING]}
        if fields["rule"] in ("utilitarian", "nash", "egalitarian"):
            fields["rule"] = {"kind": fields["rule"], "transform": "exp"}
    if draw(st.booleans()):
        fields["measurement__self_report"] = {"before": draw(st.integers(0, 1)), "after": 1}
    spec = session(4, **fields)
    return with_texts(spec) if draw(st.booleans()) else {**spec, "seed": draw(st.integers(0, 9))}


def task_of(prompt: str) -> str:
    """The task that a prompt sets."""
    return next(name for phrase, name in _CUES.items() if phrase in prompt)


class Asked(NamedTuple):
    """One call of a model."""

    task: str
    system: str
    prompt: str
    seed: int


class NotingModel(ScriptedChatModel):
    """The scripted model, but for what a test gives it to say; it notes what it was asked."""

    _says: Callable[[Asked], str | AIMessage | None] = PrivateAttr()
    _asked: list[Asked] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[Asked]:
        """Its calls so far."""
        return self._asked

    def of(self, task: str) -> list[Asked]:
        """Its calls for a task."""
        return [each for each in self._asked if each.task == task]

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        *before, last = [each.content for each in messages]
        asked = Asked(task_of(last), "\n".join(before), last, kwargs["seed"])
        self._asked.append(asked)
        said = self._says(asked)
        if said is None:
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said) if isinstance(said, str) else said)])


def noting(says: Callable[[Asked], str | AIMessage | None] = lambda asked: None) -> NotingModel:
    """A model that says what `says` gives, and what the scripted model says where that is None."""
    model = NotingModel()
    model._says = says
    return model


# -- sessions on a virtual clock -------------------------------------------------------------------------


def hashed(*words: object) -> str:
    """Hexadecimal digits that follow from some words."""
    return hashlib.sha256(repr(words).encode("utf-8", "surrogatepass")).hexdigest()


def reply(task: str, prompt: str, digits: str) -> str:
    """A reply that can be read, as a function of a prompt and some digits."""
    if task in ("draft", "revise"):
        completed = "in one paragraph:" in prompt
        return f"We say {digits[:6]}." if completed else f"<statement>We say {digits[:6]} > all.</statement>"
    if task in ("rank", "predict"):
        letters = re.findall(r"^Statement ([A-Z]+):$", prompt, re.MULTILINE)
        order = sorted(letters, key=lambda letter: hashed(letter, digits))
        signs = [" = " if digit in "0123" else " > " for digit in digits[: len(order) - 1]]
        return "<ranking>" + "".join(map("".join, zip(order, [*signs, ""], strict=True))) + "</ranking>"
    if task in ("rate", "rate-position", "predict-rating"):
        return f"Agreement: {1 + int(digits[0], 16) % 7}\nQuality: {1 + int(digits[1], 16) % 7}"
    return str(int(digits[0], 16) % 5 - 2) if task == "self-report" else f"I say {digits[:6]}."


@dataclass
class Voices:
    """A chat model that is a function of messages and seed.

    `moody` ones refuse, fall silent, are cut off or say what cannot be read, each in a few of a hundred replies.
    """

    latency: Callable[[int], float] = lambda seed: 1.0
    moody: bool = False
    asked: list[tuple[float, str, int]] = field(default_factory=list)

    async def call(self, messages: Sequence[ChatMessage], seed: int, max_tokens: int | None = None) -> AIMessage:
        prompt, digits = messages[-1].content, hashed([tuple(each) for each in messages], seed)
        self.asked.append((asyncio.get_running_loop().time(), task_of(prompt), seed))
        await asyncio.sleep(self.latency(seed))
        mood = int(digits[:4], 16) % 100 if self.moody else 100
        if mood < 4:
            return AIMessage("", additional_kwargs={"refusal": "I decline."}) if mood < 2 else AIMessage(" ")
        if mood < 6:
            return AIMessage("<statement>We", response_metadata={"finish_reason": "length"})
        return AIMessage("I cannot say." if mood < 16 else reply(task_of(prompt), prompt, digits[4:]))


def seated(spec: Mapping[str, Any], *members: int | str) -> dict[str, Any]:
    """A specification with seats for some citizens, by number, and roles."""
    found = {**spec, "roles": {**spec["roles"], **{role: {"seat": {}} for role in members if isinstance(role, str)}}}
    if any(isinstance(member, int) for member in members):
        size = found.pop("population", {}).get("size", 0)
        cast = found.get("cast", [{}] * size)
        found["cast"] = [{"seat": {}} if agent in members else each for agent, each in enumerate(cast)]
    return found


@osim.part("classifier")
class SharedLetters:
    """A predictor for tests: agreement follows from the two texts, whatever they say; of one in thirty it says none."""

    name = "shared-letters"
    needs_claim, reads_context, reads_about = False, False, True

    def __init__(self, scale: OpinionScale | None = None) -> None:
        self.scale = scale or OpinionScale()

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        numbers = [int(hashed(item.text, item.about)[:6], 16) for item in items]
        probabilities = np.array([np.eye(len(self.scale))[number % len(self.scale)] for number in numbers])
        silent = np.array([float(number % 30 == 0) for number in numbers])
        return OpinionEstimates.from_probabilities(self.scale, probabilities, silent)


#: Predicted agreement by an instrument; beside ``predictor: instrument`` and ballots among which are predicted ones.
PREDICTING = {
    "variable": "predicted_agreement",
    "classifier": "tests.support.sessions:SharedLetters",
    "scale": {"points": [1, 2, 3, 4, 5, 6, 7]},
    "texts": ["statement"],
    "about": "reads",
}


class Ended(NamedTuple):
    """A session that was carried out."""

    rows: list[tuple[Any, ...]]
    """Turns and messages, as values."""
    turns: list[tuple[Turn, Message]]
    seconds: float
    """Virtual time of the last message."""
    error: str
    opinions: dict[Any, str]
    """What its instruments say, by instrument, turn and second turn, as a record has it.

    What the schedule awaited of texts beside those that an author was shown stands in the journal alone.
    """


def played(
    spec: Mapping[str, Any],
    voices: Any = None,
    *,
    journal: MemoryJournal | None = None,
    slots: int = 10_000,
    seats: Mapping[int | str, Seat] | None = None,
    until: float | None = None,
) -> Ended:
    """Carry out the first run of a specification on a virtual clock, as far as `until` seconds."""
    experiment = load_experiment(seated(spec, *(seats or ())))
    planned = experiment.runs[0]
    parts = assemble(planned, experiment.resources)
    loaded = LoadedParts(experiment, seats=seats)
    client = Voices() if voices is None else voices
    cast = [
        member if isinstance(member.endpoint, Seat) else replace(member, endpoint=Endpoint(client))
        for member in loaded.cast(planned.spec, parts)
    ]
    calls = RunCalls(planned.run_id, journal or MemoryJournal(), [each.endpoint for each in cast], SlotPool(slots))
    measuring = Measuring(loaded.instruments(planned.spec), Queues(), calls, parts.claim)
    simulation = Simulation(parts.schedule, cast, calls, measuring=measuring)

    async def story() -> tuple[float, str]:
        work, error = asyncio.ensure_future(simulation.run()), ""
        done, _ = await asyncio.wait([work], timeout=until)
        if not done:
            work.cancel()
        try:
            await work
        except osim.OpinionSimError as failure:
            error = str(failure)
        except asyncio.CancelledError:
            error = "killed"
        seconds = asyncio.get_running_loop().time()
        if not error:
            await measuring.code_all(simulation.texts(), simulation.text, urgent=True)
        return seconds, error

    seconds, error = run_virtual(story())
    turns = list(simulation.engine.graph.transcript())
    rows = [
        (turn.index, turn.step, turn.agent, turn.act, turn.reads, message.text, message.status, message.decision)
        for turn, message in turns
    ]
    shown = {turn.index: {None, *turn.reads} for turn, _ in turns}
    opinions = {
        tuple(key): repr(each.value) for key, each in measuring.estimates.items() if key.about in shown[key.turn]
    }
    return Ended(rows, turns, seconds, error, opinions)
