from __future__ import annotations

from opinionsim.classifiers import Classifier, load_classifier
from opinionsim.opinions import OpinionScale
from opinionsim.testing import ClassifierContract


class TestLexicon(ClassifierContract):
    def classifier(self, scale: OpinionScale) -> Classifier:
        return load_classifier("lexicon", scale)


class TestExact(ClassifierContract):
    def classifier(self, scale: OpinionScale) -> Classifier:
        return load_classifier("exact", scale)
