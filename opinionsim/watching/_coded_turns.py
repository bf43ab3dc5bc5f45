"""Turns of a run, with what their authors read, how each was coded, and its calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError
from opinionsim.llm import load_prices
from opinionsim.messages import spelled_out
from opinionsim.metrics import SELF_REPORT
from opinionsim.store import AbsentError
from opinionsim.watching._run_view import GIVEN, OneRun, coded_turns, is_given, picked, plain

if TYPE_CHECKING:
    from opinionsim.store import StoreReader, TurnRow

#: Most turns of one answer.
MOST_TURNS = 200
#: What is told of a call under the names of its fields.
_CALL = (
    "source acceptance cause reason status rules finish_reason model fingerprint input_tokens cached_tokens "
    "output_tokens reasoning_tokens arrived_at reasoning"
)


def run_turns(
    reader: StoreReader,
    run: str,
    *,
    start: int = 0,
    count: int | None = 50,
    agent: int | None = None,
    order: str = "",
    instrument: str | None = None,
    kind: str | None = None,
) -> dict[str, Any]:
    """Turns of a run, each with what its author read and how its text was coded.

    Parameters
    ----------
    reader, run
        As for :func:`run_record`.
    start : int
        Position of the first turn in the list, from 0.
    count : int or None
        Number of turns, at most :data:`MOST_TURNS`; None for all turns.
    agent : int, optional
        Only turns of this agent.
    order : str
        ``change`` for the largest changes of opinion first; empty for the order of turns.
    instrument, kind : str, optional
        Instrument and kind of text that changes are measured by; default as for figures.

    Returns
    -------
    dict of JSON values
        The turns, their total number, and the messages that agents read, by name.

    Raises
    ------
    AbsentError
        If there is no such run or instrument.
    SpecError
        If there is no such order, or the instrument reads no such kind of text.
    """
    if order not in ("", "change"):
        raise SpecError(f"order must be change or absent; got {order[:40]!r}.")
    with reader.moment() as moment:
        lines = Lines(OneRun.of(moment, run), instrument, kind)
        listed = [row.turn for row in lines.one.columns.turns if agent in (None, row.agent)]
        if order:
            listed.sort(key=lambda turn: -abs(lines.changes.get(turn) or 0.0))
        end = None if count is None else start + min(count, MOST_TURNS)
        return {"total": len(listed), "from": start, **lines.told(listed[start:end])}


def run_turn(reader: StoreReader, run: str, turn: int) -> dict[str, Any]:
    """A turn of a run, with all its calls and their literal prompts.

    Raises
    ------
    AbsentError
        If there is no such run or turn.
    """
    with reader.moment() as moment:
        one = OneRun.of(moment, run)
        told = Lines(one).told([turn])
        if not told["turns"]:
            raise AbsentError(f"The run has no stored turn {turn}.")
        calls, currency = calls_by_turn(one, turn)
        for call in calls.get(turn, ()):
            messages = moment.prompt(run, turn, call["call"], call["attempt"]) if call["prompt"] else []
            call["prompt"] = [{"role": message.role, "text": message.content} for message in messages]
        return {"turn": told["turns"][0], "read": told["read"], "calls": calls.get(turn, []), "currency": currency}


def calls_by_turn(one: OneRun, turn: int | None = None) -> tuple[dict[int, list[dict[str, Any]]], str | None]:
    """Calls of a run or of one turn, by turn, each with the identity of its prompt; and the currency of prices."""
    found: dict[int, list[dict[str, Any]]] = {}
    for entry in one.reader.entries(one.run_id, turn):
        call = picked(entry.key, "call attempt") | picked(entry, _CALL)
        call |= {name: plain(getattr(entry, name)) for name in ("cost", "saved", "latency_s")}
        call |= {"signs": entry.shows, "taken_out": ", ".join(entry.taken.split()), "reply": entry.text}
        call["published"] = entry.left if entry.taken else ""
        # What an instrument entered answers no prompt.
        call["prompt"] = "" if entry.source == "instrument" else entry.prompt_hash
        found.setdefault(entry.key.turn, []).append(call)
    # The prices of a table of the user's own are not on record.
    prices = dict(one.design.spec.get("execution") or {}).get("prices")
    return found, None if prices else load_prices().currency


class Lines:
    """List of the turns of a run, with changes of opinion by an instrument and a kind of text."""

    def __init__(self, one: OneRun, instrument: str | None = None, kind: str | None = None) -> None:
        self.one = one
        chosen = one.instrument(instrument)
        name = "" if chosen is None else chosen.instrument_id
        self._values = {turn.turn: value for turn, value in coded_turns(one.columns, name)}
        swept = any(axis.partition(".")[0] == "events" for axis in one.cell.axes)
        events = enumerate(() if swept else one.design.spec.get("events") or ())
        #: Texts that events bring in; those of other messages from outside stand in prompts alone.
        self._events = {f"event-{place}": event.get("text") for place, event in events}
        read = one.kind(name, kind)
        #: Change of each opinion from the last one of its author before, by turn; None for the first.
        self.changes = self._changes(name, read)
        self._named = "" if chosen is None else chosen.classifier
        self._others = {
            row.classifier: self._changes(row.instrument_id, read)
            for row in one.reader.instruments()
            if chosen and row.variable == chosen.variable and row.instrument_id in {*one.instruments} - {name}
        }
        self._reports = coded_turns(one.columns, name, SELF_REPORT) if read != SELF_REPORT else []

    def _changes(self, instrument_id: str, kind: str | None) -> dict[int, float | None]:
        """Changes of opinion as an instrument reads them, by turn."""
        found: dict[int, float | None] = {}
        last: dict[int, float] = {}
        for turn, value in coded_turns(self.one.columns, instrument_id, kind):
            if value is not None and self.one.cell.counts(turn):
                found[turn.turn] = value - last[turn.agent] if turn.agent in last else None
                last[turn.agent] = value
        return found

    def _alone(self, row: TurnRow) -> str:
        """That one instrument alone reads a change, and what else there is; empty where anything agrees."""
        change, beside = self.changes.get(row.turn), dict[str, float | None]()
        beside |= {name: changes[row.turn] for name, changes in self._others.items() if row.turn in changes}
        own = [(turn.turn, value) for turn, value in self._reports if turn.agent == row.agent and value is not None]
        before, after = [value for at, value in own if at < row.turn], [value for at, value in own if at > row.turn]
        beside |= {SELF_REPORT: after[0] - before[-1]} if before and after else {}
        told = {name: value for name, value in beside.items() if value is not None}
        if not change or not told or any(value * change > 0 for value in told.values()):
            return ""
        return f"by {self._named} alone; " + ", ".join(f"{name} {value:+g}" for name, value in told.items())

    def told(self, shown: Sequence[int]) -> dict[str, Any]:
        """Some turns, and the messages that their authors read."""
        reader, run = self.one.reader, self.one.run_id
        turns = {row.turn: row for row in reader.turns(run, only=shown)}
        refs = dict.fromkeys(ref for row in turns.values() for ref in row.reads)
        earlier = {row.turn: row for row in reader.turns(run, only=[ref for ref in refs if isinstance(ref, int)])}
        cast = reader.agents(run)
        names = {row.agent: spelled_out(row.name) or f"agent {row.agent}" for row in cast}
        roles, declared = {row.agent: row.role for row in cast}, self.one.cell.declared
        given = {
            turn for turn, row in (earlier | turns).items() if is_given(row.act, roles.get(row.agent, ""), declared)
        }
        codes: dict[int, list[dict[str, Any]]] = {turn: [] for turn in shown}
        for row in reader.opinions(run, only=shown):
            code = {"instrument": row.instrument_id, "about": row.about, "value": plain(row.value)}
            code["off_scale"] = plain(row.off_scale)
            codes[row.turn].append(code | {"probabilities": [plain(each) for each in row.probabilities]})
        taken = [turn for turn, row in turns.items() if row.taken]
        whole = {turn: entry.text for turn in taken for entry in reader.entries(run, turn) if entry.taken}
        told = []
        for turn in shown:
            if turn in turns:
                line = picked(turns[turn], "turn step agent act kind status signs taken text")
                line |= {"reads": [str(ref) for ref in turns[turn].reads], "codes": codes[turn]}
                line |= {"given": turn in given, "reply": whole.get(turn, "")}
                told.append(line | {"change": self.changes.get(turn), "alone": self._alone(turns[turn])})
        return {"turns": told, "read": {str(ref): self._read(ref, earlier, names, given) for ref in refs}}

    def _read(
        self, ref: int | str, turns: Mapping[int, TurnRow], names: Mapping[int, str], given: Collection[int]
    ) -> dict[str, Any]:
        """A message that was read."""
        if isinstance(ref, int) and ref in turns:
            row = turns[ref]
            told = picked(row, "agent kind text status")
            told["name"] = GIVEN if ref in given else names.get(row.agent, "")
            return told | {"given": ref in given, "value": self._values.get(ref)}
        # A message from outside: that of an event to one agent ends with the agent's number.
        event, _, number = str(ref).rpartition("-agent-")
        agent = int(number) if event and number.isdecimal() else None
        name = str(ref) if agent is None else f"{names.get(agent, '')} ({event})"
        text = self._events.get(event or str(ref))
        told = {"agent": agent, "name": name, "given": False, "kind": "", "text": text}
        return told | {"status": "answered", "value": None}
