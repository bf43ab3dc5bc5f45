from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from opinionsim.foundation import background


async def _where() -> tuple[str, asyncio.AbstractEventLoop]:
    return threading.current_thread().name, asyncio.get_running_loop()


def test_all_work_runs_on_one_loop_in_a_thread_of_its_own() -> None:
    name, loop = background.run(_where())
    assert name == "opinionsim-loop"
    assert background.submit(_where()).result() == (name, loop)
    found: list[object] = []
    done = threading.Event()
    background.call_soon(lambda: (found.append(asyncio.get_running_loop()), done.set()))
    assert done.wait(10)
    assert found == [loop]
    others: list[object] = []
    threads = [threading.Thread(target=lambda: others.append(background.run(_where())[1])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert others == [loop] * 4


def test_it_serves_callers_that_run_a_loop_themselves() -> None:
    async def notebook() -> str:
        return background.run(_where())[0]

    assert asyncio.run(notebook()) == "opinionsim-loop"


def test_an_error_reaches_the_caller() -> None:
    async def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        background.run(fails())


def test_an_interrupt_of_the_caller_cancels_the_work() -> None:
    cancelled = threading.Event()
    main = threading.main_thread().ident

    async def endless() -> None:
        # The caller must have begun to wait.
        while sys._current_frames()[main].f_code.co_name != "wait":
            await asyncio.sleep(0)
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        background.run(endless())
    assert cancelled.wait(10)


def test_cancelling_what_was_submitted_cancels_the_work() -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    future = background.submit(endless())
    assert begun.wait(10)
    assert future.cancel()
    assert cancelled.wait(10)


@pytest.mark.whole
@pytest.mark.long
def test_a_forked_child_gets_a_loop_of_its_own(checkout: Path) -> None:
    script = """
import os, warnings
import opinionsim as osim
warnings.simplefilter("ignore")  # later versions of Python warn of forks beside threads
osim.OpinionModel(schedule=1, seed=1).run()
child = os.fork()
if child == 0:
    model = osim.OpinionModel(schedule=1, seed=2)
    model.run()
    os._exit(0 if model.steps == 1 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "0"
