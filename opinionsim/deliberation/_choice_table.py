"""Table of choices between texts, with shares, an exact test, and a mixed logit over people and topics."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from opinionsim.analysis import NO_FINDING, Table, level_text, p_text
from opinionsim.deliberation._mixed_logit import mixed_logit
from opinionsim.deliberation._structure_acts import CHOOSE
from opinionsim.messages import SPOKEN
from opinionsim.metrics import WITHOUT_FINDING, condition_axes, evidence_of
from opinionsim.registry import part

if TYPE_CHECKING:
    from opinionsim.store import Results


def choices(results: Results) -> pd.DataFrame:
    """One row per judgement of a complete run, a judge's choice from a pair of texts; key ``cell, run_id, turn``.

    Returns
    -------
    DataFrame
        cell, run_id, turn; judge, a participant of one run; pair, from 0; chosen, 1.0 for the text that the field
        `text` of the interaction names and 0.0 for the other; first, 1.0 if the judge chose the text shown first. Both
        are NaN if the reply was refused, empty or unreadable (see status); evidence.
    """
    cells = results.runs.query("status == 'complete'")[["cell", "run_id"]].drop_duplicates()
    found = cells.merge(results.turns[results.turns["kind"] == CHOOSE.kind], on="run_id")
    read = found["status"].isin(SPOKEN) & found["message"].isin(["A", "B"])
    first = (found["message"] == "A").astype(float).where(read)
    leads = found["reads"].str[0].str.split("-")
    return found[["cell", "run_id", "turn", "status", "evidence"]].assign(
        judge=found["run_id"] + "/" + found["agent"].astype(str),
        pair=leads.str[1].astype(int),
        first=first,
        chosen=first.where(leads.str[0] == "text", 1 - first),
    )


@part("table", name="choices")
def choice_table(results: Results) -> Table | None:
    """Tabulate choices for each topic and for all topics together (Plurals; B8).

    Returns
    -------
    Table or None
        Share of judgements that chose the text, with the exact interval of Clopper and Pearson and the exact two-sided
        binomial test against one half; share of judgements that chose the text shown first; odds for a typical judge
        with the log odds of :func:`opinionsim.deliberation.mixed_logit`; and the variances of judges and topics. None
        for results without choices.
    """
    found = choices(results)
    if found.empty:
        return None
    runs = results.ordered_runs[results.ordered_runs["cell"].isin(found["cell"])].drop_duplicates("cell")
    axes = sorted(condition_axes(runs), key=lambda axis: "interaction" not in axis)
    axes = next(([axis] for axis in axes if runs[axis].is_unique), axes)
    levels = runs[["cell", *axes]].itertuples(index=False)
    topics = {cell: ", ".join(map(level_text, own)) or cell for cell, *own in levels}
    rows = [{"topic": "overall", **_row(found)}] if len(topics) > 1 else []
    rows += [{"topic": topics[cell], **_row(found[found["cell"] == cell])} for cell in topics]
    frame = pd.DataFrame(rows)
    lost = found.loc[found["chosen"].isna(), "status"].value_counts()
    missing = ", ".join(f"{n} {how}" for how, n in lost.items()) or "none"
    notes = [
        "Share: how often judges chose the text and not the other, with an exact interval (Clopper-Pearson). p: exact "
        "two-sided binomial test against one half, which assumes independent choices.",
        f"Missing: {missing}; no column counts them. First shown: share of choices of the text shown first.",
        "Odds: for a typical judge, from a logit with random intercepts for judges and, overall, for topics. Log odds "
        "have an interval. var.: variances of the intercepts.",
        *([NO_FINDING] if frame["evidence"].isin(WITHOUT_FINDING).any() else []),
    ]
    printed = Table.of("Choices between texts", frame.assign(p=frame["p"].map(p_text)), ["topic"], notes, "choices")
    return replace(printed, frame=frame)


def _row(own: pd.DataFrame) -> dict[str, Any]:
    """The numbers of some judgements."""
    from scipy.stats import binomtest

    known, evidence = own.dropna(subset=["chosen"]), evidence_of(own["evidence"])
    n, chosen = len(known), int(known["chosen"].sum())
    test, logit = binomtest(chosen, n) if n else None, mixed_logit(known["chosen"], known["judge"], known["cell"])
    low, high = test.proportion_ci() if test else (math.nan, math.nan)
    counts = {"judges": own["judge"].nunique(), "pairs": len(own[["cell", "pair"]].drop_duplicates())}
    return {
        **{**counts, "choices": n, "missing": len(own) - n, "chosen": chosen},
        **{"share": known["chosen"].mean(), "share_ci_low": low, "share_ci_high": high},
        "p": test.pvalue if test and evidence not in WITHOUT_FINDING else math.nan,
        **{"first shown": known["first"].mean(), "odds": math.exp(logit.intercept), "log odds": logit.intercept},
        **{"log odds_ci_low": logit.low, "log odds_ci_high": logit.high},
        **{"var. persons": logit.persons, "var. topics": logit.topics, "evidence": evidence},
    }
