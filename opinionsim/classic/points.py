"""What carries out sweeps of classic models point by point: points, batches of their runs, and the frame of runs."""

from opinionsim.classic._point_runs import Batch, Cache, RunOfPoint, batches, carried_out, on_threads, run_point
from opinionsim.classic._points import AXES, Point, points_of
from opinionsim.classic._random import STREAMS
from opinionsim.classic._ranges import moments_of, values_of
from opinionsim.classic._sweep import described, shared, sweep_frame
from opinionsim.classic._until import read_until

__all__ = [
    "AXES",
    "STREAMS",
    "Batch",
    "Cache",
    "Point",
    "RunOfPoint",
    "batches",
    "carried_out",
    "described",
    "moments_of",
    "on_threads",
    "points_of",
    "read_until",
    "run_point",
    "shared",
    "sweep_frame",
    "values_of",
]
