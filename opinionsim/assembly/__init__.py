"""Assembly of a planned run from its parts."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.assembly._assemble import RunParts as RunParts, assemble as assemble
    from opinionsim.assembly._coding import (
        instrument_row as instrument_row,
        instruments_by_run as instruments_by_run,
        opinion_rows as opinion_rows,
        stored_texts as stored_texts,
    )
    from opinionsim.assembly._loaded import LoadedParts as LoadedParts
    from opinionsim.assembly._recording import (
        Recording as Recording,
        agent_rows as agent_rows,
        edge_rows as edge_rows,
        tie_rows as tie_rows,
        turn_row as turn_row,
    )

__getattr__, __dir__ = on_first_use(__name__)
