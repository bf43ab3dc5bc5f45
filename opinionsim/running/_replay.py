"""Replay runs from their journals, and check journals against current prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from langchain_core.messages import AIMessage

from opinionsim.assembly import RunParts, agent_rows, edge_rows, opinion_rows, tie_rows, turn_row
from opinionsim.classifiers import Classifier, asks, load_classifier
from opinionsim.engine import Simulation
from opinionsim.errors import JournalMismatch, OpinionSimError, StoreError
from opinionsim.foundation import background
from opinionsim.llm import Entry, MemoryJournal, ReplayOnly, RunCalls, SlotPool
from opinionsim.measurement import Instrument, Measuring, Queues, recorded_rating
from opinionsim.messages import ChatMessage, Message
from opinionsim.running._taken_over import parts_of
from opinionsim.schedules import Turn, tie_changes
from opinionsim.specification import (
    Experiment,
    InstrumentSpec,
    PlannedRun,
    Resources,
    advice_on_changed_code,
    load_experiment,
    own_parts_code,
    with_advice,
)
from opinionsim.store import OpinionRow, Results, StoreReader, TurnRow, open_store

#: Turns of the event loop without a further answer after which a journal is exhausted: from one answer to the next
#: prompt there are only a few.
_IDLE_TURNS = 100
#: Largest difference between stored and recomputed probabilities: batches differ in rounding.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Replayed:
    """The replay of one run.

    Attributes
    ----------
    run_id : str
        The run.
    turns : int
        Turns on record.
    difference : str
        The first difference between record and replay, in words; empty when they are equal.
    opinions : int
        Opinions that were computed again and compared.
    unread : tuple of str
        Instruments whose opinions were not computed again, each with the reason.
    """

    run_id: str
    turns: int
    difference: str
    opinions: int = 0
    unread: tuple[str, ...] = ()


def replay(results: Results) -> list[Replayed]:
    """Rebuild every complete run of an experiment from its stored calls, and compare.

    It compares the cast, the ties, the turns with their messages, and the opinions of classifiers that compute.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.load`.

    Returns
    -------
    list of Replayed
        One for each complete run, in the order of the manifest.

    Raises
    ------
    SpecError
        If the manifest cannot be read.
    StoreError
        If the store cannot be read. A damaged run appears as a difference of that run.

    Notes
    -----
    The manifest contains the specification, prompts, personas and topics. You need no chat model, key or file.
    """
    experiment = load_experiment(results.manifest)
    computing = _Computing(experiment)
    with open_store(results.url, write=False) as store:
        states = store.states(results.run_ids)
        planned = {run.run_id: run for run in experiment.runs}
        complete = [run for run_id, run in planned.items() if run_id in states and states[run_id].status == "complete"]
        return [_compared(run, experiment.resources, store, computing) for run in complete]


async def replay_run(planned: PlannedRun, resources: Resources, records: Sequence[Entry]) -> list[TurnRow]:
    """Rebuild the turns of a run from its calls, without a model.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        Resources of the specification.
    records : sequence of Entry
        Journal of the run.

    Raises
    ------
    JournalMismatch
        If a stored reply answers a different prompt from the current one.
    StoreError
        If a call is missing.
    """
    parts = parts_of(planned, resources, records)
    return list(turn_rows(await _replayed(planned, parts, records)))


async def _replayed(planned: PlannedRun, parts: RunParts, records: Iterable[Entry]) -> Simulation:
    """Carry a run out again from its stored calls."""
    calls = RunCalls(planned.run_id, MemoryJournal(records), ReplayOnly(), SlotPool(1))
    simulation = _on_record(planned, parts, calls)
    await simulation.run()
    return simulation


async def check_prompts(planned: PlannedRun, resources: Resources, records: Sequence[Entry]) -> None:
    """Check that the stored replies of a run, finished or not, answer the current prompts. Makes no calls.

    A journal contains every reply that its entries depend on, so a replay reaches all entries.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        Resources of the specification.
    records : sequence of Entry
        Journal of the run.

    Raises
    ------
    JournalMismatch
        If a stored reply answers a different prompt.
    """
    calls = RunCalls(planned.run_id, MemoryJournal(records), _Unanswered(), SlotPool(1))
    engine = _on_record(planned, parts_of(planned, resources, records), calls).engine
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
    """A chat model that never answers, so that only stored replies count."""

    async def call(
        self, messages: Iterable[ChatMessage], seed: int, max_tokens: int | None = None, **options: Any
    ) -> AIMessage:
        never: asyncio.Future[AIMessage] = asyncio.get_running_loop().create_future()
        return await never


def _on_record(planned: PlannedRun, parts: RunParts, calls: RunCalls) -> Simulation:
    """A simulation without instruments; the journal gives the opinions on which a schedule acts."""
    own = reversed(planned.cell.instruments)
    calls.seed_of = parts.seed_of
    identities = {(each.variable, bool(each.about)): each.instrument_id for each in own}

    async def rate(turn: Turn, message: Message, variable: str, about: int | None) -> float:
        identity = identities[variable, about is not None]
        known = recorded_rating(calls.journal, turn.index, identity, message.text, about)
        if known is None:
            raise StoreError("replay needs a rating that the store lacks; complete the run with `opinionsim run`")
        return known

    return Simulation(parts.schedule, parts.cast(), calls, rate=rate)


def turn_rows(simulation: Simulation) -> Iterator[TurnRow]:
    """Store rows of the turns of a simulation."""
    for turn, message, _, _ in simulation.results():
        yield turn_row(turn, message, simulation.schedule.acts)


class _Computing:
    """The instruments of each run whose classifiers compute opinions without a chat model."""

    def __init__(self, experiment: Experiment) -> None:
        self._wanted: dict[str, dict[str, InstrumentSpec]] = {}
        for run in experiment.runs:
            own = self._wanted.setdefault(run.run_id, {})
            for each in run.spec.instruments:
                texts = each.kinds.union(*(before.kinds for before in [own.get(each.instrument_id)] if before))
                own[each.instrument_id] = each.model_copy(update={"texts": tuple(texts)})
        self._loaded: dict[str, Classifier | str] = {}

    def of(self, run_id: str) -> tuple[list[Instrument], tuple[str, ...]]:
        """The instruments of a run whose opinions can be computed again, and why those of others cannot."""
        found, unread = [], []
        for identity, wanted in self._wanted[run_id].items():
            classifier = self._classifier(identity, wanted)
            if isinstance(classifier, str):
                unread.append(f"{wanted.variable} by {wanted.classifier.name}: {classifier}")
            else:
                own = (wanted.variable, classifier, wanted.kinds, wanted.context, wanted.about or "")
                found.append(Instrument(identity, *own, whole=bool(wanted.replies)))
        return found, tuple(unread)

    def _classifier(self, identity: str, wanted: InstrumentSpec) -> Classifier | str:
        """The classifier of an instrument, or why its opinions cannot be computed again."""
        if identity not in self._loaded:
            named = wanted.classifier
            try:
                classifier = load_classifier(named.name, wanted.opinions, **named.options)
                self._loaded[identity] = "its readings come from a chat model" if asks(classifier) else classifier
            except OpinionSimError as error:
                self._loaded[identity] = str(error)
        return self._loaded[identity]


def _compared(planned: PlannedRun, resources: Resources, store: StoreReader, computing: _Computing) -> Replayed:
    run_id = planned.run_id
    n_turns, changed = 0, ""
    try:
        store.require_sound(run_id)
        changed = advice_on_changed_code(store.states([run_id])[run_id].parts, own_parts_code(planned.spec))
        turns = store.turns(run_id)
        n_turns = len(turns)
        entries = store.entries(run_id)
        parts = parts_of(planned, resources, entries)
        simulation = background.run(_replayed(planned, parts, entries))
        differs = difference(turns, list(turn_rows(simulation))) or _other_cast(store, run_id, parts)
        if differs:
            return Replayed(run_id, n_turns, f"{differs}. {changed}" if changed else differs)
        instruments, unread = computing.of(run_id)
        opinions = store.opinions(run_id)
        coded = background.run(_coded(planned, parts, simulation, instruments, entries))
        return Replayed(run_id, n_turns, _other_opinions(opinions, coded, instruments), len(coded), unread)
    except OpinionSimError as error:
        return Replayed(run_id, n_turns, str(with_advice(changed, error)))


def difference(stored: list[TurnRow], again: list[TurnRow]) -> str:
    """Describe the first difference between turns; empty if there is none."""
    for here, there in zip(stored, again, strict=False):
        for each in fields(TurnRow):
            if getattr(here, each.name) != getattr(there, each.name):
                return f"turn {here.turn} differs in {each.name}"
    if len(stored) != len(again):
        return f"{len(stored)} turns are stored; the replay has {len(again)}"
    return ""


def _other_cast(store: StoreReader, run_id: str, parts: RunParts) -> str:
    """The first difference in cast or ties, in words; kinds of evidence are not compared, as models are not loaded."""
    stored = [replace(row, evidence="") for row in store.agents(run_id)]
    again = [replace(row, evidence="", persona=dict(row.persona)) for row in agent_rows(parts.cast())]
    if len(stored) != len(again):
        return f"{len(stored)} agents are stored; the replay has {len(again)}"
    for here, there in zip(stored, again, strict=True):
        if here != there:
            return f"agent {here.agent} differs"
    if store.edges(run_id) != sorted(edge_rows(parts.network)):
        return "the ties at the start differ"
    if store.ties(run_id) != tie_rows(parts.network, tie_changes(parts.schedule)):
        return "the ties that moved differ"
    return ""


async def _coded(
    planned: PlannedRun,
    parts: RunParts,
    simulation: Simulation,
    instruments: Sequence[Instrument],
    records: Iterable[Entry],
) -> list[OpinionRow]:
    """Opinions of a run's texts, computed again by these instruments."""
    calls = RunCalls(planned.run_id, MemoryJournal(records), ReplayOnly(), SlotPool(1))
    authors = [member.author for member in simulation.cast]
    measuring = Measuring(instruments, Queues(), calls, parts.claim, authors)
    texts = simulation.texts()
    found: list[OpinionRow] = []
    for instrument in instruments:
        keys = [key for text in texts for key in instrument.keys(text)]
        found += opinion_rows(instrument, await measuring.code(instrument, keys, simulation.text, urgent=True))
    return found


def _other_opinions(stored: list[OpinionRow], again: list[OpinionRow], instruments: Sequence[Instrument]) -> str:
    """The first difference in the opinions of these instruments, in words."""
    own = {each.instrument_id: each.variable for each in instruments}
    left = {(row.instrument_id, row.turn, row.about): row for row in stored if row.instrument_id in own}
    for row in again:
        before = left.pop((row.instrument_id, row.turn, row.about), None)
        what = f"{own[row.instrument_id]} of turn {row.turn}"
        if before is None:
            return f"{what} is not stored"
        if not _close(before, row):
            return f"{what} differs: {before.value:g} is stored, but the replay reads {row.value:g}"
    for row in left.values():
        return f"{own[row.instrument_id]} of turn {row.turn} is stored, but the replay reads nothing"
    return ""


def _close(one: OpinionRow, other: OpinionRow) -> bool:
    """Whether two opinions are equal up to rounding."""
    here, there = ((each.value, each.off_scale, *each.probabilities) for each in (one, other))
    return len(here) == len(there) and bool(np.allclose(here, there, rtol=0, atol=_TOLERANCE, equal_nan=True))
