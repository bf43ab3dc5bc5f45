"""People at seats for tests: doubles who answer every form, as a function of what they are asked."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opinionsim.llm import Question
from opinionsim.running import replay, run
from opinionsim.specification import load_experiment
from tests.support.running import assert_same, finished, watched

#: Seconds of an answer that never comes.
NEVER_S = math.inf


def fitting(question: Question, digits: str) -> str:
    """An answer that fits the form of a question and follows from hexadecimal digits."""
    form, numbers = question.form, [int(digit, 16) for digit in digits]
    if form.kind == "ranking":
        return form.written([str(1 + numbers[place] % 3) for place, _ in enumerate(form.items)])
    if form.kind == "ratings":
        return form.written({item: str(form.points[numbers[place] % 7]) for place, item in enumerate(form.items)})
    if form.kind == "choice":
        return form.written(form.items[numbers[0] % len(form.items)])
    return "" if form.kind == "signal" else f"I say {digits[:6]}."


def digits_of(question: Question) -> str:
    """Hexadecimal digits that follow from what is asked, and not from when."""
    told = (question.turn, question.call, question.attempt, question.text, question.reason)
    return hashlib.sha256(repr((told, question.messages)).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Double:
    """Says what `says` gives, or what fits the form, after the seconds that `late` gives; notes what it was asked."""

    says: Callable[[Question], str | None] = lambda question: None
    late: Callable[[Question], float] = lambda question: 0.0
    evidence: str = "scripted"
    asked: list[Question] = field(default_factory=list)
    left: int = 0

    async def answer(self, question: Question) -> str:
        self.asked.append(question)
        try:
            if (seconds := self.late(question)) == NEVER_S:
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.left += 1
            raise
        said = self.says(question)
        return fitting(question, digits_of(question)) if said is None else said

    @property
    def turns(self) -> list[int]:
        """Turns that asked, in the order in which they did."""
        return [question.turn for question in self.asked]


class Nobody:
    """A person of whom nothing may be asked."""

    evidence = "scripted"

    async def answer(self, question: Question) -> str:
        raise AssertionError(f"turn {question.turn} asks a person although the answer is on record")


def killed_while_asked(spec: dict[str, Any], store: str, turn: int) -> None:
    """Carry out an experiment until a turn asks a person: then the process is killed."""

    def says(question: Question) -> None:
        if question.turn == turn:
            os.kill(os.getpid(), signal.SIGKILL)

    run(load_experiment(spec), store, people=Double(says))


def check_person_takes_part(spec: dict[str, Any], *words: str) -> None:
    """Sequential, out of order and replayed alike; nobody is asked in `words` of models, or told more than others say.

    Parameters
    ----------
    spec : dict
        A specification with seats.
    *words : str
        What prompts of models hold that no question to a person does.
    """
    person = Double()
    expected = finished(spec, "one.sqlite", slots=1, people=Double())
    model, _ = watched()
    found = finished(spec, "many.sqlite", model, slots=64, people=person)
    assert_same(found, expected)
    assert [each.difference for each in replay(found)] == [""]
    assert found.runs["evidence"].tolist() == ["scripted"]
    own = {agent for agent, model_of in enumerate(found.agents["model"]) if not model_of}
    assert sorted(person.turns) == found.turns[found.turns["agent"].isin(own)]["turn"].tolist()
    assert not any(word in question.text for question in person.asked for word in words)
    # What persons have said is on record: nobody is asked again.
    assert_same(finished(spec, "many.sqlite", people=Nobody()), expected)
