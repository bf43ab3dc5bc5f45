"""Watching from another process an experiment that is being run."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from opinionsim.cli._console import note, say
from opinionsim.cli._options import ExperimentName, StorePath
from opinionsim.cli._watch_state import Seen, Watcher
from opinionsim.cli._watch_view import ASCII, UNICODE, Glyphs, in_one_line, lines
from opinionsim.errors import StoreError

#: Seconds between looks at the store, and between lines where nothing can be drawn.
_LOOK_S, _TELL_S = 1.0, 10.0
#: A look at a large store takes time: the next look waits this many times as long, but at most so many seconds.
_REST, _LATEST_S = 10, 10.0
#: Seconds after the end of all runs until an experiment counts as over although a process still works on the store.
_SETTLED_S = 10.0
_INCOMPLETE, _INTERRUPTED = 1, 130


def watch(
    store: StorePath,
    experiment: ExperimentName = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="N|ID",
            help="The run whose opinions are shown. Default: the first run under way.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the present state and exit.")] = False,
) -> None:
    """Watch an experiment while it is being run, here or elsewhere, until it is over."""
    console = Console(markup=False, emoji=False, highlight=False)
    watcher = Watcher(store, experiment, run)
    try:
        if once:
            seen = watcher.look()
            if seen.away or not seen.experiment:
                raise StoreError(seen.away or f"the store {seen.store} holds no experiment yet")
            width = shutil.get_terminal_size().columns
            say("\n".join(line.plain.rstrip() for line in lines(seen, width, glyphs=_glyphs())))
            return
        can_draw = sys.stdout.isatty() and not console.is_dumb_terminal
        last = _drawn(watcher, console) if can_draw else _told(watcher)
    except KeyboardInterrupt:
        note("no longer watched; the experiment goes on")
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        watcher.close()
    if last.counts.get("incomplete"):
        raise typer.Exit(_INCOMPLETE)


def _glyphs() -> Glyphs:
    """Glyphs that standard output can encode."""
    try:
        "".join(UNICODE).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def _drawn(watcher: Watcher, console: Console) -> Seen:
    """Redraw the state of the experiment until it is over; return the last state."""
    glyphs = _glyphs()

    def draw(seen: Seen) -> None:
        # Text on the last line of a terminal would make it scroll.
        found = lines(seen, console.width, console.height - 1, glyphs)
        live.update(Text("\n", no_wrap=True, overflow="crop").join(found), refresh=True)

    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        return _attend(watcher, draw)


def _told(watcher: Watcher) -> Seen:
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

    return _attend(watcher, tell)


def _attend(watcher: Watcher, show: Callable[[Seen], None]) -> Seen:
    """Look at the store and show its state until the experiment is over; return the last state."""
    ended = math.inf
    while True:
        began = time.monotonic()
        seen = watcher.look()
        show(seen)
        ended = min(ended, began) if seen.over else math.inf
        # Between two runs that are tried again, there may be a moment in which no worker holds a run.
        if seen.over and (not seen.doing or began - ended >= _SETTLED_S):
            return seen
        took = time.monotonic() - began
        time.sleep(max(_LOOK_S - took, min(_REST * took, _LATEST_S)))
