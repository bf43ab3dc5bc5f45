"""The prompt pack of a specification, with its wording."""

from __future__ import annotations

from pydantic import Field

from opinionsim.documents import DocumentModel
from opinionsim.prompts import USUAL, worded


class PromptsSpec(DocumentModel):
    """A prompt pack, and which of its wordings."""

    pack: str | None = Field(None, min_length=1)
    """As `prompts` for short."""
    variant: str = Field(USUAL, pattern=r"^[a-z0-9_-]+$")
    """Wording of the pack: `usual`, or the name of another; those of `default` are `second`, `third`, `fourth` and
    `fifth`, of equal content."""


def pack_of(prompts: str | PromptsSpec | None, usual: str) -> str:
    """The name of a pack with its wording, where `usual` is the pack if none is named."""
    given = prompts if isinstance(prompts, PromptsSpec) else PromptsSpec(pack=prompts)
    return worded(given.pack or usual, given.variant)
