"""The command compare, as a user types it."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.image import imread

import opinionsim as osim
from opinionsim.comparison import Comparison
from tests.support.command import invoked, refused

FRAMES = ("events", "fits", "free_runs", "scores", "trust", "findings")


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which posts and reports are measured."""
    file = tmp_path_factory.mktemp("compare") / "posts.sqlite"
    experiment = osim.load_experiment(
        {
            "name": "posts",
            "seed": 3,
            "replicates": 3,
            "population": {"size": 4},
            "topic": {"name": "t-rex"},
            "interaction": {"kind": "dyadic", "steps": 12},
            "measurement": {"texts": ["post", "report"]},
        }
    )
    osim.run(experiment, f"sqlite:///{file}")
    return file


@pytest.fixture(scope="module")
def told() -> list[tuple[int, int, str]]:
    """What progress was told, once `found` is there."""
    return []


@pytest.fixture(scope="module")
def found(posts: Path, told: list[tuple[int, int, str]]) -> Comparison:
    """The same from Python, on one thread."""
    return osim.compare(
        osim.load(str(posts)),
        ["degroot", "axelrod"],
        noise=0.05,
        seed=2,
        threads=1,
        progress=lambda done, total, text: told.append((done, total, text)),
    )


@pytest.mark.long
def test_the_command_gives_the_same_on_several_threads(posts: Path, found: Comparison, tmp_path: Path) -> None:
    posts.with_name("posts.sqlite.fits").unlink()
    options = ("--models", "degroot, axelrod", "--noise", "0.05", "--seed", "2", "--threads", "2")
    done = invoked("compare", posts, *options, "--csv", tmp_path / "out", "--plot", tmp_path / "found.png")
    assert done.exit_code == 0, done.output
    for name in FRAMES:
        saved = pd.read_csv(tmp_path / "out" / f"{name}.csv", keep_default_na=False)
        told = pd.read_csv(StringIO(getattr(found, name).to_csv(index=False)), keep_default_na=False)
        pd.testing.assert_frame_equal(saved, told, check_exact=True)
    assert (tmp_path / "out" / "decomposition.csv").exists()
    assert imread(tmp_path / "found.png").std() > 0
    text = done.stdout
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("SCRIPTED STAND-IN, not evidence about people or models | ") == 3
    whole = " ".join(text.split())
    assert "there are 3 blocks, and a finding needs 8" in whole
    assert "Not applicable: axelrod (its opinions are traits" in whole
    assert "An error that persists for an agent is not noise" in whole
    assert "{kind: placebo, steps: 12}" in " ".join(done.stderr.split())


@pytest.mark.long
def test_data_have_every_table(posts: Path, found: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed as JSON, of the comparison that has been made already."""
    monkeypatch.setattr("opinionsim.comparison.compare", lambda *_, **__: found)
    tables = {table["title"].split(" | ")[1]: table for table in json.loads(invoked("compare", posts, "--json").stdout)}
    (finding,) = tables["Findings"]["rows"]
    assert (finding["finding"], finding["n_blocks"]) == ("withheld", 3)
    candidates = {row["candidate"] for row in tables["Scores of runs held out"]["rows"]}
    assert candidates >= {"degroot", "persistence", "shift", "attractor"}
    assert len(tables["What opinions are made of"]["rows"]) == 6


@pytest.mark.long
def test_the_figure_states_evidence_verdict_and_scores(found: Comparison) -> None:
    figure = found.plot()
    assert figure.get_suptitle().startswith("SCRIPTED STAND-IN")
    curve, scores, bias, diversity = figure.axes
    assert " ".join(curve.get_title(loc="left").split()).endswith(": withheld")
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("score of a table of shares" in entries) == any(line.get_linestyle() == "--" for line in scores.lines)
    assert len(entries) == len(set(entries)) >= 8
    assert [each.get_text() for each in scores.get_yticklabels()] == found.scores["candidate"].tolist()
    assert [bias.get_ylabel(), diversity.get_ylabel()] == ["mean opinion", "diversity"]
    observed = found.free_runs[found.free_runs["measure"] == "bias"].drop_duplicates("step")["observed"]
    assert bias.lines[0].get_ydata().tolist() == observed.tolist()
    assert len(bias.collections) == found.free_runs["candidate"].nunique()


@pytest.mark.long
def test_progress_tells_the_stages_of_a_condition(found: Comparison, told: list[tuple[int, int, str]]) -> None:
    assert len(found.findings) == 1
    assert [text.rpartition(": ")[2] for _, _, text in told[:-1]] == [
        "fits",
        "blocks held out",
        "studies of known truth",
        "intervals",
    ]
    done = [each for each, _, _ in told]
    assert done == sorted(done)
    assert told[-1][:2] == (100, 100)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--models", "degrot"), "degrot"),
        (("--models", ","), "models must name at least one model"),
        (("--noise", "much"), "RATE,LOW,HIGH"),
        (("--noise", "1.5"), "noise must be a rate"),
        (("--margin", "0"), "margin"),
        (("--cell", "nowhere"), "no condition 'nowhere'"),
        (("--plot", "found.bmp"), ".png"),
        (("--csv", __file__), "give a folder"),
    ],
)
def test_bad_options_are_one_message_before_any_work(posts: Path, options: tuple[str, str], said: str) -> None:
    assert said in refused("compare", posts, *options)


def test_a_store_without_measured_posts_says_what_to_measure(tmp_path: Path) -> None:
    file = tmp_path / "reports.sqlite"
    spec = {"name": "r", "population": {"size": 3}, "topic": {"name": "t-rex"},
            "interaction": {"kind": "dyadic", "steps": 3}, "measurement": {"texts": ["report"]}}  # fmt: skip
    osim.run(osim.load_experiment(spec), f"sqlite:///{file}")
    assert "[post, report]" in refused("compare", file)
