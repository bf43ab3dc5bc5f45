"""Table of outcomes: the shapes of final opinions of runs, by bias and diversity (A17)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from opinionsim.analysis._printed_table import Table
from opinionsim.analysis._units import counted, default_axes
from opinionsim.metrics import cut, in_order, one_wording, scale_of
from opinionsim.registry import part

#: Largest distance of the mean from neutral that is central, and the ends of low and medium diversity, in halves of the
#: width of the scale. Equal shares of all opinions have a diversity of about 0.7, one half at each end has 1.
CENTRAL, LOW, MEDIUM = 0.25, 0.25, 0.75
#: Outcomes by diversity (low, medium, high), each where the mean is central and where it is not.
_NAMES = np.array(
    [
        ["central consensus", "consensus off the centre"],
        ["diversified", "diversified off the centre"],
        ["polarized", "polarized off the centre"],
    ]
)
#: By how much the bounds are moved to see whether an outcome rests on them.
_MOVED = (0.8, 1.2)


@part("table", name="outcomes", fits=lambda asked: asked.stance and (asked.as_published or asked.what))
def outcome_table(
    runs: pd.DataFrame,
    opinions: pd.DataFrame,
    metrics: pd.DataFrame,
    kind: str | None = None,
    wording: str | None = None,
) -> Table:
    """Tabulate the shapes of final opinions by condition.

    Parameters
    ----------
    runs, opinions, metrics : DataFrame
        Frames of a store.
    kind, wording
        As for :func:`opinionsim.analysis.tables`.

    Returns
    -------
    Table
        Numbers of complete runs by the shape of their final opinions, and numbers of runs whose shape would change if
        all bounds were a fifth narrower or wider.

    Raises
    ------
    SpecError
        If no complete run has a measured stance, or none has that kind of text or wording.

    Notes
    -----
    A17. The paper names two of these shapes, *central consensus* (low bias, low diversity) and *diversified* (low bias,
    medium diversity), and gives no bounds. The other names and all bounds come from this package.
    """
    runs, _ = one_wording(runs, wording)
    used, _ = counted(runs, metrics, kind)
    scale, axes = scale_of(cut(opinions)), default_axes(runs)
    half = (scale.highest - scale.lowest) / 2
    found = used[["run_id", "cell", "bias", "diversity"]].dropna()
    found = found.merge(runs[["run_id", "cell", "evidence", *axes]], on=["run_id", "cell"])
    off, diversity = (found["bias"] - scale.neutral).abs() / half, found["diversity"] / half
    here, *moved = (
        _NAMES[np.digitize(diversity, [LOW * by, MEDIUM * by], right=True), (off > CENTRAL * by).astype(int)]
        for by in (1.0, *_MOVED)
    )
    found["unsettled"] = np.any([each != here for each in moved], axis=0)
    names = [name for name in _NAMES.T.ravel() if name in here]
    found = found.assign(**{name: here == name for name in names}, runs=1)
    columns = [*names, "unsettled", "runs"]
    frame = found.groupby([*axes, "evidence"], dropna=False, sort=False)[columns].sum().reset_index()
    frame = in_order(frame, axes, runs)
    notes = [
        f"Outcomes: the mean is central within {CENTRAL * half:g} of neutral; diversity is low up to {LOW * half:g}, "
        f"medium up to {MEDIUM * half:g}. These bounds come from this package; the paper gives none.",
        "Unsettled: runs whose outcome would change if all bounds were a fifth narrower or wider.",
    ]
    return Table.of("Outcomes by condition", frame, axes, notes, "outcomes")
