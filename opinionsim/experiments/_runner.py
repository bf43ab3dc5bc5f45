"""Carrying out the runs of an experiment: all of them together, each exactly once, resumable at any point."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any, Literal, TypeVar

import opinionsim
from opinionsim.errors import BudgetExceeded, DamagedError, JournalMismatch, OpinionSimError, SpecError
from opinionsim.experiments._assembly import Parts, assemble
from opinionsim.experiments._canaries import Canaries
from opinionsim.experiments._coding import instrument_row, instruments_by_run, opinion_rows, stored_texts
from opinionsim.experiments._interactions import acts_of
from opinionsim.experiments._loaded import LoadedParts
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._model_spec import ClassicModelSpec, model_label
from opinionsim.experiments._plan import calls_by_run
from opinionsim.experiments._recording import Recording
from opinionsim.experiments._replay import check_prompts, replay_run
from opinionsim.experiments._spec import ExperimentSpec, NoRolePlaySpec
from opinionsim.experiments._sweep import Experiment, PlannedRun, design_id
from opinionsim.llm import Budget, Entry, Limits, Patience, RunCalls, SlotPool, Usage
from opinionsim.measurement import Author, Instrument, LiveCoding, Measuring, Queues, Text
from opinionsim.messages import Message
from opinionsim.schedules import AdaptiveSchedule, critical_path
from opinionsim.simulation import Simulation
from opinionsim.store import DesignRow, ExperimentRun, HeldElsewhereError, Paid, RunRecord, RunRow, Store
from opinionsim.streams import canonical_json, digest

__all__ = ["STOPPED", "Progress", "Summary", "Sweep"]

_T = TypeVar("_T")

STOPPED = "stopped before it was finished"
#: What can be done about a damaged record.
_MEND = "Take the store from a copy, or start these runs anew with --fresh"
#: How often runs that other workers hold are looked at again, seconds.
_LOOK_AGAIN_S = 5.0
#: Opinions coded between two writes of a run.
_PORTION = 500
#: Characters of a wording's digest that are shown.
_SHOWN = 12
#: Finished runs measured side by side: enough that judges fill the slots.
_MEASURED_AT_ONCE = 8


@dataclass(frozen=True)
class Progress:
    """How far a sweep is, at one moment.

    Attributes
    ----------
    total, complete, incomplete, open : int
        Runs in all, finished, ended unfinished, and under way.
    made, answered : int
        Calls the model has answered, and calls the store has answered.
    in_flight : int
        Calls waiting for the model now.
    """

    total: int
    complete: int
    incomplete: int
    open: int
    made: int
    answered: int
    in_flight: int


@dataclass(frozen=True)
class Summary:
    """How a sweep ended.

    Attributes
    ----------
    total, complete, already : int
        Distinct runs in all, those that are complete, and those of them that were so beforehand.
    errors : dict of str to str
        Why each run that is not complete, or no longer agrees with its prompts, is in that state.
    stopped : bool
        Whether it was asked to stop, or stopped for its budget.
    exceeded : str
        Which limit of its budget stopped it; empty when none did.
    made, answered, repeated : int
        Calls the model has answered, calls the store has answered, and attempts that failed and were repeated.
    paid : Paid
        Calls, tokens and money of these runs on record, whenever they were paid.
    notes : tuple of str
        What a reader of the results should know of the models.
    seconds : float
        Wall time.
    """

    total: int
    complete: int
    already: int
    errors: dict[str, str]
    stopped: bool
    exceeded: str
    made: int
    answered: int
    repeated: int
    paid: Paid
    notes: tuple[str, ...]
    seconds: float


@dataclass
class _Counts:
    """Calls of runs that are over."""

    made: int = 0
    answered: int = 0
    repeated: int = 0
    errors: dict[str, str] = field(default_factory=dict)


class Sweep:
    """All runs of an experiment over one store, one pool of call slots and one event loop.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    store : Store
        Open for writing.
    loaded : LoadedParts
        Its models and instruments.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.
    fresh : bool
        Start a run anew when its stored calls answer other questions than those now asked.
    only : collection of str, optional
        Ids of the runs to carry out; the others stay as they are. Default all.
    limits : Limits, optional
        What may be paid for, as a share of the experiment's budget; default the whole of it.
    part : bool
        Carry out runs that another sweep has put on record, and nothing else: no canary questions, no manifest. The
        limits are those of these runs.

    Notes
    -----
    Finished runs are not repeated; unfinished ones go on from their last durable call. A run that fails
    stops alone.
    """

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        loaded: LoadedParts,
        *,
        max_concurrency: int | None = None,
        fresh: bool = False,
        only: Collection[str] | None = None,
        limits: Limits | None = None,
        part: bool = False,
    ) -> None:
        self.experiment = experiment
        self._store = store
        self._loaded = loaded
        self._fresh = fresh
        self._part = part
        self._slots = SlotPool(max_concurrency or experiment.spec.execution.max_concurrency)
        self._experiment_id = digest(f"experiment:{experiment.spec.name}")
        self._limits = loaded.limits if limits is None else limits
        self._distinct = list({run.run_id: run for run in experiment.runs}.values())
        self._planned = [run for run in self._distinct if only is None or run.run_id in only]
        self._instruments = instruments_by_run(experiment.runs, loaded)
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._counts = _Counts()
        self._complete: set[str] = set()
        self._open: dict[str, tuple[Simulation, RunCalls]] = {}
        #: Calls of runs whose texts are being coded.
        self._coding: set[RunCalls] = set()
        #: Runs that were taken over by other workers while they were under way here.
        self._taken_over: list[PlannedRun] = []
        self._stopped = False
        self._stopping = asyncio.Event()
        self._exceeded = ""
        self._budget: Budget | None = None
        self._defect: Exception | None = None
        self._inputs: dict[int, tuple[str, str]] = {}
        self._changed: set[str] = set()
        #: Finished runs that are to be begun anew, and the calls each run is thought to take.
        self._anew: set[str] = set()
        self._expected: dict[str, int] = {}
        #: What was left of the budget at the start, and the calls that runs begun anew since take.
        self._left = Limits()
        self._promised = 0
        # SQLite and classification block; each has a thread of its own so that dispatch goes on.
        self._store_thread = ThreadPoolExecutor(1, "opinionsim-store")
        self._opening_thread = ThreadPoolExecutor(1, "opinionsim-open")
        self._measuring_thread = ThreadPoolExecutor(1, "opinionsim-measure")
        self._queues = Queues(self._measuring_thread)

        #: What a reader of the results should know of the models beforehand.
        self.warnings = loaded.warnings()

    # -- seen from outside -------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """How far the sweep is."""
        under_way = [calls for _, calls in list(self._open.values())]
        open_calls = [*under_way, *list(self._coding)]
        return Progress(
            total=len(self._planned),
            complete=len(self._complete),
            incomplete=len(self._counts.errors),
            open=len(under_way),
            made=self._counts.made + sum(calls.made for calls in open_calls),
            answered=self._counts.answered + sum(calls.answered for calls in open_calls),
            in_flight=self._slots.in_flight,
        )

    def _doing(self) -> str:
        """What is being done, in one line for whoever watches; asked for by the store's thread."""
        runs, calls = len(self._open) + len(self._coding), self._slots.in_flight
        parts = [
            f"{calls} {'call' if calls == 1 else 'calls'} in flight of {self._slots.limit}, "
            f"in {runs} {'run' if runs == 1 else 'runs'}"
        ]
        waiting = self._slots.waiting().items()
        parts += [f"{account} waits {math.ceil(seconds)} s for its rate limit" for account, seconds in waiting]
        parts += ["stopping"] if self._stopped else []
        return "; ".join(parts)

    def stop(self) -> None:
        """Dispatch nothing more; calls in flight go on to their end. To be called on the event loop."""
        self._stopped = True
        self._stopping.set()
        for simulation, _ in self._open.values():
            simulation.engine.stop(_Stopped(STOPPED))
        for calls in self._coding:
            calls.stop()

    async def execute(self) -> Summary:
        """Carry out everything that is not done yet.

        Returns
        -------
        Summary
            Also when runs failed or the sweep was stopped; only defects of the program raise.
        """
        began = time.monotonic()
        try:
            self._store.tell(self._doing)
            # First of all: what runs have paid counts, even if they are started anew.
            await self._open_budget()
            await self._in_store(self._register)
            pending, unmeasured = await self._sort_out()
            execution = self.experiment.spec.execution
            canaries = Canaries(
                self._experiment_id,
                self._loaded,
                self._budget,
                timeout_s=execution.timeout_s,
                stopping=self._stopping,
            )
            watched = bool(pending) and execution.canary and not self._part
            if watched:
                await self._in_store(self._store.save_canary, await canaries.ask("start"))
            beforehand = self._complete | {planned.run_id for planned in unmeasured}
            await self._all_of(self._carry_out(pending), self._measure_finished(unmeasured))
            if watched and not self._stopped:
                await self._in_store(self._store.save_canary, await canaries.ask("end"))
            if not self._part:
                await self._in_store(self._save_design)
            if self._defect is not None:
                raise self._defect
            paid = await self._in_store(self._store.usage, [planned.run_id for planned in self._planned])
        finally:
            # The loop is shared with other sweeps and models, which must not wait for what these threads still do.
            for thread in (self._store_thread, self._opening_thread, self._measuring_thread):
                await asyncio.to_thread(thread.shutdown)
        notes = tuple(canaries.notes)
        return Summary(
            total=len(self._planned),
            complete=len(self._complete),
            already=len(self._complete & beforehand),
            errors=dict(self._counts.errors),
            stopped=self._stopped,
            exceeded=self._exceeded,
            made=self._counts.made,
            answered=self._counts.answered,
            repeated=self._counts.repeated,
            paid=paid,
            notes=notes,
            seconds=time.monotonic() - began,
        )

    # -- before ------------------------------------------------------------------------------------------

    def _register(self) -> None:
        """Put the experiment, its runs and its instruments on record, these first: a changed one is refused."""
        for instrument in self._distinct_instruments():
            self._store.save_instrument(instrument_row(instrument))
        if not self._part:
            expected = self._expected = calls_by_run(self.experiment)
            self._store.register([self._run_row(planned, expected[planned.run_id]) for planned in self._distinct])
            self._save_design()

    def _distinct_instruments(self) -> list[Instrument]:
        """Every instrument that reads a run of this sweep, once."""
        runs = self._planned if self._part else self._distinct
        found = {each.instrument_id: each for planned in runs for each in self._instruments[planned.run_id]}
        return list(found.values())

    def _save_design(self) -> None:
        experiment = self.experiment
        spec = experiment.spec.model_dump(mode="json")
        runs = tuple(
            ExperimentRun(
                planned.run_id,
                planned.cell.instrument_id,
                planned.replicate,
                planned.block,
                planned.cell.label,
                planned.cell.axes,
                {each.instrument_id: tuple(sorted(each.kinds)) for each in planned.cell.instruments},
            )
            for planned in experiment.runs
        )
        models = sorted(self._store.models(planned.run_id for planned in self._planned))
        found = manifest(experiment, models=models)
        self._store.save_design(
            DesignRow(self._experiment_id, experiment.spec.name, design_id(experiment), spec, found, runs)
        )

    def _run_row(self, planned: PlannedRun, expected: int) -> RunRow:
        spec = planned.spec
        topic = self.experiment.resources.topic(spec.topic)
        claim = topic.claim(spec.topic.framing)
        size = spec.population.size
        network = getattr(spec.interaction, "network", None)
        equation = isinstance(spec.model, ClassicModelSpec)
        bare = equation or isinstance(spec.interaction, NoRolePlaySpec)
        pack = self.experiment.resources.pack(spec.prompts)
        summary = {
            "seed": spec.seed,
            "topic": topic.name,
            "category": topic.category,
            "framing": str(spec.topic.framing),
            "claim": claim.text,
            "truth": claim.truth(spec.scale.scale()),
            "confirmation_bias": None if bare else spec.cognition.confirmation_bias,
            "memory": None if equation else spec.cognition.memory,
            "world": None if bare else spec.cognition.world,
            "model": model_label(spec.model),
            "interaction": spec.interaction.kind,
            "network": None if network is None else network.kind,
            "n_agents": size,
            "steps": spec.interaction.steps_for(size),
        }
        evidence = self._loaded.evidence(spec, pack)
        identity = (planned.run_id, planned.replicate, planned.block, evidence, planned.cell.fields)
        inputs, wording = self._inputs_of(planned)
        return RunRow(*identity, summary, expected, inputs, None if equation else wording)

    def _inputs_of(self, planned: PlannedRun) -> tuple[str, str]:
        """Digest of what a run's prompts are made of, the version of the package included; and its wording."""
        key = id(planned.cell)
        if key not in self._inputs:
            pack = self.experiment.resources.pack(planned.spec.prompts)
            own = dict(pack.bind(acts_of(planned.spec)).texts)
            wording = digest(canonical_json([dict(pack.contents), own]))
            inputs = digest(canonical_json([opinionsim.__version__, wording]))
            # Packs are told apart by their folders, and acts that bring texts of their own by these.
            name = "+".join([PurePath(planned.spec.prompts).name, *sorted(own)])
            self._inputs[key] = (inputs, f"{name}@{wording[:_SHOWN]}")
        return self._inputs[key]

    async def _sort_out(self) -> tuple[list[PlannedRun], list[PlannedRun]]:
        """Runs still to be carried out, and finished ones still to be measured; finished ones are checked."""
        run_ids = [planned.run_id for planned in self._planned]
        states = await self._in_store(self._store.states, run_ids)
        complete = [run_id for run_id in run_ids if states[run_id].status == "complete"]
        damaged = await self._in_store(self._damaged, complete)
        left = await self._in_store(self._uncoded, complete)
        pending: list[PlannedRun] = []
        unmeasured: list[PlannedRun] = []
        for planned in self._planned:
            run_id = planned.run_id
            if self._stopped:
                if states[run_id].status == "complete":
                    self._complete.add(run_id)
                else:
                    self._counts.errors[run_id] = STOPPED
                continue
            if states[run_id].inputs != self._inputs_of(planned)[0]:
                self._changed.add(run_id)
            if states[run_id].status != "complete":
                pending.append(planned)
            elif run_id in damaged and self._fresh:
                self._anew.add(run_id)
                pending.append(planned)
            elif run_id in damaged:
                self._counts.errors[run_id] = damaged[run_id]
            elif run_id not in self._changed or await self._still_agrees(planned):
                if states[run_id].error:
                    await self._in_store(self._store.save_error, run_id, "")
                if run_id in left:
                    unmeasured.append(planned)
                else:
                    self._complete.add(run_id)
            elif self._fresh:
                self._anew.add(run_id)
                pending.append(planned)
        return pending, unmeasured

    def _damaged(self, run_ids: Collection[str]) -> dict[str, str]:
        """What is wrong with the record of finished runs; looked for in all of it where they could be begun anew."""
        found: dict[str, str] = {}
        for run_id in run_ids:
            try:
                self._store.require_whole([run_id])
                if self._fresh:
                    self._store.require_sound(run_id)
            except DamagedError as error:
                found[run_id] = f"run {run_id}: {error}. {_MEND}"
        return found

    def _uncoded(self, run_ids: Collection[str]) -> set[str]:
        """Runs of which an instrument has yet to code something."""
        groups: dict[tuple[str, frozenset[str], str], list[str]] = {}
        for run_id in run_ids:
            for each in self._instruments[run_id]:
                groups.setdefault((each.instrument_id, each.kinds, each.about), []).append(run_id)
        return {
            run_id
            for (identity, kinds, about), some in groups.items()
            for run_id in self._store.uncoded(some, identity, kinds, about=about)
        }

    async def _still_agrees(self, planned: PlannedRun) -> bool:
        """Whether a finished run asks today what it asked then; says so if it does not."""
        try:
            records = await self._in_store(self._store.entries, planned.run_id)
            await replay_run(planned, self.experiment.resources, records)
        except OpinionSimError as error:
            if not self._fresh:
                self._counts.errors[planned.run_id] = str(error)
                await self._in_store(self._store.save_error, planned.run_id, str(error))
            return False
        await self._in_store(self._save_inputs, planned)
        return True

    def _save_inputs(self, planned: PlannedRun) -> None:
        """Put on record that the stored calls of a run answer what today's wording asks."""
        inputs, wording = self._inputs_of(planned)
        equation = isinstance(planned.spec.model, ClassicModelSpec)
        self._store.save_inputs(planned.run_id, inputs, None if equation else wording)

    async def _open_budget(self) -> None:
        """Count what the experiment has paid on record, where anything is limited."""
        if self._limits != Limits():
            if self._part:
                used = await self._in_store(self._used, [planned.run_id for planned in self._planned])
            else:
                used = await self._in_store(self._spent) + await self._in_store(self._used_by_canaries)
            self._budget = Budget(self._limits, used)
            self._left = self._budget.remaining()

    def _spent(self) -> Usage:
        """What the experiment has paid for calls, under whatever design.

        Raises
        ------
        SpecError
            If it is not known, and limited.
        """
        paid = self._store.spending().get(self._experiment_id, Paid(0, 0, 0, 0.0))
        self._require_counts(paid.uncounted)
        return Usage(paid.calls, paid.input_tokens + paid.output_tokens, paid.cost)

    def _used(self, run_ids: Collection[str]) -> Usage:
        """What runs have paid on record.

        Raises
        ------
        SpecError
            If it is not known, and limited.
        """
        paid = self._store.usage(run_ids)
        self._require_counts(paid.uncounted)
        return Usage(paid.calls, paid.input_tokens + paid.output_tokens, paid.cost)

    def _used_by_canaries(self) -> Usage:
        rows = self._store.canaries(self._experiment_id)
        self._require_counts(sum(row.input_tokens is None or row.output_tokens is None for row in rows))
        tokens = sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in rows)
        return Usage(len(rows), tokens, math.fsum(row.cost or 0.0 for row in rows))

    def _require_counts(self, uncounted: int) -> None:
        """Refuse to limit tokens or money where it is not known what was used."""
        limited = "tokens" if self._limits.tokens is not None else "money"
        if uncounted and getattr(self._limits, limited) is not None:
            raise SpecError(
                f"execution.budget.{limited}: {uncounted:,} stored calls of this experiment have no token counts, for "
                "their provider told none, so that it is not known what was used; limit calls instead"
            )

    # -- carrying out ------------------------------------------------------------------------------------

    async def _carry_out(self, pending: list[PlannedRun]) -> None:
        """Carry out runs that are not done yet."""
        while pending:
            n_open = self._open_runs(pending)
            opened: asyncio.Queue[_Opened | None] = asyncio.Queue(1 if self._store.shared else max(n_open, 1))
            workers = [self._work(opened) for _ in range(n_open)]
            await self._all_of(self._open_ahead(pending, opened, n_open), *workers)
            lost, self._taken_over = self._taken_over, []
            pending = await self._not_done_elsewhere(lost)

    @staticmethod
    async def _all_of(*work: Coroutine[Any, Any, None]) -> None:
        """Carry out several things at once, all of which end with the first error."""
        try:
            async with asyncio.TaskGroup() as group:
                for each in work:
                    group.create_task(each)
        except ExceptionGroup as failures:
            error: Exception = failures
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            raise error from None

    def _open_runs(self, pending: list[PlannedRun]) -> int:
        """Runs under way at a time: enough to fill every slot four times over, so that none stands idle."""
        widths: dict[str, float] = {}
        for planned in pending:
            spec = planned.spec
            shape = canonical_json([spec.interaction.model_dump(mode="json"), spec.population.size])
            if shape not in widths:
                with suppress(SpecError):
                    schedule = assemble(planned, self.experiment.resources).schedule
                    if isinstance(schedule, AdaptiveSchedule):
                        widths[shape] = 1.0  # it decides one step at a time
                    else:
                        widths[shape] = critical_path(schedule).mean_width
        # The narrowest runs may be all that is left in the end.
        width = max(1.0, min(widths.values(), default=1.0))
        # A store that other workers use as well leaves the rest to them.
        rounds, least = (1, 1) if self._store.shared else (4, 8)
        return min(max(least, math.ceil(rounds * self._slots.limit / width)), len(pending))

    async def _open_ahead(self, pending: list[PlannedRun], opened: asyncio.Queue[_Opened | None], n_open: int) -> None:
        """Claim runs and read their journals before their turn comes, so that no slot waits for the store."""
        while pending:
            held = []
            for planned in pending:
                if self._stopped:
                    self._counts.errors[planned.run_id] = STOPPED
                elif (ready := await self._open_run(planned)) is _HELD:
                    held.append(planned)
                elif isinstance(ready, _Opened):
                    await opened.put(ready)
            pending = await self._not_done_elsewhere(held)
        for _ in range(n_open):
            await opened.put(None)

    async def _not_done_elsewhere(self, held: list[PlannedRun]) -> list[PlannedRun]:
        """Of the runs that another worker holds, those it has not finished a while later: it may die over them."""
        if not held or self._stopped:
            for planned in held:
                self._counts.errors[planned.run_id] = STOPPED
            return []
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), _LOOK_AGAIN_S)
        states = await self._in_opening(self._store.states, [planned.run_id for planned in held])
        done = [planned for planned in held if states[planned.run_id].status == "complete"]
        # Another worker that finished them may have had other instruments in mind.
        await self._measure_finished(done)
        return [planned for planned in held if states[planned.run_id].status != "complete"]

    async def _open_run(self, planned: PlannedRun) -> _Opened | _Held | None:
        """A run ready to start; None where it cannot go on, which is put on record."""
        try:
            if planned.run_id in self._anew:
                if not self._affordable(planned):
                    return None
                await self._in_opening(self._store.forget, [planned.run_id])
                self._anew.discard(planned.run_id)
            return await self._claimed_run(planned)
        except HeldElsewhereError:
            return _HELD

    def _affordable(self, planned: PlannedRun) -> bool:
        """Whether the budget may suffice to carry a finished run out anew; if not, it stays as it is."""
        left = Limits() if self._budget is None else self._budget.remaining()
        needed = self._expected.get(planned.run_id, 1)
        # Those that were begun anew before have yet to spend what they take.
        promised = self._promised + needed
        short = [
            name
            for name, amount, least in (("calls", self._left.calls, promised), ("tokens", left.tokens, 1))
            if amount is not None and amount < least
        ]
        if left.money is not None and left.money <= 0:
            short.append("money")
        if not short:
            self._promised = promised
            return True
        reason = (
            f"run {planned.run_id} is complete and stays as it is: execution.budget.{short[0]} does not suffice to "
            f"carry it out anew, which takes {needed:,} calls; raise it to go on"
        )
        self._counts.errors[planned.run_id] = reason
        self._exceeded = self._exceeded or reason
        return False

    async def _claimed_run(self, planned: PlannedRun) -> _Opened | _Held | None:
        run_id, resources = planned.run_id, self.experiment.resources
        epoch = await self._in_opening(self._store.claim, run_id, self._owner)
        if epoch is None:
            return _HELD
        try:
            record = await self._in_opening(self._store.record, run_id, epoch, self._experiment_id)
        except DamagedError as error:
            if self._fresh:
                return await self._start_anew(planned)
            await self._give_up(run_id, epoch, f"run {run_id}: {error}. {_MEND}")
            return None
        try:
            # A draw that cannot be used, such as a network without an edge, stops its own run only.
            parts = assemble(planned, resources)
            if parts.equation is not None:
                await self._in_opening(parts.equation.work_out)
            self._check_weights(planned, parts, record.entries)
            if run_id in self._changed:
                # Before anything is asked anew: a journal that mixes two wordings could not be finished under either.
                await check_prompts(planned, resources, record.entries)
                await self._in_opening(self._save_inputs, planned)
        except JournalMismatch as error:
            if self._fresh:
                return await self._start_anew(planned)
            await self._give_up(run_id, epoch, str(error))
        except SpecError as error:
            await self._give_up(run_id, epoch, f"run {run_id}: {error}")
        else:
            return _Opened(planned, parts, epoch, record)
        return None

    async def _start_anew(self, planned: PlannedRun) -> _Opened | _Held | None:
        """Forget what a run has led to, and open it again."""
        try:
            await self._in_opening(self._store.forget, [planned.run_id])
        except HeldElsewhereError:
            return _HELD
        return await self._open_run(planned)

    def _check_weights(self, planned: PlannedRun, parts: Parts, records: list[Entry]) -> None:
        """Make sure that the models of this process are those that a run began with: names can come to mean others.

        Raises
        ------
        JournalMismatch
            If one has other contents.
        """
        models = [self._loaded.contents(model, planned.spec, parts.pack) for model in parts.models]
        for record in records:
            # Whoever codes texts has an identity of its own, as a measurement.
            if record.key.part.startswith("judge") or not record.model.startswith("hf:"):
                continue
            loaded = models[record.agent]
            if loaded and loaded.rpartition("@")[2] != record.model.rpartition("@")[2]:
                raise JournalMismatch(
                    f"run {planned.run_id}, agent {record.agent}: its stored replies are those of {record.model}, and "
                    f"the model loaded now is {loaded}, which has other contents. Give it the former weights again, "
                    "or start these runs anew with --fresh"
                )

    async def _give_up(self, run_id: str, epoch: int, reason: str) -> None:
        """Put on record why a run cannot go on; what it has produced stays."""
        await self._in_store(self._store.finish, run_id, epoch, "incomplete", reason)
        self._counts.errors[run_id] = reason

    async def _work(self, queue: asyncio.Queue[_Opened | None]) -> None:
        """Carry out one run after another; the next one starts while the last one is measured and stored."""
        async with asyncio.TaskGroup() as group:
            concluding: asyncio.Task[None] | None = None
            while (opened := await queue.get()) is not None:
                played = await self._play(opened)
                if isinstance(played.error, JournalMismatch | DamagedError) and self._fresh:
                    again = await self._start_anew(opened.planned)
                    if again is _HELD:
                        self._taken_over.append(opened.planned)
                    if not isinstance(again, _Opened):
                        continue
                    played = await self._play(again)
                if concluding is not None:
                    await concluding
                concluding = group.create_task(self._conclude(played))

    async def _play(self, opened: _Opened) -> _Played:
        """Carry out one run, from its journal's end to its last turn."""
        planned, parts = opened.planned, opened.parts
        run_id, spec = planned.run_id, planned.spec
        endpoints = [self._loaded.endpoint(model, spec, parts.pack) for model in parts.models]
        evidence = [self._loaded.client(model, spec, parts.pack).evidence for model in parts.models]
        cast = parts.cast(endpoints, evidence)
        answering = [member.endpoint for member in cast]
        calls = RunCalls(run_id, opened.record, answering, self._slots, patience=_patience(spec), budget=self._budget)
        authors = [member.author for member in cast]
        measuring = Measuring(self._instruments[run_id], self._queues, calls, parts.claim, authors)
        recording = Recording(opened.record, parts, cast, measuring)
        simulation = Simulation(
            parts.schedule, cast, calls, measuring=measuring, lookahead=parts.lookahead, witness=recording
        )
        error: OpinionSimError | None = _Stopped(STOPPED) if self._stopped else None
        self._open[run_id] = (simulation, calls)
        try:
            if error is None:
                recording.attend(simulation)
                await simulation.run()
                opened.record.require_all_met()
        except BudgetExceeded as failure:
            error = failure
            self._exceeded = self._exceeded or str(failure)
            self.stop()
        except OpinionSimError as failure:
            error = failure
        except Exception as failure:
            error = await self._broken(simulation, failure)
        finally:
            del self._open[run_id]
            self._coding.add(calls)
        return _Played(planned, opened, recording, simulation, measuring, calls, error)

    async def _broken(self, simulation: Simulation, failure: Exception) -> OpinionSimError:
        """Stop a run over a defect of the program, which is raised when all other runs are over."""
        error = OpinionSimError(f"{type(failure).__name__}: {failure}")
        await simulation.end(error)
        self._defect = self._defect or failure
        return error

    async def _conclude(self, played: _Played) -> None:
        """Have the rest of a run measured, and put on record how it ended."""
        run_id, error, epoch = played.planned.run_id, played.error, played.opened.epoch
        try:
            coding = played.recording.coding
            failure = None if coding is None else await self._coded(coding)
            if error is None:
                texts = {text.site.index: text for text in played.simulation.texts()}
                error = failure or await self._measured(played.opened.record, played.measuring, texts)
            # Whether its texts could be coded is another matter than whether the run is complete.
            status: Literal["complete", "incomplete"] = "complete" if played.error is None else "incomplete"
            await self._in_store(self._store.finish, run_id, epoch, status, "" if error is None else str(error))
        except HeldElsewhereError:
            # It was given up for dead and taken over: whoever has it now goes on from the calls on record.
            self._taken_over.append(played.planned)
            return
        finally:
            self._count(played.calls)
        if error is None:
            self._complete.add(run_id)
        else:
            self._counts.errors[run_id] = str(error)

    async def _coded(self, coding: LiveCoding) -> OpinionSimError | None:
        """Wait for what is being coded of a run; why it could not be, if it could not."""
        failure = await coding.end()
        if isinstance(failure, HeldElsewhereError):
            raise failure
        if isinstance(failure, BudgetExceeded):
            self._exceeded = self._exceeded or str(failure)
            self.stop()
        return failure

    def _count(self, calls: RunCalls) -> None:
        """Add the calls of a run that is over to those of others."""
        self._coding.discard(calls)
        self._counts.made += calls.made
        self._counts.answered += calls.answered
        self._counts.repeated += calls.repeated

    # -- measuring ---------------------------------------------------------------------------------------

    async def _measured(
        self, record: RunRecord, measuring: Measuring, texts: Mapping[int, Text]
    ) -> OpinionSimError | None:
        """Code all of a run that is not coded yet; why that could not be done, if it could not.

        Raises
        ------
        HeldElsewhereError
            If the run has been taken over.
        """
        try:
            for instrument in measuring.instruments:
                await self._code(record, measuring, instrument, texts)
        except HeldElsewhereError:
            raise
        except BudgetExceeded as failure:
            self._exceeded = self._exceeded or str(failure)
            self.stop()
            return failure
        except OpinionSimError as failure:
            return failure
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._stopped or (task is not None and task.cancelling()):
                raise
            return _Stopped(STOPPED)
        return None

    async def _code(
        self, record: RunRecord, measuring: Measuring, instrument: Instrument, texts: Mapping[int, Text]
    ) -> None:
        """Code what an instrument has left of a run, and keep it by portions: what is stored is never coded again."""
        identity, kinds = instrument.instrument_id, instrument.kinds
        left = await self._in_store(
            partial(self._store.uncoded, about=instrument.about), [record.run_id], identity, kinds
        )
        keys = left.get(record.run_id, [])
        for start in range(0, len(keys), _PORTION):
            coded = await measuring.code(instrument, keys[start : start + _PORTION], texts.__getitem__)
            record.add_opinions(opinion_rows(instrument, coded))

    async def _measure_finished(self, runs: list[PlannedRun]) -> None:
        """Code what is left to code of finished runs, several at a time."""
        left = list(runs)
        while left:
            queue, held = iter(left), list[PlannedRun]()

            async def work(queue: Iterator[PlannedRun] = queue, held: list[PlannedRun] = held) -> None:
                for planned in queue:
                    if await self._measure_again(planned) is _HELD:
                        held.append(planned)

            await self._all_of(*(work() for _ in range(min(_MEASURED_AT_ONCE, len(left)))))
            if held and not self._stopped:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _LOOK_AGAIN_S)
            left = held

    async def _measure_again(self, planned: PlannedRun) -> _Held | None:
        """Code what is left to code of one finished run; a failure stops that run's measuring only."""
        run_id = planned.run_id
        if not await self._in_store(self._uncoded, [run_id]):
            self._complete.add(run_id)
            return None
        if self._stopped:
            self._counts.errors[run_id] = STOPPED
            return None
        epoch = await self._in_store(self._store.claim_complete, run_id, self._owner)
        if epoch is None:
            return _HELD
        try:
            record = await self._in_store(self._store.record, run_id, epoch, self._experiment_id)
        except DamagedError as damage:
            self._counts.errors[run_id] = f"run {run_id}: {damage}. {_MEND}"
            await self._in_store(self._store.release, run_id, epoch)
            return None
        calls = RunCalls(run_id, record, (), self._slots, patience=_patience(planned.spec), budget=self._budget)
        self._coding.add(calls)
        if self._stopped:
            calls.stop()
        try:
            texts, measuring = await self._on_record(planned, calls)
            error = await self._measured(record, measuring, texts)
            if error is not None and not isinstance(error, _Stopped):
                await self._in_store(self._store.save_error, run_id, str(error))
            await self._in_store(self._store.release, run_id, epoch)
        except HeldElsewhereError:
            return _HELD
        finally:
            self._count(calls)
        if error is None:
            self._complete.add(run_id)
        else:
            self._counts.errors[run_id] = str(error)
        return None

    async def _on_record(self, planned: PlannedRun, calls: RunCalls) -> tuple[dict[int, Text], Measuring]:
        """The texts of a finished run, and its instruments before they have coded anything."""
        spec, instruments = planned.spec, self._instruments[planned.run_id]
        externals: Mapping[str, Message | str] = {}
        authors: list[Author] = []
        if any(each.context for each in instruments):
            parts = assemble(planned, self.experiment.resources)
            externals, authors = parts.schedule.externals, [member.author for member in parts.cast()]
        rows = await self._in_store(self._store.turns, planned.run_id)
        claim = self.experiment.resources.topic(spec.topic).claim(spec.topic.framing)
        return stored_texts(rows, externals), Measuring(instruments, self._queues, calls, claim, authors)

    async def _in_store(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call the store in its thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._store_thread, partial(function, *arguments))

    async def _in_opening(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call the store on behalf of a run that waits to start: not behind those that are over."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._opening_thread, partial(function, *arguments))


@dataclass(frozen=True)
class _Opened:
    """A run under a claim, with its record, before its first turn."""

    planned: PlannedRun
    parts: Parts
    epoch: int
    record: RunRecord


@dataclass(frozen=True)
class _Played:
    """A run whose last turn is over, or that was stopped by an error."""

    planned: PlannedRun
    opened: _Opened
    recording: Recording
    simulation: Simulation
    measuring: Measuring
    calls: RunCalls
    error: OpinionSimError | None


class _Held(Enum):
    """A run that another worker holds, or has finished meanwhile."""

    HELD = "held"


_HELD = _Held.HELD


class _Stopped(OpinionSimError):
    """The sweep was asked to stop."""


def _patience(spec: ExperimentSpec) -> Patience:
    execution = spec.execution
    return Patience(execution.timeout_s, **execution.retry.model_dump())
