"""The command that compares runs with classic models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim import cli
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.outputs import is_stream

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.analysis import Table
    from opinionsim.comparison import Comparison

#: Notes on how to read findings and scores, and on noise, which every comparison prints.
_READINGS = (
    "Influence adds: the gain in the log score of an update over the nearest candidate without influence. Recovered: "
    "the share of 20 studies of this size, simulated from the best fit, in which the analysis finds the model behind "
    "them. Gap: how much better a table of shares by own rating and message predicts; by chance, the largest gap in "
    "these studies.",
    "Noise is the variation between readings of the same opinion. An error that persists for an agent is not noise: no "
    "repeated question reveals it, and the models fit it as an opinion.",
)
_SCORES = (
    "Score: log score of an update in a held-out run, mean over runs and standard error over blocks. Behind: the best "
    "score minus this one, paired by run. Tie: within one standard error of the best, so not worse. Reached: share of "
    "the way from persistence to the table of shares."
)

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
    cli.print_tables([*_tables(found), *told], None, as_json=as_json)
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


def _tables(found: Comparison) -> list[Table]:
    """Findings with their trust, scores, and parameters of the best candidates, as tables."""
    from opinionsim.analysis import finished, number_text
    from opinionsim.metrics import spell_mean

    trust = found.trust.drop_duplicates("cell")[["cell", "recovered", "gap", "worst_gap", "noise"]]
    said = [f"{row['cell']}: {row['statement']}" for row in found.findings.to_dict("records")]
    findings, fits = found.findings.merge(trust, on="cell"), found.fits
    best = fits["cell"].map(dict(zip(findings["cell"], findings["best"], strict=True)))
    own = fits[(fits["candidate"] == best) & (fits["reason"] == "")]
    own = own.rename(columns={"low": "value_ci_low", "high": "value_ci_high"})
    reasons = fits[fits["reason"] != ""].groupby(["candidate", "reason"], sort=False)["cell"].apply(", ".join)
    lacking = [f"Not applicable: {row['candidate']} ({row['reason']}) to {row['cell']}." for row in
               reasons.reset_index().to_dict("records")]  # fmt: skip

    def made(heading: str, frame: pd.DataFrame, n_labels: int, columns: Mapping[str, Callable[[Any], str]],
             notes: Sequence[str]) -> Table:  # fmt: skip
        """Make a table with a cell for each column from each row of the frame."""
        rows = [tuple(cell(row) for cell in columns.values()) for row in frame.to_dict("records")]
        return finished(heading, frame, (tuple(columns),), rows, n_labels, notes)

    condition, candidate = {"condition": itemgetter("cell")}, {"candidate": itemgetter("candidate")}
    return [
        made("Findings", findings, 2, {
            **condition,
            "finding": itemgetter("finding"),
            "influence adds": lambda row: spell_mean(row["gain"], row["gain_error"]),
            "recovered": lambda row: f"{row['recovered']:.0%}",
            "gap": lambda row: "-" if isnan(row["gap"]) else spell_mean(row["gap"], alone=".3f"),
            "by chance": lambda row: "-" if isnan(row["gap"]) else spell_mean(row["worst_gap"], alone=".3f"),
            "runs": lambda row: f"{row['n_runs']:,}",
            "updates": lambda row: f"{row['n_updates']:,}",
        }, [*said, f"Errors of ratings: {', '.join(dict.fromkeys(trust['noise']))}.", *_READINGS]),
        made("Scores of runs held out", found.scores, 2, {
            **condition,
            **candidate,
            "score": lambda row: spell_mean(row["score"], row["standard_error"]),
            "behind": lambda row: spell_mean(row["behind"], row["behind_error"]) if row["behind"] else "-",
            "": lambda row: "tie" if row["tie"] else "",
            "reached": lambda row: "-" if isnan(row["reached"]) else f"{row['reached']:.0%}",
        }, [_SCORES, *lacking]),
        made("Parameters of the best candidate", own, 3, {
            **condition,
            **candidate,
            "parameter": itemgetter("parameter"),
            "value [95 %]": lambda row: number_text(row, "value"),
        }, ["The intervals of the model's own parameters are profiles of the likelihood."]),
    ]  # fmt: skip
