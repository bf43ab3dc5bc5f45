"""The public face of the package: light to import, and every name leads somewhere."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import opinionsim


@pytest.mark.parametrize("name", opinionsim.__all__)
def test_every_public_name_is_the_object_of_its_home(name: str, checkout: Path) -> None:
    tree = ast.parse((checkout / "opinionsim" / "__init__.py").read_text(encoding="utf-8"))
    (home,) = (
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and name in {each.asname for each in node.names}
    )
    found = import_module(f"opinionsim.{name}") if home == "opinionsim" else getattr(import_module(str(home)), name)
    assert getattr(opinionsim, name) is found


@pytest.mark.parametrize("room", ["", ".analysis", ".metrics", ".classifiers", ".llm", ".store", ".testing"])
def test_names_of_a_room_are_listed_and_all_of_them_resolve(room: str) -> None:
    module = import_module(f"opinionsim{room}")
    assert len(module.__all__) > 4
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_names_that_are_loaded_on_first_use_are_all_exported(checkout: Path) -> None:
    for module in (checkout / "opinionsim").rglob("__init__.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        if "on_first_use" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
            continue
        blocks = [node for node in tree.body if isinstance(node, ast.If)]
        imported = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
        assert imported
        assert all(alias.asname == alias.name for node in imported for alias in node.names), module


#: Prints all that users are shown of docstrings: of declarations, metrics, fields, and options of commands.
_TOLD = """
import typer.main
from opinionsim.cli._options import explain
from opinionsim.cli._run import measure
from opinionsim.metrics import METRICS
from opinionsim.registry import built_in
from opinionsim.specification import json_schema
app = typer.Typer()
app.command()(measure)
explain(command := typer.main.get_command(app))
models, spread = built_in("classic_model").values(), METRICS["spread"]
print([(each.target.title, each.target.summary) for each in models])
print(spread.meaning, spread.source, json_schema()["$defs"]["AnalysisSpec"])
print(command.help, [(each.metavar, each.help) for each in command.params])
"""


@pytest.mark.whole
def test_texts_for_users_are_there_without_docstrings(checkout: Path) -> None:
    env = {"PYTHONPATH": str(checkout)}
    said = [
        subprocess.run(
            [sys.executable, *flags, "-c", _TOLD], env=env, check=True, capture_output=True, text=True
        ).stdout
        for flags in ((), ("-OO",))
    ]
    assert said[0] == said[1]
    assert "Kinds of text that it reads" in said[0]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = opinionsim.nothing  # type: ignore[attr-defined]
