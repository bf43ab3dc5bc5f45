"""The application: its commands, what all of them share, and how errors reach the person at the keyboard."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import opinionsim
from opinionsim.cli._abm import abm
from opinionsim.cli._classify import classify
from opinionsim.cli._console import complain
from opinionsim.cli._demo import demo
from opinionsim.cli._doctor import doctor
from opinionsim.cli._forecast import plan, preview, schema
from opinionsim.cli._listing import list_names
from opinionsim.cli._outputs import export, plot, table
from opinionsim.cli._reading import replay, show
from opinionsim.cli._run import run
from opinionsim.cli._status import status
from opinionsim.cli._watch import watch
from opinionsim.errors import OpinionSimError

__all__ = ["app", "main"]

#: What shells call a process that was ended by an interrupt, and one whose reader went away.
_INTERRUPTED = 130
_BROKEN_PIPE = 141

#: Commands in the order of the help, under the heading they stand below.
_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "Start here": (demo,),
    "Experiments": (plan, preview, run, schema),
    "Results": (status, watch, show, table, plot, export, replay),
    "Classic models": (abm,),
    "Tools": (classify, list_names, doctor),
}


class _Group(TyperGroup):
    """Commands whose errors are one message and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take ``--debug`` wherever it stands."""
        rest = [argument for argument in args if argument != "--debug"]
        return super().parse_args(ctx, args if len(rest) == len(args) else ["--debug", *rest])

    def invoke(self, ctx: Any) -> Any:
        """Carry out a command; what it raises on purpose, or the system refuses, becomes a message."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OpinionSimError as error:
            raise self._failed(ctx, str(error), error.exit_code) from None
        except KeyboardInterrupt:
            raise self._failed(ctx, "interrupted", _INTERRUPTED) from None
        except BrokenPipeError:
            # Nobody reads on: say nothing, and let the interpreter's last flush go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except OSError as error:
            message = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
            raise self._failed(ctx, message, OpinionSimError.exit_code) from None
        return result

    def _failed(self, ctx: Any, message: str, code: int) -> typer.Exit:
        """Say what went wrong; with ``--debug`` also where."""
        if ctx.params.get("debug"):
            traceback.print_exc()
        complain(message)
        return typer.Exit(code)


app = typer.Typer(
    name="opinionsim",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        typer.echo(f"opinionsim {opinionsim.__version__}")
        raise typer.Exit


@app.callback()
def _opinionsim(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Simulate opinion dynamics with language-model agents.

    Begin with [bold]opinionsim demo[/bold]: it needs no key and no network.
    """


for _heading, _commands in _COMMANDS.items():
    for _command in _commands:
        app.command(_command.__name__.removesuffix("_names"), rich_help_panel=_heading)(_command)


def main() -> None:
    """Entry point of the ``opinionsim`` command; ends the process with its exit code.

    Notes
    -----
    0: all runs complete; 1: some are not, or a comparison differs; 2: bad input; 3: the budget is spent;
    130: interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # What a model wrote may hold characters the terminal's encoding does not have.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    app(prog_name="opinionsim")
