"""What runs contain in addition to their turns, as blocks for their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from opinionsim.dialogue import Analysis, analyses
from opinionsim.registry import find, places
from opinionsim.store import Results
from opinionsim.watching._run_view import OneRun

if TYPE_CHECKING:
    from opinionsim.store import StoreReader

#: Kind of text of an analysis of a room.
_ANALYSIS = "analysis"


def beyond_turns(reader: StoreReader, run: str) -> dict[str, Any]:
    """Return what a run contains in addition to its turns.

    Parameters
    ----------
    reader, run
        As for :func:`run_record`.

    Returns
    -------
    dict of JSON values
        What the record of its way of interacting returns: a `name` above the dialogue, or `blocks` before it, each of
        :func:`section`, :func:`lines` or :func:`grid`; or the `analyses` of a room. Empty for a run that is only turns.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    with reader.moment() as moment:
        one = OneRun.of(moment, run)
        interaction = one.registered.interaction
        # Pages run no code of the user's own.
        if (record := one.cell.declared.get("record", "")) in places("record"):
            # Read together, as what is under way is.
            found = Results(reader.url, replace(one.design, runs=(one.cell,)), under_way=1)
            told: dict[str, Any] = find("record", record).target(found)
            return told
        if interaction == "room":
            texts = [(row.turn, row.text) for row in moment.turns(run) if row.kind == _ANALYSIS]
            found = TypeAdapter(list[Analysis]).dump_python(analyses(texts), mode="json")
            for claim in (each for analysis in found for each in analysis["claims"]):
                claim |= claim.pop("claim")
            return {"analyses": found}
        return {}


def said(
    text: str = "",
    *,
    agent: int | None = None,
    turn: int | None = None,
    marks: Sequence[str] = (),
    note: str = "",
    own: bool = False,
) -> dict[str, Any]:
    """A text in :func:`lines`, or a cell of :func:`grid`, with its author, its turn, marks and a note.

    With `own`, the page highlights it.
    """
    return {"text": text, "agent": agent, "turn": turn, "marks": list(marks), "note": note, "own": own}


def lines(texts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Texts below each other, each of :func:`said`."""
    return {"lines": list(texts)}


def grid(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """A table. A cell is a text, a result of :func:`said`, or a list of these."""
    return {"caption": caption, "columns": list(columns), "rows": [list(row) for row in rows]}


def section(title: str, *blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Blocks below a title."""
    return {"title": title, "blocks": list(blocks)}
