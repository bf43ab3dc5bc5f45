"""Turns of a run with what was read, how each was coded, and the calls behind it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from opinionsim.llm import load_prices
from opinionsim.store import TurnRow
from opinionsim.watching._places import AbsentError, Place, instrument_of, kind_of, place_of, plain
from opinionsim.watching._values import coded

if TYPE_CHECKING:
    from opinionsim.store import Columns, StoreReader

#: What is told of a call under the names of its fields.
_TOLD = (
    *("source", "verdict", "reason", "condition", "flag", "finish_reason", "model", "fingerprint", "input_tokens"),
    *("cached_tokens", "output_tokens", "reasoning_tokens", "cost", "saved", "latency_s", "arrived_at", "reasoning"),
)


def run_turns(
    reader: StoreReader,
    run_id: str,
    *,
    start: int = 0,
    count: int | None = 50,
    agent: int | None = None,
    by_change: bool = False,
    instrument: str | None = None,
    kind: str | None = None,
) -> dict[str, Any]:
    """Turns of a run, each with what its author read and how its text was coded.

    Parameters
    ----------
    reader : StoreReader
        An open store.
    run_id : str
        The run.
    start : int
        Place of the first turn in the list, from 0.
    count : int or None
        Number of turns; None for all.
    agent : int, optional
        Only turns of this agent.
    by_change : bool
        Whether the largest changes of opinion come first; otherwise turns are in order.
    instrument, kind : str, optional
        Instrument and kind of text by which changes are told; default as for figures.

    Returns
    -------
    dict of JSON values
        The turns, their number in all, and the messages that were read, by their names.

    Raises
    ------
    AbsentError
        If there is no such run or instrument.
    SpecError
        If the instrument reads no such kind of text.
    """
    with reader.moment() as moment:
        lines = _Lines(moment, run_id, instrument, kind)
        listed = [row.turn for row in lines.columns.turns if agent in (None, row.agent)]
        if by_change:
            listed.sort(key=lambda turn: -abs(lines.changes.get(turn) or 0.0))
        shown = listed[start : None if count is None else start + count]
        return {"total": len(listed), "from": start, **lines.told(shown)}


def run_turn(reader: StoreReader, run_id: str, turn: int) -> dict[str, Any]:
    """A turn of a run, with every call behind it and its literal prompt.

    Raises
    ------
    AbsentError
        If there is no such run or turn.
    """
    with reader.moment() as moment:
        lines = _Lines(moment, run_id)
        told = lines.told([turn])
        if not told["turns"]:
            raise AbsentError(f"The run has no turn {turn} on record.")
        calls, currency = run_calls(moment, run_id, turn)
        for call in calls.get(turn, ()):
            messages = moment.prompt(run_id, turn, call["part"], call["attempt"]) if call["prompt"] else []
            call["prompt"] = [{"role": message.role, "text": message.content} for message in messages]
        return {"turn": told["turns"][0], "read": told["read"], "calls": calls.get(turn, []), "currency": currency}


def run_calls(
    reader: StoreReader, run_id: str, turn: int | None = None
) -> tuple[dict[int, list[dict[str, Any]]], str | None]:
    """The calls of a run, or of one turn, by turn, each with the identity of its prompt; and the currency of prices.

    Raises
    ------
    AbsentError
        If there is no such run.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    for entry in reader.entries(run_id, turn):
        call = {
            "part": entry.key.part,
            "attempt": entry.key.attempt,
            **{name: _number(getattr(entry, name)) for name in _TOLD},
            "reply": entry.text,
            # What instruments entered answers no prompt.
            "prompt": "" if entry.source == "instrument" else entry.prompt_hash,
        }
        found.setdefault(entry.key.turn, []).append(call)
    return found, _currency(place_of(reader, run_id).design.spec)


