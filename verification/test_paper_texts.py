"""The texts of a paper, read by the programs that authors use: BibTeX, LaTeX and pandoc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.foundation.bibliography import bibliography
from opinionsim.foundation.templates import filled
from opinionsim.report import write_archive

_PROGRAMS = ("bibtex", "pdflatex", "pandoc")
_PAPER = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\begin{document}
\nocite{*}
\bibliographystyle{%s}
\bibliography{references}
\end{document}
"""
#: What TeX takes for commands, and letters with accents.
_HOSTILE = r"Ærø #1, Muñoz & \co ~ 50 % _ ^ {"
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, _PROGRAMS)), reason=f"needs {', '.join(_PROGRAMS)} (Debian: texlive, pandoc)"
)


def _said(command: str, folder: Path) -> str:
    """What a program prints; it must succeed."""
    ended = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert ended.returncode == 0, f"{command}: {ended.stdout[-2000:]}"
    return ended.stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a study whose personas have what TeX takes for commands."""
    folder = tmp_path_factory.mktemp("study")
    people = [{"name": name, "opinion": 0, "attributes": {"role": "R&D_100%"}} for name in ("A", "B")]
    spec = {
        "name": "texts",
        "population": {"personas": {"name": "own_50% & {more}", "source": _HOSTILE, "personas": people}},
        "topic": {"name": "t-rex"},
        "interaction": {"kind": "dyadic", "steps": 4},
        "measurement": {"classifier": "lexicon"},
        "sweep": {"interaction.network": ["ring", {"kind": "complete", "label": "all|each"}]},
        "replicates": 2,
    }
    write_archive(osim.run(osim.load_experiment(spec), f"sqlite:///{folder / 'a.sqlite'}"), folder / "archive")
    return folder / "archive"


@pytest.mark.parametrize("style", ["plain", "alpha", "abbrv"])
@pytest.mark.parametrize("whole", [False, True], ids=["of a study", "whole"])
def test_references_compile(study: Path, tmp_path: Path, style: str, *, whole: bool) -> None:
    works = [(each.kind, each.key, each.printed) for each in bibliography().values()]
    text = filled("opinionsim.report", "references.bib", entries=works, data=[], version="1")
    (tmp_path / "references.bib").write_text(text if whole else (study / "references.bib").read_text())
    (tmp_path / "paper.tex").write_text(_PAPER % style)
    latex = "pdflatex -interaction=nonstopmode -halt-on-error paper"
    _said(latex, tmp_path)
    assert "Warning" not in _said("bibtex paper", tmp_path)
    _said(latex, tmp_path)
    assert "Undefined control" not in _said(latex, tmp_path)


@pytest.mark.parametrize("name", ["odd.md", "checklist.md", "README.md"])
@pytest.mark.parametrize("form", ["docx", "tex"])
def test_documents_are_read_by_pandoc(study: Path, tmp_path: Path, name: str, form: str) -> None:
    _said(f"pandoc --standalone --fail-if-warnings {study / name} -o {tmp_path / 'text'}.{form}", tmp_path)
    assert (tmp_path / f"text.{form}").stat().st_size > 3_000
