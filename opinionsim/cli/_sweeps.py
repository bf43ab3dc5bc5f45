"""Classic sweeps at the command line: carrying them out with progress, and reporting them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from opinionsim.cli._console import aligned, counted, note, say, say_json
from opinionsim.errors import SpecError
from opinionsim.progress import shown, stop_requests
from opinionsim.watching import spelled

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.sweeps import Sweep, SweepProgress, SweepSummary

#: A day, and updates that no model takes a day for.
_DAY_S, _LONG = 86_400, 10**9
#: What stands behind the mean of several replicates, and its meaning.
INTERVAL = " [95 % CI]"
INTERVAL_MEANS = "[95 % CI]: t interval of the mean over replicates, at least three that differ"
#: Points whose errors are spelled out.
_ERRORS_SHOWN = 5
_INCOMPLETE, _INTERRUPTED = 1, 130
#: Columns of a frame of runs that are neither axes nor measures.
_FIXED = ("model", "replicate", "time", "stopped", "error", "evidence")


def carry_out_sweep(
    sweep: Sweep,
    store: str | None,
    *,
    threads: int | None = None,
    cluster: str | None = None,
    yes: bool = False,
) -> SweepSummary:
    """Carry out a sweep with progress on standard error.

    The first SIGINT or SIGTERM ends it once the runs under way are done and kept; the second at once. Unless `yes`, it
    is asked whether one that may take more than a day is to begin.
    """
    from opinionsim.sweeps import run_sweep

    # How fast the workers of a cluster are is not known here.
    if not yes and cluster is None:
        _agree_to_time(sweep, store, threads)
    said = "stopping: finishing the runs under way; interrupt again to end at once"
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
        note(f"all {progress.total:,} runs were there already" if progress.total != 1 else "the run was there already")
    else:
        done = progress.already + progress.made - progress.failed
        runs = counted(progress.total, "run")
        note(f"{done:,} of {runs} there after {summary.seconds:.1f} s; {progress.made:,} made")


def end_sweep(summary: SweepSummary, *, kept: bool) -> None:
    """Report points that failed, and leave with the exit code of the result; 0 where all runs are there."""
    for place, error in list(summary.errors.items())[:_ERRORS_SHOWN]:
        note(f"  {place}: {error}")
    if len(summary.errors) > _ERRORS_SHOWN:
        note(f"  and {counted(len(summary.errors) - _ERRORS_SHOWN, 'further point')}")
    if not summary.complete and kept:
        note("Run the same command again to go on from here.")
    if summary.stopped:
        raise typer.Exit(_INTERRUPTED)
    if not summary.complete:
        raise typer.Exit(_INCOMPLETE)


def _agree_to_time(sweep: Sweep, store: str | None, threads: int | None) -> None:
    """Ask whether a sweep that may take more than a day is to begin; without a terminal it is refused."""
    from opinionsim.planning import spell_seconds
    from opinionsim.sweeps import plan_sweep

    if sum(point.size * point.steps for point in sweep.points) * sweep.spec.replicates < _LONG:
        return
    found = plan_sweep(sweep, store, threads=threads)
    if found.seconds <= _DAY_S:
        return
    takes = f"the {found.missing:,} runs take up to {spell_seconds(found.seconds)} on {found.threads} threads"
    if not sys.stdin.isatty():
        raise SpecError(f"{takes}; give --yes to start them all the same, or fewer replicates, values or steps")
    typer.confirm(f"{takes}; start them?", abort=True, err=True)


def say_plan(sweep: Sweep, store: str | None, threads: int | None) -> None:
    """Print what a sweep takes; carry out no more than a pilot."""
    from opinionsim.planning import spell_seconds
    from opinionsim.sweeps import plan_sweep

    found = plan_sweep(sweep, store, threads=threads)
    there = "" if found.missing == found.runs else f"{found.runs - found.missing:,} of them are there already"
    say(
        aligned(
            [
                ["points", f"{found.points:,}", ", ".join(sweep.axes)],
                ["runs", f"{found.runs:,}", there],
                ["time", spell_seconds(found.seconds), f"at most, on {found.threads} threads of this machine"],
                ["memory", f"{found.megabytes:,.0f} MB", "at most, about"],
            ]
        )
    )


def measures_of(frame: pd.DataFrame, axes: list[str]) -> list[str]:
    """The columns of a frame of runs that hold measures."""
    return [name for name in frame.columns if name not in (*_FIXED, *axes)]


def axes_of(frame: pd.DataFrame) -> list[str]:
    """The columns of a frame of runs that hold what varies."""
    columns = list(frame.columns)
    return columns[columns.index("model") + 1 : columns.index("replicate")]


def say_frame(frame: pd.DataFrame, *, as_json: bool) -> None:
    """Print the mean of every measure at every point."""
    from opinionsim.metrics import takes_delta

    axes = axes_of(frame)
    # Those on the way are for figures: side by side they fit no line.
    names = [name for name in measures_of(frame, axes) if "@" not in name]
    if as_json:
        say_json(frame.drop(columns="error").astype(object).where(frame.notna(), None).to_dict(orient="records"))
        return
    attrs = frame.attrs
    same = spell_all(attrs.get("parameters", {}), attrs.get("scheme", {}))
    say(f"{attrs['model']}: {same or 'nothing else to set'}")
    agents = [f"{attrs['n']} agents"] if "n" in attrs else []
    until = attrs.get("until")
    steps = f"{attrs['steps']} steps" if until is None else f"until {spell(until)}, at most {attrs['steps']} steps"
    if until is not None:
        # Runs at their limit are in another state than those at rest, and no mean is of both.
        ended = frame["stopped"].map({True: spell(until), False: "at the limit"})
        frame = frame.assign(ended=ended)[frame["error"] == ""]
        axes = [*axes, "ended"]
    parts = list(frame.groupby(axes, sort=False, dropna=False)) if axes else [((), frame)]
    # A store may hold more runs of some points than of others, some measures of a few of them, and runs that failed.
    counts = {int(count) for _, group in parts for count in (len(group), *group[names].count())}
    uneven = len(counts) > 1
    most = max(len(group) for _, group in parts)
    say(", ".join([*agents, steps, f"{counted(most, 'replicate')}{', of some fewer: in brackets' if uneven else ''}"]))
    behind = INTERVAL if most > 1 else ""
    rows = [[*axes, *(name + behind for name in names), *([] if until is None else [f"time{behind}", "runs"])]]
    for values, group in parts:
        found = [group[name].dropna() for name in names]
        cells = [f"{mean(each)} ({len(each)})" if uneven else mean(each) for each in found]
        if until is not None:
            cells += [mean(group["time"].dropna()), str(len(group))]
        rows.append([*(spell(value) for value in values), *cells])
    say(aligned(rows))
    say("Evidence: equation. Final opinions, mean over replicates")
    if most > 1:
        say(INTERVAL_MEANS)
    if "delta" in attrs and takes_delta(names):
        say(f"Clusters are told apart by gaps beyond {attrs['delta']}")
    if until is not None and (frame["stopped"] == False).any():  # noqa: E712 - or NA
        say("Runs at the limit of steps have a row of their own: a mean time of the others is that of the shorter runs")


def spell_all(*settings: Mapping[str, Any]) -> str:
    """Settings as a list of assignments."""
    return ", ".join(f"{name}={spell(value)}" for each in settings for name, value in each.items())


def spell(value: Any) -> str:
    """A setting in a few characters."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {spell(each)}" for name, each in value.items())
    if hasattr(value, "__len__") and not isinstance(value, str):
        return f"[{len(value)} values]" if len(value) else "none"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def mean(values: Any) -> str:
    """Mean, with its interval if there are several values."""
    from opinionsim.analysis import mean_text

    return mean_text(values) if len(values) else "-"
