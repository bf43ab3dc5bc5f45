"""Contract suites and tools for testing extensions: inherit a suite, supply a fixture, and the contract is checked.

Names are loaded when first used: the suites need pytest, the stub provider the extra ``llm``, the clock neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opinionsim.testing._classic import ClassicModelContract
    from opinionsim.testing._classifiers import ClassifierContract
    from opinionsim.testing._clock import VirtualClockLoop, run_virtual
    from opinionsim.testing._provider import StubProvider
    from opinionsim.testing._provider_faults import Exchange, Faults, StubRequest, evenly
    from opinionsim.testing._provider_replies import plain_reply, request_identity, scripted_reply
    from opinionsim.testing._schedules import ScheduleContract
    from opinionsim.testing._store_case import Moment, StoreFaults, wait_until
    from opinionsim.testing._stores import JournalContract, StoreContract
    from opinionsim.testing._structures import NumberedReplies, StructureContract, play, who_saw_what

__all__ = [
    "ClassicModelContract",
    "ClassifierContract",
    "Exchange",
    "Faults",
    "JournalContract",
    "Moment",
    "NumberedReplies",
    "ScheduleContract",
    "StoreContract",
    "StoreFaults",
    "StructureContract",
    "StubProvider",
    "StubRequest",
    "VirtualClockLoop",
    "evenly",
    "plain_reply",
    "play",
    "request_identity",
    "run_virtual",
    "scripted_reply",
    "wait_until",
    "who_saw_what",
]

_HOME = {
    "ClassicModelContract": "_classic",
    "ClassifierContract": "_classifiers",
    "Exchange": "_provider_faults",
    "Faults": "_provider_faults",
    "JournalContract": "_stores",
    "Moment": "_store_case",
    "NumberedReplies": "_structures",
    "ScheduleContract": "_schedules",
    "StoreContract": "_stores",
    "StoreFaults": "_store_case",
    "StructureContract": "_structures",
    "StubProvider": "_provider",
    "StubRequest": "_provider_faults",
    "VirtualClockLoop": "_clock",
    "evenly": "_provider_faults",
    "plain_reply": "_provider_replies",
    "play": "_structures",
    "request_identity": "_provider_replies",
    "run_virtual": "_clock",
    "scripted_reply": "_provider_replies",
    "wait_until": "_store_case",
    "who_saw_what": "_structures",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
