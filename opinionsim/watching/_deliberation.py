"""Runs that are more than turns in a row: sessions that look for a consensus, rooms, structures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from opinionsim.dialogue import Analysis, analyses
from opinionsim.registry import find
from opinionsim.store import Results
from opinionsim.watching._run_view import OneRun

if TYPE_CHECKING:
    from opinionsim.store import StoreReader

#: Kind of text of an analysis of a room.
_ANALYSIS = "analysis"


def deliberation(reader: StoreReader, run: str) -> dict[str, Any]:
    """What a run is beyond its turns.

    Parameters
    ----------
    reader, run
        As for :func:`run_record`.

    Returns
    -------
    dict of JSON values
        Its `kind`: ``consensus``, with candidates, ballots and critiques by round; ``room``, with its analyses;
        ``structure``, with its name; None for any other.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    with reader.moment() as moment:
        one = OneRun.of(moment, run)
        interaction = one.registered.interaction
        if record := one.cell.declared.get("record"):
            # Read together, as what is under way is.
            found = Results(reader.url, replace(one.design, runs=(one.cell,)), under_way=1)
            told: dict[str, Any] = find("record", record).target(found)
            return told
        if interaction == "room":
            texts = [(row.turn, row.text) for row in moment.turns(run) if row.kind == _ANALYSIS]
            found = TypeAdapter(list[Analysis]).dump_python(analyses(texts), mode="json")
            for claim in (each for analysis in found for each in analysis["claims"]):
                claim |= claim.pop("claim")
            return {"kind": "room", "analyses": found}
        return {"kind": None}
