"""QueuedBatch queues of providers: calls of all runs that are ready go out together, at a lower price.

A provider's queue is a part of kind ``lane``: a class derived from :class:`BatchLane`.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use
from opinionsim.lanes._protocol import (
    OPEN_RUNS as OPEN_RUNS,
    BadLine as BadLine,
    BatchLane as BatchLane,
    Look as Look,
    Request as Request,
    Result as Result,
    Sought as Sought,
)

if TYPE_CHECKING:
    from opinionsim.lanes._batch import Batching as Batching, Pace as Pace
    from opinionsim.lanes._batches import Batches as Batches
    from opinionsim.lanes._wire import WireError as WireError, read_lines as read_lines

__getattr__, __dir__ = on_first_use(__name__)
