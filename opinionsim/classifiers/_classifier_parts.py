"""Classifiers by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opinionsim.classifiers._base import Classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.registry import NamedPart


def load_classifier(name: str, scale: OpinionScale | None = None, /, **options: Any) -> Classifier:
    """Build a classifier.

    Parameters
    ----------
    name : str
        A built-in classifier (``opinionsim list classifiers``), or the import path of your own classifier,
        ``package.module:Name``.
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
        If there is no such classifier, it does not accept the options, or it lacks a method.
    MeasurementError
        If weights or packages that the classifier needs are missing.
    """
    part = NamedPart(name=name, options=options).found("classifier")
    found: Classifier = part.build(scale=scale, options=options)
    needed = {"scale": OpinionScale, "options": Mapping, "needs_claim": bool}
    lacking = [each for each, kind in needed.items() if not isinstance(getattr(found, each, None), kind)]
    if lacking:
        raise SpecError(f"classifier {name} has no {', '.join(lacking)}, which every classifier needs")
    if found.scale != (scale or OpinionScale()):
        raise SpecError(
            f"classifier {name} codes on the points {found.scale.points}, not on the requested points, "
            f"{(scale or OpinionScale()).points}; let it use the scale that it receives"
        )
    return found
