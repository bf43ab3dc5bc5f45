from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from opinionsim.cli import app

SMALL = """\
name: small
seed: 5
replicates: 2
population: {size: 4}
topic: {name: t-rex}
interaction: {kind: dyadic, steps: 6}
measurement: {classifier: lexicon, texts: [report, post]}
sweep:
  cognition.confirmation_bias: [none, strong]
"""

Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    """Run the command line in this process."""

    def call(*arguments: object, text: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A small experiment in a file."""
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the small experiment after a run; to be read only."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    path = folder / "small.sqlite"
    result = CliRunner().invoke(app, ["run", str(folder / "small.yaml"), "--store", str(path)])
    assert result.exit_code == 0, result.stderr
    return path
