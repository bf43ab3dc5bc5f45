"""Views of experiments and runs, read from the store alone during the runs or later.

The command line gets objects, and pages get mappings of JSON values.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.watching._beyond import (
        beyond_turns as beyond_turns,
        grid as grid,
        lines as lines,
        point as point,
        said as said,
        section as section,
    )
    from opinionsim.watching._coded_turns import run_turn as run_turn, run_turns as run_turns
    from opinionsim.watching._metrics import (
        run_metric as run_metric,
        values_by_step as values_by_step,
    )
    from opinionsim.watching._new_rows import follow as follow
    from opinionsim.watching._overview import (
        experiment as experiment,
        experiments as experiments,
        level_labels as level_labels,
    )
    from opinionsim.watching._record_columns import (
        Standing as Standing,
        run_agent as run_agent,
        run_record as run_record,
        standing as standing,
    )
    from opinionsim.watching._run_states import (
        STATES as STATES,
        Reason as Reason,
        Replies as Replies,
        batch_text as batch_text,
        by_experiment as by_experiment,
        count_states as count_states,
        count_units as count_units,
        reasons as reasons,
        replies_of as replies_of,
        row_of as row_of,
        spelled as spelled,
        state_of as state_of,
        states_of as states_of,
        units_of as units_of,
    )
    from opinionsim.watching._run_view import plain as plain
    from opinionsim.watching._search import search as search
    from opinionsim.watching._transcript import transcript as transcript, transcript_data as transcript_data
    from opinionsim.watching._whole import whole_run as whole_run

__getattr__, __dir__ = on_first_use(__name__)
