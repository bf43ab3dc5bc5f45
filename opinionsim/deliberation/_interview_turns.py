"""Interviews, in which each agent answers all questions at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from opinionsim.deliberation._structure_acts import INTERVIEW
from opinionsim.errors import Rejected
from opinionsim.registry import part
from opinionsim.schedules import ActSpec, AskedOnce, Conflict, named

#: Line between two answers.
_SEPARATOR = "====="


def read_answers(text: str, questions: int) -> tuple[str, ...]:
    """The answers of an interview.

    Parameters
    ----------
    text : str
        A reply, with a line ``=====`` between answers; such a line at its beginning or end does not count.
    questions : int
        Required number of answers.

    Raises
    ------
    Rejected
        If there are more or fewer, or one is empty.
    """
    marker = re.escape(_SEPARATOR)
    answers = [each.strip() for each in re.split(rf"^[ \t]*{marker}[ \t]*$", text, flags=re.MULTILINE)]
    answers = answers[1:] if len(answers) > 1 and not answers[0] else answers
    answers = answers[:-1] if len(answers) > 1 and not answers[-1] else answers
    if len(answers) != questions:
        raise Rejected(f"the interview has {questions} questions; the reply has {len(answers)} answers")
    if not all(answers):
        raise Rejected(f"the answer to question {answers.index('') + 1} is empty")
    return tuple(answers)


@part("interaction", name="interview")
class InterviewInteraction(AskedOnce):
    """Each agent answers all questions of an interview in one reply (Plurals, Ashkinaze et al. 2025; B6)."""

    prompts = "deliberation"
    needs_task: ClassVar[bool] = False

    questions: tuple[str, ...] = Field(min_length=1)
    """The questions, in order."""
    words: int | None = Field(None, ge=1)
    """Number of words that prompts request for each answer. With null, prompts do not mention length."""

    @property
    def acts(self) -> Mapping[str, ActSpec]:  # type: ignore[override]
        """All answers of an agent; after a reply with the wrong number of answers, the engine asks again."""
        numbered = "\n".join(f"{number}. {question}" for number, question in enumerate(self.questions, 1))
        words, asked = "" if self.words is None else str(self.words), len(self.questions)
        values = {"questions": numbered, "words": words, "separator": _SEPARATOR}
        return named(replace(INTERVIEW, values=values, parse=lambda _, text, __: read_answers(text, asked)))

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, including blank questions."""
        for place, question in enumerate(self.questions):
            if not question.strip():
                yield ("questions", place), "must not be blank"
        yield from super().conflicts(size)
