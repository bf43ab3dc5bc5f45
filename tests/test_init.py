"""The public face of the package: light to import, and every name leads somewhere."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import opinionsim

HEAVY = {"langchain", "langchain_core", "matplotlib", "mesa", "numba", "numpy", "pandas", "pydantic", "scipy", "torch"}


def _modules_after(statement: str, checkout: Path) -> set[str]:
    """Top-level modules loaded by a fresh interpreter after one statement."""
    code = f"import sys, json; {statement}; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={"PYTHONPATH": str(checkout)},
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(done.stdout))


def test_import_loads_nothing_heavy(checkout: Path) -> None:
    assert _modules_after("import opinionsim", checkout) & HEAVY == set()


def test_the_probe_sees_what_a_name_loads(checkout: Path) -> None:
    assert "numpy" in _modules_after("import opinionsim; opinionsim.OpinionScale", checkout)


@pytest.mark.parametrize("name", sorted(set(opinionsim.__all__) - {"__version__"}))
def test_every_public_name_resolves(name: str) -> None:
    value = getattr(opinionsim, name)
    homes = [home for home, names in opinionsim._HOMES.items() if name in names]
    if homes:
        assert value is getattr(import_module(f"opinionsim.{homes[0]}"), name)
    else:
        assert value is import_module(f"opinionsim.{name}")


def test_type_checkers_see_the_same_names(checkout: Path) -> None:
    tree = ast.parse((checkout / "opinionsim" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(opinionsim.__all__) - {"__version__"}


def test_names_are_listed_and_unknown_ones_refused() -> None:
    assert set(opinionsim.__all__) <= set(dir(opinionsim))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = opinionsim.nothing  # type: ignore[attr-defined]
