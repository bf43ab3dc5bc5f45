"""Named random streams and the content hashes that serve as identities.

All randomness of a run comes from one root seed. A stream is addressed by what it is *for* and by
the replicate, never by the order in which streams are asked for, so that switching one use of chance
off leaves the others unchanged, and cells of a sweep that differ only in treatment share them.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


#: Length of a hexadecimal identity: 96 bits, so that 10^9 texts collide with odds below 10^-11.
_ID_LENGTH = 24


def digest(text: str) -> str:
    """Content identity of a text.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        24 hexadecimal characters of its SHA-256.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_LENGTH]


def canonical_json(value: Any) -> str:
    """Spell a value as JSON in a unique way: sorted keys, no spaces, text unchanged.

    Parameters
    ----------
    value : Any
        Anything that JSON can represent; NaN is refused.

    Returns
    -------
    str
        JSON text that is equal exactly when the values are.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _words(text: str) -> list[int]:
    """128 bits of a text's hash as four 32-bit words, the form a SeedSequence takes."""
    raw = hashlib.sha256(text.encode("utf-8")).digest()
    return [int.from_bytes(raw[i : i + 4], "little") for i in range(0, 16, 4)]


def stream(seed: int, purpose: str, replicate: int = 0, *key: Any) -> np.random.Generator:
    """The random generator for one purpose in one replicate.

    Parameters
    ----------
    seed : int
        Root seed of the experiment, >= 0.
    purpose : str
        What the numbers are for: ``"schedule"``, ``"initial opinions"``, ``"assignment"``, ``"network"``.
    replicate : int
        Replicate number from 0.
    *key : Any
        Further JSON values that separate streams: the axes named in ``independent_over``.

    Returns
    -------
    numpy.random.Generator
        A fresh PCG64 generator; equal arguments give equal numbers.
    """
    # Imported late: a command that only reads a store needs identities but no numpy.
    import numpy as np

    words = _words(canonical_json([purpose, *key]))
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(replicate, *words)))


def run_name(cell: str, replicate: int, redraw: int = 0) -> str:
    """The name of a run: its condition and replicate, which do not change when an experiment grows.

    Parameters
    ----------
    cell : str
        Label of its cell.
    replicate, redraw : int
        Number of the replicate, and of the redraw within it.

    Returns
    -------
    str
        As in ``cognition.confirmation_bias=weak/3``, or ``.../3.1`` for a redraw.
    """
    return f"{cell}/{replicate}" + (f".{redraw}" if redraw else "")


def call_seed(run_id: str, turn: int, call: str, attempt: int) -> int:
    """The seed that a chat model receives with a call: a 31-bit hash of the key of the call.

    Parameters
    ----------
    run_id : str
        Identity of the run.
    turn : int
        Index of the turn within the run.
    call : str
        Name of the call inside its turn: ``reply``, ``reply.2``, ``reflect``, ``judge``, ...
    attempt : int
        Number of replies to this call that arrived and were rejected.

    Returns
    -------
    int
        In [0, 2**31).
    """
    raw = hashlib.sha256(f"{run_id}\x1f{turn}\x1f{call}\x1f{attempt}".encode()).digest()
    return int.from_bytes(raw[:4], "little") & 0x7FFFFFFF
