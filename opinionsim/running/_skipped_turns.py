"""Turns that a run leaves out because a run of another cell skipped them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from opinionsim.errors import DamagedError
from opinionsim.llm import Entry, EntryKey

if TYPE_CHECKING:
    from opinionsim.specification import PlannedRun
    from opinionsim.store import Store, TurnRow

#: Key of the journal entry with the turns that a run leaves out, taken from another run at its start.
SKIPS = EntryKey(0, "skips", 0)
#: Conditions of messages that nobody receives.
_UNHEARD = ("refused", "empty")


def skipped_entry(rows: Iterable[TurnRow]) -> Entry:
    """The journal entry with the turns that a run skipped, and the refused and empty ones they waited for."""
    by_turn = {row.turn: row for row in rows}
    skipped = {turn for turn, row in by_turn.items() if row.condition == "skipped"}
    waited_for = {
        ref
        for turn in skipped
        for ref in by_turn[turn].reads
        if isinstance(ref, int) and by_turn[ref].condition in _UNHEARD
    }
    return Entry(SKIPS, 0, 0, "", "", json.dumps(sorted(skipped | waited_for)), source="import")


def turns_left_out(entries: Iterable[Entry]) -> frozenset[int]:
    """The turns that a run leaves out by its journal.

    Raises
    ------
    DamagedError
        If they cannot be read.
    """
    text = next((entry.text for entry in entries if entry.key == SKIPS), "[]")
    try:
        return frozenset(map(int, json.loads(text)))
    except (ValueError, TypeError) as error:
        raise DamagedError(f"the turns that the run leaves out cannot be read: {error}") from None


def other_skips(store: Store, planned: PlannedRun, entry: Entry | None) -> str:
    """Why the turns that a run left out are not those that its source skipped; empty where they may be."""
    source = planned.source_id
    if source is None or entry is None or store.states([source])[source].status != "complete":
        return ""
    if skipped_entry(store.turns(source)).text == entry.text:
        return ""
    return f"run {planned.run_id}: the turns that it leaves out are not those that run {source} skipped"
