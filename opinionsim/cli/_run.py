"""The commands run and measure: progress, interrupts, and the report at the end."""

from __future__ import annotations

import gc
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from opinionsim.cli import _options as options
from opinionsim.cli._console import counted, note
from opinionsim.cli._stores import read_results, reason_lines
from opinionsim.errors import OpinionSimError, SpecError
from opinionsim.foundation.progress import attended, shown, stop_requests
from opinionsim.watching import batch_text, reasons, spelled

if TYPE_CHECKING:
    from opinionsim.planning import Forecast
    from opinionsim.running import Advance, Invocation, Summary
    from opinionsim.specification import Experiment

#: Runs to carry out by variant; None for all.
_Runs = Mapping[str, Collection[str] | None]
#: Reasons spelled out at the end; the rest are counted.
_REASONS_SHOWN = 5
_INCOMPLETE, _BUDGET, _INTERRUPTED = 1, 3, 130


@options.by_kind
def run(
    spec: str,
    store: str | None = None,
    max_concurrency: options.Slots = None,
    lane: options.LaneName = None,
    changes: options.Changes = None,
    prompts: str | None = None,
    fresh: bool = False,
    pilot: bool = False,
    robustness: bool = False,
    cluster: str | None = None,
    leave: bool = False,
    resubmit: bool = False,
    when_done: str | None = None,
) -> None:
    """Run an experiment. If you repeat the command, it completes what is missing and repeats no calls.

    Parameters
    ----------
    fresh
        Restart runs whose prompts have changed since their replies were stored.
    pilot
        Run only one replicate of every cell. The full run continues from there.
    robustness
        Also run the variants of the specification, after its own runs.
    cluster : ADDRESS
        Dask scheduler whose workers carry out the runs, such as tcp://HOST:8786. Needs a PostgreSQL store.
    leave
        End as soon as every call that can be made is in a batch. Repeat the command later, here or on another machine
        with a copy of the store, to fetch the replies.
    resubmit
        Buy calls again whose batch cannot be found or read any more, although they may have been paid for.
    when_done : COMMAND
        Command to start at the end, without a shell. Its environment has OPINIONSIM_EXIT, the exit code, and
        OPINIONSIM_STORE, the store.
    """
    from opinionsim.running import Invocation

    experiment = options.read_spec(spec, changes, prompts, lane)
    if robustness and not experiment.variants:
        raise SpecError("--robustness: the specification lists no variant under robustness")
    whole = Invocation(
        experiment,
        store_of(experiment, store),
        max_concurrency=max_concurrency,
        fresh=fresh,
        cluster=cluster,
        only=experiment.pilot if pilot else None,
        leave=leave,
        resubmit=resubmit,
    )
    with _then(when_done, whole.url):
        _run_whole(whole, pilot, robustness)


def _run_whole(whole: Invocation, pilot: bool, robustness: bool) -> None:
    """Carry out an experiment, or its pilot, and its variants, and say how that compares with the forecast."""
    from opinionsim.planning import counts_by_run, plan

    experiment, url = whole.experiment, whole.url
    forecast = plan(experiment, max_concurrency=whole.max_concurrency, only=whole.only, loaded=whole.parts)
    summary = carry_out_and_report(whole, forecast.calls)
    if summary.complete == summary.total and summary.made:
        every = counts_by_run(experiment, whole.parts) if pilot else {}
        rest = sum(each.calls for each in every.values()) - forecast.calls if pilot else 0
        _compare(forecast, summary, rest)
    if robustness:
        pilots = {label: each.pilot if pilot else None for label, each in experiment.variants.items()}
        summary = _carry_out_variants(whole, summary, pilots)
    _say_next(url, summary, experiment)
    end(summary)


def _carry_out_variants(whole: Invocation, summary: Summary, only: _Runs, calls: int | None = None) -> Summary:
    """Carry out variants of an experiment one after another, until one is stopped; of some, only the runs named.

    Returns
    -------
    Summary
        The one that stopped, else the first that is not complete, else the last.
    """
    from opinionsim.running import Invocation, under_way

    worst = summary
    for label, runs in only.items():
        if summary.stopped:
            break
        note(f"variant {label}:")
        summary = carry_out_and_report(replace(whole, experiment=whole.experiment.variants[label], only=runs), calls)
        worst = summary if worst.complete == worst.total else worst
    # On record last, so that tables show the experiment itself and not a variant.
    with under_way(Invocation(whole.experiment, whole.url, only=())):
        pass
    return summary if summary.stopped else worst