def _number(value: Any) -> Any:
    """A field of a call; None for a number that is not known."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _currency(spec: Mapping[str, Any]) -> str | None:
    """Currency of the prices of an experiment; None for a table of the user's own, which is not on record."""
    return None if dict(spec.get("execution") or {}).get("prices") else _own_currency()


@cache
def _own_currency() -> str:
    return load_prices(None).currency


class _Lines:
    """Turns of a run as they are listed, in one state of the store."""

    def __init__(
        self, reader: StoreReader, run_id: str, instrument: str | None = None, kind: str | None = None
    ) -> None:
        self._reader, self._run_id = reader, run_id
        self.place = place_of(reader, run_id)
        self.columns = reader.columns(run_id)
        chosen = instrument_of(reader, self.place, instrument)
        self._instrument = "" if chosen is None else chosen.instrument_id
        kind = kind_of(self.columns, self.place, self._instrument, kind)
        self.changes = _changes(self.columns, self.place, self._instrument, kind)
        self._values = {turn.turn: value for turn, value in coded(self.columns, self._instrument)}

    def told(self, shown: Sequence[int]) -> dict[str, Any]:
        """Some turns, and the messages that they read."""
        wanted = set(shown)
        reads = {row.turn: row.reads for row in self._reader.turns(self._run_id, only=wanted)}
        earlier = {ref for refs in reads.values() for ref in refs if isinstance(ref, int)}
        turns = {row.turn: row for row in self._reader.turns(self._run_id, only=wanted | earlier)}
        names = {row.agent: row.name or f"agent {row.agent}" for row in self._reader.agents(self._run_id)}
        codes = self._codes(wanted)
        return {
            "turns": [self._line(turns[turn], codes[turn]) for turn in shown if turn in turns],
            "read": {str(ref): self._read(ref, turns, names) for refs in reads.values() for ref in refs},
        }

    def _codes(self, turns: Collection[int]) -> Mapping[int, list[dict[str, Any]]]:
        """What every instrument says of some turns."""
        found: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for row in self._reader.opinions(self._run_id, only=turns):
            found[row.turn].append(
                {
                    "instrument": row.instrument_id,
                    "value": plain(row.value),
                    "off_scale": plain(row.off_scale),
                    "probabilities": [plain(each) for each in row.probabilities],
                    "about": row.about,
                }
            )
        return found

    def _line(self, row: TurnRow, codes: list[dict[str, Any]]) -> dict[str, Any]:
        told = {name: getattr(row, name) for name in ("turn", "step", "agent", "act", "kind", "condition", "text")}
        return {**told, "reads": [str(ref) for ref in row.reads], "codes": codes, "change": self.changes.get(row.turn)}

    def _read(self, ref: int | str, turns: Mapping[int, TurnRow], names: Mapping[int, str]) -> dict[str, Any]:
        """A message that was read."""
        if isinstance(ref, int) and ref in turns:
            row = turns[ref]
            told = {name: getattr(row, name) for name in ("agent", "kind", "text", "condition")}
            return {**told, "name": names.get(row.agent, ""), "value": self._values.get(ref)}
        # A message from outside: that of an event to one agent ends with its number.
        event, _, agent = str(ref).rpartition("-agent-")
        own = int(agent) if event and agent.isdecimal() else None
        name = f"{names.get(own, '')} ({event})" if own is not None else str(ref)
        return {"agent": own, "name": name, "kind": "", "text": None, "condition": "answered", "value": None}


def _changes(columns: Columns, place: Place, instrument_id: str, kind: str | None) -> dict[int, float | None]:
    """Change of each coded opinion from the last one of its author before, by turn; None for the first."""
    last: dict[int, float] = {}
    found: dict[int, float | None] = {}
    for turn, value in coded(columns, instrument_id, kind):
        if value is not None and (turn.condition != "truncated" or place.cell.counts_cut_off):
            found[turn.turn] = value - last[turn.agent] if turn.agent in last else None
            last[turn.agent] = value
    return found
