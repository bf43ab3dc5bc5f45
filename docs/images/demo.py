"""Draws demo.png: the outcome figure of the study that `opinionsim demo` runs with the scripted model.

Run: python docs/images/demo.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import opinionsim as osim


def main() -> None:
    """Draw the picture beside this file."""
    with TemporaryDirectory() as folder, osim.plots.paper(174):
        results = osim.run(osim.load_experiment("demo"), str(Path(folder) / "demo.sqlite"))
        osim.plots.save(osim.plots.outcome(results), Path(__file__).with_suffix(".png"))


if __name__ == "__main__":
    main()
