"""A moderator after any schedule, who reads all answers at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from opinionsim.errors import Rejected, ScheduleError
from opinionsim.messages import Message
from opinionsim.schedules._dyadic_acts import INSTRUCT, MODERATE
from opinionsim.schedules._turns import ActSpec, AnySchedule, Ref, StaticSchedule, Turn, called, closing, moved, named
from opinionsim.schedules._wrapped import Wrapped

#: Role of the moderator.
MODERATOR = "moderator"

#: What a moderator can decide by its values.
Verdict = Literal["accepted", "rejected", "undecided"]
_VERDICT = re.compile(r"^\W*verdict\W+(accepted|rejected|undecided)\b", re.IGNORECASE | re.MULTILINE)


def read_verdict(call: str, text: str, received: tuple[Message, ...]) -> Verdict:
    """Read the verdict from a separate line of a moderator's text.

    Raises
    ------
    Rejected
        If the text states no verdict, or several different ones.
    """
    found: set[Any] = {each.lower() for each in _VERDICT.findall(text)}
    if len(found) != 1:
        raise Rejected(
            "a line `Verdict: accepted`, `Verdict: rejected` or `Verdict: undecided` is needed; "
            f"the text has {'several that differ' if found else 'none'}"
        )
    verdict: Verdict = found.pop()
    return verdict


class _Moderated(Wrapped):
    """A schedule with one more member, which acts once, after all turns."""

    def __init__(self, schedule: StaticSchedule, automatic: ActSpec | None, decides: bool) -> None:
        super().__init__(schedule)
        self.others = (*schedule.others, MODERATOR)
        moderate = replace(MODERATE, labelling=self.moderated)
        if decides:
            moderate = replace(moderate, parse=read_verdict, after="none", formal=True)
        self.acts = named(*schedule.acts.values(), moderate, *([] if automatic is None else [automatic]))
        self._automatic = automatic
        self._agent = self.n_agents + len(schedule.others)

    def turns(self) -> Iterator[Turn]:
        """The turns of the schedule between those of the moderator."""
        shift = int(self._automatic is not None)
        if self._automatic is not None:
            yield Turn(0, min(1, self.steps), self._agent, self._automatic.name)
        read: list[Ref] = list(range(shift))
        index = shift
        for turn in self._schedule.turns():
            yield replace(turn, index=turn.index + shift, reads=moved(turn.reads, shift))
            index += 1
            if turn.agent < self.n_agents and self.acts[turn.act].heard:
                read.append(turn.index + shift)
        yield Turn(index, self.steps, self._agent, MODERATE.name, tuple(read))

    def closing(self) -> Mapping[int, tuple[Ref, ...]]:
        """Messages shown with questions after the last step, without those of the moderator."""
        shift = int(self._automatic is not None)
        return {agent: moved(reads, shift) for agent, reads in closing(self._schedule).items()}


def with_moderator(schedule: AnySchedule, *, automatic: ActSpec | None = None, decides: bool = False) -> AnySchedule:
    """Add a moderator to a schedule, who reads everything that participants said to others after all turns.

    Parameters
    ----------
    schedule : StaticSchedule
        The schedule to moderate.
    automatic : ActSpec, optional
        The act in which the moderator writes its own instructions, :data:`INSTRUCT` or one like it. Its turn comes
        first and reads nothing. Default none.
    decides : bool
        Whether the moderator's text must state a verdict (:func:`read_verdict`).

    Raises
    ------
    ScheduleError
        If the turns of the schedule are not known in advance.
    """
    if not isinstance(schedule, StaticSchedule):
        raise ScheduleError(
            f"moderator: needs turns that are known in advance, but {called(schedule)} decides them during the run"
        )
    return _Moderated(schedule, automatic, decides)


#: Most words of the instructions that a moderator writes for itself, as the prompt pack asks for (Plurals; B5).
_MOST_WORDS = 50


def automatic_instructions(marker: str) -> ActSpec:
    """The act in which a moderator writes its own instructions.

    Parameters
    ----------
    marker : str
        Words with which the reply must begin, in any case and spacing; a few polite words may come before them.
    """
    signs = re.findall(r"\w+|[^\w\s]", marker)
    courtesy, spelled = r"\s*(?:[^\n:]{1,60}[!.,\n]\s*)?\W*", r"\s*".join(map(re.escape, signs))
    opening = re.compile(rf"{courtesy}{spelled}\W*", re.IGNORECASE)

    def read(call: str, text: str, received: tuple[Message, ...]) -> str:
        found = opening.match(text)
        if found is None:
            raise Rejected(f"the reply must begin with {marker!r}")
        instructions = text[found.end() :].strip()
        if not instructions:
            raise Rejected(f"nothing follows {marker!r}")
        if (words := len(instructions.split())) > _MOST_WORDS:
            raise Rejected(f"the instructions have {words} words; at most {_MOST_WORDS} are possible")
        return instructions

    return replace(INSTRUCT, parse=read, formal=True)
