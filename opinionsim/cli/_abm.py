"""Classic models at the command line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import aligned, note, say, say_json
from opinionsim.cli._options import AsJson
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.classic import ClassicModel, Trajectories

__all__ = ["abm"]


def abm(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Name of the model (see: opinionsim list abm).", show_default=False),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter or scheme option; may be repeated.", show_default=False
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="NAME=LIST",
            help="Run every value, as in epsilon=[0.1,0.2]; may be repeated: every combination.",
            show_default=False,
        ),
    ] = None,
    agents: Annotated[
        int | None, typer.Option("--agents", metavar="N", min=2, help="How many; default 100.", show_default=False)
    ] = None,
    network: Annotated[
        str,
        typer.Option("--network", metavar="SPEC", help="A name, or as in '{kind: watts-strogatz, k: 10, p: 0.1}'."),
    ] = "complete",
    initial: Annotated[
        str, typer.Option("--initial", metavar="SPEC", help="uniform, normal, or a list of one number an agent.")
    ] = "uniform",
    span: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="[LOW,HIGH]", help="Range of opinions. Default: that of the model.", show_default=False
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=0, help="Sweeps of one update an agent.")] = 100,
    replicates: Annotated[int, typer.Option("--replicates", min=1, help="Simulations.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Root of all randomness.")] = 0,
    every: Annotated[int, typer.Option("--record-every", min=1, help="Sweeps between records.")] = 1,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measure", metavar="NAME", help="May be repeated. Default: bias and diversity.", show_default=False
        ),
    ] = None,
    isolates: Annotated[
        str, typer.Option("--isolates", help="Agents without a partner: an error, or keep their opinions.")
    ] = "error",
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Save every opinion; with --over, every run.", show_default=False),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE", help="Draw into this file.", show_default=False)
    ] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Say what the model is, and simulate nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a classic opinion model."""  # fmt: skip
    from opinionsim.classic import find_model, simulate, sweep
    from opinionsim.classic._process import check_names
    from opinionsim.documents import parse_value

    found = find_model(model)
    if describe:
        say(_description(found))
        return
    if figure is not None:
        from opinionsim.plots import check_suffix

        check_suffix(figure)
    varied, set_to = _assignments(over, "--over"), _assignments(settings, "--set")
    check_names(found, [*varied, *set_to])
    if varied and every != 1:
        raise SpecError("--record-every goes without --over, of which only final opinions are kept")
    if figure is not None and len(varied) > 2:
        raise SpecError("--figure shows one or two of --over; save more with --csv")
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
    names = measures or ["bias", "diversity"]
    if varied:
        table = sweep(found, varied, measures=names, **common)
        _report_sweep(table, list(varied), names, csv, figure, as_json=as_json)
    else:
        # What cannot be measured at the start cannot be at the end either.
        _measured(simulate(found, **{**common, "steps": 0}), names, 0)
        _report_run(found, simulate(found, record_every=every, **common), names, csv, figure, as_json=as_json)


def _assignments(texts: list[str] | None, option: str) -> dict[str, Any]:
    """Names and values of ``NAME=VALUE``, each name once."""
    found: dict[str, Any] = {}
    for text in texts or ():
        name, value = _assignment(text, option)
        if name in found:
            raise SpecError(f"{option} {name} is given twice")
        found[name] = value
    return found


