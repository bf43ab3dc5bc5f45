"""Classifiers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from opinionsim.classifiers._base import Classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale

__all__ = ["classifier_names", "describe_classifier", "load_classifier"]

#: Name to module and class; modules are imported when asked for, since some pull in heavy libraries.
_CLASSIFIERS = {
    "chat": ("opinionsim.classifiers._chat", "ChatClassifier"),
    "exact": ("opinionsim.classifiers._exact", "ExactClassifier"),
    "flan-t5": ("opinionsim.classifiers._flan_t5", "FlanT5Classifier"),
    "lexicon": ("opinionsim.classifiers._lexicon", "LexiconClassifier"),
}


def classifier_names() -> list[str]:
    """Names that :func:`load_classifier` knows, sorted."""
    return sorted(_CLASSIFIERS)


def describe_classifier(name: str) -> str:
    """What a classifier does, in one line; loads nothing it needs to do it.

    Raises
    ------
    SpecError
        If the name is unknown.
    """
    return (_class(name).__doc__ or "").strip().partition("\n")[0]


def load_classifier(name: str, scale: OpinionScale | None = None, /, **options: Any) -> Classifier:
    """Build a classifier.

    Parameters
    ----------
    name : str
        One of :func:`classifier_names`.
    scale : OpinionScale, optional
        The scale to code on; default -2 to 2.
    **options : Any
        Keyword arguments of the classifier's constructor.

    Returns
    -------
    Classifier
        Ready to classify.

    Raises
    ------
    SpecError
        If the name or an option is unknown.
    MeasurementError
        If what the classifier needs, such as weights, is missing.
    """
    build = _class(name)
    valid = [option for option in inspect.signature(build).parameters if option != "scale"]
    unknown = sorted(set(options) - set(valid))
    if unknown:
        raise SpecError(
            f"unknown option {', '.join(map(repr, unknown))} for classifier {name!r}; "
            f"valid options: {', '.join(valid) or 'none'}"
        )
    return build(scale=scale, **options)


def _class(name: str) -> Callable[..., Classifier]:
    if name not in _CLASSIFIERS:
        raise SpecError(f"unknown classifier {name!r}; valid names: {', '.join(classifier_names())}")
    module, attribute = _CLASSIFIERS[name]
    found: Callable[..., Classifier] = getattr(import_module(module), attribute)
    return found
