from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from opinionsim.classifiers import Context, Item, items_of, load_classifier
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.topics import Claim

FIRE = Claim("fire is cold", "fire", "falsehood")
ICE = Claim("ice is cold", "ice", "truth")
FULL = Item("No.", FIRE, "It is.", Context(("Is it?",), (("name", "Ann"), ("age", "40")), -1.0))


def test_items_of_one_claim_of_many_and_of_none() -> None:
    assert items_of(["a", "b"], FIRE) == [Item("a", FIRE), Item("b", FIRE)]
    assert items_of(("a", "b"), (FIRE, ICE)) == [Item("a", FIRE), Item("b", ICE)]
    assert items_of(["a"]) == [Item("a")]
    assert items_of([], FIRE) == items_of([], []) == items_of([]) == []


def test_claims_and_texts_must_pair_up() -> None:
    for claims in ([FIRE], [], [FIRE] * 3):
        with pytest.raises(MeasurementError, match=f"one claim for each text; got {len(claims)} claims, 2 texts"):
            items_of(["a", "b"], claims)


@pytest.mark.parametrize(
    ("texts", "claims", "message"),
    [
        (["No."], ["fire is cold"], "claim must be a Claim, such as topic.claim.'truth'., or None; got 'fire is cold'"),
        (["No."], "fire is cold", "claims must be a Claim, such as .*, or a sequence; got 'fire is cold'"),
        ("No.", [FIRE], "texts must be a sequence with one text for each item; got 'No.'"),
        (FIRE, "No.", "texts must be a sequence with one text for each item"),
        ([None], [FIRE], r"text must be a text \(str\); got None"),
        ([FIRE], ["No."], r"text must be a text \(str\); got Claim"),
        ([b"No."], FIRE, r"text must be a text \(str\); got b'No.'"),
    ],
)
def test_claims_and_texts_of_the_wrong_kind(texts: Any, claims: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        items_of(texts, claims)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("about", FULL, r"about must be a second text \(str\) or None"),
        ("context", ("Is it?",), "context must be a Context or None"),
    ],
)
def test_items_of_the_wrong_kind(field: str, value: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Item("No.", FIRE, **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("received", "Is it?", r"received must be a tuple of texts \(str\); got 'Is it\?'"),
        ("received", ["Is it?"], "received must be a tuple"),
        ("received", (None,), "received must be a tuple of texts"),
        ("persona", {"name": "Ann"}, "persona must be a tuple of pairs of str, such as .*; got {'name': 'Ann'}"),
        ("persona", (("name", "Ann", "Lee"),), "persona must be a tuple of pairs"),
        ("persona", (("age", 40),), "persona must be a tuple of pairs of str"),
        ("persona", ("ab",), "persona must be a tuple of pairs"),
        ("assigned_opinion", "1", "assigned_opinion must be a finite number or None; got '1'"),
        ("assigned_opinion", True, "assigned_opinion must be a finite number"),
        ("assigned_opinion", float("nan"), "assigned_opinion must be a finite number or None; got nan"),
    ],
)
def test_contexts_of_the_wrong_kind(field: str, value: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Context(**{field: value})


@pytest.mark.parametrize("opinion", [1, 1.0, np.float64(1), np.int64(1), np.float32(1)])
def test_opinions_are_numbers_of_any_kind(opinion: Any) -> None:
    assert Context(assigned_opinion=opinion) == Context(assigned_opinion=1.0)


def test_equal_items_are_one_and_survive_another_process() -> None:
    again = pickle.loads(pickle.dumps(FULL))  # noqa: S301
    assert len({FULL, again, Item(FULL.text, FULL.claim, FULL.about, FULL.context)}) == 1
    others = [Item("No.", ICE, FULL.about, FULL.context), Item("No.", FIRE), Item("No.", FIRE, "It is."), Item("No.")]
    assert len({FULL, *others}) == 5


@pytest.mark.parametrize("name", ["lexicon", "exact"])
@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["No."], r"needs Item objects; got 'No.'. Make items from texts with .*items_of\(texts, claim\)"),
        ([FULL, (FIRE, "No.")], "needs Item objects"),
        ([None], "needs Item objects.* got None"),
        ("No.", "needs a sequence of items; got 'No.' alone"),
        (FULL, "needs a sequence of items; got Item"),
    ],
)
def test_what_is_no_item(name: str, items: Any, message: str) -> None:
    with pytest.raises(SpecError, match=f"classifier '{name}' {message}"):
        load_classifier(name).classify(items)


def test_a_claim_that_is_needed() -> None:
    with pytest.raises(SpecError, match="classifier 'lexicon' needs a claim, but there is none for the text 'b'"):
        load_classifier("lexicon").classify([Item("a", FIRE), Item("b")])
    assert len(load_classifier("exact").classify([Item("b")])) == 1


def test_numbers_are_taken_as_they_are_and_nothing_else_is_read() -> None:
    surrounded = Item("1", FIRE, "2", Context(("3",), (), 0.0))
    found = load_classifier("exact").classify([Item("0.25"), Item("-1", FIRE), Item("no"), Item("inf"), surrounded])
    np.testing.assert_array_equal(found.value, [0.25, -1.0, np.nan, np.nan, 1.0])


@pytest.mark.parametrize(("name", "needs_claim"), [("lexicon", True), ("exact", False)])
def test_what_they_say_they_read(name: str, needs_claim: bool) -> None:
    classifier = load_classifier(name)
    assert (classifier.needs_claim, classifier.reads_context, classifier.reads_about) == (needs_claim, False, False)
