"""Carrying out the runs of an experiment: all of them together, each exactly once, resumable at any point."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel

import opinionsim
from opinionsim import background
from opinionsim.classifiers import asks
from opinionsim.engine import critical_path
from opinionsim.errors import BudgetExceeded, JournalMismatch, OpinionSimError, SpecError
from opinionsim.experiments._assembly import Parts, assemble, coded_kinds
from opinionsim.experiments._canaries import Canaries
from opinionsim.experiments._instruments import Instruments
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._model_spec import agent_label, model_label
from opinionsim.experiments._replay import check_prompts, replay_run, turn_rows
from opinionsim.experiments._spec import ExperimentSpec, NoRolePlaySpec
from opinionsim.experiments._sweep import Experiment, PlannedRun
from opinionsim.llm import Budget, CallRecord, Journal, Limits, Patience, RunCalls, SlotPool, Usage
from opinionsim.messages import Message
from opinionsim.personas import Persona
from opinionsim.schedules import AdaptiveSchedule, Turn
from opinionsim.simulation import SELF_REPORT, Estimate, Happening, Simulation, measure, rate, self_reported
from opinionsim.store import (
    AgentRow,
    EdgeRow,
    ExperimentRow,
    ExperimentRun,
    MeasurementRow,
    OpinionRow,
    Paid,
    Results,
    RunOutcome,
    RunRow,
    Store,
    TurnRow,
    load,
    open_store,
)
from opinionsim.streams import canonical_json, digest
from opinionsim.topics import Claim

__all__ = ["Progress", "Summary", "Sweep", "default_store", "run", "under_way"]

_T = TypeVar("_T")

_STOPPED = "stopped before it was finished"
#: How often runs that other workers hold are looked at again, seconds.
_LOOK_AGAIN_S = 5.0
#: How long to wait for a sweep that was ended at once, seconds; a blocked database should not hold it for ever.
_ABORT_S = 10.0


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


def default_store(experiment: Experiment) -> str:
    """Where an experiment is stored unless told otherwise: ``sqlite:///results/NAME.sqlite``."""
    return f"sqlite:///results/{experiment.spec.name}.sqlite"


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
    instruments : Instruments
        Its models and classifiers.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.
    fresh : bool
        Start a run anew when its stored calls answer other questions than those now asked.
    only : collection of str, optional
        Ids of the runs to carry out; the others stay as they are. Default all.
    limits : Limits, optional
        What may be paid for, as a share of the experiment's budget; default the whole of it.
    part : bool
        Carry out runs that another sweep has put on record, and nothing else: no canary questions, no manifest.

    Notes
    -----
    Finished runs are not repeated; unfinished ones go on from their last durable call. A run that fails
    stops alone.
    """

    def __init__(
        self,
        experiment: Experiment,
        store: Store,
        instruments: Instruments,
        *,
        max_concurrency: int | None = None,
        fresh: bool = False,
        only: Collection[str] | None = None,
        limits: Limits | None = None,
        part: bool = False,
    ) -> None:
        self.experiment = experiment
        self._store = store
        self._instruments = instruments
        self._fresh = fresh
        self._part = part
        self._slots = SlotPool(max_concurrency or experiment.spec.execution.max_concurrency)
        self._experiment_id = digest(f"experiment:{experiment.spec.name}")
        self._limits = instruments.limits if limits is None else limits
        self._distinct = list({run.run_id: run for run in experiment.runs}.values())
        self._planned = [run for run in self._distinct if only is None or run.run_id in only]
        self._readings: dict[str, dict[str, _Reading]] = {}
        for planned in experiment.runs:
            readings = self._readings.setdefault(planned.run_id, {})
            before = readings.get(planned.cell.measurement_id)
            kinds = coded_kinds(planned.spec) | (before.kinds if before else frozenset())
            readings[planned.cell.measurement_id] = _Reading(planned.spec, kinds)
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._counts = _Counts()
        self._complete: set[str] = set()
        self._open: dict[str, tuple[Simulation, RunCalls]] = {}
        self._rating: set[RunCalls] = set()
        #: Complete runs that a classifier has yet to ask about, and the kinds of text that are coded of them.
        self._reopened: dict[str, dict[str, set[str]]] = {}
        self._stopped = False
        self._stopping = asyncio.Event()
        self._exceeded = ""
        self._budget: Budget | None = None
        self._defect: Exception | None = None
        self._inputs: dict[int, str] = {}
        self._changed: set[str] = set()
        # SQLite and classification block; each has a thread of its own so that dispatch goes on.
        self._store_thread = ThreadPoolExecutor(1, "opinionsim-store")
        self._opening_thread = ThreadPoolExecutor(1, "opinionsim-open")
        self._measuring_thread = ThreadPoolExecutor(1, "opinionsim-measure")

        #: What a reader of the results should know of the models beforehand.
        self.warnings = instruments.warnings()

    # -- seen from outside -------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """How far the sweep is."""
        under_way = [calls for _, calls in list(self._open.values())]
        open_calls = [*under_way, *list(self._rating)]
        return Progress(
            total=len(self._planned),
            complete=len(self._complete),
            incomplete=len(self._counts.errors),
            open=len(under_way),
            made=self._counts.made + sum(calls.made for calls in open_calls),
            answered=self._counts.answered + sum(calls.answered for calls in open_calls),
            in_flight=self._slots.in_flight,
        )

    def stop(self) -> None:
        """Dispatch nothing more; calls in flight go on to their end. To be called on the event loop."""
        self._stopped = True
        self._stopping.set()
        for simulation, _ in self._open.values():
            simulation.engine.stop(_Stopped(_STOPPED))
        for calls in self._rating:
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
            if not self._part:
                await self._in_store(self._register)
            pending = await self._sort_out()
            await self._open_budget()
            canaries = Canaries(self._experiment_id, self._instruments, self._budget)
            asks = bool(pending) and self.experiment.spec.execution.canary and not self._part
            if asks:
                await self._in_store(self._store.save_canary, await canaries.ask("start"))
            already = len(self._complete)
            await self._carry_out(pending)
            if asks and not self._stopped:
                await self._in_store(self._store.save_canary, await canaries.ask("end"))
            if not self._part:
                await self._in_store(self._save_experiment)
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
            already=already,
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
        """Put the experiment, its runs and its measurements on record."""
        self._save_experiment()
        self._store.register([self._run_row(planned) for planned in self._distinct])
        measurements: dict[str, _Reading] = {}
        for readings in self._readings.values():
            for measurement_id, (spec, kinds) in readings.items():
                before = measurements.get(measurement_id)
                measurements[measurement_id] = _Reading(spec, kinds | before.kinds if before else kinds)
        for measurement_id, reading in measurements.items():
            self._store.save_measurement(self._measurement_row(measurement_id, reading))

    def _save_experiment(self) -> None:
        experiment = self.experiment
        spec = experiment.spec.model_dump(mode="json")
        runs = tuple(
            ExperimentRun(
                planned.run_id,
                planned.cell.measurement_id,
                planned.replicate,
                planned.block,
                planned.cell.label,
                planned.cell.axes,
            )
            for planned in experiment.runs
        )
        models = sorted(self._store.models(planned.run_id for planned in self._planned))
        found = manifest(experiment, models=models)
        self._store.save_experiment(
            ExperimentRow(self._experiment_id, experiment.spec.name, time.time(), spec, found, runs)
        )

    def _run_row(self, planned: PlannedRun) -> RunRow:
        spec = planned.spec
        topic = self.experiment.resources.topic(spec.topic)
        claim = topic.claim(spec.topic.framing)
        size = spec.population.size
        network = getattr(spec.interaction, "network", None)
        bare = isinstance(spec.interaction, NoRolePlaySpec)
        pack = self.experiment.resources.pack(spec.prompts)
        summary = {
            "seed": spec.seed,
            "topic": topic.name,
            "category": topic.category,
            "framing": str(spec.topic.framing),
            "claim": claim.text,
            "truth": claim.truth(spec.scale.scale()),
            "confirmation_bias": None if bare else spec.cognition.confirmation_bias,
            "memory": spec.cognition.memory,
            "world": None if bare else spec.cognition.world,
            "model": model_label(spec.model),
            "interaction": spec.interaction.kind,
            "network": None if network is None else network.kind,
            "n_agents": size,
            "steps": spec.interaction.steps_for(size),
        }
        fields = {**planned.cell.fields, "inputs": self._inputs_of(planned)}
        evidence = self._instruments.evidence(spec, pack)
        return RunRow(planned.run_id, planned.replicate, planned.block, evidence, fields, summary)

    def _measurement_row(self, measurement_id: str, reading: _Reading) -> MeasurementRow:
        classifier = self._instruments.classifier(reading.spec)
        scale = reading.spec.scale.scale()
        kinds = tuple(sorted(reading.kinds))
        return MeasurementRow(measurement_id, classifier.name, classifier.options, scale.points, scale.labels, kinds)

    def _inputs_of(self, planned: PlannedRun) -> str:
        """Digest of the wording a run's prompts are made of, and of the version that makes them."""
        key = id(planned.cell)
        if key not in self._inputs:
            pack = self.experiment.resources.pack(planned.spec.prompts)
            self._inputs[key] = digest(canonical_json([opinionsim.__version__, dict(pack.contents)]))
        return self._inputs[key]

    async def _sort_out(self) -> list[PlannedRun]:
        """Runs still to be carried out; finished ones are checked, and measured where a measurement is new."""
        run_ids = [planned.run_id for planned in self._planned]
        states = await self._in_store(self._store.states, run_ids)
        stored = await self._in_store(self._store.fields, run_ids)
        measured = await self._in_store(self._store.measured_kinds, run_ids)
        present = await self._in_store(self._store.kinds, run_ids)
        pending = []
        for planned in self._planned:
            run_id = planned.run_id
            if self._stopped:
                if states[run_id].status == "complete":
                    self._complete.add(run_id)
                else:
                    self._counts.errors[run_id] = _STOPPED
                continue
            if stored[run_id].get("inputs") != self._inputs_of(planned):
                self._changed.add(run_id)
            if states[run_id].status != "complete":
                pending.append(planned)
            elif run_id not in self._changed or await self._still_agrees(planned):
                if states[run_id].error:
                    await self._in_store(self._store.save_error, run_id, "")
                readings = self._unmeasured(run_id, measured.get(run_id, {}), present.get(run_id, set()))
                if self._asks(readings):
                    # Its questions are calls of the run, which goes through its journal to where they belong.
                    self._reopened[run_id] = measured.get(run_id, {})
                    pending.append(planned)
                else:
                    await self._measure_again(planned, readings)
                    self._complete.add(run_id)
            elif self._fresh:
                await self._in_store(self._store.forget, [run_id])
                pending.append(planned)
        return pending

    async def _still_agrees(self, planned: PlannedRun) -> bool:
        """Whether a finished run asks today what it asked then; says so if it does not."""
        records = await self._in_store(self._store.records, planned.run_id)
        try:
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
        fields = {**planned.cell.fields, "inputs": self._inputs_of(planned)}
        self._store.save_fields(planned.run_id, fields)

    def _unmeasured(
        self, run_id: str, measured: dict[str, set[str]], present: set[str] | None = None
    ) -> dict[str, _Reading]:
        """What measurements have yet to code of a run; of kinds not present there is nothing."""
        left = {
            measurement_id: _Reading(
                spec, (kinds if present is None else kinds & present) - measured.get(measurement_id, set())
            )
            for measurement_id, (spec, kinds) in self._readings[run_id].items()
        }
        return {measurement_id: reading for measurement_id, reading in left.items() if reading.kinds}

    def _asks(self, readings: dict[str, _Reading]) -> bool:
        """Whether texts are to be coded by a classifier that asks a chat model."""
        return any(
            asks(self._instruments.classifier(spec)) and bool(kinds - {SELF_REPORT})
            for spec, kinds in readings.values()
        )

    async def _measure_again(self, planned: PlannedRun, readings: dict[str, _Reading]) -> None:
        """Code a finished run's stored texts by measurements that have not yet; none of them asks anybody."""
        for measurement_id, (spec, kinds) in readings.items():
            stored = await self._in_store(self._store.turns, planned.run_id)
            texts = [_happened(row) for row in stored if row.kind in kinds]
            claim = self.experiment.resources.topic(spec.topic).claim(spec.topic.framing)
            known = await self._measure(spec, measurement_id, claim, texts)
            rows = [_opinion_row(measurement_id, turn, known[turn]) for turn in sorted(known)]
            await self._in_store(self._store.save_opinions, planned.run_id, rows)

    async def _open_budget(self) -> None:
        """Count what the experiment has paid on record, where anything is limited."""
        if self._limits != Limits():
            paid = await self._in_store(self._store.usage, [planned.run_id for planned in self._planned])
            self._budget = Budget(self._limits, Usage(paid.calls, paid.input_tokens + paid.output_tokens, paid.cost))

    # -- carrying out ------------------------------------------------------------------------------------

    async def _carry_out(self, pending: list[PlannedRun]) -> None:
        """Carry out runs that are not done yet."""
        n_open = self._open_runs(pending)
        opened: asyncio.Queue[_Opened | None] = asyncio.Queue(1 if self._store.shared else max(n_open, 1))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._open_ahead(pending, opened, n_open))
                for _ in range(n_open):
                    group.create_task(self._work(opened, group))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

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
                    self._counts.errors[planned.run_id] = _STOPPED
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
                self._counts.errors[planned.run_id] = _STOPPED
            return []
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), _LOOK_AGAIN_S)
        states = await self._in_opening(self._store.states, [planned.run_id for planned in held])
        done = {
            run_id for run_id, state in states.items() if state.status == "complete" and run_id not in self._reopened
        }
        self._complete |= done
        return [planned for planned in held if planned.run_id not in done]

    async def _open_run(self, planned: PlannedRun) -> _Opened | _Held | None:
        """A run ready to start; None where it cannot go on, which is put on record."""
        run_id, resources = planned.run_id, self.experiment.resources
        claimed = await self._in_opening(self._claim, run_id)
        if claimed is None:
            return _HELD
        epoch, journal, records = claimed
        try:
            # A draw that cannot be used, such as a network without an edge, stops its own run only.
            parts = assemble(planned, resources)
            if run_id in self._changed:
                # Before anything is asked anew: a journal that mixes two wordings could not be finished under either.
                await check_prompts(planned, resources, records)
                await self._in_opening(self._save_inputs, planned)
        except JournalMismatch as error:
            if self._fresh:
                self._reopened.pop(run_id, None)
                await self._in_opening(self._store.forget, [run_id])
                return await self._open_run(planned)
            await self._give_up(run_id, epoch, str(error))
        except SpecError as error:
            await self._give_up(run_id, epoch, f"run {run_id}: {error}")
        else:
            return _Opened(planned, parts, epoch, journal)
        return None

    async def _give_up(self, run_id: str, epoch: int, reason: str) -> None:
        """Put on record why a run cannot go on; what it has produced stays."""
        status: Literal["complete", "incomplete"] = "complete" if run_id in self._reopened else "incomplete"
        await self._in_store(self._store.finish, run_id, epoch, RunOutcome(status, error=reason))
        self._counts.errors[run_id] = reason

    def _claim(self, run_id: str) -> tuple[int, Journal, list[CallRecord]] | None:
        epoch = self._store.claim(run_id, self._owner, again=run_id in self._reopened)
        if epoch is None:
            return None
        journal = self._store.journal(run_id, epoch)
        return epoch, journal, journal.records

    async def _work(self, queue: asyncio.Queue[_Opened | None], group: asyncio.TaskGroup) -> None:
        """Carry out one run after another; the next one starts while the last one is measured and stored."""
        concluding: asyncio.Task[None] | None = None
        while (opened := await queue.get()) is not None:
            played = await self._play(opened)
            if isinstance(played.error, JournalMismatch) and self._fresh:
                self._reopened.pop(opened.planned.run_id, None)
                await self._in_store(self._store.forget, [opened.planned.run_id])
                again = await self._open_run(opened.planned)
                if not isinstance(again, _Opened):
                    continue
                played = await self._play(again)
            if concluding is not None:
                await concluding
            concluding = group.create_task(self._conclude(played))
        if concluding is not None:
            await concluding

    async def _play(self, opened: _Opened) -> _Played:
        """Carry out one run, from its journal's end to its last turn."""
        planned, parts = opened.planned, opened.parts
        run_id, spec = planned.run_id, planned.spec
        endpoints = [self._instruments.endpoint(model, spec, parts.pack) for model in parts.models]
        calls = RunCalls(run_id, opened.journal, endpoints, self._slots, patience=_patience(spec), budget=self._budget)
        measurement_id = planned.cell.measurement_id
        classifier = self._instruments.classifier(spec)
        simulation = parts.simulation(calls, classifier, self._measuring_thread, measurement_id)
        error: OpinionSimError | None = _Stopped(_STOPPED) if self._stopped else None
        self._open[run_id] = (simulation, calls)
        try:
            if error is None:
                await simulation.run()
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
            self._counts.made += calls.made
            self._counts.answered += calls.answered
            self._counts.repeated += calls.repeated
        return _Played(planned, parts, opened.epoch, opened.journal, simulation, error)

    async def _broken(self, simulation: Simulation, failure: Exception) -> OpinionSimError:
        """Stop a run over a defect of the program, which is raised when all other runs are over."""
        error = OpinionSimError(f"{type(failure).__name__}: {failure}")
        await simulation.end(error)
        self._defect = self._defect or failure
        return error

    async def _conclude(self, played: _Played) -> None:
        """Measure a run that is over and put what it led to on record."""
        run_id, error = played.planned.run_id, played.error
        opinions: list[OpinionRow] = []
        if error is None:
            try:
                opinions = await self._opinions(played)
            except OpinionSimError as failure:
                error = failure
        # A measurement that could not be made makes no complete run incomplete.
        finished = error is None or run_id in self._reopened
        status: Literal["complete", "incomplete"] = "complete" if finished else "incomplete"
        outcome = _outcome(played, status, opinions, error)
        await self._in_store(self._store.finish, run_id, played.epoch, outcome)
        if error is None:
            self._complete.add(run_id)
        else:
            self._counts.errors[run_id] = str(error)

    async def _opinions(self, played: _Played) -> list[OpinionRow]:
        """The run's opinions by every measurement that reads it and has not done so yet."""
        planned, simulation = played.planned, played.simulation
        rows = []
        with self._rated(played) as calls:
            for measurement_id, (spec, kinds) in self._unmeasured(
                planned.run_id, self._reopened.get(planned.run_id, {})
            ).items():
                own = measurement_id == planned.cell.measurement_id
                coded = [happening for happening in simulation.happenings() if happening.kind in kinds]
                known = {each.turn.index: each.estimate for each in coded if own and each.estimate is not None}
                unknown = [each for each in coded if each.turn.index not in known]
                known.update(await self._measure(spec, measurement_id, simulation.claim, unknown, calls))
                rows += [_opinion_row(measurement_id, turn, known[turn]) for turn in sorted(known)]
        return rows

    @contextmanager
    def _rated(self, played: _Played) -> Iterator[RunCalls]:
        """The calls of classifiers that ask about a run that is over."""
        planned = played.planned
        patience = _patience(planned.spec)
        # Whoever asks brings along who answers.
        calls = RunCalls(planned.run_id, played.journal, (), self._slots, patience=patience, budget=self._budget)
        if self._stopped:
            calls.stop()
        self._rating.add(calls)
        try:
            yield calls
        except BudgetExceeded as failure:
            self._exceeded = self._exceeded or str(failure)
            self.stop()
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._stopped or (task is not None and task.cancelling()):
                raise
            raise _Stopped(_STOPPED) from None
        finally:
            self._rating.discard(calls)
            self._counts.made += calls.made
            self._counts.answered += calls.answered
            self._counts.repeated += calls.repeated

    async def _measure(
        self,
        spec: ExperimentSpec,
        measurement_id: str,
        claim: Claim,
        texts: list[Happening],
        calls: RunCalls | None = None,
    ) -> dict[int, Estimate]:
        """Estimates by turn."""
        classifier = self._instruments.classifier(spec)
        found = {
            each.turn.index: self_reported(classifier.scale, each.message) for each in texts if each.kind == SELF_REPORT
        }
        others = [(each.turn, each.message) for each in texts if each.kind != SELF_REPORT]
        if not others:
            return found
        if asks(classifier) and calls is not None:
            estimates = await rate(classifier, claim, others, calls, measurement_id)
        else:
            loop = asyncio.get_running_loop()
            messages = [message for _, message in others]
            estimates = await loop.run_in_executor(self._measuring_thread, measure, classifier, claim, messages)
        found.update(zip((turn.index for turn, _ in others), estimates, strict=True))
        return found

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
    """A run under a claim, with its journal, before its first turn."""

    planned: PlannedRun
    parts: Parts
    epoch: int
    journal: Journal


