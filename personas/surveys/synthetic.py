"""Makes the synthetic survey: `python synthetic.py` writes synthetic.csv beside it, always the same.

Nobody was asked. Age, education and residence are correlated, ideology follows from them, and attitudes from all.
Some people answer less often than others: weights are the inverse of the chance to answer, with mean 1, and 60 rows
have none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

YEAR = 2025
N_WEIGHTED, N_UNWEIGHTED = 1500, 60
ANSWERS = ("strongly disagree", "disagree", "neither", "agree", "strongly agree")
IDEOLOGIES = ("far left", "left", "centre", "right", "far right")
#: Effect on each attitude of standing on the right, age in decades from 45, a university degree, and living in a city.
ATTITUDES = {
    "climate": (-0.9, -0.05, 0.3, 0.2),
    "taxes": (-0.8, 0.05, -0.1, 0.1),
    "border": (0.9, 0.1, -0.4, -0.2),
    "machines": (0.2, -0.25, 0.3, 0.1),
}
HEADER = (
    "birth_year", "gender", "education", "residence", "children", "ideology", "interest", *ATTITUDES, "weight",
)  # fmt: skip


def main() -> None:
    """Write the file."""
    Path(__file__).with_suffix(".csv").write_text(text(), encoding="utf-8", newline="")


def text() -> str:
    """The file as text."""
    # Uniform numbers alone: the same in every version of numpy.
    rng = np.random.default_rng(20250101)
    rows: list[list[object]] = []
    chances: list[float] = []
    while len(rows) < N_WEIGHTED + N_UNWEIGHTED:
        row, chance = _person(rng)
        if rng.random() < chance:
            rows.append(row)
            chances.append(chance)
    without = set(np.argsort(rng.random(len(rows)))[:N_UNWEIGHTED].tolist())
    inverse = [0.0 if i in without else 1 / chance for i, chance in enumerate(chances)]
    mean = sum(inverse) / N_WEIGHTED
    weights = ["" if i in without else f"{each / mean:.4f}" for i, each in enumerate(inverse)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows([*row, weight] for row, weight in zip(rows, weights, strict=True))
    return file.getvalue()


def _person(rng: np.random.Generator) -> tuple[list[object], float]:
    """The answers of a person, and the chance that they are given."""
    age = 18 + int(70 * rng.random() ** 1.3)
    decades = (age - 45) / 10
    gender = _pick(rng, ("woman", "man", "other"), (0.505, 0.485, 0.01))
    degree = 0.38 - 0.04 * decades
    education = _pick(rng, ("university", "primary", "secondary"), (degree, 0.12 + 0.02 * decades, 0.5))
    city = 0.4 + 0.15 * (education == "university") - 0.02 * decades
    residence = _pick(rng, ("city", "town", "village"), (city, 0.3, 0.35))
    parent = 0.55 if 28 <= age < 55 else 0.08
    children = _pick(rng, ("yes", "no", "no answer"), (parent, 0.98 - parent, 0.02))
    right = _noise(rng) + 0.15 * decades - 0.35 * (education == "university") - 0.4 * (residence == "city") + 0.25
    ideology = IDEOLOGIES[int(np.searchsorted((-1.6, -0.5, 0.5, 1.6), right))]
    interested = 0.25 + 0.15 * (education == "university") + 0.03 * decades + 0.05 * abs(right)
    interest = _pick(rng, ("high", "low", "medium"), (interested, 0.3 - 0.1 * (education == "university"), 0.4))
    if rng.random() < 0.08 + 0.08 * (interest == "low"):
        ideology = "not sure"
    causes = (right, decades, education == "university", residence == "city")
    answers = [_answer(rng, sum(a * b for a, b in zip(effects, causes, strict=True))) for effects in ATTITUDES.values()]
    chance = 0.2 + 0.15 * (education == "university") + 0.04 * decades + 0.1 * (interest == "high")
    return [YEAR - age, gender, education, residence, children, ideology, interest, *answers], max(0.05, chance)


def _pick(rng: np.random.Generator, values: Sequence[str], shares: Sequence[float]) -> str:
    return values[int(np.searchsorted(np.cumsum(shares), rng.random() * sum(shares)))]


def _noise(rng: np.random.Generator) -> float:
    """A number that is nearly normal, with mean 0 and variance 1."""
    return float(rng.random(12).sum() - 6)


def _answer(rng: np.random.Generator, mean: float) -> str:
    """An answer to a question about an attitude; 2 in 100 give none."""
    place = int(np.searchsorted((-1.5, -0.5, 0.5, 1.5), mean + _noise(rng)))
    return "" if rng.random() < 0.02 else ANSWERS[place]


if __name__ == "__main__":
    main()
