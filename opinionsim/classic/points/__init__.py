"""Sweeps of classic models point by point: points, tasks of their runs, and the frame of runs."""

from opinionsim.classic._simulate import processors as processors
from opinionsim.classic.kernels._random import STREAMS as STREAMS
from opinionsim.classic.kernels._until import read_until as read_until
from opinionsim.classic.points._points import (
    Point as Point,
    cell as cell,
    described as described,
    points_of as points_of,
)
from opinionsim.classic.points._ranges import moments_of as moments_of, values_of as values_of
from opinionsim.classic.points._runs import (
    Cache as Cache,
    RunOfPoint as RunOfPoint,
    Task as Task,
    carried_out as carried_out,
    gather as gather,
    on_threads as on_threads,
    run_point as run_point,
    tasks_of as tasks_of,
)
from opinionsim.classic.points._sweep import (
    frame_of_runs as frame_of_runs,
    shared as shared,
    sweep_frame as sweep_frame,
)
