"""Classic models at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from opinionsim.analysis import mean_text
from opinionsim.classic import MODELS, simulate, sweep
from opinionsim.errors import SpecError
from tests.cli.conftest import Invoke
from tests.support.command import refused

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_simulation_states_what_was_simulated(invoke: Invoke) -> None:
    result = invoke("abm", "deffuant", "--agents", 20, "--steps", 5, "--seed", 3, "--set", "epsilon=0.3")
    assert result.exit_code == 0
    found = simulate("deffuant", 20, steps=5, seed=3, epsilon=0.3)
    assert "epsilon=0.3, mu=0.5, threshold=<=, order=random, pick=edge, sides=two" in result.stdout
    assert "Evidence: equation" in result.stdout
    assert f"{found.final.std():.4g}" in result.stdout


def test_json_holds_everything_unrounded(invoke: Invoke) -> None:
    arguments = ("--agents", 20, "--steps", 5, "--replicates", 3, "--metric", "diversity", "--json")
    found = json.loads(invoke("abm", "deffuant", *arguments).stdout)
    simulated = simulate("deffuant", 20, steps=5, replicates=3)
    assert (found["model"], found["evidence"], found["steps"], found["seed"]) == ("deffuant", "equation", 5, 0)
    assert found["parameters"].items() >= {"epsilon": 0.2, "mu": 0.5, "threshold": "<="}.items()
    np.testing.assert_allclose(found["end"]["diversity"], simulated.final.std(axis=1), rtol=1e-12)


def test_networks_and_opinions_are_yaml(invoke: Invoke, tmp_path: Path) -> None:
    network = "{kind: edges, edges: [[0, 1], [1, 2]]}"
    arguments = ("--network", network, "--initial", "[-2, 0, 1]", "--set", "range=[-2, 2]", "--steps", 2)
    file = tmp_path / "deep" / "opinions.csv"
    result = invoke("abm", "deffuant", *arguments, "--csv", file, "--figure", tmp_path / "figure.png")
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv(file)
    assert table[table["step"] == 0]["value"].tolist() == [-2, 0, 1]
    assert len(table) == 9
    assert (tmp_path / "figure.png").read_bytes()[:8] == PNG


def test_values_are_swept(invoke: Invoke, tmp_path: Path) -> None:
    over = ("--over", "epsilon=[0.1, 0.5]", "--over", "mu=[0.2, 0.4]")
    arguments = ("--agents", 20, "--steps", 3, "--replicates", 2, *over)
    result = invoke("abm", "deffuant", *arguments, "--csv", tmp_path / "runs.csv", "--figure", tmp_path / "phase.png")
    assert result.exit_code == 0, result.stderr
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 8
    assert (tmp_path / "phase.png").read_bytes()[:8] == PNG
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith(("0.", " " * 9 + "0."))]
    assert [row[:2] for row in (rows[0], rows[2])] == [["0.1", "0.2"], ["0.5", "0.2"]]
    assert [row[0] for row in (rows[1], rows[3])] == ["0.4", "0.4"]
    rows = json.loads(invoke("abm", "deffuant", *arguments, "--json").stdout)
    assert {(row["epsilon"], row["mu"]) for row in rows} == {(0.1, 0.2), (0.1, 0.4), (0.5, 0.2), (0.5, 0.4)}


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_describes_itself(invoke: Invoke, name: str) -> None:
    text = invoke("abm", name, "--describe").stdout
    assert MODELS[name].title in text
    assert all(parameter in text for parameter in MODELS[name].declared)
    assert all(source in text for source in MODELS[name].source)


def test_a_figure_that_cannot_be_written_is_refused_before_anything_is(tmp_path: Path) -> None:
    assert ".png, .svg or .pdf" in refused("abm", "voter", "--csv", tmp_path / "x.csv", "--figure", tmp_path / "x.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("over", [(), ("--over", "n=[10,20]")])
def test_a_table_that_cannot_be_written_is_refused_before_the_first_run(
    invoke: Invoke, tmp_path: Path, over: tuple[str, ...]
) -> None:
    (tmp_path / "there").mkdir()
    for file, message in (
        ("there", "there is a folder; give the name of a file"),
        ("/proc/x.csv", "cannot write /proc/x.csv"),
    ):
        result = invoke("abm", "voter", *over, "--steps", 5, "--csv", file)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
    assert not list((tmp_path / "there").iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("deffuant", "--until", "frozen"), "epsilon in runs at rest, else 0.01"),
        (("deffuant", "--until", "frozen", "--over", "epsilon=[0.2,0.3]"), "epsilon in runs at rest, else 0.01"),
        (
            ("deffuant", "--until", "frozen", "--over", "network=[complete,ring]"),
            "epsilon in runs at rest where all can meet, else 0.01",
        ),
        (("deffuant", "--until", "frozen", "--over", "epsilon=[0.2]", "--network", "ring"), None),
        (("deffuant", "--over", "epsilon=[0.2,0.3]"), None),
        (("deffuant", "--over", "epsilon=[0.2]", "--initial", "{kind: uniform, dimensions: 2}"), None),
        (("voter", "--over", "n=[10]"), None),
    ],
)
def test_tables_say_what_tells_clusters_apart(invoke: Invoke, arguments: tuple[str, ...], told: str | None) -> None:
    result = invoke("abm", *arguments, "--steps", 3, "--metric", "clusters", "--metric", "diversity")
    assert result.exit_code == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("A gap separates")]
    assert lines == ([] if told is None else [f"A gap separates clusters if it exceeds {told}."])
    assert "Clusters" not in invoke("abm", *arguments, "--steps", 3, "--metric", "diversity").stdout


def test_runs_at_their_limit_have_a_row_of_their_own(invoke: Invoke) -> None:
    arguments = ("--agents", 40, "--over", "epsilon=[0.15]", "--set", "mu=0.2", "--steps", 24, "--until", "frozen")
    result = invoke("abm", "deffuant", *arguments, "--seed", 2, "--replicates", 6, "--metric", "clusters")
    assert result.exit_code == 0, result.stderr
    found = sweep("deffuant", {"epsilon": [0.15]}, n=40, steps=24, until="frozen", seed=2, replicates=6, mu=0.2,
                  metrics=["clusters"])  # fmt: skip
    assert "6 replicates" in result.stdout
    # A level stands once, before the first of its rows.
    ends = [line.split() for line in result.stdout.replace("0.15 ", " ").splitlines()]
    rows = {words[0]: words for words in ends if words[:1] in (["frozen"], ["at"])}
    for ended, stopped in (("frozen", True), ("at", False)):
        part = found[found["stopped"] == stopped]
        assert rows[ended][-1] == str(len(part))
        assert mean_text(part["clusters"]) in " ".join(rows[ended])


def test_a_sweep_of_more_than_a_day_is_asked_for(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("abm", "voter", "--over", "n=[100]", "--steps", 100_000_000, "--replicates", 100_000)
    said = refused(*arguments, "--store", "long.sqlite")
    assert "the 100,000 runs take up to" in said
    assert "start them with `opinionsim abm` and --yes" in said
    assert not Path("long.sqlite").exists()
    begun: list[object] = []

    def run_sweep(sweep: object, *given: object, **options: object) -> object:
        begun.append(sweep)
        raise SpecError("begun")

    monkeypatch.setattr("opinionsim.classic.sweeps.run_sweep", run_sweep)
    assert "begun" in invoke(*arguments, "--yes").stderr
    assert len(begun) == 1


def test_means_of_fewer_runs_are_marked(invoke: Invoke) -> None:
    common = ("abm", "voter", "--steps", 3, "--store", "runs.sqlite")
    invoke(*common, "--over", "n=[10]", "--replicates", 4, "--metric", "median")
    result = invoke(*common, "--over", "n=[10,20]", "--replicates", 2, "--metric", "diversity")
    assert result.exit_code == 0, result.stderr
    assert "At most 4 replicates at a point, fewer at some points: see the numbers in brackets" in result.stdout
    ten, twenty = (line.split("  ") for line in result.stdout.splitlines() if line.startswith(("10 ", "20 ")))
    assert [cell[-3:] for cell in ten if "(" in cell] == ["(4)", "(2)"]
    assert [cell[-3:] for cell in twenty if "(" in cell] == ["(0)", "(2)"]
    alone = invoke(*common[:4], "--over", "n=[10,20]", "--replicates", 2, "--metric", "diversity")
    assert "2 replicates\n" in alone.stdout
    assert "(2)" not in alone.stdout


def test_a_setting_is_never_an_argument_of_the_simulation(invoke: Invoke) -> None:
    for name in ("model", "steps", "n", "seed", "machine", "pairs"):
        result = invoke("abm", "deffuant", "--set", f"{name}=3")
        assert result.exit_code == 2
        option = {"steps": "--steps", "n": "--agents", "seed": "--seed"}.get(name)
        expected = f"give {option} 3" if option else f"deffuant has no parameter '{name}'"
        assert expected in result.stderr


def test_a_parameter_given_as_an_option_says_how_it_is_set(invoke: Invoke) -> None:
    assert "a parameter is --set epsilon=VALUE" in " ".join(invoke("abm", "deffuant", "--epsilon", 0.2).stderr.split())
    assert "give --network ring" in invoke("abm", "deffuant", "--set", "network=ring").stderr


def test_vectors_of_opinions_are_measured_by_dimension(invoke: Invoke) -> None:
    result = invoke("abm", "deffuant", "--initial", "[[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]", "--steps", 2, "--json")
    found = json.loads(result.stdout)
    assert found["start"]["bias[0]"] == pytest.approx([0.3])
    assert found["start"]["bias[1]"] == pytest.approx([0.4])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["defuant"], "did you mean deffuant"),
        (["deffuant", "--set", "epsilon"], "--set 'epsilon': must have the form NAME=VALUE"),
        (["deffuant", "--set", "epsilon=-1"], "epsilon must be a number >= 0"),
        (["deffuant", "--over", "epsilon=0.1"], "list of at least one value"),
        (["deffuant", "--network", "circle"], "circle"),
        (["deffuant", "--network", "{kind: watts-strogatz}"], "network.k: is required but missing"),
        (["deffuant", "--initial", "gauss"], "initial must be one of uniform, normal"),
        (["deffuant", "--set", "range=[1, 0]"], "range must be two numbers"),
        (["deffuant", "--metric", "nonsense"], "nonsense"),
        (["deffuant", "--initial", "[[0.1, 0.2], [0.3]]"], "initial must be"),
        (["deffuant", "--steps", "1000000000000", "--metric", "nonsense"], "nonsense"),
        (["deffuant", "--initial", "[0.1]"], "at least 2 agents"),
        (["deffuant", "--set", "range=[0, .inf]"], "range must have finite ends"),
        (["deffuant", "--set", "mu=0.1", "--set", "mu=0.2"], "--set mu is given twice"),
        (["deffuant", "--over", "mu=[0.1, 0.1]"], "mu repeats a value"),
        (["deffuant", "--over", "mu=[0.1]", "--set", "record_every=2"], "--set record_every is only for single"),
        (["deffuant", "--over", "epsilon=[0.1]", "--over", "mu=[0.1]", "--over", "order=[random]", "--figure", "x.png"],
         "--figure shows one or two axes; this sweep has 3"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_error(arguments: list[str], message: str) -> None:
    assert message in refused("abm", *arguments)


# -- sweeps in a store -------------------------------------------------------------------------------------

OVER = ("--over", "epsilon=0.1:0.3:0.1", "--over", "n=[10,20]", "--steps", 4)


def test_a_sweep_is_kept_continued_and_shown(invoke: Invoke, tmp_path: Path) -> None:
    store = tmp_path / "sweep.sqlite"
    first = invoke("abm", "deffuant", *OVER, "--store", store, "--replicates", 2, "--set", "at={log: 2}")
    assert first.exit_code == 0, first.stderr
    assert "12 of 12 runs done after" in first.stderr
    again = invoke(
        "abm", "deffuant", *OVER, "--store", store, "--replicates", 3, "--set", "at=1", "--csv", tmp_path / "a.csv"
    )
    assert "18 of 18 runs done after" in again.stderr
    assert "6 new" in again.stderr
    assert invoke("table", store).stdout == again.stdout
    status = json.loads(invoke("status", store, "--json").stdout)[0]
    assert (status["runs"], status["complete"], status["pending"], status["errors"]) == (18, 18, 0, {})
    figure = invoke("plot", "phase", store, "--x", "epsilon", "--y", "n", "--csv", tmp_path / "b.csv")
    assert Path(figure.stdout.strip()).read_bytes()[:8] == PNG
    assert len(pd.read_csv(tmp_path / "b.csv")) == 6
    invoke("export", store, tmp_path / "all")
    saved = pd.read_csv(tmp_path / "all" / "points.csv")
    assert len(saved) == 18
    measured_at = {name: name.replace("_", "@") for name in saved.columns if name[-1].isdigit()}
    pd.testing.assert_frame_equal(saved.rename(columns=measured_at), pd.read_csv(tmp_path / "a.csv"))
    refused = invoke("plot", "ribbons", store)
    assert "stores only measures; valid figures: phase" in refused.stderr


def test_a_sweep_in_a_file_goes_to_a_store_of_its_name(
    invoke: Invoke,
) -> None:
    text = (
        "name: voters\nmodel: {classic: voter}\ninteraction: {steps: 3}\n"
        "sweep: {population.size: [5, 9]}\nmeasurement: {metrics: [diversity]}\n"
    )
    Path("voters.yaml").write_text(text, encoding="utf-8")
    plan = invoke("abm", "voters.yaml", "--plan", "--replicates", 50)
    assert plan.stdout.split()[:4] == ["points", "2", "n", "runs"]
    assert not Path("results").exists()
    found = invoke(
        "abm", "voters.yaml", "--replicates", 2, "--set", "interaction.steps=0", "--metric", "bias", "--json"
    )
    assert found.exit_code == 0, found.stderr
    assert [(row["n"], row["replicate"], row["time"]) for row in json.loads(found.stdout)] == [
        (5, 0, 0), (5, 1, 0), (9, 0, 0), (9, 1, 0),
    ]  # fmt: skip
    assert Path("results/voters.sqlite").exists()
    assert "--set interaction.steps=50" in refused("abm", "voters.yaml", "--steps", 5)


@pytest.mark.long
def test_points_that_fail_are_named_and_the_others_kept(invoke: Invoke, tmp_path: Path) -> None:
    arguments = ("activity-driven", "--over", "K=[1,1e308]", "--set", "activity=1", "--agents", 8, "--steps", 50)
    result = invoke("abm", *arguments, "--store", tmp_path / "a.sqlite")
    assert result.exit_code == 1
    assert "K=1e+308: activity-driven: opinions have grown to infinity" in result.stderr
    assert "continue from here" in result.stderr
    status = json.loads(invoke("status", tmp_path / "a.sqlite", "--json").stdout)[0]
    assert (status["complete"], status["incomplete"], len(status["errors"])) == (1, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--over", "epsilon=0.1:0.5:0"], "epsilon: the range 0.1:0.5:0 does not end"),
        (["--over", "n=[10,1]"], "n=1"),
        (["--over", "network.k=[2]"], "network.k"),
        (["--over", "steps=[2]"], "no parameter 'steps'"),
        (["--until", "later"], "interaction.until: must be the event"),
        (["--set", "at=[1000]"], "limit of 100"),
        (["--over", "mu=[0.1]", "--set", "mu=0.2"], "mu is given twice"),
    ],
)
def test_a_sweep_that_cannot_be_writes_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    assert message in refused("abm", "deffuant", *arguments, "--store", tmp_path / "x.sqlite")
    assert list(tmp_path.iterdir()) == []
