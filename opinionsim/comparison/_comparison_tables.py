"""Tables of a comparison, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from operator import itemgetter
from typing import Any

import pandas as pd

from opinionsim.analysis import Table, finished, number_text
from opinionsim.metrics import spell_mean

#: Notes on how to read findings and scores, and on noise, which every comparison prints.
_READINGS = (
    "Influence adds: the gain in the log score of an update over the nearest candidate without influence. Recovered: "
    "the share of 20 studies of this size, simulated from the best fit, in which the analysis finds the model behind "
    "them. Gap: how much better a table of shares by own rating and message predicts; by chance, the largest gap in "
    "these studies.",
    "Noise is the variation between readings of the same opinion. An error that persists for an agent is not noise: no "
    "repeated question reveals it, and the models fit it as an opinion.",
)
_SCORES = (
    "Score: log score of an update in a held-out run, mean over runs and standard error over blocks. Behind: the best "
    "score minus this one, paired by run. Tie: within one standard error of the best, so not worse. Reached: share of "
    "the way from persistence to the table of shares."
)


def comparison_tables(found: Any) -> list[Table]:
    """Findings with their trust, scores, and parameters of the best candidates, as tables.

    `found` is a comparison, or has its frames `findings`, `scores`, `fits` and `trust`.
    """
    trust = found.trust.drop_duplicates("cell")[["cell", "recovered", "gap", "worst_gap", "noise"]]
    said = [f"{row['cell']}: {row['statement']}" for row in found.findings.to_dict("records")]
    findings, fits = found.findings.merge(trust, on="cell"), found.fits
    best = fits["cell"].map(dict(zip(findings["cell"], findings["best"], strict=True)))
    own = fits[(fits["candidate"] == best) & (fits["reason"] == "")]
    own = own.rename(columns={"low": "value_ci_low", "high": "value_ci_high"})
    reasons = fits[fits["reason"] != ""].groupby(["candidate", "reason"], sort=False)["cell"].apply(", ".join)
    lacking = [f"Not applicable: {row['candidate']} ({row['reason']}) to {row['cell']}." for row in
               reasons.reset_index().to_dict("records")]  # fmt: skip

    def made(heading: str, frame: pd.DataFrame, n_labels: int, columns: Mapping[str, Callable[[Any], str]],
             notes: Sequence[str]) -> Table:  # fmt: skip
        """Make a table with a cell for each column from each row of the frame."""
        rows = [tuple(cell(row) for cell in columns.values()) for row in frame.to_dict("records")]
        return finished(heading, frame, (tuple(columns),), rows, n_labels, notes)

    condition, candidate = {"condition": itemgetter("cell")}, {"candidate": itemgetter("candidate")}
    return [
        made("Findings", findings, 2, {
            **condition,
            "finding": itemgetter("finding"),
            "influence adds": lambda row: spell_mean(row["gain"], row["gain_error"]),
            "recovered": lambda row: f"{row['recovered']:.0%}",
            "gap": lambda row: "-" if isnan(row["gap"]) else spell_mean(row["gap"], alone=".3f"),
            "by chance": lambda row: "-" if isnan(row["gap"]) else spell_mean(row["worst_gap"], alone=".3f"),
            "runs": lambda row: f"{row['n_runs']:,}",
            "updates": lambda row: f"{row['n_updates']:,}",
        }, [*said, f"Errors of ratings: {', '.join(dict.fromkeys(trust['noise']))}.", *_READINGS]),
        made("Scores of runs held out", found.scores, 2, {
            **condition,
            **candidate,
            "score": lambda row: spell_mean(row["score"], row["standard_error"]),
            "behind": lambda row: spell_mean(row["behind"], row["behind_error"]) if row["behind"] else "-",
            "": lambda row: "tie" if row["tie"] else "",
            "reached": lambda row: "-" if isnan(row["reached"]) else f"{row['reached']:.0%}",
        }, [_SCORES, *lacking]),
        made("Parameters of the best candidate", own, 3, {
            **condition,
            **candidate,
            "parameter": itemgetter("parameter"),
            "value [95 %]": lambda row: number_text(row, "value"),
        }, ["The intervals of the model's own parameters are profiles of the likelihood."]),
    ]  # fmt: skip
