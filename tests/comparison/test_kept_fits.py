"""Fits are kept beside the store as they are made: a comparison that was stopped goes on, and no stale fit is taken."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opinionsim.classic import find_model
from tests.comparison._studies import (
    BASELINES,
    Candidate,
    Fit,
    KeptFits,
    Problem,
    fit,
    meetings,
    misreading,
    rated,
    refit,
)

FILE = Path("study.sqlite.fits")


class _Counted(KeptFits):
    """Kept fits that count the searches."""

    searches = 0

    def optimum(self, of, search):  # type: ignore[no-untyped-def]
        def counted():  # type: ignore[no-untyped-def]
            self.searches += 1
            return search()

        return super().optimum(of, counted)


def _problem(seed: int = 1) -> Problem:
    return Problem(rated(meetings(2, 4, 6, seed), None, {}, 0.1, seed), kept=_Counted(FILE))


def _fits(problem: Problem) -> list[Fit]:
    first = fit(problem, BASELINES[0])
    return [first, fit(problem, BASELINES[1], [first]), refit(problem, first.candidate, first.values, {"jump": 0.1})]


def _searches(problem: Problem) -> int:
    _fits(problem)
    return problem.kept.searches  # type: ignore[attr-defined, no-any-return]


def test_what_is_kept_is_the_same_to_the_last_bit_and_in_the_same_order() -> None:
    made, again = _fits(_problem()), _problem()
    assert [(*each.values.items(), each.objective) for each in _fits(again)] == [
        (*each.values.items(), each.objective) for each in made
    ]
    assert _searches(again) == 0


def test_a_fit_to_anything_else_is_made_anew() -> None:
    problem = _problem()
    assert _searches(problem) == 3
    study, value = problem.study, problem.study.value.copy()
    value[3] = np.nan
    others = [
        replace(problem, study=study.of_values(value)),
        replace(problem, study=replace(study, one_message=True)),
        replace(problem, noise=misreading(5, 0.1, 0.8)),
        replace(problem, known=np.full(41, 1 / 41)),
    ]
    for each in others:
        before = problem.kept.searches  # type: ignore[attr-defined]
        _fits(each)
        assert problem.kept.searches == before + 3  # type: ignore[attr-defined]
    before = problem.kept.searches  # type: ignore[attr-defined]
    refit(problem, Candidate("persistence", shuffled=True, innate=""), {"jump": 0.1})
    refit(problem, BASELINES[0], {"jump": 0.2})
    fit(problem, BASELINES[0], seed=1)
    assert problem.kept.searches == before + 3  # type: ignore[attr-defined]


def test_of_a_model_of_ones_own_nothing_is_kept_for_its_code_may_rest_on_other_files() -> None:
    first = replace(find_model("deffuant"), name="own:Model")
    other = replace(first, transition=lambda received, p: received.own - p.mu * (received.said[:, 0] - received.own))
    found = [fit(_problem(), Candidate(each.name, each)).objective for each in (first, other)]
    assert found[0] != found[1]
    assert not FILE.read_text().splitlines()[1:]


@pytest.mark.parametrize(("cut", "lost"), [(1, 0), (30, 1)], ids=["its end", "a part"])
def test_a_line_that_was_cut_off_is_made_again_and_later_ones_are_whole(cut: int, lost: int) -> None:
    _fits(_problem())
    FILE.write_bytes(FILE.read_bytes()[:-cut])
    assert _searches(_problem()) == lost
    assert _searches(_problem()) == 0


def test_what_was_altered_or_left_by_other_code_does_not_count() -> None:
    _fits(_problem())
    head, *lines = FILE.read_text().splitlines()
    FILE.write_text("\n".join([head, lines[0].replace("0.", "1.", 1), *lines[1:], ""]))
    assert _searches(_problem()) == 1
    FILE.write_text("\n".join([f"{head}0", *lines, ""]))
    assert _searches(_problem()) == 3
    assert FILE.read_text().splitlines()[0] == head


@pytest.mark.parametrize("content", ["a file of somebody else's", None], ids=["not ours", "a folder"])
def test_what_is_not_ours_is_left_alone(content: str | None) -> None:
    FILE.write_text(content) if content else FILE.mkdir()
    assert _searches(_problem()) == 3
    assert FILE.read_text() == content if content else not list(FILE.iterdir())


@pytest.mark.long
def test_a_comparison_that_was_stopped_goes_on_where_it_was() -> None:
    """It is stopped as soon as 20 fits are kept, and again at 60; the whole of it makes some 180."""
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from pathlib import Path;"
        "from tests.comparison._studies import *; from tests.comparison._studies import _explained;"
        "study = rated(meetings(4, 4, 8, 1), 'voter', {'stay': 0.5}, 0.1, 1);"
        "kept = KeptFits.beside('sqlite:///study.sqlite');"
        "found = _explained(study, named('voter'), 0.1, MARGIN, 0, 2, lambda stage: None, 'given', kept);"
        "Path(sys.argv[1]).write_text(Comparison({'cell': found}, None, MARGIN).fits.to_csv())"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def started(out: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", script, out], env=env)

    def kept() -> list[bytes]:
        return FILE.read_bytes().splitlines()[1:] if FILE.exists() else []

    before: list[bytes] = []
    for stop, number in ((signal.SIGINT, 20), (signal.SIGKILL, 60)):
        first = started("never.csv")
        while len(kept()) < number and first.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                first.wait(0.02)
        first.send_signal(stop)
        assert first.wait(60) != 0
        assert len(kept()) >= number
        assert kept()[: len(before)] == before
        before = kept()
    assert started("resumed.csv").wait(300) == 0
    resumed = kept()
    FILE.unlink()
    assert started("whole.csv").wait(300) == 0
    assert Path("resumed.csv").read_text() == Path("whole.csv").read_text()
    assert not Path("never.csv").exists()
    assert sorted(resumed) == sorted(kept())
