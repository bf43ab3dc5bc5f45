"""Looking into a store: where runs stand, what was said, and whether the record gives the same run again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opinionsim.cli._console import aligned, note, say, say_json
from opinionsim.cli._options import AsJson, ExperimentName, StorePath
from opinionsim.cli._stores import row_of

if TYPE_CHECKING:
    import pandas as pd

    from opinionsim.llm import CanaryReply
    from opinionsim.store import CanaryRow, ExperimentRow, Paid, Results, RunState

__all__ = ["replay", "show", "status"]

_STATUSES = ("complete", "incomplete", "running", "pending")
#: Errors of incomplete runs that are spelled out; the rest are counted.
_ERRORS_SHOWN = 10


def status(
    store: StorePath,
    runs: Annotated[bool, typer.Option("--runs", help="List every run with its number and id.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print how many runs of each experiment are complete, what they have used, and why the others are not."""
    from opinionsim.store import open_store

    with open_store(store, write=False) as opened:
        experiments = opened.experiments()
        states = opened.states()
        found = [
            {
                **_standing(experiment, states),
                **_spending(opened.usage({run.run_id for run in experiment.runs})),
                "changed_models": _changes(opened.canaries(experiment.experiment_id)),
            }
            for experiment in experiments
        ]
    if as_json:
        say_json(found)
        return
    if not found:
        say("no experiment is on record")
        return
    header = ("experiment", "runs", *_STATUSES, "calls", "tokens in", "tokens out", "money")
    say(aligned([header, *((str(each["experiment"]), *_numbers(each)) for each in found)]))
    for each in found:
        _say_errors(each)
        _say_changes(each)
    if any(each["running"] for each in found):
        say("\nA run marked as running is under way now or was cut off; `opinionsim run` goes on with it.")
    if runs:
        for each in found:
            say(f"\n{each['experiment']}")
            say(_run_list(store, str(each["experiment_id"])))


def _standing(experiment: ExperimentRow, states: dict[str, RunState]) -> dict[str, Any]:
    """An experiment's runs by status, with the errors of those that are not complete."""
    run_ids = list(dict.fromkeys(run.run_id for run in experiment.runs))
    counts = Counter(states[run_id].status for run_id in run_ids if run_id in states)
    return {
        "experiment": experiment.name,
        "experiment_id": experiment.experiment_id,
        "runs": len(run_ids),
        **{status: counts[status] for status in _STATUSES},
        "errors": {run_id: states[run_id].error for run_id in run_ids if run_id in states and states[run_id].error},
    }


def _spending(paid: Paid) -> dict[str, Any]:
    """What an experiment's stored calls have used; tokens and money only as far as they were told."""
    return {"calls": paid.calls, "tokens_in": paid.input_tokens, "tokens_out": paid.output_tokens, "money": paid.cost}


def _numbers(standing: dict[str, Any]) -> list[str]:
    counted = [*("runs", *_STATUSES), "calls", "tokens_in", "tokens_out"]
    return [*(f"{standing[name]:,}" for name in counted), _money(standing["money"])]


def _money(amount: float) -> str:
    """Money with four decimals, which a single call may take; none without a price."""
    return f"{amount:,.4f}" if amount else "-"


def _changes(rows: list[CanaryRow]) -> list[str]:
    """What the answers to the fixed questions say of each model, from one round of them to the next."""
    from opinionsim.llm import compare_canaries

    found = []
    for model in dict.fromkeys(row.model for row in rows):
        rounds = _rounds([row for row in rows if row.model == model])
        for (_, before), (asked_at, after) in pairwise(rounds):
            if change := compare_canaries(before, after):
                found.append(f"{model}, asked {datetime.fromtimestamp(asked_at, UTC):%Y-%m-%d %H:%M} UTC: {change}")
    return found


def _rounds(rows: list[CanaryRow]) -> list[tuple[float, tuple[CanaryReply, ...]]]:
    """One model's answers, round by round: a round ends where its moment does or a question comes again."""
    from opinionsim.llm import CanaryReply

    rounds: list[list[CanaryRow]] = []
    for row in rows:
        last = rounds[-1] if rounds else []
        if not last or last[0].moment != row.moment or any(each.position == row.position for each in last):
            rounds.append([])
        rounds[-1].append(row)
    return [
        (
            asked[0].asked_at,
            tuple(CanaryReply(r.position, r.text, r.returned_model, r.fingerprint, None, None) for r in asked),
        )
        for asked in rounds
    ]


def _say_changes(standing: dict[str, Any]) -> None:
    if standing["changed_models"]:
        say(f"\n{standing['experiment']}: answers to the fixed questions that differ from those before")
    for change in standing["changed_models"]:
        say(f"  {change}")


