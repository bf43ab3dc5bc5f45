from __future__ import annotations

import pytest

import opinionsim
from opinionsim.classifiers import LexiconClassifier, load_classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.registry import built_in, summary


def test_every_classifier_says_what_it_is():
    assert {"flan-t5", "lexicon"} <= set(built_in("classifier"))
    for each in built_in("classifier").values():
        assert summary(each).endswith(".")


def test_lexicon_is_known_and_takes_a_scale():
    classifier = load_classifier("lexicon", OpinionScale.of_size(3))
    assert isinstance(classifier, LexiconClassifier)
    assert len(classifier.scale) == 3


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(SpecError, match=r"unknown classifier 'lexikon' \(did you mean lexicon\?\); valid: .*lexicon"):
        load_classifier("lexikon")


@pytest.mark.parametrize("option", ["threshhold", "scale", "name"])
def test_unknown_option_is_named(option):
    with pytest.raises(SpecError, match=f"unknown option '{option}' for classifier 'lexicon'; valid options: none"):
        load_classifier("lexicon", **{option: 0.3})


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = opinionsim.classifiers.Nothing
