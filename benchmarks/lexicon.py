"""Agreement of the lexicon classifier with labels, and its speed.

The texts are synthetic: written for this purpose in the manner of role-played posts, reports and probes, each with
the label its writer gave it. The figures say how the rules do on such texts, not on the output of a given model.

Run ``python benchmarks/lexicon.py [--data DIR] [--errors]``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from opinionsim.classifiers import items_of, load_classifier
from opinionsim.opinions import OpinionEstimates
from opinionsim.topics import Claim

_DATA = Path(__file__).parent / "data" / "opinion_texts"
#: The texts rules were tuned on, those whose overall figures guided the tuning, and those that only measure.
_FILES = ("development", "validation", "held_out")


def quadratic_weighted_kappa(truth: np.ndarray, coded: np.ndarray, points: tuple[int, ...]) -> float:
    """Cohen's kappa with squared distances as weights.

    Parameters
    ----------
    truth, coded : ndarray (n,)
        Values on the scale.
    points : tuple of int
        The scale.

    Returns
    -------
    float
        1 for perfect agreement, 0 for what the margins alone give; NaN where both raters use one value only.
    """
    observed = np.array([[np.sum((truth == a) & (coded == b)) for b in points] for a in points], dtype=float)
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / max(observed.sum(), 1.0)
    weights = (np.asarray(points)[:, None] - np.asarray(points)[None, :]) ** 2
    chance = float((weights * expected).sum())
    return 1.0 - float((weights * observed).sum()) / chance if chance else float("nan")


def read(path: Path) -> list[dict[str, Any]]:
    """The labelled texts of one file, a JSON object a line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def code(rows: list[dict[str, Any]]) -> tuple[OpinionEstimates, float]:
    """Code all texts; also texts per second, first use included."""
    classifier = load_classifier("lexicon")
    claims = [Claim(row["claim"], row["topic"], row["framing"]) for row in rows]
    items = items_of([row["text"] for row in rows], claims)
    start = time.perf_counter()
    estimates = classifier.classify(items)
    return estimates, len(rows) / (time.perf_counter() - start)


def figures(truth: np.ndarray, coded: np.ndarray, points: tuple[int, ...]) -> dict[str, float]:
    """Every figure of agreement; NaN in either array stands for no answer."""
    same = (truth == coded) | (np.isnan(truth) & np.isnan(coded))
    both = ~np.isnan(truth) & ~np.isnan(coded)
    close = np.abs(truth - coded, where=both, out=np.full(len(truth), np.inf)) <= 1
    silent = np.isnan(truth) & np.isnan(coded)
    return {
        "n": float(len(truth)),
        "accuracy": float(same.mean()),
        "within one": float((close | silent).mean()),
        "quadratic-weighted kappa": quadratic_weighted_kappa(truth[both], coded[both], points),
        "answered by both": float(both.sum()),
        "no-answer precision": float(silent.sum() / max(np.isnan(coded).sum(), 1)),
        "no-answer recall": float(silent.sum() / max(np.isnan(truth).sum(), 1)),
    }


def report(name: str, rows: list[dict[str, Any]], errors: bool) -> None:
    """Print the figures of one file."""
    estimates, speed = code(rows)
    truth = np.array([np.nan if row["label"] is None else row["label"] for row in rows], dtype=float)
    print(f"\n{name} (synthetic texts)")
    for label, value in figures(truth, estimates.value, estimates.scale.points).items():
        print(f"  {label:26s} {value:8.0f}" if value >= 2 else f"  {label:26s} {value:8.3f}")
    print(f"  {'texts per second':26s} {speed:8.0f}")
    same = (truth == estimates.value) | (np.isnan(truth) & np.isnan(estimates.value))
    tags: dict[str, list[bool]] = defaultdict(list)
    for row, right in zip(rows, same, strict=True):
        for tag in row["tags"]:
            tags[tag].append(bool(right))
    for tag in sorted(tags):
        print(f"  {'accuracy: ' + tag:26s} {np.mean(tags[tag]):8.3f}  (n={len(tags[tag])})")
    if errors:
        for row, value, right in zip(rows, estimates.value, same, strict=True):
            if not right:
                print(f"  {row['label']} coded {value}: [{row['claim']}] {row['text']}")


def main() -> None:
    """Read the command line and report on each file found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=_DATA, help="folder with the labelled texts")
    parser.add_argument("--errors", action="store_true", help="list the texts of development.jsonl coded otherwise")
    arguments = parser.parse_args()
    found = [path for name in _FILES if (path := arguments.data / f"{name}.jsonl").is_file()]
    if not found:
        parser.error(f"none of {', '.join(_FILES)}.jsonl in {arguments.data}")
    for path in found:
        report(path.stem, read(path), arguments.errors and path.stem == "development")


if __name__ == "__main__":
    main()
