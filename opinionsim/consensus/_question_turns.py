"""Questions for discussion that one agent writes after examples."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from opinionsim import schedules
from opinionsim.consensus._session_acts import QUESTION
from opinionsim.errors import Rejected, SpecError, quoted
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.messages import Message, Said
from opinionsim.registry import part

#: A question has more characters than this.
_SHORTEST = 15
_PREFIX = re.compile(r"^[\W_]{0,9}question[\W_]{0,9}:[\s*_]*", re.IGNORECASE | re.MULTILINE)


def same_question(text: str) -> str:
    """Return a key that is equal for questions that differ only in case and spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split()).casefold()


def read_question(call: str, text: str, received: tuple[Message, ...], examples: Sequence[str] = ()) -> Said:
    """Read the question in a reply (D1), as its words and as the decision.

    The question is the text after ``Question:``, or the whole reply, up to the end of the line.

    Raises
    ------
    Rejected
        If it has 15 characters or fewer, lacks the word "should", or equals one of the received messages or further
        examples.
    """
    prefix = _PREFIX.search(text)
    lines = text[prefix.end() if prefix else 0 :].strip().splitlines()
    question = lines[0].strip(" \t*\"'\u201c\u201d") if lines else ""
    if len(question) <= _SHORTEST:
        raise Rejected(f"a question has more than {_SHORTEST} characters; got {question!r}")
    if "should" not in question.casefold():
        raise Rejected(f"a question contains the word 'should'; got {quoted(question, 80)}")
    if same_question(question) in map(same_question, [*(each.text for each in received), *examples]):
        raise Rejected(f"{quoted(question, 80)} is one of the examples")
    return Said(question, question)


@part("interaction", name="questions")
class QuestionsInteraction(schedules.Interaction):
    """One agent writes discussion questions, each after reading randomly drawn examples (Bakker et al. 2022; D1).

    A reply is a question if it has more than 15 characters, contains "should", and equals none of the examples,
    including those not shown. Otherwise, the agent is asked again. A repeated question, or a turn without a question,
    leads to a further turn. New questions never become examples.
    """

    played_by = ("chat models",)
    prompts = "deliberation"
    role_play = False
    needs_task: ClassVar[bool] = False

    messages: str | tuple[str, ...]
    """The examples, or the path of a file: YAML or JSON with a list under `messages`, or otherwise one example per
    line."""
    count: int = Field(ge=1, le=schedules.MAX_STEPS)
    """Number of questions to write."""
    shown: int = Field(10, ge=1)
    """Number of examples, all different, that the agent sees in each turn."""
    most: int | None = Field(None, ge=1, le=schedules.MAX_STEPS)
    """Maximum number of turns. If they are used up, there may be fewer questions than `count`. Null allows twice as
    many turns as questions."""

    acts = schedules.named(replace(QUESTION, parse=read_question))

    def steps_for(self, size: int) -> int:
        """Maximum number of turns, one in each step."""
        return 2 * self.count if self.most is None else self.most

    def conflicts(self, size: int) -> Iterator[schedules.Conflict]:
        """Problems for a population of `size` agents: more than one, fewer turns than questions, blank examples."""
        if size != 1:
            yield ("kind",), f"'questions' needs exactly one agent; got {size}: give population: {{size: 1}}"
        if self.most is not None and self.most < self.count:
            yield ("most",), f"must be at least count, here {self.count}; got {self.most}"
        yield from schedules.blank_messages(self.messages)
        yield from super().conflicts(size)

    def check(self, setting: schedules.Setting) -> None:
        """Refuse fewer examples than each turn shows."""
        if (given := len(setting.messages(self.messages))) < self.shown:
            raise SpecError(
                f"{given} examples; shown = {self.shown} in each turn needs as many", "interaction.messages"
            )

    def identity(self, setting: schedules.Setting) -> dict[str, Any]:
        """Identity that includes the content of examples, not their file."""
        examples = digest(canonical_json(setting.messages(self.messages)))
        return {**super().identity(setting), "messages": examples}

    def externals(self, setting: schedules.Setting) -> Mapping[str, Message | str]:
        """The examples, numbered from 0."""
        return {f"external-{i}": text for i, text in enumerate(setting.messages(self.messages))}

    def schedule(self, setting: schedules.Setting) -> schedules.AnySchedule:
        """A schedule whose act knows all examples, not only those shown."""
        made = super().schedule(setting)
        read = partial(read_question, examples=setting.messages(self.messages))
        made.acts = schedules.named(replace(QUESTION, parse=read))
        return made

    def outline(self, setting: schedules.Setting) -> Iterator[schedules.Turn]:
        """The maximum number of turns."""
        rng, names = setting.rng, [schedules.External(name) for name in self.externals(setting)]
        for index in range(self.steps_for(setting.size)):
            drawn = rng.choice(len(names), self.shown, replace=False).tolist()
            yield schedules.Turn(index, index + 1, 0, QUESTION.name, tuple(names[each] for each in drawn))

    async def decide(self, setting: schedules.Setting, outcomes: schedules.Outcomes) -> AsyncIterator[schedules.Turn]:
        """One turn for each requested question, all at once, and another as soon as a turn fails."""
        left = self.outline(setting)
        for _, turn in zip(range(self.count), left, strict=False):
            yield turn
        known, index = set[str](), 0
        while len(known) < self.count and index < self.steps_for(setting.size):
            question = await outcomes.decision(index)
            index += 1
            if question is not None and same_question(question) not in known:
                known.add(same_question(question))
            elif further := next(left, None):
                yield further
