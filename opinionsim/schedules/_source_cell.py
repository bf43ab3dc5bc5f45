"""Cells that another cell names."""

from __future__ import annotations

from pydantic import Field

from opinionsim.foundation.documents import DocumentModel


class SourceCell(DocumentModel):
    """Another cell of the experiment, which supplies texts from its runs."""

    cell: str = Field(min_length=1)
    """Label of the cell: its axes with their values, as in `cognition.confirmation_bias=weak`."""

    def unfit(self, size: int) -> str:
        """Explain why a cell with this many agents cannot be the source; empty if it can."""
        return ""
