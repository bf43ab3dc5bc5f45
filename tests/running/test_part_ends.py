"""Parts of the user's own that try to end the process, are interrupted, or leave a thread behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim.cli import app
from opinionsim.errors import Interrupt, OpinionSimError
from tests.support.examples import few

#: One part of each kind; that of the kind AT raises what ENDS says.
_PARTS = """
import os
from dataclasses import dataclass
from typing import ClassVar

import networkx as nx
import numpy as np
from langchain_core.language_models import SimpleChatModel

import opinionsim as osim
from opinionsim.memory import KeptMessages
from opinionsim.networks import NetworkKind
from opinionsim.opinions import OpinionEstimates, OpinionScale
from opinionsim.schedules import REVIEW, WRITE, SteppedInteraction, Turn, named


def end(kind):
    ends = {"exit": SystemExit(0), "interrupt": KeyboardInterrupt(), "error": ValueError(os.environ["SOME_API_KEY"])}
    if os.environ.get("AT") == kind:
        raise ends[os.environ["ENDS"]]


end("import")


@osim.part("interaction")
class Circle(SteppedInteraction):
    acts = named(WRITE, REVIEW)

    def turns(self, setting):
        end("interaction")
        for t in range(self.steps_for(setting.size)):
            yield Turn(2 * t, t + 1, t % setting.size, "write")
            yield Turn(2 * t + 1, t + 1, (t + 1) % setting.size, "review", (2 * t,))


@osim.part("network")
class Cliques(NetworkKind):
    cliques: int = 2

    def pairs(self, size, rng):
        end("network")
        return nx.connected_caveman_graph(self.cliques, size // self.cliques)


@osim.part("memory")
@dataclass(frozen=True, slots=True)
class Newest(KeptMessages):
    calls_per_event: ClassVar[int] = 0
    templates: ClassVar[tuple[str, ...]] = ("event",)

    async def remember(self, act, received, reply, ask):
        end("memory")
        return self


@osim.part("classifier")
class Length:
    name, needs_claim, reads_context, reads_about = "length", False, False, False
    options = {}

    def __init__(self, scale=None):
        self.scale = scale or OpinionScale()

    def classify(self, items):
        end("classifier")
        return OpinionEstimates.from_probabilities(self.scale, np.eye(len(self.scale))[[0] * len(items)])


@osim.part("chat_model")
class Repeating(SimpleChatModel):
    @property
    def _llm_type(self):
        return "repeating"

    def _call(self, messages, stop=None, run_manager=None, **kwargs):
        end("chat_model")
        return f"I doubt it. I have read {len(messages)} messages."


@osim.part("selector")
def first(texts):
    end("selector")
    return 0


@osim.part("metric")
def share_above(opinions):
    end("metric")
    return np.mean(np.asarray(opinions) > 0)
"""

_SPEC = """
name: ending
replicates: 1
population: {size: 6}
topic: {name: global-warming}
cognition: {memory: "parts.ending:Newest", draws: 2, selector: "parts.ending:first"}
interaction: {kind: dyadic, steps: 2, network: {kind: "parts.ending:Cliques"}}
model: {name: "parts.ending:Repeating"}
measurement: {classifier: "parts.ending:Length", metrics: ["parts.ending:share_above"]}
"""

_NAMES = {
    "interaction": "Circle",
    "network": "Cliques",
    "memory": "Newest",
    "classifier": "Length",
    "chat_model": "Repeating",
    "selector": "first",
    "metric": "share_above",
}
_KEY = "correct-horse-battery"


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a package of parts and a specification that names them, and the command line's own handler."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "ending.py").write_text(_PARTS, encoding="utf-8")
    (tmp_path / "spec.yaml").write_text(_SPEC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SOME_API_KEY", _KEY)
    monkeypatch.delenv("AT", raising=False)
    before = signal.signal(signal.SIGINT, Interrupt.taken)
    yield tmp_path
    signal.signal(signal.SIGINT, before)
    for name in [name for name in sys.modules if name.partition(".")[0] == "parts"]:
        del sys.modules[name]


@pytest.mark.parametrize("ends", ["exit", "interrupt", "error"])
@pytest.mark.parametrize("kind", few([each for each in _NAMES if each != "metric"], 3))
def test_what_a_part_raises_ends_its_run_and_names_the_part(
    kind: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"interaction": {"kind": "parts.ending:Circle", "steps": 2}} if kind == "interaction" else {}
    experiment = osim.load_experiment("spec.yaml", changes)
    monkeypatch.setenv("AT", kind)
    monkeypatch.setenv("ENDS", ends)
    try:
        error = osim.run(experiment, "s.sqlite").runs["error"].item()
    except OpinionSimError as refused:  # the turns are counted before the run
        error = str(refused)
    assert f"parts.ending:{_NAMES[kind]}" in error
    assert {"exit": "SystemExit: 0", "interrupt": "KeyboardInterrupt", "error": "ValueError: ***"}[ends] in error
    assert _KEY not in error
    # The loop and the process go on, and so does the run once the part is mended.
    monkeypatch.delenv("AT")
    assert osim.run(experiment, "s.sqlite").runs["status"].item() == "complete"


@pytest.mark.parametrize("ends", ["exit", "interrupt"])
@pytest.mark.parametrize("kind", ["memory", "metric"])
def test_a_command_does_not_end_as_if_all_were_well(kind: str, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AT", kind)
    monkeypatch.setenv("ENDS", ends)
    result = CliRunner().invoke(app, ["run", "spec.yaml", "--store", "s.sqlite"])
    assert result.exit_code == 2
    assert f"parts.ending:{_NAMES[kind]}" in result.stderr
    assert {"exit": "SystemExit: 0", "interrupt": "KeyboardInterrupt"}[ends] in result.stderr


def _command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "opinionsim", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_a_real_interrupt_during_an_import_ends_with_130_whatever_the_part_makes_of_it(
    parts: Path, checkout: Path
) -> None:
    raised = _command("plan", "spec.yaml", PYTHONPATH=str(checkout), AT="import", ENDS="interrupt")
    assert (raised.returncode, "cannot import 'parts.ending': KeyboardInterrupt" in raised.stderr) == (2, True)
    (parts / "parts" / "ending.py").write_text(
        "import os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    signal.pause()\n"
        "except BaseException:\n    raise ImportError('swallowed') from None\n",
        encoding="utf-8",
    )
    done = _command("plan", "spec.yaml", PYTHONPATH=str(checkout))
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


@pytest.mark.long
def test_a_command_ends_beside_a_thread_that_a_part_leaves_and_names_it(parts: Path, checkout: Path) -> None:
    path = parts / "parts" / "ending.py"
    added = "\nimport threading\n\ndef poll():\n    threading.Event().wait()\n\nthreading.Thread(target=poll).start()\n"
    path.write_text(path.read_text(encoding="utf-8") + added, encoding="utf-8")
    done = _command("run", "spec.yaml", "--store", "s.sqlite", PYTHONPATH=str(checkout))
    assert done.returncode == 0, done.stderr
    assert "1 of 1 run complete" in done.stderr
    assert "ended while the thread 'Thread-1 (poll)' was still running" in done.stderr
    assert osim.load("s.sqlite").runs["status"].item() == "complete"
