"""The record of experiments in SQL: journal, claims, results, and the frames read from them.

Frames are loaded on first use: writing and following a store need no pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    PointRow,
    RunRow,
    RunState,
    Status,
    TieRow,
    TurnRow,
)
from opinionsim.store._sql import Store, open_store
from opinionsim.store._workers import EXPIRY_S

if TYPE_CHECKING:
    from opinionsim.store._frames import COLUMNS, FRAMES

__all__ = [
    "COLUMNS",
    "EXPIRY_S",
    "FRAMES",
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
    "PointRow",
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


def __getattr__(name: str) -> Any:
    """Load the definitions of frames on first use (PEP 562)."""
    if name in ("COLUMNS", "FRAMES"):
        return getattr(import_module(f"{__name__}._frames"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