@dataclass(frozen=True)
class _Played:
    """A run whose last turn is over, or that was stopped by an error."""

    planned: PlannedRun
    parts: Parts
    epoch: int
    journal: Journal
    simulation: Simulation
    error: OpinionSimError | None


class _Held(Enum):
    """A run that another worker holds, or has finished meanwhile."""

    HELD = "held"


_HELD = _Held.HELD


class _Stopped(OpinionSimError):
    """The sweep was asked to stop."""


class _Reading(NamedTuple):
    """What one measurement codes of a run."""

    spec: ExperimentSpec
    kinds: frozenset[str]


def _opinion_row(measurement_id: str, turn: int, estimate: Estimate) -> OpinionRow:
    return OpinionRow(measurement_id, "stance", turn, estimate.value, estimate.off_scale, estimate.probabilities)


def _happened(row: TurnRow) -> Happening:
    """A turn on record."""
    turn = Turn(row.turn, row.step, row.agent, row.act)
    return Happening(turn, Message(row.text, condition=row.condition), row.kind, None)


def _patience(spec: ExperimentSpec) -> Patience:
    execution = spec.execution
    return Patience(execution.timeout_s, **execution.retry.model_dump())


def _attributes(persona: Persona) -> dict[str, str]:
    """What a persona's file says of it."""
    return {**persona.attributes, **({"background": persona.background} if persona.background else {})}


