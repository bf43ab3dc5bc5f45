from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import opinionsim
from opinionsim.classifiers import LexiconClassifier, classifier_names, describe_classifier, load_classifier
from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale


def test_every_name_is_described_without_loading_it():
    assert {"flan-t5", "lexicon"} <= set(classifier_names())
    for name in classifier_names():
        assert describe_classifier(name).endswith(".")


def test_lexicon_is_known_and_takes_a_scale():
    classifier = load_classifier("lexicon", OpinionScale.of_size(3))
    assert isinstance(classifier, LexiconClassifier)
    assert len(classifier.scale) == 3


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(SpecError, match=r"unknown classifier 'lexikon'; valid names: .*lexicon"):
        load_classifier("lexikon")


@pytest.mark.parametrize("option", ["threshhold", "scale", "name"])
def test_unknown_option_is_named(option):
    with pytest.raises(SpecError, match=f"unknown option '{option}' for classifier 'lexicon'; valid options: none"):
        load_classifier("lexicon", **{option: 0.3})


def test_importing_the_package_does_not_load_the_rules():
    code = "import sys, opinionsim.classifiers; sys.exit('opinionsim.classifiers._lexicon_rules' in sys.modules)"
    root = Path(opinionsim.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root).returncode == 0


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = opinionsim.classifiers.Nothing
