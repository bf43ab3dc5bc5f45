"""Small, valid rows and entries for tests of stores, changed by keyword, and functions that write and read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from opinionsim.errors import StoreError
from opinionsim.llm import Entry, EntryKey, Journal
from opinionsim.messages import ChatMessage, Prompt
from opinionsim.store import (
    AgentRow,
    DesignRow,
    EdgeRow,
    ExperimentRun,
    InstrumentRow,
    OpinionRow,
    RunRecord,
    RunRow,
    RunStatus,
    Store,
    StoreReader,
    TieRow,
    TurnRow,
)

__all__ = [
    "CAST",
    "EDGES",
    "TURNS",
    "add",
    "add_all",
    "begun",
    "call",
    "completed",
    "design_row",
    "instrument_row",
    "lead",
    "leased",
    "measured",
    "numbered",
    "opinion_row",
    "reply",
    "run_row",
    "seqs",
    "tables",
    "text_of",
    "turn_row",
]

#: The agents of a run.
CAST = (
    AgentRow(0, "Ada", "participant", "scripted", -2.0, {"age": 30, "city": "Utrecht"}, "scripted"),
    AgentRow(1, "Ben", "moderator", "scripted", None, {"age": 41, "city": "Porto"}, "scripted"),
)
#: The tie it begins with.
EDGES = (EdgeRow(0, 1, 0.5),)
#: Their turns.
TURNS = (
    TurnRow(0, 1, 0, "write", "post", (), "It is warmer."),
    TurnRow(1, 1, 1, "review", "report", (0, "news"), "I doubt it."),
)


def call(turn: int = 0, text: str = "It is warmer.", prompt: Sequence[str] = ("Hello.",), **fields: Any) -> Entry:
    """A journal entry for the reply of a turn: a system message, then user messages.

    Parameters
    ----------
    turn : int
        Index of the turn.
    text : str
        The reply.
    prompt : sequence of str
        Contents of the messages, the first a system message.
    **fields : Any
        Other fields of the entry; ``call`` and ``attempt`` enter the key.
    """
    roles = ("system", *("user",) * (len(prompt) - 1))
    asked = Prompt.of(ChatMessage(role, content) for role, content in zip(roles, prompt, strict=True))  # type: ignore[arg-type]
    key = EntryKey(turn, fields.pop("call", "reply"), fields.pop("attempt", 0))
    return Entry(key, turn + 1, turn % 2, "write", asked.identity, text, prompt=asked, **fields)


def run_row(run_id: str = "r1", **fields: Any) -> RunRow:
    """A registered run of two agents over two steps; keyword arguments replace fields of it or of its summary."""
    summary = {
        "seed": 7,
        "topic": "global-warming",
        "category": "science",
        "framing": "falsehood",
        "claim": "the planet is not getting warmer",
        "task": "",
        "truth": -2,
        "confirmation_bias": "none",
        "memory": "cumulative",
        "world": "closed",
        "model": "scripted",
        "interaction": "dyadic",
        "network": "complete",
        "n_agents": 2,
        "steps": 2,
        "event_steps": None,
        "dropped_turns": 0,
    }
    summary.update({name: fields.pop(name) for name in list(fields) if name in summary})
    row = RunRow(run_id, 0, "block 0", "scripted", {"temperature": 0.7}, summary)
    return replace(row, **fields)


def instrument_row(
    instrument_id: str = "m1", points: tuple[int, ...] = (-2, -1, 0, 1, 2), **fields: Any
) -> InstrumentRow:
    """A stance instrument with the lexicon; keyword arguments replace fields."""
    labels = tuple(f"label {point}" for point in points)
    return replace(InstrumentRow(instrument_id, "stance", "lexicon", {"strict": True}, points, labels), **fields)


def opinion_row(turn: int = 0, instrument_id: str = "m1", **fields: Any) -> OpinionRow:
    """An opinion of 1 on the five-point scale; keyword arguments replace fields."""
    return replace(OpinionRow(instrument_id, turn, 1.0, 0.1, (0.0, 0.0, 0.25, 0.5, 0.25)), **fields)


def turn_row(turn: int, reads: Sequence[int | str] = (), **fields: Any) -> TurnRow:
    """A post of one of two agents that reads earlier turns; keyword arguments replace fields."""
    return replace(TurnRow(turn, turn + 1, turn % 2, "write", "post", tuple(reads), f"text {turn}"), **fields)


def reply(turn: TurnRow, **fields: Any) -> Entry:
    """The journal entry that a turn rests on; keyword arguments are those of :func:`call`."""
    return replace(call(turn.turn, turn.text, **fields), step=turn.step, agent=turn.agent, act=turn.act)


def design_row(
    experiment_id: str = "e1", name: str = "quick", runs: Sequence[str] = ("r1",), design_id: str = "d1"
) -> DesignRow:
    """A design of an experiment with one cell a run, all read with instrument ``m1``."""
    cells = tuple(
        ExperimentRun(
            *(run_id, "m1", 0, "block 0", f"framing={run_id}"),
            axes={"topic.framing": run_id},
            instruments={"m1": ("post", "report")},
        )
        for run_id in runs
    )
    return DesignRow(experiment_id, name, design_id, {"name": name, "seed": 7}, {"versions": {"mesa": "3"}}, cells)


def add(record: RunRecord, row: TurnRow | TieRow | OpinionRow) -> None:
    """Add a row of a run; a turn follows the journal entry it rests on."""
    if isinstance(row, TieRow):
        record.add_tie(row)
    elif isinstance(row, OpinionRow):
        record.add_opinions([row])
    else:
        if row.status != "skipped":
            record.append(reply(row))
        record.add_turn(row)


def text_of(journal: Journal, key: EntryKey) -> str | None:
    """Text of the entry under a key; None where there is none."""
    found = journal.lookup(key)
    return None if found is None else found.text


def add_all(record: RunRecord, rows: Iterable[TurnRow | TieRow | OpinionRow]) -> None:
    """Add rows of a run, one by one."""
    for row in rows:
        add(record, row)


def lead(
    record: RunRecord,
    *,
    agents: Iterable[AgentRow] = CAST,
    edges: Iterable[EdgeRow] = EDGES,
    turns: Iterable[TurnRow] = TURNS,
    ties: Iterable[TieRow] = (),
    opinions: Iterable[OpinionRow] = (opinion_row(),),
) -> None:
    """Add the rows of a run: by default two agents, one tie, two turns, one opinion."""
    record.begin(agents, edges)
    add_all(record, (*turns, *ties, *opinions))


def leased(store: Store, run_id: str = "r1", owner: str = "host 1") -> int:
    """Epoch of a lease that must succeed."""
    epoch = store.lease(run_id, owner)
    assert epoch is not None
    return epoch


def begun(store: Store, run_id: str = "r1", owner: str = "host 1", payer: str = "") -> RunRecord:
    """Record of a run under a lease that must succeed; the run is registered if it is not yet."""
    store.register([run_row(run_id)])
    return store.record(run_id, leased(store, run_id, owner), payer)


def completed(
    store: Store,
    run_id: str = "r1",
    owner: str = "host 1",
    *,
    status: RunStatus = "complete",
    error: str = "",
    **led: Any,
) -> int:
    """Epoch under which a run was registered, leased and finished; other keyword arguments are those of `lead`."""
    record = begun(store, run_id, owner)
    lead(record, **led)
    store.finish(run_id, record.epoch, status, StoreError(error) if error else None)
    return record.epoch


def measured(store: Store, run_id: str, opinions: Iterable[OpinionRow], owner: str = "host 1") -> int:
    """Epoch under which opinions were added to a complete run."""
    epoch = store.lease(run_id, owner, complete=True)
    assert epoch is not None
    store.record(run_id, epoch).add_opinions(opinions)
    store.release(run_id, epoch)
    return epoch


def tables(
    store: StoreReader,
    names: Sequence[str] = ("runs", "agents", "edges", "ties", "turns", "journal", "prompts", "texts", "opinions"),
) -> dict[str, list[tuple[Any, ...]]]:
    """Whole tables, by default all that runs fill, sorted."""
    with store.reading() as connection:
        return {
            name: sorted((tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")), key=repr)  # noqa: S608
            for name in names
        }


def numbered(store: StoreReader, run_id: str = "r1") -> list[tuple[int, TurnRow | OpinionRow | TieRow]]:
    """The rows of a run, with their numbers."""
    return [(event.seq, event.row) for event in store.follow(run_id).poll()]


def seqs(store: StoreReader, run_id: str = "r1") -> list[int]:
    """Numbers of the rows of a run, as the tables have them."""
    with store.reading() as connection:
        found = [
            connection.exec_driver_sql(f"SELECT seq FROM {name} WHERE run_id = '{run_id}'").scalars().all()  # noqa: S608
            for name in ("turns", "ties", "opinions")
        ]
    return sorted(number for numbers in found for number in numbers)
