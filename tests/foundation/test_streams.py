"""Random streams and identities: equal for equal keys, unrelated otherwise, and pinned."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.foundation.streams import call_seed, canonical_json, digest, stream

PURPOSES = ("schedule", "initial opinions", "assignment", "network")


def test_numbers_of_a_stream_are_pinned() -> None:
    """A change here changes every published run: it needs a new version of the specification."""
    assert stream(2024, "schedule").integers(0, 1000, 8).tolist() == [956, 28, 41, 533, 478, 571, 19, 134]
    assert stream(2024, "assignment", 3).permutation(10).tolist() == [5, 6, 9, 2, 0, 3, 1, 7, 4, 8]
    assert stream(2024, "network", 0, "global-warming").random(2).tolist() == [0.18654091065474032, 0.610951053660897]


def test_identities_are_pinned() -> None:
    assert digest("") == "e3b0c44298fc1c149afbf4c8"
    assert digest("opinion") == "4379105aca40fc3c6b7c7275"
    assert call_seed("run", 0, "reply", 0) == 2013657991
    assert call_seed("run", 7, "reflect", 2) == 1046759766


def test_equal_keys_give_equal_numbers_however_often_they_are_asked_for() -> None:
    first = stream(1, "schedule", 2, "a", 3).random(5)
    stream(1, "network", 2).random(100)
    np.testing.assert_array_equal(stream(1, "schedule", 2, "a", 3).random(5), first)


def test_streams_differ_by_seed_purpose_replicate_and_key() -> None:
    drawn = {
        tuple(stream(seed, purpose, replicate, *key).integers(0, 2**63, 2).tolist())
        for seed, purpose, replicate, key in itertools.product(
            (0, 1, 2**40), PURPOSES, range(5), ((), ("a",), ("b",), ("a", "b"), ("ab",))
        )
    }
    assert len(drawn) == 3 * 4 * 5 * 5


def test_streams_of_neighbouring_replicates_and_purposes_are_uncorrelated() -> None:
    """Correlation of n = 4096 uniforms has standard deviation 1/64; 5 of them bound every pair drawn here."""
    numbers = np.array([stream(7, purpose, replicate).random(4096) for purpose in PURPOSES for replicate in range(4)])
    correlations = np.corrcoef(numbers) - np.eye(len(numbers))
    assert np.abs(correlations).max() < 5 / 64


@given(st.text(), st.text())
def test_digest_is_24_hexadecimal_characters_and_tells_texts_apart(a: str, b: str) -> None:
    assert (digest(a) == digest(b)) == (a == b)
    assert len(digest(a)) == 24
    assert set(digest(a)) <= set("0123456789abcdef")


def test_a_lone_surrogate_has_an_identity() -> None:
    assert digest("\ud800") != digest("\ud801") != digest("?")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_canonical_json_reads_back_as_the_value(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(), values, max_size=5))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_canonical_json_is_spelled_one_way() -> None:
    assert canonical_json({"b": [1, 2.5, None], "a": "ü"}) == '{"a":"ü","b":[1,2.5,null]}'
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON compliant"):
            canonical_json({"x": bad})


@given(st.text(), st.integers(0, 10**6), st.text(), st.integers(0, 100))
def test_call_seeds_have_31_bits(run_id: str, turn: int, call: str, attempt: int) -> None:
    assert 0 <= call_seed(run_id, turn, call, attempt) < 2**31


def test_call_seeds_are_told_apart_by_every_part_of_the_key() -> None:
    keys = list(itertools.product(("r1", "r11", "r"), range(12), ("reply", "reply.2", "reflect"), range(3)))
    assert len({call_seed(*key) for key in keys}) == len(keys)
    assert call_seed("r", 1, "1", 1) != call_seed("r", 11, "", 1)
