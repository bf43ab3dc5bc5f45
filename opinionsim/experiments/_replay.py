"""Whether a run's journal alone gives the run again, and whether it answers what is asked now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from langchain_core.messages import AIMessage

from opinionsim import background
from opinionsim.errors import JournalMismatch, OpinionSimError, StoreError
from opinionsim.experiments._assembly import Parts, assemble
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._sweep import PlannedRun, load_experiment
from opinionsim.llm import Entry, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.measurement import recorded_rating
from opinionsim.messages import ChatMessage, Message
from opinionsim.schedules import External, Turn
from opinionsim.simulation import Simulation
from opinionsim.store import Results, TurnRow, open_store

__all__ = ["Replayed", "check_prompts", "replay", "replay_run", "turn_rows"]

#: Turns of the event loop without a further answer after which nothing more can come of a journal alone.
#: From one answer to the next question there are only a few.
_IDLE_TURNS = 100


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
            _compared(run, experiment.resources, store.entries(run.run_id), store.turns(run.run_id)) for run in complete
        ]


async def replay_run(planned: PlannedRun, resources: Resources, records: Iterable[Entry]) -> list[TurnRow]:
    """The turns of a run, rebuilt from its calls without a model.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        What its specification refers to.
    records : iterable of Entry
        Its journal.

    Raises
    ------
    JournalMismatch
        If a stored call answers another question than the one asked now.
    StoreError
        If a call is missing.
    """
    calls = RunCalls(planned.run_id, MemoryJournal(records), ReplayOnly(), SlotPool(1))
    simulation = _on_record(planned, assemble(planned, resources), calls)
    await simulation.run()
    return list(turn_rows(simulation))


async def check_prompts(planned: PlannedRun, resources: Resources, records: Sequence[Entry]) -> None:
    """Make sure that the stored calls of a run, finished or not, answer what is asked now; calls nobody.

    A journal holds everything its entries depend on, so each of them is reached from the others.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        What its specification refers to.
    records : sequence of Entry
        Its journal.

    Raises
    ------
    JournalMismatch
        If a stored call answers another question.
    """
    calls = RunCalls(planned.run_id, MemoryJournal(records), _Unanswered(), SlotPool(1))
    engine = _on_record(planned, assemble(planned, resources), calls).engine
    engine.start()
    idle = 0
    while engine.error is None and idle < _IDLE_TURNS:
        answered = calls.answered
        await asyncio.sleep(0)
        idle = idle + 1 if calls.answered == answered else 0
    error = engine.error
    await engine.cancel()
    if isinstance(error, JournalMismatch):
        raise error


class _Unanswered:
    """Stands in for the chat model where only stored replies are looked at: it never answers."""

    async def call(self, messages: Iterable[ChatMessage], seed: int) -> AIMessage:
        never: asyncio.Future[AIMessage] = asyncio.get_running_loop().create_future()
        return await never


def _on_record(planned: PlannedRun, parts: Parts, calls: RunCalls) -> Simulation:
    """A run that measures nothing: the opinions a schedule acts on are those of the journal."""
    identities = {each.variable: each.instrument_id for each in reversed(planned.cell.instruments) if not each.about}

    async def rate(turn: Turn, message: Message, variable: str) -> float:
        known = recorded_rating(calls.journal, turn.index, identities[variable], message.text)
        if known is None:
            raise StoreError("replay needs a rating that the store does not hold; finish the run with `opinionsim run`")
        return known

    return Simulation(parts.schedule, parts.cast(), calls, rate=rate)


def turn_rows(simulation: Simulation) -> Iterator[TurnRow]:
    """The turns of a simulation as the store keeps them."""
    for turn, message, kind, _ in simulation.happenings():
        reads = tuple(ref.name if isinstance(ref, External) else ref for ref in turn.reads)
        yield TurnRow(turn.index, turn.step, turn.agent, turn.act, kind, reads, message.text, message.condition)


def _compared(planned: PlannedRun, resources: Resources, records: Sequence[Entry], stored: list[TurnRow]) -> Replayed:
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
