"""Executors, which carry out the runs of a sweep: their protocol, and the executor of this process."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import Protocol

from opinionsim.assembly import assemble
from opinionsim.engine import critical_path
from opinionsim.errors import SpecError
from opinionsim.foundation.streams import canonical_json
from opinionsim.running._context import Advance, Shared, Stopped, together, withdrawn
from opinionsim.running._one_run import Opened, Played, conclude, measure_finished, open_anew, open_run, play
from opinionsim.running._sorting import Pending
from opinionsim.schedules import AdaptiveSchedule
from opinionsim.store import HeldElsewhereError


class Executor(Protocol):
    """Carries out the runs of a sweep, and settles them in a :class:`Shared`.

    Attributes
    ----------
    warnings : list of str
        Warnings that a user should read before the sweep.
    """

    warnings: list[str]

    async def carry_out(self, pending: list[Pending]) -> None:
        """Carry out runs to their end, or until the sweep is stopped."""
        ...

    def progress(self) -> Advance:
        """Progress of the sweep; may be called from any thread."""
        ...


class LocalExecutor:
    """Carries out runs in this process, all of them on one event loop.

    Parameters
    ----------
    context : Shared
        Shared with the runner.
    """

    def __init__(self, context: Shared) -> None:
        self.warnings: list[str] = []
        self._context = context
        #: Runs that other workers took over while they were under way here.
        self._taken_over: list[Pending] = []

    def progress(self) -> Advance:
        """Progress of the sweep."""
        return self._context.progress()

    async def carry_out(self, pending: list[Pending]) -> None:
        """Carry out runs to their end, and wait for those that other workers hold.

        A run with seats may wait for days. It begins when its people are there, and does not delay other runs.
        """
        rest = [each for each in pending if not each.planned.spec.seats]
        self._context.begun = self._context.begun or not rest
        await together(self._side_by_side(rest), *(self._alone(each) for each in pending if each.planned.spec.seats))

    async def _alone(self, pending: Pending) -> None:
        context, run_id = self._context, pending.run_id
        if not await context.taken(run_id):
            context.settle(run_id, Stopped())
        elif (state := (await context.in_opening(context.store.states, [run_id]))[run_id]).status == "withdrawn":
            context.settle(run_id, withdrawn(run_id, state))
        else:
            await self._side_by_side([pending])

    async def _side_by_side(self, pending: list[Pending]) -> None:
        while pending:
            n_open = self._open_at_once(pending)
            opened: asyncio.Queue[Opened | None] = asyncio.Queue(1 if self._context.store.shared else max(n_open, 1))
            await together(self._open_ahead(pending, opened, n_open), *(self._work(opened) for _ in range(n_open)))
            lost, self._taken_over = self._taken_over, []
            pending = await self._not_done_elsewhere(lost)

    def _open_at_once(self, pending: list[Pending]) -> int:
        """Number of runs under way at a time: enough to keep every slot busy."""
        if len(pending) == 1:
            return 1
        widths: dict[str, float] = {}
        for each in pending:
            spec = each.planned.spec
            shape = canonical_json([spec.interaction.model_dump(mode="json"), spec.size])
            if shape not in widths:
                with suppress(SpecError):
                    schedule = assemble(each.planned, self._context.experiment.resources).schedule
                    if isinstance(schedule, AdaptiveSchedule):
                        widths[shape] = 1.0  # it decides one step at a time
                    else:
                        widths[shape] = critical_path(schedule).mean_width
        # At the end, only the narrowest runs may be left.
        width = max(1.0, min(widths.values(), default=1.0))
        # With a shared store, other workers can take the other runs.
        rounds, least = (1, 1) if self._context.store.shared else (4, 8)
        wanted = self._context.wide(max(least, math.ceil(rounds * self._context.slots.limit / width)))
        return min(wanted, len(pending))

    async def _open_ahead(self, pending: list[Pending], opened: asyncio.Queue[Opened | None], n_open: int) -> None:
        """Lease runs and read their journals in advance, so that no slot waits for the store."""
        context = self._context
        while pending:
            held = []
            for each in pending:
                if context.stopped:
                    context.settle(each.run_id, Stopped())
                    continue
                context.opening += 1
                try:
                    ready = await open_run(context, each)
                except HeldElsewhereError:
                    held.append(each)
                    continue
                finally:
                    context.opening -= 1
                if ready is not None:
                    context.begun = context.begun or opened.full()
                    await opened.put(ready)
            context.begun = True
            pending = await self._not_done_elsewhere(held)
        for _ in range(n_open):
            await opened.put(None)

    async def _not_done_elsewhere(self, held: list[Pending]) -> list[Pending]:
        """Runs that other workers hold and have not finished after a wait; their workers may have died."""
        context = self._context
        if not held or context.stopped:
            for each in held:
                context.settle(each.run_id, Stopped())
            return []
        await context.pause()
        states = await context.in_opening(context.store.states, [each.run_id for each in held])
        done = {run_id for run_id, state in states.items() if state.status == "complete"}
        # The worker that finished them may have had other instruments.
        await measure_finished(context, [each.planned for each in held if each.run_id in done])
        return [each for each in held if each.run_id not in done]

    async def _work(self, queue: asyncio.Queue[Opened | None]) -> None:
        """Carry out one run after another; the next one starts while the last one is measured and stored."""
        async with asyncio.TaskGroup() as group:
            concluding: asyncio.Task[None] | None = None
            while (opened := await queue.get()) is not None:
                played = await self._played(opened)
                if concluding is not None:
                    await concluding
                concluding = None if played is None else group.create_task(self._conclude(played))

    async def _played(self, opened: Opened) -> Played | None:
        """Carry out a run to its last turn, with `fresh` anew if its record does not fit; None if that fails."""
        played = await play(self._context, opened)
        if played.error is None or not (played.error.anew and self._context.fresh):
            return played
        self._context.count(played.calls)
        try:
            again = await open_anew(self._context, opened.pending)
        except HeldElsewhereError:
            self._taken_over.append(opened.pending)
            return None
        return None if again is None else await play(self._context, again)

    async def _conclude(self, played: Played) -> None:
        try:
            await conclude(self._context, played)
        except HeldElsewhereError:
            # Another worker took this process for dead and took the run over.
            self._taken_over.append(played.opened.pending)
