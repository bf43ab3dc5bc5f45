"""Memories of agents, which carry texts from the prompts of one turn to those of the next."""

from opinionsim.memory._cumulative import CumulativeMemory as CumulativeMemory
from opinionsim.memory._memory import (
    KeptMessages as KeptMessages,
    Memory as Memory,
    estimated_tokens as estimated_tokens,
)
from opinionsim.memory._none import NoMemory as NoMemory
from opinionsim.memory._reflective import ReflectiveMemory as ReflectiveMemory
from opinionsim.memory._reflective_as_run import ReflectiveAsRunMemory as ReflectiveAsRunMemory
