"""Carrying out the runs of an experiment: all of them together, each exactly once, resumable at any point."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel

import opinionsim
from opinionsim import background
from opinionsim.classifiers import Classifier, load_classifier
from opinionsim.engine import critical_path
from opinionsim.errors import JournalMismatch, OpinionSimError, SpecError
from opinionsim.experiments._assembly import Parts, assemble, coded_kinds
from opinionsim.experiments._manifest import manifest
from opinionsim.experiments._replay import check_prompts, replay_run, turn_rows
from opinionsim.experiments._spec import ExperimentSpec, NoRolePlaySpec
from opinionsim.experiments._sweep import Experiment, PlannedRun
from opinionsim.llm import (
    CallRecord,
    Journal,
    ModelClient,
    RunCalls,
    ScriptedChatModel,
    SlotPool,
    load_chat_model,
)
from opinionsim.personas import Persona
from opinionsim.prompts import PromptPack
from opinionsim.schedules import AdaptiveSchedule
from opinionsim.simulation import Estimate, Simulation, measure
from opinionsim.store import (
    AgentRow,
    EdgeRow,
    ExperimentRow,
    ExperimentRun,
    MeasurementRow,
    OpinionRow,
    Results,
    RunOutcome,
    RunRow,
    Store,
    load,
    open_store,
)
from opinionsim.streams import canonical_json, digest
from opinionsim.topics import Claim

__all__ = ["Instruments", "Progress", "Summary", "Sweep", "default_store", "run", "under_way"]

_T = TypeVar("_T")

_STOPPED = "stopped before it was finished"
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
        Whether it was asked to stop.
    made, answered : int
        Calls the model has answered, and calls the store has answered.
    seconds : float
        Wall time.
    """

    total: int
    complete: int
    already: int
    errors: dict[str, str]
    stopped: bool
    made: int
    answered: int
    seconds: float


def default_store(experiment: Experiment) -> str:
    """Where an experiment is stored unless told otherwise: ``sqlite:///results/NAME.sqlite``."""
    return f"sqlite:///results/{experiment.spec.name}.sqlite"


class Instruments:
    """The models and classifiers of an experiment, each loaded once, before anything is spent.

    Parameters
    ----------
    experiment : Experiment
        What names them.
    chat_model : BaseChatModel, optional
        Used instead of every model the experiment names. The names stay what identifies the runs, so a real
        model needs a name other than ``scripted``, and the scripted one no other.

    Raises
    ------
    SpecError, MeasurementError
        If a model or classifier cannot be loaded.
    """

    def __init__(self, experiment: Experiment, chat_model: BaseChatModel | None = None) -> None:
        self._chat_model = chat_model
        self._models: dict[str, BaseChatModel] = {}
        self._clients: dict[str, ModelClient] = {}
        self._classifiers: dict[str, Classifier] = {}
        for cell in experiment.cells:
            self._check_name(cell.spec.model.name)
            pack = experiment.resources.pack(cell.spec.prompts)
            self.client(cell.spec, pack)
            self.classifier(cell.spec)

    def _check_name(self, name: str) -> None:
        """A model given as an object must not pass for another one: runs are told apart by their model's name."""
        given = self._chat_model
        if given is not None and isinstance(given, ScriptedChatModel) != (name == "scripted"):
            raise SpecError(
                f"model.name: the experiment names {name!r} but chat_model is a {type(given).__name__}; "
                "give the model a name of its own in the specification, and 'scripted' to the scripted one only"
            )

    def client(self, spec: ExperimentSpec, pack: PromptPack) -> ModelClient:
        """The client of a run's chat model; the scripted one reads the run's prompt pack and scale."""
        name = canonical_json(spec.model.model_dump(mode="json"))
        if name not in self._models:
            self._models[name] = self._chat_model or load_chat_model(
                spec.model.name,
                temperature=spec.model.temperature,
                max_tokens=spec.model.max_tokens,
                **spec.model.options,
            )
        model = self._models[name]
        bound = isinstance(model, ScriptedChatModel)
        key = canonical_json([name, spec.prompts, spec.scale.model_dump(mode="json")] if bound else [name])
        if key not in self._clients:
            if isinstance(model, ScriptedChatModel):
                with _field("model.options"):
                    model = model.bound(pack.marks, spec.scale.scale())
            self._clients[key] = ModelClient(model)
        return self._clients[key]

    def classifier(self, spec: ExperimentSpec) -> Classifier:
        """The classifier of a run."""
        wanted = spec.measurement.classifier
        key = canonical_json([wanted.model_dump(mode="json"), spec.scale.model_dump(mode="json")])
        if key not in self._classifiers:
            with _field("measurement.classifier"):
                self._classifiers[key] = load_classifier(wanted.name, spec.scale.scale(), **wanted.options)
        return self._classifiers[key]


