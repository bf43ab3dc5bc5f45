"""Contract suites and tools for testing extensions: inherit a suite, supply a fixture, and the contract is checked.

Names are loaded when first used: the suites need pytest, the clock does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opinionsim.testing._classifiers import ClassifierContract
    from opinionsim.testing._clock import VirtualClockLoop, run_virtual
    from opinionsim.testing._schedules import ScheduleContract
    from opinionsim.testing._stores import JournalContract, StoreContract

__all__ = [
    "ClassifierContract",
    "JournalContract",
    "ScheduleContract",
    "StoreContract",
    "VirtualClockLoop",
    "run_virtual",
]

_HOME = {
    "ClassifierContract": "_classifiers",
    "JournalContract": "_stores",
    "ScheduleContract": "_schedules",
    "StoreContract": "_stores",
    "VirtualClockLoop": "_clock",
    "run_virtual": "_clock",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
