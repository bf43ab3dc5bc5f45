"""Interactions in which agents read posts of others, and what becomes of a turn when there is none to read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from opinionsim.documents import DocumentModel
from opinionsim.schedules._acts import REPORT, REVIEW, WRITE
from opinionsim.schedules._interaction import Conflict, NetworkedInteraction, Setting
from opinionsim.schedules._ties import TieChange, tie_changes
from opinionsim.schedules._turns import ActSpec, AnySchedule, Schedule, StaticSchedule, Turn, named

_POSTS = named(WRITE, REVIEW)
_POSTS_OR_REPORTS = named(WRITE, replace(REVIEW, unread=REPORT.name), REPORT)


class SkipsOf(DocumentModel):
    """Another cell, whose skipped turns are left out here as well."""

    cell: str = Field(min_length=1)
    """Label of the cell: its axes with their values, as in `cognition.confirmation_bias=weak`."""


class PostsInteraction(NetworkedInteraction):
    """Base of interactions in which agents write posts, and review posts of others.

    A post that is refused or empty is received by nobody. Who is heard then depends on who refuses, and so do the
    opinions that are measured, even if nobody is influenced: see docs/missing.md.
    """

    on_skip: Literal["skip", "report"] = "skip"
    """What an agent does where all posts it was to read are refused or empty: `skip` nothing; `report` its belief
    without having read, so that the number of reports does not depend on refusals."""
    skips: SkipsOf | None = None
    """Cell whose skipped turns are left out in the same replicate of this one, with the refused ones they waited for,
    so that the same agents are asked to report on the same occasions. Its runs are carried out first."""

    @property
    def acts(self) -> Mapping[str, ActSpec]:  # type: ignore[override]
        """A post, a review, and with ``on_skip: report`` a report in its place."""
        return _POSTS_OR_REPORTS if self.on_skip == "report" else _POSTS

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, skips of a schedule that is not known beforehand included."""
        if self.skips is not None and self.adaptive:
            yield ("skips",), f"needs turns that are known beforehand; {self.kind!r} decides them as it goes on"
        yield from super().conflicts(size)

    def schedule(self, setting: Setting) -> AnySchedule:
        """The schedule of a run."""
        made: AnySchedule = self.arranged(setting)
        made.acts = self.acts
        return made

    def arranged(self, setting: Setting) -> Any:
        """The schedule of a run, with the acts of ``on_skip: skip``."""
        return super().schedule(setting)


class _Without(Schedule):
    """A static schedule without some of its turns; the others are numbered anew."""

    def __init__(self, schedule: StaticSchedule, dropped: Collection[int]) -> None:
        self.n_agents, self.others, self.steps = schedule.n_agents, schedule.others, schedule.steps
        self.externals, self.needs, self.acts = schedule.externals, schedule.needs, schedule.acts
        self._schedule = schedule
        self._dropped = frozenset(dropped)

    @property
    def changes(self) -> Sequence[TieChange]:
        """Changes of the network."""
        return tie_changes(self._schedule)

    def turns(self) -> Iterator[Turn]:
        place: dict[int, int] = {}
        for turn in self._schedule.turns():
            if turn.index in self._dropped:
                continue
            reads = tuple(
                place[ref] if isinstance(ref, int) else ref
                for ref in turn.reads
                if not isinstance(ref, int) or ref in place
            )
            place[turn.index] = len(place)
            yield replace(turn, index=place[turn.index], reads=reads)


def without_turns(schedule: AnySchedule, dropped: Collection[int]) -> AnySchedule:
    """A static schedule without the turns of some indices; messages that others read of them are left out.

    Parameters
    ----------
    schedule : StaticSchedule
        The schedule.
    dropped : collection of int
        Indices of turns.

    Returns
    -------
    StaticSchedule
        The turns that are left, numbered from 0 in the same order and steps.
    """
    return _Without(schedule, dropped) if dropped and isinstance(schedule, StaticSchedule) else schedule
