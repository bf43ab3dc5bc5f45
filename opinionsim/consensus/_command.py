"""The command consensus and its subcommands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from opinionsim.cli import Changes, RunToPrint, Slots, assignments, print_runs, read_results, read_spec, say_json
from opinionsim.errors import SpecError

if TYPE_CHECKING:
    import pandas as pd

#: The command below `consensus` that carries out a session.
_SESSION = "run"


class _Sessions(TyperGroup):
    """The commands on consensus; what is none of them is a specification to carry out."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the command that is called."""
        return super().resolve_command(ctx, args if args[:1] and args[0] in self.commands else [_SESSION, *args])


#: The command `consensus`, and those below it.
consensus = typer.Typer(
    cls=_Sessions,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]},
)


@consensus.command(_SESSION)
def session(
    spec: str,
    store: str | None = None,
    run: RunToPrint = None,
    max_concurrency: Slots = None,
    changes: Changes = None,
    prompts: str | None = None,
) -> None:
    """Run sessions and print opinions, candidates with their support, winners and critiques."""
    from opinionsim.consensus import session_text

    experiment = read_spec(spec, changes, prompts)
    if not all(cell.spec.interaction.kind == "consensus" for cell in experiment.cells):
        raise SpecError(f"{experiment.spec.name} is no consensus session (interaction kind consensus); use deliberate")
    print_runs(experiment, store, run, max_concurrency, session_text)


Data = Annotated[str, typer.Argument(metavar="DATA", help="Store with ratings, or a .csv or .parquet file.")]
Base = Annotated[str, typer.Option(metavar="MODEL", help="Folder or hub name of the model to train.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the weights.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting, such as --set epochs=2.")
]
AllRaters = Annotated[bool, typer.Option(help="Include raters whose two passes disagree, or who rated only once.")]


@consensus.command("train-reward")
def train_reward_model(
    data: Data, base: Base, out: Out, settings: Settings = None, all_raters: AllRaters = False
) -> None:
    """Train a model that predicts how much a citizen agrees with a statement, and print its card."""
    from opinionsim.consensus import train_reward

    say_json(train_reward(_rated(data, all_raters), base, out, progress=True, **assignments(settings, "--set")))


@consensus.command("train-statements")
def train_statement_model(
    data: Data, base: Base, out: Out, settings: Settings = None, all_raters: AllRaters = False
) -> None:
    """Train adapters of a local model on high-quality statements, and print their card."""
    from opinionsim.consensus import train_statements

    say_json(train_statements(_rated(data, all_raters), base, out, progress=True, **assignments(settings, "--set")))


def _rated(data: str, all_raters: bool) -> pd.DataFrame | str:
    """Ratings of a store by raters that are reliable, or by all; a file as it is, which says that itself."""
    if data.endswith((".csv", ".parquet")):
        return data
    from opinionsim.consensus import ratings, reliability

    table = ratings(read_results(data, None, None))
    if all_raters:
        return table
    # What others than the reliable raters wrote still stands beside the opinions of their groups.
    found = table.merge(reliability(table)[["group", "citizen", "reliable"]])
    if not found["reliable"].any():
        raise SpecError(f"{data}: no rater is reliable; give interaction.ratings: {{passes: 2}}, or --all-raters")
    return found
