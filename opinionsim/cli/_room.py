"""The command room: a person takes part in an experiment, on a page or at the terminal."""

from __future__ import annotations

import asyncio
import sys
import threading
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from opinionsim.cli._console import clean, note, stderr
from opinionsim.cli._options import Changes, Prompts, Spec, read_spec
from opinionsim.cli._run import StoreOption, end, report
from opinionsim.errors import SpecError, packages
from opinionsim.progress import attended, stop_requests

if TYPE_CHECKING:
    from opinionsim.llm import Question
    from opinionsim.specification import Experiment


def room(
    spec: Spec,
    store: StoreOption = None,
    changes: Changes = None,
    prompts: Prompts = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Take every seat yourself, at this terminal.")] = False,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 takes a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link and open no browser.")] = False,
) -> None:
    """Take part in an experiment that has a seat: a page in the browser, or --terminal."""
    experiment = read_spec(spec, changes, prompts)
    url = f"sqlite:///results/{experiment.spec.name}-room.sqlite" if store is None else store
    if not any(cell.spec.seats for cell in experiment.cells):
        raise SpecError(f"{experiment.spec.name} has no seat for a person; give a member of its cast `seat: {{}}`")
    if terminal:
        _at_terminal(experiment, url)
    else:
        *_, web = packages("opinionsim room", "web", "starlette", "uvicorn", "opinionsim.web", kind=SpecError)
        web.serve(experiment, url, port=port, browser=not no_browser)


def _at_terminal(experiment: Experiment, url: str) -> None:
    """Carry out the first replicate that is not complete, with the person at the terminal in its seats."""
    from opinionsim import background
    from opinionsim.assembly import LoadedParts
    from opinionsim.running import under_way
    from opinionsim.store import open_store

    loaded = LoadedParts(experiment, people=_Terminal())
    with open_store(url) as opened:
        done = {run_id for run_id, state in opened.states().items() if state.status == "complete"}
    left = [each.run_id for each in experiment.runs if each.spec.seats and each.run_id not in done]
    if not left:
        return note(f"all sessions are complete; see: opinionsim show {url}")
    context = under_way(experiment, url, only=left[:1], loaded=loaded)
    with stop_requests("stopping; the same command goes on from here") as stopping, context as (runner, future):
        summary = attended(future, lambda: background.call_soon(runner.stop) if stopping() else None)
    report(url, summary)
    end(summary)


class _Terminal:
    """A person who reads standard error and writes to standard input."""

    evidence = "human"

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] | None = None
        self._turn = asyncio.Lock()

    async def answer(self, question: Question) -> str:
        """What is written on one line, or for a text up to a blank line; asked for until it fits the form."""
        if not question.waited_for:
            return ""
        async with self._turn:
            console, reason = stderr(), question.reason
            for message in question.messages:
                console.print(f"\n[{clean(message.author or 'Somebody')}]\n{clean(message.text)}")
            console.print(f"\n{clean(question.text)}", style="bold")
            if question.timeout_s is not None:
                console.print(f"There are {question.timeout_s:g} seconds for it.")
            while True:
                if reason:
                    console.print(f"That could not be used: {clean(reason)}", style="red")
                try:
                    return await self._given(question)
                except SpecError as error:
                    reason = str(error)

    async def _given(self, question: Question) -> str:
        form = question.form
        shown = [clean(text) for text in form.shown or form.items]
        if form.kind == "ratings":
            scale = f"from {form.points[0]} to {form.points[-1]} ({' to '.join(form.ends)})"
            asked = zip(form.items, shown, strict=True)
            return form.written({item: await self._line(f"{text}, {scale}:") for item, text in asked})
        if form.kind in ("ranking", "choice"):
            labels = form.items if form.kind == "ranking" else range(1, len(shown) + 1)
            listed = "\n".join(f"{label}: {text}" for label, text in zip(labels, shown, strict=True))
            how = "The best first, as in B > A, or B = A for a tie:" if form.kind == "ranking" else "Your number:"
            return form.typed(await self._line(f"{listed}\n{how}"))
        limit = "" if form.words is None else f", in {form.words} words at most"
        lines = [await self._line(f"Your text{limit}; a blank line ends it:")]
        while lines[-1]:
            lines.append(await self._line())
        return form.written("\n".join(lines[:-1]))

    async def _line(self, asked: str = "") -> str:
        """The next line; read by a thread of its own, since a read of the terminal cannot be ended."""
        if asked:
            stderr().print(asked)
        if self._lines is None:
            self._lines = asyncio.Queue()
            threading.Thread(target=self._read, args=(asyncio.get_running_loop(), self._lines), daemon=True).start()
        if (line := await self._lines.get()) is None:
            self._lines.put_nowait(None)
            raise EOFError("there is no more input; the same command goes on from here")
        return line.strip()

    @staticmethod
    def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
        for line in chain(sys.stdin, [None]):
            loop.call_soon_threadsafe(lines.put_nowait, line)
