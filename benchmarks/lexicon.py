"""How well the lexicon classifier codes labelled texts: accuracy, kappa, no-answer rates and speed.

The texts under ``data/opinion_texts`` are synthetic: written for this purpose, each with the label its writer gave it.
The replies under ``data/replies``, where they are there, were written in the manner of current chat models by some
readers and labelled by two others. The figures say how the rules do on such texts, not on the output of a given model.

Run ``python benchmarks/lexicon.py [--data DIR] [--replies FILE] [--errors]``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from opinionsim.classifiers import items_of, load_classifier
from opinionsim.opinions import OpinionEstimates
from opinionsim.topics import Claim

_DATA = Path(__file__).parent / "data" / "opinion_texts"
_REPLIES = Path(__file__).parent / "data" / "replies" / "held_out.jsonl"
#: What the replies that bars are set for must reach: masked reports in which both labellers find an explicit stance.
_BARS = {"coverage": 0.85, "quadratic-weighted kappa": 0.70, "wrong side": 0.08}
_RESAMPLES = 2000
#: The texts rules were tuned on, those whose overall figures guided the tuning, and those that only measure.
_FILES = ("development", "replies_first", "replies_second", "validation", "held_out")


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


def interval(figure: Callable[[np.ndarray], float], n: int) -> tuple[float, float]:
    """95 % bootstrap interval of a figure of `n` rows, which takes the positions of the rows drawn."""
    rng = np.random.default_rng(2024)
    drawn = [figure(rng.integers(0, n, n)) for _ in range(_RESAMPLES)] if n else [np.nan]
    low, high = np.nanquantile(drawn, [0.025, 0.975]) if not np.isnan(drawn).all() else (np.nan, np.nan)
    return float(low), float(high)


def truth_of(rows: list[dict[str, Any]]) -> tuple[np.ndarray, int]:
    """What two labellers agree on.

    Parameters
    ----------
    rows : list of dict
        Replies with ``labels``, a pair: -2 to 2, ``N`` for no stance, ``R`` for no answer in role.

    Returns
    -------
    ndarray (n,)
        The label; of two that differ by one, their mean rounded towards neutral. NaN where one of them is no number,
        or they differ by more.
    int
        How many differ by more.
    """
    truth, apart = np.full(len(rows), np.nan), 0
    for at, (a, b) in enumerate(row["labels"] for row in rows):
        if isinstance(a, int) and isinstance(b, int):
            apart += abs(a - b) > 1
            truth[at] = np.trunc((a + b) / 2) if abs(a - b) <= 1 else np.nan
    return truth, apart


def stance_figures(truth: np.ndarray, coded: np.ndarray, points: tuple[int, ...]) -> dict[str, tuple[float, ...]]:
    """Coverage, kappa and share of wrong sides with their 95 % intervals, and the bias of each true label.

    Parameters
    ----------
    truth : ndarray (n,)
        Labels.
    coded : ndarray (n,)
        Values of the classifier; NaN for none.
    points : tuple of int
        The scale.

    Returns
    -------
    dict of str to tuple of float
        Figure, low, high for coverage and for the others among coded texts; ``bias L`` is the mean of coded minus true
        of the texts with label L, and ``largest bias`` the largest of them in absolute value. A side is wrong if its
        sign is the opposite one; neutral is no wrong side.
    """
    answered = ~np.isnan(coded)
    t, c = truth[answered], coded[answered]

    def kappa(at: np.ndarray) -> float:
        return quadratic_weighted_kappa(t[at], c[at], points)

    def share(flags: np.ndarray) -> tuple[float, ...]:
        if not len(flags):
            return (np.nan, np.nan, np.nan)
        return (float(flags.mean()), *interval(lambda at: float(flags[at].mean()), len(flags)))

    bias = {point: float((c - t)[t == point].mean()) for point in points if (t == point).any()}
    return {
        "coverage": share(answered),
        "quadratic-weighted kappa": (kappa(np.arange(len(t))), *interval(kappa, len(t))),
        "wrong side": share(t * c < 0),
        **{f"bias {point:+d}": (value,) for point, value in bias.items()},
        "largest bias": (max(map(abs, bias.values()), default=np.nan),),
    }


def report_replies(rows: list[dict[str, Any]]) -> None:
    """Print the figures of replies with two labels each: first the group that has bars, then the others."""
    estimates, speed = code(rows)
    truth, apart = truth_of(rows)
    print(f"\nreplies in the manner of chat models: {len(rows)}, {speed:.0f} texts per second")
    print(f"  left out of stance figures, since the labels differ by more than one: {apart}")
    groups: dict[str, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if not np.isnan(truth[at]):
            wording = "masked" if row["masked"] else "plain"
            groups[f"{wording} {row['kind']}s, {'explicit' if all(row['explicit']) else 'other'} stance"].append(at)
    barred = "masked reports, explicit stance"
    for name in sorted(groups, key=lambda name: (name != barred, name)):
        at = groups[name]
        print(f"\n{name}: n = {len(at)}")
        for label, (value, *ends) in stance_figures(truth[at], estimates.value[at], estimates.scale.points).items():
            line = f"  {label:26s} {value:8.3f}" + (f"  [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")
            if name == barred and label in _BARS:
                line += f"  bar: at {'most' if label == 'wrong side' else 'least'} {_BARS[label]}"
            print(line)
    report_labellers(rows, estimates.scale.points)
    for mark, meaning in (("N", "no stance"), ("R", "no answer in role")):
        at = [at for at, row in enumerate(rows) if row["labels"] == [mark, mark]]
        if at:
            print(f"  both say {meaning}: {len(at)}, share without a value {np.isnan(estimates.value[at]).mean():.3f}")


def report_labellers(rows: list[dict[str, Any]], points: tuple[int, ...]) -> None:
    """Print how well the two labellers agree."""
    pairs = np.array([row["labels"] for row in rows if all(isinstance(a, int) for a in row["labels"])], dtype=float)
    same = sum(row["labels"][0] == row["labels"][1] for row in rows)
    if len(pairs):
        kappa = quadratic_weighted_kappa(*pairs.T, points)
        low, high = interval(lambda at: quadratic_weighted_kappa(*pairs[at].T, points), len(pairs))
        print(f"\nlabellers, where both gave a number: n = {len(pairs)}, quadratic-weighted kappa", end=" ")
        print(f"{kappa:.3f} [{low:.3f}, {high:.3f}]")
    print(f"  identical labels: {same} of {len(rows)}. The labellers may be one model, so their agreement may be")
    print("  dependence and says little about agreement between people.")


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
    parser.add_argument("--replies", type=Path, default=_REPLIES, help="file with replies that two labellers coded")
    parser.add_argument(
        "--errors", action="store_true", help="list the texts written for development that are coded otherwise"
    )
    arguments = parser.parse_args()
    found = [path for name in _FILES if (path := arguments.data / f"{name}.jsonl").is_file()]
    if not found:
        parser.error(f"none of {', '.join(_FILES)}.jsonl in {arguments.data}")
    for path in found:
        report(path.stem, read(path), arguments.errors and path.stem not in ("validation", "held_out"))
    if arguments.replies.is_file():
        report_replies(read(arguments.replies))


if __name__ == "__main__":
    main()
