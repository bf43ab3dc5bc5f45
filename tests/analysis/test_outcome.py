"""The primary outcome of a study, and means by condition over steps: one set of numbers in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.analysis import Table, condition_table, outcome_data
from opinionsim.errors import SpecError
from opinionsim.report import tables_of
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.running.test_instruments import CIVILITY
from tests.support.running import ended, loaded

SPEC: dict[str, Any] = {
    "name": "study",
    "seed": 5,
    "replicates": 4,
    "population": {"size": 4},
    "topic": {"name": "t-rex"},
    "interaction": {"kind": "dyadic", "steps": 6},
    "measurement": {"classifier": "lexicon", "texts": ["report"], "probe": {"before": 1, "after": 1}},
    "sweep": {"cognition.confirmation_bias": ["strong", "none"], "interaction.network": ["ring", "complete"]},
    "analysis": {
        "primary": "divides",
        "smallest": 0.3,
        "contrasts": {
            "divides": {"measure": "diversity", "of": "strong - none"},
            "ring": {"of": "ring - complete"},
        },
    },
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return osim.run(load_experiment(SPEC), store=f"sqlite:///{tmp_path_factory.mktemp('outcome')}/study.sqlite")


def _csv(table: Table, folder: Path) -> pd.DataFrame:
    return pd.read_csv(table.to_csv(folder / f"{table.name or 'opinions'}.csv"))


def test_a_condition_has_its_name_before_another_is_complete(tmp_path: Path) -> None:
    experiment = load_experiment({**SPEC, "analysis": {}})
    first = {run.run_id for run in experiment.runs if run.cell is experiment.runs[0].cell}
    ended(experiment, str(tmp_path / "part.sqlite"), only=first)
    found = outcome_data(loaded(str(tmp_path / "part.sqlite")))
    assert found.conditions[["confirmation_bias", "network"]].to_numpy().tolist() == [["strong", "ring"]]


def test_the_outcome_has_the_numbers_of_the_tables(results: Results, tmp_path: Path) -> None:
    found = outcome_data(results)
    opinions, contrasts = tables_of(results)[:2]
    assert (found.measure, found.axes) == ("diversity", ("confirmation_bias", "network"))
    rows = found.conditions[["confirmation_bias", "network"]].to_numpy().tolist()
    assert rows == [["strong", "ring"], ["strong", "complete"], ["none", "ring"], ["none", "complete"]]
    numbers = [
        *(f"{name}{end}" for name in ("bias", "diversity") for end in ("", "_ci_low", "_ci_high")),
        *("n_runs", "n_withheld", "n_agents", "n_measured", "change", "change_low", "change_high", "n_both"),
    ]
    for table in (opinions.frame, _csv(opinions, tmp_path)):
        pd.testing.assert_frame_equal(found.conditions[numbers], table[numbers], check_dtype=False)
    columns = ["contrast", "difference", "difference_ci_low", "difference_ci_high", "smallest", "n"]
    for table in (contrasts.frame, _csv(contrasts, tmp_path)):
        pd.testing.assert_frame_equal(found.contrasts[columns], table[columns], check_dtype=False)
    means = found.units.groupby(["confirmation_bias", "network"], sort=False)["diversity"].mean()
    by_row = found.conditions.set_index(["confirmation_bias", "network"])["diversity"]
    pd.testing.assert_series_equal(means.loc[by_row.index], by_row)
    assert found.frame["of"].value_counts().to_dict() == {"condition": 4, "unit": 16, "contrast": 2}
    assert all(each.difference == row for each, row in zip(
        found.contrasts.itertuples(), (effect.estimate.mean for effect in found.effects), strict=True))  # fmt: skip


def test_without_contrasts_the_outcome_is_the_mean_opinion_and_nothing_complete_is_refused(tmp_path: Path) -> None:
    spec = {name: each for name, each in SPEC.items() if name not in ("analysis", "sweep")}
    url = f"sqlite:///{tmp_path}/bare.sqlite"
    found = outcome_data(osim.run(load_experiment({**spec, "replicates": 1}), store=url))
    assert (found.measure, found.axes, len(found.conditions), len(found.contrasts)) == ("bias", (), 1, 0)
    measurement = {"classifier": None, "instruments": [CIVILITY]}
    silent = {**spec, "name": "silent", "measurement": measurement, "replicates": 1}
    with pytest.raises(SpecError, match=r"set topic and measurement\.classifier"):
        outcome_data(osim.run(load_experiment(silent), store=url))


def test_means_over_steps_end_with_those_of_the_table_of_opinions(results: Results, tmp_path: Path) -> None:
    (table,) = tables_of(results, what="conditions")
    frame = results.by_condition()
    pd.testing.assert_frame_equal(frame, table.frame)
    assert frame["step"].tolist() == [0, 1, 2, 3, 4, 6] * 4
    assert (frame["n_measured"] + frame["n_never"]).eq(16).all()
    opinions = tables_of(results, what="opinions")[0].frame
    columns = ["bias", "bias_ci_low", "bias_ci_high", "diversity", "diversity_ci_low", "n_measured", "n_withheld"]
    ends = frame[frame["end"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(ends[columns], opinions[columns], check_dtype=False)
    np.testing.assert_allclose(_csv(table, tmp_path)["bias"], frame["bias"])
    cells = [line.split(" & ") for line in table.to_latex().splitlines() if " & " in line][2:]
    printed = [cell.strip(" \\").replace("$-$", "\N{MINUS SIGN}") for cell in (each[-1] for each in cells)]
    assert printed == [row[-1] for row in table.rows]
    assert [row[-1].split()[0] for row in table.rows[5::6]] == [f"{value:.2f}" for value in ends["diversity"]]


def test_steps_that_are_not_there_are_refused(results: Results) -> None:
    assert results.by_condition(steps=[2], kind="report")["step"].tolist() == [2, 6] * 4
    with pytest.raises(SpecError, match="steps must be from 0 to 6"):
        condition_table(results, steps=[7])
