"""Contract suites and tools for testing extensions: inherit a suite, supply a fixture, and the contract is checked.

Names are loaded when first used: the suites need pytest, the clock does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opinionsim.testing._classic import ClassicModelContract as ClassicModelContract
    from opinionsim.testing._classifiers import ClassifierContract as ClassifierContract
    from opinionsim.testing._clock import VirtualClockLoop as VirtualClockLoop, run_virtual as run_virtual
    from opinionsim.testing._prompts import PromptPackContract as PromptPackContract
    from opinionsim.testing._schedules import ScheduleContract as ScheduleContract
    from opinionsim.testing._structures import (
        NumberedReplies as NumberedReplies,
        StructureContract as StructureContract,
        play as play,
        who_saw_what as who_saw_what,
    )


_HOME = {
    "ClassicModelContract": "_classic",
    "ClassifierContract": "_classifiers",
    "NumberedReplies": "_structures",
    "PromptPackContract": "_prompts",
    "ScheduleContract": "_schedules",
    "StructureContract": "_structures",
    "VirtualClockLoop": "_clock",
    "play": "_structures",
    "run_virtual": "_clock",
    "who_saw_what": "_structures",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
