"""Sweeps of classic models over a grid of values, kept in a store."""

from __future__ import annotations

from opinionsim.classic.sweeps._run_sweeps import (
    SweepPlan as SweepPlan,
    SweepProgress as SweepProgress,
    SweepSummary as SweepSummary,
    default_sweep_store as default_sweep_store,
    plan_sweep as plan_sweep,
    run_sweep as run_sweep,
)
from opinionsim.classic.sweeps._sweep_fields import (
    Sweep as Sweep,
    SweepSpec as SweepSpec,
    field_named as field_named,
    load_sweep as load_sweep,
)
