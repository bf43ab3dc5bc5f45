"""Transcripts of runs as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.messages import UNHEARD
from opinionsim.store import AgentRow, Results, find_design, open_store
from opinionsim.watching._coded_turns import Lines
from opinionsim.watching._record_columns import agent_of
from opinionsim.watching._run_states import row_of
from opinionsim.watching._run_view import GIVEN, OneRun

#: Most messages that a heading names.
_MOST_NAMED = 4


def transcript(
    results: Results,
    run: int | str = 0,
    agent: int | None = None,
    turn: int | None = None,
    shifts: int | None = None,
) -> str:
    """The messages of one run, in order, with what each agent read and how its text was coded.

    The transcript shows all agents; those that are not participants appear with their role. A text that is not an
    answer is marked with its status: refused, empty, truncated or skipped. If an agent read many messages, only the
    last ones are named, unless you ask for a single turn. Codes come from the run's own instrument of stance, applied
    to each text separately. If agents differ in model or kind of evidence, each is shown with its own.

    Parameters
    ----------
    results : Results
        From :func:`opinionsim.load` or :func:`opinionsim.run`.
    run : int or str
        Row number in ``results.runs``; or the name of a run, such as ``confirmation_bias=weak/3``, or the beginning of
        its id.
    agent : int, optional
        Only the turns of this agent.
    turn : int, optional
        Only the turn of this index.
    shifts : int, optional
        Only this many turns: those with the largest changes of opinion, largest first, each with the change from its
        author's previous opinion and the full messages read just before.

    Returns
    -------
    str
        One paragraph per turn.

    Raises
    ------
    SpecError
        If there is no such run, agent or turn.
    StoreError
        If the store cannot be read.

    Notes
    -----
    The run is read from the store at the time of the call; a run in progress is shown up to its last recorded turn.
    """
    about, agents, told = _told(results, run, agent, turn, shifts)
    whole = turn is not None or shifts is not None
    shown = paragraphs(told, agents, about["instrument_id"], whole=whole, quoted=shifts is not None)
    return "\n".join([*_head(about), *shown])


def transcript_data(
    results: Results,
    run: int | str = 0,
    agent: int | None = None,
    turn: int | None = None,
    shifts: int | None = None,
) -> dict[str, Any]:
    """The content of :func:`transcript` as JSON values.

    Parameters and errors as for :func:`transcript`.

    Returns
    -------
    dict of JSON values
        The run, its agents, the turns as in :func:`run_turns`, and under ``read`` the messages that agents read.
    """
    about, agents, told = _told(results, run, agent, turn, shifts)
    return {**{name: about[name] for name in _ABOUT}, "agents": [agent_of(each) for each in agents], **told}


def _told(
    results: Results, run: int | str, agent: int | None, turn: int | None, shifts: int | None
) -> tuple[Mapping[str, Any], Sequence[AgentRow], dict[str, Any]]:
    """A run, its agents, and its turns with what was read."""
    if shifts is not None and shifts < 1:
        raise SpecError(f"shifts must be 1 or more; got {shifts}")
    with open_store(results.url, write=False) as store, store.moment() as moment:
        design, _ = find_design(moment, results.name, results.design)
        one = OneRun(moment, design, design.rows, row_of(results.name, design.rows, run))
        moment.require_whole([one.run_id])
        agents = moment.agents(one.run_id)
        authors = {row.turn: row.agent for row in one.columns.turns}
        if agent is not None and agent not in {each.agent for each in agents}:
            raise SpecError(f"agent {agent} does not exist; valid: {_span(len(agents))}")
        if turn is not None and turn not in authors:
            raise SpecError(f"turn {turn} does not exist; valid: {_span(len(authors))}")
        shown = [number for number, author in authors.items() if agent in (None, author) and turn in (None, number)]
        (about,) = moment.cells(replace(design, runs=(one.cell,)))
        lines = Lines(one)
        if shifts is not None:
            shown = [number for number in shown if lines.changes.get(number)]
            shown = sorted(shown, key=lambda number: -abs(lines.changes[number] or 0.0))[:shifts]
        agents = [replace(each, name=results.shown(one.run_id, each.name)) for each in agents]
        told = results.shown(one.run_id, lines.told(shown))
        own = {"run": one.cell.name, "instrument_id": one.cell.instrument_id}
        return {**results.shown(one.run_id, about), **own}, agents, told


#: What JSON says of a run.
_ABOUT = ("run", "run_id", "cell", "replicate", "status", "evidence", "claim", "task", "instrument_id", "validation")


def _span(count: int) -> str:
    return f"0..{count - 1}" if count else "none, because nothing is stored yet"


def _head(about: Mapping[str, Any]) -> Iterator[str]:
    """What is said of a run above its turns."""
    yield f"run {about['run']} · {about['run_id']} · {about['status']} · evidence: {about['evidence']}"
    yield from (f"{name}: {about[name]}" for name in ("claim", "task") if about[name])
    if about["validation"]:
        yield f"coded by {about['classifier']}: {about['validation']}"
    if about["event_steps"]:
        yield f"events: {about['event_steps']}"


def paragraphs(
    told: Mapping[str, Any],
    agents: Sequence[AgentRow],
    instrument_id: str | None,
    *,
    whole: bool = False,
    quoted: bool = False,
) -> Iterator[str]:
    """Write turns as text.

    Parameters
    ----------
    told : mapping
        Turns and messages, as :func:`opinionsim.watching.run_turns` returns them.
    agents : sequence of AgentRow
        The agents of the run.
    instrument_id : str or None
        The instrument whose codes are shown.
    whole : bool
        Whether to name all messages that agents read.
    quoted : bool
        Whether to quote these messages before the text and state the change of the author's opinion.
    """
    names, players = {each.agent: _name(each) for each in agents}, _players(agents)
    for each in told["turns"]:
        read = [
            _author(ref, told["read"][ref], names)
            for ref in each["reads"]
            if told["read"][ref]["status"] not in UNHEARD
        ]
        if len(read) > _MOST_NAMED and not whole:
            # Those who read everything that was said would have headings that grow with every turn.
            read = [f"{len(read) - _MOST_NAMED + 1} earlier messages", *read[1 - _MOST_NAMED :]]
        after = f" after reading {', '.join(read)}" if read else ""
        agent = each["agent"]
        player = f", {players[agent]}" if players.get(agent) else ""
        who = GIVEN if each["given"] else f"{names.get(agent, agent)} (agent {agent}{player})"
        heard = [told["read"][ref] for ref in each["reads"]] if quoted else []
        quotes = "".join(f"\n  > {one['name']}: {one['text']}" for one in heard if one["text"])
        came = f"\n(as it came: {each['reply']})" if each["reply"] else ""
        alone = f" ({each['alone']})" if each["alone"] else ""
        changed = f"  change {each['change']:+g}{alone}" if quoted and each["change"] else ""
        yield (
            f"\nstep {each['step']}, turn {each['turn']}: {who} {each['kind'] or each['act']}{after}"
            f"{_mark(each, instrument_id)}{changed}{quotes}\n{each['text']}{came}"
        )


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


def _author(ref: str, read: Mapping[str, Any], names: Mapping[int, str]) -> str:
    """The author of a message that a turn read."""
    agent = read["agent"]
    if agent is None:
        return f"the message {ref}"
    place = f"turn {ref}" if ref.isdecimal() else ref.rpartition("-agent-")[0]
    return f"{GIVEN if read['given'] else names.get(agent, '?')} ({place})"


def _mark(line: Mapping[str, Any], instrument_id: str | None) -> str:
    """Why a turn's text is not an answer, or how it was coded."""
    found = [code["value"] for code in line["codes"] if (code["instrument"], code["about"]) == (instrument_id, None)]
    shown = ", ".join(each for each in line["signs"].split() if each not in line["taken"].split())
    told = [f"left out by a sign: {shown}" if line["status"] == "left_out" else line["status"].replace("_", " ")]
    if found and line["status"] in ("answered", "truncated"):
        told.append(_coded(found[-1]))
    if shown and line["status"] != "left_out":
        told.append(f"reply showed {shown}")
    if line["taken"]:
        told.append(f"taken out: {line['taken'].replace(' ', ', ')}")
    told = told[told[0] == "answered" :]
    return f"  [{', '.join(told)}]" if told else ""


def _coded(value: float | None) -> str:
    if value is None:
        return "no opinion found"
    return f"coded {value:+g}" if value else "coded 0"
