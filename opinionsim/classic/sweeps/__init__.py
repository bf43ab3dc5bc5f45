"""Sweeps of classic models over a grid of values, kept in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.classic.sweeps._points_table import (
        INTERVAL as INTERVAL,
        INTERVAL_MEANS as INTERVAL_MEANS,
        SCAN as SCAN,
        point_axes as point_axes,
        point_measures as point_measures,
        points_table as points_table,
    )
    from opinionsim.classic.sweeps._run_again import run_again as run_again, runs_at as runs_at
    from opinionsim.classic.sweeps._run_sweeps import (
        SweepProgress as SweepProgress,
        SweepSummary as SweepSummary,
        default_sweep_store as default_sweep_store,
        plan_sweep as plan_sweep,
        run_of as run_of,
        run_sweep as run_sweep,
    )
    from opinionsim.classic.sweeps._sweep_fields import (
        Sweep as Sweep,
        SweepSpec as SweepSpec,
        field_named as field_named,
        load_sweep as load_sweep,
    )

__getattr__, __dir__ = on_first_use(__name__)
