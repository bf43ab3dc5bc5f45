"""The commands of the group audit, on how well an instrument reads texts and on corrected numbers, and check-model."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from opinionsim import cli
from opinionsim.errors import SpecError, StoreError
from opinionsim.watching import spelled

#: Replies to a turn at most, where a specification says nothing else: each that is no answer is asked for twice again.
_REPLIES = 3

Seed = Annotated[int, typer.Option(min=0)]

audit = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@audit.command()
def plan(half_width: Annotated[float, typer.Option()], noise: float = 0.3, points: int = 5) -> None:
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

    cli.say(
        f"{planned(half_width, noise, points):,} labels per condition; the audit adds at most ±{half_width:g} to a "
        f"contrast of mean opinions (95 %), if {noise:.0%} of the readings are pure chance on {points} points."
    )


@audit.command()
def instruments(
    store: str,
    kind: str | None = None,
    seed: Seed = 0,
    experiment: str | None = None,
    design: cli.DesignNumber = None,
    csv: Path | None = None,
    force: cli.Force = False,
    as_json: cli.AsJson = False,
) -> None:
    """Print the agreement between readings of the same texts: instruments, self-reports and people's labels."""
    from opinionsim.audit import instrument_tables

    cli.require_table(csv, "evidence", force=force)
    made = instrument_tables(cli.read_results(store, experiment, design), kind, seed)
    cli.print_tables(made, csv, force=force, as_json=as_json)


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
    design: cli.DesignNumber = None,
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
    drawn = draw(cli.read_results(store, experiment, design), labels, by=axes, kind=kind, seed=seed)
    for path in write_files(drawn, [name.strip() for name in coders.split(",")], out):
        cli.note(f"wrote {path}")
    axes = drawn.audit.sample["by"]
    cli.note(f"audit {drawn.audit.audit_id}: {len(drawn.texts)} texts by {', '.join(axes) or 'nothing'}")
    cli.note(f"After the coders have filled in the column label:\n  opinionsim audit score {spelled(store)} FILE...")


@audit.command()
def score(
    store: str,
    files: Annotated[list[Path] | None, typer.Argument()] = None,
    coder: str | None = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE")] = None,
    mirror: bool = False,
    audit: str | None = None,
    experiment: str | None = None,
    design: cli.DesignNumber = None,
    csv: Path | None = None,
    force: cli.Force = False,
    as_json: cli.AsJson = False,
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
    cli.require_table(csv, "evidence", force=force, read=files or ())
    results = cli.read_results(store, experiment, design)
    drawn = sample_of(results, audit)
    if files:
        drawn = keep(results, drawn, read_files(files, drawn), "human")
    if coder is not None:
        from opinionsim.classifiers import load_classifier

        model = load_classifier("chat", drawn.scale, **{**cli.assignments(settings, "--set"), "model": coder})
        drawn = keep(results, drawn, {coder: asked(drawn, model)}, "model")
    cli.print_tables(score_tables(results, drawn, mirror=mirror), csv, force=force, as_json=as_json)
    for text in keep_findings(results, drawn):
        cli.note(f"Tables now state: {text}.")


@audit.command()
def correct(
    store: str,
    diversity: bool = True,
    simulations: Annotated[int, typer.Option(min=0)] = 100,
    estimand: cli.Estimand | None = None,
    audit: str | None = None,
    seed: Seed = 0,
    experiment: str | None = None,
    design: cli.DesignNumber = None,
    csv: Path | None = None,
    force: cli.Force = False,
    as_json: cli.AsJson = False,
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

    cli.require_table(csv, "evidence", force=force)
    results = cli.read_results(store, experiment, design)
    drawn = sample_of(results, audit)
    found = correction_tables(results, drawn, estimand, diversity=diversity, simulations=simulations, seed=seed)
    cli.print_tables(found, csv, force=force, as_json=as_json)


def check_model(
    model: str,
    store: str | None = None,
    study: str = "hundred",
    changes: cli.Changes = None,
    max_concurrency: cli.Slots = None,
    as_json: cli.AsJson = False,
) -> None:
    """Make 100 calls to a chat model and print a card that shows how it plays an agent. Repeat the command to resume.

    Parameters
    ----------
    model : MODEL
        Chat model, named as in a specification (see: opinionsim list models).
    store : STORE
        Store for the replies; the card is written next to it. Default: results/check-MODEL.sqlite.
    study : SPEC
        Study whose price with this model the card shows. Default: 100 agents and 100 steps.
    """
    from opinionsim.audit import card_table, model_card
    from opinionsim.planning import card_file, plan, spell_seconds
    from opinionsim.running import Invocation
    from opinionsim.store import load, open_store

    name = card_file(model).stem
    given = [*(changes or ()), f"name={name}", f"model.name={json.dumps(model)}"]
    experiment = cli.read_spec("check_model", given, None)
    played = experiment.spec.model.model_dump(mode="json", exclude={"replies"})
    of, url = cli.read_spec(study, [f"model={json.dumps(played)}"], None), cli.store_of(experiment, store)
    with suppress(StoreError), open_store(url, write=False) as opened:
        others = sorted({row.name for row in opened.designs() if row.name.startswith("check-")} - {name})
        if others:
            raise SpecError(f"--store {url}: holds {', '.join(others)}, the check of another model; give another store")
    whole = Invocation(experiment, url, max_concurrency=max_concurrency)
    forecast = plan(experiment, loaded=whole.parts)
    cli.note(f"{model}: at most {forecast.usage}")
    cli.end(cli.carry_out_and_report(whole, forecast.calls))
    card = model_card(load(url, name))
    usable, length, latency = (card["lines"][line]["value"] for line in ("usable", "tokens", "latency"))
    priced = plan(of, reply_tokens=length and max(length, 1.0), latency=latency)
    again = sum((1 - usable) ** n for n in range(_REPLIES))
    told = f"Study {of.spec.name} with this model: {priced.usage}, {spell_seconds(priced.sequential_s)} one call at a "
    told += f"time; {again:.2f} times that if replies that cannot be used are asked for again"
    card["lines"]["price"] = {"text": told, "n": priced.calls}
    path = card_file(model, url)
    cli.write_text(path, f"{json.dumps(card, indent=1)}\n")
    cli.say_json(card) if as_json else cli.print_tables([card_table(card)], None, as_json=False)
