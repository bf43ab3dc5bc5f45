"""Tables with intervals and contrasts, and plans by the variance of a pilot, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import opinionsim as osim
from opinionsim.specification import load_experiment
from tests.cli.conftest import Invoke
from tests.support.command import refused

SPEC = {
    "name": "study",
    "seed": 5,
    "replicates": 3,
    "population": {"size": 4},
    "topic": {"name": "t-rex"},
    "interaction": {"kind": "dyadic", "steps": 8},
    "measurement": {"classifier": "lexicon", "texts": ["report"], "metrics": ["polarization"]},
    "analysis": {
        "primary": "D rises",
        "smallest": 0.3,
        "contrasts": {
            "D rises": {
                "measure": "diversity",
                "of": "strong - none",
            },
            "pull": {"measure": "truth-pull"},
            "more over truth": {
                "interaction": ["cognition.confirmation_bias", "topic.framing"],
                "measure": "diversity",
            },
        },
    },
    "sweep": {"topic.framing": ["falsehood", "truth"], "cognition.confirmation_bias": ["none", "strong"]},
}


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a study of one topic, with three blocks."""
    path = tmp_path_factory.mktemp("pilot") / "study.sqlite"
    osim.run(load_experiment(SPEC), store=str(path))
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Its specification."""
    file = tmp_path / "study.json"
    file.write_text(json.dumps(SPEC), encoding="utf-8")
    return file


@pytest.mark.long
def test_contrasts_that_were_declared_stand_behind_the_table_of_conditions(invoke: Invoke, pilot: Path) -> None:
    printed = invoke("table", pilot).stdout
    assert "end [95 % CI]" in printed
    assert "Independent unit: block (3 blocks)" in printed
    assert "polarization [95 % CI]" in printed
    made = json.loads(invoke("table", pilot, "--json").stdout)
    (contrasts,) = [each for each in made if each["title"].endswith("| Contrasts")]
    assert [(row["contrast"], row["role"], row["p"]) for row in contrasts["rows"]] == [
        ("D rises", "primary", None),
        ("pull", "secondary", None),
        ("more over truth", "secondary", None),
    ]
    lacking = invoke("table", pilot, "--estimand", "topics-like-these").stdout
    assert "one topic does not tell how topics differ" in " ".join(lacking.split())


def test_an_interaction_is_the_difference_of_the_means_that_are_printed(invoke: Invoke, pilot: Path) -> None:
    made = [json.loads(invoke("table", name, pilot, "--json").stdout)[0]["rows"] for name in ("opinions", "contrasts")]
    means = {(row["framing"], row["confirmation_bias"]): row["diversity"] for row in made[0]}
    (own,) = (row for row in made[1] if row["contrast"] == "more over truth")
    one, other = (means[side, "strong"] - means[side, "none"] for side in ("truth", "falsehood"))
    assert own["difference"] == pytest.approx(one - other)
    assert own["evidence"] == "scripted"
    assert (own["p"], own["p_reported"], own["finding"]) == (None, None, "")


def test_plan_and_run_refuse_an_interaction_in_the_same_line(study: Path, tmp_path: Path) -> None:
    wrong = "analysis.contrasts.pull={interaction: [cognition.confirmation_bias, population.size]}"
    told = {refused(command, study, "--set", wrong) for command in ("plan", "run")}
    assert len(told) == 1
    assert "analysis.contrasts.pull: 'population.size' is not a condition that varies; valid: " in told.pop()
    assert not (tmp_path / "results").exists()


def test_standard_errors_are_as_published_or_not_at_all(invoke: Invoke, pilot: Path) -> None:
    assert "± SE" not in invoke("table", pilot).stdout
    published = invoke("table", pilot, "--as-published").stdout
    assert "end ± SE" in published
    assert "| Tests as published" in published
    assert "| Contrasts" not in published


@pytest.mark.parametrize(("form", "part"), [("markdown", "|---|"), ("latex", r"\toprule"), ("csv", "bias_ci_low")])
def test_tables_in_other_forms(invoke: Invoke, pilot: Path, form: str, part: str) -> None:
    assert part in invoke("table", pilot, "--form", form).stdout


def test_an_export_has_a_codebook(invoke: Invoke, pilot: Path, tmp_path: Path) -> None:
    invoke("export", pilot, tmp_path / "out")
    book = pd.read_csv(tmp_path / "out" / "codebook.csv")
    for frame, own in book.groupby("frame"):
        assert list(pd.read_csv(tmp_path / "out" / f"{frame}.csv", nrows=1)) == list(own["column"])


def test_a_plan_by_the_variance_of_a_pilot(invoke: Invoke, study: Path, pilot: Path) -> None:
    printed = invoke("plan", study, "--half-width", 0.2, "--pilot", pilot).stdout
    assert "| Sizes for a half-width of 0.2" in printed
    assert "Pilot study: D rises" in printed
    sizes = json.loads(invoke("plan", study, "--half-width", 0.2, "--pilot", pilot, "--json").stdout)["sizes"]
    assert [(row["variance"], row["size"]) for row in sizes] == [
        (variance, size) for variance in ("pilot", "upper bound") for size in ("as specified", "more replicates")
    ]
    assert all(row["half_width"] <= 0.2 for row in sizes if row["size"] == "more replicates")
    assert sizes[1]["runs"] == round(sizes[1]["share"] * 12)
    assert "--half-width needs --pilot" in refused("plan", study, "--half-width", 0.2)


def test_a_plan_recommends_draws_of_their_own_for_topics_below_eight_blocks(invoke: Invoke, study: Path) -> None:
    def told(*changes: str) -> str:
        return invoke("plan", study, "--set", "sweep.topic.name=[t-rex, flat-earth]", *changes).stdout

    assert "All topics share 3 blocks of random draws. With fewer than 8," in told("--set", "replicates=3")
    assert "share" not in told("--set", "replicates=8")
    assert "All topics" not in told("--set", "independent_over=[topic.name]")
