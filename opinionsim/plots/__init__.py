"""Figures of runs. Each has a data step, which returns frames or arrays, and a draw step, which puts them on axes."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.drawing import (
        caption_of as caption_of,
        check_suffix as check_suffix,
        paper as paper,
        require_figure as require_figure,
        save as save,
    )
    from opinionsim.plots._before_after import before_after as before_after, before_after_data as before_after_data
    from opinionsim.plots._density import density as density, density_data as density_data
    from opinionsim.plots._drawn import (
        check_numbers as check_numbers,
        drawn as drawn,
        numbers as numbers,
        source_of as source_of,
    )
    from opinionsim.plots._final import final_data as final_data, final_distribution as final_distribution
    from opinionsim.plots._inputs import (
        FigureNumbers as FigureNumbers,
        Frames as Frames,
        HasFrames as HasFrames,
        drawn_from as drawn_from,
        pick_run as pick_run,
        runs_to_draw as runs_to_draw,
        select as select,
    )
    from opinionsim.plots._lines import line_data as line_data
    from opinionsim.plots._outcome_figure import outcome as outcome
    from opinionsim.plots._over_time import of_runs as of_runs
    from opinionsim.plots._panels import Panel as Panel, panels as panels, panels_data as panels_data
    from opinionsim.plots._ribbons import ribbon_data as ribbon_data, ribbons as ribbons
    from opinionsim.plots._shares import share_data as share_data
    from opinionsim.plots._shown import Shown as Shown
    from opinionsim.plots._snapshots import network_snapshots as network_snapshots, snapshot_data as snapshot_data
    from opinionsim.plots._specification_curve import specification_curve as specification_curve
    from opinionsim.plots._trajectories import trajectories as trajectories, trajectory_data as trajectory_data
    from opinionsim.plots._transitions import transition_data as transition_data, transition_matrix as transition_matrix

__getattr__, __dir__ = on_first_use(__name__)
