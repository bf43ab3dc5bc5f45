"""Classifiers, which code texts on a scale."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opinionsim.classifiers._base import (
    AskingClassifier as AskingClassifier,
    Classifier as Classifier,
    Context as Context,
    Item as Item,
    asks as asks,
    items_of as items_of,
)
from opinionsim.classifiers._closed import is_abstention as is_abstention, parse_closed as parse_closed
from opinionsim.classifiers._registry import load_classifier as load_classifier

if TYPE_CHECKING:
    from opinionsim.classifiers._calibration import (
        Calibration as Calibration,
        fit_calibration as fit_calibration,
        load_calibration as load_calibration,
    )
    from opinionsim.classifiers._chat import ChatClassifier as ChatClassifier
    from opinionsim.classifiers._flan_t5 import FlanT5Classifier as FlanT5Classifier
    from opinionsim.classifiers._lexicon import LexiconClassifier as LexiconClassifier


#: Names that are imported only when used, and their modules.
_LATER = {
    "Calibration": "_calibration",
    "ChatClassifier": "_chat",
    "FlanT5Classifier": "_flan_t5",
    "LexiconClassifier": "_lexicon",
    "fit_calibration": "_calibration",
    "load_calibration": "_calibration",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
