"""Instruments that code opinions from text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opinionsim.classifiers._base import Classifier
from opinionsim.classifiers._registry import classifier_names, load_classifier

if TYPE_CHECKING:
    from opinionsim.classifiers._lexicon import LexiconClassifier

__all__ = ["Classifier", "LexiconClassifier", "classifier_names", "load_classifier"]


def __getattr__(name: str) -> Any:
    if name == "LexiconClassifier":
        from opinionsim.classifiers._lexicon import LexiconClassifier

        return LexiconClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
