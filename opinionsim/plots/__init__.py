"""Figures of runs. Each has a data step, which returns frames or arrays, and a draw step, which puts them on axes."""

from __future__ import annotations

from opinionsim.plots._before_after import BeforeAfterData, before_after, before_after_data
from opinionsim.plots._density import DensityData, density, density_data
from opinionsim.plots._final import FinalData, final_data, final_distribution
from opinionsim.plots._inputs import Frames
from opinionsim.plots._lines import LineData, line_data
from opinionsim.plots._panels import Panel, PanelsData, panels, panels_data
from opinionsim.plots._phase import phase_diagram
from opinionsim.plots._phase_data import PhaseData, phase_data
from opinionsim.plots._ribbons import RibbonData, ribbon_data, ribbons
from opinionsim.plots._save import check_suffix, save
from opinionsim.plots._shares import ShareData, share_data
from opinionsim.plots._snapshots import SnapshotData, network_snapshots, snapshot_data
from opinionsim.plots._style import model_colours, opinion_colours, opinion_map
from opinionsim.plots._theory import read_theory
from opinionsim.plots._trajectories import TrajectoryData, trajectories, trajectory_data
from opinionsim.plots._transitions import TransitionData, transition_data, transition_matrix

__all__ = [
    "BeforeAfterData",
    "DensityData",
    "FinalData",
    "Frames",
    "LineData",
    "Panel",
    "PanelsData",
    "PhaseData",
    "RibbonData",
    "ShareData",
    "SnapshotData",
    "TrajectoryData",
    "TransitionData",
    "before_after",
    "before_after_data",
    "check_suffix",
    "density",
    "density_data",
    "final_data",
    "final_distribution",
    "line_data",
    "model_colours",
    "network_snapshots",
    "opinion_colours",
    "opinion_map",
    "panels",
    "panels_data",
    "phase_data",
    "phase_diagram",
    "read_theory",
    "ribbon_data",
    "ribbons",
    "save",
    "share_data",
    "snapshot_data",
    "trajectories",
    "trajectory_data",
    "transition_data",
    "transition_matrix",
]
