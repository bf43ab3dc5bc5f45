"""The table of means by condition over steps and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from opinionsim.analysis._asked import Asked
from opinionsim.analysis._means import Estimand, no_estimate
from opinionsim.analysis._opinion_tables import opinion_notes
from opinionsim.analysis._printed_table import Table
from opinionsim.analysis._units import MEASURES, METRIC_KEYS, by_condition, default_axes, interval_notes
from opinionsim.errors import SpecError
from opinionsim.metrics import in_order, one_wording, step_metrics, usable_runs
from opinionsim.registry import part
from opinionsim.store import Results

#: Moments of a table where none are named, the end among them.
_MOMENTS = 6
#: Columns of the frame, and of metrics that differ by step.
_NAMED = ("step", "end", "n_runs", "n_withheld", "n_measured", "n_never")
_OF_STEPS = [*MEASURES, "n_measured", "n_never", "withheld"]


@part("table", name="conditions", fits=lambda asked: asked.stance)
def condition_table(
    results: Results,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
    steps: Sequence[int] | None = None,
) -> Table:
    """Tabulate mean opinion, diversity and number of agents by condition over steps and at the end.

    Parameters
    ----------
    results : Results
        Results; only complete runs are used.
    kind, wording, estimand
        As for :func:`opinionsim.analysis.table`.
    steps : sequence of int, optional
        Steps to show in addition to the end. By default, five equally spaced steps that begin with 0.

    Returns
    -------
    Table
        One row per condition and step, and one row for the end with the numbers of the table ``opinions``.

    Raises
    ------
    SpecError
        As for :func:`opinionsim.analysis.table`, or if there is no such step.
    """
    asked = Asked(results, kind, wording, estimand=estimand)
    runs, _ = one_wording(asked.runs, wording)
    axes, last = default_axes(runs), int(usable_runs(runs)["steps"].max())
    at = np.unique(np.linspace(0, last, _MOMENTS).astype(int)) if steps is None else np.asarray(steps)
    if not np.isin(at, range(last + 1)).all():
        raise SpecError(f"steps must be from 0 to {last}, the last step of these runs; got {list(at)}")
    end = by_condition(runs, asked.metrics, axes, asked.kind, asked.estimand)
    every = step_metrics(usable_runs(runs), asked.opinions, end.kind, turns=asked.turns).assign(kind=end.kind)
    lasting = every.groupby(METRIC_KEYS, dropna=False)["step"].transform("max")
    keys = [*axes, "evidence"]
    lengths = runs[["run_id", "cell", "steps"]].rename(columns={"steps": "step"})
    ends = end.rows[["run_id", "cell", *keys]].merge(lengths).groupby(keys, dropna=False)["step"].max().reset_index()
    found = [end.frame.merge(ends, on=keys).assign(end=True)]
    for step, now in every[every["step"].isin(at) & (every["step"] < lasting)].groupby("step"):
        then = asked.metrics.drop(columns=_OF_STEPS).merge(now[[*METRIC_KEYS, *_OF_STEPS]], on=METRIC_KEYS)
        own = by_condition(runs, then, axes, end.kind, asked.estimand).frame
        found.append(own.assign(step=step, end=False))
    frame = pd.concat(found, ignore_index=True).sort_values("step", kind="stable")
    frame = in_order(frame, axes, usable_runs(runs)).reset_index(drop=True)
    columns = [f"{name}{bound}" for name in MEASURES for bound in ("", "_ci_low", "_ci_high")]
    shown = {
        "step": frame["step"].astype(str) + frame["end"].map({True: ", end", False: ""}),
        "units": frame["units"].where(frame["units"] != "", "none"),
        **({"withheld": frame["n_withheld"]} if frame["n_withheld"].any() else {}),
        "measured": frame["n_measured"],
        "missing": frame["n_never"],
    }
    printed = pd.concat([frame[axes], pd.DataFrame(shown), frame[[*columns, "evidence"]]], axis=1)
    notes = [
        "Measured, missing: agents with and without a measured opinion so far. End: each agent's last measured "
        f"opinion. Diversity: standard deviation (ddof {asked.ddof}) over agents. `plot ribbons --csv` has every step.",
        *opinion_notes(runs, asked.metrics, end.rows, end.kind, interval_notes(*end.estimates), ends=False),
    ]
    made = Table.of("Opinions by condition over steps", printed, [*axes, "step", "units"], notes, "conditions")
    first = made.header[0][:-2]
    heads = (*("" for _ in first), "mean opinion", "diversity"), (*first, "[95 % CI]", "[95 % CI]")
    kept = [*axes, *_NAMED, *columns, *no_estimate("").basis, "kind", "evidence"]
    return replace(made, header=heads, frame=frame[kept])
