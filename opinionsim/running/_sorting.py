"""Sort the runs of a sweep: finished, damaged, changed, to be measured, to be carried out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opinionsim.errors import DamagedError, JournalMismatch, OpinionSimError
from opinionsim.running._context import Shared, Stopped, damage, withdrawn
from opinionsim.running._registration import Inputs, Registration
from opinionsim.running._replay import difference, replay_run
from opinionsim.running._taken_over import changed_sources, outdated
from opinionsim.specification import PlannedRun, advice_on_changed_code, with_advice
from opinionsim.store import RunState


@dataclass
class Pending:
    """A run that is to be carried out.

    Attributes
    ----------
    planned : PlannedRun
        The run.
    inputs : Inputs
        Texts and code from which its prompts are made now.
    changed : str or None
        Advice on parts whose code has changed; empty if only other inputs have changed, None if none have.
    anew : bool
        Whether the run is finished and its results are deleted first.
    calls : int
        Expected number of calls.
    source_inputs : tuple of str
        Digests of the current inputs of the runs that this run takes something over from.
    """

    planned: PlannedRun
    inputs: Inputs
    changed: str | None
    anew: bool
    calls: int
    source_inputs: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """Identity of the run."""
        return self.planned.run_id


async def sort_out(
    context: Shared, registration: Registration, runs: Sequence[PlannedRun]
) -> tuple[list[Pending], list[PlannedRun]]:
    """Check finished runs, and settle the runs that need no work.

    Returns
    -------
    (list of Pending, list of PlannedRun)
        Runs still to be carried out, and finished ones still to be measured.
    """
    run_ids = [planned.run_id for planned in runs]
    states = await context.in_store(context.store.states, run_ids)
    finished = [run_id for run_id in run_ids if states[run_id].status == "complete"]
    damaged = await context.in_store(_damaged, context, finished)
    unread = await context.in_store(uncoded, context, finished)
    pending: list[Pending] = []
    unmeasured: list[PlannedRun] = []
    for planned in runs:
        run_id, state = planned.run_id, states[planned.run_id]
        complete = state.status == "complete"
        if context.stopped:
            context.settle(run_id, None if complete else Stopped())
            continue
        if state.status == "withdrawn":
            context.settle(run_id, withdrawn(run_id, state))
            continue
        inputs = registration.inputs(planned)
        changed = state.inputs != inputs.digest
        if complete and run_id in damaged:
            error: OpinionSimError | None = damaged[run_id]
        elif complete and changed:
            error = await _disagreement(context, planned, state, inputs)
        else:
            error = None
        if complete and error is None and planned.sources:
            error = await context.in_store(_outdated, context, planned)
        if not complete or (error is not None and context.fresh):
            calls = registration.calls.get(run_id, 1)
            code = advice_on_changed_code(state.parts, inputs.parts) if changed else None
            there = tuple(registration.inputs(each).digest for each in planned.sources)
            pending.append(Pending(planned, inputs, code, complete, calls, there))
        elif error is not None:
            context.settle(run_id, error)
        else:
            if state.error:
                await context.in_store(context.store.save_error, run_id, None)
            if run_id in unread:
                unmeasured.append(planned)
            else:
                context.settle(run_id)
    return pending, unmeasured


def _outdated(context: Shared, planned: PlannedRun) -> JournalMismatch | None:
    """The error of a finished run that took over something else than its source holds; None if it did not."""
    store = context.store
    old = outdated(planned, context.experiment.resources, store, store.entries(planned.run_id))
    return changed_sources(planned, ", since it was carried out anew") if old else None


def uncoded(context: Shared, run_ids: Collection[str]) -> set[str]:
    """Ids of runs with texts that an instrument has not coded."""
    groups: dict[tuple[str, frozenset[str], str], list[str]] = {}
    for run_id in run_ids:
        for each in context.instruments[run_id]:
            groups.setdefault((each.instrument_id, each.kinds, each.about), []).append(run_id)
    return {
        run_id
        for (identity, kinds, about), some in groups.items()
        for run_id in context.store.uncoded(some, identity, kinds, about=about)
    }


def _damaged(context: Shared, run_ids: Collection[str]) -> dict[str, DamagedError]:
    """Damage to the records of finished runs, by run id; with `fresh` the whole record is checked."""
    missing = context.store.missing(run_ids)
    found = {run_id: damage(run_id, DamagedError(lost)) for run_id, lost in missing.items()}
    for run_id in run_ids if context.fresh else ():
        try:
            context.store.require_sound(run_id)
        except DamagedError as error:
            found[run_id] = damage(run_id, error)
    return found


async def _disagreement(
    context: Shared, planned: PlannedRun, state: RunState, inputs: Inputs
) -> OpinionSimError | None:
    """Why replaying a finished run's stored calls gives another run; None, with its inputs saved, if it does not."""
    run_id, store = planned.run_id, context.store
    try:
        entries = await context.in_store(store.entries, run_id)
        again = await replay_run(planned, context.experiment.resources, entries)
        if other := difference(await context.in_store(store.turns, run_id), again):
            raise JournalMismatch(f"{other} when it is replayed from its stored calls", f"run {run_id}", run=run_id)
    except OpinionSimError as error:
        reason = with_advice(advice_on_changed_code(state.parts, inputs.parts), error)
        if not context.fresh:
            await context.in_store(store.save_error, run_id, reason)
        return reason
    await context.in_store(store.save_inputs, run_id, *inputs)
    return None
