"""Labels as token sequences that share decoder rows, and the mass that a language model gives to each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from opinionsim.errors import MeasurementError

Tokens = tuple[int, ...]


class TrieCell(NamedTuple):
    """The probability of `token` after the first `position` tokens of a row, to be computed."""

    row: int
    position: int
    token: int


class LabelTrie:
    """The prefix tree of some labels, laid out as the fewest decoder rows that pass through all its inner nodes.

    A decoder row yields the distribution of the next token after each of its prefixes, so labels that share a
    beginning share a row. With the vocabulary of T5, the labels -2, -1, 0, 1, 2 are the sequences (a, b), (a, c),
    (a, d), (e,), (f,): one row that contains `a` reaches all of them.

    Parameters
    ----------
    labels : sequence of sequence of int
        Tokens of each label: at least one label, none empty or repeated.
    end : int, optional
        Token that ends an output. With it, a label's mass is the probability of an output equal to the label; without
        it, of an output that begins with the label's tokens.

    Attributes
    ----------
    rows : tuple of tuple of int
        Decoder inputs, without the start token.

    Raises
    ------
    MeasurementError
        If a label has no tokens, or two labels have the same tokens.

    Notes
    -----
    Without `end`, a label may be the beginning of another (1 and 10 as bytes). The shorter label then covers outputs
    that begin with it but not with the longer one. Labels therefore never overlap, and their masses sum to at most 1.
    """

    def __init__(self, labels: Sequence[Sequence[int]], end: int | None = None) -> None:
        closing = () if end is None else (end,)
        self._labels = [(*map(int, label), *closing) for label in labels]
        if not all(labels) or len(set(self._labels)) < len(self._labels):
            raise MeasurementError(f"labels must be distinct and have tokens; the tokenizer gives {list(labels)}")
        # Every proper prefix is an inner node, where a choice is made.
        prefixes = sorted({label[:length] for label in self._labels for length in range(len(label))})
        self.rows = tuple(p for p in prefixes if not any(q[: len(p)] == p and q != p for q in prefixes))
        self._row_of = {p: next(i for i, row in enumerate(self.rows) if row[: len(p)] == p) for p in prefixes}
        steps = [[self._cell(label, length) for length in range(len(label))] for label in self._labels]
        self.cells = tuple(sorted({cell for path in steps for cell in path}))
        position = {cell: index for index, cell in enumerate(self.cells)}
        self._paths = [[position[cell] for cell in path] for path in steps]
        self._parents = [self._parent(index) for index in range(len(self._labels))]

    def __len__(self) -> int:
        return len(self._labels)

    def _cell(self, label: Tokens, length: int) -> TrieCell:
        prefix = label[:length]
        return TrieCell(self._row_of[prefix], length, label[length])

    def _parent(self, index: int) -> int | None:
        """The longest other label that this one begins with."""
        label = self._labels[index]
        begun = [i for i, other in enumerate(self._labels) if i != index and label[: len(other)] == other]
        return max(begun, key=lambda i: len(self._labels[i]), default=None)

    def log_masses(self, log_probabilities: np.ndarray) -> np.ndarray:
        """Log-mass of each label.

        Parameters
        ----------
        log_probabilities : ndarray (n, len(cells))
            Natural logarithms of the probabilities of `cells`.

        Returns
        -------
        ndarray (n, len(labels))
            At most 0; -inf for no mass. The exponentials of a row sum to at most 1, except for rounding.
        """
        begun = np.stack([log_probabilities[:, path].sum(axis=1) for path in self._paths], axis=1)
        masses = begun.copy()
        for index in range(len(self)):
            longer = [i for i, parent in enumerate(self._parents) if parent == index]
            if longer:
                share = np.exp(begun[:, longer] - begun[:, [index]]).sum(axis=1)
                with np.errstate(divide="ignore"):
                    masses[:, index] += np.log1p(-np.minimum(share, 1.0))
        return masses
