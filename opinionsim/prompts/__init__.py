"""Prompt packs: the wording of every prompt, as a folder of templates."""

from __future__ import annotations

from opinionsim.prompts._agent_prompts import (
    Act as Act,
    AgentPrompts as AgentPrompts,
    Case as Case,
    Frame as Frame,
    Past as Past,
)
from opinionsim.prompts._brief import Brief as Brief
from opinionsim.prompts._marks import BLOCKS as BLOCKS, Block as Block, Marks as Marks
from opinionsim.prompts._named_texts import (
    Excluded as Excluded,
    Ideal as Ideal,
    InterviewTexts as InterviewTexts,
    Texts as Texts,
    fill as fill,
    pieces as pieces,
    placeholders as placeholders,
)
from opinionsim.prompts._pack import (
    USUAL as USUAL,
    PromptPack as PromptPack,
    load_pack as load_pack,
    pack_files as pack_files,
    pack_name as pack_name,
    worded as worded,
)
from opinionsim.prompts._prompt_settings import (
    BeliefTense as BeliefTense,
    Conditions as Conditions,
    ConfirmationBias as ConfirmationBias,
    PersonaShown as PersonaShown,
    World as World,
)
from opinionsim.prompts._templates import VARIABLES as VARIABLES
