"""Precision and recall of the signs of conduct, and what is left of texts, on texts that are marked.

Each text is marked with its signs and with what an editor would publish of it (`data/conduct/README.md`). Intervals are
Wilson's, at 95 %.

Run: python benchmarks/conduct.py [FILE] [--errors SIGN]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from opinionsim.conduct import SIGNS, Looked, look, names_of, stripped
from opinionsim.messages import Message, Speech

try:
    from benchmarks.replies import wilson
except ImportError:  # started as a script
    from replies import wilson

DATA = Path(__file__).parent / "data" / "conduct"
#: Signs that are taken out of texts by default.
TAKEN = ("preamble", "names", "markup")
#: Signs of the rules, by the marks of the texts.
_MARKED = {"closing": "preamble", "own_name": "names", "other_name": "names", "others_lines": "lines"}


def rows(file: Path = DATA / "signs.jsonl") -> list[dict[str, Any]]:
    """The marked texts of a file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def looked_at(row: dict[str, Any]) -> Looked:
    """What the rules say of a text."""
    received = tuple(Message(row.get("read", ""), other) for other in row["others"] or [""])
    return look(
        row["text"],
        "answered",
        speech=Speech(row["author"], row["asked_language"], row.get("limit")),
        received=received if row["others"] or row.get("read") else (),
    )


def measure(texts: list[dict[str, Any]]) -> tuple[dict[str, Counter[str]], Counter[str], list[tuple[str, str, str]]]:
    """Hits, false alarms and misses by sign; how texts come out; and errors as (what, sign, id)."""
    found: dict[str, Counter[str]] = {sign: Counter() for sign in (*SIGNS, "empty")}
    texts_left: Counter[str] = Counter()
    errors = []
    for row in texts:
        looked = looked_at(row)
        marked = {_MARKED.get(sign, sign) for sign in row["signs"]}
        shown = {"empty"} if looked.status == "empty" else set(names_of(looked.signs))
        # A text that leaves its role as a whole has a status for it.
        shown |= {"role"} if looked.status in ("refused", "off_role") else set()
        if "empty" in marked:
            marked = {"empty"}
        elif {"preamble", "names"} & shown:
            # Marks around a name or a preamble are taken out with it.
            marked, shown = marked - {"markup"}, shown - {"markup"}
        for sign in sorted(marked | shown):
            what = "hit" if sign in marked & shown else "missed" if sign in marked else "false"
            found[sign][what] += 1
            errors += [(what, sign, row["id"])] if what != "hit" else []
        left = stripped(row["text"], looked.signs, TAKEN) if looked.status != "empty" else ""
        right = left.split() == ("" if "empty" in marked else row["clean"]).split()
        texts_left[f"{'signs' if row['signs'] else 'clean'} {'right' if right else 'wrong'}"] += 1
        errors += [] if right else [("left wrong", "signs" if row["signs"] else "clean", row["id"])]
    return found, texts_left, errors


def main() -> None:
    """Print the figures of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=DATA / "signs.jsonl")
    parser.add_argument("--errors", metavar="SIGN", help="print the ids of errors of a sign, or of texts: clean, signs")
    given = parser.parse_args()
    found, texts_left, errors = measure(rows(given.file))
    print(f"{'sign':10s} {'precision':34s} recall")
    for sign, counts in found.items():
        hits = counts["hit"]
        print(f"{sign:10s} {wilson(hits, hits + counts['false'])!s:34s} {wilson(hits, hits + counts['missed'])}")
    for kind in ("clean", "signs"):
        right = texts_left[f"{kind} right"]
        print(f"texts {kind}: what is left is right in {wilson(right, right + texts_left[f'{kind} wrong'])}")
    if given.errors:
        print(*(f"{what} {row}" for what, sign, row in errors if sign == given.errors), sep="\n")


if __name__ == "__main__":
    main()
