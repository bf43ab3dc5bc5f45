"""The command line, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from opinionsim.cli import app


def invoked(*arguments: object, text: str | bytes | None = None) -> Result:
    """What a command does; `text` is what it reads."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result
