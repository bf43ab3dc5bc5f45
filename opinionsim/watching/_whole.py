"""Everything stored about one run, up to a size, for a file that opens without a store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opinionsim.watching._beyond import beyond_turns
from opinionsim.watching._coded_turns import calls_by_turn, run_turns
from opinionsim.watching._metrics import all_metrics
from opinionsim.watching._record_columns import agent_of, run_record
from opinionsim.watching._run_view import OneRun, coded_turns

if TYPE_CHECKING:
    from opinionsim.store import StoreReader


def whole_run(reader: StoreReader, run_id: str, most: int, row: int | None = None) -> dict[str, Any]:
    """Return everything stored about a run, arranged for a page.

    Parameters
    ----------
    reader, run_id, row
        Store, run and row as for :func:`run_record`.
    most : int
        Maximum size of the JSON in bytes. If a run is larger, prompts are left out, then calls. The texts of turns are
        always included.

    Returns
    -------
    dict of JSON values
        Record, agents, turns, calls, metrics, and what is `beyond` its turns. `prompts` contains each message of a
        prompt once, with the one before it; `left_out` contains a sentence for each omitted part.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    with reader.moment() as moment:
        run = run_record(moment, run_id, row=row)
        listed = run_turns(moment, run_id, count=None)
        one = OneRun.of(moment, run_id, row)
        calls, currency = calls_by_turn(one)
        asked = {call["prompt"] for each in calls.values() for call in each} - {""}
        found = {
            "run": run,
            "agents": {str(each.agent): agent_of(each, persona=True) for each in moment.agents(run_id)},
            "turns": listed["turns"],
            # Messages of other turns are among the turns.
            "read": {ref: read for ref, read in listed["read"].items() if not ref.isdecimal()},
            "calls": calls,
            "currency": currency,
            "prompts": {row.prompt_id: [row.before, row.role, row.text] for row in moment.prompt_links(asked)},
            "metrics": _metrics(one),
            "beyond": beyond_turns(moment, run_id),
            "left_out": [],
        }
    for part in ("prompts", "calls"):
        if len(json.dumps(found)) > most:
            found[part] = {}
            found["left_out"].append(f"This file omits {part} to stay small.")
    return found


def _metrics(one: OneRun) -> dict[str, Any]:
    """Metrics by step, by instrument and kind of text, and by name."""
    return {
        f"{instrument} {kind}": all_metrics(one, instrument, kind)
        for instrument, kinds in one.instruments.items()
        for kind in kinds
        if coded_turns(one.columns, instrument, kind)
    }
