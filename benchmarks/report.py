"""An archive of 180 runs x 100 steps: seconds to write it, and what a clean environment makes of it.

(a) Seconds from the store to the archive, and to its verification. (b) Whether its script makes the main table again in
a new environment that has pandas alone. Bar: the archive in less than 60 s of two idle cores.

    python benchmarks/report.py [STORE] [--json]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import opinionsim as osim
from opinionsim.data import data_folder
from opinionsim.report import verify, write_archive

ARCHIVED_S = 60.0


def stored(folder: Path) -> str:
    """A store of the published design with the scripted model: 180 runs of 100 steps."""
    url = f"sqlite:///{folder / 'tables.sqlite'}"
    osim.run(osim.load_experiment(data_folder("experiments") / "chuang2024" / "tables.yaml"), url)
    return url


def with_pandas_alone(folder: Path, script: Path) -> str:
    """What a script says in a new environment with pandas."""
    venv.create(folder / "clean", with_pip=True)
    python = folder / "clean" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "pandas"], check=True)
    listed = subprocess.run([python, "-m", "pip", "list"], check=True, capture_output=True, text=True)
    assert "opinionsim" not in listed.stdout
    return subprocess.run([python, script], check=True, capture_output=True, text=True, cwd=folder).stdout


def archived(url: str, folder: Path) -> dict[str, Any]:
    """Seconds for the archive of a store and its verification, its size, and what its script says."""
    target = folder / "archive"
    begun, cpu = time.perf_counter(), time.process_time()
    written = write_archive(osim.load(url), target)
    took, worked = time.perf_counter() - begun, time.process_time() - cpu
    begun = time.perf_counter()
    found = verify(target)
    verified = time.perf_counter() - begun
    assert found.problems == found.not_rebuilt == (), found
    return {
        "archive_s": round(took, 1),
        "archive_cpu_s": round(worked, 1),
        "bar_s": ARCHIVED_S,
        "verified_s": round(verified, 1),
        "tables": len(found.rebuilt),
        "files": len(written),
        "size_mb": round(sum(path.stat().st_size for path in written) / 1e6, 1),
        "pandas_alone": with_pandas_alone(folder, target / "rebuild.py").splitlines()[-1],
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Print the figures."""
    folder = Path(tempfile.mkdtemp(prefix="opinionsim-report-"))
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    try:
        found = archived(given[0] if given else stored(folder), folder)
    finally:
        shutil.rmtree(folder)
    if "--json" in sys.argv:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:>15}  {value}")


if __name__ == "__main__":
    main()