@contextmanager
def _field(name: str) -> Iterator[None]:
    """Name the field of the specification that an error is about."""
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from error.__cause__


@dataclass
class _Counts:
    """Calls of runs that are over."""

    made: int = 0
    answered: int = 0
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
    ) -> None:
        self.experiment = experiment
        self._store = store
        self._instruments = instruments
        self._fresh = fresh
        self._slots = SlotPool(max_concurrency or experiment.spec.execution.max_concurrency)
        self._planned = list({run.run_id: run for run in experiment.runs}.values())
        self._readings: dict[str, dict[str, _Reading]] = {}
        for planned in experiment.runs:
            readings = self._readings.setdefault(planned.run_id, {})
            before = readings.get(planned.cell.measurement_id)
            kinds = coded_kinds(planned.spec) | (before.kinds if before else frozenset())
            readings[planned.cell.measurement_id] = _Reading(planned.spec, kinds)
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self._counts = _Counts()
        self._complete: set[str] = set()
        self._open: dict[str, tuple[Simulation, RunCalls]] = {}
        self._stopped = False
        self._defect: Exception | None = None
        self._inputs: dict[int, str] = {}
        self._changed: set[str] = set()
        # SQLite and classification block; each has a thread of its own so that dispatch goes on.
        self._store_thread = ThreadPoolExecutor(1, "opinionsim-store")
        self._opening_thread = ThreadPoolExecutor(1, "opinionsim-open")
        self._measuring_thread = ThreadPoolExecutor(1, "opinionsim-measure")

    # -- seen from outside -------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """How far the sweep is."""
        open_calls = [calls for _, calls in list(self._open.values())]
        return Progress(
            total=len(self._planned),
            complete=len(self._complete),
            incomplete=len(self._counts.errors),
            open=len(open_calls),
            made=self._counts.made + sum(calls.made for calls in open_calls),
            answered=self._counts.answered + sum(calls.answered for calls in open_calls),
            in_flight=self._slots.in_flight,
        )

    def stop(self) -> None:
        """Dispatch nothing more; calls in flight go on to their end. To be called on the event loop."""
        self._stopped = True
        for simulation, _ in self._open.values():
            simulation.engine.stop(_Stopped(_STOPPED))

    async def execute(self) -> Summary:
        """Carry out everything that is not done yet.

        Returns
        -------
        Summary
            Also when runs failed or the sweep was stopped; only defects of the program raise.
        """
        began = time.monotonic()
        try:
            await self._in_store(self._register)
            pending = await self._sort_out()
            already = len(self._complete)
            n_open = self._open_runs(pending)
            opened: asyncio.Queue[_Opened | None] = asyncio.Queue(max(n_open, 1))
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._open_ahead(pending, opened, n_open))
                    for _ in range(n_open):
                        group.create_task(self._work(opened, group))
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
            await self._in_store(self._save_experiment)
            if self._defect is not None:
                raise self._defect
        finally:
            # The loop is shared with other sweeps and models, which must not wait for what these threads still do.
            for thread in (self._store_thread, self._opening_thread, self._measuring_thread):
                await asyncio.to_thread(thread.shutdown)
        return Summary(
            total=len(self._planned),
            complete=len(self._complete),
            already=already,
            errors=dict(self._counts.errors),
            stopped=self._stopped,
            made=self._counts.made,
            answered=self._counts.answered,
            seconds=time.monotonic() - began,
        )

    # -- before ------------------------------------------------------------------------------------------

    def _register(self) -> None:
        """Put the experiment, its runs and its measurements on record."""
        self._save_experiment()
        self._store.register([self._run_row(planned) for planned in self._planned])
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
            ExperimentRow(
                digest(f"experiment:{experiment.spec.name}"), experiment.spec.name, time.time(), spec, found, runs
            )
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
            "model": spec.model.name,
            "interaction": spec.interaction.kind,
            "network": None if network is None else network.kind,
            "n_agents": size,
            "steps": spec.interaction.steps_for(size),
        }
        fields = {**planned.cell.fields, "inputs": self._inputs_of(planned)}
        evidence = self._instruments.client(spec, pack).evidence
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
                await self._measure_again(planned, measured.get(run_id, {}), present.get(run_id, set()))
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

    async def _measure_again(self, planned: PlannedRun, measured: dict[str, set[str]], present: set[str]) -> None:
        """Code a finished run's stored texts, of the kinds present, by every measurement that has not yet."""
        for measurement_id, (spec, kinds) in self._readings[planned.run_id].items():
            wanted = (kinds & present) - measured.get(measurement_id, set())
            if not wanted:
                continue
            turns = [turn for turn in await self._in_store(self._store.turns, planned.run_id) if turn.kind in wanted]
            claim = self.experiment.resources.topic(spec.topic).claim(spec.topic.framing)
            estimates = await self._measure(spec, claim, [turn.text for turn in turns])
            rows = [
                _opinion_row(measurement_id, turn.turn, estimate)
                for turn, estimate in zip(turns, estimates, strict=True)
            ]
            await self._in_store(self._store.save_opinions, planned.run_id, rows)

    # -- carrying out ------------------------------------------------------------------------------------

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
        return min(max(8, math.ceil(4 * self._slots.limit / width)), len(pending))

    async def _open_ahead(self, pending: list[PlannedRun], opened: asyncio.Queue[_Opened | None], n_open: int) -> None:
        """Claim runs and read their journals before their turn comes, so that no slot waits for the store."""
        for planned in pending:
            if self._stopped:
                self._counts.errors[planned.run_id] = _STOPPED
            elif (ready := await self._open_run(planned)) is not None:
                await opened.put(ready)
        for _ in range(n_open):
            await opened.put(None)

    async def _open_run(self, planned: PlannedRun) -> _Opened | None:
        """A run ready to start; None where it cannot go on, which is put on record."""
        run_id, resources = planned.run_id, self.experiment.resources
        epoch, journal, records = await self._in_opening(self._claim, run_id)
        try:
            # A draw that cannot be used, such as a network without an edge, stops its own run only.
            parts = assemble(planned, resources)
            if run_id in self._changed:
                # Before anything is asked anew: a journal that mixes two wordings could not be finished under either.
                await check_prompts(planned, resources, records)
                await self._in_opening(self._save_inputs, planned)
        except JournalMismatch as error:
            if self._fresh:
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
        await self._in_store(self._store.finish, run_id, epoch, RunOutcome("incomplete", error=reason))
        self._counts.errors[run_id] = reason

    def _claim(self, run_id: str) -> tuple[int, Journal, list[CallRecord]]:
        epoch = self._store.claim(run_id, self._owner)
        journal = self._store.journal(run_id, epoch)
        return epoch, journal, journal.records

    async def _work(self, queue: asyncio.Queue[_Opened | None], group: asyncio.TaskGroup) -> None:
        """Carry out one run after another; the next one starts while the last one is measured and stored."""
        concluding: asyncio.Task[None] | None = None
        while (opened := await queue.get()) is not None:
            played = await self._play(opened)
            if isinstance(played.error, JournalMismatch) and self._fresh:
                await self._in_store(self._store.forget, [opened.planned.run_id])
                opened = await self._open_run(opened.planned)
                if opened is None:
                    continue
                played = await self._play(opened)
            if concluding is not None:
                await concluding
            concluding = group.create_task(self._conclude(played))
        if concluding is not None:
            await concluding

    async def _play(self, opened: _Opened) -> _Played:
        """Carry out one run, from its journal's end to its last turn."""
        planned, parts = opened.planned, opened.parts
        run_id, spec = planned.run_id, planned.spec
        client = self._instruments.client(spec, parts.pack)
        calls = RunCalls(run_id, opened.journal, client, self._slots, timeout_s=spec.execution.timeout_s)
        simulation = parts.simulation(calls, self._instruments.classifier(spec), self._measuring_thread)
        error: OpinionSimError | None = _Stopped(_STOPPED) if self._stopped else None
        self._open[run_id] = (simulation, calls)
        try:
            if error is None:
                await simulation.run()
        except OpinionSimError as failure:
            error = failure
        except Exception as failure:
            error = await self._broken(simulation, failure)
        finally:
            del self._open[run_id]
            self._counts.made += calls.made
            self._counts.answered += calls.answered
        return _Played(planned, parts, opened.epoch, simulation, error)

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
                opinions = await self._opinions(played.planned, played.simulation)
            except OpinionSimError as failure:
                error = failure
        outcome = _outcome(played, opinions, error)
        await self._in_store(self._store.finish, run_id, played.epoch, outcome)
        if error is None:
            self._complete.add(run_id)
        else:
            self._counts.errors[run_id] = str(error)

    async def _opinions(self, planned: PlannedRun, simulation: Simulation) -> list[OpinionRow]:
        """The run's opinions by every measurement that reads it."""
        await simulation.measure()
        rows = []
        for measurement_id, (spec, kinds) in self._readings[planned.run_id].items():
            own = measurement_id == planned.cell.measurement_id
            coded = [happening for happening in simulation.happenings() if happening.kind in kinds]
            known = {each.turn.index: each.estimate for each in coded if own and each.estimate is not None}
            unknown = [each for each in coded if each.turn.index not in known]
            estimates = await self._measure(spec, simulation.claim, [each.message.text for each in unknown])
            known.update(zip((each.turn.index for each in unknown), estimates, strict=True))
            rows += [_opinion_row(measurement_id, turn, known[turn]) for turn in sorted(known)]
        return rows

    async def _measure(self, spec: ExperimentSpec, claim: Claim, texts: list[str]) -> list[Estimate]:
        loop = asyncio.get_running_loop()
        classifier = self._instruments.classifier(spec)
        return await loop.run_in_executor(self._measuring_thread, measure, classifier, claim, texts)

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
    simulation: Simulation
    error: OpinionSimError | None


