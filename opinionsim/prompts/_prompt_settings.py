"""The conditions of a study that every prompt of an agent follows, and the variables that templates have."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from opinionsim.foundation.documents import MAX_INT, DocumentModel


class CognitionFields(DocumentModel):
    """Conditions of prompts that a specification states under `cognition`; templates know each by its name."""

    confirmation_bias: Literal["none", "weak", "strong"] = "none"
    """Strength of the instruction to favour messages that agree with the agent's belief."""
    world: Literal["closed", "open"] | None = None
    """`closed` tells agents that only the other agents can inform them. Null means closed for a population and open for
    a cast, whose prompts contain nothing beyond what you write."""
    belief_tense: Literal["present", "past"] = "present"
    """Wording of the initial belief: `present` is a phrase without a verb, and `past` is a sentence in the past tense.
"""
    post_words: int | None = Field(60, ge=1, le=MAX_INT)
    """Maximum number of words that prompts request for a post, or for a response on a topic. With null, no prompt
    mentions length, whatever the `max_tokens` of the model."""


class Conditions(CognitionFields):
    """What a study varies in all prompts of an agent: the conditions of cognition, and what it is told of itself."""

    world: Literal["closed", "open"] = "closed"
    """Whether prompts shut out all other sources of information (A6)."""
    persona_shown: Literal["full", "demographics", "name", "none"] = "full"
    """Parts of its persona that an agent is told: name, attributes and background; attributes; name; no role-play."""
    masked: bool = True
    """Whether the claim is called "Theory XYZ" after its first mention in a message (A5)."""


_SHARED = (
    "name", "role", "role_play", "claim", "question", "truth", "task", *Conditions.model_fields, "reads", "writes",
    "scale", "instructions", "automatic", "answer_words", "report_words",
)  # fmt: skip
#: Variables of a task template, unless an act declares others; `opinionsim/prompts/default/README.md` explains each.
TASK_VARIABLES = (
    *_SHARED, "act", "received", "labelling", "previous", "previous_reads", "posts_written", "posts_seen",
    "reports_given",
)  # fmt: skip

#: Variables of each template; ``task`` stands for all task templates.
VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "system": (*_SHARED, "attributes", "background", "initial_belief", "system", "frame"),
        "task": TASK_VARIABLES,
        "event": (*TASK_VARIABLES, "case", "condition", "text"),
        "reflect": ("name", "experience", "past"),
        "recollection": ("name", "text"),
        "again": ("name", "cause", "reason", "words", "language"),
    }
)
