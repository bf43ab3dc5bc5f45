"""What is left of the package without slices, as a copy in which their folders are deleted.

As a script, for one slice or several, each by itself, or for all at once::

    python tests/slices.py consensus          # the rooms that every study goes through
    python tests/slices.py consensus --brief  # no tests but that all others are collected
    python tests/slices.py all
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What stands for every slice.
ALL = "all"
#: Rooms whose tests are run.
ROOMS = ("specification", "planning", "store", "analysis", "plots", "report", "cli")
#: Folders and files that are no part of the source tree. Bytecode is copied: it holds for files of the same time.
_LEFT_OUT = (".git", ".venv", "results", "*_cache", "*.nb[ci]", ".hypothesis", "dist", "build")


#: Commands of the package, one after another in one process, which is said once it is over.
_COMMANDS = """
import json, sys
from typer.testing import CliRunner
from opinionsim.cli import app
said = []
for command in sys.argv[1:]:
    found = CliRunner().invoke(app, command, catch_exceptions=False)
    assert found.exit_code == 0, f"{command}: {found.output}"
    said.append(found.stdout)
print(json.dumps(said))
"""


def needs() -> dict[str, list[str]]:
    """The slices that each slice needs, by name."""
    read = {table.parent.name: tomllib.loads(table.read_text()) for table in ROOT.glob("opinionsim/*/parts.toml")}
    return {name: table["slice"]["needs"] for name, table in sorted(read.items()) if "slice" in table}


def deleted(names: Collection[str], needed: Mapping[str, Collection[str]]) -> list[str]:
    """What is deleted with some slices: they themselves, and all that need them; every slice for :data:`ALL`."""
    gone = {*needed} if ALL in names else {*names}
    while more := {name for name, others in needed.items() if gone.intersection(others)} - gone:
        gone |= more
    return sorted(gone)


def without(names: Collection[str], folder: Path) -> list[str]:
    """Copy the source tree without some slices into a folder that is not there yet, and say which are deleted."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    gone = deleted(names, needs())
    for name in gone:
        for room in ("opinionsim", "tests"):
            shutil.rmtree(folder / room / name)
    return gone


def done(folder: Path, *arguments: str) -> str:
    """What a script or module of Python prints, with the package of a source tree; `arguments` as those of Python.

    Raises
    ------
    RuntimeError
        If it fails; with all that it says.
    """
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    found = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise RuntimeError(f"{' '.join(arguments)} in {folder}:\n{found.stdout}\n{found.stderr}")
    return found.stdout


def commanded(folder: Path, *commands: str) -> list[str]:
    """What each of several commands prints, with the package of a source tree."""
    said: list[str] = json.loads(done(folder, "-c", _COMMANDS, *commands).splitlines()[-1])
    return said


def quickstart(folder: Path, store: Path) -> str:
    """The table of the quickstart with the package of a source tree, planned and run into a new store."""
    *_, table = commanded(folder, "plan quickstart", f"run quickstart --store {store}", f"table {store}")
    return table.replace(str(store), "STORE")


def collected(folder: Path, rooms: Collection[str] = ()) -> str:
    """The names of the tests of a source tree, or of some rooms, which are collected without an error."""
    tests = [f"tests/{room}" for room in rooms] or ["tests"]
    return done(folder, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", *tests)


def main() -> None:
    """Delete slices in copies, each by itself or all at once, and run what is left."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--brief", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = quickstart(ROOT, Path(folder) / "whole.sqlite")
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            left = Path(folder) / "left"
            gone = without([name], left)
            assert quickstart(left, Path(folder) / "left.sqlite") == whole, "the table of the quickstart is another"
            print(collected(left).splitlines()[-1])
            if not given.brief:
                # The page of every field has none of those that are gone.
                done(left, "docs/specification.py")
                tests = [f"tests/{room}" for room in ROOMS]
                print(done(left, "-m", "pytest", "-q", "-n", "0", "-m", "not long and not whole", *tests))
        print(f"The package is whole without {', '.join(gone)}.")


if __name__ == "__main__":
    main()
