"""The command deliberate: carry out an experiment and print what was said."""

from __future__ import annotations

from typing import Annotated

import typer

from opinionsim.cli._console import counted, note, say
from opinionsim.cli._options import Changes, Prompts, Slots, Spec, read_spec
from opinionsim.cli._run import StoreOption, carry_out, end, report, store_of
from opinionsim.cli._stores import read_results, row_of, spelled

#: Most runs printed where none is chosen.
_MOST_PRINTED = 3


def deliberate(
    spec: Spec,
    store: StoreOption = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="N|ID",
            help=f"Run to print: its number, or the start of its id. Default: all, if there are up to {_MOST_PRINTED}.",
            show_default=False,
        ),
    ] = None,
    max_concurrency: Slots = None,
    changes: Changes = None,
    prompts: Prompts = None,
) -> None:
    """Carry out an experiment and print what was said. Running it again makes no call that is on record."""
    from opinionsim.analysis import transcript

    experiment = read_spec(spec, changes, prompts)
    url = store_of(experiment, store)
    run_ids = list(dict.fromkeys(planned.run_id for planned in experiment.runs))
    chosen = range(min(len(run_ids), _MOST_PRINTED)) if run is None else [row_of(experiment.spec.name, run_ids, run)]
    summary = carry_out(experiment, url, max_concurrency=max_concurrency)
    report(url, summary)
    results = read_results(url, experiment.spec.name, None)
    rows = {run_id: row for row, run_id in enumerate(results.runs["run_id"])}
    for place in chosen:
        say(transcript(results, rows[run_ids[place]]))
        say("")
    if run is None and len(run_ids) > _MOST_PRINTED:
        note(f"{counted(len(run_ids) - _MOST_PRINTED, 'further run')} in the store; print one with --run N, or:")
        note(f"  opinionsim show {spelled(url)} --run N")
    end(summary)
