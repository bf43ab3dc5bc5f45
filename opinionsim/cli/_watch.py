"""Watching from another process an experiment that is being run."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from opinionsim.cli._console import note, say
from opinionsim.cli._options import ExperimentName, StorePath
from opinionsim.cli._stores import reason_lines
from opinionsim.errors import StoreError
from opinionsim.messages import spelled_out
from opinionsim.watching import STATES, OpenRun, Seen, look_at

#: Seconds between looks at the store, and between lines where nothing can be drawn.
_LOOK_S, _TELL_S = 1.0, 10.0
#: A look at a large store takes time: the next look waits this many times as long, but at most so many seconds.
_REST, _LATEST_S = 10, 10.0
#: Seconds after the end of all runs until an experiment counts as over although a process still works on the store.
_SETTLED_S = 10.0
_INCOMPLETE, _INTERRUPTED = 1, 130
_WAITING = "no experiment is on record yet"
#: Most open runs where nothing limits the height, and lines that all else takes.
_MANY, _OTHERS = 20, 14
#: Most reasons and reports of workers that are shown.
_FEW = 3
#: Places of the widest bar.
_BAR = 40
#: Colours of states; the others are dim.
_STYLES = {"complete": "green", "incomplete": "red", "under way": "cyan", "cut off": "yellow"}


def watch(
    store: StorePath,
    experiment: ExperimentName = None,
    once: bool = False,
) -> None:
    """Watch an experiment while it is being run, here or elsewhere, until it is over.

    Parameters
    ----------
    once
        Print the present state and exit.
    """
    console = Console(markup=False, emoji=False, highlight=False)
    look = partial(look_at, store, experiment)
    if once:
        seen = look()
        if not seen.experiment:
            raise StoreError(f"the store {seen.store} holds no experiment yet")
        console.print(drawn(seen))
        return
    try:
        can_draw = console.is_terminal and not console.is_dumb_terminal
        last = _drawn_over(look, console) if can_draw else _told(look)
    except KeyboardInterrupt:
        note("no longer watched; the experiment goes on")
        raise typer.Exit(_INTERRUPTED) from None
    if last.counts.get("incomplete"):
        raise typer.Exit(_INCOMPLETE)


def _drawn_over(look: Callable[[], Seen], console: Console) -> Seen:
    """Redraw the state of the experiment until it is over; return the last state."""
    with Live(console=console, auto_refresh=False) as live:
        return _attend(look, lambda seen: live.update(drawn(seen, console.height), refresh=True))


def _told(look: Callable[[], Seen]) -> Seen:
    """Print a line at intervals until the experiment is over; return the last state."""
    told: set[str] = set()
    due, was_over = -math.inf, False

    def tell(seen: Seen) -> None:
        nonlocal due, was_over
        if seen.over == was_over and time.monotonic() < due:
            return
        due, was_over = time.monotonic() + _TELL_S, seen.over
        say(in_one_line(seen))
        for reason in seen.reasons:
            if reason.error not in told:
                told.add(reason.error)
                say(f"  {reason}")
        sys.stdout.flush()

    return _attend(look, tell)


def _attend(look: Callable[[], Seen], show: Callable[[Seen], None]) -> Seen:
    """Look at the store and show its state until the experiment is over; return the last state."""
    ended = math.inf
    while True:
        began = time.monotonic()
        seen = look()
        show(seen)
        ended = min(ended, began) if seen.over else math.inf
        # Between two runs that are tried again, there may be a moment in which no worker holds a run.
        if seen.over and (not seen.doing or began - ended >= _SETTLED_S):
            return seen
        took = time.monotonic() - began
        time.sleep(max(_LOOK_S - took, min(_REST * took, _LATEST_S)))


# -- how it is shown -----------------------------------------------------------------------------------------


def in_one_line(seen: Seen) -> str:
    """An experiment at one moment, in one line."""
    parts = [f"{seen.experiment}: {_counts(seen)}" if seen.experiment else f"{seen.store}: {_WAITING}"]
    if seen.expected:
        parts.append(_calls(seen))
    if seen.last_reply_s is not None and seen.is_under_way:
        parts.append(f"last reply {_duration(seen.last_reply_s)} ago")
    return f"{_clock(seen.at)} {'; '.join(parts)}"


def drawn(seen: Seen, height: int = _OTHERS + _MANY) -> Group:
    """An experiment at one moment, for `height` lines of a terminal; a long list of runs is cut."""
    parts = list(_head(seen))
    if seen.open:
        parts += _runs(seen.open, max(_FEW, height - _OTHERS))
    return Group(*parts)


def _head(seen: Seen) -> Iterator[RenderableType]:
    """Name, runs, progress, usage, reports of workers, and why runs are not complete."""
    title = Table.grid(expand=True, padding=(0, 1))
    title.add_column(ratio=1, no_wrap=True, style="bold")
    title.add_column(style="dim")
    title.add_row(_text(f"{seen.experiment} in {seen.store}" if seen.experiment else seen.store), _clock(seen.at))
    yield title
    if not seen.experiment:
        yield _text(f"{_WAITING}; waiting for one", "yellow")
        return
    yield _counts(seen)
    if seen.expected:
        progress = Table.grid(padding=(0, 1))
        progress.add_column(max_width=_BAR)
        progress.add_column(no_wrap=True, style="bold")
        progress.add_column(no_wrap=True)
        # Rounded down: 100 % only when all calls are on record.
        share = f"{math.floor(100 * min(seen.calls / seen.expected, 1))} %"
        progress.add_row(ProgressBar(seen.expected, seen.calls), share, _calls(seen))
        yield progress
    if paid := list(_paid(seen)):
        yield Text(f"paid {', '.join(paid)}")
    if not seen.over:
        yield from _doing(seen)
    for line in reason_lines(seen.reasons, _FEW, "see: opinionsim status"):
        yield _text(line, "red")


def _text(text: str, style: str = "") -> Text:
    """A text of a user, a model or a worker."""
    return Text(spelled_out(" ".join(text.split())), style, overflow="ellipsis")


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _counts(seen: Seen) -> Text:
    """Number of runs, in all and by state."""
    total = sum(seen.counts.values())
    told = [Text(f"{seen.counts[name]:,} {name}", _STYLES.get(name, "dim")) for name in STATES if seen.counts.get(name)]
    return Text(f"{total:,} {'run' if total == 1 else 'runs'}: ") + Text(", ").join(told)


def _calls(seen: Seen) -> str:
    """Calls on record; while runs are under way also their rate, and the time left."""
    found = f"{seen.calls:,} of {seen.expected:,} calls"
    if seen.rate is not None:
        found += f", {seen.rate:,.0f}/s" if seen.rate >= 100 else f", {seen.rate:.3g}/s"
    return found + ("" if seen.left_s is None else f", {_duration(seen.left_s)} left")


def _paid(seen: Seen) -> Iterator[str]:
    """Usage, with the limits of the budget."""
    for name, (used, limit) in seen.paid.items():
        text = f"{name} {used:,.4f}" if name == "money" else f"{name} {used:,.0f}"
        if limit is not None:
            text += f" of at most {limit:,g}" + (f" ({100 * used / limit:.0f} %)" if limit else "")
        if used or limit is not None:
            yield text


def _doing(seen: Seen) -> Iterator[Text]:
    """Time since the last reply, and the reports of workers; or that nothing is under way."""
    if not seen.is_under_way:
        begun = seen.counts.get("pending") != sum(seen.counts.values())
        left = "nobody is carrying out what is left; run the experiment again to go on"
        yield Text(left if begun else "no run has begun yet", "yellow")
        return
    if seen.last_reply_s is not None:
        late = seen.last_reply_s > 30
        yield Text(f"last reply {_duration(seen.last_reply_s)} ago", "yellow" if late else "")
    for text in map(str, seen.doing[:_FEW]):
        yield _text(text)
    if len(seen.doing) > _FEW:
        yield Text(f"and {len(seen.doing) - _FEW} more workers")


def _runs(runs: Sequence[OpenRun], n: int) -> Iterator[RenderableType]:
    """Runs that have begun and have not ended: the first n, and a line that counts the others."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", justify="right", style="bold", no_wrap=True)
    table.add_column("calls", width=10, no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("last reply", no_wrap=True)
    # The one column that gives way where there is not enough room.
    table.add_column("conditions")
    for run in runs[:n]:
        expected = max(run.expected or 0, run.calls)
        calls = f"{run.calls:,}" + (f"/{expected:,}" if run.expected else "")
        waited = "" if run.last_reply_s is None else _duration(run.last_reply_s)
        what = {"cut off": "cut off: ", "complete": "being coded: "}.get(run.state, "")
        bar = ProgressBar(expected, run.calls) if run.expected else ""
        conditions = _text(f"{what}{run.cell}", "yellow" if run.state == "cut off" else "")
        conditions.no_wrap = True
        table.add_row(str(run.row), bar, calls, waited, conditions)
    yield from (Text(), table)
    if runs[n:]:
        yield Text(f"and {len(runs) - n:,} more", "dim")
