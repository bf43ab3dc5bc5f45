"""Interactions of recorded people, and of agents that play them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from opinionsim import schedules
from opinionsim.messages import Message
from opinionsim.registry import part
from opinionsim.schedules import MAX_STEPS, ActSpec, External, Interaction, Setting, Turn, Yoked, named

#: The acts of agents whose texts people have too.
_ASKED = (schedules.REPORT, schedules.PROBE, schedules.SELF_REPORT)


@part("interaction", name="recorded")
class RecordedPeople(Interaction):
    """What people said and rated, imported from a table. No calls are made.

    :func:`opinionsim.import_panel` writes its fields. A run is one unit of the table, a person or a group, on one
    topic; the number of its replicate equals that of the unit, so all runs of a unit form one block.
    """

    acts = named(
        ActSpec("opinion", "recorded", "opinion", memory="none", audience="nobody"),
        *(ActSpec(kind, "recorded", kind, memory="none") for kind in ("post", "speech", "response")),
        *(replace(act, template="recorded", memory="none") for act in _ASKED),
    )
    played_by = ("people",)
    needs_task = False
    role_play = False
    recorded = True

    content: str
    """Digest of the table and its mapping."""
    units: tuple[int, ...] = Field(min_length=1, strict=False)
    """Numbers of the units, from 0, that were recorded under these conditions."""
    steps: int = Field(ge=0, le=MAX_STEPS)
    """Last step of the record."""
    rated: tuple[int, ...] = Field(strict=False)
    """Steps at which people gave ratings, in order. Step 0 is before they read anything."""
    ratings: dict[str, tuple[str, ...]] = Field(strict=False)
    """Variables that people rated, each with the kinds of text that have a rating."""
    conditions: dict[str, str] = Field(default_factory=dict)
    """Values of the design factors, such as the wording of the statement."""
    pass_on: bool = False
    """Whether the terms of the table allow you to pass on its texts."""
    collected: str | None = None
    """Last day of data collection, as YYYY-MM-DD."""

    @property
    def rating_steps(self) -> Sequence[int]:
        """Steps at which people rated."""
        return self.rated

    @property
    def rated_kinds(self) -> Mapping[str, tuple[str, ...]]:
        """Variables that people rated."""
        return self.ratings

    def replicates(self, n: int) -> Sequence[int]:
        """Numbers of the units."""
        return self.units

    def steps_for(self, size: int) -> int:
        """The last step of the record."""
        return self.steps

    def identity(self, setting: Setting) -> dict[str, Any]:
        """Part of a run's identity: the content of the record, and the conditions."""
        return {"kind": self.kind, "content": self.content, "conditions": self.conditions}

    def externals(self, setting: Setting) -> Mapping[str, Message | str]:
        """Messages that people read but no participant wrote."""
        return setting.record[1] if setting.record else {}

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """The recorded turns; none if there is no record yet."""
        for index, (step, agent, kind, reads) in enumerate(setting.record[0] if setting.record else ()):
            yield Turn(index, step, agent, kind, tuple(External(ref) if isinstance(ref, str) else ref for ref in reads))


@part("interaction", name="twins")
class Twins(Yoked):
    """An agent plays each recorded person: it reads what the person read and then states its belief.

    The agent has the attributes and the first opinion of its person. It reads everything that the person read between
    two ratings at once, in the same order. If the person read nothing, the twin only answers the question.
    """

    acts = named(schedules.REVIEW, schedules.REPORT)
    stands_in = True

    conditions: dict[str, str] = Field(default_factory=dict)
    """Conditions of the record."""

    def counterparts(self, replicate: int, n: int) -> Sequence[int]:
        """The same unit of the record."""
        return (replicate,)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``review`` for each rating of a person except the first, or a ``report`` if the person read nothing."""
        for turn in super().turns(setting):
            yield turn if turn.reads else Turn(turn.index, turn.step, turn.agent, schedules.REPORT.name)
