"""The record of a run as columns, and its agents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opinionsim.errors import SpecError
from opinionsim.evidence import KINDS, evidence_statement
from opinionsim.store import marks_of
from opinionsim.watching._places import AbsentError, Place, place_of, plain, shown_state

if TYPE_CHECKING:
    from opinionsim.store import AgentRow, Columns, StoreReader

#: Columns of the frame ``runs`` that are told of a run.
_TOLD = (
    *("cell", "replicate", "block", "evidence", "validation", "interaction", "network", "claim", "task", "question"),
    *("topic", "model", "n_agents", "steps", "every_report"),
)


class Standing(NamedTuple):
    """How far a run is on record."""

    generation: int
    """How often it was begun anew."""
    seq: int
    """Number of its last row."""
    state: str
    """Its state in a word."""


def standing(reader: StoreReader, run_id: str) -> Standing:
    """How far a run is on record.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    states = reader.states([run_id])
    if run_id not in states:
        raise AbsentError(f"The store has no run {run_id[:40]!r}.")
    state = shown_state(reader, states[run_id], run_id)
    return Standing(states[run_id].generation, reader.progress([run_id])[run_id].seq, state)


def read_since(since: str) -> tuple[int, int | None]:
    """Number and generation of the last row that is known, as ``GENERATION.NUMBER`` says; 0 for an empty text.

    Raises
    ------
    SpecError
        If it is spelled otherwise.
    """
    found = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,15})", since)
    if since and not found:
        raise SpecError(f"since={since[:40]!r} is not spelled GENERATION.NUMBER, as in 0.12.")
    return (int(found[2]), int(found[1])) if found else (0, None)


def run_record(reader: StoreReader, run_id: str, *, since: str = "", instrument: str | None = None) -> dict[str, Any]:
    """The record of a run as columns, without the texts of its turns.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run_id : str
        The run.
    since : str
        ``GENERATION.NUMBER`` of the last row that is known: what follows it is read, and of what cannot change nothing;
        all where the run was begun anew since.
    instrument : str, optional
        Only opinions of this one.

    Returns
    -------
    dict of JSON values
        State and columns of the run; `words` are texts that columns name by place.

    Raises
    ------
    AbsentError
        If there is no such run or instrument.
    SpecError
        If `since` is not valid.
    """
    after, generation = read_since(since)
    with reader.moment() as moment:
        place = place_of(moment, run_id)
        if instrument not in (None, *place.instruments):
            raise AbsentError(f"The run has no instrument {str(instrument)[:40]!r}.")
        columns = moment.columns(run_id, after=after, generation=generation)
        words = _Words()
        state = shown_state(moment, columns.state, run_id)
        found = {
            "run_id": run_id,
            "generation": columns.state.generation,
            "seq": columns.seq,
            "state": state,
            "error": columns.state.error,
            "held": columns.state.held,
            "turns": {
                **{name: [getattr(row, name) for row in columns.turns] for name in ("turn", "step", "agent")},
                **{
                    name: words.of(getattr(row, name) for row in columns.turns) for name in ("act", "kind", "condition")
                },
            },
            "opinions": _opinions(columns, words, instrument),
            "ties": [[row.step, row.old_source, row.old_target, row.source, row.target] for row in columns.ties],
            "words": words.listed,
        }
        known = bool(after) and generation == columns.state.generation
        lasting = _nothing() if known else _lasting(moment, place, state)
        return {**found, **lasting}


