"""Measured opinions of a run as an array, one layout for figures, metrics and colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.evidence import KINDS

if TYPE_CHECKING:
    from opinionsim.store import Columns


def values_by_step(
    columns: Columns, n_agents: int, steps: int, instrument_id: str, kind: str | None = None, *, cut_off: bool = False
) -> np.ndarray:
    """The last measured opinion of every participant at the end of every step.

    Parameters
    ----------
    columns : Columns
        What is known of a run.
    n_agents : int
        Number of participants.
    steps : int
        Last step, at least; a text of a later one makes it later.
    instrument_id : str
        The instrument whose opinions count: each of one text by itself.
    kind : str, optional
        Kind of text; default any.
    cut_off : bool
        Whether texts that were cut off count.

    Returns
    -------
    ndarray (n_agents, steps + 1)
        From step 0; NaN until an agent is first measured. Of several texts of a step the last one counts. A text
        without a value changes nothing.
    """
    found = [
        (turn.agent, turn.step, np.nan if value is None or (turn.condition == "truncated" and not cut_off) else value)
        for turn, value in coded(columns, instrument_id, kind)
        if turn.agent < n_agents
    ]
    agent, step, value = (np.array(each) for each in zip(*found, strict=True)) if found else (np.zeros(0, int),) * 3
    grid = np.full((n_agents, max(steps, int(step.max(initial=0))) + 1), np.nan)
    known = ~np.isnan(value)
    # They are in the order of turns, so the last of several texts of a step stays.
    grid[agent[known], step[known]] = value[known]
    source = np.maximum.accumulate(np.where(np.isnan(grid), 0, np.arange(grid.shape[1])), axis=1)
    return np.take_along_axis(grid, source, axis=1)


def coded(columns: Columns, instrument_id: str, kind: str | None = None) -> Iterator[tuple[Any, float | None]]:
    """Turns that an instrument coded, each by itself, in order, with the value; None for no answer."""
    turns = {turn.turn: turn for turn in columns.turns}
    for row in columns.opinions:
        if row.instrument_id == instrument_id and row.about < 0 and kind in (None, turns[row.turn].kind):
            yield turns[row.turn], row.value


def kinds_of(columns: Columns, instrument_id: str) -> list[str]:
    """Kinds of text that an instrument coded in a run, the one that is shown where none is named first."""
    found = dict.fromkeys(turn.kind for turn, _ in coded(columns, instrument_id))
    return [*(kind for kind in KINDS if kind in found), *(kind for kind in found if kind not in KINDS)]
