"""Prompt packs: the wording of every prompt, as a folder of templates."""

from __future__ import annotations

from opinionsim.prompts._agent import Act, AgentPrompts, ConfirmationBias, Past, PersonaShown, World
from opinionsim.prompts._marks import Marks
from opinionsim.prompts._pack import VARIABLES, PromptPack, load_pack

__all__ = [
    "VARIABLES",
    "Act",
    "AgentPrompts",
    "ConfirmationBias",
    "Marks",
    "Past",
    "PersonaShown",
    "PromptPack",
    "World",
    "load_pack",
]
