"""Opinion dynamics with language-model agents, beside classic agent-based models.

Names are loaded when they are first used: importing the package itself imports nothing heavier than
the standard library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opinionsim import classic, deliberation, metrics, networks, plots
    from opinionsim.analysis import transcript
    from opinionsim.classifiers import load_classifier
    from opinionsim.errors import (
        BudgetExceeded,
        MeasurementError,
        ModelCallError,
        OpinionSimError,
        ScheduleError,
        SpecError,
        StoreError,
        SurveyError,
    )
    from opinionsim.llm import GivenReplies, load_chat_model
    from opinionsim.model import OpinionModel, PersonaAgent
    from opinionsim.opinions import OpinionScale
    from opinionsim.personas import Persona, Population
    from opinionsim.planning import plan
    from opinionsim.registry import part
    from opinionsim.running import run
    from opinionsim.specification import load_experiment
    from opinionsim.store import Results, follow, load
    from opinionsim.topics import Claim, Topic

__version__ = "0.1.0"

__all__ = [
    "BudgetExceeded",
    "Claim",
    "GivenReplies",
    "MeasurementError",
    "ModelCallError",
    "OpinionModel",
    "OpinionScale",
    "OpinionSimError",
    "Persona",
    "PersonaAgent",
    "Population",
    "Results",
    "ScheduleError",
    "SpecError",
    "StoreError",
    "SurveyError",
    "Topic",
    "__version__",
    "classic",
    "deliberation",
    "follow",
    "load",
    "load_chat_model",
    "load_classifier",
    "load_experiment",
    "metrics",
    "networks",
    "part",
    "plan",
    "plots",
    "run",
    "transcript",
]

#: The modules that hold the public names; those without any are public names themselves.
_HOMES: dict[str, tuple[str, ...]] = {
    "analysis": ("transcript",),
    "classic": (),
    "classifiers": ("load_classifier",),
    "deliberation": (),
    "errors": (
        "BudgetExceeded",
        "MeasurementError",
        "ModelCallError",
        "OpinionSimError",
        "ScheduleError",
        "SpecError",
        "StoreError",
        "SurveyError",
    ),
    "llm": ("GivenReplies", "load_chat_model"),
    "metrics": (),
    "model": ("OpinionModel", "PersonaAgent"),
    "networks": (),
    "opinions": ("OpinionScale",),
    "personas": ("Persona", "Population"),
    "plots": (),
    "planning": ("plan",),
    "registry": ("part",),
    "running": ("run",),
    "specification": ("load_experiment",),
    "store": ("Results", "follow", "load"),
    "topics": ("Claim", "Topic"),
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return import_module(f"{__name__}.{name}")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
