"""Opinions before and after structures of an outside way of interacting, and of runs written down by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import opinionsim as osim
from opinionsim import plots
from opinionsim.errors import SpecError
from opinionsim.evidence import EVIDENCE
from opinionsim.schedules import ActSpec, SteppedInteraction, Turn, named
from opinionsim.store import Results
from tests.metrics._frames import make, opinion_rows, run_row

NAN = math.nan


@osim.part("interaction")
class Talk(SteppedInteraction):
    """In each step every agent speaks once, in an order drawn for the run, having read nobody, the last or all."""

    acts = named(ActSpec("respond", template="review", kind="response"))
    reading: Literal["nobody", "last", "all", "first"] = "last"

    def turns(self, setting: Any) -> Any:
        order = setting.rng.permutation(setting.size).tolist()
        for turn in range(self.steps_for(setting.size) * setting.size):
            earlier = tuple(range(turn))
            reads = {"nobody": (), "last": earlier[-1:], "all": earlier, "first": earlier[:1]}[self.reading]
            yield Turn(turn, turn // setting.size + 1, order[turn % setting.size], "respond", reads)


def structures(replicates: int = 2, size: int = 4) -> dict[str, Any]:
    """An experiment with four structures, one of which is the control."""
    return {
        "name": "structures",
        "seed": 3,
        "replicates": replicates,
        "population": {"size": size},
        "topic": {"name": "flat-earth"},
        "interaction": {"kind": "tests.plots.test_before_after:Talk", "steps": 1},
        "model": {"name": "scripted"},
        "measurement": {
            "classifier": "lexicon",
            "texts": ["response", "probe"],
            "probe": {"before": 1, "after": 1},
        },
        "sweep": {"interaction.reading": ["nobody", "last", "all", "first"]},
    }


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("structures") / "structures.sqlite"
    return osim.run(osim.load_experiment(structures()), store=f"sqlite:///{path}")
