"""Chat models, and everything between an actor's question and a model's reply.

Names are loaded when first used: reading a store needs the journal's records and not LangChain.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opinionsim.llm._journal import CallKey, CallRecord, Journal, MemoryJournal
from opinionsim.llm._slots import SlotPool

if TYPE_CHECKING:
    from opinionsim.llm._caller import ReplayOnly, RunCalls
    from opinionsim.llm._models import ModelClient, load_chat_model
    from opinionsim.llm._scripted import PRESETS, ScriptedChatModel, ScriptedParameters, latent

__all__ = [
    "PRESETS",
    "CallKey",
    "CallRecord",
    "Journal",
    "MemoryJournal",
    "ModelClient",
    "ReplayOnly",
    "RunCalls",
    "ScriptedChatModel",
    "ScriptedParameters",
    "SlotPool",
    "latent",
    "load_chat_model",
]

_HOME = {
    **dict.fromkeys(("ReplayOnly", "RunCalls"), "_caller"),
    **dict.fromkeys(("ModelClient", "load_chat_model"), "_models"),
    **dict.fromkeys(("PRESETS", "ScriptedChatModel", "ScriptedParameters", "latent"), "_scripted"),
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
