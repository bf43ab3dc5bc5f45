"""Tables and figure of the study, from its store: `python tables.py results/small-model.sqlite [FOLDER]`.

Every combination of five assigned opinions, ten personas, two sides of the claim, three posts and two kinds of labels
is read once, so that the sums of squares of the factors add up. Shares are of the variance of all 600 readings.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

import opinionsim as osim

FACTORS = {
    "assigned": "opinion that is assigned",
    "post": "post before the question",
    "labels": "letters or numbers",
    "framing": "side of the claim",
    "agent": "persona",
}
POSTS = {"for": "a post for", "nothing": "no post", "against": "a post against"}


def readings(store: str) -> pd.DataFrame:
    """One row a reading: its factors, the expectation, the off-scale mass and the entropy in bits."""
    results = osim.load(store)
    found = results.opinions[results.opinions["classifier"] == "belief"]
    found = found.merge(results.runs[["run_id", "cell", "framing"]], on=["run_id", "cell"])
    found[["labels", "post"]] = found["variable"].astype(str).str.split("-", n=1, expand=True)
    shares = found[[f"p_{point}" for point in range(-2, 3)]].to_numpy(float)
    found["entropy"] = stats.entropy(shares, axis=1, base=2)
    columns = ["labels", "post", "framing", "assigned", "agent", "expectation", "off_scale", "entropy"]
    return found.rename(columns={"assigned_opinion": "assigned"})[columns].sort_values(columns[:5], ignore_index=True)


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Share of the variance and range of means by factor; the factors' combinations hold the rest of the variance."""
    value = table["expectation"]
    rows, total = [], ((value - value.mean()) ** 2).sum()
    for factor, name in FACTORS.items():
        means = value.groupby(table[factor]).mean()
        share = ((table[factor].map(means).astype(float) - value.mean()) ** 2).sum() / total
        rows.append({"factor": name, "share of variance": share, "range of means": float(np.ptp(means))})
    both = value.groupby([table["labels"], table["post"]]).transform("mean")
    crossed = ((both - value.mean()) ** 2).sum() / total - rows[1]["share of variance"] - rows[2]["share of variance"]
    rows.append({"factor": "post with labels", "share of variance": crossed})
    left = 1 - sum(row["share of variance"] for row in rows)
    return pd.DataFrame([*rows, {"factor": "other combinations", "share of variance": left}])


def contrasts(table: pd.DataFrame) -> pd.DataFrame:
    """Differences with t intervals over the ten personas, for letters and for numbers."""
    pairs = {
        "assigned +2 less -2": ("assigned", 2, -2),
        "a post for less a post against": ("post", "for", "against"),
        "truth less falsehood": ("framing", "truth", "falsehood"),
    }
    rows = []
    for labels, own in table.groupby("labels"):
        for name, (factor, high, low) in pairs.items():
            means = own.pivot_table(index="agent", columns=factor, values="expectation")
            gaps = means[high] - means[low]
            ends = stats.t.interval(0.95, len(gaps) - 1, gaps.mean(), stats.sem(gaps))
            rows.append({"labels": labels, "contrast": name, "mean": gaps.mean(), "low": ends[0], "high": ends[1]})
    return pd.DataFrame(rows)


def drawn(table: pd.DataFrame, target: Path) -> None:
    """Mean expectation by assigned opinion, a line a post, a panel a kind of labels."""
    figure, axes = plt.subplots(1, 2, figsize=(174 / 25.4, 80 / 25.4), sharey=True, layout="constrained")
    for panel, (labels, own) in zip(axes, table.groupby("labels"), strict=True):
        for (post, name), mark in zip(POSTS.items(), "^os", strict=True):
            means = own[own["post"] == post].groupby("assigned")["expectation"].mean()
            panel.plot(means.index, means, marker=mark, markersize=4, label=name)
        panel.plot([-2, 2], [-2, 2], color="0.7", linestyle=":", linewidth=1, label="as assigned")
        panel.set(
            title=f"answers with {labels}", xlabel="opinion that is assigned", xticks=range(-2, 3), ylim=(-2.1, 2.1)
        )
    axes[0].set_ylabel("expected answer")
    axes[1].legend(frameon=False, fontsize=7)
    figure.suptitle("SmolLM2-135M, one model: about it alone, not about people", fontsize=8)
    figure.savefig(target, dpi=200)


def main() -> None:
    """Write the tables and the figure."""
    store, folder = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    table = readings(store)
    off = table.groupby(["labels", "post"])[["expectation", "off_scale", "entropy"]].mean()
    made = {"effects": effects(table), "contrasts": contrasts(table), "means": off.reset_index()}
    table.to_csv(folder / "readings.csv", index=False, float_format="%.4f")
    for name, each in made.items():
        each.to_csv(folder / f"{name}.csv", index=False, float_format="%.3f")
        print(each.round(2).to_string(index=False), "\n")
    drawn(table, folder / "readings.png")


if __name__ == "__main__":
    main()
