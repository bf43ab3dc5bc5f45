from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import opinionsim
from opinionsim.classifiers import LexiconClassifier, classifier_names, describe_classifier, load_classifier
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.topics import Claim, Framing


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


def test_claims_and_texts_must_pair_up():
    claim = Claim("fire is cold", "fire", Framing.FALSEHOOD)
    with pytest.raises(MeasurementError, match="1 claims, 2 texts"):
        load_classifier("lexicon").classify([claim], ["a", "b"])


@pytest.mark.parametrize(
    ("claims", "texts", "message"),
    [
        (["fire is cold"], ["No."], "claims must be Claim objects"),
        ("fire is cold", ["No."], "claims must be a sequence with one entry for each text"),
        ([Claim("fire is cold", "fire", Framing.FALSEHOOD)], "No.", "texts must be a sequence with one entry"),
        ([Claim("fire is cold", "fire", Framing.FALSEHOOD)], [None], r"texts must be texts \(str\); got None"),
    ],
)
def test_claims_and_texts_of_the_wrong_kind(claims, texts, message):
    with pytest.raises(SpecError, match=message):
        load_classifier("lexicon").classify(claims, texts)


def test_importing_the_package_does_not_load_the_rules():
    code = "import sys, opinionsim.classifiers; sys.exit('opinionsim.classifiers._lexicon_rules' in sys.modules)"
    root = Path(opinionsim.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=root).returncode == 0


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = opinionsim.classifiers.Nothing
