"""Random words for kernels: xoshiro256++ (Blackman & Vigna 2021, doi:10.1145/3460772), one stream per replicate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from opinionsim.foundation.compilation import inlined
from opinionsim.foundation.streams import stream

#: Version of the random streams of classic models. Results of another version have other numbers.
STREAMS = 2


def new_state(seed: int, purpose: str, replicate: int, *key: int) -> np.ndarray:
    """Return the state of a generator: four 64-bit words from the experiment's named streams."""
    return stream(seed, purpose, replicate, *key).integers(0, 2**64, 4, dtype=np.uint64)


def new_states(seed: int, purpose: str, replicate: int, *key: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two states: for the stream of an agent, and for a second stream for rare draws.

    The second stream keeps the first independent of opinions.
    """
    words = stream(seed, purpose, replicate, *key).integers(0, 2**64, 8, dtype=np.uint64)
    return words[:4].copy(), words[4:].copy()


@lru_cache(maxsize=1024)
def _key(seed: int, purpose: str) -> tuple[int, ...]:
    """The key of the counter of a purpose. Making it takes as long as the words of a thousand agents."""
    return tuple(stream(seed, purpose).integers(0, 2**64, 2, dtype=np.uint64).tolist())


def keyed_words(seed: int, purpose: str, replicates: Sequence[int], count: int) -> np.ndarray:
    """Draw random words (R, count) of replicates from a counter. A row depends only on seed, purpose and replicate.

    The generator is Philox 4x64 (Salmon et al. 2011, doi:10.1145/2063384.2063405). Its key depends on the purpose and
    its counter on the replicate. One call draws for any number of consecutive replicates.
    """
    key = np.array(_key(seed, purpose), dtype=np.uint64)
    numbers, blocks = np.asarray(replicates, dtype=np.int64), -(-count // 4)
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    parts = []
    for first, end in itertools.pairwise([0, *ends.tolist(), numbers.size]):
        generator = np.random.Philox(key=key, counter=int(numbers[first]) * blocks)
        parts.append(generator.random_raw(4 * blocks * (end - first)).reshape(end - first, -1))
    return (parts[0] if len(parts) == 1 else np.concatenate(parts))[:, :count]


def uniforms(words: np.ndarray) -> np.ndarray:
    """Convert the upper 53 bits of random words to numbers in [0, 1)."""
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


@inlined
def _rotated(word, by):
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@inlined
def fill(state, words):
    """Fill `words` with the next words of a stream, with the state in registers."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    for place in range(words.size):
        words[place] = _rotated(a + d, 23) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = _rotated(d, 45)
    state[0], state[1], state[2], state[3] = a, b, c, d


@inlined
def draw(state):
    """Draw the next word of a stream, for draws that are too rare for a block."""
    word = _rotated(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotated(state[3], 45)
    return word


@inlined
def uniform(word):
    """Draw a number in [0, 1) from the upper 53 bits of a word."""
    # By way of a signed number, which processors turn into a float at once.
    return np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53


@inlined
def index(word, n):
    """Draw an index in 0..n-1; probabilities differ by less than n / 2**53."""
    return np.int64(uniform(word) * n)


@inlined
def normal(state):
    """Draw a standard normal number (Box-Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(draw(state))))
    return radius * math.cos(2.0 * math.pi * uniform(draw(state)))
