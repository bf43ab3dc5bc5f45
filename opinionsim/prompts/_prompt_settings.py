"""The conditions of a study that every prompt of an agent follows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypedDict

#: Parts of its persona an agent is told: name, attributes and background; attributes; name; no role-play.
PersonaShown = Literal["full", "demographics", "name", "none"]
#: Which instruction on confirmation bias an agent gets (A6).
ConfirmationBias = Literal["none", "weak", "strong"]
#: Whether prompts shut out all other sources of information (A6).
World = Literal["closed", "open"]
#: Wording of the initial belief: without a verb (A4), or in the past tense.
BeliefTense = Literal["present", "past"]


class Conditions(TypedDict, total=False):
    """What a study may vary in all prompts of an agent: arguments of :meth:`PromptPack.for_agent`."""

    world: World
    persona_shown: PersonaShown
    masked: bool
    confirmation_bias: ConfirmationBias
    belief_tense: BeliefTense
    post_words: int | None


#: The conditions under which a prompt says least.
PLAIN: Mapping[str, Any] = MappingProxyType(
    {
        "world": "open",
        "persona_shown": "none",
        "masked": False,
        "confirmation_bias": "none",
        "belief_tense": "present",
        "post_words": None,
    }
)
