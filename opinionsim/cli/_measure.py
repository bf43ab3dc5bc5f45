"""The command measure: a further instrument for runs that are finished."""

from __future__ import annotations

from typing import Annotated

import typer

from opinionsim.cli._options import DesignNumber, ExperimentName, Slots, StorePath, assignments, own_modules
from opinionsim.cli._run import carry_out, end, report
from opinionsim.cli._stores import read_results
from opinionsim.errors import SpecError


def measure(
    store: StorePath,
    classifier: Annotated[str, typer.Option(metavar="NAME", help="Classifier (see: opinionsim list classifiers).")],
    variable: Annotated[str, typer.Option(metavar="NAME", help="What it measures.")] = "stance",
    texts: Annotated[str, typer.Option(metavar="A,B", help="Kinds of text that it reads.")] = "report",
    context: Annotated[
        bool, typer.Option("--context", help="Tell it what the author had read, and who it is.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An option of the classifier.")
    ] = None,
    max_concurrency: Slots = None,
    experiment: ExperimentName = None,
    design: DesignNumber = None,
) -> None:
    """Add an instrument to the finished runs of a store; nothing is simulated again."""
    from opinionsim.specification import load_experiment

    own_modules()
    results = read_results(store, experiment, design)
    added = {
        "variable": variable,
        "classifier": {"name": classifier, "options": assignments(settings, "--set")},
        "texts": [kind.strip() for kind in texts.split(",")],
        "context": context,
    }
    instruments = [*results.spec["measurement"]["instruments"], added]
    again = load_experiment(results.manifest, {"measurement.instruments": instruments})
    finished = set(results.runs.loc[results.runs["status"] == "complete", "run_id"])
    if not finished:
        raise SpecError("no run is complete, so there is nothing to measure: `opinionsim run` goes on")
    summary = carry_out(
        again,
        results.url,
        max_concurrency=max_concurrency,
        only=None if finished == set(results.run_ids) else finished,
        calls=0,
    )
    report(results.url, summary)
    end(summary)
