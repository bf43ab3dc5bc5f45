"""The command line ``opinionsim COMMAND``, and the building blocks for commands of other folders."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.cli._app import app as app, main as main
    from opinionsim.cli._console import (
        Force as Force,
        aligned as aligned,
        beside as beside,
        counted as counted,
        note as note,
        records as records,
        require_table as require_table,
        say as say,
        say_json as say_json,
        say_logged as say_logged,
        say_rows as say_rows,
        write_frames as write_frames,
        write_text as write_text,
    )
    from opinionsim.cli._deliberate import RunToPrint as RunToPrint, print_runs as print_runs
    from opinionsim.cli._options import (
        AsJson as AsJson,
        Changes as Changes,
        DesignNumber as DesignNumber,
        Slots as Slots,
        allow as allow,
        assignments as assignments,
        own_modules as own_modules,
        read_spec as read_spec,
    )
    from opinionsim.cli._outputs import Estimand as Estimand, print_tables as print_tables
    from opinionsim.cli._plan_preview import plan as plan, preview as preview
    from opinionsim.cli._run import (
        carried_out as carried_out,
        carry_out_and_report as carry_out_and_report,
        end as end,
        run as run,
        store_of as store_of,
    )
    from opinionsim.cli._stores import read_results as read_results

__getattr__, __dir__ = on_first_use(__name__)
