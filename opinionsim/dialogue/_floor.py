"""Rules for who may speak next in a room, which a moderator cannot override."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

#: Turns without a word, one after the other, by which a person gives up its seat.
_MISSED = 2


@dataclass(frozen=True)
class Floor:
    """The state of a room that decides who may speak next.

    Nobody speaks twice in a row. Every seat gets at least one of any `every` successive turns. If speakers have been
    silent for `unheard` turns, the one silent longest is next, unless the turn must go to a seat. Ties go to the lower
    index. A turn counts even if the speaker says nothing in it. A moderator's remarks are not turns.

    Attributes
    ----------
    speakers : tuple of int
        The speakers who are present, in order.
    seats : frozenset of int
        The speakers who are people.
    every, unheard : int
        Numbers of turns in the rules; at least 2 and at least 1.
    last : mapping of int to int
        Number of the last turn of each speaker, counted from 1; 0 before its first turn.
    missed : mapping of int to int
        Number of silent turns of each seat since it last said something.
    spoken : int
        Number of turns so far.
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
        """Explain why `every` turns are too few for all seats to speak; empty if they are enough."""
        if seats < every or seats == every == speakers:
            return ""
        others = f" and {speakers - seats} other speaker{'s' * (speakers - seats > 1)}" if speakers > seats else ""
        least = seats + (speakers > seats)
        return f"{every} turns are too few for {seats} seats{others}; give {least} or more"

    def _silence(self, speaker: int) -> int:
        return self.spoken - self.last.get(speaker, 0)

    def _in_time(self, speaker: int) -> bool:
        """Whether every seat can still speak in time if this speaker has the next turn."""
        turn = self.spoken + 1
        due = sorted((turn if seat == speaker else self.last.get(seat, 0)) + self.every for seat in self.seats)
        return all(latest >= turn + place for place, latest in enumerate(due, 1))

    @property
    def latest(self) -> int | None:
        """The speaker of the last turn; None before the first turn, or if that speaker has left."""
        return next((each for each in self.speakers if self.spoken and self.last.get(each) == self.spoken), None)

    def choices(self) -> list[int]:
        """The speakers who may speak next, the one silent longest first; only one if the rules leave no choice."""
        free = [each for each in self.speakers if each != self.latest and self._in_time(each)]
        order = sorted(free, key=lambda each: (-self._silence(each), each))
        return order[:1] if order and self._silence(order[0]) >= self.unheard else order

    def next(self, proposed: int | None = None) -> int:
        """The next speaker: the proposed one if the rules allow it, otherwise the allowed one silent longest."""
        choices = self.choices()
        return proposed if proposed is not None and proposed in choices else choices[0]

    def after(self, speaker: int, *, said: bool = True) -> Self:
        """Return the floor after a turn of a speaker, who may have said nothing.

        A person who says nothing in two turns in a row stops being a speaker.
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
        """Return the floor after some speakers have left."""
        return replace(
            self,
            speakers=tuple(each for each in self.speakers if each not in gone),
            seats=self.seats.difference(gone),
        )
