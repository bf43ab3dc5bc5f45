"""Notebooks are pairs of prose and code that Jupyter opens; the build of the site runs them (test_site.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(_FOLDER.glob("*.py"))


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
        for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), target
