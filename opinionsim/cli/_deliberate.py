"""The commands deliberate and room, which carry out and print discussions that people can join."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import counted, note, say, stderr
from opinionsim.cli._options import Changes, Slots, read_spec
from opinionsim.cli._run import carried_out, end, report
from opinionsim.cli._stores import read_results
from opinionsim.errors import SpecError
from opinionsim.foundation.progress import attended, stop_requests
from opinionsim.messages import spelled_out
from opinionsim.watching import row_of, spelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opinionsim.llm import Question
    from opinionsim.specification import Experiment

#: Most runs printed where none is chosen.
_MOST_PRINTED = 3


RunToPrint = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="NAME|ID",
        help=f"Run to print: condition and replicate, or the start of its id. Default: the first {_MOST_PRINTED}.",
    ),
]


def deliberate(
    spec: str,
    store: str | None = None,
    run: RunToPrint = None,
    max_concurrency: Slots = None,
    changes: Changes = None,
    prompts: str | None = None,
) -> None:
    """Run an experiment and print its transcripts. If you repeat the command, it repeats no calls."""
    from opinionsim.watching import transcript

    print_runs(read_spec(spec, changes, prompts), store, run, max_concurrency, transcript)


def print_runs(experiment: Any, store: Any, run: Any, max_concurrency: Any, told: Any) -> None:
    """Carry out an experiment and print its runs with a function of results and row."""
    planned = list({each.run_id: each for each in reversed(experiment.runs)}.values())[::-1]
    chosen = planned[:_MOST_PRINTED] if run is None else [planned[row_of(experiment.spec.name, planned, run)]]
    url, summary = carried_out(experiment, store, max_concurrency)
    results = read_results(url, experiment.spec.name, None)
    rows = {run_id: row for row, run_id in enumerate(results.runs["run_id"])}
    for each in chosen:
        say(told(results, rows[each.run_id]))
        say("")
    if more := planned[len(chosen) :] if run is None else []:
        note(f"{counted(len(more), 'further run')} in the store; print one with --run NAME, or:")
        note(f"  opinionsim show {spelled(url)} --run {more[0].run_id[:8]}")
    end(summary)


def room(
    spec: str,
    store: str | None = None,
    changes: Changes = None,
    prompts: str | None = None,
    terminal: bool = False,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    no_browser: bool = False,
) -> None:
    """Take part in an experiment that has a seat, on a web page or with --terminal.

    Parameters
    ----------
    store : STORE
        Store for the results: a path (.sqlite), or a sqlite:/// or postgresql+psycopg:// address. Default:
        results/NAME-room.sqlite.
    terminal
        Take every seat yourself in this terminal.
    port : N
        Port. 0 takes a free one.
    no_browser
        Print the link without opening a browser.
    """
    experiment = read_spec(spec, changes, prompts)
    url = f"sqlite:///results/{experiment.spec.name}-room.sqlite" if store is None else store
    if not any(cell.spec.seats for cell in experiment.cells):
        raise SpecError(f"{experiment.spec.name} has no seat for a person; give `seat: {{}}` to a member of its cast")
    if terminal:
        return _at_terminal(experiment, url)
    from opinionsim.web import serve

    serve(experiment, url, port=port, browser=not no_browser)


def _at_terminal(experiment: Experiment, url: str) -> None:
    """Carry out the first replicate that is not over, as a trial of the person at the terminal, in all its seats."""
    from opinionsim.foundation import background
    from opinionsim.running import Invocation, under_way
    from opinionsim.specification import participant_names, require_protocol, seat_numbers
    from opinionsim.store import open_store

    require_protocol(experiment)
    with open_store(url) as opened:
        over = {run_id for run_id, state in opened.states().items() if state.status in ("complete", "withdrawn")}
        left = [each for each in experiment.runs if each.spec.seats and each.run_id not in over]
        if not left:
            return note(f"all sessions are over; see: opinionsim show {url}")
        names = dict(enumerate(participant_names(left[0].spec)))
        seats = {agent: names.get(agent, f"Seat {agent}") for agent in seat_numbers(left[0].spec)}
        for agent in seats:
            opened.change_seat(left[0].run_id, agent, lambda seat: replace(seat, trial=True))
    only = [each.run_id for each in (left[0], *left[0].sources)]
    context = under_way(Invocation(experiment, url, only=only, people=_Terminal(seats)))
    with stop_requests("stopping; repeat the command to continue from here") as stopping, context as (runner, future):
        summary = attended(future, lambda: background.call_soon(runner.stop) if stopping() else None)
    report(url, summary)
    end(summary)


class _Terminal:
    """A person who reads standard error and writes to standard input."""

    evidence = "human"

    def __init__(self, seats: Mapping[int, str]) -> None:
        self._seats = seats
        self._lines: asyncio.Queue[str | None] | None = None
        self._turn = asyncio.Lock()

    async def answer(self, question: Question) -> str:
        """Read an answer from one line, or a text up to a blank line. Repeat until it fits the form."""
        if not question.waited_for:
            return ""
        if question.act == "consent":  # who tries an experiment of its own is not asked
            return question.form.items[0]
        async with self._turn:
            console, reason = stderr(), question.reason
            if len(self._seats) > 1:
                console.print(f"\nThis is for {spelled_out(self._seats[question.agent])}:")
            for message in question.messages:
                author = "You" if message.agent == question.agent else message.author or "Somebody"
                console.print(f"\n[{spelled_out(author)}]\n{spelled_out(message.text)}")
            console.print(f"\n{spelled_out(question.text)}", style="bold")
            if question.form.place:
                console.print(f"This is {question.form.place}.")
            if question.timeout_s is not None:
                console.print(f"You have {question.timeout_s:g} seconds to answer.")
            while True:
                if reason:
                    console.print(f"This answer cannot be used: {spelled_out(reason)}", style="red")
                try:
                    return await self._given(question)
                except SpecError as error:
                    reason = str(error)

    async def _given(self, question: Question) -> str:
        form = question.form
        shown = [spelled_out(text) for text in form.shown or form.items]
        if form.kind == "ratings":
            scale = f"from {form.points[0]} to {form.points[-1]}"
            means = [", ".join(f"{point} {label}" for point, label in zip(form.points, labels, strict=True) if label)
                     for labels in form.labels]  # fmt: skip
            asked = zip(form.items, shown, means, strict=True)
            return form.written({item: await self._line(f"{text}, {scale} ({told}):") for item, text, told in asked})
        if form.kind in ("ranking", "choice"):
            labels = form.items if form.kind == "ranking" else range(1, len(shown) + 1)
            listed = "\n".join(f"{label}: {text}" for label, text in zip(labels, shown, strict=True))
            how = "Best first, as in B > A, or B = A for a tie:" if form.kind == "ranking" else "Your number:"
            return form.typed(await self._line(f"{listed}\n{how}"))
        lines = [await self._line(f"Your text{form.length and f', {form.length}'}; a blank line ends it:")]
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
            raise EOFError("the input has ended; repeat the command to continue from here")
        return line.strip()

    @staticmethod
    def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
        for line in chain(sys.stdin, [None]):
            loop.call_soon_threadsafe(lines.put_nowait, line)
