"""What an agent carries from one turn to the next: the beginning of its next prompt."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from opinionsim.errors import SpecError
from opinionsim.memory._as_run import ReflectiveAsRunMemory
from opinionsim.memory._cumulative import CumulativeMemory
from opinionsim.memory._memory import KeptMessages, Memory, estimated_tokens
from opinionsim.memory._none import NoMemory
from opinionsim.memory._reflective import ReflectiveMemory
from opinionsim.messages import EMPTY_PROMPT, Prompt
from opinionsim.prompts import AgentPrompts

__all__ = [
    "MEMORIES",
    "CumulativeMemory",
    "KeptMessages",
    "Memory",
    "NoMemory",
    "ReflectiveAsRunMemory",
    "ReflectiveMemory",
    "estimated_tokens",
    "new_memory",
    "templates_of",
]

#: Memories by the name a specification gives them.
MEMORIES: Mapping[str, type[KeptMessages] | type[NoMemory]] = MappingProxyType(
    {
        "cumulative": CumulativeMemory,
        "reflective": ReflectiveMemory,
        "reflective-as-run": ReflectiveAsRunMemory,
        "none": NoMemory,
    }
)


def templates_of(kind: str) -> tuple[str, ...]:
    """Templates of a prompt pack that a memory is worded with.

    Raises
    ------
    SpecError
        If there is no memory of that name.
    """
    if kind not in MEMORIES:
        raise SpecError(f"memory must be one of {', '.join(MEMORIES)}; got {kind!r}")
    return MEMORIES[kind].templates


def new_memory(
    kind: str,
    prompts: AgentPrompts,
    token_budget: int | None = None,
    *,
    leads: bool = False,
    start: Prompt = EMPTY_PROMPT,
) -> Memory:
    """An empty memory.

    Parameters
    ----------
    kind : {"cumulative", "reflective", "reflective-as-run", "none"}
        Which memory.
    prompts : AgentPrompts
        The agent's wording.
    token_budget : int, optional
        Most estimated tokens of remembered messages in a prompt, >= 1: the oldest are dropped first.
        Default no limit.
    leads : bool
        Whether the agent carries out the run's first memory-keeping turn, to which ``reflective-as-run`` gives a
        place of its own.
    start : Prompt
        What stands before everything the agent is asked: its system message, or nothing.

    Raises
    ------
    SpecError
        If the kind is unknown or the budget below 1.
    """
    templates_of(kind)
    if token_budget is not None and token_budget < 1:
        raise SpecError(f"token_budget must be a number of tokens >= 1, or none for no limit; got {token_budget}")
    if kind == "none":
        return NoMemory(start)
    if kind == "cumulative":
        return CumulativeMemory(prompts, token_budget, start)
    if kind == "reflective":
        return ReflectiveMemory(prompts, token_budget, start)
    return ReflectiveAsRunMemory(prompts, token_budget, start, leads=leads)
