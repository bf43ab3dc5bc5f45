"""The comparison with classic models on pages of results: its form, its findings, and files that are old or damaged."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

import opinionsim as osim
from tests.support.command import invoked
from tests.support.pages import HOSTILE
from tests.support.running import SMALL, changed
from tests.support.studios import serving

STORE, PAGE = "/results/posts.sqlite", "/section/comparison/results/posts.sqlite"
TEXTS = {"texts": ["post", "report"]}
SPEC = changed(SMALL, name="posts", replicates=2, interaction__steps=12, topic__name="t-rex", measurement=TEXTS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose runs were compared with one model."""
    place = tmp_path_factory.mktemp("compared") / "results" / "posts.sqlite"
    place.parent.mkdir()
    osim.run(osim.load_experiment(SPEC), f"sqlite:///{place}")
    made = place.with_name("posts-compare")
    invoked("compare", place, "--models", "degroot", "--noise", "0.05", "--csv", made, "--plot", f"{made}.svg")
    return place


@pytest.fixture
def files(store: Path) -> Iterator[Path]:
    """The folder of its frames, which is as it was after the test."""
    place = store.with_name("posts-compare")
    kept = {path: path.read_bytes() for path in (*place.iterdir(), place.with_suffix(".svg"))}
    yield place
    for path, content in kept.items():
        path.write_bytes(content)


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[httpx.Client]:
    """A studio that shows it."""
    with serving(store.parent.parent) as client:
        yield client


def test_findings_scores_and_the_figure_are_shown_as_they_were_saved(client: httpx.Client, store: Path) -> None:
    page = client.get(PAGE).text
    finding = osim.foundation.spreadsheets.read_csv(store.with_name("posts-compare") / "findings.csv").iloc[0]
    assert finding["finding"] == "withheld"
    assert f": withheld.</strong> {finding['statement']}" in page
    assert all(heading in page for heading in ("| Findings", "| Scores of runs held out", "| Parameters of the best"))
    assert "This comparison is old" not in page
    assert client.get(f"/picture/comparison:curves{STORE}").text == store.with_name("posts-compare.svg").read_text()
    assert "Lines and bands of candidates" in client.get(f"/figure/comparison:curves{STORE}").text


def test_a_comparison_of_other_measurements_is_old(client: httpx.Client, files: Path) -> None:
    events = files / "events.csv"
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(lines[:-1]))
    assert "This comparison is old" in client.get(PAGE).text


@pytest.mark.parametrize("content", ["", "cell\n1\n", "\0\0", HOSTILE[0]])
@pytest.mark.parametrize("name", ["findings", "trust", "scores"])
def test_damaged_files_are_one_line(client: httpx.Client, files: Path, name: str, content: str) -> None:
    (files / f"{name}.csv").write_text(content)
    page = client.get(PAGE)
    assert page.status_code == 200
    assert "The comparison in posts-compare cannot be read; compare again." in page.text
    assert "Findings" not in page.text
    assert "<form" in page.text


def test_large_files_are_one_line(client: httpx.Client, files: Path) -> None:
    with (files / "events.csv").open("ab") as file:
        file.truncate(31_000_000)
    assert "events.csv has more than 30 MB" in client.get(PAGE).text


def test_texts_of_files_are_texts(client: httpx.Client, files: Path) -> None:
    findings = files / "findings.csv"
    text = findings.read_text()
    for hostile in HOSTILE[:3]:
        quoted = hostile.replace('"', '""')
        findings.write_text(text.replace("No finding:", f"No finding: {quoted}"))
        page = client.get(PAGE).text
        assert "No finding: " in page
        assert hostile not in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"noise": "0.1"}, "Choose at least one model."),
        ({"model.degroot": "on", "noise": "--force"}, "The noise is a rate"),
        ({"model.own:Pull": "on"}, "Choose at least one model."),
    ],
)
def test_a_form_that_makes_no_sense_starts_nothing(client: httpx.Client, given: dict[str, str], said: str) -> None:
    answer = client.post(PAGE, data=given)
    assert answer.status_code == 400
    assert said in answer.text
    assert "<code>opinionsim compare" not in client.get(f"/progress{STORE}").text


def test_a_comparison_is_started_and_what_it_says_is_shown(client: httpx.Client) -> None:
    answer = client.post(PAGE, params={"design": "7"}, data={"model.degroot": "on", "noise": "0.05", "back": "1"})
    assert answer.url.path == f"/results{STORE}"
    until = time.monotonic() + 60
    while "Under way" in (page := client.get(f"/progress{STORE}").text):
        assert time.monotonic() < until
    assert "--models=degroot --noise=0.05 --design=7" in page
    assert "Refused" in page
    assert "has no design 7" in page


def test_a_viewer_shows_findings_and_no_form(store: Path) -> None:
    with serving(store, "view") as client:
        page = client.get("/section/comparison/posts.sqlite").text
        assert ": withheld.</strong>" in page
        assert "<form" not in page
        assert client.post("/section/comparison/posts.sqlite", data={"model.degroot": "on"}).status_code == 403


def test_runs_in_which_nobody_reads_others_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    file = tmp_path / "alone.yaml"
    spec = changed(SPEC, name="posts", interaction={"kind": "independent", "reports": 3}, measurement={})
    file.write_text(yaml.safe_dump(spec), encoding="utf-8")
    osim.run(osim.load_experiment(str(file)), f"sqlite:///{tmp_path}/results/posts.sqlite")
    with serving(tmp_path) as client:
        page = client.get(f"/part/sections{STORE}")
    assert page.status_code == 200
    assert not re.search("Comparison with classic models|problem", page.text)
