"""The commands surveys and import: survey respondents and records of people that agents can replace."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opinionsim import cli
from opinionsim.foundation.outputs import begins, put, require_free
from opinionsim.watching import spelled

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.comparison import SurveyValidation
    from opinionsim.store import Results

#: How a specification begins that import made, and may replace.
_MADE = "# Made by opinionsim import"
#: Endings of the files of a validation.
_ENDINGS = ("", "-items", "-subgroups")


def surveys(
    action: Literal["validate"],
    survey: str,
    mapping: Annotated[str, typer.Option()],
    items: str | None = None,
    size: int = 200,
    model: str = "scripted",
    seed: Annotated[int, typer.Option(min=0)] = 0,
    cutoff: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"])] = None,
    store: str | None = None,
    max_concurrency: cli.Slots = None,
    changes: cli.Changes = None,
    prompts: str | None = None,
    csv: Path | None = None,
    force: cli.Force = False,
    as_json: cli.AsJson = False,
) -> None:
    """Ask survey respondents questions that they have already answered, and compare: surveys validate SURVEY.

    Parameters
    ----------
    action : ACTION
        validate: ask a sample of respondents held-out items, and compare with their answers.
    survey : SURVEY
        Path of a survey (.csv, .parquet, .dta, .sav), or the name of one in the package.
    mapping : NAME
        Mapping of the survey: a name, or the path to a .yaml file. Its columns with a question and options are the
        items.
    items : A,B
        Items to ask, by name. Default: all.
    size : N
        Number of respondents to draw, by weight.
    model : NAME
        Chat model that plays the respondents.
    seed
        Seed of all random draws.
    cutoff : YYYY-MM-DD
        Last day that the model's training data cover. The data may contain items asked before it.
    """
    from opinionsim.comparison import read_validation, validation_experiment
    from opinionsim.store import load

    for ending in _ENDINGS:
        cli.require_table(csv and cli.beside(csv, ending), "item", "evidence", force=force, read=(survey, mapping))
    cli.own_modules()
    named = None if items is None else [name.strip() for name in items.split(",") if name.strip()]
    overrides = [*(changes or []), *([] if prompts is None else [f"prompts={json.dumps(prompts)}"])]
    experiment = validation_experiment(
        survey, mapping, items=named, size=size, model=model, seed=seed, overrides=overrides
    )
    url, summary = cli.carried_out(experiment, store, max_concurrency)
    if summary.complete:
        day = None if cutoff is None else cutoff.date()
        found = read_validation(experiment, load(url, experiment.spec.name), cutoff=day)
        _print(found, as_json=as_json)
        if csv is not None:
            frames = (found.measures, found.items, found.subgroups)
            cli.write_frames([(cli.beside(csv, ending), frame) for ending, frame in zip(_ENDINGS, frames, strict=True)])
    cli.end(summary)


def _print(found: SurveyValidation, *, as_json: bool) -> None:
    """Print a validation."""
    if as_json:
        frames = {name: cli.records(getattr(found, name)) for name in ("measures", "items", "subgroups")}
        cli.say_json({"title": found.title, "findings": found.findings, "notes": found.notes, **frames})
        return
    from opinionsim.surveys import ALL_ITEMS

    cli.say(found.title)
    rows = [["item", "asked", "pairs", "no answer", "none of the model", "training data"]]
    for each in cli.records(found.items):
        lacking = f"{each['model_missing']}, {each['again_missing']} again"
        asked = each["asked"] or "-"
        rows.append([each["item"], asked, str(each["pairs"]), str(each["missing"]), lacking, each["training_data"]])
    cli.say("\n" + cli.aligned(rows))
    names = list(dict.fromkeys(found.measures["item"]))
    for name in sorted(names, key=lambda name: name != ALL_ITEMS):
        cli.say(f"\n{'Mean over items' if name == ALL_ITEMS else name}")
        cli.say(_table(found.measures[found.measures["item"] == name]))
    cli.say()
    for text in (*found.findings, *found.notes):
        cli.say(text)


def _table(measures: pd.DataFrame) -> str:
    """Measures as rows, and whose answers they are of as columns; that of the model with its interval."""
    whose = list(dict.fromkeys(measures["of"]))
    cells: dict[str, dict[str, str]] = {}
    for each in cli.records(measures):
        text = "-" if each["value"] is None else f"{each['value']:.2f}"
        if each["of"] == "model" and each["low"] is not None:
            text += f" [{each['low']:.2f}, {each['high']:.2f}]"
        cells.setdefault(each["measure"], {})[each["of"]] = text
    rows = ([measure, *(row.get(of, "") for of in whose)] for measure, row in cells.items())
    return cli.aligned([["", *whose], *rows])


def import_people(
    table: Path, mapping: str, name: str | None = None, store: str | None = None, twins: Path | None = None
) -> None:
    """Import a table of people's opinions into a store, so that agents can replace the people: import TABLE MAPPING.

    Parameters
    ----------
    table : TABLE
        Path to a table (.csv, .parquet).
    mapping : MAPPING
        Meaning of its columns: path of a .yaml file, or debate, belief-updates, belief-updates-numeric.
    name : NAME
        Name of the record of people in the store. Default: the name in the mapping.
    twins : FILE
        YAML file that says who plays the people (name, model, cognition, prompts, measurement, execution). The command
        also writes the specification of these agents to NAME.yaml in the current folder, with the name in FILE.
    """
    from opinionsim.comparison import import_panel

    people = import_panel(table, mapping, name=name, store=store)
    persons, runs = cli.counted(len(people.agents), "person"), cli.counted(len(people.runs), "run")
    cli.say(f"{persons} in {runs} of {people.name}: {people.url}")
    cli.say("\nNext:")
    where = spelled(people.url)
    if twins is None:
        cli.say(f"  opinionsim table {where} --experiment {people.name}")
        return
    spec = _write_twins(people, twins, f"{table}, {mapping} and {twins}")
    for command in ("plan", "run"):
        cli.say(f"  opinionsim {command} {spec}{f' --store {where}' if command == 'run' else ''}")


def _write_twins(people: Results, file: Path, made_from: str) -> Path:
    """Write the specification in which agents stand in for people, unless a file of the user's own has its name."""
    import yaml

    from opinionsim.comparison import twins_experiment

    experiment = twins_experiment(people, file)
    target = Path(f"{experiment.spec.name}.yaml")
    require_free(target, partial(begins, start=_MADE.encode()), force=None, read=(file,))
    text = yaml.safe_dump(experiment.source.value, sort_keys=False, allow_unicode=True, width=120)
    text = f"{_MADE} of {made_from}: to change it, edit these and import again.\n{text}"
    put(target, lambda part: part.write_text(text, encoding="utf-8"))
    return target
