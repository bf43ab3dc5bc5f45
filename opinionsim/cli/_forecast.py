"""Before anything is spent: what an experiment takes, what its prompts say, what a specification may hold."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import aligned, say, say_json
from opinionsim.cli._options import AsJson, Changes, Prompts, Slots, Spec, read_spec
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.experiments import Experiment, Forecast
    from opinionsim.experiments._forecast import Actual

__all__ = ["comparison_text", "plan", "preview", "rest_text", "schema"]


def plan(
    spec: Spec,
    changes: Changes = None,
    prompts: Prompts = None,
    max_concurrency: Slots = None,
    latency: Annotated[
        float | None,
        typer.Option(
            "--latency",
            metavar="SECONDS",
            min=0.0,
            help="Time one model call takes. Default: as in --store, else 1.",
            show_default=False,
        ),
    ] = None,
    reply_tokens: Annotated[
        float | None,
        typer.Option(
            "--reply-tokens",
            metavar="K",
            min=1.0,
            help="Tokens of one reply. Default: as in --store, else 200; never more than model.max_tokens.",
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Take lengths and latency from the calls this experiment has in a store, and tell what is missing.",
            show_default=False,
        ),
    ] = None,
    pilot: Annotated[bool, typer.Option("--pilot", help="Only one replicate of each cell.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Count the prompts of every run, however many.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a specification; print its calls, tokens, money, critical path and time. Makes no call."""
    from opinionsim.experiments import LoadedParts
    from opinionsim.experiments import plan as forecast_of

    for name, value, unit in (("--latency", latency, "seconds"), ("--reply-tokens", reply_tokens, "tokens")):
        if value is not None and not math.isfinite(value):
            raise SpecError(f"{name} must be a finite number of {unit}; got {value}")
    experiment = read_spec(spec, changes, prompts)

    def forecast_for(only: Collection[str] | None) -> Forecast:
        return forecast_of(
            experiment,
            max_concurrency=max_concurrency,
            only=only,
            reply_tokens=reply_tokens,
            latency=latency,
            store=store,
            exact=exact,
        )

    only = experiment.pilot if pilot else None
    forecast = forecast_for(only)
    missing = None if store is None else forecast_for(_missing(experiment, only, store))
    if as_json:
        say_json(_forecast_json(experiment, forecast, missing))
    else:
        say(_forecast_text(experiment, forecast, missing))
    # After the forecast, which a missing package or key for a model should not hide.
    LoadedParts(experiment)


def _missing(experiment: Experiment, only: Collection[str] | None, store: str) -> list[str]:
    """Runs that a store does not hold complete."""
    from opinionsim.store import open_store

    wanted = list(dict.fromkeys(run.run_id for run in experiment.runs if only is None or run.run_id in only))
    with open_store(store, write=False) as opened:
        states = opened.states(wanted)
    return [run_id for run_id in wanted if run_id not in states or states[run_id].status != "complete"]


def _forecast_json(experiment: Experiment, forecast: Forecast, missing: Forecast | None) -> dict[str, Any]:
    """A forecast as JSON values; numbers that are not known are null."""
    return {
        "experiment": experiment.spec.name,
        "models": list(dict.fromkeys(model.name for model in forecast.models)),
        "cells": forecast.cells,
        "runs": forecast.runs,
        "calls": forecast.calls,
        "texts": forecast.texts,
        "longest_path": forecast.longest_path,
        "width": forecast.width,
        "run_width": forecast.run_width,
        "slots": forecast.slots,
        "useful_slots": forecast.useful_slots,
        "rounds": forecast.rounds,
        "speedup": forecast.speedup,
        "latency_s": forecast.sequential_s / forecast.calls if forecast.calls else None,
        "least_s": forecast.least_s,
        "most_s": forecast.most_s,
        "sequential_s": forecast.sequential_s,
        **_usage(forecast),
        "currency": forecast.currency,
        "price_date": forecast.price_date,
        "exact": forecast.exact,
        "acted_out": forecast.acted_out,
        "by_model": [asdict(model) for model in forecast.models],
        "missing": None if missing is None else {"runs": missing.runs, "calls": missing.calls, **_usage(missing)},
    }


def _usage(forecast: Forecast) -> dict[str, Any]:
    return {
        "input_characters": forecast.input_characters,
        "input_tokens": forecast.input_tokens,
        "output_tokens": forecast.output_tokens,
        "cost": forecast.cost,
    }


def _forecast_text(experiment: Experiment, forecast: Forecast, missing: Forecast | None) -> str:
    rows = forecast.rows()
    if missing is not None:
        rows.append(("missing", f"{missing.runs:,} runs", _spell_missing(missing)))
    parts = [experiment.spec.name, aligned(rows)]
    if len(forecast.models) > 1:
        parts.append(aligned(_model_rows(forecast)))
    return "\n\n".join([*parts, "\n".join(_assumed(experiment, forecast))])


def _spell_missing(missing: Forecast) -> str:
    if not missing.runs:
        return "all are complete in the store"
    return f"not complete in the store: at most {_spell_usage(missing)}"


def _spell_usage(forecast: Forecast) -> str:
    """Calls, tokens, and money where there is any."""
    money = f", {_spell_money(forecast.cost, forecast.currency)}" if forecast.cost else ""
    return f"{forecast.calls:,} calls, {forecast.input_tokens + forecast.output_tokens:,} tokens{money}"


