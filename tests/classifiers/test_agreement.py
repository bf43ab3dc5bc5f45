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
    assert "none of development, validation, held_out.jsonl" in capsys.readouterr().err