def _outcome(
    played: _Played,
    status: Literal["complete", "incomplete"],
    opinions: list[OpinionRow],
    error: OpinionSimError | None,
) -> RunOutcome:
    """Everything there is to store of a run."""
    parts = played.parts
    members = zip(parts.population.personas, parts.population.opinions, parts.models, strict=True)
    agents = tuple(
        AgentRow(
            agent,
            persona.name or "(no role)",
            None if opinion is None else float(opinion),
            _attributes(persona),
            agent_label(model, played.planned.spec.model),
        )
        for agent, (persona, opinion, model) in enumerate(members)
    )
    edges = () if parts.network is None else tuple(
        EdgeRow(int(u), int(v), float(data.get("weight", 1.0))) for u, v, data in parts.network.edges(data=True)
    )  # fmt: skip
    return RunOutcome(
        status=status,
        agents=agents,
        edges=edges,
        turns=tuple(turn_rows(played.simulation)),
        opinions=tuple(opinions),
        error=str(error) if error else "",
    )


@contextmanager
def under_way(
    experiment: Experiment,
    store: str | Path | None = None,
    *,
    max_concurrency: int | None = None,
    fresh: bool = False,
    chat_model: BaseChatModel | None = None,
    only: Collection[str] | None = None,
    cluster: str | None = None,
) -> Iterator[tuple[Sweep, Future[Summary]]]:
    """An experiment being carried out while the block lasts; parameters and errors are those of :func:`run`.

    Yields
    ------
    (Sweep, concurrent.futures.Future)
        The sweep, to watch or to stop by ``background.call_soon(sweep.stop)``, and its summary to come. When
        the block raises, the sweep is ended at once; either way nothing of it is left when the block is over.
    """
    if not isinstance(experiment, Experiment):
        raise SpecError(f"an experiment from load_experiment is expected; got {type(experiment).__name__}")
    if max_concurrency is not None and not (isinstance(max_concurrency, int) and max_concurrency >= 1):
        raise SpecError(f"max_concurrency must be a whole number of at least 1; got {max_concurrency!r}")
    # It stands on this module.
    from opinionsim.experiments._cluster import Cluster, ClusterSweep, check_cluster

    url = str(store or default_store(experiment))
    if cluster is not None:
        check_cluster(url, chat_model)
    instruments = Instruments(experiment, chat_model)
    ended = threading.Event()

    async def execute(sweep: Sweep) -> Summary:
        try:
            return await sweep.execute()
        finally:
            ended.set()

    with ExitStack() as closing:
        kind = Sweep if cluster is None else partial(ClusterSweep, closing.enter_context(Cluster(cluster)))
        opened = closing.enter_context(open_store(url))
        sweep = kind(experiment, opened, instruments, max_concurrency=max_concurrency, fresh=fresh, only=only)
        future = background.submit(execute(sweep))
        try:
            yield sweep, future
            future.result()
        except BaseException:
            future.cancel()
            ended.wait(_ABORT_S)
            raise


