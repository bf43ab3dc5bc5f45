"""Tables of final opinions and of what is missing, and transcripts of runs.

Names are loaded on first use: a transcript needs no pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opinionsim.analysis._missing import missing_tables as missing_tables
    from opinionsim.analysis._tables import (
        Table as Table,
        further_table as further_table,
        table as table,
        table1 as table1,
        table2 as table2,
        tables as tables,
    )
    from opinionsim.analysis._transcript import transcript as transcript
    from opinionsim.analysis._verdicts import verdict_table as verdict_table


_HOMES = {"transcript": "_transcript", "missing_tables": "_missing", "verdict_table": "_verdicts"}
_HOMES |= dict.fromkeys(("Table", "further_table", "table", "table1", "table2", "tables"), "_tables")


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
