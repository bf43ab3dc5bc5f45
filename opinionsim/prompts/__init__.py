"""Prompt packs: the wording of every prompt, as a folder of templates."""

from __future__ import annotations

from opinionsim.prompts._agent import Act, AgentPrompts, BeliefTense, Case, ConfirmationBias, Past, PersonaShown, World
from opinionsim.prompts._brief import Brief
from opinionsim.prompts._marks import BLOCKS, Block, Marks
from opinionsim.prompts._pack import BUILT_IN_PACKS, PromptPack, load_pack, pack_files
from opinionsim.prompts._templates import VARIABLES
from opinionsim.prompts._texts import Excluded, Ideal, Interview, Texts, fill, pieces, placeholders

__all__ = [
    "BLOCKS",
    "BUILT_IN_PACKS",
    "VARIABLES",
    "Act",
    "AgentPrompts",
    "BeliefTense",
    "Block",
    "Brief",
    "Case",
    "ConfirmationBias",
    "Excluded",
    "Ideal",
    "Interview",
    "Marks",
    "Past",
    "PersonaShown",
    "PromptPack",
    "Texts",
    "World",
    "fill",
    "load_pack",
    "pack_files",
    "pieces",
    "placeholders",
]
