"""Tables of final opinions and of what is missing."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.analysis._asked import Asked as Asked
    from opinionsim.analysis._condition_steps import condition_table as condition_table
    from opinionsim.analysis._contrasts import (
        NO_FINDING as NO_FINDING,
        Effect as Effect,
        condition_column as condition_column,
        contrast_tables as contrast_tables,
        differences as differences,
        effect as effect,
    )
    from opinionsim.analysis._instrument_choice import read_by as read_by
    from opinionsim.analysis._means import (
        ESTIMANDS as ESTIMANDS,
        Estimand as Estimand,
        Estimate as Estimate,
        Spread as Spread,
        adjusted as adjusted,
        estimate as estimate,
        no_estimate as no_estimate,
        spread_of as spread_of,
    )
    from opinionsim.analysis._missing_tables import missing_tables as missing_tables, reply_table as reply_table
    from opinionsim.analysis._opinion_tables import (
        table as table,
        table1 as table1,
        table2 as table2,
        tables as tables,
    )
    from opinionsim.analysis._outcome import Outcome as Outcome, outcome_data as outcome_data
    from opinionsim.analysis._printed_table import (
        Table as Table,
        finished as finished,
        headings as headings,
        latex_text as latex_text,
        level_text as level_text,
        mean_text as mean_text,
        number_text as number_text,
        p_text as p_text,
        spell as spell,
        spell_all as spell_all,
    )
    from opinionsim.analysis._published import published_tests as published_tests
    from opinionsim.analysis._robustness import (
        findings as findings,
        robustness_frame as robustness_frame,
        robustness_table as robustness_table,
        shift as shift,
        variance_share as variance_share,
    )
    from opinionsim.analysis._run_outcomes import outcome_table as outcome_table
    from opinionsim.analysis._sizes import least as least, size_table as size_table, study_sizes as study_sizes
    from opinionsim.analysis._units import (
        interval_notes as interval_notes,
        unit_frame as unit_frame,
        with_intervals as with_intervals,
    )

__getattr__, __dir__ = on_first_use(__name__)
