"""Follow the runs of a store: print a line for each change until no run is under way."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from opinionsim.cli._console import counted, note, say, say_json
from opinionsim.cli._stores import how_far
from opinionsim.store import Doing
from opinionsim.watching import STATES, Seen, doing_text, look_at

if TYPE_CHECKING:
    from opinionsim.store import ExperimentRun

#: Seconds between looks at the store, and at least between two lines on how far an experiment is.
_LOOK_S, _TELL_S = 1.0, 10.0
#: A look at a large store takes time: the next look waits this many times as long, but at most so many seconds.
_REST, _LATEST_S = 10, 10.0
#: Seconds without a run under way until it is over although a process still works on the store, or did and was killed.
_SETTLED_S = 10.0
_INCOMPLETE, _INTERRUPTED = 1, 130
#: Most runs whose steps stand in a line.
_FEW = 3


def follow(url: str, *, as_json: bool) -> None:
    """Print a line for each change in a store until no run is under way; exit with 1 if some runs are not complete.

    Parameters
    ----------
    url : str
        Address of the store.
    as_json : bool
        Whether lines are JSON objects.
    """
    write = (lambda change: say_json(change, indent=None)) if as_json else (lambda change: say(in_words(change)))
    try:
        seen = _attend(url, write)
    except KeyboardInterrupt:
        note("stopped following; the experiment continues")
        raise typer.Exit(_INTERRUPTED) from None
    if not seen and not as_json:
        say("the store contains no experiment")
    if any(each.counts["complete"] + each.counts["withdrawn"] < len(each.states) for each in seen.values()):
        raise typer.Exit(_INCOMPLETE)


def _attend(url: str, write: Callable[[dict[str, Any]], None]) -> Mapping[str, Seen]:
    """Look at a store and write each change until no run is under way; return the last look."""
    seen: dict[str, Seen] = {}
    written: dict[str, tuple[float, Any]] = {}
    ended = math.inf
    while True:
        began = time.monotonic()
        before, seen = seen, look_at(url, seen)
        ended = math.inf if any(each.alive for each in seen.values()) else min(ended, began)
        # Between two runs that are tried again, there may be a moment in which no worker holds a run.
        at_work = any(each.doing for each in seen.values())
        over = ended < math.inf and (not at_work or began - ended >= _SETTLED_S)
        for name, each in seen.items():
            for change in changes(before[name], each) if name in before else ():
                write(change)
            at, was = written.get(name, (-math.inf, None))
            now = (each.counts, each.calls, each.steps, each.doing)
            if was != now and (over or began - at >= _TELL_S):
                written[name] = (began, now)
                write(standing(each))
        sys.stdout.flush()
        if over:
            return seen
        took = time.monotonic() - began
        time.sleep(max(_LOOK_S - took, min(_REST * took, _LATEST_S)))


# -- changes -------------------------------------------------------------------------------------------------


def changes(before: Seen, seen: Seen) -> Iterator[dict[str, Any]]:
    """The runs of an experiment whose state has changed since an earlier look, each with its details."""
    for run_id, run in _rows(seen).items():
        state = seen.state(run_id)
        if run_id in before.states and before.state(run_id) == state:
            continue
        yield {
            **_head(seen),
            "run": run.name,
            "run_id": run_id,
            "cell": run.cell,
            "replicate": run.replicate,
            "state": state,
            "calls": seen.replies[run_id].number,
            "calls_expected": seen.states[run_id].expected,
            "error": seen.states[run_id].error,
        }


def standing(seen: Seen) -> dict[str, Any]:
    """Progress of an experiment: runs by state, calls, steps of the runs under way, and usage."""
    steps = {run.name: seen.steps[run_id] for run_id, run in _rows(seen).items() if run_id in seen.steps}
    paid = {name: {"used": used, "limit": limit} for name, (used, limit) in seen.paid.items()}
    return {
        **_head(seen),
        "runs": {name.replace(" ", "_"): count for name, count in seen.counts.items()},
        "calls": seen.calls,
        "calls_expected": seen.expected,
        "calls_per_s": seen.rate,
        "left_s": seen.left_s,
        "steps": {run: {"step": step, "of": of} for run, (step, of) in steps.items()},
        "paid": paid,
        "doing": [each._asdict() for each in seen.doing] if seen.alive else [],
    }


def _head(seen: Seen) -> dict[str, Any]:
    return {"at": seen.at, "experiment": seen.design.name, "design": seen.design.design}


def _rows(seen: Seen) -> dict[str, ExperimentRun]:
    """The first row of each run, by run id."""
    found: dict[str, ExperimentRun] = {}
    for run in seen.design.rows:
        found.setdefault(run.run_id, run)
    return found


# -- in words ------------------------------------------------------------------------------------------------


def in_words(change: Mapping[str, Any]) -> str:
    """Spell a change from :func:`changes` or :func:`standing` in one line."""
    at = f"{datetime.fromtimestamp(change['at'], UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    told = _run(change) if "run" in change else "; ".join(_standing(change))
    return f"{at} {change['experiment']}: {told}"


def _run(change: Mapping[str, Any]) -> str:
    far = how_far(change["calls"], change["calls_expected"])
    error = f": {' '.join(change['error'].split())}" if change["error"] else ""
    return f"run {change['run']} {change['state']}, {far}{error}"


def _standing(change: Mapping[str, Any]) -> Iterator[str]:
    runs = {name: count for name, count in zip(STATES, change["runs"].values(), strict=True) if count}
    yield f"{counted(sum(runs.values()), 'run')}: " + ", ".join(f"{count:,} {name}" for name, count in runs.items())
    if change["calls_expected"]:
        rate = change["calls_per_s"]
        # Whole numbers from 100 on.
        speed = "" if rate is None else f", {rate:,.0f}/s" if rate >= 100 else f", {rate:.3g}/s"
        left = "" if change["left_s"] is None else f", {timedelta(seconds=round(change['left_s']))} left"
        yield f"{change['calls']:,} of {change['calls_expected']:,} calls{speed}{left}"
    steps = [f"run {run} at step {at['step']:,} of {at['of']:,}" for run, at in change["steps"].items()]
    more = [f"and {len(steps) - _FEW:,} more"] if steps[_FEW:] else []
    if steps:
        yield ", ".join(steps[:_FEW] + more)
    for name, paid in change["paid"].items():
        limit = "" if paid["limit"] is None else f" of at most {paid['limit']:,.9g}"
        if limit or (name == "money" and paid["used"]):
            yield f"paid {name} {paid['used']:,.9g}{limit}"
    yield from (doing_text(Doing(**each)) for each in change["doing"])
