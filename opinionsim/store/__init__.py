"""The record of experiments in SQL: journal, leases, results, and the frames read from them.

Everything except the rows is loaded on first use, because forecasts need no database, and writing and following a store
need no pandas.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use
from opinionsim.store._rows import (
    AbsentError as AbsentError,
    AgentRow as AgentRow,
    AuditRow as AuditRow,
    Columns as Columns,
    DesignRow as DesignRow,
    Doing as Doing,
    EdgeRow as EdgeRow,
    ExperimentRun as ExperimentRun,
    InstrumentRow as InstrumentRow,
    LabelRow as LabelRow,
    Mark as Mark,
    OpinionRow as OpinionRow,
    Paid as Paid,
    RunRow as RunRow,
    RunState as RunState,
    RunStatus as RunStatus,
    SeatRow as SeatRow,
    TieRow as TieRow,
    TurnRow as TurnRow,
    UnitRow as UnitRow,
    WaitRow as WaitRow,
    marks_of as marks_of,
)

if TYPE_CHECKING:
    from opinionsim.store._address import shown as shown
    from opinionsim.store._files import writer_of as writer_of
    from opinionsim.store._following import Follower as Follower, NewRow as NewRow
    from opinionsim.store._frames import (
        COLUMNS as COLUMNS,
        FRAMES as FRAMES,
        documented_columns as documented_columns,
        read_frames as read_frames,
    )
    from opinionsim.store._leases import HeldElsewhereError as HeldElsewhereError
    from opinionsim.store._reader import StoreReader as StoreReader
    from opinionsim.store._results import Results as Results, find_design as find_design, load as load
    from opinionsim.store._run_record import RunRecord as RunRecord
    from opinionsim.store._sql import Store as Store, copy_store as copy_store, open_store as open_store
    from opinionsim.store._stored import BatchRow as BatchRow, OwedCall as OwedCall
    from opinionsim.store._workers import EXPIRY_S as EXPIRY_S

__getattr__, __dir__ = on_first_use(__name__)
