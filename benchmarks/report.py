"""What a report and an archive cost: those of 180 runs of 100 steps, the page in a process of its own.

The study is `chuang2024/tables` of the scripted model, 18,000 turns, which is carried out first unless a store of it is
given. Bars: 20 s and 1 GB for the page, which is at most 5 MB; 60 s for the archive, which verification finds whole,
and whose script makes the main table again in a new environment that has pandas alone. Bars are of two idle cores.
Run: python benchmarks/report.py [--store STORE]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import opinionsim as osim
from opinionsim.report import verify, write_archive, write_page

PAGE_BAR_S, MEMORY_BAR_MB, PAGE_BAR_MB, ARCHIVE_BAR_S = 20.0, 1000.0, 5.0, 60.0
STUDY = "chuang2024/tables"


def page(store: str, path: Path) -> None:
    """Write the page and print seconds, processor seconds and most megabytes held; in a process of its own."""
    began, busy = time.perf_counter(), time.process_time()
    left_out = write_page(osim.load(store), path)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - began, time.process_time() - busy, used, len(left_out))


def with_pandas_alone(folder: Path, script: Path) -> str:
    """The last line that a script prints in a new environment with pandas."""
    venv.create(folder / "clean", with_pip=True)
    python = folder / "clean" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "pandas"], check=True)
    listed = subprocess.run([python, "-m", "pip", "list"], check=True, capture_output=True, text=True).stdout
    assert "opinionsim" not in listed
    done = subprocess.run([python, script], check=True, capture_output=True, text=True, cwd=folder)
    return done.stdout.splitlines()[-1]


def archive(store: str, folder: Path) -> bool:
    """Write, verify and rebuild an archive, and print what it takes; whether the bar is held."""
    began, busy = time.perf_counter(), time.process_time()
    written = write_archive(osim.load(store), folder / "archive")
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    began = time.perf_counter()
    found = verify(folder / "archive")
    verified, size = time.perf_counter() - began, sum(path.stat().st_size for path in written) / 1e6
    print(f"archive: {seconds:.1f} s ({busy:.1f} s of processor; bar {ARCHIVE_BAR_S:.0f}), {len(written)} files, "
          f"{size:.0f} MB; verified in {verified:.1f} s: {len(found.rebuilt)} tables made again, "
          f"{len(found.problems)} problems")  # fmt: skip
    print(f"with pandas alone: {with_pandas_alone(folder, folder / 'archive' / 'rebuild.py')}")
    return seconds < ARCHIVE_BAR_S and not found.problems and not found.not_rebuilt


def main() -> None:
    """Measure, print, and leave with exit code 1 where a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a store of the study; default: it is carried out now")
    parser.add_argument("--page", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.page:
        page(given.page[0], Path(given.page[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or f"sqlite:///{folder}/full.sqlite"
        if given.store is None:
            osim.run(osim.load_experiment(STUDY), store=store)
        path = Path(folder, "report.html")
        command = [sys.executable, __file__, "--page", store, str(path)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, busy, used, left_out = map(float, printed.split())
        size = path.stat().st_size / 1e6
        archived = archive(store, Path(folder))
    held = seconds < PAGE_BAR_S and used < MEMORY_BAR_MB and size <= PAGE_BAR_MB and not left_out
    print(f"page: {seconds:.1f} s ({busy:.1f} s of processor; bar {PAGE_BAR_S:.0f}), {used:.0f} MB held (bar "
          f"{MEMORY_BAR_MB:.0f}), {size:.1f} MB written (bar {PAGE_BAR_MB:.0f})")  # fmt: skip
    sys.exit(0 if held and archived else 1)


if __name__ == "__main__":
    main()
