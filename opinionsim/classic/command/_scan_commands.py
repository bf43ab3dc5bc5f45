"""What the commands ``run`` and ``plan`` do with a scan."""

from __future__ import annotations

from opinionsim.classic.command._sweep_progress import carry_out_sweep, end_sweep, say_plan
from opinionsim.classic.sweeps import default_sweep_store, load_sweep, points_table
from opinionsim.cli import say, say_logged


def run(spec: str, changes: list[str] | None = None, *, store: str | None = None, cluster: str | None = None) -> None:
    """Carry out the missing runs, and print the mean of every measure at every point."""
    sweep = load_sweep(spec, changes or ())
    say_logged("opinionsim.foundation.compilation")
    summary = carry_out_sweep(sweep, default_sweep_store(sweep) if store is None else store, cluster=cluster)
    if len(summary.frame):
        say(points_table(summary.frame).to_text().rstrip("\n"))
    end_sweep(summary, kept=True)


def plan(spec: str, changes: list[str] | None = None, *, store: str | None = None) -> None:
    """Print points, runs, time and memory, and run only a pilot."""
    sweep = load_sweep(spec, changes or ())
    say_plan(sweep, store or default_sweep_store(sweep), None)
