"""Frames of runs and metrics with given values for topics, blocks and conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from tests.support.frames import run_row


def measured_runs(rows: Iterable[dict[str, Any]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and their metrics; each row gives bias and diversity beside columns of the runs frame."""
    runs, metrics = [], []
    for number, given in enumerate(rows):
        values = {name: given.get(name, 0.5) for name in ("bias", "diversity")}
        row = {"evidence": "model", "model": "a model"} | {k: v for k, v in given.items() if k not in values}
        condition = "/".join(str(row.get(name, "")) for name in ("topic", "framing", "confirmation_bias", "memory"))
        runs.append(run_row(f"r{number}", cell=condition, **row))
        keys = {name: runs[-1][name] for name in ("run_id", "cell", "instrument_id", "evidence")}
        metrics.append(keys | values | {"kind": "report", "ddof": 0, "n_measured": 10, "share_0": 1.0})
    return pd.DataFrame(runs), pd.DataFrame(metrics)
