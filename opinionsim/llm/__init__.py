"""Chat models, and everything between an actor's question and a model's reply.

Names are loaded on first use, because reading a store needs the journal's records but not LangChain.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opinionsim.llm._journal import Entry, EntryKey, Journal, MemoryJournal, Source
from opinionsim.llm._slots import Lane, SlotPool

if TYPE_CHECKING:
    from opinionsim.llm._budget import Budget, Limits, Usage
    from opinionsim.llm._caller import CallSite, Endpoint, ReplayOnly, RetryPolicy, RunCalls
    from opinionsim.llm._canary import CanaryReply, ask_canary, canary_prompts, compare_canaries
    from opinionsim.llm._given import GivenReplies
    from opinionsim.llm._models import ModelClient, load_chat_model
    from opinionsim.llm._own import own_model
    from opinionsim.llm._policy import ASKED_AGAIN, ReplyPolicy, Treatment
    from opinionsim.llm._prices import Price, PriceTable, load_prices
    from opinionsim.llm._providers import planning, warnings_for
    from opinionsim.llm._reply import ParsedReply, read_reply
    from opinionsim.llm._scripted import PRESETS, ScriptedChatModel, ScriptedParameters, latent
    from opinionsim.llm._seat import Person, Seat

__all__ = [
    "ASKED_AGAIN",
    "PRESETS",
    "Budget",
    "CallSite",
    "CanaryReply",
    "Endpoint",
    "Entry",
    "EntryKey",
    "GivenReplies",
    "Journal",
    "Lane",
    "Limits",
    "MemoryJournal",
    "ModelClient",
    "ParsedReply",
    "Person",
    "Price",
    "PriceTable",
    "ReplayOnly",
    "ReplyPolicy",
    "RetryPolicy",
    "RunCalls",
    "ScriptedChatModel",
    "ScriptedParameters",
    "Seat",
    "SlotPool",
    "Source",
    "Treatment",
    "Usage",
    "ask_canary",
    "canary_prompts",
    "compare_canaries",
    "latent",
    "load_chat_model",
    "load_prices",
    "own_model",
    "planning",
    "read_reply",
    "warnings_for",
]

_HOME = {
    **dict.fromkeys(("Budget", "Limits", "Usage"), "_budget"),
    **dict.fromkeys(("CallSite", "Endpoint", "RetryPolicy", "ReplayOnly", "RunCalls"), "_caller"),
    **dict.fromkeys(("ASKED_AGAIN", "ReplyPolicy", "Treatment"), "_policy"),
    "GivenReplies": "_given",
    **dict.fromkeys(("Person", "Seat"), "_seat"),
    **dict.fromkeys(("Price", "PriceTable", "load_prices"), "_prices"),
    **dict.fromkeys(("ModelClient", "load_chat_model"), "_models"),
    **dict.fromkeys(("CanaryReply", "ask_canary", "canary_prompts", "compare_canaries"), "_canary"),
    "own_model": "_own",
    **dict.fromkeys(("ParsedReply", "read_reply"), "_reply"),
    **dict.fromkeys(("planning", "warnings_for"), "_providers"),
    **dict.fromkeys(("PRESETS", "ScriptedChatModel", "ScriptedParameters", "latent"), "_scripted"),
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
