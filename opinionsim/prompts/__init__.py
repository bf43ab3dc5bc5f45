"""Prompt packs: the wording of every prompt, as a folder of templates."""

from __future__ import annotations

from opinionsim.prompts._agent import Act, AgentPrompts, BeliefTense, Case, ConfirmationBias, Past, PersonaShown, World
from opinionsim.prompts._marks import BLOCKS, Block, Marks
from opinionsim.prompts._pack import PromptPack, load_pack
from opinionsim.prompts._templates import VARIABLES

__all__ = [
    "BLOCKS",
    "VARIABLES",
    "Act",
    "AgentPrompts",
    "BeliefTense",
    "Block",
    "Case",
    "ConfirmationBias",
    "Marks",
    "Past",
    "PersonaShown",
    "PromptPack",
    "World",
    "load_pack",
]
