"""A classifier of the tests' own, which judges with context and judges pairs, and computes both."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import opinionsim as osim
from opinionsim.classifiers import Item
from opinionsim.opinions import OpinionEstimates, OpinionScale


@osim.part("classifier")
class HashClassifier:
    """A point of the scale from all that an item holds, so that anything left out or added shows."""

    name = "hash"
    needs_claim, reads_context, reads_about = False, True, True
    items: list[Item]

    def __init__(self, scale: OpinionScale | None = None, salt: str = "") -> None:
        self.scale = scale or OpinionScale()
        self.salt = salt

    @property
    def options(self) -> dict[str, Any]:
        return {"salt": self.salt}

    def classify(self, items: Sequence[Item]) -> OpinionEstimates:
        seen.extend(items)
        rows = np.zeros((len(items), len(self.scale)))
        for row, item in zip(rows, items, strict=True):
            told = repr((self.salt, item.text, item.about, item.context, item.claim and item.claim.text))
            row[int(hashlib.sha256(told.encode()).hexdigest()[:8], 16) % len(self.scale)] = 1.0
        return OpinionEstimates.from_probabilities(self.scale, rows)


#: Every item any of them was given.
seen: list[Item] = []
