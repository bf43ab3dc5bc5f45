"""Interactions in which agents read posts of others, and what becomes of a turn when there is none to read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from opinionsim.schedules._dyadic_acts import REPORT, REVIEW, WRITE
from opinionsim.schedules._interaction import Conflict, NetworkedInteraction, Setting, SourceCell
from opinionsim.schedules._turns import ActSpec, AnySchedule, StaticSchedule, Turn, named
from opinionsim.schedules._wrapped import Wrapped

_POSTS = named(WRITE, REVIEW)
_POSTS_OR_REPORTS = named(WRITE, replace(REVIEW, unread=REPORT.name), REPORT)


class PostsInteraction(NetworkedInteraction):
    """Base of interactions in which agents write posts, and review posts of others.

    A post that is refused or empty is received by nobody. Who is heard then depends on who refuses, and so do the
    opinions that are measured, even if nobody is influenced: see docs/missing.md.
    """

    on_skip: Literal["skip", "report"] = "skip"
    """What an agent does where all posts it was to read are refused or empty: `skip` nothing; `report` its belief
    without having read, so that the number of reports does not depend on refusals."""
    skips: SourceCell | None = None
    """Cell whose skipped turns are left out in the same replicate of this one, with the refused ones they waited for,
    so that the same agents are asked to report on the same occasions. Its runs are carried out first."""

    @property
    def sources(self) -> Mapping[str, SourceCell]:
        """The cell whose skipped turns are left out."""
        return {} if self.skips is None else {"skips": self.skips}

    @property
    def acts(self) -> Mapping[str, ActSpec]:  # type: ignore[override]
        """A post, a review, and with ``on_skip: report`` a report in its place."""
        return _POSTS_OR_REPORTS if self.on_skip == "report" else _POSTS

    def conflicts(self, size: int) -> Iterator[Conflict]:
        """Problems for a population of `size` agents, skips of a schedule that is not known beforehand included."""
        if self.skips is not None and self.adaptive:
            yield ("skips",), f"needs turns that are known beforehand; {self.kind!r} decides them as it goes on"
        yield from super().conflicts(size)

    def check(self, setting: Setting) -> None:
        """Refuse a network on which nobody can speak to anybody."""
        _ = setting.neighbours


class _Without(Wrapped):
    """A static schedule without some of its turns; the others are numbered anew."""

    def __init__(self, schedule: StaticSchedule, dropped: Collection[int]) -> None:
        super().__init__(schedule)
        self._dropped = frozenset(dropped)

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
