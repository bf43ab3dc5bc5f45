"""The record of experiments in SQL: journal, claims, results, and the frames read from them."""

from __future__ import annotations

from opinionsim.store._address import shown
from opinionsim.store._journal import HeldElsewhereError, SQLJournal
from opinionsim.store._results import Results, load
from opinionsim.store._rows import (
    SUMMARY,
    AgentRow,
    CanaryRow,
    EdgeRow,
    ExperimentRow,
    ExperimentRun,
    InstrumentRow,
    OpinionRow,
    Paid,
    RunOutcome,
    RunRow,
    RunState,
    TurnRow,
)
from opinionsim.store._sql import Store, open_store

__all__ = [
    "SUMMARY",
    "AgentRow",
    "CanaryRow",
    "EdgeRow",
    "ExperimentRow",
    "ExperimentRun",
    "HeldElsewhereError",
    "InstrumentRow",
    "OpinionRow",
    "Paid",
    "Results",
    "RunOutcome",
    "RunRow",
    "RunState",
    "SQLJournal",
    "Store",
    "TurnRow",
    "load",
    "open_store",
    "shown",
]
