"""What a report and an archive cost: 180 runs of 100 steps of the scripted model, each in a process of its own.

The study is `chuang2024/tables`, 18,000 turns, which is carried out first unless a store of it is given. Bars: 20 s and
1 GB for the page, which is at most 5 MB; 60 s for the archive, whose script then makes the main table again in a new
environment that has pandas and nothing else of this project.
Run: python benchmarks/report.py [--store STORE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import opinionsim as osim
from opinionsim.report import verify, write_archive, write_page

PAGE_BAR_S, ARCHIVE_BAR_S, MEMORY_BAR_MB, PAGE_BAR_MB = 20.0, 60.0, 1000.0, 5.0
STUDY = "chuang2024/tables"


def measured(what: str, store: str, path: Path) -> None:
    """Write page or archive and print as JSON what it took; in a process of its own."""
    began, busy = time.perf_counter(), time.process_time()
    written = write_page(osim.load(store), path) if what == "page" else write_archive(osim.load(store), path)
    took, worked = time.perf_counter() - began, time.process_time() - busy
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([took, worked, used, len(written)]))


def apart(what: str, store: str, path: Path) -> tuple[float, float, float, int]:
    """Seconds, processor seconds, most megabytes held, and parts left out of a page or files of an archive."""
    command = [sys.executable, __file__, "--only", what, store, str(path)]
    took, worked, used, written = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return took, worked, used, written


def with_pandas_alone(folder: Path, script: Path) -> str:
    """What a script says in a new environment with pandas."""
    venv.create(folder / "clean", with_pip=True)
    python = folder / "clean" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "pandas"], check=True)
    listed = subprocess.run([python, "-m", "pip", "list"], check=True, capture_output=True, text=True)
    assert "opinionsim" not in listed.stdout
    return subprocess.run([python, script], check=True, capture_output=True, text=True, cwd=folder).stdout


def main() -> None:
    """Measure, print, and leave with exit code 1 where a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a store of the study; default: it is carried out now")
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        measured(given.only[0], given.only[1], Path(given.only[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = given.store or f"sqlite:///{folder}/full.sqlite"
        if given.store is None:
            osim.run(osim.load_experiment(STUDY), store=store)
        path, archive = folder / "report.html", folder / "archive"
        took, worked, used, left_out = apart("page", store, path)
        size = path.stat().st_size / 1e6
        print(f"page: {took:.1f} s ({worked:.1f} s of processor; bar {PAGE_BAR_S:.0f}), {used:.0f} MB held (bar "
              f"{MEMORY_BAR_MB:.0f}), {size:.1f} MB written (bar {PAGE_BAR_MB:.0f})")  # fmt: skip
        held = took < PAGE_BAR_S and used < MEMORY_BAR_MB and size <= PAGE_BAR_MB and not left_out
        took, worked, used, files = apart("archive", store, archive)
        print(f"archive: {took:.1f} s ({worked:.1f} s of processor; bar {ARCHIVE_BAR_S:.0f}), {used:.0f} MB held, "
              f"{files} files")  # fmt: skip
        began = time.perf_counter()
        found = verify(archive)
        print(f"verified: {time.perf_counter() - began:.1f} s, {len(found.rebuilt)} tables made again, "
              f"{len(found.problems)} problems, {len(found.not_rebuilt)} not made again")  # fmt: skip
        held = held and took < ARCHIVE_BAR_S and not found.problems
        print(f"with pandas alone: {with_pandas_alone(folder, archive / 'rebuild.py').splitlines()[-1]}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
