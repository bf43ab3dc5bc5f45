"""The command status: states of the runs in a store, their usage, and their errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opinionsim import watching
from opinionsim.cli._console import aligned, counted, say, say_json
from opinionsim.cli._options import AsJson
from opinionsim.cli._stores import how_far, reason_lines
from opinionsim.errors import Cause, DamagedError
from opinionsim.metrics import answered_otherwise, named_models

if TYPE_CHECKING:
    from opinionsim.store import DesignRow, Paid, RunState, Store

#: Causes of errors that are printed; the runs of the rest are counted.
_REASONS_SHOWN = 10
#: States in which no unit of a study without runs is.
_OF_RUNS_ALONE = ("under_way", "cut_off", "withdrawn", "being_coded")
#: What an experiment has used, and the attribute of `Paid` that tells it.
_USED = {"calls": "calls", "tokens_in": "input_tokens", "tokens_cached": "cached_tokens"}
_USED |= {"tokens_out": "output_tokens", "money": "cost", "money_saved": "saved"}


def status(
    store: str,
    runs: bool = False,
    as_json: AsJson = False,
) -> None:
    """Print the progress and the cost of each experiment, and why runs are not complete.

    Parameters
    ----------
    runs
        List every run with its name and id.
    """
    from opinionsim.store import open_store

    with open_store(store, write=False) as opened:
        designs = [sorted(own, key=lambda design: design.design) for own in watching.by_experiment(opened.designs())]
        states = opened.states()
        alive = opened.under_way(states)
        spent, lost, missing = opened.spending(), opened.left_behind(), opened.missing()
        found = [_standing(opened, own, states, alive, spent, lost, missing) for own in designs]
        listed = [_run_list(opened, own, alive) for own in designs] if runs else []
    if as_json:
        say_json([{name: value for name, value in each.items() if name != "reasons"} for each in found])
        return
    if not found:
        say("the store contains no experiment")
        return
    say(_table(found))
    for each in found:
        if each["errors"]:
            say(f"\n{each['experiment']}: runs with an error")
        for line in reason_lines(each["reasons"], _REASONS_SHOWN, "all of them with --json"):
            say(f"  {line}")
        for line in answered_otherwise(each["models"]):
            say(f"\n{each['experiment']}: {line}")
    _say_next(store, found)
    for text in listed:
        say(f"\n{text}")


def _standing(
    opened: Store,
    designs: Sequence[DesignRow],
    states: Mapping[str, RunState],
    alive: Collection[str],
    spent: Mapping[str, Paid],
    lost: Mapping[str, int],
    missing: Mapping[str, str],
) -> dict[str, Any]:
    """Numbers of an experiment's runs by state, over all designs and for each, and what the experiment has used."""
    experiment = designs[0]
    run_ids = list(dict.fromkeys(run.run_id for design in designs for run in design.runs))
    paid = spent.get(experiment.experiment_id)
    last = max(designs, key=lambda design: design.saved_at)
    errors = {run_id: (each.error, each.cause) for run_id in run_ids if (each := states.get(run_id)) and each.error}
    for run_id in filter(missing.__contains__, run_ids):
        damaged = DamagedError(missing[run_id], f"run {run_id}")
        errors[run_id] = str(damaged), damaged.cause
    for row in opened.failed_units(watching.units_of(designs)):
        errors[f"{row.unit_id}/{row.replicate}"] = row.error, Cause("unit", row.error)
    return {
        "experiment": experiment.name,
        "experiment_id": experiment.experiment_id,
        **_counts(opened, designs, states, alive),
        "errors": {run: error for run, (error, _) in errors.items()},
        "reasons": watching.reasons(errors.values()),
        **{name: getattr(paid, attribute, 0) for name, attribute in _USED.items()},
        "batches": [
            batch._asdict()
            for batch in opened.batches()
            if (batch.experiment_id, batch.state) == (experiment.experiment_id, "open")
        ],
        "asking_a_person": len({wait.run_id for wait in opened.waits()} & set(run_ids)),
        "calls_left_behind": lost.get(experiment.experiment_id, 0),
        "models": named_models(opened.models(run_ids)),
        "designs": [
            {
                "design": design.design,
                "frozen": "frozen" in design.manifest,
                "run_last": design is last,
                **_counts(opened, [design], states, alive),
            }
            for design in designs
        ],
    }


