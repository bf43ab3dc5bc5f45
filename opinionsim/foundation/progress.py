"""Progress on standard error, and requests to stop.

The command line and deliberations both carry out long work but do not import each other. This module contains what
they share, and does not use stores or models.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from opinionsim.errors import Interrupt

if TYPE_CHECKING:
    from rich.console import RenderableType

_T = TypeVar("_T")
#: Seconds between looks at progress, and between lines of it where no bar can be drawn.
_TICK_S, _TOLD_EVERY_S = 0.1, 30.0


@contextmanager
def shown(*, keep: bool = False) -> Iterator[Callable[[int, int | None, str], None]]:
    """Show progress on standard error: a bar at a terminal, elsewhere a line of text every 30 seconds.

    Parameters
    ----------
    keep : bool
        Whether to show a bar everywhere, including notebooks, and keep the last one.

    Yields
    ------
    callable
        Shows the amount done, the total (None while unknown), and a text. Its first line appears next to the bar, the
        others below it, each cut at the width of the terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True)
    lines = not (keep or console.is_terminal)
    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    below: list[str] = []
    columns = (BarColumn(20), TaskProgressColumn(), text, TimeRemainingColumn(compact=True))

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            yield from (Text(line, no_wrap=True, overflow="ellipsis") for line in below)

    with Bars(*columns, console=console, transient=not keep, disable=lines) as bars:
        task = bars.add_task("starting", total=None)
        due = time.monotonic() + _TOLD_EVERY_S

        def show(done: int, total: int | None, description: str) -> None:
            nonlocal due
            beside, *below[:] = description.split("\n")
            bars.update(task, completed=done, total=total, description=beside)
            if lines and time.monotonic() >= due:
                due = time.monotonic() + _TOLD_EVERY_S
                left = bars.tasks[0].time_remaining
                ending = f", {timedelta(seconds=round(left))} left" if left else ""
                sys.stderr.write(f"{'; '.join([f'{beside}{ending}', *below])}\n")

        yield show


@contextmanager
def stop_requests(said: str) -> Iterator[Callable[[], bool]]:
    """Take the first SIGINT, SIGTERM or SIGHUP as a request to stop while the block lasts; the second raises Interrupt.

    Parameters
    ----------
    said : str
        Message on standard error after the first signal.

    Yields
    ------
    callable
        Returns whether to stop.
    """
    count, told = 0, False

    def taken(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise Interrupt

    def stopping() -> bool:
        nonlocal told
        if count and not told:
            # Not said in the handler, which may have come in the midst of other output.
            told = True
            with suppress(OSError):  # the terminal may be gone
                sys.stderr.write(f"{said}\n")
        return count > 0

    numbers = [signal.SIGINT, signal.SIGTERM]
    # The terminal was closed; under nohup that ends nothing. Windows has no such signal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, taken) for number in numbers}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def attended(future: Future[_T], look: Callable[[], object]) -> _T:
    """The result of work under way; `look` is called several times a second, for the last time when it is over."""
    over = False
    while not over:
        over = bool(wait([future], timeout=_TICK_S).done)
        look()
    return future.result()
