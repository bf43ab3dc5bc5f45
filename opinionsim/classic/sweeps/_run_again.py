"""Simulate a run of a stored sweep again, which keeps only the measures of runs, to see its opinions over time."""

from __future__ import annotations

from opinionsim.classic._simulate import simulate
from opinionsim.classic._simulated import Trajectories
from opinionsim.classic.points import RunOfPoint
from opinionsim.classic.sweeps._run_sweeps import run_of
from opinionsim.classic.sweeps._sweep_fields import field_named, load_sweep
from opinionsim.errors import SpecError
from opinionsim.registry import is_path
from opinionsim.store import Results, open_store

#: Moments of a run that are recorded at most, and numbers of all of them together.
_MOMENTS, _NUMBERS = 200, 4_000_000


def runs_at(results: Results, point_id: str) -> dict[int, RunOfPoint]:
    """Return the stored runs of a point by the number of the replicate."""
    with open_store(results.url, write=False) as store:
        return {row.replicate: run_of(row) for row in store.units([point_id])}


def run_again(results: Results, point_id: str, replicate: int) -> tuple[Trajectories, tuple[str, ...]]:
    """Simulate a run of a sweep again, with the same random numbers.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    point_id : str
        The point, one of those of the design.
    replicate : int
        Number of a replicate that is stored.

    Returns
    -------
    Trajectories, tuple of str
        Its opinions at the start, at the end, and at even moments between; and measures of its end, or ``time``, that
        differ from those in the store.

    Raises
    ------
    SpecError
        If the run failed, if the model is the user's own and `own_parts` is false, or if this version, or a file that
        has changed since, would draw other random numbers.
    """
    stored, spec = runs_at(results, point_id)[replicate], results.spec
    if stored.error:
        raise SpecError(f"The run failed: {stored.error}")
    if is_path(spec["model"]["classic"]) and not results.own_parts:
        raise SpecError("Runs of a model of your own are not simulated here.")
    values = dict(results.design_row.units)[point_id]
    (point,) = load_sweep({**spec, "sweep": {field_named(name): [value] for name, value in values.items()}}).points
    if point.id != point_id:
        raise SpecError("Another version made this sweep, or a file has changed, so this would not be the same run.")
    every = max(1, -(-stored.time // max(1, min(_MOMENTS, _NUMBERS // point.size))))
    opinions = simulate(
        point.model, point.network_of(replicate if point.drawn else 0), point.initial, stored.time, point.seed,
        replicate=replicate, until=point.until, record_every=every, range=point.range, isolates=point.isolates,
        threads=1, **point.settings,
    )  # fmt: skip
    # Measures of the user's own are code, which is not imported here.
    measured = opinions.metrics([name for name in spec["measurement"]["metrics"] if not is_path(name)])
    found = {name: float(own[0]) for name, own in measured.items()}
    # The text of a number is exact, and that of a missing one is equal to itself.
    differing = [name for name, value in found.items() if repr(value) != repr(stored.measures.get(name))]
    differing += [] if (int(opinions.ended[0]) >= 0) == stored.stopped else ["time"]
    return opinions, tuple(differing)
