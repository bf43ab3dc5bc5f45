"""The contract of a text classifier, as tests to inherit from."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from opinionsim.classifiers import Classifier, Context, Item
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.topics import Claim

_CLAIMS = (
    Claim("tea tastes better than coffee", "tea", "truth"),
    Claim("the museum should not charge an entry fee", "museum", "falsehood"),
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
    """Tests that every text classifier must pass. Inherit from it and build a classifier in :meth:`classifier`.

    The suite checks form, not quality: shapes, distributions, determinism, independence of the batch, unusual texts,
    and whether the classifier reads exactly the parts of items that it declares.
    """

    second: str | None = None
    """Second text of each item, for a classifier that needs one."""
    on_points = True
    """Whether values are points of the scale; False for a classifier whose values are numbers without a distribution.
    """

    @abstractmethod
    def classifier(self, scale: OpinionScale) -> Classifier:
        """Build the classifier under test.

        Parameters
        ----------
        scale : OpinionScale
            The scale on which it codes.

        Returns
        -------
        Classifier
            A new classifier.
        """

    def _batch(self, texts: Sequence[str]) -> list[Item]:
        """Every text with every claim."""
        return [Item(text, claim, self.second) for claim in _CLAIMS for text in texts]

    @staticmethod
    def _same(a: OpinionEstimates, b: OpinionEstimates) -> None:
        np.testing.assert_array_equal(a.probabilities, b.probabilities)
        np.testing.assert_array_equal(a.off_scale, b.off_scale)
        np.testing.assert_array_equal(a.value, b.value)

    def test_identity(self) -> None:
        """It has a name, the given scale, and options that JSON can represent."""
        scale = OpinionScale.of_size(7)
        classifier = self.classifier(scale)
        assert classifier.name
        assert classifier.scale == scale
        assert json.loads(json.dumps(classifier.options)) == classifier.options

    def test_shapes_and_distributions(self) -> None:
        """Each row is a distribution or all NaN; values are points of the scale or NaN, or any numbers."""
        for scale in (OpinionScale(), OpinionScale.of_size(2), OpinionScale.of_size(7), OpinionScale((1, 2, 3, 4, 5))):
            items = self._batch([*_ORDINARY, *_ODD])
            estimates = self.classifier(scale).classify(items)
            assert estimates.scale == scale
            assert estimates.probabilities.shape == (len(items), len(scale))
            assert estimates.off_scale.shape == estimates.value.shape == (len(items),)
            silent = np.isnan(estimates.probabilities).any(axis=1)
            assert np.isnan(estimates.probabilities[silent]).all()
            assert np.isnan(estimates.value[silent]).all() if self.on_points else silent.all()
            rows = estimates.probabilities[~silent]
            assert (rows >= 0).all()
            np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-9)
            assert ((estimates.off_scale >= 0) & (estimates.off_scale <= 1)).all()
            valued = ~np.isnan(estimates.value)
            assert set(estimates.value[valued]) <= set(scale.values) if self.on_points else valued.any()

    def test_empty_batch(self) -> None:
        """An empty batch gives no rows."""
        estimates = self.classifier(OpinionScale()).classify([])
        assert len(estimates) == 0
        assert estimates.probabilities.shape == (0, 5)

    def test_deterministic(self) -> None:
        """The same instance and a new one give the same numbers again."""
        items = self._batch([*_ORDINARY, *_ODD])
        classifier = self.classifier(OpinionScale())
        first = classifier.classify(items)
        self._same(first, classifier.classify(items))
        self._same(first, self.classifier(OpinionScale()).classify(items))

    def test_independent_of_batch(self) -> None:
        """An item gets the same row alone and in a batch, repeated or not."""
        items = self._batch([*_ORDINARY, *_ODD])
        classifier = self.classifier(OpinionScale())
        together = classifier.classify(items * 2)
        for index, item in enumerate(items):
            alone = classifier.classify([item])
            for row in (index, index + len(items)):
                np.testing.assert_array_equal(together.probabilities[row], alone.probabilities[0])
                np.testing.assert_array_equal(together.off_scale[row], alone.off_scale[0])

    def test_permutation(self) -> None:
        """If items are reordered, so are the rows."""
        items = self._batch([*_ORDINARY, *_ODD])
        classifier = self.classifier(OpinionScale())
        straight = classifier.classify(items)
        turned = classifier.classify(items[::-1])
        np.testing.assert_array_equal(straight.probabilities, turned.probabilities[::-1])
        np.testing.assert_array_equal(straight.off_scale, turned.off_scale[::-1])

    def test_nothing_said_is_no_answer(self) -> None:
        """An empty text has no value."""
        estimates = self.classifier(OpinionScale()).classify([Item("", _CLAIMS[0], self.second)])
        assert np.isnan(estimates.value).all()
        assert estimates.off_scale[0] > 0.5

    def test_items_without_a_claim(self) -> None:
        """If no claim is needed, such an item is coded; otherwise, an error names the classifier."""
        classifier = self.classifier(OpinionScale())
        claimless = Item(_ORDINARY[0], about=self.second)
        if classifier.needs_claim:
            with pytest.raises(SpecError, match=f"{classifier.name}.* needs a claim"):
                classifier.classify([Item(_ORDINARY[0], _CLAIMS[0], self.second), claimless])
        else:
            assert len(classifier.classify([claimless, claimless])) == 2

    def test_what_is_not_read_changes_nothing(self) -> None:
        """Context and second texts do not affect a classifier that declares that it does not read them."""
        classifier = self.classifier(OpinionScale())
        items = self._batch(_ORDINARY)
        plain = classifier.classify(items)
        if not classifier.reads_context:
            context = Context((_ORDINARY[3],), (("name", "Ann"),), 1.0)
            self._same(plain, classifier.classify([replace(item, context=context) for item in items]))
        if not classifier.reads_about:
            self._same(plain, classifier.classify([replace(item, about=_ORDINARY[3]) for item in items]))
