"""The command that compares runs with classic models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from opinionsim import cli
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.outputs import is_stream

#: Frames that are saved, the parts of opinions last.
_FRAMES = ("events", "fits", "scores", "findings", "trust", "free_runs", "decomposition")


def compare(
    store: str,
    models: str | None = None,
    noise: str | None = None,
    margin: Annotated[float | None, typer.Option()] = None,
    cell: list[str] | None = None,
    experiment: str | None = None,
    design: cli.DesignNumber = None,
    wording: str | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    csv: Path | None = None,
    plot: Path | None = None,
    force: cli.Force = False,
    allow_parts: bool = False,
    as_json: cli.AsJson = False,
) -> None:
    """Test whether classic models explain the runs, and whether agents influence each other.

    Parameters
    ----------
    models : A,B
        Names of classic models (see: opinionsim list abm). Default: voter, degroot, friedkin-johnsen, deffuant,
        jager-amblard and lorenz.
    noise : RATE
        Share of wrong ratings as RATE,LOW,HIGH with the ends of its interval, or audit to take it from people's labels.
        Default: fitted.
    margin : X
        Scale points moved per point of discrepancy; below this, influence counts as absent. Default: 0.05.
    cell : LABEL
        Only this condition. You can repeat the option.
    seed
        Seed of all random draws.
    threads : N
        Number of parallel fits. Default: one per processor.
    csv : DIR
        Also save the unrounded numbers in this folder, one file per frame.
    plot : FILE
        Also draw the figure into a file that ends in .png, .svg or .pdf.
    """
    from opinionsim.comparison import compare as compared, decompose
    from opinionsim.comparison._comparison_tables import comparison_tables
    from opinionsim.foundation.progress import shown
    from opinionsim.plots import require_figure, save

    if plot is not None:
        require_figure(plot, force=force)
    if csv is not None and (is_stream(csv) or csv.is_file()):
        raise SpecError(f"--csv {csv} is a file; give a folder to write to")
    for name in _FRAMES:
        cli.require_table(csv and csv / f"{name}.csv", "cell", "evidence", force=force)
    options: dict[str, Any] = {"noise": _rates(noise), "cells": cell, "wording": wording, "threads": threads}
    options |= {} if margin is None else {"margin": margin}
    named = None if models is None else [name.strip() for name in models.split(",") if name.strip()]
    for name in named or ():
        cli.allow(name, "--models", allow_parts)
    results = cli.read_results(store, experiment, design)
    with shown() as progress:
        found = compared(results, named, seed=seed, progress=progress, **options)
    try:
        # Parts are differences of conditions, which --cell takes out of their midst.
        parts = [] if cell else [decompose(results, wording=wording)]
    except MeasurementError as error:  # as where nobody reports, which is no reason to lose what was found
        parts = []
        cli.note(f"opinions are not decomposed: {error}")
    told = [each for each in parts if each.rows or as_json]
    cli.print_tables([*comparison_tables(found), *told], None, as_json=as_json)
    for text in (text for each in parts if each not in told for text in each.notes):
        cli.note(text)
    if csv is not None:
        frames = [*(getattr(found, name) for name in _FRAMES[:-1]), *(each.frame for each in parts)]
        cli.write_frames([(csv / f"{name}.csv", frame) for name, frame in zip(_FRAMES, frames, strict=False)])
    if plot is not None:
        cli.note(f"wrote {save(found.plot(), plot, caption=True)}")


def _rates(text: str | None) -> float | tuple[float, ...] | str | None:
    """The rate of errors, that rate and the ends of its interval, or that it is taken from an audit."""
    if text in (None, "audit"):
        return text
    try:
        rates = tuple(map(float, text.split(",")))
    except ValueError:
        valid = "RATE, RATE,LOW,HIGH or audit, with shares such as 0.1,0.05,0.2"
        raise SpecError(f"--noise must be {valid}; got {text!r}") from None
    return rates[0] if len(rates) == 1 else rates