def measure(
    store: str,
    classifier: Annotated[str, typer.Option()],
    variable: str = "stance",
    texts: str | None = None,
    context: bool = False,
    settings: Annotated[list[str] | None, typer.Option("--set")] = None,
    max_concurrency: options.Slots = None,
    lane: Annotated[options.Lane, typer.Option()] = "now",
    experiment: str | None = None,
    design: options.DesignNumber = None,
) -> None:
    """Code the texts of finished runs with another instrument.

    Parameters
    ----------
    classifier : NAME
        Classifier (see: opinionsim list classifiers).
    variable : NAME
        Variable that it measures.
    texts : A,B
        Kinds of text that it reads. Default: those that state an opinion.
    context
        Also show it what the author had read, and who the author is.
    settings : NAME=VALUE
        An option of the classifier, such as model=NAME, or of its model, such as options.base_url=ADDRESS.
    lane
        How to buy replies of the model: now at the list price, flex through the provider's cheaper tier, or batch
        through its batch queue.
    """
    from opinionsim.metrics import between_points, cut, none_complete
    from opinionsim.running import Invocation
    from opinionsim.specification import load_experiment
    from opinionsim.store import open_store

    def ids_of(study: Experiment) -> set[str]:
        return {each.instrument_id for run in study.runs for each in run.spec.instruments}

    options.own_modules()
    results = read_results(store, experiment, design)
    if not results.run_ids:
        raise SpecError(f"{results.name} keeps no texts, so there is nothing to measure")
    listed = results.spec["measurement"]["instruments"]
    if any(each.get("recorded") for each in results.declared.values()) and between_points(cut(results.opinions)):
        raise SpecError("people rated between points, but instruments code points; import the ratings with points")
    added = {
        "variable": variable,
        "classifier": {"name": classifier, "options": options.assignments(settings, "--set")},
        "texts": None if texts is None else [kind.strip() for kind in texts.split(",")],
        "context": context,
    }
    # The lane of the runs is not one of every judge.
    bought = {"execution.lane": lane}
    again, alone = (
        load_experiment(results.manifest, {"measurement.instruments": own, **bought}) for own in (listed, [added])
    )
    if not ids_of(alone) <= ids_of(again):
        again = load_experiment(results.manifest, {"measurement.instruments": [*listed, added], **bought})
    with open_store(results.url, write=False) as opened:
        complete = {run_id for run_id, state in opened.states().items() if state.status == "complete"}
    finished = complete & set(results.run_ids)
    if not finished:
        raise none_complete(results.runs, "to measure")
    only = None if finished == set(results.run_ids) else finished
    whole = Invocation(again, results.url, max_concurrency=max_concurrency, only=only)
    summary = carry_out_and_report(whole, 0)
    # Its variants are compared with it as the same instruments read them.
    variants = {label: complete & {run.run_id for run in each.runs} for label, each in again.variants.items()}
    if done := {label: runs for label, runs in variants.items() if runs}:
        summary = _carry_out_variants(whole, summary, done, 0)
    end(summary)


def store_of(experiment: Experiment, store: str | None) -> str:
    """The given store, or the default store of an experiment."""
    from opinionsim.running import default_store

    if store is not None and not store.strip():
        raise SpecError(
            "--store must be the path of a store (.sqlite), or its sqlite:/// or postgresql+psycopg:// address; got ''"
        )
    return default_store(experiment) if store is None else store


@contextmanager
def _then(command: str | None, url: str) -> Iterator[None]:
    """Start a command of the user's when the block has ended, however it ends.

    Raises
    ------
    SpecError
        If there is no such command; nothing has been done then.
    """
    try:
        words = shlex.split(command or "")
    except ValueError as error:
        raise SpecError(f"--when-done: {error}") from None
    if command is not None and (not words or shutil.which(words[0]) is None):
        raise SpecError(f"--when-done: there is no command {words[0] if words else command!r} on this machine")
    code = 0
    try:
        yield
    except BaseException as error:
        code = getattr(error, "exit_code", _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 2)
        raise
    finally:
        if words:
            try:
                done = subprocess.run(words, env={**os.environ, "OPINIONSIM_EXIT": str(code), "OPINIONSIM_STORE": url})  # noqa: S603
                if done.returncode:
                    note(f"--when-done: {words[0]} ended with exit code {done.returncode}")
            except OSError as error:
                note(f"--when-done: {error}")


