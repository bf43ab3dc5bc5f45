"""Rows and entries that tests of stores write down: small, valid, and changed by keyword."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opinionsim.llm import Entry, EntryKey
from opinionsim.messages import ChatMessage, prompt_hash
from opinionsim.store import (
    AgentRow,
    EdgeRow,
    ExperimentRow,
    ExperimentRun,
    InstrumentRow,
    OpinionRow,
    RunOutcome,
    RunRow,
    Store,
    TurnRow,
)

__all__ = [
    "call",
    "claimed",
    "completed",
    "experiment_row",
    "instrument_row",
    "opinion_row",
    "outcome",
    "run_row",
    "turn_row",
]


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
        Other fields of the entry; ``part`` and ``attempt`` enter the key.
    """
    roles = ("system", *("user",) * (len(prompt) - 1))
    messages = tuple(ChatMessage(role, content) for role, content in zip(roles, prompt, strict=True))  # type: ignore[arg-type]
    key = EntryKey(turn, fields.pop("part", "reply"), fields.pop("attempt", 0))
    return Entry(key, turn + 1, turn % 2, "write", prompt_hash(messages), text, prompt=messages, **fields)


def run_row(run_id: str = "r1", **fields: Any) -> RunRow:
    """A registered run of two agents over two steps; keyword arguments replace fields of it or of its summary."""
    summary = {
        "seed": 7,
        "topic": "global-warming",
        "category": "science",
        "framing": "falsehood",
        "claim": "the planet is not getting warmer",
        "truth": -2,
        "confirmation_bias": "none",
        "memory": "cumulative",
        "world": "closed",
        "model": "scripted",
        "interaction": "dyadic",
        "network": "complete",
        "n_agents": 2,
        "steps": 2,
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


def outcome(**fields: Any) -> RunOutcome:
    """Two agents, one edge, two turns, one opinion; keyword arguments replace fields."""
    agents = (
        AgentRow(0, "Ada", "participant", "scripted", -2.0, {"age": 30, "city": "Utrecht"}, "scripted"),
        AgentRow(1, "Ben", "moderator", "scripted", None, {"age": 41, "city": "Porto"}, "scripted"),
    )
    turns = (
        TurnRow(0, 1, 0, "write", "post", (), "It is warmer."),
        TurnRow(1, 1, 1, "review", "report", (0, "news"), "I doubt it."),
    )
    made = RunOutcome("complete", agents, (EdgeRow(0, 1, 0.5),), turns, (opinion_row(),))
    return replace(made, **fields)


def experiment_row(experiment_id: str = "e1", name: str = "quick", runs: Sequence[str] = ("r1",)) -> ExperimentRow:
    """An experiment with one cell a run, all read with instrument ``m1``."""
    cells = tuple(
        ExperimentRun(
            *(run_id, "m1", 0, "block 0", f"framing={run_id}"),
            axes={"topic.framing": run_id},
            instruments={"m1": ("post", "report")},
        )
        for run_id in runs
    )
    return ExperimentRow(experiment_id, name, 12.5, {"name": name, "seed": 7}, {"versions": {"mesa": "3"}}, cells)


def claimed(store: Store, run_id: str = "r1", owner: str = "host 1") -> int:
    """Epoch of a claim that must succeed."""
    epoch = store.claim(run_id, owner)
    assert epoch is not None
    return epoch


def completed(store: Store, run_id: str = "r1", owner: str = "host 1", **fields: Any) -> int:
    """Epoch under which a run was registered, claimed and finished; keyword arguments replace fields of its outcome."""
    store.register([run_row(run_id)])
    epoch = claimed(store, run_id, owner)
    store.finish(run_id, epoch, outcome(**fields))
    return epoch
