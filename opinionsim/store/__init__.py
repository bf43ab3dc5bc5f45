"""The record of experiments in SQL: journal, claims, results, and the frames read from them."""

from __future__ import annotations

from opinionsim.store._address import shown
from opinionsim.store._claims import HeldElsewhereError
from opinionsim.store._following import Event, Follower, follow
from opinionsim.store._reader import StoreReader
from opinionsim.store._record import RunRecord
from opinionsim.store._results import Results, load
from opinionsim.store._rows import (
    SUMMARY,
    AgentRow,
    CanaryRow,
    DesignRow,
    EdgeRow,
    ExperimentRun,
    InstrumentRow,
    OpinionRow,
    Paid,
    RunRow,
    RunState,
    Status,
    TieRow,
    TurnRow,
)
from opinionsim.store._sql import Store, open_store

__all__ = [
    "SUMMARY",
    "AgentRow",
    "CanaryRow",
    "DesignRow",
    "EdgeRow",
    "Event",
    "ExperimentRun",
    "Follower",
    "HeldElsewhereError",
    "InstrumentRow",
    "OpinionRow",
    "Paid",
    "Results",
    "RunRecord",
    "RunRow",
    "RunState",
    "Status",
    "Store",
    "StoreReader",
    "TieRow",
    "TurnRow",
    "follow",
    "load",
    "open_store",
    "shown",
]
