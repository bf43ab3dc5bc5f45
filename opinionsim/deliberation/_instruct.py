"""Instructions for a moderator, written before there is anything to moderate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import Field

from opinionsim.registry import part
from opinionsim.schedules import ActSpec, AskedOnce, automatic_instructions, named


@part("interaction", name="instruct")
class InstructInteraction(AskedOnce):
    """Each agent writes instructions for a moderator for its task (Plurals, Ashkinaze et al. 2025; B5)."""

    prompts = "deliberation"

    marker: str = Field(min_length=1)
    """Words with which a reply must begin, as the prompt pack requests."""
    attempts: int = Field(10, ge=1)
    """Number of replies without these words, or of excessive length, after which the run ends."""

    @property
    def acts(self) -> Mapping[str, ActSpec]:  # type: ignore[override]
        """The instructions of a moderator."""
        return named(replace(automatic_instructions(self.marker), attempts=self.attempts))
