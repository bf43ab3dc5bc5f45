"""The record of a run as columns, and its agents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opinionsim.errors import SpecError
from opinionsim.messages import spelled_out
from opinionsim.metrics import evidence_statement
from opinionsim.store import AbsentError, marks_of
from opinionsim.watching._run_states import state_of
from opinionsim.watching._run_view import OneRun, picked, plain

if TYPE_CHECKING:
    from opinionsim.store import AgentRow, StoreReader

#: What is told of a run, of the columns of the frame ``runs``.
_RUN = (
    "cell replicate block evidence validation interaction network claim task question topic model n_agents steps "
    "every_report least_measured"
)
#: What cannot change while a run goes on.
_LASTING = ("about", "agents", "instruments", "edges", "directed", "events", "siblings")


class Standing(NamedTuple):
    """Stored progress of a run: how often it began anew, the number of its last row, and its state in a word.

    The state is one of :data:`STATES`, or ``trial`` if somebody has only tried a seat.
    """

    generation: int
    seq: int
    state: str


def standing(reader: StoreReader, run: str) -> Standing:
    """How far a run is on record.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    with reader.moment() as moment:
        states = moment.states([run])
        if run not in states:
            raise AbsentError(f"The store has no run {run[:40]!r}.")
        state = state_of(run, states[run], moment.under_way(states))
        if state == "complete" and any(row.trial for row in moment.seats(run)):
            state = "trial"
        return Standing(states[run].generation, moment.progress([run])[run].seq, state)


def run_record(reader: StoreReader, run: str, *, since: str = "0.0", row: int | None = None) -> dict[str, Any]:
    """The record of a run as columns, without the texts of its turns.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run : str
        The run.
    since : str
        ``GENERATION.NUMBER`` of the last row that you have. The result then contains only later rows and leaves out
        what cannot change. If the run has begun anew since, it contains everything.
    row : int, optional
        Row of the design, if cells share the run; default the first.

    Returns
    -------
    dict of JSON values
        State and columns of the run. Columns refer to the texts in `words` by position.

    Raises
    ------
    AbsentError
        If there is no such run.
    SpecError
        If `since` is not valid or is not yet a row of the run.
    """
    spelled = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,15})", since)
    if spelled is None:
        raise SpecError(f"since={since[:40]!r} must have the form GENERATION.NUMBER, for example 0.12.")
    generation, after = map(int, spelled.groups())
    with reader.moment() as moment:
        one, now = OneRun.of(moment, run, row), standing(moment, run)
        if generation == now.generation and after > now.seq:
            raise SpecError(f"since={since} is not a row of the run yet; the last row is {now.seq}.")
        found = moment.columns(run, after=after, generation=generation)
        places: dict[str, int] = {}

        def words(texts: Iterable[str]) -> list[int]:
            return [places.setdefault(text, len(places)) for text in texts]

        turns: dict[str, list[Any]] = {
            name: [getattr(row, name) for row in found.turns] for name in ("turn", "step", "agent")
        }
        for name in ("act", "kind", "status", "signs"):
            turns[name] = words(getattr(row, name) for row in found.turns)
        opinions = {
            "turn": [row.turn for row in found.opinions],
            "value": [row.value for row in found.opinions],
            "instrument": words(row.instrument_id for row in found.opinions),
            "about": [None if row.about < 0 else row.about for row in found.opinions],
        }
        ties = [[row.step, row.old_source, row.old_target, row.source, row.target] for row in found.ties]
        told = {"run_id": run, **now._asdict(), "error": found.state.error, "held": found.state.held}
        known = after > 0 and generation == now.generation
        told |= dict.fromkeys(_LASTING) if known else _lasting(one, now.state)
        return told | {"turns": turns, "opinions": opinions, "ties": ties, "words": list(places)}


def _lasting(one: OneRun, state: str) -> dict[str, Any]:
    """What cannot change while a run goes on."""
    (row,) = one.reader.cells(replace(one.design, runs=(one.cell,)))
    about = picked(one.design, "experiment_id design") | {name: row[name] for name in _RUN.split()}
    about |= {
        "experiment": one.design.name,
        "row": one.row,
        "run": one.cell.name,
        "stamp": evidence_statement([row["evidence"]]),
        "beside": one.cell.declared.get("beside", {}),
    }
    about |= {"uncounted": list(one.cell.uncounted), "notices": _notices(row, state)}
    known = {each.instrument_id: each for each in one.reader.instruments()}
    instruments = []
    for name, kinds in one.instruments.items():
        if name in known:
            told = picked(known[name], "variable classifier points labels about")
            instruments.append(told | {"id": name, "kinds": kinds, "stance": told["variable"] == "stance"})
    siblings: dict[str, dict[str, Any]] = {}
    for number, each in enumerate(one.rows):
        if each.block == one.cell.block and each.run_id != one.run_id:
            siblings.setdefault(each.run_id, {"row": number, "run": each.name, **picked(each, "run_id cell replicate")})
    edges = one.reader.edges(one.run_id)
    return {
        "about": about,
        "agents": [agent_of(each) for each in one.reader.agents(one.run_id)],
        "instruments": instruments,
        "edges": [[each.source, each.target, plain(each.weight)] for each in edges],
        # Ties without a direction are stored with the smaller number first.
        "directed": any(each.source > each.target for each in edges),
        "events": [mark._asdict() for mark in marks_of(row)],
        "siblings": list(siblings.values()),
    }


def _notices(row: dict[str, Any], state: str) -> list[str]:
    """What readers of a run should know, in sentences."""
    said = {
        "withdrawn": "A person has withdrawn. Their texts and everything written after them are deleted.",
        "trial": "Somebody only tried a seat in this run, so tables leave it out.",
    }
    dropped = f"Because of events, {row['dropped_turns']:,} turns were dropped." if row["dropped_turns"] else ""
    return [each for each in (said.get(state, row["error"]), dropped) if each]


def agent_of(row: AgentRow, *, persona: bool = False) -> dict[str, Any]:
    """An agent in brief, or with the attributes of its persona."""
    words = {name: spelled_out(text) for name, text in picked(row, "name role evidence model").items()}
    told = {"agent": row.agent, **words, "assigned": plain(row.assigned_opinion)}
    return {**told, "persona": dict(row.persona)} if persona else told


def run_agent(reader: StoreReader, run: str, agent: int) -> dict[str, Any]:
    """An agent of a run, with the attributes of its persona.

    Raises
    ------
    AbsentError
        If there is no such run, or it has no such agent.
    """
    with reader.moment() as moment:
        for row in moment.agents(OneRun.of(moment, run).run_id):
            if row.agent == agent:
                return agent_of(row, persona=True)
    raise AbsentError(f"The run has no agent {agent} on record.")
