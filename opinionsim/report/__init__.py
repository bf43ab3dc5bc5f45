"""What is told of an experiment to others: what was frozen before its runs, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.report._freeze import (
        History as History,
        freeze as freeze,
        history as history,
        preregistration as preregistration,
    )

__getattr__, __dir__ = on_first_use(__name__)
