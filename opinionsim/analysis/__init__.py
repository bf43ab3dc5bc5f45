"""Tables of final opinions and of what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.analysis._elections import election_table as election_table
    from opinionsim.analysis._missing import missing_tables as missing_tables
    from opinionsim.analysis._tables import (
        Table as Table,
        further_table as further_table,
        table as table,
        table1 as table1,
        table2 as table2,
        tables as tables,
    )
    from opinionsim.analysis._verdicts import verdict_table as verdict_table

__getattr__, __dir__ = on_first_use(__name__)
