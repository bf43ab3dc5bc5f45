"""What is left of the package without a slice, as a copy in which its folder is deleted.

As a script, for one slice or several::

    python tests/slices.py consensus          # the rooms that every study goes through
    python tests/slices.py consensus --brief  # no tests but that all others are collected
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Rooms whose tests are run.
ROOMS = ("specification", "planning", "store", "analysis", "plots", "report", "cli")
#: Folders and files at the top that are no part of the source tree.
_LEFT_OUT = (".git", ".venv", "results", "*_cache", "__pycache__", ".hypothesis", "dist", "build")


def without(name: str, folder: Path) -> Path:
    """A copy of the source tree without a slice, in a folder that is not there yet."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    for room in ("opinionsim", "tests"):
        shutil.rmtree(folder / room / name)
    return folder


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


def quickstart(folder: Path, store: Path) -> str:
    """The table of the quickstart with the package of a source tree, planned and run into a new store."""
    done(folder, "-m", "opinionsim", "plan", "quickstart")
    done(folder, "-m", "opinionsim", "run", "quickstart", "--store", str(store))
    return done(folder, "-m", "opinionsim", "table", str(store)).replace(str(store), "STORE")


def collected(folder: Path) -> str:
    """The names of all tests of a source tree, which are collected without an error."""
    return done(folder, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", "tests")


def main() -> None:
    """Delete slices in copies, each by itself, and run what is left."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--brief", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        with tempfile.TemporaryDirectory() as folder:
            left = without(name, Path(folder) / "left")
            whole = quickstart(ROOT, Path(folder) / "whole.sqlite")
            assert quickstart(left, Path(folder) / "left.sqlite") == whole, "the table of the quickstart is another"
            print(collected(left).splitlines()[-1])
            if not given.brief:
                # The page of every field has none of those that are gone.
                done(left, "docs/specification.py")
                tests = [f"tests/{room}" for room in ROOMS]
                print(done(left, "-m", "pytest", "-q", "-n", "0", "-m", "not long and not whole", *tests))
        print(f"The package is whole without {name}.")


if __name__ == "__main__":
    main()
