"""The record of a run as columns, and its agents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opinionsim.errors import SpecError
from opinionsim.evidence import evidence_statement
from opinionsim.store import AbsentError, marks_of
from opinionsim.watching._one_run import OneRun, picked, plain, shown_state

if TYPE_CHECKING:
    from opinionsim.store import AgentRow, StoreReader

#: What is told of a run, of the columns of the frame ``runs``.
_RUN = (
    "cell replicate block evidence validation interaction network claim task question topic model n_agents steps "
    "every_report"
)
#: What cannot change while a run goes on.
_LASTING = ("about", "agents", "instruments", "edges", "directed", "events", "siblings")


class Standing(NamedTuple):
    """How far a run is on record: how often it was begun anew, number of its last row, and its state in a word."""

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
        state = shown_state(moment, states[run], run)
        return Standing(states[run].generation, moment.progress([run])[run].seq, state)


def run_record(reader: StoreReader, run: str, *, since: str = "0.0", instrument: str | None = None) -> dict[str, Any]:
    """The record of a run as columns, without the texts of its turns.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run : str
        The run.
    since : str
        ``GENERATION.NUMBER`` of the last row that is known: what follows it is told, and of what cannot change nothing;
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
        If `since` is not valid, or no row of the run yet.
    """
    spelled = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,15})", since)
    if spelled is None:
        raise SpecError(f"since={since[:40]!r} is not spelled GENERATION.NUMBER, as in 0.12.")
    generation, after = map(int, spelled.groups())
    with reader.moment() as moment:
        one, now = OneRun.of(moment, run), standing(moment, run)
        if generation == now.generation and after > now.seq:
            raise SpecError(f"since={since} is a row that the run does not have yet; its last one is {now.seq}.")
        one.instrument(instrument)
        found = moment.columns(run, after=after, generation=generation)
        opinions = [row for row in found.opinions if instrument in (None, row.instrument_id)]
        places: dict[str, int] = {}

        def words(texts: Iterable[str]) -> list[int]:
            return [places.setdefault(text, len(places)) for text in texts]

        known = after > 0 and generation == now.generation
        return {
            **{"run_id": run, **now._asdict(), "error": found.state.error, "held": found.state.held},
            **(dict.fromkeys(_LASTING) if known else _lasting(one, now.state)),
            "turns": {
                **{name: [getattr(row, name) for row in found.turns] for name in ("turn", "step", "agent")},
                **{name: words(getattr(row, name) for row in found.turns) for name in ("act", "kind", "condition")},
            },
            "opinions": {
                **{name: [getattr(row, name) for row in opinions] for name in ("turn", "value")},
                "instrument": words(row.instrument_id for row in opinions),
                "about": [None if row.about < 0 else row.about for row in opinions],
            },
            "ties": [[row.step, row.old_source, row.old_target, row.source, row.target] for row in found.ties],
            "words": list(places),
        }


def _lasting(one: OneRun, state: str) -> dict[str, Any]:
    """What cannot change while a run goes on."""
    (row,) = one.reader.cells(replace(one.design, runs=(one.cell,)))
    edges = one.reader.edges(one.run_id)
    known = {each.instrument_id: each for each in one.reader.instruments()}
    listed = [*enumerate(one.rows)]
    siblings = {each.run_id: number for number, each in reversed(listed) if each.block == one.cell.block}
    siblings.pop(one.run_id)
    return {
        "about": {
            **{"experiment": one.design.name, **picked(one.design, "experiment_id design"), "row": one.row},
            **{name: row[name] for name in _RUN.split()},
            "stamp": evidence_statement([row["evidence"]]),
            "counts_cut_off": one.cell.counts_cut_off,
            "notices": _notices(row, state),
        },
        "agents": [agent_of(each) for each in one.reader.agents(one.run_id)],
        "instruments": [
            {"id": name, **picked(own, "variable classifier points labels about"), "kinds": kinds}
            | {"stance": own.variable == "stance"}
            for name, kinds in one.instruments.items()
            if (own := known.get(name))
        ],
        "edges": [[each.source, each.target, plain(each.weight)] for each in edges],
        # Ties without a direction are stored with the smaller number first.
        "directed": any(each.source > each.target for each in edges),
        "events": [mark._asdict() for mark in marks_of(row)],
        "siblings": [
            {"row": number, **picked(listed[number][1], "run_id cell replicate")}
            for number in sorted(siblings.values())
        ],
    }


def _notices(row: dict[str, Any], state: str) -> list[str]:
    """What whoever reads a run should know, in sentences."""
    said = {
        "withdrawn": "A person has withdrawn: what it wrote, and what others wrote after it, is deleted.",
        "trial": "Somebody only tried a seat of this run: it counts in no table.",
    }
    dropped = f"Because of events, {row['dropped_turns']:,} of its turns dropped out." if row["dropped_turns"] else ""
    return [each for each in (said.get(state, row["error"]), dropped) if each]


def agent_of(row: AgentRow) -> dict[str, Any]:
    """An agent in few words."""
    return {**picked(row, "agent name role evidence model"), "assigned": plain(row.assigned_opinion)}


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
                return {**agent_of(row), "persona": dict(row.persona)}
    raise AbsentError(f"The run has no agent {agent} on record.")
