"""Figures of runs. Each is a data step, which gives arrays, and a draw step, which puts them on axes."""

from __future__ import annotations

from opinionsim.plots._final import FinalData, final_data, final_distribution
from opinionsim.plots._inputs import Frames
from opinionsim.plots._panels import Panel, PanelsData, panels, panels_data
from opinionsim.plots._save import save
from opinionsim.plots._style import opinion_colours
from opinionsim.plots._trajectories import TrajectoryData, trajectories, trajectory_data

__all__ = [
    "FinalData",
    "Frames",
    "Panel",
    "PanelsData",
    "TrajectoryData",
    "final_data",
    "final_distribution",
    "opinion_colours",
    "panels",
    "panels_data",
    "save",
    "trajectories",
    "trajectory_data",
]
