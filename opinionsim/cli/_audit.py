"""The commands of the group audit: how well an instrument reads texts, and numbers corrected by labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opinionsim.cli._console import Force, note, require_table, say
from opinionsim.cli._options import AsJson, DesignNumber, assignments
from opinionsim.cli._outputs import Estimand, print_tables
from opinionsim.cli._stores import read_results
from opinionsim.errors import SpecError
from opinionsim.watching import spelled

Seed = Annotated[int, typer.Option(min=0)]

audit = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@audit.command()
def plan(
    half_width: Annotated[float, typer.Option()],
    noise: float = 0.3,
    points: int = 5,
) -> None:
    """Print how many labels each condition needs.

    Parameters
    ----------
    half_width : W
        Half-width that the interval of a contrast should have, in scale points.
    noise
        Share of readings that can be pure chance.
    points
        Number of points on the scale.
    """
    from opinionsim.audit import plan as planned

    say(
        f"{planned(half_width, noise, points):,} labels per condition; the audit adds at most ±{half_width:g} to a "
        f"contrast of mean opinions (95 %), if {noise:.0%} of the readings are pure chance on {points} points."
    )


@audit.command()
def instruments(
    store: str,
    kind: str | None = None,
    seed: Seed = 0,
    experiment: str | None = None,
    design: DesignNumber = None,
    csv: Path | None = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Print the agreement between readings of the same texts: instruments, self-reports and people's labels."""
    from opinionsim.audit import instrument_tables

    require_table(csv, "evidence", force=force)
    made = instrument_tables(read_results(store, experiment, design), kind, seed)
    print_tables(made, csv, force=force, as_json=as_json)


@audit.command()
def sample(
    store: str,
    labels: Annotated[int, typer.Option()],
    coders: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    by: str | None = None,
    kind: str | None = None,
    seed: Seed = 0,
    experiment: str | None = None,
    design: DesignNumber = None,
) -> None:
    """Draw texts for coders and write a file for each coder. The key stays in the store.

    Parameters
    ----------
    labels : N
        Number of texts for each condition.
    coders : A,B
        Names of the people who will label the texts; each gets a file.
    out : DIR
        Folder for the files.
    by : A,B
        Conditions, the primary contrast first. Default: those in the specification, otherwise the first that varies.
    """
    from opinionsim.audit import draw, write_files

    axes = None if by is None else [axis.strip() for axis in by.split(",") if axis.strip()]
    drawn = draw(read_results(store, experiment, design), labels, by=axes, kind=kind, seed=seed)
    for path in write_files(drawn, [name.strip() for name in coders.split(",")], out):
        note(f"wrote {path}")
    note(
        f"audit {drawn.audit.audit_id}: {len(drawn.texts)} texts by {', '.join(drawn.audit.sample['by']) or 'nothing'}"
    )
    note(f"After the coders have filled in the column label:\n  opinionsim audit score {spelled(store)} FILE...")


@audit.command()
def score(
    store: str,
    files: Annotated[list[Path] | None, typer.Argument()] = None,
    coder: str | None = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")] = None,
    mirror: bool = False,
    audit: str | None = None,
    experiment: str | None = None,
    design: DesignNumber = None,
    csv: Path | None = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Store labels and print how well the instrument agrees with them. Without files, print it again.

    Parameters
    ----------
    files : FILE...
        Completed files from the coders.
    coder : MODEL
        A chat model that also labels the texts, as a check of consistency.
    settings
        An option of the classifier chat for the model of --coder.
    mirror
        Also code each text against the opposite claim.
    """
    from opinionsim.audit import asked, keep, keep_findings, read_files, sample_of, score_tables

    if settings and coder is None:
        raise SpecError("--set gives options to the model of --coder; add --coder")
    require_table(csv, "evidence", force=force, read=files or ())
    results = read_results(store, experiment, design)
    drawn = sample_of(results, audit)
    if files:
        drawn = keep(results, drawn, read_files(files, drawn), "human")
    if coder is not None:
        from opinionsim.classifiers import load_classifier

        model = load_classifier("chat", drawn.scale, **{**assignments(settings, "--set"), "model": coder})
        drawn = keep(results, drawn, {coder: asked(drawn, model)}, "model")
    print_tables(score_tables(results, drawn, mirror=mirror), csv, force=force, as_json=as_json)
    for text in keep_findings(results, drawn):
        note(f"Tables now state: {text}.")


@audit.command()
def correct(
    store: str,
    diversity: bool = True,
    simulations: Annotated[int, typer.Option(min=0)] = 100,
    estimand: Estimand | None = None,
    audit: str | None = None,
    seed: Seed = 0,
    experiment: str | None = None,
    design: DesignNumber = None,
    csv: Path | None = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Print mean opinions, contrasts and diversity as read, and corrected with people's labels.

    Parameters
    ----------
    diversity
        Also correct diversity.
    simulations
        Number of simulated studies behind each interval of diversity.
    """
    from opinionsim.audit import correction_tables, sample_of

    require_table(csv, "evidence", force=force)
    results = read_results(store, experiment, design)
    drawn = sample_of(results, audit)
    found = correction_tables(results, drawn, estimand, diversity=diversity, simulations=simulations, seed=seed)
    print_tables(found, csv, force=force, as_json=as_json)
