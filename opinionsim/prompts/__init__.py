"""Prompt packs: the wording of every prompt, as a folder of templates."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.prompts._act import Act as Act, Labelling as Labelling
    from opinionsim.prompts._agent_prompts import (
        AgentPrompts as AgentPrompts,
        Case as Case,
        Frame as Frame,
        Past as Past,
    )
    from opinionsim.prompts._brief import Addressee as Addressee, Brief as Brief
    from opinionsim.prompts._marks import BLOCKS as BLOCKS, Block as Block, Marks as Marks
    from opinionsim.prompts._named_texts import (
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
        VARIABLES as VARIABLES,
        CognitionFields as CognitionFields,
        Conditions as Conditions,
    )

__getattr__, __dir__ = on_first_use(__name__)
