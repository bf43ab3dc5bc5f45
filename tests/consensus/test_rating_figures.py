"""Figures of ratings: their numbers on constructed ratings, and those of the study that comes with the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import opinionsim as osim
from opinionsim import consensus
from opinionsim.cli import app
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.report import study
from tests.consensus.test_evaluation import many, rated, two_passes
from tests.consensus.test_record import SESSION

NAMES = ("kappas", "wins", "ratings", "divisiveness", "pairwise-accuracy")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    """The shipped study with two groups a question."""
    spec = osim.load_experiment("bakker2022/appendix").source.value | {"replicates": 2}
    return osim.run(osim.load_experiment(spec), str(tmp_path_factory.mktemp("rated") / "s.sqlite"))


@pytest.fixture
def given(results: osim.Results, monkeypatch: pytest.MonkeyPatch) -> Callable[..., osim.Results]:
    """The study with constructed ratings in the place of its own: those of groups of its first question."""
    runs = results.ordered_runs["run_id"].tolist()

    def given(*groups: pd.DataFrame) -> osim.Results:
        named = [each.assign(group=run, evidence="scripted") for run, each in zip(runs, groups, strict=False)]
        monkeypatch.setattr(consensus, "ratings", lambda _: many(*named))
        return results

    return given


def marks(data: Any, *columns: str) -> list[Any]:
    """Values of the marks with what they stand for."""
    return list(map(list, data[[*columns, "value"]].round(9).itertuples(index=False)))


def test_kappas_of_raters(given: Callable[..., osim.Results]) -> None:
    steady = two_passes([7, 6, 2, 1, 5], [7, 5, 2, 2, 5], citizen=1)
    erratic = two_passes([7, 1, 2, 6, 5], [1, 5, 7, 2, 3], citizen=2)
    constant = two_passes([4, 4], [4, 4], citizen=3)
    once = rated("a", {"p": [7]})
    source = given(many(steady, erratic, constant, once))
    found = consensus.kappas_data(source)
    assert found["citizen"].tolist() == [1, 2, 3], "who rated once has none"
    assert found["kappa"].round(3).iloc[0] == 0.833
    assert found["reliable"].tolist() == [True, False, False]
    ax: Any = consensus.kappas_figure(source).axes[0]
    reach = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches if bar.get_height() == 1]
    assert len(reach) == 2, "the one without a kappa has no bar"
    assert reach[-1][0] < 5 / 6 < reach[-1][1]
    assert "a known question: 1 of 3 raters reliable" in [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert ax.lines[0].get_xdata() == [0.6, 0.6]
    assert "0 of 1 raters" in consensus.kappas_figure(given(constant)).legends[0].get_texts()[0].get_text()


def test_win_rates_by_what_groups_are_reduced_to(given: Callable[..., osim.Results]) -> None:
    source = given(rated("a", {"p": [7, 7, 1], "q": [4, 4, 4]}), rated("b", {"p": [7, 1, 1], "q": [2, 2, 2]}))
    every = ["mean", "median", "nash", "egalitarian"]
    data = consensus.wins_data(source, every)
    assert marks(data, "panel", "at") == [
        [f"by {name}", "p over q", share] for name, share in zip(every, (1, 0.5, 0, 0), strict=True)
    ]
    assert data.iloc[1][["low", "high", "n", "n_groups", "ties"]].tolist() == [0, 1, 2, 2, 0]
    with pytest.raises(SpecError, match="aggregate: unknown 'mode'; valid: mean, median, nash, egalitarian"):
        consensus.wins_data(source, "mode")
    with pytest.raises(MeasurementError, match=r"with ratings for this figure \(share of groups"):
        consensus.wins_data(given(rated("a", {"p": [7, 1]})))


def test_each_welfare_function_wins_by_its_own_criterion_where_predictions_are_exact(
    given: Callable[..., osim.Results],
) -> None:
    # The three vectors of D6, of which each function prefers another.
    ratings = rated("a", {"p": [7, 7, 1], "q": [4, 4, 4], "r": [5, 5, 3]})
    source = given(ratings.assign(predicted_agreement=ratings["agreement"]))
    data = consensus.wins_data(source, ["mean", "nash", "egalitarian"], ["utilitarian", "nash", "egalitarian"])
    pairs = ["utilitarian over nash", "utilitarian over egalitarian", "nash over egalitarian"]
    expected = {"by mean": (1, 1, 1), "by nash": (0, 0, 1), "by egalitarian": (0, 0, 0)}
    assert marks(data, "panel", "at") == [
        [name, pair, won] for name, wins in expected.items() for pair, won in zip(pairs, wins, strict=True)
    ]
    with pytest.raises(MeasurementError, match="lacking: predicted_agreement"):
        consensus.wins_data(given(ratings), rules=["nash"])


def test_distributions_count_every_pass_and_leave_the_position_out(given: Callable[..., osim.Results]) -> None:
    groups = rated("a", {"p": [7, 4], "position": [1, 1]}, quality=[6.0, 2.0, None, None])
    data = consensus.ratings_data(given(groups, many(rated("b", {"p": [7, 7]}, quality=6.0))))
    known = data[data["value"] > 0]
    assert known[["panel", "at", "series", "value", "n", "n_groups"]].to_numpy().tolist() == [
        ["agreement", 4, "p", 0.25, 4, 2],
        ["agreement", 7, "p", 0.75, 4, 2],
        ["quality", 2, "p", 0.25, 4, 2],
        ["quality", 6, "p", 0.75, 4, 2],
    ]
    assert known["low"].tolist() == [0, 0.5, 0, 0.5]
    assert len(data) == 14


def test_divisiveness_of_split_and_of_unanimous_groups(given: Callable[..., osim.Results]) -> None:
    split = rated("a", {"position": [7, 6, 1, 2], "p": [4, 4, 4, 6]})
    unanimous = rated("b", {"position": [1, 2, 3, 4], "p": [7, 7, 7, 7]})
    data = consensus.divisiveness_data(given(split, unanimous))
    known = data[data["value"] > 0]
    ratings = known[known["measure"] == "share of ratings"]
    assert dict(zip(ratings["at"], ratings["value"], strict=True)) == {
        1: 1 / 4,
        2: 1 / 4,
        3: 1 / 8,
        4: 1 / 8,
        6: 1 / 8,
        7: 1 / 8,
    }
    assert marks(data, "measure", "at", "series")[7:] == [
        ["share of groups", 0, "a known question", 0.5],
        ["share of groups", 1, "a known question", 0.5],
        ["mean agreement", "p", "divisive questions", 4.5],
        ["mean agreement", "p", "not divisive questions", 7],
    ]
    with pytest.raises(MeasurementError, match="lean both ways"):
        consensus.divisiveness_data(given(rated("a", {"p": [7, 1]})))


def test_pairs_in_a_known_order(given: Callable[..., osim.Results]) -> None:
    likes = {
        "Open it on Sundays.": 7,
        "Close it for good, and sell the house to the bank.": 1,
        "Sell the house to all.": 1,
    }
    ratings = rated("a", {text: [agreement] for text, agreement in likes.items()})
    ratings = ratings.assign(statement=ratings["policy"], opinion="Open it on Sundays.", predicted_agreement=5.0)
    data = consensus.accuracy_data(given(ratings))
    overlap = ["tfidf", "rouge1", "rouge2", "rougeL", "bleu"]
    found = dict(marks(data, "at"))
    assert found == {"predicted agreement": 0.5, "longest": 0, **dict.fromkeys(overlap, 1)}
    assert set(data["n"]) == {2}, "two statements that are rated alike are no pair"
    wrong = consensus.accuracy_data(given(ratings.assign(agreement=8 - ratings["agreement"])))
    assert dict(marks(wrong, "at"))["rouge1"] == 0


def test_unreliable_raters_can_be_left_out(given: Callable[..., osim.Results]) -> None:
    steady = two_passes([7, 1], [7, 1], citizen=1)
    erratic = two_passes([1, 7], [7, 1], citizen=2)
    ratings = many(steady, erratic).assign(policy=lambda each: each["candidate"], quality=5.0)
    source = given(ratings)
    assert consensus.wins_data(source, "mean")["n"].tolist() == [1]
    assert consensus.ratings_data(source)["n"].max() == 4
    data = consensus.ratings_data(source, reliable=True)
    assert data["n"].max() == 2
    assert "only raters with a kappa of at least 0.6" in data.attrs["notes"]


@pytest.mark.parametrize("what", NAMES)
def test_a_figure_has_its_numbers_and_says_what_it_rests_on(results: osim.Results, what: str, tmp_path: Path) -> None:
    numbers, image = tmp_path / "n.csv", tmp_path / "f.svg"
    done = CliRunner().invoke(
        app, ["plot", what, str(results.url), "--width", "84", "--csv", str(numbers), "--out", str(image)]
    )
    assert done.exit_code == 0, done.output
    assert "SCRIPTED STAND-IN" in image.read_text(encoding="utf-8")
    frame = pd.read_csv(numbers)
    assert set(frame["evidence"]) == {"scripted"}
    assert set(frame["condition"]) == {"a known question", "a question held out"}
    if what != "kappas":
        figure = getattr(consensus, f"{what.partition('-')[2] or what}_figure")(results)
        drawn = [x for ax in figure.axes for line in ax.containers for x in line[0].get_xdata()]
        assert sorted(drawn) == pytest.approx(sorted(frame["value"]))


def test_the_report_of_a_rated_session_has_them_all(results: osim.Results) -> None:
    drawn = [each.name for each in study(results).figures]
    assert drawn[:2] == ["outcome", "consensus"]
    assert drawn[2:8] == ["kappas", "wins", "wins-welfare", "ratings", "divisiveness", "pairwise-accuracy"]


def test_that_of_a_session_without_ratings_has_none_and_misses_none(tmp_path: Path) -> None:
    plain = SESSION | {"interaction": {"kind": "consensus", "candidates": 2, "rounds": 0}}
    made = osim.run(osim.load_experiment(plain), str(tmp_path / "p.sqlite"))
    assert not {each.name for each in study(made).figures} & {*NAMES, "wins-welfare"}
    assert not made.failed
    with pytest.raises(MeasurementError, match="no ratings of statements"):
        consensus.ratings_figure(made)
