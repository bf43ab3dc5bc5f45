"""The application: its commands, their common options, and the reporting of errors."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import opinionsim
from opinionsim.cli._console import complain, note, say_logged
from opinionsim.cli._options import explain
from opinionsim.errors import Interrupt, OpinionSimError, is_interrupt
from opinionsim.registry import Place, places

#: Exit codes after an interrupt, and after the reader of standard output went away.
_INTERRUPTED = 130
_BROKEN_PIPE = 141

#: The commands: tools last, as in the help, and before them those of this folder first.
_COMMANDS: Mapping[str, Place] = dict(
    sorted(places("command").items(), key=lambda each: (each[1].value["under"] == "Tools", each[1].folder != "cli"))
)


#: The error of options that do not fit, which typer shows with the use of the command; it has no public name.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class _Group(TyperGroup):
    """A group of commands that reports an error as one message and an exit code."""

    given: list[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--debug`` at any position, and the home folder in quotes."""
        args = [os.path.expanduser(each) if each.startswith("~/") else each for each in args]
        self.given = rest = [argument for argument in args if argument != "--debug"]
        return super().parse_args(ctx, args if len(rest) == len(args) else ["--debug", *rest])

    def invoke(self, ctx: Any) -> Any:
        """Carry out a command; turn expected errors and errors of the machine into messages."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OpinionSimError as error:
            raise self._failed(ctx, str(error), error.exit_code) from None
        except UsageError as error:
            _mention_setting(error, self.given)
            raise
        except (SystemExit, KeyboardInterrupt) as error:
            if isinstance(error.__context__, BrokenPipeError):  # rich has seen to standard output
                raise typer.Exit(_BROKEN_PIPE) from None
            if is_interrupt(error):
                raise self._failed(ctx, "interrupted", _INTERRUPTED) from None
            from opinionsim.registry import ordinary

            raise self._failed(ctx, str(ordinary(error)), OpinionSimError.exit_code) from None
        except BrokenPipeError:
            # Nobody reads any more: the interpreter's last flush must not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from None
        except (OSError, MemoryError) as error:
            named = (getattr(error, "filename", None), getattr(error, "strerror", None) or str(error))
            message = ": ".join(str(part) for part in named if part) or "not enough memory for this"
            raise self._failed(ctx, message, OpinionSimError.exit_code) from None
        return result

    def _failed(self, ctx: Any, message: str, code: int) -> typer.Exit:
        """Print the message of an error; with ``--debug`` also its traceback."""
        if ctx.params.get("debug"):
            from opinionsim.foundation.redaction import redacted

            sys.stderr.write(redacted(traceback.format_exc()))
        complain(message)
        return typer.Exit(code)


def _mention_setting(error: Any, given: list[str]) -> None:
    """Say how a parameter is set where it was given as an option of a command that has parameters."""
    option = getattr(error, "option_name", "").removeprefix("--")
    if option and given[0] in _COMMANDS and _COMMANDS[given[0]].value.get("parameters"):
        error.message += f"; a parameter is --set {option}=VALUE"


class _Commands(_Group):
    """The commands of :data:`_COMMANDS`; only the one that is called is imported and built, the help needs none."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=each.value["help"], rich_help_panel=each.value["under"])
            for name, each in _COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the requested command and build it from its function."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else _built(name), rest


def _built(name: str) -> Any:
    """Build the command, or the group of commands, of a name."""
    module, attribute = _COMMANDS[name].module.split(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        app = found
    else:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        app.command(name)(found)
    command = typer.main.get_command(app)
    explain(command)
    command.help = command.help or _COMMANDS[name].value["help"]  # a group of commands has no docstring
    return command


app = typer.Typer(
    name="opinionsim",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _version(wanted: bool) -> None:
    """Print the version and exit."""
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

    Start with [bold]opinionsim demo[/bold], which needs no key and no network.
    """
    say_logged("opinionsim.foundation.tables")


def main() -> None:
    """Entry point of the ``opinionsim`` command; ends the process with its exit code.

    Notes
    -----
    0: all runs are complete; 1: some are not, or a comparison differs; 2: bad input; 3: the budget is spent; 130:
    interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # Replies of models may hold characters that the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    os.environ["MPLBACKEND"] = "agg"  # commands write figures to files and open no window
    signal.signal(signal.SIGINT, Interrupt.taken)
    # Rows of a store are many objects without cycles: looking for cycles as often as usual takes a sixth of a table.
    gc.set_threshold(50_000, 20, 50)
    ending = SystemExit(1)
    try:
        app(prog_name="opinionsim")
    except SystemExit as error:
        ending = error
        raise
    finally:
        # What is left ends with the process: looking through it for cycles first takes a fifth of a short command.
        gc.freeze()
        threading.Thread(target=_end_beside_threads, args=(ending,), daemon=True).start()


def _end_beside_threads(ending: SystemExit) -> None:
    """End the process beside threads of others, for which Python would wait, and name them; all is stored by then."""
    time.sleep(1.0)  # the threads of a pool end once the interpreter does
    others = [each for each in threading.enumerate() if not (each.daemon or each.name.startswith("opinionsim"))][1:]
    for thread in others:  # the first of all is the main thread
        note(f"ended while the thread {thread.name!r} was still running; join it, or make it a daemon")
    if others:
        os._exit(ending.code if isinstance(ending.code, int) else int(ending.code is not None))
