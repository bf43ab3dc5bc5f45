"""The command line ``opinionsim COMMAND``, and the building blocks for commands of other folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.cli._app import app as app, main as main
    from opinionsim.cli._console import say_json as say_json
    from opinionsim.cli._deliberate import RunToPrint as RunToPrint, print_runs as print_runs
    from opinionsim.cli._options import (
        Changes as Changes,
        Slots as Slots,
        assignments as assignments,
        read_spec as read_spec,
    )
    from opinionsim.cli._stores import read_results as read_results

__getattr__, __dir__ = on_first_use(__name__)
