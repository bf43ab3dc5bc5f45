"""Classic sweeps at the command line: carry them out with progress, and report them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from opinionsim.cli import aligned, counted, note, say
from opinionsim.errors import SpecError
from opinionsim.foundation.progress import shown, stop_requests
from opinionsim.watching import spelled

if TYPE_CHECKING:
    from opinionsim.classic.sweeps import Sweep, SweepProgress, SweepSummary

#: A day, and updates that no model takes a day for.
_DAY_S, _LONG = 86_400, 10**9
#: Points whose errors are spelled out.
_ERRORS_SHOWN = 5
_INCOMPLETE, _INTERRUPTED = 1, 130


def carry_out_sweep(
    sweep: Sweep,
    store: str | None,
    *,
    threads: int | None = None,
    cluster: str | None = None,
    yes: bool = False,
) -> SweepSummary:
    """Carry out a sweep with progress on standard error.

    The first SIGINT or SIGTERM ends it once the runs under way are done and stored; the second ends it at once.
    Without `yes`, it asks before it starts a sweep that may take more than a day.
    """
    from opinionsim.classic.sweeps import run_sweep

    # How fast the workers of a cluster are is not known here.
    if not yes and cluster is None:
        _agree_to_time(sweep, store, threads)
    said = "stopping after the runs under way; interrupt again to end at once"
    with stop_requests(said) as stopping, shown() as show:
        told = False

        def watch(progress: SweepProgress) -> None:
            nonlocal told
            if store is not None and not told:
                # The store could be opened.
                runs, points = counted(sweep.total, "run"), counted(len(sweep.points), "point")
                note(f"{sweep.spec.name}: {runs} of {points} into {spelled(store)}")
                told = True
            done = progress.already + progress.made
            failed = f", {progress.failed:,} failed" if progress.failed else ""
            show(done, progress.total, f"{done:,}/{progress.total:,} runs{failed}")
            # Where all threads are busy, nobody else asks, and a request would not be answered.
            stopping()

        summary = run_sweep(sweep, store, threads=threads, cluster=cluster, watch=watch, stopping=stopping)
    if store is not None:
        _say_result(summary)
    return summary


def _say_result(summary: SweepSummary) -> None:
    progress = summary.progress
    if progress.already == progress.total:
        note(f"all {progress.total:,} runs were done already" if progress.total != 1 else "the run was done already")
    else:
        done = progress.already + progress.made - progress.failed
        runs = counted(progress.total, "run")
        note(f"{done:,} of {runs} done after {summary.seconds:.1f} s; {progress.made:,} new")


def end_sweep(summary: SweepSummary, *, kept: bool) -> None:
    """Report points that failed, and exit with the code for the result; 0 if all runs are done."""
    for place, error in list(summary.errors.items())[:_ERRORS_SHOWN]:
        note(f"  {place}: {error}")
    if len(summary.errors) > _ERRORS_SHOWN:
        note(f"  and {counted(len(summary.errors) - _ERRORS_SHOWN, 'further point')}")
    if not summary.complete and kept:
        note("Repeat the command to continue from here.")
    if summary.stopped:
        raise typer.Exit(_INTERRUPTED)
    if not summary.complete:
        raise typer.Exit(_INCOMPLETE)


def _agree_to_time(sweep: Sweep, store: str | None, threads: int | None) -> None:
    """Ask whether a sweep that may take more than a day is to begin; without a terminal it is refused."""
    from opinionsim.classic.sweeps import plan_sweep
    from opinionsim.planning import spell_seconds

    if sum(point.size * point.steps for point in sweep.points) * sweep.spec.replicates < _LONG:
        return
    found = plan_sweep(sweep, store, threads=threads)
    if found.seconds <= _DAY_S:
        return
    takes = f"the {found.missing:,} runs take up to {spell_seconds(found.seconds)} on {found.threads} threads"
    if not sys.stdin.isatty():
        raise SpecError(f"{takes}; start them with `opinionsim abm` and --yes, or reduce replicates, values or steps")
    typer.confirm(f"{takes}; start them?", abort=True, err=True)


def say_plan(sweep: Sweep, store: str | None, threads: int | None) -> None:
    """Print the time and memory of a sweep; carry out only a pilot."""
    from opinionsim.classic.sweeps import plan_sweep
    from opinionsim.planning import spell_seconds

    found = plan_sweep(sweep, store, threads=threads)
    there = "" if found.missing == found.runs else f"{found.runs - found.missing:,} of them done already"
    rows = [
        ["points", f"{found.points:,}", ", ".join(sweep.axes)],
        ["runs", f"{found.runs:,}", there],
        ["time", spell_seconds(found.seconds), f"at most, on {found.threads} threads of this machine"],
        ["memory", f"{found.megabytes:,.0f} MB", "at most, about"],
    ]
    say(aligned(rows))
