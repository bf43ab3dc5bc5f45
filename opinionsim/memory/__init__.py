"""Memories of agents: the part of prompts that an agent carries from one turn to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.memory._cumulative import CumulativeMemory as CumulativeMemory
from opinionsim.memory._memory import (
    KeptMessages as KeptMessages,
    Memory as Memory,
    estimated_tokens as estimated_tokens,
)
from opinionsim.memory._none import NoMemory as NoMemory
from opinionsim.memory._reflective import ReflectiveMemory as ReflectiveMemory
from opinionsim.memory._reflective_as_run import ReflectiveAsRunMemory as ReflectiveAsRunMemory
from opinionsim.messages import EMPTY_PROMPT, Prompt
from opinionsim.prompts import AgentPrompts
from opinionsim.registry import NamedPart


def find_memory(name: str, options: Mapping[str, Any] | None = None) -> type[Memory]:
    """The class of a memory.

    Parameters
    ----------
    name : str
        ``cumulative``, ``reflective``, ``reflective-as-run``, ``none``, or the import path of a user's memory.
    options : mapping, optional
        Its further arguments.

    Raises
    ------
    SpecError
        If there is no such memory, or it does not take the options.
    """
    found: type[Memory] = NamedPart(name=name, options=dict(options or {})).found("memory").target
    return found


def new_memory(
    name: str,
    prompts: AgentPrompts,
    token_budget: int | None = None,
    *,
    leads: bool = False,
    start: Prompt = EMPTY_PROMPT,
    options: Mapping[str, Any] | None = None,
) -> Memory:
    """An empty memory.

    Parameters
    ----------
    name : str
        Name of the memory, as :func:`find_memory` takes it.
    prompts : AgentPrompts
        The agent's prompts.
    token_budget : int, optional
        Most estimated tokens of remembered messages in a prompt, >= 1: the oldest are dropped first.
        Default no limit.
    leads : bool
        Whether the agent carries out the run's first memory-keeping turn, which ``reflective-as-run`` treats
        differently.
    start : Prompt
        Beginning of all the agent's prompts: its system message, or nothing.
    options : mapping, optional
        Further arguments of the memory.

    Raises
    ------
    SpecError
        If there is no such memory, it does not take the options, or the budget is below 1.
    """
    build = find_memory(name, options)
    if token_budget is not None and token_budget < 1:
        raise SpecError(f"token_budget must be a number of tokens >= 1, or none for no limit; got {token_budget}")
    return build(prompts, token_budget, start, leads=leads, **(options or {}))