def _counts(
    opened: Store, designs: Sequence[DesignRow], states: Mapping[str, RunState], alive: Collection[str]
) -> dict[str, int]:
    """Numbers of runs of designs: in all, by state, and of complete runs to which opinions are being added."""
    run_ids = {run.run_id for design in designs for run in design.runs}
    if units := watching.count_units(opened, designs):
        return {"runs": sum(units.values()), **dict.fromkeys(_OF_RUNS_ALONE, 0), **units}
    own = {run_id: states[run_id] for run_id in run_ids & states.keys()}
    coding = sum(state.status == "complete" and run_id in alive for run_id, state in own.items())
    counted = {name.replace(" ", "_"): count for name, count in watching.count_states(own, alive).items()}
    return {"runs": len(run_ids), **counted, "being_coded": coding}


# -- the table -----------------------------------------------------------------------------------------------


def _table(found: Sequence[dict[str, Any]]) -> str:
    """A line for each experiment, and for each design where there are several; what no experiment has is no column."""
    present = [
        name for name in watching.STATES if name == "complete" or any(each[name.replace(" ", "_")] for each in found)
    ]
    columns = ["runs", *(name.replace(" ", "_") for name in present)]
    usage = [name for name in _USED if not name.endswith(("cached", "saved")) or any(each[name] for each in found)]
    rows = [["experiment", "runs", *present, *(name.replace("_", " ") for name in usage)]]
    for each in found:
        used = [_money(each[name]) if "money" in name else f"{each[name]:,}" for name in usage]
        if "tokens_cached" in usage and each["tokens_in"]:
            used[usage.index("tokens_cached")] += f" ({each['tokens_cached'] / each['tokens_in']:.0%})"
        rows.append([each["experiment"], *(f"{each[name]:,}" for name in columns), *used])
        for design in each["designs"] if len(each["designs"]) > 1 else ():
            marks = ", ".join(mark.replace("_", " ") for mark in ("frozen", "run_last") if design[mark])
            name = f"  design {design['design']}{f' ({marks})' if marks else ''}"
            rows.append([name, *(f"{design[name]:,}" for name in columns), *("" for _ in usage)])
    return aligned(rows)


def _money(amount: float) -> str:
    """Money with four decimals, enough for a single call; a dash for none."""
    return f"{amount:,.4f}" if amount else "-"


def _run_list(opened: Store, designs: Sequence[DesignRow], alive: Collection[str]) -> str:
    """Name, id and state of every run, design by design."""
    texts = []
    for design in designs:
        cells, states = design.rows, watching.states_of(opened, design)
        unfinished = {cell.run_id for cell in cells if states[cell.run_id].status != "complete"}
        replies = watching.replies_of(opened, sorted(unfinished))
        rows = [["run", "id", "status", ""]]
        for cell in cells:
            run_id, state = cell.run_id, states[cell.run_id]
            begun = run_id in unfinished and state.status != "pending"
            far = how_far(replies.get(run_id, watching.Replies()).number, state.expected) if begun else ""
            rows.append([cell.name, run_id, watching.state_of(run_id, state, alive), far])
        which = f", design {design.design}" if len(designs) > 1 else ""
        texts.append(f"{design.name}{which}\n{aligned(rows)}")
    return "\n\n".join(texts)


# -- below the table -----------------------------------------------------------------------------------------


def _say_next(store: str, found: Sequence[dict[str, Any]]) -> None:
    """Print what can be done about runs that have not ended."""
    if any(each["under_way"] for each in found):
        say(f"\nTo watch the runs that are under way: opinionsim view {watching.spelled(store)}")
    if any(each["cut_off"] for each in found):
        say("\nRuns that were cut off resume after their last reply when you run the experiment again.")
    for each in found:
        if lost := each["calls_left_behind"]:
            calls = counted(lost, "call")
            say(f"\n{each['experiment']}: up to {calls} in flight when a worker ended may be paid for twice.")
        for batch in each["batches"]:
            from opinionsim.store import BatchRow

            say(f"\n{each['experiment']}: {watching.batch_text(BatchRow(**batch))}")
        if asking := each["asking_a_person"]:
            say(f"\n{each['experiment']}: {counted(asking, 'run')} waiting for a person's answer.")
    if coding := sum(each["being_coded"] for each in found):
        say(f"\nOpinions are being added to {coding:,} complete {'run' if coding == 1 else 'runs'}.")