def _assignment(text: str, option: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``; the value is YAML."""
    from opinionsim.documents import parse_value

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SpecError(f"{option} {text!r}: must have the form NAME=VALUE")
    return name.strip(), parse_value(value, f"{option} {name.strip()}")


def _description(model: ClassicModel) -> str:
    """Everything a user needs to know of a model before simulating it."""
    rows = [["parameter", "default", "valid", "meaning"]]
    rows += [[name, str(each.default), each.valid, each.meaning] for name, each in model.declared.items()]
    schemes = [["scheme", "choices, the default first"]]
    schemes += [[name, ", ".join(str(value).lower() for value in values)] for name, values in model.schemes.items()]
    parts = [
        f"{model.name}: {model.title}",
        model.summary,
        f"Equation (LaTeX): {model.equation}",
        model.behaviour,
        *([aligned(rows)] if len(rows) > 1 else []),
        *([aligned(schemes)] if len(schemes) > 1 else []),
        f"Opinions: {model.kind}, from {model.range[0]:g} to {model.range[1]:g} by default.",
        "\n".join(f"{each.reference}. {f'doi:{each.doi}' if each.doi else ''}".rstrip() for each in model.source),
    ]
    return "\n\n".join(parts)


def _report_run(
    model: ClassicModel,
    found: Trajectories,
    names: list[str],
    csv: Path | None,
    figure: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print measures at the start and at the end; save what is asked for."""
    ends = {moment: _measured(found, names, place) for moment, place in (("start", 0), ("end", -1))}
    names = list(ends["end"])
    if as_json:
        say_json(
            {
                "model": found.model,
                "parameters": {name: _plain(value) for name, value in found.parameters.items()},
                "scheme": found.scheme,
                "range": [end if math.isfinite(end) else None for end in found.range],
                "seed": found.seed,
                "evidence": found.evidence,
                "steps": int(found.times[-1]),
                **{moment: {name: _plain(values) for name, values in each.items()} for moment, each in ends.items()},
            }
        )
    else:
        settings = {**found.parameters, **found.scheme}
        said = ", ".join(f"{name}={_spell(value)}" for name, value in settings.items())
        say(f"{model.title} ({model.name}): {said or 'no parameters'}")
        say(f"Evidence: equation. {found.network.n} agents, {found.times[-1]} sweeps, {len(found.opinions)} replicates")
        rows = [["measure", "start", "end"]]
        rows += [[name, _mean(ends["start"][name]), _mean(ends["end"][name])] for name in names]
        say(aligned(rows))
        if len(found.opinions) > 1:
            say("mean ± standard deviation over replicates")
    if csv is not None:
        _save(found.frame(), csv)
    if figure is not None:
        from opinionsim.plots import save, trajectories

        note(f"wrote {save(trajectories(found), figure)}")


def _measured(found: Trajectories, names: list[str], place: int) -> dict[str, Any]:
    """Measures of the opinions at one moment."""
    from opinionsim.classic._sweep import measured

    return measured(found.opinions[:, place], names, found, found.opinions.ndim > 3, found.opinions[:, 0])


def _report_sweep(
    table: pd.DataFrame, varied: list[str], names: list[str], csv: Path | None, figure: Path | None, *, as_json: bool
) -> None:
    """Print the mean of every measure by combination; save what is asked for."""
    if as_json:
        say_json(table.to_dict(orient="records"))
    else:
        names = [name for name in table.columns if name not in ("model", *varied, "replicate", "evidence")]
        same = {**table.attrs["parameters"], **table.attrs["scheme"]}
        said = ", ".join(f"{name}={_spell(value)}" for name, value in same.items())
        say(f"{table.attrs['model']}: {said or 'nothing else to set'}")
        say(f"{table.attrs['n']} agents, {table.attrs['steps']} sweeps, {table.attrs['replicates']} replicates")
        rows = [[*varied, *names]]
        for values, group in table.groupby(varied, sort=False):
            rows.append([*(_spell(value) for value in values), *(_mean(group[name].to_numpy()) for name in names)])
        say(aligned(rows))
        say("Evidence: equation. Mean ± standard deviation over replicates, final opinions")
    if csv is not None:
        _save(table, csv)
    if figure is not None:
        from opinionsim.plots import phase_diagram, save

        axes = phase_diagram(table, x=varied[0], y=varied[1] if len(varied) > 1 else None, value=names[0])
        note(f"wrote {save(axes, figure)}")


def _save(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False)
    note(f"wrote {path}")


def _plain(value: Any) -> Any:
    """Arrays as lists, for JSON."""
    return value.tolist() if hasattr(value, "tolist") else value


def _spell(value: Any) -> str:
    if hasattr(value, "__len__") and not isinstance(value, str):
        return f"[{len(value)} values]"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _mean(values: Any) -> str:
    """Mean, with the standard deviation where there are several values."""
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{values.mean():.4g} ± {values.std(ddof=1):.2g}"
