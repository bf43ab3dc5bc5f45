"""Classic models at the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import aligned, note, say, say_json
from opinionsim.cli._options import AsJson, assignments
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.classic import ClassicModel, Trajectories


def abm(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Name of the model (see: opinionsim list abm)."),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter or scheme option; may be repeated."),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="NAME=LIST",
            help="Run every value, as in epsilon=[0.1,0.2]; may be repeated: every combination.",
        ),
    ] = None,
    agents: Annotated[
        int | None, typer.Option("--agents", metavar="N", min=2, help="Number of agents; default 100.")
    ] = None,
    network: Annotated[
        str,
        typer.Option(
            "--network", metavar="SPEC", help="Name of a network, or '{kind: watts-strogatz, k: 10, p: 0.1}'."
        ),
    ] = "complete",
    initial: Annotated[
        str, typer.Option("--initial", metavar="SPEC", help="uniform, normal, or a list of one number an agent.")
    ] = "uniform",
    span: Annotated[
        str | None,
        typer.Option("--range", metavar="[LOW,HIGH]", help="Range of opinions. Default: that of the model."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=0, help="Steps, each of one update an agent.")] = 100,
    replicates: Annotated[int, typer.Option("--replicates", min=1, help="Number of simulations.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Root of all randomness.")] = 0,
    every: Annotated[int, typer.Option("--record-every", min=1, help="Steps between records.")] = 1,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="May be repeated. Default: bias and diversity, or its own."),
    ] = None,
    isolates: Annotated[
        str, typer.Option("--isolates", help="Agents without a partner: an error, or keep their opinions.")
    ] = "error",
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Save every opinion; with --over, every run."),
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="Draw into this file.")] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Describe the model; simulate nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a classic opinion model."""  # fmt: skip
    from opinionsim.classic import check_names, find_model, simulate, sweep
    from opinionsim.documents import parse_value

    found = find_model(model)
    if describe:
        say(_description(found))
        return
    if figure is not None:
        from opinionsim.plots import check_suffix

        check_suffix(figure)
    varied, set_to = assignments(over, "--over"), assignments(settings, "--set")
    check_names(found, [*varied, *set_to])
    if varied and every != 1:
        raise SpecError("--record-every cannot be given with --over, which keeps final opinions only")
    if figure is not None and len(varied) > 2:
        raise SpecError("--figure shows one or two parameters of --over; save more with --csv")
    common: dict[str, Any] = {
        "network": parse_value(network, "--network"),
        "initial": parse_value(initial, "--initial"),
        "steps": steps,
        "seed": seed,
        "n": agents,
        "replicates": replicates,
        "range": None if span is None else parse_value(span, "--range"),
        "isolates": isolates,
        **set_to,
    }
    names = metrics or list(found.measures)
    if varied:
        table = sweep(found, varied, metrics=names, **common)
        names = _report_sweep(table, list(varied), as_json=as_json)
    else:
        # Metrics that fail at the start fail at the end too: find out before the simulation.
        simulate(found, **{**common, "steps": 0}).metrics(names)
        run = simulate(found, record_every=every, **common)
        _report_run(found, run, names, as_json=as_json)
    if csv is not None:
        csv.parent.mkdir(parents=True, exist_ok=True)
        (table if varied else run.frame()).to_csv(csv, index=False)
        note(f"wrote {csv}")
    if figure is not None:
        from opinionsim.plots import phase_diagram, save, trajectories

        x, y = [*varied, None, None][:2]
        axes = phase_diagram(table, x=x, y=y, value=names[0]) if x else trajectories(run)
        note(f"wrote {save(axes, figure)}")


def _description(model: ClassicModel) -> str:
    """Title, summary, equation, parameters, schemes and sources of a model."""
    rows = [["parameter", "default", "valid", "meaning"]]
    rows += [[name, str(each.default), each.valid, each.meaning] for name, each in model.declared.items()]
    schemes = [["scheme", "choices, the default first"]]
    schemes += [[name, ", ".join(str(value).lower() for value in values)] for name, values in model.schemes.items()]
    parts = [
        f"{model.name}: {model.title}",
        model.summary,
        f"Equation (LaTeX): {model.equation}",
        model.behaviour,
        *(aligned(each) for each in (rows, schemes) if len(each) > 1),
        f"Opinions: {model.kind}, from {model.range[0]:g} to {model.range[1]:g} by default.",
        "\n".join(model.source),
    ]
    return "\n\n".join(parts)


def _report_run(model: ClassicModel, found: Trajectories, names: list[str], *, as_json: bool) -> None:
    """Print metrics at the start and at the end."""
    start, end = found.metrics(names, 0), found.metrics(names)
    if as_json:
        say_json(
            {
                "model": found.model,
                "parameters": _plain(found.parameters),
                "scheme": found.scheme,
                "range": [bound if math.isfinite(bound) else None for bound in found.range],
                "seed": found.seed,
                "evidence": found.evidence,
                "steps": int(found.times[-1]),
                "start": _plain(start),
                "end": _plain(end),
            }
        )
        return
    say(f"{model.title} ({model.name}): {_spell_all(found.parameters, found.scheme) or 'no parameters'}")
    say(f"Evidence: equation. {found.network.n} agents, {found.times[-1]} steps, {len(found.opinions)} replicates")
    say(aligned([["metric", "start", "end"], *([name, _mean(start[name]), _mean(end[name])] for name in end)]))
    if len(found.opinions) > 1:
        say("mean ± standard deviation over replicates")


def _report_sweep(table: pd.DataFrame, varied: list[str], *, as_json: bool) -> list[str]:
    """Print the mean of every metric by combination; return the columns of metrics."""
    names = [name for name in table.columns if name not in ("model", *varied, "replicate", "evidence")]
    if as_json:
        say_json(table.to_dict(orient="records"))
        return names
    same = _spell_all(table.attrs["parameters"], table.attrs["scheme"])
    say(f"{table.attrs['model']}: {same or 'nothing else to set'}")
    say(f"{table.attrs['n']} agents, {table.attrs['steps']} steps, {table.attrs['replicates']} replicates")
    rows = [[*varied, *names]]
    for values, group in table.groupby(varied, sort=False):
        rows.append([*(_spell(value) for value in values), *(_mean(group[name].to_numpy()) for name in names)])
    say(aligned(rows))
    say("Evidence: equation. Mean ± standard deviation over replicates, final opinions")
    return names


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for JSON, with arrays as lists."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}


def _spell_all(*settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_spell(value)}" for each in settings for name, value in each.items())


def _spell(value: Any) -> str:
    if hasattr(value, "__len__") and not isinstance(value, str):
        return f"[{len(value)} values]"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _mean(values: Any) -> str:
    """Mean, with the standard deviation if there are several values."""
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{values.mean():.4g} ± {values.std(ddof=1):.2g}"
