"""The package as its users get it: built, installed, and used away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import opinionsim
from opinionsim.foundation.data import data_folder
from tests.support.first_study import KINDS as KINDS_OF_STUDY, commands

KINDS = ("experiments", "personas", "studies", "topics")

PROBE = """
import json, sys
from pathlib import Path
import opinionsim
from opinionsim.foundation.data import data_folder
def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
home = Path(opinionsim.__file__).parent
print(json.dumps({
    "home": str(home),
    "data": {kind: listing(data_folder(kind)) for kind in sys.argv[1:]},
    "package": listing(home),
}))
"""


def _run(*command: str | Path, cwd: Path) -> str:
    # What is run away from the checkout finds nothing of it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _listing(folder: Path) -> list[str]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(str(path.relative_to(folder)) for path in files)


def _environment(folder: Path) -> Path:
    """A new environment that sees the libraries of this one but not its opinionsim; returns its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    # A line of a .pth file adds a folder without reading the .pth files in it, and thus no editable install.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def _install(python: Path, *what: str | Path, cwd: Path) -> None:
    options = ("--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed", "--no-compile", "--quiet")
    _run(sys.executable, "-m", "pip", "--python", python, "install", *options, *what, cwd=cwd)


def _probe(python: Path, cwd: Path) -> dict[str, Any]:
    found = json.loads(_run(python, "-I", "-c", PROBE, *KINDS, cwd=cwd))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a source distribution and of a wheel built from it, so that the former is seen to be complete."""
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, checkout, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def wheel_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    python = _environment(folder / "env")
    _install(python, wheel, cwd=folder)
    return python


@pytest.mark.whole
def test_wheel_carries_everything(wheel_python: Path, checkout: Path, tmp_path: Path) -> None:
    found = _probe(wheel_python, tmp_path)
    assert Path(found["home"]).is_relative_to(wheel_python.parents[1])
    assert found["data"] == {kind: _listing(checkout / kind) for kind in KINDS}
    sources = _listing(checkout / "opinionsim")
    assert set(sources) <= set(found["package"])
    assert {"py.typed", "data/topics/chuang2024.yaml"} <= set(found["package"])
    assert any(name.startswith("prompts/default/") and name.endswith(".j2") for name in found["package"])


@pytest.mark.whole
def test_wheel_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert folders == {"opinionsim", f"opinionsim-{opinionsim.__version__}.dist-info"}


@pytest.mark.whole
def test_source_distribution_holds_docs_and_tests_and_nothing_that_was_made(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    beside = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "Makefile", "README.md", "docs/index.md", "studies/README.md"}
    assert beside | {"tests/test_packaging.py", "notebooks/README.md", "constraints/py311.txt"} <= set(names)
    made = {
        "results",
        "__pycache__",
        ".venv",
        ".git",
        "dist",
        ".hypothesis",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
    }
    assert [name for name in names if made & set(name.split("/"))] == []
    assert [name for name in names if name.endswith((".pyc", ".sqlite", ".log"))] == []


@pytest.mark.whole
def test_wheel_runs_demo_from_an_empty_folder(wheel_python: Path, tmp_path: Path) -> None:
    command = wheel_python.with_name("opinionsim")
    assert "demo" in _run(command, "--help", cwd=tmp_path)
    printed = _run(command, "demo", cwd=tmp_path)
    assert "opinionsim new my-study" in printed
    assert (tmp_path / "results" / "demo" / "panels.png").stat().st_size > 10_000


@pytest.mark.whole
def test_wheel_makes_a_study_that_runs(wheel_python: Path, tmp_path: Path) -> None:
    """By the commands that the README of the study names; tests/test_first_study.py has other kinds."""
    command = wheel_python.with_name("opinionsim")
    _run(command, "new", "town", "--from", "people", cwd=tmp_path)
    folder = tmp_path / "town"
    output = {words[0]: _run(command, *words, cwd=folder) for words in commands(folder)}
    assert all(name in output["table"] for name in KINDS_OF_STUDY["people"])
    assert (folder / output["plot"].strip()).is_file()


@pytest.mark.whole
def test_wheel_states_licence_and_version(wheel_python: Path, tmp_path: Path) -> None:
    fields = ("License-Expression", "License-File", "Version")
    code = f"from importlib.metadata import metadata as m; print([m('opinionsim')[field] for field in {fields}])"
    stated = _run(wheel_python, "-I", "-c", code, cwd=tmp_path).strip()
    assert stated == str(["MIT", "LICENSE", opinionsim.__version__])


@pytest.mark.whole
def test_editable_install_uses_the_checkout(checkout: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path / "env")
    _install(python, "--editable", checkout, cwd=tmp_path)
    found = _probe(python, tmp_path)
    assert found["home"] == str(checkout / "opinionsim")
    assert found["data"] == {kind: _listing(checkout / kind) for kind in KINDS}
    # A copy beside the link would go stale.
    assert not list((tmp_path / "env").rglob("chuang2024.yaml"))


@pytest.mark.parametrize("kind", KINDS)
def test_checkout_uses_its_own_folders(checkout: Path, kind: str) -> None:
    assert data_folder(kind) == checkout / kind


def test_citation_is_complete_and_current(checkout: Path) -> None:
    citation = yaml.safe_load((checkout / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license", "references"} <= set(citation)
    assert citation["version"] == opinionsim.__version__
    assert citation["license"] == "MIT"


def test_changelog_knows_the_version(checkout: Path) -> None:
    assert f"## {opinionsim.__version__}" in (checkout / "CHANGELOG.md").read_text(encoding="utf-8")


def test_classifiers_name_the_versions_of_python_from_the_least_on(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if each.startswith("Programming Language")]
    assert named == ["3", "3.11", "3.12", "3.13"]
    assert project["requires-python"] == ">=3.11"


def test_constraints_hold_pins_and_no_addresses(checkout: Path) -> None:
    lines = (checkout / "constraints" / "py311.txt").read_text(encoding="utf-8").split("\n")
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in pin and "/" not in pin and " " not in pin for pin in pins)
    assert "torch==2.13.0" in pins
