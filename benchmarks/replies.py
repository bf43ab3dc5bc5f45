"""Precision and recall of `refused`, the status of replies that hold no answer in their role, on labelled texts.

Two readers have labelled each text, ``R`` for no answer in role. Rows on which they disagree about that are counted and
left out. The texts are synthetic: the figures say how the rules do on such texts, not on the output of a given model.

Run ``python benchmarks/replies.py [--data FILE] [--errors]``. ``--sides`` prints errors by side of the opinion that the
author was assigned instead, on the development texts in all languages; ``--fit`` the weights of the rules, fitted to
them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from opinionsim.conduct import look, names_of
from opinionsim.conduct._refusals import is_notice, signs
from opinionsim.llm import phrases
from opinionsim.messages import Speech

_TEXTS = Path(__file__).parent / "data"
_DATA = _TEXTS / "replies" / "held_out.jsonl"


class Share(NamedTuple):
    """Hits of trials, with the limits of the 95 % Wilson interval of their share."""

    hits: int
    trials: int
    low: float
    high: float

    def __str__(self) -> str:
        share = self.hits / self.trials if self.trials else float("nan")
        return f"{share:.3f} [{self.low:.3f}, {self.high:.3f}] ({self.hits} of {self.trials})"


class Figures(NamedTuple):
    """Agreement of the rules with two labels."""

    precision: Share
    recall: Share
    disagreed: int
    """Rows on which the labels disagree about R."""
    signs: Mapping[str, int]
    """Rows by the signs of conduct in answers, those left out included."""
    errors: list[str]
    """Ids of rows read otherwise than labelled."""


def wilson(hits: int, trials: int, z: float = 1.959964) -> Share:
    """A share with its Wilson interval; NaN limits where there are no trials."""
    if not trials:
        return Share(hits, trials, float("nan"), float("nan"))
    share, square = hits / trials, z * z / trials
    centre = (share + square / 2) / (1 + square)
    half = z * np.sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    return Share(hits, trials, float(max(centre - half, 0.0)), float(min(centre + half, 1.0)))


def measure(rows: Iterable[Mapping[str, Any]]) -> Figures:
    """Read all texts, and compare with the rows' two labels."""
    shown: Counter[str] = Counter()
    pairs: list[tuple[bool, bool]] = []
    disagreed, errors = 0, []
    for row in rows:
        looked = look(row["text"], "answered", speech=Speech(language=""))
        shown.update(names_of(looked.signs))
        first, second = (label == "R" for label in row["labels"])
        if first != second:
            disagreed += 1
            continue
        refused = looked.status in ("refused", "off_role")
        pairs.append((first, refused))
        if refused != first:
            errors.append(str(row["id"]))
    both = sum(label and read for label, read in pairs)
    precision = wilson(both, sum(read for _, read in pairs))
    return Figures(precision, wilson(both, sum(label for label, _ in pairs)), disagreed, dict(shown), errors)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _read_alike(row: Mapping[str, Any]) -> bool:
    return set(row.get("labels", row["class"])) == {row["class"]}


def by_side(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[Share, Share]]:
    """Answers in role that are lost, and refusals that are taken for answers, by assigned side and in all."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for row in filter(_read_alike, rows):
        if "side" not in row:
            continue
        lost = look(row["text"], "answered").status != "answered"
        counts.update((side, row["class"], lost) for side in (row["side"], "all"))
    return {
        side: (
            wilson(counts[side, "a", True], counts[side, "a", True] + counts[side, "a", False]),
            wilson(counts[side, "b", False], counts[side, "b", True] + counts[side, "b", False]),
        )
        for side in ("for", "against", "undecided", "all")
    }


def fit(penalty: float = 1.0, caution: float = 0.2) -> dict[str, float]:
    """Weights of the signs, and ``bias``, by logistic regression on the development texts in all languages.

    Answers are what the scripted model says and the rows with a label in ``opinion_texts``, too, so that refusals are
    as rare as among replies.

    Parameters
    ----------
    penalty : float
        Half of it times the sum of the squared weights is added to the negative log-likelihood.
    caution : float
        What is taken off the bias, since an answer that is lost costs more than a refusal that is passed on.
    """
    texts = [(row["text"], row["status"] == "refused") for row in _rows(_TEXTS / "replies" / "development.jsonl")]
    for name in ("development", "validation"):
        opinions = _rows(_TEXTS / "opinion_texts" / f"{name}.jsonl")
        texts += [(row["text"], False) for row in opinions if row["label"] is not None]
    alike = filter(_read_alike, _rows(_TEXTS / "replies" / "languages.jsonl"))
    texts += [(row["text"], row["class"] == "b") for row in alike if row["class"] != "c"]
    texts = [each for each in texts if not is_notice(each[0])]
    texts += [(said, False) for bank in (phrases.POSTS, phrases.REPORTS) for some in bank.values() for said in some]
    found = [signs(text)[0] for text, _ in texts]
    names = list(found[0])
    x = np.array([[1.0, *(float(row[name]) for name in names)] for row in found])
    side = np.array([-1.0 if refused else 1.0 for _, refused in texts])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        z = side * (x @ weights)
        shrunk = np.concatenate(([0.0], weights[1:])) * penalty
        return float(np.logaddexp(0, z).sum() + shrunk @ weights / 2), x.T @ (side / (1 + np.exp(-z))) + shrunk

    weights = minimize(loss, np.zeros(x.shape[1]), jac=True).x
    weights[0] -= caution
    return dict(zip(["bias", *names], map(float, weights), strict=True))


def main() -> None:
    """Read the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=_DATA, help="labelled texts, one JSON object a line")
    parser.add_argument("--errors", action="store_true", help="list the ids of rows read otherwise")
    parser.add_argument("--fit", action="store_true", help="print weights fitted to the development texts")
    parser.add_argument("--sides", action="store_true", help="print errors by assigned side")
    arguments = parser.parse_args()
    if arguments.sides:
        print(f"{'side':10s} {'answers lost':38s} refusals passed on")
        for side, (lost, passed) in by_side(_rows(_TEXTS / "replies" / "languages.jsonl")).items():
            print(f"{side:10s} {lost!s:38s} {passed}")
        return
    if arguments.fit:
        for name, weight in fit().items():
            print(f"{name:20s} {weight:5.1f}")
        return
    if not arguments.data.is_file():
        parser.error(f"there is no file {arguments.data}")
    found = measure(_rows(arguments.data))
    print(f"precision of refused  {found.precision}")
    print(f"recall of refused     {found.recall}")
    print(f"rows left out, since the labels disagree  {found.disagreed}")
    for sign, number in sorted(found.signs.items()):
        print(f"sign {sign:10s} {number}")
    if arguments.errors:
        print("read otherwise:", *found.errors)


if __name__ == "__main__":
    main()
