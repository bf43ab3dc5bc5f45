from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

_PATH = Path(__file__).parents[2] / "benchmarks" / "lexicon.py"
POINTS = (-2, -1, 0, 1, 2)


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("lexicon_benchmark", _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_kappa_of_two_points_is_the_phi_of_equal_margins(benchmark):
    # With two categories and equal margins p, weighted kappa is (P(both) - p^2) / (p (1 - p)).
    truth = np.array([1.0] * 50 + [-1.0] * 50)
    coded = np.array([1.0] * 40 + [-1.0] * 10 + [1.0] * 10 + [-1.0] * 40)
    assert benchmark.quadratic_weighted_kappa(truth, coded, (-1, 1)) == pytest.approx((0.4 - 0.25) / 0.25)


def test_kappa_equals_the_concordance_coefficient(benchmark):
    # Quadratic weights make kappa 2 cov / (var + var + (difference of means)^2), all with population moments.
    generator = np.random.default_rng(7)
    truth = generator.integers(-2, 3, 400).astype(float)
    coded = np.clip(truth + generator.integers(-1, 3, 400), -2, 2)
    covariance = np.mean((truth - truth.mean()) * (coded - coded.mean()))
    closed = 2 * covariance / (truth.var() + coded.var() + (truth.mean() - coded.mean()) ** 2)
    assert benchmark.quadratic_weighted_kappa(truth, coded, POINTS) == pytest.approx(closed)


def test_kappa_at_its_ends(benchmark):
    truth = np.array([-2.0, -1, 0, 1, 2])
    assert benchmark.quadratic_weighted_kappa(truth, truth, POINTS) == pytest.approx(1.0)
    assert benchmark.quadratic_weighted_kappa(truth, -truth, POINTS) == pytest.approx(-1.0)
    assert np.isnan(benchmark.quadratic_weighted_kappa(np.zeros(4), np.zeros(4), POINTS))


def test_figures_by_hand(benchmark):
    nan = np.nan
    found = benchmark.figures(np.array([2, 1, 0, nan, nan]), np.array([2, 2, nan, nan, -2]), POINTS)
    assert found["accuracy"] == pytest.approx(2 / 5)
    assert found["within one"] == pytest.approx(3 / 5)
    assert found["answered by both"] == 2
    assert found["no-answer precision"] == pytest.approx(1 / 2)
    assert found["no-answer recall"] == pytest.approx(1 / 2)


@pytest.mark.long
def test_report_reads_a_folder_and_says_the_texts_are_synthetic(benchmark, tmp_path, capsys, monkeypatch):
    row = {"topic": "fire", "framing": "truth", "claim": "fire is hot", "tags": ["plain"], "label": 2}
    lines = [json.dumps({**row, "text": "Fire is hot."}), json.dumps({**row, "text": "", "label": None})]
    (tmp_path / "development.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["lexicon.py", "--data", str(tmp_path)])
    benchmark.main()
    shown = capsys.readouterr().out
    assert "synthetic" in shown
    assert "accuracy: plain               1.000  (n=2)" in shown


def test_report_on_an_empty_folder_says_what_is_missing(benchmark, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["lexicon.py", "--data", str(tmp_path)])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "none of development, replies_first, replies_second, validation, held_out.jsonl" in capsys.readouterr().err


def reply(text, labels, explicit=(True, True), masked=True, kind="report"):
    return {"id": text[:8], "topic": "fire", "framing": "falsehood", "claim": "fire is cold", "kind": kind,
            "masked": masked, "text": text, "labels": list(labels), "explicit": list(explicit)}  # fmt: skip


def test_the_truth_is_what_two_labellers_agree_on(benchmark):
    labels = [(2, 2), (2, 1), (-2, -1), (0, 1), (1, -1), (2, "N"), ("R", "R"), (-2, 2)]
    truth, apart = benchmark.truth_of([reply("text", pair) for pair in labels])
    assert apart == 2
    np.testing.assert_array_equal(truth, [2, 1, -1, 0, np.nan, np.nan, np.nan, np.nan])


def test_neutral_is_no_wrong_side_and_bias_is_given_by_label(benchmark):
    truth = np.array([2.0, 2, -1, -1, 1])
    coded = np.array([2.0, -2, 0, -1, np.nan])
    found = benchmark.stance_figures(truth, coded, POINTS)
    assert found["coverage"][0] == pytest.approx(0.8)
    assert found["wrong side"][0] == pytest.approx(0.25)
    assert found["bias +2"] == (-2.0,)
    assert found["bias -1"] == (0.5,)
    assert "bias +1" not in found  # nothing coded, so that nothing is known of it
    assert found["largest bias"] == (2.0,)
    low, high = found["wrong side"][1:]
    assert 0 <= low < 0.25 < high <= 1


def test_replies_are_reported_with_bars_for_masked_explicit_reports_alone(benchmark, tmp_path, capsys):
    rows = [
        reply("I strongly agree with Theory XYZ.", (2, 2)),
        reply("I strongly reject Theory XYZ.", (-2, -1)),
        reply("I am neutral about Theory XYZ.", (0, 0)),
        reply("I like what it says, I suppose.", (1, 1), explicit=(True, False)),
        reply("Fire is cold.", (2, 2), masked=False, kind="post"),
        reply("I love pizza.", ("N", "N")),
        reply("I am an AI.", ("R", "R")),
        reply("Who knows.", (2, -2)),
    ]
    path = tmp_path / "held_out.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    benchmark.report_replies(benchmark.read(path))
    printed = capsys.readouterr().out
    barred, _, others = printed.partition("masked reports, explicit stance: n = 3")[2].partition(
        "masked reports, other"
    )
    assert barred.count("bar: at") == 3
    assert "bar: at" not in others
    assert "plain posts, explicit stance: n = 1" in others
    assert "differ by more than one: 1" in printed
    assert "identical labels: 6 of 8. The labellers may be one model" in printed
    assert "both say no stance: 1, share without a value 1.000" in printed
    assert "both say no answer in role: 1, share without a value 1.000" in printed
