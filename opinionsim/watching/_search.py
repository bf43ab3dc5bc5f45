"""Search over the texts of an experiment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opinionsim.messages import spelled_out
from opinionsim.metrics import evidence_statement
from opinionsim.store import find_design
from opinionsim.watching._run_view import GIVEN, is_given, picked

if TYPE_CHECKING:
    from opinionsim.store import StoreReader

#: Most hits of one answer.
MOST_HITS = 50
#: Characters that are shown before and after what was found; near an end of the text, more at the other side.
_AROUND = 200
#: Beginnings of words that an excerpt cuts, at its two ends.
_CUT_FIRST, _CUT_LAST = re.compile(r"^\S{1,20}\s"), re.compile(r"\s\S{1,20}$")


def search(
    reader: StoreReader,
    *,
    experiment: str = "",
    design: int | None = None,
    text: str = "",
    cell: str = "",
    agent: str = "",
    act: str = "",
    status: str = "",
    start: int = 0,
) -> dict[str, Any]:
    """Search the turns of an experiment.

    Parameters
    ----------
    reader, experiment, design
        As for :func:`experiment`.
    text : str
        Text to find, ignoring case; empty for all turns.
    cell, agent, act, status : str
        Label of the cell, name or number of the author, act and status. Empty values do not restrict the search.
    start : int
        Position of the first hit to return, from 0.

    Returns
    -------
    dict of JSON values
        At most :data:`MOST_HITS` hits by run and turn, their total number, and the values that you can choose.

    Raises
    ------
    AbsentError
        If there is no such experiment or design.
    """
    said = re.compile(re.escape(text), re.IGNORECASE).search
    with reader.moment() as moment:
        chosen, _ = find_design(moment, experiment, design)
        every = chosen.rows
        run_ids = {each.run_id for each in every}
        # Cells that share a run show it once.
        listed = [(row, each) for row, each in enumerate(every) if cell in ("", each.cell)]
        rows = {each.run_id: row for row, each in reversed(listed)}
        casts = {(run, each.agent): each for run, cast in moment.casts(run_ids).items() for each in cast}
        names = {key: spelled_out(each.name) or f"agent {each.agent}" for key, each in casts.items()}
        evidence = {row.evidence for row in moment.registered(run_ids).values()}
        acts, statuses, hits = set[str](), set[str](), list[tuple[int, int]]()
        for turn in moment.said(run_ids):
            acts.add(turn.act)
            statuses.add(turn.status)
            author = "", str(turn.agent), names[turn.run_id, turn.agent]
            wanted = act in ("", turn.act) and status in ("", turn.status) and agent in author
            if wanted and turn.run_id in rows and said(turn.text):
                hits.append((rows[turn.run_id], turn.turn))
        told = []
        for row, index in sorted(hits)[start : start + MOST_HITS]:
            hit = picked(every[row], "run_id cell replicate")
            (found,) = moment.turns(hit["run_id"], only=[index])
            hit |= picked(found, "turn step agent act kind status")
            key = every[row].run_id, found.agent
            hit |= {"row": row, "run": every[row].name}
            hit["given"] = is_given(found.act, casts[key].role, every[row].declared)
            hit["name"] = GIVEN if hit["given"] else names[key]
            told.append(hit | {"excerpt": _excerpt(found.text, said(found.text))})
    return {
        "stamp": evidence_statement(evidence) if evidence else "",
        "total": len(hits),
        "from": start,
        "hits": told,
        "acts": sorted(acts),
        "statuses": sorted(statuses),
        "cells": list(dict.fromkeys(each.cell for each in chosen.runs)),
        "agents": list(dict.fromkeys(names.values())),
    }


def _excerpt(text: str, found: re.Match[str] | None) -> list[str]:
    """What stands before the first place where something is found, what is found, and what stands after it."""
    begin, end = (0, 0) if found is None else found.span()
    before = max(min(begin - _AROUND, len(text) - (end - begin) - 2 * _AROUND), 0)
    after = before + (end - begin) + 2 * _AROUND
    # A word that the excerpt would cut is left out, unless it is very long.
    first, last = _CUT_FIRST.sub("", text[before:begin]), _CUT_LAST.sub("", text[end:after])
    return [f"…{first}" if before else text[:begin], text[begin:end], f"{last}…" if after < len(text) else text[end:]]