def _say_errors(standing: dict[str, Any]) -> None:
    errors = list(standing["errors"].items())
    if errors:
        say(f"\n{standing['experiment']}: runs that ended with an error")
    for run_id, error in errors[:_ERRORS_SHOWN]:
        say(f"  {run_id}: {error}")
    if len(errors) > _ERRORS_SHOWN:
        say(f"  and {len(errors) - _ERRORS_SHOWN} more (all of them with --json)")


def _run_list(store: str, experiment_id: str) -> str:
    """Number, id, status and conditions of every run."""
    from opinionsim.store import load

    runs = load(store, experiment_id).runs
    rows = [
        (str(row.Index), str(row.run_id), str(row.status), f"replicate {row.replicate}", str(row.cell))
        for row in runs.itertuples()
    ]
    return aligned([("run", "id", "status", "", "cell"), *rows])


def show(
    store: StorePath,
    experiment: ExperimentName = None,
    run: Annotated[
        str, typer.Option("--run", metavar="N|ID", help="Number of the run (see: status --runs), or start of its id.")
    ] = "0",
    agent: Annotated[
        int | None, typer.Option("--agent", metavar="N", help="Only this agent, from 0.", show_default=False)
    ] = None,
    turn: Annotated[
        int | None, typer.Option("--turn", metavar="N", help="Only this turn, from 0.", show_default=False)
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Also print the literal prompt of each call.")] = False,
) -> None:
    """Print what was said in a run, who read what, and how each text was coded."""
    from opinionsim.experiments import transcript
    from opinionsim.store import load

    results = load(store, experiment)
    row = row_of(results, run)
    say(transcript(results, row, agent, turn))
    if prompt:
        _say_prompts(results, row, agent, turn)


def _say_prompts(results: Results, row: int, agent: int | None, turn: int | None) -> None:
    """The messages of every call of the chosen turns, with the reply, its reasoning and what it took."""
    from opinionsim.store import open_store

    calls = _calls_of(results, str(results.runs["run_id"].iloc[row]), agent, turn)
    if not len(calls):
        say("\nNo model was asked for this.")
    with open_store(results.url, write=False) as opened:
        for call in calls.to_dict("records"):
            attempt = f", attempt {call['attempt']}" if call["attempt"] else ""
            say(f"\n===== prompt of turn {call['turn']}, {call['part']}{attempt} ({call['outcome']}) =====")
            say(_particulars(call))
            for message in opened.prompt(call["run_id"], call["turn"], call["part"], call["attempt"]):
                say(f"\n[{message.role}]\n{message.content}")
            if call["reasoning"]:
                say(f"\n[reasoning]\n{call['reasoning']}")
            say(f"\n[reply]\n{call['reply']}")


def _particulars(call: dict[Any, Any]) -> str:
    """Condition, model, tokens, money and time of a call in one line, as far as they are known."""
    import pandas as pd

    known = {name: value for name, value in call.items() if not pd.isna(value) and value != ""}
    told = [
        ("condition", "{}"),
        ("reason", "rejected: {}"),
        ("finish_reason", "finish reason {}"),
        ("model", "model {}"),
        ("input_tokens", "{:,} tokens in"),
        ("cached_tokens", "{:,} of them cached"),
        ("output_tokens", "{:,} tokens out"),
        ("reasoning_tokens", "{:,} of them reasoning"),
        ("cost", "money {:.6f}"),
        ("latency_s", "{:.1f} s"),
    ]
    return " · ".join(form.format(known[name]) for name, form in told if name in known)


def _calls_of(results: Results, run_id: str, agent: int | None, turn: int | None) -> pd.DataFrame:
    """Calls of a run."""
    calls = results.calls[results.calls["run_id"] == run_id]
    calls = calls if agent is None else calls[calls["agent"] == agent]
    return calls if turn is None else calls[calls["turn"] == turn]


def replay(store: StorePath, experiment: ExperimentName = None, as_json: AsJson = False) -> None:
    """Rebuild every complete run from its stored calls, without a model, and compare."""
    from opinionsim.experiments import replay as replayed
    from opinionsim.store import load

    found = replayed(load(store, experiment))
    differing = [each for each in found if each.difference]
    if as_json:
        say_json([{"run_id": each.run_id, "turns": each.turns, "difference": each.difference} for each in found])
    else:
        for each in differing:
            say(f"{each.run_id}: {each.difference}")
        turns = sum(each.turns for each in found)
        say(f"{len(found) - len(differing)} of {len(found)} complete runs are equal after replay ({turns:,} turns)")
    if differing:
        raise typer.Exit(1)
    if not found:
        note("no run is complete, so there was nothing to replay")
