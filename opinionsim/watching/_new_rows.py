"""The rows of one run as they become known, for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from opinionsim.errors import StoreError
from opinionsim.store import open_store

if TYPE_CHECKING:
    from opinionsim.store import NewRow, StoreReader

#: Seconds between two looks at a run: after new rows, and at most.
_OFTEN_S, _SELDOM_S = 0.1, 1.0
#: How long a database that cannot be reached is tried again, seconds.
_PATIENCE_S = 60.0


def follow(
    store: str, run: str, *, after: int = 0, generation: int | None = None, timeout_s: float | None = None
) -> Iterator[NewRow]:
    """Yield the rows of a run as they become known, until the run ends.

    Parameters
    ----------
    store : str
        Store address, as for :func:`opinionsim.load`; opened for reading only. Another process may be writing it.
    run : str
        Run id, or as much of its start as no other run has.
    after : int
        Number of the last row that you already know; 0 begins at the start of the run.
    generation : int, optional
        The `generation` of the event with that number. If the run has been restarted since, everything is yielded from
        the start. Default: the present one.
    timeout_s : float, optional
        Seconds without a new row after which the iteration ends. Default: wait without end, even for an interrupted
        run, which continues when it is resumed.

    Yields
    ------
    NewRow
        Each turn, opinion and moved tie once, in order, without gaps. A restarted run begins again at number 1, with a
        higher `generation`.

    Raises
    ------
    StoreError
        If the store cannot be read (after opening, for a minute), has no such run or no row with that number, or is
        damaged.
    """
    with open_store(store, write=False) as opened:
        follower = opened.follow(_whole_id(opened, run), after=after, generation=generation)
        heard = reached = time.monotonic()
        pause = _OFTEN_S
        while True:
            try:
                events = follower.poll()
            except StoreError as error:
                if not opened.passes(error) or time.monotonic() - reached > _PATIENCE_S:
                    raise
                time.sleep(_SELDOM_S)
                continue
            reached = time.monotonic()
            yield from events
            if events:
                heard, pause = reached, _OFTEN_S
            elif follower.over or (timeout_s is not None and reached - heard > timeout_s):
                return
            else:
                time.sleep(pause)
                pause = min(2 * pause, _SELDOM_S)


def _whole_id(opened: StoreReader, run: str) -> str:
    found = [run_id for run_id in opened.states() if run_id.startswith(run)] if run else []
    if len(found) != 1:
        raise StoreError(f"the store {opened.url} has {len(found) or 'no'} runs whose id begins with {run!r}")
    return found[0]
