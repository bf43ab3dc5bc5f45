"""Processes beside the server that answer its questions.

They hold pandas, matplotlib and the user's own parts, none of which the server loads. One that hangs is ended, and one
that nobody has asked for a while ends and gives its memory back.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from opinionsim.errors import OpinionSimError

#: Seconds that an answer may take, and after which a process without questions ends.
_PATIENCE_S, _IDLE_S = 60.0, 900.0
#: Most bytes of an answer.
_MOST_BYTES = 1 << 27


class SupersededError(Exception):
    """A question was dropped because a later one of its subject came before its turn."""


class Child:
    """A process that answers questions, one after another; it is used on one event loop.

    Parameters
    ----------
    module : str
        Module that calls :func:`answer`.
    folder : Path
        The folder in which it works, where the user's own modules are found.
    patience_s : float
        Seconds after which a question without an answer ends the process.
    """

    def __init__(self, module: str, folder: Path, patience_s: float = _PATIENCE_S) -> None:
        # Modules of the user's own are found by a way that asks first, and never in the place of others.
        self._command = [sys.executable, "-P", "-m", module]
        self._folder = folder
        self._patience_s = patience_s
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._last: dict[str, object] = {}
        #: Questions that are not answered yet.
        self.waiting = 0
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, what: str, subject: str = "", **given: Any) -> Any:
        """Ask one of the functions of the module.

        Parameters
        ----------
        what : str
            Name of the function.
        subject : str
            Questions of the same subject supersede one another; by default, each is answered.
        **given
            Its arguments, JSON values.

        Returns
        -------
        JSON value
            What the function returned.

        Raises
        ------
        SupersededError
            If a later question of the subject came before this one had its turn.
        OpinionSimError
            If the function raised an error, took too long, or its process ended.
        """
        mark = self._last[subject] = object()
        self.waiting += 1
        try:
            async with self._turn:
                if subject and self._last[subject] is not mark:
                    raise SupersededError
                if self._ending is not None:
                    self._ending.cancel()
                told = await self._answered(json.dumps({"what": what, "given": given}))
                self._ending = asyncio.get_running_loop().call_later(_IDLE_S, self.end)
        finally:
            self.waiting -= 1
        if "problem" in told:
            raise OpinionSimError(told["problem"])
        return told["answer"]

    async def warm(self) -> None:
        """Start the process, so that the next question finds everything loaded."""
        if not self._turn.locked():
            async with self._turn:
                await self._begun()

    async def _begun(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, cwd=self._folder, limit=_MOST_BYTES
            )
        return self._process

    async def _answered(self, question: str) -> Mapping[str, Any]:
        process = await self._begun()
        to, back = cast("asyncio.StreamWriter", process.stdin), cast("asyncio.StreamReader", process.stdout)
        try:
            to.write(f"{question}\n".encode())
            await to.drain()
            line = await asyncio.wait_for(back.readline(), self._patience_s)
            if not line:
                raise OpinionSimError("The process that reads this ended without an answer; try again.")
            told: Mapping[str, Any] = json.loads(line)
            return told
        except TimeoutError:
            raise OpinionSimError(f"There was no answer within {self._patience_s:g} seconds.") from None
        except ConnectionError:
            raise OpinionSimError("The process that reads this ended; try again.") from None
        finally:
            # Also where the question was cancelled: its answer must not be taken for that of the next one.
            if sys.exc_info()[0] is not None:
                self.end()

    def end(self) -> None:
        """End the process; the next question starts another one."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        self._process = None


def answer(*functions: Callable[..., Any]) -> None:
    """Answer questions from standard input until it ends; what the functions print goes to standard error."""
    by_name = {function.__name__: function for function in functions}
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        asked = json.loads(line)
        told: dict[str, Any] = {}
        try:
            told["answer"] = by_name[asked["what"]](**asked["given"])
        except OpinionSimError as error:
            told["problem"] = str(error)
        except Exception as error:  # whatever a user's own part raises
            told["problem"] = f"{type(error).__name__}: {error}"
        print(json.dumps(told), file=answers, flush=True)
