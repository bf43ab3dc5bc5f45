"""Classic models at the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from opinionsim import cli
from opinionsim.classic.command._sweep_progress import carry_out_sweep, end_sweep, say_plan
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    from opinionsim.classic import ClassicModel, Trajectories
    from opinionsim.classic.sweeps import Sweep

#: Settings of a simulation that are options, by the names one may look for them under.
_OPTIONS = {"n": "agents", "metrics": "metric"} | {
    name: name for name in ("agents", "network", "initial", "steps", "until", "replicates", "seed", "metric", "threads")
}
#: Endings of specifications.
_SPECS = (".yaml", ".yml", ".json")


def abm(
    model: str,
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
    over: list[str] | None = None,
    agents: Annotated[int | None, typer.Option(min=2)] = None,
    network: str | None = None,
    initial: str | None = None,
    steps: Annotated[int | None, typer.Option(min=0)] = None,
    until: str | None = None,
    replicates: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    metrics: Annotated[list[str] | None, typer.Option("--metric")] = None,
    store: str | None = None,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    cluster: str | None = None,
    plan: bool = False,
    yes: bool = False,
    csv: Path | None = None,
    figure: Path | None = None,
    force: cli.Force = False,
    describe: bool = False,
    as_json: cli.AsJson = False,
) -> None:
    """Simulate a classic opinion model once, or sweep over every combination of values.

    Parameters
    ----------
    model : MODEL|SPEC
        Name of the model (see: opinionsim list abm), import path of your own model, package.module:NAME, or path of the
        specification of a sweep (.yaml).
    settings : NAME=VALUE
        A parameter or scheme option; range=[LOW,HIGH], the range of opinions; or isolates=keep, which accepts agents
        without a partner. A single simulation also takes record_every=STEPS. A sweep also takes at=STEPS, further steps
        to measure at: [10,100], 10:90:20, or {log: 20} for logarithmic spacing. With a specification, set a field, as
        in interaction.steps=50. You can repeat the option.
    over : NAME=VALUES
        Run every value of a parameter, a scheme option, n, network, network.k, initial, initial.high or range. Give a
        list, epsilon=[0.1,0.2], or a range that includes both ends, epsilon=0.05:0.5:0.05. If you repeat the option,
        the sweep runs every combination.
    agents : N
        Number of agents. Default: 100.
    network : SPEC
        Name of a network, or '{kind: watts-strogatz, k: 10, p: 0.1}'. Default: complete.
    initial : SPEC
        Initial opinions: uniform, normal, beta, share, even, levels, {kind: share, high: 0.3}, or one number per agent.
    steps
        Number of steps, each with one update per agent. Default: 100.
    until : SPEC
        End runs earlier: frozen, consensus or '{change: 1e-4}'.
    replicates
        Number of simulations of each point. Default: 1.
    seed
        Seed of all random draws. Default: 0.
    metrics : NAME
        Metric to compute. You can repeat the option. Default: those of the model, such as bias.
    store : STORE
        Store measures as runs complete; the same command continues later from there. Default: no store, or
        results/NAME.sqlite for a specification.
    threads
        Number of parallel simulations. Default: one per processor.
    cluster : ADDRESS
        Dask scheduler whose workers simulate, such as tcp://HOST:8786. This process stores their results.
    plan
        Print points, runs, time and memory of a sweep, and run only a pilot.
    yes
        Start a sweep of more than a day without confirmation.
    csv : FILE
        Save every opinion, or for a sweep, every run.
    figure : FILE
        Draw a figure into this file.
    describe
        Describe the model without a simulation.
    """
    from opinionsim.classic._registry import find_model
    from opinionsim.classic.kernels._process import check_names
    from opinionsim.classic.sweeps import default_sweep_store, load_sweep
    from opinionsim.foundation.documents import parse_value

    cli.own_modules()
    cli.say_logged("opinionsim.foundation.compilation")
    if figure is not None:
        from opinionsim.plots import check_suffix

        check_suffix(figure)
    output = _Output(model, store, threads, cluster, plan, yes, csv, figure, force, as_json)
    given = {
        "--over": over, "--agents": agents, "--network": network, "--initial": initial, "--steps": steps,
        "--until": until,
    }  # fmt: skip
    if Path(model).suffix in _SPECS:
        if stated := [name for name, value in given.items() if value is not None]:
            raise SpecError(
                f"{stated[0]} is a field of the specification; use, for example, --set interaction.steps=50"
            )
        changes = {"replicates": replicates, "seed": seed, "measurement.metrics": metrics}
        spelled = [f"{path}={json.dumps(value)}" for path, value in changes.items() if value is not None]
        sweep = load_sweep(model, [*(settings or ()), *spelled])
        return _sweep(sweep, output._replace(store=store or default_sweep_store(sweep)))
    found = find_model(model)
    if describe:
        cli.say(_description(found))
        return
    set_to, varied = cli.assignments(settings, "--set"), cli.assignments(over, "--over")
    for name in set_to:
        if name in _OPTIONS and name not in (*found.declared, *found.schemes):
            given_as = json.dumps(set_to[name]).strip('"')
            raise SpecError(f"--set {name}: {found.name} has no such parameter; give --{_OPTIONS[name]} {given_as}")
    if both := sorted({*varied} & {*set_to}):
        raise SpecError(f"{both[0]} is given twice, once with a fixed value and once to vary")
    # These belong to a simulation, and not to its model.
    further: dict[str, Any] = {
        name: set_to.pop(name) for name in ("range", "isolates", "at", "record_every") if name in set_to
    }
    check_names(found, set_to)
    common: dict[str, Any] = {
        "n": agents,
        "network": "complete" if network is None else parse_value(network, "--network"),
        "initial": "uniform" if initial is None else parse_value(initial, "--initial"),
        "steps": 100 if steps is None else steps,
        "seed": seed or 0,
        "replicates": replicates or 1,
        **further,
    }
    names = metrics or list(found.measures)
    if not any((varied, until, "at" in common, store, cluster, plan)):
        return _single(found, {**common, **set_to}, names, output)
    if "record_every" in common:
        raise SpecError("--set record_every is only for single simulations; for a sweep, give the steps with --set at")
    end = None if until is None else parse_value(until, "--until")
    _sweep(load_sweep(_specification(found, common, set_to, varied, end, names)), output)


def _specification(
    model: ClassicModel,
    common: Mapping[str, Any],
    parameters: Mapping[str, Any],
    varied: Mapping[str, Any],
    until: Any,
    metrics: list[str],
) -> dict[str, Any]:
    """The specification that the options of a sweep stand for."""
    from opinionsim.classic.sweeps import field_named

    at = common.get("at", [])
    interaction = {name: common[name] for name in ("network", "steps", "isolates") if name in common}
    return {
        "name": model.name.replace(":", "."),
        "seed": common["seed"],
        "replicates": common["replicates"],
        "model": {"classic": model.name, "parameters": parameters},
        "population": {"size": common["n"], "initial_opinions": common["initial"], "range": common.get("range")},
        "interaction": {**interaction, "until": until},
        "measurement": {"metrics": metrics, "at": [at] if isinstance(at, int) else at},
        "sweep": {field_named(name): values for name, values in varied.items()},
    }


class _Output(NamedTuple):
    """How a simulation is carried out, and where its results go; as the options of the same names say."""

    model: str
    store: str | None
    threads: int | None
    cluster: str | None
    plan: bool
    yes: bool
    csv: Path | None
    figure: Path | None
    force: bool
    as_json: bool


def _single(model: ClassicModel, given: dict[str, Any], metrics: list[str], output: _Output) -> None:
    """Carry out one simulation, and report it."""
    from opinionsim.classic._simulate import simulate

    # Metrics that fail at the start fail at the end too: find out before the simulation.
    simulate(model, **{**given, "steps": 0}).metrics(metrics)
    _require_targets(output, "run_id", "cell", "agent", "step", "value", "evidence")
    run = simulate(model, threads=output.threads, **given)
    _report_run(model, run, metrics, as_json=output.as_json)
    cli.write_frames([(output.csv, run.frame())] if output.csv is not None else [])
    if output.figure is not None:
        from opinionsim.plots import save, trajectories

        cli.note(f"wrote {save(trajectories(run), output.figure, caption=True)}")


def _sweep(sweep: Sweep, output: _Output) -> None:
    """Carry out a sweep, or plan it, and report it."""
    from opinionsim.classic.sweeps import point_measures, points_table

    store, figure = output.store, output.figure
    if figure is not None and not 1 <= len(sweep.axes) <= 2:
        raise SpecError(f"--figure shows one or two axes; this sweep has {len(sweep.axes)}; save its runs with --csv")
    if output.plan:
        say_plan(sweep, store, output.threads)
        return
    _require_targets(output, "model", "replicate", "stopped", "evidence")
    summary = carry_out_sweep(sweep, store, threads=output.threads, cluster=output.cluster, yes=output.yes)
    frame = summary.frame
    if len(frame) and output.as_json:
        cli.say_rows(frame.drop(columns="error"))
    elif len(frame):
        cli.say(points_table(frame).to_text().rstrip("\n"))
    cli.write_frames([(output.csv, frame)] if output.csv is not None else [])
    if figure is not None and len(frame):
        from opinionsim.classic.figures._phase import phase_diagram
        from opinionsim.plots import save

        # An axis of one value makes no map.
        x, *others = [name for name in sweep.axes if frame[name].nunique() > 1] or sweep.axes[:1]
        y, value = others[0] if others else None, point_measures(frame)[0]
        cli.note(f"wrote {save(phase_diagram(frame, x=x, y=y, value=value), figure, caption=True)}")
    end_sweep(summary, kept=store is not None)


def _require_targets(output: _Output, *columns: str) -> None:
    """Refuse files that cannot be written, or where something would be lost, before the first run."""
    cli.require_table(output.csv, *columns, force=output.force, read=[output.model])
    if output.figure is not None:
        from opinionsim.plots import require_figure

        require_figure(output.figure, force=output.force, read=[output.model])


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
        *(cli.aligned(each) for each in (rows, schemes) if len(each) > 1),
        f"Opinions: {model.kind}, from {model.range[0]:g} to {model.range[1]:g} by default.",
        "\n".join(model.source),
    ]
    return "\n\n".join(parts)


def _report_run(model: ClassicModel, found: Trajectories, names: list[str], *, as_json: bool) -> None:
    """Print metrics at the start and at the end."""
    from opinionsim.analysis import mean_text, spell_all
    from opinionsim.classic.sweeps import INTERVAL, INTERVAL_MEANS
    from opinionsim.metrics import limits_of, takes_delta

    start, end = found.metrics(names, 0), found.metrics(names)
    if as_json:
        cli.say_json(
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
    cli.say(f"{model.title} ({model.name}): {spell_all(model.told(found.parameters), found.scheme) or 'no parameters'}")
    n, behind = len(found.opinions), INTERVAL if len(found.opinions) > 1 else ""
    cli.say(f"Evidence: equation. {found.network.n} agents, {found.times[-1]} steps, {cli.counted(n, 'replicate')}")
    limits = {name: limits_of(name, *found.range) for name in end}
    rows = [[name, mean_text(start[name], limits[name]), mean_text(end[name], limits[name])] for name in end]
    cli.say(cli.aligned([["metric", f"start{behind}", f"end{behind}"], *rows]))
    if found.delta is not None and takes_delta(end):
        cli.say("A gap separates clusters if it exceeds epsilon.")
    if n > 1:
        cli.say(INTERVAL_MEANS)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for JSON, with arrays as lists."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}
