"""Candidates let loose: what made the record stays near it, and what did not is seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from opinionsim.metrics import neighbour_correlation
from tests.comparison._studies import Problem, Updates, free_runs, meetings, misreading, named, rated

TRUTH = {"jump": 1e-3, "stay": 0.0, "pull": 0.0, "towards": 0.0, "epsilon": 1.2, "mu": 0.3}


@pytest.fixture(scope="module")
def study() -> Updates:
    return rated(meetings(10, 8, 40, 1), "deffuant", TRUTH, 0.1, 1)


def _outside(study: Updates, model: str) -> pd.Series[float]:
    """Share of steps at which the record is outside the band of a model, by measure."""
    found = free_runs(Problem(study, misreading(5, 0.1, 0.8)), named(model)[0], [TRUTH] * 15, 0)
    assert (found.groupby("measure").size() == 40).all()
    return found.groupby("measure")["outside"].mean()


def test_what_made_the_record_stays_near_it(study: Updates) -> None:
    outside = _outside(study, "deffuant")
    assert set(outside.index) == {
        *("bias", "diversity", "fragmentation", "neighbour correlation", "transitions", "Wasserstein")
    }
    assert outside.mean() < 0.25


def test_agents_that_adopt_what_they_read_are_told_from_those_that_go_a_part_of_the_way(study: Updates) -> None:
    outside = _outside(study, "voter")
    assert outside["transitions"] > 0.7
    assert outside["diversity"] > 0.8


def test_neighbours_are_those_whose_messages_an_agent_reads(study: Updates) -> None:
    problem = Problem(study, misreading(5, 0.1, 0.8))
    found = free_runs(problem, named("deffuant")[0], [TRUTH] * 2, 0)
    last = found[found["measure"] == "neighbour correlation"]["observed"].iloc[-1]
    by_run = []
    for run in range(len(study)):
        turns = range(study.first[run], study.first[run + 1])
        pairs = [
            (study.agent[each], study.agent[at])
            for at in turns
            for each in study.reads[study.first_read[at] : study.first_read[at + 1]]
        ]
        by_run.append(neighbour_correlation(study.paths()[run, -1], tuple(np.array(pairs).T)))
    assert last == pytest.approx(np.nanmean(by_run))


def test_what_made_the_record_is_outside_its_band_as_rarely_as_the_band_says() -> None:
    """Distances from all repetitions, in twenty records drawn from the truth; 5 % of them may be outside."""
    outside = []
    for seed in range(20):
        study = rated(meetings(3, 4, 6, 1), "deffuant", TRUTH, 0.1, seed)
        found = free_runs(Problem(study, misreading(5, 0.1, 0.8)), named("deffuant")[0], [TRUTH] * 20, seed)
        outside.append(found.groupby("measure")["outside"].mean()[["Wasserstein", "transitions"]])
    assert np.mean(outside) < 0.06
