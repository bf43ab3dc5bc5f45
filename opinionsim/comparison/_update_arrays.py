"""The updates of one condition as arrays, and as a tidy frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Updates:
    """Texts, readings and measurements in the runs of one condition, turn by turn.

    Attributes
    ----------
    cell, evidence : str
        Label of the condition, and kind of evidence.
    points : ndarray of float (k,)
        Points of the scale.
    exact : bool
        Whether opinions are recorded numbers instead of ratings.
    run_ids, blocks : tuple of str (R,)
        Runs, and the block of each.
    n_agents : ndarray of int (R,)
        Participants of each run.
    first : ndarray of int (R + 1,)
        First turn of each run.
    turn, step, agent : ndarray of int (M,)
        Number, step and author of each turn, in order.
    first_read : ndarray of int (M + 1,)
        Index in `reads` at which the messages of each turn begin.
    reads : ndarray of int (L,)
        Positions, among the M turns, of the messages read.
    value : ndarray of float (M,)
        Measured opinion; NaN without one.
    one_message : bool
        Whether only updates by one message count.
    """

    cell: str
    evidence: str
    points: np.ndarray
    exact: bool
    run_ids: tuple[str, ...]
    blocks: tuple[str, ...]
    n_agents: np.ndarray
    first: np.ndarray
    turn: np.ndarray
    step: np.ndarray
    agent: np.ndarray
    first_read: np.ndarray
    reads: np.ndarray
    value: np.ndarray
    one_message: bool = False

    def __len__(self) -> int:
        return len(self.run_ids)

    @cached_property
    def run(self) -> np.ndarray:
        """Run of each turn, (M,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @cached_property
    def _author(self) -> np.ndarray:
        """Number of each turn's author among those of all runs, (M,)."""
        return np.asarray(self.run * self.n_agents.max() + self.agent)

    @cached_property
    def rating(self) -> np.ndarray:
        """Position on the scale of each measured opinion, (M,); -1 if there is none."""
        return self.places(self.value)

    def places(self, opinions: np.ndarray) -> np.ndarray:
        """Positions on the scale of the points nearest to opinions of any shape; -1 if there is none."""
        near = np.abs(np.nan_to_num(opinions)[..., None] - self.points).argmin(axis=-1)
        return np.where(np.isnan(opinions), -1, near)

    @cached_property
    def held_at(self) -> np.ndarray:
        """Turn at which each turn's author was last measured before it, (M,); -1 if not yet."""
        return self._last(self.rating >= 0)

    @cached_property
    def fresh(self) -> np.ndarray:
        """Whether each turn's author was measured at its previous update or since then, (M,)."""
        return np.asarray(self.held_at >= self._last(np.diff(self.first_read) > 0))

    def _last(self, chosen: np.ndarray) -> np.ndarray:
        """The last `chosen` turn (M,) of each turn's author before it, (M,); -1 where there is none."""
        found, last = np.full(len(self.agent), -1), np.full(int(self._author.max()) + 1, -1)
        for at, who in enumerate(self._author):
            found[at] = last[who]
            if chosen[at]:
                last[who] = at
        return found

    @cached_property
    def start(self) -> np.ndarray:
        """First measured opinion of each turn's author, (M,); NaN if there is none in the run."""
        known = np.flatnonzero(self.rating >= 0)
        agents, earliest = np.unique(self._author[known], return_index=True)
        firsts = np.full(int(self._author.max()) + 1, np.nan)
        firsts[agents] = self.value[known[earliest]]
        return np.asarray(firsts[self._author])

    @cached_property
    def begun(self) -> np.ndarray:
        """First rating of each agent, at its first turn, (M,); -1 elsewhere, and for agents that were never rated."""
        firsts = np.unique(self._author, return_index=True)[1]
        found = np.full(len(self.agent), -1)
        found[firsts] = self.places(self.start[firsts])
        return found

    @cached_property
    def held(self) -> np.ndarray:
        """Last measured opinion of each turn's author before it, (M,); NaN if not yet measured."""
        return np.where(self.held_at >= 0, self.value[self.held_at], np.nan)

    @cached_property
    def said(self) -> np.ndarray:
        """Measured opinion of the last message that each turn read, (M,); NaN if there is none."""
        count = np.diff(self.first_read)
        last = np.append(self.value[self.reads], np.nan)[np.where(count > 0, self.first_read[1:] - 1, -1)]
        return np.where(count > 0, last, np.nan)

    @cached_property
    def passed_over(self) -> np.ndarray:
        """Whether an update is skipped because it has several messages and only single messages count, (M,).

        The filter predicts nothing for it. Its author continues from its measured opinion, or from anywhere.
        """
        return np.asarray(self.one_message & (np.diff(self.first_read) > 1))

    @cached_property
    def updated(self) -> np.ndarray:
        """Whether a turn is an update that counts, (M,), because it read something and was measured.

        If opinions are numbers, the author's previous opinion and the message must be recorded too.
        """
        found = (np.diff(self.first_read) > 0) & ~self.passed_over & ~np.isnan(self.value)
        known = self.fresh & ~np.isnan(self.held) & ~np.isnan(self.said)
        return np.asarray(found & known if self.exact else found)

    @cached_property
    def by_one(self) -> tuple[int, int]:
        """Number of measured updates that follow a single message, and of all measured updates."""
        count = np.diff(self.first_read)[~np.isnan(self.value)]
        return int((count == 1).sum()), int((count > 0).sum())

    def of(self, runs: Sequence[int]) -> Updates:
        """Restrict the study to some of its runs, by position."""
        parts = [np.arange(self.first[run], self.first[run + 1]) for run in runs]
        kept = np.concatenate(parts)
        new = np.full(len(self.agent), -1)
        new[kept] = np.arange(len(kept))
        count = np.diff(self.first_read)[kept]
        read = np.concatenate([self.reads[self.first_read[at] : self.first_read[at + 1]] for at in kept])
        return replace(
            self,
            run_ids=tuple(self.run_ids[run] for run in runs),
            blocks=tuple(self.blocks[run] for run in runs),
            n_agents=self.n_agents[list(runs)],
            first=np.concatenate([[0], np.cumsum([len(part) for part in parts])]),
            turn=self.turn[kept],
            step=self.step[kept],
            agent=self.agent[kept],
            first_read=np.concatenate([[0], np.cumsum(count)]),
            reads=new[read],
            value=self.value[kept],
        )

    def rated(self, rating: np.ndarray) -> Updates:
        """Replace the existing ratings by others (M,), given as positions on the scale."""
        return self.of_values(np.where(np.isnan(self.value), np.nan, self.points[rating]))

    def of_values(self, value: np.ndarray) -> Updates:
        """Replace the measured opinions (M,)."""
        return replace(self, value=value)

    def paths(self) -> np.ndarray:
        """Last measured opinions, (R, T + 1, N), by run, step and agent; NaN before the first measurement."""
        paths = np.full((len(self), int(self.step.max()) + 1, int(self.n_agents.max())), np.nan)
        known = ~np.isnan(self.value)
        paths[self.run[known], self.step[known], self.agent[known]] = self.value[known]
        for step in range(1, paths.shape[1]):
            paths[:, step] = np.where(np.isnan(paths[:, step]), paths[:, step - 1], paths[:, step])
        return paths
