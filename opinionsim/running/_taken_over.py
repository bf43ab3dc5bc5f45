"""Journal entries that a run takes over from a run of another cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opinionsim.assembly import RunParts, assemble, stored_texts
from opinionsim.errors import DamagedError, JournalMismatch, SpecError
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.llm import CallName, Entry, EntryKey
from opinionsim.measurement import STANCE, Text, imported_rating

if TYPE_CHECKING:
    from opinionsim.specification import PlannedRun, Resources
    from opinionsim.store import RunRecord, Store

#: Key of the last entry that a run takes over from another: what was read there, or a digest of the history from which
#: it goes on.
SOURCE = EntryKey(0, str(CallName("source")), 0)


def taken_from(entries: Iterable[Entry]) -> list[Any] | None:
    """Return what a run has taken over from another run, by its journal; None if it has taken over nothing.

    Raises
    ------
    DamagedError
        If it cannot be read.
    """
    text = next((entry.text for entry in entries if entry.key == SOURCE), "null")
    try:
        found = json.loads(text)
        if found is None or isinstance(found, list):
            return found
    except ValueError:
        pass
    raise DamagedError("what the run takes over from another cannot be read")


def parts_of(planned: PlannedRun, resources: Resources, entries: Iterable[Entry]) -> RunParts:
    """Return the parts of a run, with what its journal says about another run."""
    return assemble(planned, resources, taken_from(entries))


def missing_entries(
    planned: PlannedRun,
    resources: Resources,
    store: Store,
    record: RunRecord,
    now: Sequence[str],
    given: Sequence[Entry],
) -> list[Entry]:
    """Entries that a run takes over from its sources or a table and that its record lacks; none without either.

    Parameters
    ----------
    planned : PlannedRun
        The run.
    resources : Resources
        Those of the experiment.
    store : Store
        Has the sources.
    record : RunRecord
        The record of the run, which is only read.
    now : sequence of str
        Digests of the inputs that each source would have now.
    given : sequence of Entry
        Those of a record of people, :data:`SOURCE` last.

    Raises
    ------
    SpecError
        If a source is not complete, or was carried out with other inputs.
    JournalMismatch
        If a source differs from what was taken over because it was carried out anew.
    """
    if planned.spec.interaction.recorded and record.lookup(SOURCE) is None and not given:
        raise SpecError("this is a record of people, and only an import can store it; import the table again")
    if not planned.sources:
        return [entry for entry in given if record.lookup(entry.key) is None]
    if outdated(planned, resources, store, record.entries):
        raise changed_sources(planned)
    if record.lookup(SOURCE) is not None:
        return []
    states = store.states([each.run_id for each in planned.sources])
    for source, inputs in zip(planned.sources, now, strict=True):
        state, told = states[source.run_id], f"run {source.run_id} of cell {source.cell.label!r}"
        if state.status != "complete":
            raise SpecError(f"it takes turns from {told}, which is not complete; complete that run first")
        if state.inputs != inputs:
            raise SpecError(f"it takes turns from {told}, whose prompts or code have changed since then")
    entries = list(_entries(planned, resources, store))
    # A part of them is there if the run was interrupted before the last was durable.
    known = [(record.lookup(entry.key), entry) for entry in entries]
    if any(before is not None and _content(before) != _content(entry) for before, entry in known):
        raise changed_sources(planned)
    return [entry for before, entry in known if before is None]


def outdated(planned: PlannedRun, resources: Resources, store: Store, entries: Iterable[Entry]) -> bool:
    """Whether what a run took over differs from its sources now; unknown until all of them are complete."""
    note = next((each for each in entries if each.key == SOURCE), None)
    states = store.states([each.run_id for each in planned.sources]).values()
    if not planned.sources or note is None or any(each.status != "complete" for each in states):
        return False
    *_, last = _entries(planned, resources, store)
    return last.text != note.text


def changed_sources(planned: PlannedRun, since: str = "") -> JournalMismatch:
    """Return the error of a run whose entries differ from those of its sources."""
    first, *more = dict.fromkeys(each.run_id for each in planned.sources)
    there = f"{first} and {len(more)} more" if more else first
    problem = f"what it took over from run {there} differs from what that run contains now{since}"
    place, ids = f"run {planned.run_id}", {"run": planned.run_id, "source": first}
    return JournalMismatch(problem, place, "Start these runs anew with --fresh", "journal-source", **ids)


def _entries(planned: PlannedRun, resources: Resources, store: Store) -> Iterator[Entry]:
    """The entries that a run takes over, :data:`SOURCE` last: once that is durable, so are the others."""
    fork = planned.spec.fork
    taken: list[Any]
    if fork is not None:
        history = [entry for entry in store.entries(planned.sources[0].run_id) if entry.step < fork.step]
        for entry in history:
            # Ratings that a schedule awaited were not paid for, and have no prompt.
            paid = entry.source == "model"
            yield replace(entry, source="import", cost=None, saved=None) if paid else entry
        # Judges may code the history later.
        said = [_content(entry) for entry in history if CallName.of(entry.key.call).role != "judge"]
        taken = [digest(canonical_json(said))]
    else:
        texts, known = list[Mapping[int, Text]](), list[Entry]()
        for source in planned.sources:
            rows = store.turns(source.run_id)
            known = store.entries(source.run_id) if source.spec.interaction.recorded else []
            reads = any(isinstance(ref, str) for row in rows for ref in row.reads)
            externals = parts_of(source, resources, known).schedule.externals if reads else {}
            texts.append(stored_texts(rows, externals))
        took = planned.spec.interaction.takes(planned.spec.size, texts)
        taken = _of_people(planned, known, texts[0]) if known else list(took)
    yield Entry(SOURCE, 0, 0, "", "", json.dumps(taken, ensure_ascii=False), source="import")


def _of_people(planned: PlannedRun, entries: Sequence[Entry], texts: Mapping[int, Text]) -> list[Any]:
    """People with their first opinions, then step, agent and texts read of each later rating.

    Statements that are worded the other way round have opinions of the other sign.
    """
    people, *_ = taken_from(entries) or [[]]
    rated = {
        entry.key.turn: float(entry.text) for entry in entries if entry.key == imported_rating(entry.key.turn, STANCE)
    }
    first, read, scale = dict[int, float](), list[Any](), planned.spec.scale.scale()
    turned = planned.spec.topic.framing != planned.sources[0].spec.topic.framing
    for turn, rating in sorted(rated.items()):
        site = texts[turn].site
        if site.agent in first:
            read.append([site.step, site.agent, texts[turn].received])
        else:
            first[site.agent] = scale.highest + scale.lowest - rating if turned else rating
    return [[[name, told, first.get(agent)] for agent, (name, told, _) in enumerate(people)], read]


def _content(entry: Entry) -> list[Any]:
    return [*entry.key, entry.text, entry.status, entry.acceptance]
