"""Who may speak next in a room: hard rules over speaker turns, whatever a moderator proposes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

#: Turns without a word, one after the other, by which a person gives up its seat.
_MISSED = 2


@dataclass(frozen=True)
class Floor:
    """The speaker turns of a room so far, as far as they decide who may speak next.

    Nobody speaks twice running. Every seat has one of any `every` turns that follow one another. Of those who are
    unheard for `unheard` turns, the one silent longest is next, unless a seat has to be. Ties go by index. A turn
    counts whether or not something was said in it; what a moderator says is no turn.

    Attributes
    ----------
    speakers : tuple of int
        Those present, in order.
    seats : frozenset of int
        Those among them who are people.
    every, unheard : int
        The numbers of turns in the rules, from 2 and from 1.
    last : mapping of int to int
        Number of the last turn of each speaker, from 1; 0 before its first.
    missed : mapping of int to int
        Turns without a word of each seat since it last said something.
    spoken : int
        Turns so far.
    """

    speakers: tuple[int, ...]
    seats: frozenset[int]
    every: int
    unheard: int
    last: Mapping[int, int] = field(default_factory=dict)
    missed: Mapping[int, int] = field(default_factory=dict)
    spoken: int = 0

    @staticmethod
    def problem(speakers: int, seats: int, every: int) -> str:
        """Why seats cannot all be heard in any `every` turns; empty where they can."""
        if seats < every or seats == every == speakers:
            return ""
        others = f" beside {speakers - seats} other speakers" if speakers > seats else ""
        least = seats + (speakers > seats)
        return f"{every} turns do not hold one of each of {seats} seats{others}; give {least} or more"

    def _silence(self, speaker: int) -> int:
        return self.spoken - self.last.get(speaker, 0)

    def _in_time(self, speaker: int) -> bool:
        """Whether every seat can still have its turn in time once a speaker has the next one."""
        turn = self.spoken + 1
        due = sorted((turn if seat == speaker else self.last.get(seat, 0)) + self.every for seat in self.seats)
        return all(latest >= turn + place for place, latest in enumerate(due, 1))

    @property
    def latest(self) -> int | None:
        """The speaker of the last turn; None at first, and where it has left."""
        return next((each for each in self.speakers if self.spoken and self.last.get(each) == self.spoken), None)

    def choices(self) -> list[int]:
        """Those who may speak next, the one silent longest first; one where the rules leave no choice."""
        free = [each for each in self.speakers if each != self.latest and self._in_time(each)]
        order = sorted(free, key=lambda each: (-self._silence(each), each))
        return order[:1] if order and self._silence(order[0]) >= self.unheard else order

    def next(self, proposed: int | None = None) -> int:
        """Who speaks next: the one proposed where the rules allow it, else the one silent longest of those allowed."""
        choices = self.choices()
        return proposed if proposed is not None and proposed in choices else choices[0]

    def after(self, speaker: int, *, said: bool = True) -> Self:
        """The floor after a turn of a speaker, in which something was said or nothing.

        A person who has said nothing in two turns running is no speaker any more.
        """
        turn = self.spoken + 1
        missed = 0 if said or speaker not in self.seats else self.missed.get(speaker, 0) + 1
        moved = replace(
            self,
            last={**self.last, speaker: turn},
            missed={**self.missed, speaker: missed},
            spoken=turn,
        )
        return moved.without([speaker]) if missed >= _MISSED else moved

    def without(self, gone: Collection[int]) -> Self:
        """The floor once some have left."""
        return replace(
            self,
            speakers=tuple(each for each in self.speakers if each not in gone),
            seats=self.seats.difference(gone),
        )
