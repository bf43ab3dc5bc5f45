"""Tables of final opinions, and transcripts of runs.

Names are loaded on first use: a transcript needs no pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opinionsim.analysis._missing import missing_tables
    from opinionsim.analysis._tables import Table, further_table, table, table1, table2, tables
    from opinionsim.analysis._transcript import transcript
    from opinionsim.analysis._verdicts import verdict_table

__all__ = [
    "Table",
    "further_table",
    "missing_tables",
    "table",
    "table1",
    "table2",
    "tables",
    "transcript",
    "verdict_table",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = {"transcript": "_transcript", "missing_tables": "_missing", "verdict_table": "_verdicts"}.get(
        name, "_tables"
    )
    return getattr(import_module(f"{__name__}.{home}"), name)
