"""The command line, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from opinionsim.cli import app


def invoked(*arguments: object, text: str | bytes | None = None) -> Result:
    """What a command does; `text` is what it reads."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def refused(*arguments: object, text: str | bytes | None = None) -> str:
    """Why a command is not carried out: a message, in one line, and nothing else."""
    result = invoked(*arguments, text=text)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())
