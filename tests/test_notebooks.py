"""Notebooks run from their first cell to the last, as plain Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(_FOLDER.glob("*.py"))


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(notebook: Path, tmp_path: Path) -> None:
    """In a process and a folder of its own, without a warning, and it draws every figure it announces."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(_FOLDER.parent)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(notebook)], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    announced = re.findall(r"^show\(.*, \"(\w+)\"\)$", notebook.read_text(encoding="utf-8"), re.MULTILINE)
    drawn = {path.stem for path in (tmp_path / "results" / notebook.stem).glob("*.png")}
    assert announced
    assert drawn == set(announced)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_opens_as_a_notebook(notebook: Path) -> None:
    """By the header and the marks that jupytext reads; what is no cell of text is code."""
    text = notebook.read_text(encoding="utf-8")
    assert re.match(r"# ---\n# jupyter:\n(# .*\n)*# ---\n\n# %% \[markdown\]\n# # ", text)
    assert "format_name: percent" in text.partition("# %%")[0]
    for cell in text.split("\n# %% [markdown]\n")[1:]:
        prose = cell.partition("\n# %%")[0]
        assert all(line.startswith("#") or not line for line in prose.splitlines())


def test_notebooks_are_listed() -> None:
    readme = (_FOLDER / "README.md").read_text(encoding="utf-8")
    assert NOTEBOOKS
    assert [path.name for path in NOTEBOOKS if f"({path.name})" not in readme] == []
    for path in NOTEBOOKS:
        for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), target