def run(
    experiment: Experiment,
    store: str | Path | None = None,
    *,
    max_concurrency: int | None = None,
    fresh: bool = False,
    chat_model: BaseChatModel | None = None,
    only: Collection[str] | None = None,
    cluster: str | None = None,
) -> Results:
    """Carry out an experiment and read its results; running again finishes what is missing.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.
    store : str or Path, optional
        Where results are kept; default ``sqlite:///results/NAME.sqlite``.
    max_concurrency : int, optional
        Calls in flight at most; default that of the specification.
    fresh : bool
        Start a run anew when its stored calls answer other questions than those now asked, as after an
        edit of a template. Other runs stay as they are.
    chat_model : BaseChatModel, optional
        A LangChain chat model to use instead of the one the experiment names.
    only : collection of str, optional
        Ids of the runs to carry out, for instance ``experiment.pilot``; the others stay as they are. Default all.
    cluster : str, optional
        Address of a Dask scheduler, ``tcp://HOST:PORT``, whose workers carry the runs out; needs a store in
        PostgreSQL and the extra ``cluster``. Default: this process does.

    Returns
    -------
    Results
        Tidy frames; runs that failed are there with status ``incomplete`` and their error. A finished run
        whose stored calls answer other questions than those now asked stays ``complete``, with an error.

    Raises
    ------
    SpecError
        If a model or classifier cannot be loaded, or the cluster cannot be used; nothing has been written then,
        unless it is a worker that cannot.
    StoreError
        If the store cannot be opened, or is in use by another run.
    KeyboardInterrupt
        After calls in flight have ended and everything is on record.
    """
    with under_way(
        experiment,
        store,
        max_concurrency=max_concurrency,
        fresh=fresh,
        chat_model=chat_model,
        only=only,
        cluster=cluster,
    ) as (sweep, future):
        try:
            future.result()
        except KeyboardInterrupt:
            background.call_soon(sweep.stop)
            future.result()
            raise
    return load(str(store or default_store(experiment)), experiment.spec.name)
