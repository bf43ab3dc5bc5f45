"""What a fresh interpreter loads for one thing: no more than that needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

TORCH = {"torch", "transformers", "huggingface_hub"}
HEAVY = {
    *[
        "jinja2",
        "langchain",
        "langchain_core",
        "matplotlib",
        "mesa",
        "networkx",
        "numba",
        "numpy",
        "pandas",
        "pydantic",
        "scipy",
        "torch",
    ]
}
#: Statements, and what they do not load.
STATEMENTS: list[tuple[str, set[str]]] = [
    ("import opinionsim", HEAVY),
    ("import opinionsim; opinionsim.topics.load_topics", {"pandas"}),
    ("import opinionsim.classifiers", {"opinionsim.classifiers._lexicon"}),
    (
        "import opinionsim.classifiers as c, opinionsim.registry as r; c.FlanT5Classifier;"
        "r.summary(r.find('classifier', 'flan-t5'))",
        TORCH,
    ),
    (
        "import networkx as nx; from opinionsim.networks import build_network;"
        "build_network(nx.path_graph(3)), build_network('ring', 4)",
        {"igraph"},
    ),
]
#: Commands, and what they do not load.
COMMANDS: list[tuple[tuple[str, ...], set[str]]] = [
    (("--help",), HEAVY),
    *(((name, "quickstart"), {"langchain", "langchain_core", "langsmith", "mesa", "pandas", "scipy"})
      for name in ("plan", "preview")),
]  # fmt: skip
#: Commands that read a store, and what of the heavy they load.
READING: list[tuple[tuple[str, ...], set[str]]] = [
    (("status",), set()),
    (("status", "--runs"), set()),
    (("show", "--run", "strong/1"), set()),
    (("show", "--agent", "1", "--prompt"), set()),
    (("table",), {"numpy", "pandas"}),
]


def _python(checkout: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def _loaded(checkout: Path, code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after some code."""
    done = _python(checkout, f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def _command(arguments: tuple[str, ...]) -> str:
    return f"from opinionsim.cli import app\napp({[*arguments]!r}, standalone_mode=False)"


@pytest.mark.parametrize(
    ("code", "never"),
    [*STATEMENTS, *((_command(arguments), never) for arguments, never in COMMANDS)],
    ids=[*(code for code, _ in STATEMENTS), *(" ".join(arguments) for arguments, _ in COMMANDS)],
)
def test_what_is_not_needed_is_not_loaded(checkout: Path, code: str, never: set[str]) -> None:
    assert _loaded(checkout, code) & never == set()


@pytest.mark.parametrize(("arguments", "needed"), READING)
def test_reading_loads_only_what_it_needs(
    checkout: Path, store: Path, arguments: tuple[str, ...], needed: set[str]
) -> None:
    command, *options = arguments
    heavy = HEAVY - {"jinja2", "langchain", "pydantic"} | {"psycopg"}
    heavy |= {f"opinionsim.{room}" for room in ("classic", "model", "running")}
    assert _loaded(checkout, _command((command, str(store), *options))) & heavy == needed


def test_what_a_name_needs_is_loaded(checkout: Path) -> None:
    assert "numpy" in _loaded(checkout, "import opinionsim; opinionsim.OpinionScale")
    assert "pandas" in _loaded(checkout, "from opinionsim import *; run, plots.trajectories")


def test_a_run_reaches_its_first_call_without_pandas(checkout: Path) -> None:
    code = (
        "import os, sys\nfrom opinionsim.cli import app\nfrom opinionsim.llm import SlotPool\n"
        "SlotPool.account = lambda *_, **__: os._exit(7 if 'pandas' in sys.modules else 3)\n"
        "app(['run', 'quickstart', '--store', 'first.sqlite'], standalone_mode=False)"
    )
    assert _python(checkout, code).returncode == 3
