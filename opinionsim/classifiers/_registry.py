"""Classifiers by name."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from opinionsim.classifiers._base import Classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale

__all__ = ["classifier_names", "load_classifier"]

#: Name to module and class; modules are imported when asked for, since some pull in heavy libraries.
_CLASSIFIERS = {"lexicon": ("opinionsim.classifiers._lexicon", "LexiconClassifier")}


def classifier_names() -> list[str]:
    """Names that :func:`load_classifier` knows, sorted."""
    return sorted(_CLASSIFIERS)


def load_classifier(name: str, scale: OpinionScale | None = None, **options: Any) -> Classifier:
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
    """
    if name not in _CLASSIFIERS:
        raise SpecError(f"unknown classifier {name!r}; valid names: {', '.join(classifier_names())}")
    module, attribute = _CLASSIFIERS[name]
    build = getattr(import_module(module), attribute)
    valid = [option for option in inspect.signature(build).parameters if option != "scale"]
    unknown = sorted(set(options) - set(valid))
    if unknown:
        raise SpecError(
            f"unknown option {', '.join(map(repr, unknown))} for classifier {name!r}; "
            f"valid options: {', '.join(valid) or 'none'}"
        )
    classifier: Classifier = build(scale=scale, **options)
    return classifier
