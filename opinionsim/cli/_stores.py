"""Find runs by the options of commands, and print notes on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from opinionsim.cli._console import counted, note
from opinionsim.cli._options import own_modules
from opinionsim.watching import Reason, state_of

if TYPE_CHECKING:
    from opinionsim.registry import Part
    from opinionsim.store import ExperimentRun, Results, StoreReader

# -- experiments and designs ---------------------------------------------------------------------------------


def read_results(store: str, experiment: str | None, design: int | None, *, allow_parts: bool | None = None) -> Results:
    """Load the results of an experiment, with a note on its other designs and on runs under way.

    Parameters
    ----------
    store, experiment, design
        As for :func:`opinionsim.load`.
    allow_parts : bool, optional
        Whether to import user-defined parts. Default: none are needed.

    Raises
    ------
    StoreError
        If the store cannot be read, or has no such experiment or design.
    """
    from opinionsim.store import load

    if allow_parts:
        own_modules()
    results = load(store, experiment, design=design, own_parts=bool(allow_parts))
    if len(results.designs) > 1:
        note(_designs_text(results.design, results.designs))
    if results.under_way:
        runs = f"{results.under_way} of {len(results.run_ids)} runs {'is' if results.under_way == 1 else 'are'}"
        note(f"{runs} under way; results as of {datetime.now(UTC).astimezone():%H:%M:%S}")
    return results


def note_left_out(results: Results, only: Part | None = None) -> None:
    """Print on standard error what was left out of the results, or of `only` one table or figure."""
    own = results.own if only is None else results.own_metrics if only.declared.get("metrics") else []
    if own and not results.own_parts:
        note(f"left out your own parts; add --allow-parts to include them: {', '.join(own)}")
    if only is None and results.not_installed:
        note(f"left out because it is not installed here: {', '.join(results.not_installed)}")
    for each in results.failed.values():
        note(f"left out because it failed: {each}")


def _designs_text(shown: int, designs: Sequence[int]) -> str:
    """A note on which design is shown, and how to see the others."""
    others = [number for number in designs if number != shown]
    which = "the others" if len(others) > 1 else "the earlier one" if others[0] < shown else "the later one"
    *most, last = map(str, others)
    listed = f"{', '.join(most)} or {last}" if most else last
    return f"design {shown} of {len(designs)}; --design {listed} for {which}"


# -- runs ----------------------------------------------------------------------------------------------------


def how_far(calls: int, expected: int | None) -> str:
    """Spell the stored calls of a run, and the expected number if it is known."""
    return f"{calls:,} of {max(expected, calls):,} calls" if expected else counted(calls, "call")


def note_standing(opened: StoreReader, run: ExperimentRun) -> None:
    """Print the state of a run on standard error, unless it is complete without an error."""
    run_id, name = run.run_id, run.name
    states = opened.states([run_id])
    if run_id not in states:
        return
    state = states[run_id]
    far = how_far(opened.usage([run_id]).calls, state.expected)
    error = f": {state.error}" if state.error else ""
    match state_of(run_id, state, opened.under_way(states)):
        case "pending":
            note(f"run {name} has not begun")
        case "under way":
            note(f"run {name} is under way; {far} are stored")
        case "cut off":
            note(f"run {name} was cut off after {far}; `opinionsim run` resumes it")
        case "incomplete" | "withdrawn":
            note(f"run {name} is {state.status}, after {far}{error}")
        case _ if error:
            note(f"run {name} is complete{error}")


def reason_lines(found: Sequence[Reason], shown: int, rest: str) -> list[str]:
    """The first `shown` reasons, one per line, and a line with the number of other runs and the hint `rest`."""
    hidden = sum(reason.runs for reason in found[shown:])
    return [*map(str, found[:shown]), *([f"and {hidden:,} more ({rest})"] if hidden else [])]
