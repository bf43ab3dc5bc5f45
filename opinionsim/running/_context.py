"""The shared state of a runner's components: experiment, store, results so far, and whether to stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import Any, TypeVar

from opinionsim.assembly import instruments_by_run
from opinionsim.engine import Simulation
from opinionsim.errors import BudgetExceeded, DamagedError, OpinionSimError
from opinionsim.foundation.streams import digest
from opinionsim.lanes import OPEN_RUNS, Batches, Batching
from opinionsim.llm import Endpoint, RunCalls, Seat, SlotPool
from opinionsim.measurement import Queues
from opinionsim.running._invocation import Invocation
from opinionsim.running._spending import Spending
from opinionsim.specification import PlannedRun
from opinionsim.store import BatchRow, Doing, Paid, RunRecord, RunState, Store

_T = TypeVar("_T")

#: Seconds between looks at runs that other workers hold.
_LOOK_AGAIN_S = 5.0
#: Seconds between two looks at whether calls of other workers have left room in the budget.
_ASK_AGAIN_S = 0.2


@dataclass(frozen=True)
class Advance:
    """Progress of a sweep at one moment.

    Attributes
    ----------
    total, complete, incomplete, open : int
        Numbers of all runs, complete runs, runs that ended incomplete, and runs under way.
    made, answered : int
        Calls that the model has answered, and calls that the store has answered.
    in_flight : int
        Calls waiting for the model now.
    repeated : int
        Attempts that failed for a passing reason and were repeated.
    cost : float
        Cost of the calls that the model has answered, if their prices are known.
    waits : str
        Why nothing may go on for long, in words.
    """

    total: int = 0
    complete: int = 0
    incomplete: int = 0
    open: int = 0
    made: int = 0
    answered: int = 0
    in_flight: int = 0
    repeated: int = 0
    cost: float = 0.0
    waits: str = ""

    def __add__(self, other: Advance) -> Advance:
        return Advance(*(here + there for here, there in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Summary:
    """The result of a sweep.

    Attributes
    ----------
    total, complete, already : int
        Numbers of distinct runs, complete runs, and runs that were complete before the sweep.
    causes : dict of str to OpinionSimError
        Error of each run that is not complete, not fully coded, or no longer agrees with its prompts.
    stopped : bool
        Whether the sweep was asked to stop, or its budget stopped it.
    exceeded : BudgetExceeded or None
        The error that stopped the sweep where its budget is used up.
    made, answered, repeated : int
        Calls that the model has answered, calls that the store has answered, and failed attempts that were repeated.
    paid : Paid
        Stored calls, tokens and cost of these runs, including those of earlier sweeps.
    seconds : float
        Wall time.
    cost : float
        Cost of the calls of this sweep.
    left : bool
        Whether the sweep ended because nothing was left to do but to wait for batches.
    batches : sequence of BatchRow
        Open batches, which the next sweep goes on with.
    """

    total: int
    complete: int
    already: int
    causes: dict[str, OpinionSimError]
    stopped: bool
    exceeded: BudgetExceeded | None
    made: int
    answered: int
    repeated: int
    paid: Paid
    seconds: float
    cost: float = 0.0
    left: bool = False
    batches: Sequence[BatchRow] = ()

    @property
    def errors(self) -> dict[str, str]:
        """Message of each error, by run."""
        return {run_id: str(error) for run_id, error in self.causes.items()}


class Stopped(OpinionSimError):
    """The sweep was asked to stop."""

    def __init__(self, problem: str = "stopped before it was finished") -> None:
        super().__init__(problem)


class Shared:
    """The shared state of a runner's components: experiment, store, results so far, and whether to stop.

    Parameters
    ----------
    invocation : Invocation
        The experiment, and how it is carried out.
    store : Store
        Open for writing.
    registers : bool
        Whether the runner stores the experiment. If not, another runner has stored it, and this one carries out runs.

    Attributes
    ----------
    planned, distinct : list of PlannedRun
        Runs to carry out, and all runs of the experiment, each once.
    instruments : dict of str to list of Instrument
        The instruments that read the texts of each run.
    complete : set of str
        Ids of runs that are complete and measured.
    errors : dict of str to OpinionSimError
        Errors of the other settled runs.
    exceeded : BudgetExceeded or None
        The error that stopped the sweep where its budget is used up.
    defect : BaseException or None
        The first program defect that stopped a run.
    over : Advance
        Calls of runs that have ended.
    playing : dict of str to Simulation
        Runs under way.
    stopping : asyncio.Event
        Set when no further call or run may begin.
    """

    def __init__(self, invocation: Invocation, store: Store, *, registers: bool = True) -> None:
        experiment, loaded, only = invocation.experiment, invocation.parts, invocation.only
        self.experiment, self.store, self.loaded, self.fresh = experiment, store, loaded, invocation.fresh
        self.experiment_id = digest(f"experiment:{experiment.spec.name}")
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.distinct = list({run.run_id: run for run in experiment.runs}.values())
        self.planned = [run for run in self.distinct if only is None or run.run_id in only]
        self.instruments = instruments_by_run(experiment.runs, loaded)
        execution = experiment.spec.execution
        execution.require_alone(store.shared)
        self.slots = SlotPool(invocation.max_concurrency or execution.max_concurrency)
        self.registers, self._ready, self.records = registers, invocation.ready, invocation.records or {}
        self.spending = Spending(store, self.experiment_id, loaded.limits, self.owner, self._pause_call)
        self.complete: set[str] = set()
        self.errors: dict[str, OpinionSimError] = {}
        self.exceeded: BudgetExceeded | None = None
        self.defect: BaseException | None = None
        self.over = Advance()
        self.playing: dict[str, Simulation] = {}
        self._calls: set[RunCalls] = set()
        self.stopping = asyncio.Event()
        #: Runs that are about to begin; whether any had the chance to; and whether the sweep ended because nothing was
        #: left but to wait for batches.
        self.opening, self.begun, self.left = 0, False, False
        desk = Batching(store, self.in_store, self.slots, execution.retry, invocation.pace, invocation.resubmit)
        self.batches = Batches(
            desk,
            self.experiment_id,
            busy=lambda: self.slots.in_flight > 0 or self.opening > 0 or not self.begun,
            stopped=self.stopping.is_set,
            leave=self._leave if invocation.leave else None,
        )
        # Store and classifiers block: each has a thread of its own so that dispatch goes on.
        self._threads = [ThreadPoolExecutor(1, f"opinionsim-{name}") for name in ("store", "open", "measure")]
        self.queues = Queues(self._threads[2])

    # -- what is going on ----------------------------------------------------------------------------------

    def progress(self) -> Advance:
        """Progress of the runs of this process; may be called from any thread."""
        runs = Advance(len(self.planned), len(self.complete), len(self.errors), len(self.playing))
        in_flight = self.slots.in_flight + self.batches.waiting
        return sum(
            map(_calls_of, list(self._calls)), replace(runs + self.over, in_flight=in_flight, waits=self.batches.waits)
        )

    def doing(self) -> Doing:
        """What this process is doing; may be called from any thread."""
        slots = self.slots
        return Doing(slots.in_flight, slots.limit, len(self._calls), slots.waiting(), self.stopped)

    def begin(self, planned: PlannedRun, record: RunRecord, answering: Sequence[Endpoint | Seat] = ()) -> RunCalls:
        """Open the calls of a run. They stop with the sweep; at the end, :meth:`count` adds them up."""
        execution = planned.spec.execution
        calls = RunCalls(
            planned.run_id,
            record,
            answering,
            self.slots,
            retry=execution.retry,
            timeout_s=execution.timeout_s,
            budget=self.spending.budget,
            batches=self.batches,
        )
        calls.limit = self.wide(calls.limit)
        calls.longest_prompt = execution.max_prompt_characters
        calls.names_steps = planned.spec.interaction.names_steps
        self._calls.add(calls)
        if self.stopped:
            calls.stop()
        return calls

    def wide(self, number: int) -> int:
        """How many runs or calls may be under way, where `number` is enough without batches."""
        return max(number, OPEN_RUNS) if self.batches.used else number

    def count(self, over: RunCalls | Summary) -> None:
        """Add the calls of a run or chunk that has ended."""
        if isinstance(over, RunCalls):
            self._calls.discard(over)
        self.over += _calls_of(over)

    def settle(self, run_id: str, error: OpinionSimError | None = None) -> None:
        """Count a run as complete and measured, or note its error."""
        if error is None:
            self.complete.add(run_id)
        else:
            self.errors[run_id] = error

    # -- stopping ------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether no further call or run may begin."""
        return self.stopping.is_set()

    def stop(self, why: Stopped | None = None) -> None:
        """Dispatch no further calls; calls in flight run to their end."""
        self.stopping.set()
        for simulation in self.playing.values():
            simulation.engine.stop(why or Stopped())
        for calls in self._calls:
            calls.stop()

    def _leave(self) -> None:
        """Stop, because nothing can be done until a batch ends; unless runs still read what they have."""
        if self.playing.keys() & self.batches.untaken():
            return
        self.left = True
        self.stop(Stopped("waiting for a batch; repeat the command when it has ended"))

    def heed(self, error: OpinionSimError | None) -> None:
        """Stop the sweep if the error is a used-up budget."""
        if isinstance(error, BudgetExceeded):
            self.exceeded = self.exceeded or error
            self.stop()

    async def taken(self, run_id: str) -> bool:
        """Wait until the people of a run are there; return False if the sweep stops first."""
        if self._ready is not None and not self.stopped:
            waiting = [asyncio.ensure_future(each) for each in (self._ready(run_id), self.stopping.wait())]
            try:
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if waiting[0] in done:
                    waiting[0].result()
            finally:
                for each in waiting:
                    each.cancel()
        return not self.stopped

    async def pause(self) -> None:
        """Wait until the next look at runs that other workers hold, or until the sweep stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), _LOOK_AGAIN_S)

    async def _pause_call(self) -> None:
        """Wait before a call looks again whether it may be made; no call is made once the sweep is to stop."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), _ASK_AGAIN_S)
            raise asyncio.CancelledError

    # -- threads -------------------------------------------------------------------------------------------

    async def in_store(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call the store in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads[0], partial(function, *arguments))

    async def in_opening(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call the store in the thread for runs that wait to start; they do not queue behind other runs."""
        return await asyncio.get_running_loop().run_in_executor(self._threads[1], partial(function, *arguments))

    async def close(self) -> None:
        """Wait for the threads to end."""
        # Not on the loop, which other sweeps and models share: they must not wait for these threads.
        for close in (*(thread.shutdown for thread in self._threads), self.spending.close):
            await asyncio.to_thread(close)


def _calls_of(calls: RunCalls | Summary) -> Advance:
    """Calls of a run, or of a sweep, as far as it has come."""
    return Advance(made=calls.made, answered=calls.answered, repeated=calls.repeated, cost=calls.cost)


def damage(run_id: str, error: DamagedError) -> DamagedError:
    """Return the error of a run whose record is damaged, with the remedy."""
    return error.at(f"run {run_id}", "Restore it from a backup, or start these runs anew with --fresh", run=run_id)


def withdrawn(run_id: str, state: RunState) -> OpinionSimError:
    """Return the error of a run that was withdrawn."""
    return OpinionSimError(state.error, f"run {run_id}", code="withdrawn", run=run_id)


async def together(*work: Coroutine[Any, Any, None], meanwhile: Coroutine[Any, Any, None] | None = None) -> None:
    """Carry out several coroutines at once; the first error ends all of them.

    Parameters
    ----------
    *work : coroutine
        The coroutines.
    meanwhile : coroutine, optional
        A coroutine that runs in the meantime and is cancelled when all others have ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            if meanwhile is not None:
                beside = group.create_task(meanwhile)
                await asyncio.wait(tasks)
                beside.cancel()
    except ExceptionGroup as failures:
        error: Exception = failures
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from None
