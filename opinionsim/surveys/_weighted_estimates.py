"""Design-based estimates for weighted respondents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opinionsim.errors import SurveyError

if TYPE_CHECKING:
    import pandas as pd


def estimates(values: Any, weights: Any = None, groups: Sequence[Any] | None = None) -> pd.DataFrame:
    """Weighted means of subgroups, with design-based standard errors.

    Parameters
    ----------
    values : array-like of float, shape (n,)
        Values of which to take the mean, one per respondent; NaN if there is none.
    weights : array-like of float, shape (n,), optional
        Weights for analysis, at least 0; by default all are equal, as for respondents drawn by weight.
    groups : sequence, length n, optional
        Subgroup of each respondent; None or NaN means no subgroup. By default, there is one group, ``all``.

    Returns
    -------
    DataFrame
        One row per subgroup, sorted: ``group``, ``n`` (respondents with a value), ``effective_n`` (Kish: (sum w)^2 /
        sum w^2), ``mean`` (sum w y / sum w) and ``standard_error``. The standard error is that of a ratio by Taylor
        linearisation, for draws with replacement: with z_i = w_i (y_i - mean) / sum w inside the subgroup and 0 outside
        it, the root of n / (n - 1) sum z_i^2 over all n respondents. It treats the size of a subgroup as random and
        ignores strata and clusters. It is NaN for fewer than two respondents or without weight.

    Raises
    ------
    SurveyError
        If lengths differ, a value is infinite, or a weight is missing, negative or infinite.

    References
    ----------
    Kish, Survey Sampling (1965); Särndal, Swensson and Wretman, Model Assisted Survey Sampling (1992), 5.5 and 5.8.
    """
    import pandas as pd

    y = np.asarray(values, dtype=np.float64)
    w = np.ones(y.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    labels = pd.Series(["all"] * y.size if groups is None else list(groups), dtype=object)
    if y.ndim != 1 or w.shape != y.shape or len(labels) != len(y):
        raise SurveyError(
            f"values, weights and groups must have one entry per respondent; got shapes {y.shape}, {w.shape} and "
            f"{len(labels)} groups"
        )
    if np.isinf(y).any():
        raise SurveyError("values must be finite, or NaN if missing")
    if not (np.isfinite(w) & (w >= 0)).all():
        raise SurveyError(f"weights must be 0 or more, and finite; got {w[~(np.isfinite(w) & (w >= 0))][0]:g}")
    n = len(y)
    rows = []
    for group in sorted(labels.dropna().unique(), key=lambda each: (str(type(each)), each)):
        inside = (labels == group).to_numpy() & ~np.isnan(y)
        total = w[inside].sum()
        mean = (w[inside] @ y[inside]) / total if total else np.nan
        z = w[inside] * (y[inside] - mean) / total if total else np.array([np.nan])
        error = np.sqrt(n / (n - 1) * (z @ z)) if inside.sum() > 1 else np.nan
        effective = total**2 / (w[inside] @ w[inside]) if total else 0.0
        rows.append((group, int(inside.sum()), effective, mean, error))
    return pd.DataFrame(rows, columns=["group", "n", "effective_n", "mean", "standard_error"])
