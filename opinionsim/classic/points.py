"""What carries out sweeps of classic models point by point: points, tasks of their runs, and the frame of runs."""

from opinionsim.classic._point_runs import Cache, RunOfPoint, Task, carried_out, on_threads, run_point, tasks_of
from opinionsim.classic._points import AXES, Point, cell, points_of
from opinionsim.classic._random import STREAMS
from opinionsim.classic._ranges import moments_of, values_of
from opinionsim.classic._sweep import described, shared, sweep_frame
from opinionsim.classic._until import read_until

__all__ = [
    "AXES",
    "STREAMS",
    "Cache",
    "Point",
    "RunOfPoint",
    "Task",
    "carried_out",
    "cell",
    "described",
    "moments_of",
    "on_threads",
    "points_of",
    "read_until",
    "run_point",
    "shared",
    "sweep_frame",
    "tasks_of",
    "values_of",
]
