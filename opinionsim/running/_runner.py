"""The runner of an experiment. It carries out all runs together, each exactly once, and can resume at any point."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opinionsim.errors import OpinionSimError
from opinionsim.foundation import background
from opinionsim.running._context import Advance, Shared, Summary, together
from opinionsim.running._executors import Executor
from opinionsim.running._one_run import measure_finished
from opinionsim.running._registration import Registration
from opinionsim.running._sorting import sort_out
from opinionsim.store import Store

#: Seconds between two looks at whether a run has ended.
_LOOK_S = 0.02
#: Thresholds of Python's search for cycles during sweeps. Runs make hardly any, and by the usual ones every call would
#: pay for walks through all that its run remembers.
_SELDOM = (50_000, 10, 2)
#: The thresholds before the sweeps under way began, one for each.
_usual: list[tuple[int, int, int]] = []


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Let Python search for cycles seldom; the last of several sweeps to end sets the usual thresholds again.

    Used from one event loop.
    """
    _usual.append(_usual[0] if _usual else gc.get_threshold())
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        usual = _usual.pop()
        if not _usual:
            gc.set_threshold(*usual)


class Runner:
    """Carries out the runs of an experiment, on one event loop.

    Parameters
    ----------
    context : Shared
        The experiment, its store and its models.
    executor : Executor
        Carries the runs out; has the same context.

    Attributes
    ----------
    warnings : list of str
        Warnings about the models and the executor that a user should read before the sweep.

    Notes
    -----
    The runner does not repeat finished runs. Unfinished runs go on from their last durable call. A run that fails
    does not stop the others.
    """

    def __init__(self, context: Shared, executor: Executor) -> None:
        self._context = context
        self._executor = executor
        self.warnings = [*executor.warnings, *context.loaded.warnings()]

    @property
    def store(self) -> Store:
        """The store that the runs are carried out in."""
        return self._context.store

    def progress(self) -> Advance:
        """Progress of the sweep; may be called from any thread."""
        return self._executor.progress()

    def errors(self) -> list[OpinionSimError]:
        """Errors of runs so far, one per run; may be called from any thread."""
        return list(self._context.errors.values())

    def stop(self) -> None:
        """Dispatch no further calls; calls in flight run to their end. Call this on the event loop."""
        self._context.stop()

    async def withdraw(self, run_id: str, agent: int) -> None:
        """End a run for good; delete what a person said in it and everything after that. Works from any event loop.

        Raises
        ------
        StoreError
            As :meth:`opinionsim.store.Store.withdraw` does.
        """
        await asyncio.wrap_future(background.submit(self._withdraw(run_id, agent)))

    async def _withdraw(self, run_id: str, agent: int) -> None:
        context = self._context
        if (simulation := context.playing.get(run_id)) is not None:
            await simulation.end(OpinionSimError("a person has withdrawn their texts"))
            while run_id not in context.errors and run_id not in context.complete:
                await asyncio.sleep(_LOOK_S)
        # Not one of the threads of the sweep, which may be over.
        await asyncio.to_thread(self.store.withdraw, run_id, agent)

    async def execute(self) -> Summary:
        """Carry out the remaining runs and code the remaining texts.

        Returns
        -------
        Summary
            Returned also when runs failed or the sweep was stopped.
        """
        with _seldom_collected():
            return await self._execute()

    async def _execute(self) -> Summary:
        began = time.monotonic()
        context, store = self._context, self._context.store
        registration = Registration(context)
        try:
            store.tell(context.doing)
            # Before any run is begun anew: what runs have paid counts in any case.
            await context.in_store(context.spending.open)
            run_ids = [planned.run_id for planned in context.planned]
            await context.batches.open(context.loaded.endpoints(), run_ids, context.spending.budget)
            if context.registers:
                await context.in_store(registration.save)
            else:
                await context.in_store(registration.save_instruments, context.planned)
            worked, beforehand = False, set[str]()
            # Runs that take something over begin when those that they take it from are over and coded.
            for waiting in (False, True):
                runs = [run for run in context.planned if bool(run.sources) == waiting]
                if not runs:
                    continue
                done = set(context.complete)
                pending, unmeasured = await sort_out(context, registration, runs)
                beforehand |= (context.complete - done) | {planned.run_id for planned in unmeasured}
                worked = worked or bool(pending or unmeasured)
                await together(self._executor.carry_out(pending), measure_finished(context, unmeasured))
            if context.registers and worked:
                await context.in_store(registration.save_design)
            if context.defect is not None:
                raise context.defect
            await context.batches.close()
            paid = await context.in_store(store.usage, run_ids)
            batches = await context.in_store(store.batches)
        finally:
            await context.batches.close()
            await context.close()
        return Summary(
            total=len(context.planned),
            complete=len(context.complete),
            already=len(context.complete & beforehand),
            causes=dict(context.errors),
            stopped=context.stopped,
            exceeded=context.exceeded,
            made=context.over.made,
            answered=context.over.answered,
            repeated=context.over.repeated,
            cost=context.over.cost,
            paid=paid,
            seconds=time.monotonic() - began,
            left=context.left,
            batches=[row for row in batches if (row.experiment_id, row.state) == (context.experiment_id, "open")],
        )
