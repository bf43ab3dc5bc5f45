"""Transcripts of runs as text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.store import AgentRow, DesignRow, ExperimentRun, Results, Store, TurnRow, find_design, open_store


def transcript(results: Results, run: int | str = 0, agent: int | None = None, turn: int | None = None) -> str:
    """The messages of one run, in order, with what each agent read and how its text was coded.

    All agents are shown; those that are not participants are named with their role. A text that is not an answer is
    marked with its condition: refused, empty, truncated or skipped. Of many messages that an agent read, the last ones
    are named; all of them where a single turn is asked for. Codes are those of the run's own instrument of stance for
    each text by itself. Where agents differ in model or kind of evidence, each is named with its own.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.load` or :func:`opinionsim.run`.
    run : int or str
        Row number in ``results.runs``, or a run id.
    agent : int, optional
        Only the turns of this agent.
    turn : int, optional
        Only the turn of this index.

    Returns
    -------
    str
        One paragraph a turn.

    Raises
    ------
    SpecError
        If there is no such run, agent or turn.
    StoreError
        If the store cannot be read.

    Notes
    -----
    The run is read from the store at the time of the call; a run under way is shown as far as it is on record.
    """
    with open_store(results.url, write=False) as store:
        design, _ = find_design(store, results.name, results.design)
        return spelled(_told(store, design, _cell(design, run), agent, turn), agent, turn)


# -- reading -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """The content of a transcript, in one state of the store.

    Attributes
    ----------
    about : mapping of str to Any
        The run's row of the frame ``runs``.
    agents : sequence of AgentRow
        The agents of the run, by index.
    turns : sequence of TurnRow
        At least the turns to show, in order.
    authors : mapping of int to int
        The agent that wrote each turn of the run.
    values : mapping of int to float
        Opinions by turn, coded by the run's own instrument; NaN where it found no answer.
    unheard : set of int
        Turns whose messages nobody received: refused, empty and skipped ones.
    """

    about: Mapping[str, Any]
    agents: Sequence[AgentRow]
    turns: Sequence[TurnRow]
    authors: Mapping[int, int]
    values: Mapping[int, float]
    unheard: frozenset[int] = frozenset()


def _cell(design: DesignRow, run: int | str) -> ExperimentRun:
    """A cell and replicate, by its row in the frame ``runs`` or the beginning of its run id."""
    cells = design.rows
    if isinstance(run, int):
        if not 0 <= run < len(cells):
            raise SpecError(f"run {run} does not exist; valid: {_span(len(cells))}")
        return cells[run]
    found = [each for each in cells if each.run_id.startswith(run)]
    n_runs = len({each.run_id for each in found})
    if n_runs != 1:
        raise SpecError(f"run {run!r} names {n_runs} runs; give a row number or a longer run id")
    return found[0]


def _told(store: Store, design: DesignRow, cell: ExperimentRun, agent: int | None, turn: int | None) -> Told:
    """The record of a run, as far as the transcript shows it."""
    run_id = cell.run_id
    with store.moment() as moment:
        moment.require_whole([run_id])
        found = moment.columns(run_id)
        authors = {row.turn: row.agent for row in found.turns}
        return Told(
            moment.cells(replace(design, runs=(cell,)))[0],
            moment.agents(run_id),
            # The turns of one agent are a fraction of a long run.
            moment.turns(run_id, authors.get(turn) if agent is None and turn is not None else agent),
            authors,
            {
                row.turn: row.value
                for row in moment.opinions(run_id)
                if (row.instrument_id, row.about) == (cell.instrument_id, None)
            },
            frozenset(row.turn for row in found.turns if row.condition in ("refused", "empty", "skipped")),
        )


#: Most messages that a heading names.
_MOST_NAMED = 4

# -- telling -------------------------------------------------------------------------------------------------


def spelled(told: Told, agent: int | None = None, turn: int | None = None) -> str:
    """The text that :func:`transcript` returns.

    Raises
    ------
    SpecError
        If there is no such agent or turn.
    """
    about = told.about
    if agent is not None and agent not in {each.agent for each in told.agents}:
        raise SpecError(f"agent {agent} does not exist; valid: {_span(len(told.agents))}")
    if turn is not None and turn not in told.authors:
        raise SpecError(f"turn {turn} does not exist; valid: {_span(len(told.authors))}")
    lines = [
        f"run {about['run_id']} · {about['cell']} · replicate {about['replicate']} · {about['status']} · "
        f"evidence: {about['evidence']}",
    ]
    lines += [f"{name}: {about[name]}" for name in ("claim", "task") if about[name]]
    if about["validation"]:
        lines.append(f"coded by {about['classifier']}: {about['validation']}")
    if about["event_steps"]:
        lines.append(f"events: {about['event_steps']}")
    names = {each.agent: _name(each) for each in told.agents}
    players = _players(told.agents)
    for each in told.turns:
        if agent not in (None, each.agent) or turn not in (None, each.turn):
            continue
        read = [_author(ref, names, told.authors) for ref in each.reads if ref not in told.unheard]
        if turn is None and len(read) > _MOST_NAMED:
            # Those who read everything that was said would have headings that grow with every turn.
            read = [f"{len(read) - _MOST_NAMED + 1} earlier messages", *read[1 - _MOST_NAMED :]]
        after = f" after reading {', '.join(read)}" if read else ""
        player = f", {players[each.agent]}" if players.get(each.agent) else ""
        lines.append(
            f"\nstep {each.step}, turn {each.turn}: {names.get(each.agent, each.agent)} (agent {each.agent}{player}) "
            f"{each.kind or each.act}{after}{_mark(each, told.values)}\n{each.text}"
        )
    return "\n".join(lines)


def _name(agent: AgentRow) -> str:
    """Name of an agent; one that is not a participant has its role added, unless that is its name."""
    if agent.role in ("", "participant") or agent.name.casefold() == agent.role.casefold():
        return agent.name
    return f"{agent.name}, {agent.role}" if agent.name else agent.role


def _players(agents: Sequence[AgentRow]) -> dict[int, str]:
    """Model and kind of evidence of each agent, each only if agents differ in it."""
    told = [name for name in ("model", "evidence") if len({getattr(each, name) for each in agents}) > 1]
    # Model and evidence of a scripted agent are both called "scripted", which is said once.
    return {
        each.agent: ", ".join(dict.fromkeys(filter(None, (getattr(each, name) for name in told)))) for each in agents
    }


def _span(count: int) -> str:
    return f"0..{count - 1}" if count else "none, nothing is on record yet"


def _author(ref: int | str, names: Mapping[int, str], authors: Mapping[int, int]) -> str:
    """The author of a message that a turn read."""
    if isinstance(ref, str):
        event, _, agent = ref.rpartition("-agent-")
        return f"{names.get(int(agent), '?')} ({event})" if event and agent.isdigit() else f"the message {ref}"
    return f"{names.get(authors.get(ref, -1), '?')} (turn {ref})"


def _mark(turn: TurnRow, values: Mapping[int, float]) -> str:
    """Why a turn's text is not an answer, or how it was coded."""
    if turn.condition == "truncated" and turn.turn in values:
        return f"  [truncated, {_coded(values[turn.turn])}]"
    if turn.condition != "answered":
        return f"  [{turn.condition}]"
    return f"  [{_coded(values[turn.turn])}]" if turn.turn in values else ""


def _coded(value: float) -> str:
    if math.isnan(value):
        return "no answer"
    return f"coded {value:+g}" if value else "coded 0"
