"""The single event loop of the process, in a separate thread.

Notebooks and user interfaces often run a loop already, so this module does not use the caller's loop. Work is
submitted to this loop, and the caller waits.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


_measuring: concurrent.futures.ThreadPoolExecutor | None = None


def _forget() -> None:
    """Begin anew in a forked child, which has the loop's objects but none of its threads."""
    global _lock, _loop, _measuring
    _lock, _loop, _measuring = threading.Lock(), None, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def measuring_thread() -> concurrent.futures.Executor:
    """The thread in which classifiers compute. It keeps the loop free to serve calls."""
    global _measuring
    with _lock:
        if _measuring is None:
            _measuring = concurrent.futures.ThreadPoolExecutor(1, "opinionsim-measure")
        return _measuring


def _running_loop() -> asyncio.AbstractEventLoop:
    """The package's loop, started on first use; its thread ends with the process."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_keep_running, args=(_loop,), name="opinionsim-loop", daemon=True).start()
        return _loop


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop for ever; a task that raises SystemExit or KeyboardInterrupt keeps the error and stops no other."""
    while True:
        try:
            loop.run_forever()
            return
        except (SystemExit, KeyboardInterrupt):
            continue


def submit(work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
    """Start a coroutine on the package's loop.

    Returns
    -------
    concurrent.futures.Future
        Its result or error; cancelling it cancels the coroutine.
    """
    return asyncio.run_coroutine_threadsafe(work, _running_loop())


def call_soon(function: Callable[[], object]) -> None:
    """Call a function on the package's loop, without waiting for it."""
    _running_loop().call_soon_threadsafe(function)


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine on the package's loop and wait for its result; an interrupt cancels it."""
    future = submit(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
