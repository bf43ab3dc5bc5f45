"""Whether the journal alone gives a run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from opinionsim import background
from opinionsim.errors import OpinionSimError, StoreError
from opinionsim.experiments._assembly import assemble
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._sweep import PlannedRun, load_experiment
from opinionsim.llm import CallRecord, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.schedules import AdaptiveSchedule, External
from opinionsim.simulation import Simulation
from opinionsim.store import Results, TurnRow, open_store

__all__ = ["Replayed", "replay", "replay_run", "turn_rows"]


@dataclass(frozen=True)
class Replayed:
    """What became of one run.

    Attributes
    ----------
    run_id : str
        The run.
    turns : int
        Turns on record.
    difference : str
        The first difference between record and replay, in words; empty when they are equal.
    """

    run_id: str
    turns: int
    difference: str


class _NoClassifier:
    """Stands in for a classifier where every rating comes from the journal."""

    def classify(self, claims: Any, texts: Any) -> Any:
        raise StoreError("replay needs a rating that the store does not hold; finish the run with `opinionsim run`")


def replay(results: Results) -> list[Replayed]:
    """Rebuild every complete run of an experiment from its stored calls, and compare.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.load`.

    Returns
    -------
    list of Replayed
        One a complete run, in the order of the manifest.

    Raises
    ------
    SpecError
        If the manifest cannot be read.
    StoreError
        If the store cannot be read.

    Notes
    -----
    Specification, prompts, personas and topics are those of the manifest; no model, key or file is needed.
    """
    experiment = load_experiment(results.manifest)
    with open_store(results.url, write=False) as store:
        states = store.states()
        planned = {run.run_id: run for run in experiment.runs}
        complete = [run for run_id, run in planned.items() if run_id in states and states[run_id].status == "complete"]
        return [
            _compared(run, experiment.resources, store.records(run.run_id), store.turns(run.run_id)) for run in complete
        ]


async def replay_run(planned: PlannedRun, resources: Resources, records: Iterable[CallRecord]) -> list[TurnRow]:
    """The turns of a run, rebuilt from its calls without a model.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        What its specification refers to.
    records : iterable of CallRecord
        Its journal.

    Raises
    ------
    JournalMismatch
        If a stored call answers another question than the one asked now.
    StoreError
        If a call is missing.
    """
    calls = RunCalls(planned.run_id, MemoryJournal(records), ReplayOnly(), SlotPool(1))
    parts = assemble(planned, resources)
    simulation = parts.simulation(calls, _NoClassifier() if isinstance(parts.schedule, AdaptiveSchedule) else None)
    await simulation.run()
    return list(turn_rows(simulation))


def turn_rows(simulation: Simulation) -> Iterable[TurnRow]:
    """The turns of a simulation as the store keeps them."""
    for turn, message, kind, _ in simulation.happenings():
        reads = tuple(ref.name if isinstance(ref, External) else ref for ref in turn.reads)
        yield TurnRow(turn.index, turn.step, turn.agent, turn.act, kind, reads, message.text)


def _compared(
    planned: PlannedRun, resources: Resources, records: Sequence[CallRecord], stored: list[TurnRow]
) -> Replayed:
    try:
        again = background.run(replay_run(planned, resources, records))
    except OpinionSimError as error:
        return Replayed(planned.run_id, len(stored), str(error))
    return Replayed(planned.run_id, len(stored), _difference(stored, again))


def _difference(stored: list[TurnRow], again: list[TurnRow]) -> str:
    """The first difference in words; empty when there is none."""
    for here, there in zip(stored, again, strict=False):
        for each in fields(TurnRow):
            if getattr(here, each.name) != getattr(there, each.name):
                return f"turn {here.turn} differs in {each.name}"
    if len(stored) != len(again):
        return f"{len(stored)} turns are on record; the replay has {len(again)}"
    return ""