class _Words:
    """Texts that columns name by their places."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def of(self, texts: Iterable[str]) -> list[int]:
        """Places of some texts."""
        return [self._places.setdefault(text, len(self._places)) for text in texts]

    @property
    def listed(self) -> list[str]:
        """The texts in order."""
        return list(self._places)


def _opinions(columns: Columns, words: _Words, instrument: str | None) -> dict[str, list[Any]]:
    rows = [row for row in columns.opinions if instrument in (None, row.instrument_id)]
    return {
        "turn": [row.turn for row in rows],
        "instrument": words.of(row.instrument_id for row in rows),
        "value": [row.value for row in rows],
        "about": [None if row.about < 0 else row.about for row in rows],
    }


def _nothing() -> dict[str, Any]:
    """Nothing new of what cannot change."""
    return dict.fromkeys(("about", "agents", "instruments", "edges", "directed", "events", "siblings"))


def _lasting(reader: StoreReader, place: Place, state: str) -> dict[str, Any]:
    """What cannot change while a run goes on."""
    run_id, cell = place.cell.run_id, place.cell
    (row,) = reader.cells(replace(place.design, runs=(cell,)))
    edges = reader.edges(run_id)
    known = {each.instrument_id: each for each in reader.instruments()}
    instruments = [(known[name], kinds) for name, kinds in place.instruments.items() if name in known]
    siblings = {
        each.run_id: number
        for number, each in reversed([*enumerate(place.cells)])
        if each.block == cell.block and each.run_id != run_id
    }
    return {
        "about": {
            "experiment": place.design.name,
            "experiment_id": place.design.experiment_id,
            "design": place.design.design,
            "row": place.row,
            **{name: row[name] for name in _TOLD},
            "stamp": evidence_statement([row["evidence"]]),
            "counts_cut_off": cell.counts_cut_off,
            "notices": _notices(row, state),
        },
        "agents": [agent_of(each) for each in reader.agents(run_id)],
        "instruments": [
            {
                "id": each.instrument_id,
                "variable": each.variable,
                "classifier": each.classifier,
                "points": list(each.points),
                "labels": list(each.labels),
                "kinds": in_order(kinds),
                "about": each.about,
                "stance": each.variable == "stance",
            }
            for each, kinds in instruments
        ],
        "edges": [[each.source, each.target, plain(each.weight)] for each in edges],
        # Ties without a direction are stored with the smaller number first.
        "directed": any(each.source > each.target for each in edges),
        "events": [{"step": mark.step, "label": mark.label} for mark in marks_of(row)],
        "siblings": [
            {
                "run_id": name,
                "row": number,
                "cell": place.cells[number].cell,
                "replicate": place.cells[number].replicate,
            }
            for name, number in sorted(siblings.items(), key=lambda each: each[1])
        ],
    }


def in_order(kinds: Iterable[str]) -> list[str]:
    """Kinds of text, the one that is shown where none is named first."""
    found = sorted(kinds)
    return [*(kind for kind in KINDS if kind in found), *(kind for kind in found if kind not in KINDS)]


def _notices(row: dict[str, Any], state: str) -> list[str]:
    """What whoever reads a run should know, in sentences."""
    found = []
    if state == "withdrawn":
        found.append("A person has withdrawn: what it wrote, and what others wrote after it, is deleted.")
    elif state == "trial":
        found.append("Somebody only tried a seat of this run: it counts in no table.")
    elif row["error"]:
        found.append(row["error"])
    if row["dropped_turns"]:
        found.append(f"{row['dropped_turns']:,} turns dropped out because of events.")
    return found


def agent_of(row: AgentRow) -> dict[str, Any]:
    """An agent in few words."""
    told = {name: getattr(row, name) for name in ("agent", "name", "role", "evidence", "model")}
    return {**told, "assigned": plain(row.assigned_opinion)}


def run_agent(reader: StoreReader, run_id: str, agent: int) -> dict[str, Any]:
    """An agent of a run, with the attributes of its persona.

    Raises
    ------
    AbsentError
        If there is no such run, or it has no such agent.
    """
    with reader.moment() as moment:
        place_of(moment, run_id)
        for row in moment.agents(run_id):
            if row.agent == agent:
                return {**agent_of(row), "persona": dict(row.persona)}
    raise AbsentError(f"The run has no agent {agent} on record.")
