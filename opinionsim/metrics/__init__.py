"""Measures of opinion distributions, on arrays and on the tidy frames of a store."""

from __future__ import annotations

from opinionsim.metrics._conditions import NOT_SET, condition_axes, condition_metrics, order_levels
from opinionsim.metrics._evidence import (
    EVIDENCE,
    KINDS,
    NOT_VALIDATED,
    evidence_statement,
    instrument_validation,
    played_by,
    validation_statement,
)
from opinionsim.metrics._frames import run_metrics, scale_of, step_metrics, trajectories
from opinionsim.metrics._opinions import Distribution, bias, distribution, diversity

__all__ = [
    "EVIDENCE",
    "KINDS",
    "NOT_SET",
    "NOT_VALIDATED",
    "Distribution",
    "bias",
    "condition_axes",
    "condition_metrics",
    "distribution",
    "diversity",
    "evidence_statement",
    "instrument_validation",
    "order_levels",
    "played_by",
    "run_metrics",
    "scale_of",
    "step_metrics",
    "trajectories",
    "validation_statement",
]