def rest_text(forecast: Forecast) -> str:
    """What the runs beyond a pilot take, in one line.

    Parameters
    ----------
    forecast : Forecast
        Of these runs, at the rates of the pilot.
    """
    from opinionsim.experiments import spell_seconds

    return f"{_spell_usage(forecast)}, {spell_seconds(forecast.least_s)} or more at the rates of the pilot"


def _model_rows(forecast: Forecast) -> list[list[str]]:
    """What each model is asked, with a heading."""
    rows = [["model", "calls", "tokens in", "tokens out", "money", "price"]]
    for model in forecast.models:
        money = "not known" if model.cost is None else _spell_money(model.cost, forecast.currency)
        rows.append(
            [
                model.label,
                f"{model.calls:,}",
                f"{model.input_tokens:,}",
                f"{model.output_tokens:,}",
                money,
                model.price,
            ]
        )
    return rows


def _assumed(experiment: Experiment, forecast: Forecast) -> list[str]:
    """What the figures rest on, and what a reader should know of the models."""
    from opinionsim.experiments import models_of
    from opinionsim.llm import warnings_for

    notes = [_counted(forecast)]
    for model in forecast.models:
        if model.observed:
            notes.append(f"{model.label}: lengths and latency are those of {model.observed:,} calls in the store.")
    if not all(model.observed for model in forecast.models):
        notes.append("Length of replies and latency are assumed where they are not given (--reply-tokens, --latency).")
    notes += [f"{model.label}: {model.price}." for model in forecast.models if model.cost is None]
    if forecast.cost:
        notes.append("Money: no rebate for cached prompts; what a model reasons counts as output.")
    notes += _beyond_budget(experiment, forecast)
    models = [model for cell in experiment.cells for model in models_of(cell.spec.model)]
    told = (text for model in models for text in warnings_for(model.name, model.options))
    return [*notes, *dict.fromkeys(told)]


def _counted(forecast: Forecast) -> str:
    """How far the prompts are those of the runs."""
    if forecast.longest_path is None:
        return "Who meets whom depends on measured opinions; for the prompts all are taken to keep the assigned ones."
    if forecast.exact:
        return "Prompts are those of the runs, but for the length of the replies they repeat."
    return (
        f"Prompts of {forecast.acted_out:,} of {forecast.calls:,} calls were made and counted; "
        "the others follow from them (--exact counts all)."
    )


def _beyond_budget(experiment: Experiment, forecast: Forecast) -> list[str]:
    """Limits of the specification that the experiment would meet before it is complete."""
    budget = experiment.spec.execution.budget
    needs = {
        "calls": (budget.calls, forecast.calls),
        "tokens": (budget.tokens, forecast.input_tokens + forecast.output_tokens),
        "money": (budget.money, forecast.cost),
    }
    return [
        f"execution.budget.{name} = {limit:,} will stop the experiment before it is complete."
        for name, (limit, need) in needs.items()
        if limit is not None and need is not None and need > limit
    ]


def comparison_text(forecast: Forecast, actual: Actual) -> str:
    """A forecast beside what came of it, as a table.

    Parameters
    ----------
    forecast : Forecast
        Of the runs that were carried out.
    actual : Actual
        What they took.
    """
    from opinionsim.experiments._forecast import compare_forecast

    rows = [["", "forecast", "actual", "ratio"]]
    for compared in compare_forecast(forecast, actual):
        # Free models make no row of money, and runs begun earlier none of time.
        if (compared.what == "seconds" and compared.actual is None) or not (compared.forecast or compared.actual):
            continue
        name = {"money": f"money ({forecast.currency})", "seconds": "seconds (at least)"}.get(
            compared.what, compared.what
        )
        ratio = "" if compared.ratio is None else f"{compared.ratio:.2f}"
        rows.append([name, _spell_number(compared.forecast), _spell_number(compared.actual), ratio])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return aligned([[row[0], *map(str.rjust, row[1:], widths[1:])] for row in rows])


def _spell_money(amount: float, currency: str) -> str:
    from opinionsim.experiments._forecast import spell_money

    return spell_money(amount, currency)


def _spell_number(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 100 else f"{value:,.0f}"


def preview(
    spec: Spec,
    changes: Changes = None,
    prompts: Prompts = None,
    run: Annotated[int, typer.Option("--run", metavar="N", min=0, help="Which of the planned runs, from 0.")] = 0,
) -> None:
    """Print the first prompt of each kind of turn, as a model would get it. Makes no call."""
    from opinionsim.experiments import preview as rendered

    experiment = read_spec(spec, changes, prompts)
    found = rendered(experiment, run)
    say(f"{experiment.spec.name}: run {run} of {len(experiment.runs)}, {found.cell}")
    for act, messages in found.prompts.items():
        say(f"\n===== {act} =====")
        for message in messages:
            say(f"\n[{message.role}]\n{message.content}")
    if found.equation:
        say(f"\nThe agents of this run follow an equation ({found.equation}): nobody is asked, and no prompt is sent.")
    elif not found.prompts:
        say("\nNothing happens in this run: it has no step and no probe, so no prompt is sent.")


def schema() -> None:
    """Print the JSON Schema of specifications, for editors and other tools."""
    from opinionsim.experiments import json_schema

    say_json(json_schema())
