"""Search over the texts of an experiment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from opinionsim.watching._places import design_of
from opinionsim.watching._runs import cells_of

if TYPE_CHECKING:
    from opinionsim.store import StoreReader

#: Most hits of one answer.
MOST_HITS = 50
#: Characters that are shown before and after what was found.
_AROUND = 90


class Wanted(NamedTuple):
    """What is searched for; what is empty excludes nothing."""

    text: str = ""
    """A text that the turn says, in any case."""
    cell: str = ""
    """Label of the cell."""
    agent: str = ""
    """Name or number of the author."""
    act: str = ""
    condition: str = ""


def search(
    reader: StoreReader, experiment_id: str, wanted: Wanted, *, design: int | None = None, start: int = 0
) -> dict[str, Any]:
    """Turns of an experiment that say something.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    experiment_id : str
        Identity or name of the experiment.
    wanted : Wanted
        What they say, and whose they are.
    design : int, optional
        Number of the design; default the one run last.
    start : int
        Place of the first hit that is told, from 0.

    Returns
    -------
    dict of JSON values
        At most :data:`MOST_HITS` hits by run and turn, their number in all, and what can be searched for.

    Raises
    ------
    AbsentError
        If there is no such experiment or design.
    """
    pattern = re.compile(re.escape(wanted.text), re.IGNORECASE)
    with reader.moment() as moment:
        row, _ = design_of(moment, experiment_id, design)
        cells = cells_of(row)
        # Cells that share a run show it once.
        rows = {cell.run_id: number for number, cell in reversed([*enumerate(cells)]) if wanted.cell in ("", cell.cell)}
        names = {
            (run_id, agent.agent): agent.name or f"agent {agent.agent}"
            for run_id, agents in moment.casts({cell.run_id for cell in cells}).items()
            for agent in agents
        }
        acts, conditions = set[str](), set[str]()
        hits = []
        for turn in moment.said({cell.run_id for cell in cells}):
            acts.add(turn.act)
            conditions.add(turn.condition)
            if turn.run_id not in rows or wanted.act not in ("", turn.act):
                continue
            if wanted.condition not in ("", turn.condition):
                continue
            if wanted.agent and wanted.agent not in (str(turn.agent), names[turn.run_id, turn.agent]):
                continue
            if not wanted.text or pattern.search(turn.text):
                hits.append((rows[turn.run_id], turn.turn))
        hits.sort()
        told = []
        for number, index in hits[start : start + MOST_HITS]:
            cell = cells[number]
            (turn,) = moment.turns(cell.run_id, only=[index])
            told.append(
                {
                    **{"run_id": cell.run_id, "row": number, "cell": cell.cell, "replicate": cell.replicate},
                    **{name: getattr(turn, name) for name in ("turn", "step", "agent", "act", "kind", "condition")},
                    "name": names[cell.run_id, turn.agent],
                    "excerpt": _excerpt(turn.text, pattern if wanted.text else None),
                }
            )
    return {
        "total": len(hits),
        "from": start,
        "cells": list(dict.fromkeys(cell.cell for cell in row.runs)),
        "agents": list(dict.fromkeys(names.values())),
        "acts": sorted(acts),
        "conditions": sorted(conditions),
        "hits": told,
    }


def _excerpt(text: str, pattern: re.Pattern[str] | None) -> list[str]:
    """What stands before the first place where something is found, what is found, and what stands after it."""
    found = None if pattern is None else pattern.search(text)
    begin, end = found.span() if found else (0, 0)
    before, after = text[max(begin - _AROUND, 0) : begin], text[end : end + (_AROUND if found else 2 * _AROUND)]
    cut = end + len(after) < len(text)
    return [("…" if begin > _AROUND else "") + before, text[begin:end], after + ("…" if cut else "")]