class _Stopped(OpinionSimError):
    """The sweep was asked to stop."""


class _Reading(NamedTuple):
    """What one measurement codes of a run."""

    spec: ExperimentSpec
    kinds: frozenset[str]


def _opinion_row(measurement_id: str, turn: int, estimate: Estimate) -> OpinionRow:
    return OpinionRow(measurement_id, "stance", turn, estimate.value, estimate.off_scale, estimate.probabilities)


def _attributes(persona: Persona) -> dict[str, str]:
    """What a persona's file says of it."""
    return {**persona.attributes, **({"background": persona.background} if persona.background else {})}


def _outcome(played: _Played, opinions: list[OpinionRow], error: OpinionSimError | None) -> RunOutcome:
    """Everything there is to store of a run."""
    planned, parts = played.planned, played.parts
    members = zip(parts.population.personas, parts.population.opinions, strict=True)
    agents = tuple(
        AgentRow(
            agent,
            persona.name or "(no role)",
            None if opinion is None else float(opinion),
            _attributes(persona),
            planned.spec.model.name,
        )
        for agent, (persona, opinion) in enumerate(members)
    )
    edges = () if parts.network is None else tuple(
        EdgeRow(int(u), int(v), float(data.get("weight", 1.0))) for u, v, data in parts.network.edges(data=True)
    )  # fmt: skip
    return RunOutcome(
        status="incomplete" if error else "complete",
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
    instruments = Instruments(experiment, chat_model)
    ended = threading.Event()

    async def execute(sweep: Sweep) -> Summary:
        try:
            return await sweep.execute()
        finally:
            ended.set()

    with open_store(str(store or default_store(experiment))) as opened:
        sweep = Sweep(experiment, opened, instruments, max_concurrency=max_concurrency, fresh=fresh)
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

    Returns
    -------
    Results
        Tidy frames; runs that failed are there with status ``incomplete`` and their error. A finished run
        whose stored calls answer other questions than those now asked stays ``complete``, with an error.

    Raises
    ------
    SpecError
        If a model or classifier cannot be loaded; nothing has been written then.
    StoreError
        If the store cannot be opened, or is in use by another run.
    KeyboardInterrupt
        After calls in flight have ended and everything is on record.
    """
    with under_way(experiment, store, max_concurrency=max_concurrency, fresh=fresh, chat_model=chat_model) as (
        sweep,
        future,
    ):
        try:
            future.result()
        except KeyboardInterrupt:
            background.call_soon(sweep.stop)
            future.result()
            raise
    return load(str(store or default_store(experiment)), experiment.spec.name)