def end(summary: Summary) -> None:
    """Exit with the code for the result of a sweep; 0 if all runs are complete."""
    if summary.exceeded:
        raise typer.Exit(_BUDGET)
    if summary.stopped and not summary.left:
        raise typer.Exit(_INTERRUPTED)
    if summary.complete < summary.total:
        raise typer.Exit(_INCOMPLETE)


def carried_out(experiment: Experiment, store: str | None, max_concurrency: int | None) -> tuple[str, Summary]:
    """Carry out an experiment in a store, or in its default store, and report it; return the address and the result."""
    from opinionsim.running import Invocation

    url = store_of(experiment, store)
    return url, carry_out_and_report(Invocation(experiment, url, max_concurrency=max_concurrency))


def carry_out_and_report(invocation: Invocation, calls: int | None = None) -> Summary:
    """Carry out an experiment as :func:`carry_out` does, and print the result."""
    summary = carry_out(invocation, calls)
    report(invocation.url, summary)
    return summary


def carry_out(invocation: Invocation, calls: int | None = None) -> Summary:
    """Carry out an experiment with progress on standard error.

    The first SIGINT or SIGTERM stops dispatch and waits for calls in flight; the second ends at once.

    Parameters
    ----------
    invocation : Invocation
        The experiment, and how it is carried out.
    calls : int, optional
        Expected calls of the runs, for the progress; by default, it counts them.

    Returns
    -------
    Summary
        Result of the sweep; ``stopped`` after an interrupt.

    Raises
    ------
    OpinionSimError
        If a model, a classifier or the store cannot be opened.
    KeyboardInterrupt
        After a second interrupt.
    """
    from opinionsim.foundation import background
    from opinionsim.planning import counts_by_run
    from opinionsim.running import under_way
    from opinionsim.specification import manifest, taking_part

    experiment, only, loaded = invocation.experiment, invocation.only, invocation.parts
    if calls is None:
        calls = sum(each.calls for each in counts_by_run(experiment, loaded, only).values())
    # Objects loaded by now stay: walking them, a collection would delay dispatch and journal by tenths of a second.
    gc.freeze()
    with (
        stop_requests("stopping after the calls in flight; interrupt again to end at once") as stopping,
        under_way(invocation) as (runner, future),
    ):
        n_runs = len({run.run_id for run in experiment.runs} if only is None else only)
        planned, where = " of those planned" if only else "", spelled(invocation.url)
        note(f"{experiment.spec.name}: {counted(n_runs, 'run')}{planned} into {where}")
        note(taking_part(experiment))
        if experiment.frozen is not None and (changed := manifest(experiment)["frozen"]["changed"]):
            note(f"Changed since the design was frozen; the store records this: {', '.join(changed)}")
        for warning in runner.warnings:
            note(f"  {warning}")
        told, stopped = _Shown(calls, loaded.prices.currency), False

        def look() -> None:
            nonlocal stopped
            show(*told(runner.progress(), runner.errors()))
            if stopping() and not stopped:
                stopped = True
                background.call_soon(runner.stop)

        with shown() as show:
            return attended(future, look)


