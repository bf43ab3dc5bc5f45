"""Measured opinions of a run as an array, one layout for figures, metrics and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opinionsim.watching._one_run import coded_turns

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
    found = [each for each in coded_turns(columns, instrument_id, kind) if each[0].agent < n_agents]
    grid = np.full((n_agents, max([steps, *(turn.step for turn, _ in found)]) + 1), np.nan)
    for turn, value in found:
        if value is not None and (cut_off or turn.condition != "truncated"):
            grid[turn.agent, turn.step] = value
    source = np.maximum.accumulate(np.where(np.isnan(grid), 0, np.arange(grid.shape[1])), axis=1)
    return np.take_along_axis(grid, source, axis=1)
