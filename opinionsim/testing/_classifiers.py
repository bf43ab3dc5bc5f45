"""The contract of a text classifier as tests that others inherit."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from opinionsim.classifiers import Classifier
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.topics import Claim, Framing

__all__ = ["ClassifierContract"]

_CLAIMS = (
    Claim("tea tastes better than coffee", "tea", Framing.TRUTH),
    Claim("the museum should not charge an entry fee", "museum", Framing.FALSEHOOD),
)
_ORDINARY = (
    "I am fully convinced that Theory XYZ is true.",
    "I have some doubts about this theory, though I would not rule it out.",
    "I am undecided about the claim.",
    "I reject Theory XYZ outright.",
)
_ODD = (
    "",
    " \n\t",
    "?!...",
    "\U0001f600\U0001f600",
    "\u4e0d\u77e5\u9053",
    'An "unclosed quotation (and a bracket',
    "#hashtag @someone https://example.org/path?x=1",
    "no " * 500,
    "1,000.5% 9/11 50-50 ²",
    "\ud800 a lone surrogate",
    "{{ not }} {% a %} template",
)


class ClassifierContract(ABC):
    """Tests every text classifier passes; inherit, build one in :meth:`classifier`, and pytest runs them.

    The suite checks form, not quality: shapes, distributions, determinism, independence of the batch, odd texts.
    """

    @abstractmethod
    def classifier(self, scale: OpinionScale) -> Classifier:
        """Build the classifier under test.

        Parameters
        ----------
        scale : OpinionScale
            The scale to code on.

        Returns
        -------
        Classifier
            A fresh one.
        """

    @staticmethod
    def _batch(texts: Sequence[str]) -> tuple[list[Claim], list[str]]:
        """Every text with every claim."""
        return [claim for claim in _CLAIMS for _ in texts], [text for _ in _CLAIMS for text in texts]

    @staticmethod
    def _same(a: OpinionEstimates, b: OpinionEstimates) -> None:
        np.testing.assert_array_equal(a.probabilities, b.probabilities)
        np.testing.assert_array_equal(a.off_scale, b.off_scale)
        np.testing.assert_array_equal(a.value, b.value)

    def test_identity(self) -> None:
        """It has a name, the scale it was given, and options that JSON can hold."""
        scale = OpinionScale.of_size(7)
        classifier = self.classifier(scale)
        assert classifier.name
        assert classifier.scale == scale
        assert json.loads(json.dumps(classifier.options)) == classifier.options

    def test_shapes_and_distributions(self) -> None:
        """Rows are distributions or NaN throughout; values are points of the scale or NaN."""
        for scale in (OpinionScale(), OpinionScale.of_size(2), OpinionScale.of_size(7), OpinionScale((1, 2, 3, 4, 5))):
            claims, texts = self._batch([*_ORDINARY, *_ODD])
            estimates = self.classifier(scale).classify(claims, texts)
            assert estimates.scale == scale
            assert estimates.probabilities.shape == (len(texts), len(scale))
            assert estimates.off_scale.shape == estimates.value.shape == (len(texts),)
            silent = np.isnan(estimates.probabilities).any(axis=1)
            assert np.isnan(estimates.probabilities[silent]).all()
            assert np.isnan(estimates.value[silent]).all()
            rows = estimates.probabilities[~silent]
            assert (rows >= 0).all()
            np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-9)
            assert ((estimates.off_scale >= 0) & (estimates.off_scale <= 1)).all()
            assert set(estimates.value[~np.isnan(estimates.value)]) <= set(scale.values)

    def test_empty_batch(self) -> None:
        """No texts give no rows."""
        estimates = self.classifier(OpinionScale()).classify([], [])
        assert len(estimates) == 0
        assert estimates.probabilities.shape == (0, 5)

    def test_deterministic(self) -> None:
        """The same instance and a fresh one give the same numbers again."""
        claims, texts = self._batch([*_ORDINARY, *_ODD])
        classifier = self.classifier(OpinionScale())
        first = classifier.classify(claims, texts)
        self._same(first, classifier.classify(claims, texts))
        self._same(first, self.classifier(OpinionScale()).classify(claims, texts))

    def test_independent_of_batch(self) -> None:
        """A text coded alone has the row it has in company, repeated or not."""
        claims, texts = self._batch([*_ORDINARY, *_ODD])
        classifier = self.classifier(OpinionScale())
        together = classifier.classify(claims * 2, texts * 2)
        for index, (claim, text) in enumerate(zip(claims, texts, strict=True)):
            alone = classifier.classify([claim], [text])
            for row in (index, index + len(texts)):
                np.testing.assert_array_equal(together.probabilities[row], alone.probabilities[0])
                np.testing.assert_array_equal(together.off_scale[row], alone.off_scale[0])

    def test_permutation(self) -> None:
        """Rows follow their texts."""
        claims, texts = self._batch([*_ORDINARY, *_ODD])
        classifier = self.classifier(OpinionScale())
        straight = classifier.classify(claims, texts)
        turned = classifier.classify(claims[::-1], texts[::-1])
        np.testing.assert_array_equal(straight.probabilities, turned.probabilities[::-1])
        np.testing.assert_array_equal(straight.off_scale, turned.off_scale[::-1])

    def test_nothing_said_is_no_answer(self) -> None:
        """An empty text has no value."""
        estimates = self.classifier(OpinionScale()).classify([_CLAIMS[0]], [""])
        assert np.isnan(estimates.value).all()
        assert estimates.off_scale[0] > 0.5
