"""Lease, check, carry out, measure and conclude one run; measure finished runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from opinionsim.assembly import Recording, RunParts, opinion_rows, stored_texts
from opinionsim.engine import Simulation
from opinionsim.errors import BudgetExceeded, DamagedError, JournalMismatch, OpinionSimError, SpecError
from opinionsim.llm import CallName, RunCalls, in_process
from opinionsim.measurement import Author, Measuring, Text
from opinionsim.messages import Message, Prompt
from opinionsim.registry import RAISED, raised
from opinionsim.running._context import Shared, Stopped, damage, together
from opinionsim.running._replay import check_prompts
from opinionsim.running._sorting import Pending, uncoded
from opinionsim.running._taken_over import missing_entries, parts_of
from opinionsim.specification import PlannedRun, own_part_error, with_advice
from opinionsim.store import HeldElsewhereError, RunRecord, RunStatus

#: Finished runs measured side by side: enough that judges fill the slots.
_MEASURED_AT_ONCE = 8


@dataclass(frozen=True)
class Opened:
    """A run under a lease, with its record, before its first turn."""

    pending: Pending
    parts: RunParts
    record: RunRecord


@dataclass(frozen=True)
class Played:
    """A run after its last turn, or after an error stopped it."""

    opened: Opened
    recording: Recording
    simulation: Simulation
    measuring: Measuring
    calls: RunCalls
    error: OpinionSimError | None


# -- opening -----------------------------------------------------------------------------------------------


async def open_run(context: Shared, pending: Pending) -> Opened | None:
    """Open a run; if it cannot go on, settle it with the reason and return None.

    Raises
    ------
    HeldElsewhereError
        If another worker holds the run, or has finished it meanwhile.
    """
    run_id, store = pending.run_id, context.store
    if pending.anew:
        if short := context.spending.promise(pending.calls):
            reason = BudgetExceeded(
                f"run {run_id} is complete and stays as it is, because carrying it out anew takes {pending.calls:,} "
                f"calls, more than execution.budget.{short} allows; raise that limit to go on",
                code=f"budget-{short}",
                run=run_id,
                calls=pending.calls,
            )
            context.settle(run_id, reason)
            context.exceeded = context.exceeded or reason
            return None
        return await open_anew(context, pending)
    epoch = await context.in_opening(store.lease, run_id, context.owner)
    if epoch is None:
        raise HeldElsewhereError(f"run {run_id} is held by another worker")
    error: OpinionSimError
    try:
        record = await context.in_opening(store.record, run_id, epoch, context.experiment_id)
        return Opened(pending, await _checked(context, pending, record), record)
    except (DamagedError, JournalMismatch) as changed:
        if context.fresh:
            return await open_anew(context, pending)
        error = damage(run_id, changed) if isinstance(changed, DamagedError) else changed
    except SpecError as unusable:
        # A draw that cannot be used, such as a network without an edge, stops its own run only.
        error = unusable.at(f"run {run_id}", run=run_id)
    await context.in_store(store.finish, run_id, epoch, "incomplete", error)
    context.settle(run_id, error)
    return None


async def open_anew(context: Shared, pending: Pending) -> Opened | None:
    """Delete the results of a run and open it again. Returns and raises what :func:`open_run` does."""
    await context.in_opening(context.store.forget, [pending.run_id])
    pending.anew = False
    return await open_run(context, pending)


async def _checked(context: Shared, pending: Pending, record: RunRecord) -> RunParts:
    """The parts of a run, once its record is checked: models and prompts must be those it was made with."""
    planned, resources = pending.planned, context.experiment.resources
    inputs = pending.source_inputs
    given = context.records.get(planned.run_id, ())
    for entry in await context.in_opening(missing_entries, planned, resources, context.store, record, inputs, given):
        record.append(entry)
    parts = parts_of(planned, resources, record.entries)
    if parts.endpoint is not None:
        await context.in_opening(parts.endpoint.work_out)
    _require_weights(context, pending, parts, record)
    if pending.changed is not None:
        # Before any new call: a journal that mixes two wordings could be finished with neither.
        try:
            await check_prompts(planned, resources, record.entries)
        except JournalMismatch as error:
            raise with_advice(pending.changed, error) from error
        await context.in_opening(context.store.save_inputs, pending.run_id, *pending.inputs)
    return parts


def _require_weights(context: Shared, pending: Pending, parts: RunParts, record: RunRecord) -> None:
    """Make sure that local models are those that a run began with: a name can later mean other weights.

    Raises
    ------
    JournalMismatch
        If a model has different weights.
    """
    models = [context.loaded.contents(model, pending.planned.spec, parts.pack) for model in parts.models]
    for entry in record.entries:
        # Judges have an identity of their own, as parts of instruments.
        if CallName.of(entry.key.call).role == "judge" or not in_process(entry.model):
            continue
        loaded = models[entry.agent]
        if loaded and loaded.rpartition("@")[2] != entry.model.rpartition("@")[2]:
            raise JournalMismatch(
                f"its stored replies come from {entry.model}, but the loaded model {loaded} has different weights",
                f"run {pending.run_id}, agent {entry.agent}",
                "Load the former weights again, or start these runs anew with --fresh",
                "journal-weights",
                run=pending.run_id,
                agent=entry.agent,
            )


# -- carrying out ------------------------------------------------------------------------------------------


async def play(context: Shared, opened: Opened) -> Played:
    """Carry out a run to its last turn, or until an error or a request stops it."""
    planned, parts, record, loaded = opened.pending.planned, opened.parts, opened.record, context.loaded
    run_id, spec = planned.run_id, planned.spec
    cast = loaded.cast(spec, parts)
    calls = context.begin(planned, record, [member.endpoint for member in cast])
    calls.seed_of = parts.seed_of
    authors = [member.author for member in cast]
    measuring = Measuring(context.instruments[run_id], context.queues, calls, parts.claim, authors)
    recording = Recording(record, parts, cast, measuring)
    simulation = Simulation(
        parts.schedule, cast, calls, measuring=measuring, lookahead=parts.lookahead, witness=recording
    )
    error: OpinionSimError | None = Stopped() if context.stopped else None
    context.playing[run_id] = simulation
    try:
        if error is None:
            recording.attend(simulation)
            await simulation.run()
            record.require_all_met()
    except OpinionSimError as failure:
        error = failure
        context.heed(failure)
    except RAISED as failure:
        # A defect of the program stops this run only; it is raised when all other runs are over.
        error = own_part_error(spec, failure)
        if error is None:
            error = OpinionSimError(raised(failure))
            context.defect = context.defect or failure
        await simulation.end(error)
    finally:
        del context.playing[run_id]
    return Played(opened, recording, simulation, measuring, calls, error)


# -- concluding --------------------------------------------------------------------------------------------


async def conclude(context: Shared, played: Played) -> None:
    """Code the remaining texts of a run and store its end.

    Raises
    ------
    HeldElsewhereError
        If another worker took over the run; that worker goes on from the stored calls.
    """
    run_id, record, error = played.calls.run_id, played.opened.record, played.error
    # A run is complete even if its texts could not be coded.
    status: RunStatus = "complete" if error is None else "incomplete"
    try:
        coding = played.recording.coding
        failure = None if coding is None else await coding.end()
        context.heed(failure)
        if error is None:
            error = failure or await _measure(context, record, played.measuring, played.simulation.text)
        await context.in_store(context.store.finish, run_id, record.epoch, status, error)
    finally:
        context.count(played.calls)
    context.settle(run_id, error)


async def measure_finished(context: Shared, runs: list[PlannedRun]) -> None:
    """Code the uncoded texts of finished runs, several runs at a time."""
    left = runs
    while left:
        queue, held = iter(left), list[PlannedRun]()

        async def work(queue: Iterator[PlannedRun] = queue, held: list[PlannedRun] = held) -> None:
            for planned in queue:
                try:
                    await _measure_again(context, planned)
                except HeldElsewhereError:
                    held.append(planned)

        await together(*(work() for _ in range(min(context.wide(_MEASURED_AT_ONCE), len(left)))))
        if held and not context.stopped:
            await context.pause()
        left = held


async def _measure_again(context: Shared, planned: PlannedRun) -> None:
    """Code the uncoded texts of one finished run; a failure does not stop other runs."""
    run_id, store = planned.run_id, context.store
    if not await context.in_store(uncoded, context, [run_id]):
        return context.settle(run_id)
    if context.stopped:
        return context.settle(run_id, Stopped())
    epoch = await context.in_store(partial(store.lease, complete=True), run_id, context.owner)
    if epoch is None:
        raise HeldElsewhereError(f"run {run_id} is held by another worker")
    try:
        record = await context.in_store(store.record, run_id, epoch, context.experiment_id)
    except DamagedError as error:
        context.settle(run_id, damage(run_id, error))
        return await context.in_store(store.release, run_id, epoch)
    calls = context.begin(planned, record)
    try:
        texts, measuring = await _on_record(context, planned, calls)
        failure = await _measure(context, record, measuring, texts.__getitem__)
        if failure is not None and not isinstance(failure, Stopped):
            await context.in_store(store.save_error, run_id, failure)
        await context.in_store(store.release, run_id, epoch)
    finally:
        context.count(calls)
    context.settle(run_id, failure)


async def _on_record(context: Shared, planned: PlannedRun, calls: RunCalls) -> tuple[dict[int, Text], Measuring]:
    """The texts of a finished run, and its instruments, ready to code."""
    spec, instruments, resources = planned.spec, context.instruments[planned.run_id], context.experiment.resources
    externals: Mapping[str, Message | str] = {}
    authors: list[Author] = []
    asked = any(each.asks_author for each in instruments)
    if spec.fork is not None or asked or any(each.context for each in instruments):
        parts = parts_of(planned, resources, await context.in_store(context.store.entries, planned.run_id))
        externals, authors = parts.schedule.externals, [member.author for member in parts.cast()]
        calls.seed_of = parts.seed_of
        if asked:
            calls.answering = [member.endpoint for member in context.loaded.cast(spec, parts)]
            prompts = await context.in_store(context.store.prompts, planned.run_id)
            calls.prompts = {turn: Prompt.of(messages) for turn, messages in prompts.items()}
    rows = await context.in_store(context.store.turns, planned.run_id)
    claim = resources.claim(spec)
    return stored_texts(rows, externals), Measuring(instruments, context.queues, calls, claim, authors)


async def _measure(
    context: Shared, record: RunRecord, measuring: Measuring, text_of: Callable[[int], Text]
) -> OpinionSimError | None:
    """Code all texts of a run that are not coded yet; return the error that stopped coding, if any.

    Opinions are stored portion by portion; stored ones are never coded again.

    Raises
    ------
    HeldElsewhereError
        If the run has been taken over.
    """
    try:
        for instrument in measuring.instruments:
            left = partial(context.store.uncoded, about=instrument.about)
            found = await context.in_store(left, [record.run_id], instrument.instrument_id, instrument.kinds)
            keys = found.get(record.run_id, [])
            for start in range(0, len(keys), measuring.portion):
                portion = keys[start : start + measuring.portion]
                coded = await measuring.code(instrument, portion, text_of)
                record.add_opinions(opinion_rows(instrument, coded))
    except HeldElsewhereError:
        raise
    except OpinionSimError as failure:
        context.heed(failure)
        return failure
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not context.stopped or (task is not None and task.cancelling()):
            raise
        return Stopped()
    return None
