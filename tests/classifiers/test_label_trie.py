from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opinionsim.classifiers._label_trie import LabelTrie, TrieCell
from opinionsim.errors import MeasurementError
from opinionsim.foundation.streams import stream

Tokens = tuple[int, ...]
#: Tokens 0 to 3; 3 ends an output where one is wanted.
_SIZE, _END = 4, 3
label_sets = st.lists(
    st.lists(st.integers(0, _END - 1), min_size=1, max_size=3).map(tuple), min_size=2, max_size=6, unique=True
)


def language(seed: int) -> Callable[[Tokens], np.ndarray]:
    """A language model: the distribution of the next token after each prefix."""

    def after(prefix: Tokens) -> np.ndarray:
        return stream(seed, "test", 0, *prefix).dirichlet(np.ones(_SIZE))

    return after


def probability(after: Callable[[Tokens], np.ndarray], tokens: Tokens) -> float:
    """Teacher forcing: the product of one token after the other."""
    return float(np.prod([after(tokens[:i])[token] for i, token in enumerate(tokens)]))


def masses(trie: LabelTrie, after: Callable[[Tokens], np.ndarray]) -> np.ndarray:
    """What the trie makes of the cells it asks for."""
    cells = [after(trie.rows[cell.row][: cell.position])[cell.token] for cell in trie.cells]
    return np.exp(trie.log_masses(np.log([cells])))[0]


def test_the_labels_of_t5_need_one_row_of_one_token():
    trie = LabelTrie([(3, 4949), (3, 2292), (3, 632), (209,), (204,)])
    assert trie.rows == ((3,),)
    assert set(trie.cells) == {
        *(TrieCell(0, 0, token) for token in (3, 209, 204)),
        *(TrieCell(0, 1, token) for token in (4949, 2292, 632)),
    }


def test_an_end_takes_a_row_for_each_label():
    trie = LabelTrie([(3, 4949), (3, 2292), (3, 632), (209,), (204,)], end=1)
    assert sorted(trie.rows) == [(3, 632), (3, 2292), (3, 4949), (204,), (209,)]


@given(label_sets, st.integers(0, 50))
def test_masses_are_those_of_all_outputs_that_begin_with_a_label_and_no_longer_one(labels, seed):
    after = language(seed)
    length = max(map(len, labels))
    expected = np.zeros(len(labels))
    for output in itertools.product(range(_SIZE), repeat=length):
        begun = [i for i, label in enumerate(labels) if output[: len(label)] == label]
        if begun:
            expected[max(begun, key=lambda i: len(labels[i]))] += probability(after, output)
    found = masses(LabelTrie(labels), after)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.sum() <= 1 + 1e-12


@given(label_sets, st.integers(0, 50))
def test_with_an_end_masses_are_those_of_the_labels_alone(labels, seed):
    after = language(seed)
    expected = [probability(after, (*label, _END)) for label in labels]
    np.testing.assert_allclose(masses(LabelTrie(labels, end=_END), after), expected, atol=1e-12)


@given(label_sets, st.sampled_from([None, _END]))
def test_rows_cover_every_choice_and_none_is_to_spare(labels, end):
    trie = LabelTrie(labels, end=end)
    whole = [(*label, end) if end is not None else label for label in labels]
    choices = {label[:length] for label in whole for length in range(len(label))}
    covered = {row[:length] for row in trie.rows for length in range(len(row) + 1)}
    assert covered == choices
    assert not any(a != b and b[: len(a)] == a for a in trie.rows for b in trie.rows)


def test_a_label_certain_to_be_continued_has_no_mass():
    trie = LabelTrie([(0,), (0, 1)])
    certain = [0.0 if cell.token == 1 else np.log(0.25) for cell in trie.cells]
    np.testing.assert_allclose(np.exp(trie.log_masses(np.array([certain]))), [[0.0, 0.25]])


@pytest.mark.parametrize("labels", [[(1,), (1,)], [(1,), ()]])
def test_labels_that_cannot_be_told_apart(labels):
    with pytest.raises(MeasurementError, match="labels must be distinct and have tokens"):
        LabelTrie(labels)
