from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import PrivateAttr
from typer.testing import CliRunner, Result

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.llm import ScriptedChatModel
from opinionsim.running import Invocation, under_way
from opinionsim.specification import load_experiment
from opinionsim.store import open_store
from tests.support.command import invoked

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
    return invoked


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


def backup(store: Path, copy: Path) -> Path:
    """The store as it would be if its writer had died on the spot."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


class GatedModel(ScriptedChatModel):
    """The scripted model, which answers some calls at once and the others when it is let."""

    _free: int = PrivateAttr(0)
    _open: threading.Event = PrivateAttr(default_factory=threading.Event)

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        self._free -= 1
        while self._free < 0 and not self._open.is_set():
            await asyncio.sleep(0.01)
        return await super()._agenerate(*arguments, **options)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The store of the small experiment while it is being written: two runs are complete, two have 5 calls of 24."""
    path = tmp_path_factory.mktemp("half") / "small.sqlite"
    experiment = load_experiment(yaml.safe_load(SMALL))
    osim.run(experiment, path, only=experiment.pilot)
    model = GatedModel()
    model._free = 5
    with under_way(Invocation(experiment, path, chat_model=model)) as (_, future):
        try:
            with open_store(str(path), write=False) as store:
                until = time.monotonic() + 30
                while store.spending().popitem()[1].calls < 29 and time.monotonic() < until:
                    time.sleep(0.02)
                # The opinions come a moment after their texts.
                time.sleep(0.5)
            yield path
        finally:
            model._open.set()
        assert future.result().complete == 4
