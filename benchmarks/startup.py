"""Start-up times of whole commands, beside their bars.

Run: python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time


def _median(arguments: list[str], repeats: int) -> float:
    """Median wall time of a Python command in an empty folder, seconds."""
    times = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=folder)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Print import, help and demo times; the package must be installed."""
    print(f"import opinionsim: {_median(['-c', 'import opinionsim'], 7):.2f} s (bar 0.4, interpreter included)")
    print(f"opinionsim --help: {_median(['-m', 'opinionsim', '--help'], 7):.2f} s (bar 0.5)")
    print(f"opinionsim demo: {_median(['-m', 'opinionsim', 'demo'], 3):.1f} s (bar 20)")


if __name__ == "__main__":
    main()
