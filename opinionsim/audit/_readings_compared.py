"""Compare all readings of the same texts in a store: instruments, self-reports and labels from people."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from opinionsim.analysis import Table, finished, number_text
from opinionsim.audit._label_agreement import coefficients, confusion
from opinionsim.audit._sample import KEYS, NO_OPINION, sample_of
from opinionsim.audit._score import ENOUGH, judged, people_of
from opinionsim.errors import SpecError, StoreError
from opinionsim.foundation.templates import sentences
from opinionsim.messages import spelled_out
from opinionsim.metrics import SELF_REPORT, chosen_kind, none_complete, scale_of, stance_rows
from opinionsim.store import Results

#: Names of what is compared beside instruments, and of the texts that are listed, how many and how much of each.
_OWN, _PEOPLE = "self-report", "people"
_LISTED, _CHARACTERS = 10, 60


def instrument_tables(results: Results, kind: str | None = None, seed: int = 0) -> list[Table]:
    """Make tables that show how all readings of the same texts in the store agree.

    Parameters
    ----------
    results : Results
        Results, whose complete runs give the texts.
    kind : str, optional
        Kind of text; by default the first measured kind, in the order of the column `texts` of runs.
    seed : int
        Seed of the resamples behind intervals.

    Returns
    -------
    list of Table
        Agreement by pair, their confusion, and the texts whose readings differ most. Self-reports are compared with the
        last text of their author. Labels come from the last audit.

    Raises
    ------
    SpecError
        If there is nothing to compare because there is a single instrument without self-reports or labels.
    """
    runs = results.runs[results.runs["status"] == "complete"].drop_duplicates("run_id")
    if runs.empty:
        raise none_complete(results.runs, "to compare")
    rows = stance_rows(runs, results.opinions).drop_duplicates([*KEYS, "instrument_id"])
    said = rows[rows["kind"] != SELF_REPORT]
    chosen = chosen_kind(kind, said.loc[said["value"].notna(), "kind"], runs, "no text to compare")
    said, points = said[said["kind"] == chosen], np.array(scale_of(said).points)
    found = _readings(said)
    reports = rows[rows["kind"] == SELF_REPORT].sort_values("turn").groupby(["run_id", "agent"])["value"].last()
    if len(reports):
        last = said.sort_values("turn").drop_duplicates(["run_id", "agent"], keep="last")
        found[_OWN] = last.set_index(KEYS)[["agent"]].join(reports, on=["run_id", "agent"])["value"]
    try:
        sample = sample_of(results)
        if people_of(sample) and sample.audit.sample["kind"] == chosen:
            found[_PEOPLE] = judged(results, sample)[0].set_index(KEYS)["label"]
    except StoreError:
        pass  # Nobody has drawn texts to label.
    if len(found) < 2:
        raise SpecError(
            f"texts of kind {chosen} only have readings by {', '.join(found)}; add others with `opinionsim measure`, "
            "ask agents with `measurement.self_report`, or draw texts to label with `opinionsim audit sample`"
        )
    evidence = "+".join(sorted(set(runs["evidence"])))
    pairs, counts = [], []
    for first, second in combinations(found, 2):
        both = pd.concat([found[first], found[second]], axis=1, join="inner").to_numpy(float).T
        of = {"first": first, "second": second, "evidence": evidence}
        pairs.append({**of, **_agreement(both, points, seed)})
        if np.isin(both[~np.isnan(both)], points).all():
            placed = np.nan_to_num(both, nan=np.inf)
            matrix = confusion(placed[0], placed[1], [*points, np.inf])
            for point, row in zip([*points, NO_OPINION], matrix.astype(int), strict=True):
                counts.append({**of, "reading": point, **dict(zip(map(str, [*points, NO_OPINION]), row, strict=True))})
    shown = {"first": "first", "second": "second", "n": "texts", "placed": "both read", "alone": "one alone"}
    shown |= {"opposite": "opposite", "equal": "equal"}
    shown |= {"weighted_kappa": "weighted kappa", "shift": "second less first"}
    listed = _most_divided(found, results.turns, evidence)
    made: list[tuple[str, str, list[dict[str, Any]], dict[str, str], int]] = [
        ("instruments", "Readings of the same texts", pairs, shown, 2),
        ("confusion-of-instruments", "Readings by readings", counts, {}, 3),
        ("divided-texts", "Texts whose readings differ most", listed, {}, 2),
    ]
    told: dict[str, Any] = {"kind": chosen, "enough": ENOUGH, "listed": _LISTED}
    return [_table(*each, **told) for each in made if each[2]]


def _readings(said: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """Readings by instrument, named by its classifier, and by the beginning of its id where that is not enough."""
    classifiers = said.drop_duplicates("instrument_id").set_index("instrument_id")["classifier"].astype(str)
    several = set(classifiers[classifiers.duplicated()])
    return {
        f"{name} {key[:6]}" if name in several else name: said[said["instrument_id"] == key].set_index(KEYS)["value"]
        for key, name in zip(classifiers.index.astype(str), classifiers, strict=True)
    }


def _agreement(both: np.ndarray, points: np.ndarray, seed: int) -> dict[str, Any]:
    """How two readings of the same texts (2, n) agree, NaN for no opinion."""
    known = ~np.isnan(both)
    first, second = both[:, known.all(axis=0)]
    n, neutral = len(first), points[len(points) // 2]
    found: dict[str, Any] = {"n": both.shape[1], "placed": n, "alone": int((known[0] != known[1]).sum())}
    found["opposite"] = int(((first - neutral) * (second - neutral) < 0).sum())
    found["equal"] = float((first == second).mean()) if n else np.nan
    found["shift"] = float((second - first).mean()) if n else np.nan
    kappa = None
    if n >= ENOUGH and np.isin([first, second], points).all():
        kappa = coefficients(both, points, seed=seed)["weighted_kappa"]
    ends = (np.nan,) * 3 if kappa is None else (kappa.value, kappa.low, kappa.high)
    return found | dict(zip(("weighted_kappa", "weighted_kappa_ci_low", "weighted_kappa_ci_high"), ends, strict=True))


def _most_divided(found: dict[str, pd.Series[float]], turns: pd.DataFrame, evidence: str) -> list[dict[str, Any]]:
    """The texts of which readings lie farthest apart, with these."""
    beside = pd.concat(found, axis=1)
    apart = beside.max(axis=1) - beside.min(axis=1)
    far = apart[apart > 0].sort_values(ascending=False, kind="stable").index[:_LISTED]
    words = turns.set_index(KEYS)["message"]
    rows = []
    for key in far:
        text = spelled_out(" ".join(str(words[key]).split()))
        short = text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"
        read = {name: NO_OPINION if np.isnan(value) else f"{value:g}" for name, value in beside.loc[key].items()}
        rows.append({"run": str(key[0])[:8], "turn": int(key[1]), **read, "text": short, "evidence": evidence})
    return rows


def _table(
    name: str, heading: str, rows: list[dict[str, Any]], shown: dict[str, str], labels: int, **told: Any
) -> Table:
    heads = shown or {column: column for column in rows[0] if column != "evidence"}
    cells = [tuple(number_text(row, column, "-") for column in heads) for row in rows]
    notes = sentences("opinionsim.audit", "notes.txt", table=name, **told)
    return finished(heading, pd.DataFrame(rows), (tuple(heads.values()),), cells, labels, notes, name)