class _Shown:
    """The progress of a sweep as calls done, calls in all, and a text."""

    def __init__(self, calls: int, currency: str) -> None:
        self._calls, self._currency = calls, currency
        self._complete_before = 0
        self._began = time.monotonic()

    def __call__(self, progress: Advance, errors: Sequence[OpinionSimError]) -> tuple[int, int | None, str]:
        """The progress, with each cause of errors once; calls of runs that were complete at the start are left out."""
        from opinionsim.planning import spell_money

        done = progress.made + progress.answered
        if not done:
            self._complete_before = progress.complete
            self._began = time.monotonic()
        awaited = round(self._calls * (1 - self._complete_before / max(progress.total, 1)))
        elapsed = time.monotonic() - self._began
        total = max(awaited, done) or None
        rate = f", {progress.made / elapsed:,.0f}/s" if elapsed > 1 else ""
        paid = f", {spell_money(progress.cost, self._currency)}" if progress.cost else ""
        told = [
            f"{progress.complete:,} of {counted(progress.total, 'run')} complete",
            *([f"{progress.incomplete:,} incomplete"] if progress.incomplete else []),
            f"{progress.in_flight:,} calls in flight",
            *([f"{progress.answered:,} from the store"] if progress.answered else []),
            *([f"{progress.repeated:,} repeated"] if progress.repeated else []),
            *([progress.waits] if progress.waits else []),
        ]
        found = reasons((error.unplaced, error.cause) for error in errors)[:_REASONS_SHOWN]
        why = [f"  {counted(each.runs, 'run')}: {each.error}" for each in found]
        return done, total, "\n".join([f"{done:,}/{total or 0:,} calls{rate}{paid}", ", ".join(told), *why])


def report(url: str, summary: Summary) -> None:
    """Print the result of a sweep, and why runs failed."""
    if summary.already == summary.total:
        whole = f"all {summary.total:,} runs were" if summary.total != 1 else "the run was"
        called = f"{counted(summary.made, 'call')} made to code texts" if summary.made else "no call was made"
        note(f"{whole} complete already; {called}")
    else:
        note(
            f"{summary.complete} of {counted(summary.total, 'run')} complete"
            f"{f' ({summary.already} of them already)' if summary.already else ''} after {summary.seconds:.1f} s; "
            f"{counted(summary.made, 'call')} made, {summary.answered:,} answered by the store"
        )
        if summary.repeated:
            note(f"{counted(summary.repeated, 'attempt')} failed temporarily and had to be repeated")
    for batch in summary.batches:
        note(f"  {batch_text(batch)}")
    found = reasons((str(error), error.cause) for error in summary.causes.values())
    for line in reason_lines(found, _REASONS_SHOWN, f"see: opinionsim status {spelled(url)}"):
        note(f"  {line}")
    if not summary.left and not all(error.anew for error in summary.causes.values()):
        if summary.stopped:
            note("Repeat the command to continue from here.")
        else:
            note("Fix the cause, then repeat the command to continue from here.")


def _say_next(url: str, summary: Summary, experiment: Experiment) -> None:
    """Print commands that show the results; without a stance, the first figure of the way of interacting."""
    if summary.complete:
        where, cells = spelled(url), experiment.cells
        named = [] if any(each.instrument_id for each in cells) else [each.spec.interaction.figures for each in cells]
        figure = next((f"plot {names[0]}" for names in named if names), "" if named else "plot")
        note("Next:")
        for command in filter(None, ("table", figure, "show", "report")):
            note(f"  opinionsim {command} {where}")


def _compare(forecast: Forecast, summary: Summary, rest: int) -> None:
    """Print forecast and actual figures, unless only the scripted model played; after a pilot, also those of the rest.

    Parameters
    ----------
    forecast : Forecast
        The forecast of the runs that were carried out.
    summary : Summary
        The result of these runs.
    rest : int
        Calls of all other runs of the experiment.
    """
    from opinionsim.cli._plan_preview import comparison_text
    from opinionsim.planning import spell_money, spell_seconds

    paid, takes = summary.paid, f"{rest:,} calls"
    if any(model.name != "scripted" for model in forecast.models):
        # The time is known only where this invocation made all calls.
        seconds = summary.seconds if summary.made == paid.calls else None
        note(comparison_text(forecast, paid, seconds))
        # A pilot has one run of every cell, so its calls are a sample of the rest.
        share = rest / max(paid.calls, 1)
        takes += f", {round(share * (paid.input_tokens + paid.output_tokens)):,} tokens" if not paid.uncounted else ""
        takes += f", {spell_money(share * paid.cost, forecast.currency)}" if paid.cost else ""
        takes += "" if seconds is None else f", at most {spell_seconds(share * seconds)} at the pace of the pilot"
    if rest:
        note(f"The rest of the sweep: {takes}. To continue, repeat the command without --pilot.")
