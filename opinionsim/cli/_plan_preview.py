"""Commands that make no calls: plan, preview and schema."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import aligned, records, say, say_json
from opinionsim.cli._options import AsJson, Changes, LaneName, Slots, by_kind, read_spec
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.planning import Forecast
    from opinionsim.store import Paid


def _finite(param: typer.CallbackParam, value: float | None) -> float | None:
    """The value of a numeric option, which must be finite."""
    if value is not None and not math.isfinite(value):
        raise SpecError(f"{param.opts[0]}: must be a finite number; got {value}")
    return value


@by_kind
def plan(
    spec: str,
    changes: Changes = None,
    prompts: str | None = None,
    max_concurrency: Slots = None,
    lane: LaneName = None,
    latency: Annotated[float | None, typer.Option(min=0.0, callback=_finite)] = None,
    reply_tokens: Annotated[float | None, typer.Option(min=1.0, callback=_finite)] = None,
    store: str | None = None,
    half_width: Annotated[float | None, typer.Option(min=0.0, callback=_finite)] = None,
    pilot: str | None = None,
    strict: bool = False,
    as_json: AsJson = False,
) -> None:
    """Check a specification and forecast its calls, tokens, money, critical path and time. Makes no calls.

    Parameters
    ----------
    latency : SECONDS
        Seconds that one model call takes. Default: as in --store, otherwise 1.
    reply_tokens : K
        Tokens in one reply. Default: as in --store, otherwise 200.
    store : STORE
        Take lengths and latency from this experiment's calls in a store, and forecast the remaining work.
    half_width : W
        Desired half-width of the interval of the primary contrast.
    pilot : STORE
        Store of a pilot that provides the variance for --half-width.
    strict
        Exit with code 2 if the run needs a key, an extra or weights that are missing.
    """
    if (half_width is None) != (pilot is None):
        raise SpecError("--half-width needs --pilot for the variance, and --pilot needs --half-width; give both")
    from opinionsim.planning import plan as forecast_of
    from opinionsim.specification import taking_part

    experiment = read_spec(spec, changes, prompts, lane)
    forecast = forecast_of(
        experiment,
        max_concurrency=max_concurrency,
        reply_tokens=reply_tokens,
        latency=latency,
        store=store,
    )
    sizes = None
    if pilot is not None and half_width is not None:
        from opinionsim.analysis import size_table
        from opinionsim.cli._stores import read_results

        sizes = size_table(experiment, forecast, read_results(pilot, None, None), half_width)
    own = {run.run_id for run in experiment.runs}
    variants = {
        label: forecast_of(
            each, only={run.run_id for run in each.runs} - own, reply_tokens=reply_tokens, latency=latency
        )
        for label, each in experiment.variants.items()
    }
    if as_json:
        more: dict[str, Any] = {} if sizes is None else {"sizes": records(sizes.frame)}
        more |= {"variants": {label: _figures(each) for label, each in variants.items()}} if variants else {}
        say_json({"experiment": experiment.spec.name, **_figures(forecast), **more})
    else:
        parts = [
            f"{experiment.spec.name}\n{taking_part(experiment)}",
            *map(aligned, forecast.tables()),
            "\n".join(forecast.notes),
            "\n".join(f"Variant {label}: {each.runs:,} runs, {each.usage}." for label, each in variants.items()),
            *([] if sizes is None else [sizes.to_text().rstrip("\n")]),
        ]
        say("\n\n".join(filter(None, parts)))
    if strict and any(each.lacking for each in (forecast, *variants.values())):
        raise typer.Exit(SpecError.exit_code)


def _figures(forecast: Forecast) -> dict[str, Any]:
    """A forecast as JSON values; unknown numbers are null."""
    stated = {name: value for name, value in asdict(forecast).items() if name not in ("models", "missing")}
    derived = ("run_width", "speedup", "input_characters", "input_tokens", "shared_tokens", "output_tokens", "cost")
    return {
        "models": list(dict.fromkeys(model.name for model in forecast.models)),
        **stated,
        **{name: getattr(forecast, name) for name in derived},
        "latency_s": forecast.sequential_s / forecast.calls if forecast.calls else None,
        "by_model": [asdict(model) for model in forecast.models],
        "missing": None if forecast.missing is None else _figures(forecast.missing),
    }


def comparison_text(forecast: Forecast, paid: Paid, seconds: float | None) -> str:
    """Make a table of forecast and actual figures.

    Parameters
    ----------
    forecast : Forecast
        The forecast of the runs that were carried out.
    paid : Paid
        Calls, tokens and money that these runs used.
    seconds : float or None
        Wall time; None if it is unknown because several invocations made the calls.
    """
    cached = ("cached (at most)", forecast.shared_tokens, paid.cached_tokens)
    money = (f"money ({forecast.currency})", forecast.cost, paid.cost)
    saved = ("saved (at most)", forecast.rebate, paid.saved)
    rows = [
        ("calls", forecast.calls, paid.calls),
        ("input tokens", forecast.input_tokens, paid.input_tokens if not paid.uncounted else None),
        ("output tokens", forecast.output_tokens, paid.output_tokens if not paid.uncounted else None),
        *([cached, money, saved] if forecast.cost or paid.cost else []),
        *([] if seconds is None else [("seconds (at least)", forecast.least_s, seconds)]),
    ]
    cells = [["", "forecast", "actual", "ratio"]]
    for name, expected, actual in rows:
        ratio = f"{actual / expected:.2f}" if expected and actual is not None else ""
        cells.append([name, _spell_number(expected), _spell_number(actual), ratio])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return aligned([[row[0], *map(str.rjust, row[1:], widths[1:])] for row in cells])


def _spell_number(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 100 else f"{value:,.0f}"


@by_kind
def preview(
    spec: str,
    changes: Changes = None,
    prompts: str | None = None,
    run: str | None = None,
) -> None:
    """Print the first prompt of each kind of turn as a model would receive it. Makes no calls.

    Parameters
    ----------
    run : NAME|ID
        Condition and replicate of the planned run, such as weak/3, or the start of its id. Default: the first run that
        is not a record of people.
    """
    from opinionsim.planning import preview as rendered
    from opinionsim.watching import row_of

    experiment = read_spec(spec, changes, prompts)
    runs, name = experiment.runs, experiment.spec.name
    asked = next((n for n, planned in enumerate(runs) if not planned.spec.interaction.recorded), 0)
    place = asked if run is None else row_of(name, runs, run)
    found = rendered(experiment, place)
    say(f"{name}: run {runs[place].name} ({found.run_id[:8]}), one of {len(runs)}")
    for event in found.events:
        say(f"  {event}")
    for act, messages in found.prompts.items():
        say(f"\n===== {act} =====")
        for message in messages:
            say(f"\n[{message.role}]\n{message.content}")
    if found.endpoint:
        say(f"\nThe agents of this run {found.endpoint}, so no prompt is sent.")
    elif not found.prompts:
        say("\nThis run has no steps and no probes, so no prompt is sent.")


def schema() -> None:
    """Print the JSON Schema of specifications, for editors and other tools."""
    from opinionsim.specification import json_schema

    say_json(json_schema())
