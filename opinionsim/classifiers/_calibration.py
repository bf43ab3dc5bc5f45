"""Frozen calibration: the bias of a classifier towards labels, estimated once on pilot texts."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.documents import DocumentModel, read_document, validate
from opinionsim.foundation.streams import digest

if TYPE_CHECKING:
    from opinionsim.classifiers._base import Classifier, Item
    from opinionsim.opinions import OpinionScale


class Calibration(DocumentModel):
    """A classifier's prior probability of each point of a scale, before it reads a text.

    :func:`fit_calibration` makes it. Save it in a JSON file and pass that file to a classifier as `calibration`.
    """

    version: Literal[1] = 1
    classifier: str
    """Name of the classifier it was fitted on."""
    options: dict[str, Any]
    """The options that classifier had."""
    points: tuple[int, ...]
    """The scale."""
    labels: tuple[str, ...]
    """Its verbal anchors, which may be part of a classifier's question."""
    log_prior: tuple[float, ...]
    """Natural logarithm of the prior of each point, finite."""
    n_texts: int
    """Number of pilot texts it was fitted on."""
    date: str
    """Day of fitting, as stated by the person who fitted it: YYYY-MM-DD."""

    @property
    def digest(self) -> str:
        """Identity of the content, for a classifier's options."""
        return digest(self._spelled())

    def _spelled(self) -> str:
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the calibration to a JSON file."""
        Path(path).write_text(self._spelled(), encoding="utf-8")

    def require(self, classifier: str, scale: OpinionScale, options: Mapping[str, Any]) -> None:
        """Check that the calibration was fitted for a classifier.

        Parameters
        ----------
        classifier : str
            Name of the classifier that is to use it.
        scale : OpinionScale
            Its scale.
        options : mapping
            Its options that the prior depends on.

        Raises
        ------
        SpecError
            If one of them differs from the fit; the message names it.
        """
        asked = {"classifier": classifier, "scale": list(scale.points), "labels": list(scale.labels), **options}
        fitted = {
            "classifier": self.classifier, "scale": list(self.points), "labels": list(self.labels), **self.options
        }  # fmt: skip
        differing = [name for name in asked if fitted.get(name) != asked[name]]
        if differing:
            stated = "; ".join(f"{name} {fitted.get(name)!r} instead of {asked[name]!r}" for name in differing)
            raise SpecError(f"calibration: fitted for another instrument ({stated}); fit it again on pilot texts")
        if len(self.log_prior) != len(self.points):
            raise SpecError(f"calibration: log_prior must have one number for each of {len(self.points)} points")

    def probabilities(self, log_masses: np.ndarray) -> np.ndarray:
        """Distributions over the points after division by the prior, in the shape of `log_masses`."""
        return softmax(log_masses - np.asarray(self.log_prior))


def softmax(logs: np.ndarray) -> np.ndarray:
    """Distributions in proportion to the exponentials of rows."""
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_calibration(classifier: Classifier, items: Sequence[Item], *, date: str) -> Calibration:
    """Estimate a classifier's prior over the points of its scale from pilot texts.

    The prior is the mean of the probabilities that the classifier gives the texts, including one extra text with equal
    probabilities. After division by the prior, the classifier uses every point equally often, on average, over the
    pilot texts. The texts must therefore be a sample in which all opinions are about equally frequent, or texts without
    content. Never use texts of the run to be measured, because this would remove drift in opinion together with the
    bias.

    Parameters
    ----------
    classifier : Classifier
        A classifier without calibration.
    items : sequence of Item, length n
        Pilot texts, each with its claim; texts without an answer do not count.
    date : str
        The day of the fit, YYYY-MM-DD.

    Returns
    -------
    Calibration
        Save it with :meth:`Calibration.save`.

    Raises
    ------
    SpecError
        If the classifier is calibrated already, or the date is not valid.
    MeasurementError
        If no text has an answer.

    References
    ----------
    Zhou et al. 2023, Batch Calibration, arXiv:2309.17249; Zhao et al. 2021, Calibrate Before Use, arXiv:2102.09690.
    """
    if classifier.options.get("calibration") is not None:
        raise SpecError("the classifier already has a calibration; fit on a classifier without one")
    try:
        day = datetime.date.fromisoformat(date).isoformat()
    except (TypeError, ValueError):
        raise SpecError(f"date must be a day such as 2024-05-31; got {date!r}") from None
    found = classifier.classify(items)
    rows = found.probabilities[~np.isnan(found.value)]
    if not len(rows):
        raise MeasurementError(f"none of the {len(items)} pilot texts has an answer, so there is nothing to fit on")
    points = len(classifier.scale)
    if not np.isfinite(rows).all():
        raise MeasurementError("the classifier gives probabilities that are not finite, so no prior can be fitted")
    prior = (rows.sum(axis=0) + 1 / points) / (len(rows) + 1)
    return Calibration(
        classifier=classifier.name,
        options=classifier.options,
        points=classifier.scale.points,
        labels=classifier.scale.labels,
        log_prior=tuple(float(value) for value in np.log(prior)),
        n_texts=len(rows),
        date=day,
    )


def load_calibration(path: str | Path) -> Calibration:
    """Read a calibration from a file that :meth:`Calibration.save` wrote.

    Raises
    ------
    SpecError
        If the file cannot be read or is not a calibration.
    """
    return validate(Calibration, read_document(path))
