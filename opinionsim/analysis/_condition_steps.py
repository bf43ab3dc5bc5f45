"""The table of means by condition over steps and at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from opinionsim.analysis._asked import Asked
from opinionsim.analysis._means import Estimand
from opinionsim.analysis._opinion_tables import opinion_notes
from opinionsim.analysis._printed_table import Table
from opinionsim.analysis._units import (
    MEASURES,
    counted,
    default_axes,
    interval_notes,
    own_metrics,
    units_of,
    with_intervals,
)
from opinionsim.errors import SpecError
from opinionsim.metrics import condition_rows, in_order, one_wording, step_metrics, usable_runs
from opinionsim.registry import part
from opinionsim.store import Results

#: Moments of a table where none are named, the end among them.
_MOMENTS = 6


@part("table", name="conditions", fits=lambda asked: asked.stance)
def condition_table(
    results: Results,
    kind: str | None = None,
    wording: str | None = None,
    estimand: Estimand | None = None,
    steps: Sequence[int] | None = None,
) -> Table:
    """Mean opinion and diversity by condition over steps and at the end, and how many agents they are of.

    Parameters
    ----------
    results : Results
        The results; complete runs count.
    kind, wording, estimand
        As for :func:`opinionsim.analysis.table`.
    steps : sequence of int, optional
        Steps to show in addition to the end; default five at equal distances, the first being 0.

    Returns
    -------
    Table
        One row a condition and step, and one for the end, whose numbers are those of the table ``opinions``.

    Raises
    ------
    SpecError
        As for :func:`opinionsim.analysis.table`, or if there is no such step.
    """
    asked = Asked(results, kind, wording, estimand=estimand)
    runs, _ = one_wording(asked.runs, wording)
    usable, axes = usable_runs(runs), default_axes(runs)
    used, chosen = counted(runs, asked.metrics, asked.kind)
    ends, _ = condition_rows(runs, used, axes)
    last = int(usable["steps"].max())
    moments = np.unique(np.linspace(0, last, _MOMENTS).astype(int)) if steps is None else np.asarray(steps)
    if not np.isin(moments, range(last + 1)).all():
        raise SpecError(f"steps must be from 0 to {last}, the last step of these runs; got {list(moments)}")
    by_step = step_metrics(usable, asked.opinions, chosen, turns=asked.turns).assign(kind=chosen)
    by_step = own_metrics(usable, by_step[by_step["step"].isin(moments)])
    keys = ["run_id", "cell"]
    of_runs = ends[[*keys, *dict.fromkeys([*axes, "topic", "block"])]].merge(usable[[*keys, "steps"]].rename(
        columns={"steps": "last"}), on=keys)  # fmt: skip
    rows = by_step.merge(of_runs, on=keys)
    ends = ends.merge(of_runs[[*keys, "last"]], on=keys)
    rows = pd.concat(
        [rows[rows["step"] < rows["last"]].assign(end=False), ends.assign(step=ends["last"], end=True)],
        ignore_index=True,
    )
    by = [*axes, "step", "end"]
    grouped = rows.groupby([*by, "evidence"], dropna=False, sort=False)
    sums = grouped[["withheld", "n_measured", "n_never"]].sum().rename(columns={"withheld": "n_withheld"})
    frame = sums.astype(int).assign(n_runs=grouped.size()).reset_index().sort_values("step", kind="stable")
    frame, found = with_intervals(in_order(frame, axes, usable), units_of(rows, by), by, asked.estimand, MEASURES)
    frame = frame.assign(kind=chosen)
    shown = {
        "step": frame["step"].astype(str) + frame["end"].map({True: ", end", False: ""}),
        "units": frame["units"].where(frame["units"] != "", "none"),
        **({"withheld": frame["n_withheld"]} if frame["n_withheld"].any() else {}),
        "measured": frame["n_measured"],
        "missing": frame["n_never"],
    }
    columns = [f"{name}{end}" for name in MEASURES for end in ("", "_ci_low", "_ci_high")]
    printed = pd.concat([frame[axes], pd.DataFrame(shown), frame[[*columns, "evidence"]]], axis=1)
    notes = [
        "Measured, missing: agents with and without a measured opinion so far. End: the last measured opinion of each "
        f"agent. Diversity: standard deviation (ddof {used['ddof'].max()}) over agents. `plot ribbons --csv` has every "
        "step.",
        *opinion_notes(runs, asked.metrics, used, chosen, interval_notes(*found), ends=False),
    ]
    made = Table.of("Opinions by condition over steps", printed, [*axes, "step", "units"], notes, "conditions")
    first = made.header[0][:-2]
    heads = (*("" for _ in first), "mean opinion", "diversity"), (*first, "[95 % CI]", "[95 % CI]")
    return replace(made, header=heads, frame=frame.reset_index(drop=True))
