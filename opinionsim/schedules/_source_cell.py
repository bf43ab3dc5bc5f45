"""Cells that another cell names."""

from __future__ import annotations

from pydantic import Field

from opinionsim.foundation.documents import DocumentModel


class SourceCell(DocumentModel):
    """Another cell of the experiment, from whose runs something is taken over."""

    cell: str = Field(min_length=1)
    """Label of the cell: its axes with their values, as in `cognition.confirmation_bias=weak`."""

    def unfit(self, size: int) -> str:
        """Why a cell of so many agents cannot be it, in words; empty where it can."""
        return ""
