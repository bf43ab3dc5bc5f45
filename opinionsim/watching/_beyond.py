"""What runs contain in addition to their turns, as blocks for their pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.registry import find, places
from opinionsim.store import Results
from opinionsim.watching._run_view import OneRun

if TYPE_CHECKING:
    from opinionsim.store import StoreReader


def beyond_turns(reader: StoreReader, run: str) -> dict[str, Any]:
    """Return what a run contains in addition to its turns.

    Parameters
    ----------
    reader, run
        As for :func:`run_record`.

    Returns
    -------
    dict of JSON values
        What the record of its way of interacting returns: a `name` above the dialogue; `blocks` before it, each of
        :func:`section`, :func:`lines` or :func:`grid`; or what stands `beside` it, with a `title` and the `moments` at
        which it was: each has a `title` and `parts`, which have a `title` and a `text` or `points`, each of
        :func:`point`. Empty for a run that is only turns.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    with reader.moment() as moment:
        one = OneRun.of(moment, run)
        # Pages run no code of the user's own.
        if (record := one.cell.declared.get("record", "")) in places("record"):
            # Read together, as what is under way is.
            found = Results(reader.url, replace(one.design, runs=(one.cell,)), under_way=1)
            told: dict[str, Any] = find("record", record).target(found)
            return told
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


def point(
    text: str, *points: Mapping[str, Any], change: str = "", note: str = "", turns: Sequence[int] = ()
) -> dict[str, Any]:
    """A text in what stands beside a dialogue, with the turns that it cites and points below it.

    `change` is what it is since the moment before: ``new``, ``kept``, ``changed`` or ``gone``; empty if it is not
    compared.
    """
    return {"text": text, "points": list(points), "change": change, "note": note, "turns": list(turns)}


def grid(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """A table. A cell is a text, a result of :func:`said`, or a list of these."""
    return {"caption": caption, "columns": list(columns), "rows": [list(row) for row in rows]}


def section(title: str, *blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Blocks below a title."""
    return {"title": title, "blocks": list(blocks)}
