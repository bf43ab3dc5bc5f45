"""Tables of cases that stand as data beside the tests that read them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any


def refused(test: str, table: str) -> list[Any]:
    """The rows of a table in ``refused.json`` beside a test: what is given, and what the error says."""
    found: list[Any] = json.loads(Path(test).with_name("refused.json").read_text(encoding="utf-8"))[table]
    return found


def coded_texts(kind: str) -> list[tuple[str, str, float | None]]:
    """Claim, text and opinion of each text of a kind; None where the text has none.

    In templates {x} is the claim asked about and {y} the other side, and the opinion is a side.
    """
    with (Path(__file__).parents[1] / "classifiers" / "coded_texts.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    return [(row["claim"], row["text"], float(row["opinion"]) if row["opinion"] else None) for row in rows]
