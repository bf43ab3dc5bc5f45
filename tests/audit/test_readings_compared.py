"""Readings of the same texts side by side: instruments, self-reports, labels of people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opinionsim as osim
from opinionsim.analysis import read_by, table
from opinionsim.audit import draw, instrument_tables, keep
from opinionsim.errors import SpecError
from opinionsim.llm import GivenReplies
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from opinionsim.watching import transcript_data
from tests.support.running import SMALL, changed

BLUNT = "tests.support.running:BluntClassifier"
INSTRUMENTS = [
    {"variable": "stance", "classifier": classifier, "texts": ["report"]}
    for classifier in ("lexicon", {"name": BLUNT, "options": {"gain": -1}})
]
SPEC = changed(
    SMALL,
    name="beside",
    replicates=2,
    population={"size": 10},
    interaction={"kind": "dyadic", "steps": 40},
    measurement={
        "instruments": INSTRUMENTS,
        "self_report": {"before": 1, "after": 1},
    },
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return osim.run(load_experiment(SPEC), str(tmp_path_factory.mktemp("beside") / "s.sqlite"))


def test_a_mirror_agrees_where_it_must(results: Results) -> None:
    """An instrument that reads the opposite shares the neutral texts alone, and its kappa is what the counts give."""
    pairs, counts, divided = (each.frame for each in instrument_tables(results))
    row = pairs.set_index(["first", "second"]).loc["lexicon", BLUNT]
    values = results.opinions[(results.opinions["classifier"] == "lexicon") & (results.opinions["kind"] == "report")]
    read = values["value"].dropna()
    assert (row["n"], row["placed"], row["alone"]) == (len(values), len(read), 0)
    assert row["opposite"] == (read != 0).sum()
    assert row["equal"] == pytest.approx((read == 0).mean())
    assert row["shift"] == pytest.approx((-2 * read).mean())
    # Quadratic weights: 1 - E(x - y)^2 / E(x - y')^2 with y' independent of x.
    apart = np.mean((2 * read) ** 2) / np.mean(np.subtract.outer(read.to_numpy(), -read.to_numpy()) ** 2)
    assert row["weighted_kappa"] == pytest.approx(1 - apart)
    own = counts[(counts["first"] == "lexicon") & (counts["second"] == BLUNT)].set_index("reading")
    assert own.loc[2, "-2"] == (read == 2).sum()
    assert own[[str(point) for point in (-2, -1, 0, 1, 2)]].to_numpy().sum() == len(read)
    assert abs(float(divided["lexicon"].iloc[0]) - float(divided[BLUNT].iloc[0])) == 2 * read.abs().max()


def test_self_reports_stand_beside_the_last_text_of_their_author(results: Results) -> None:
    pairs = instrument_tables(results)[0].frame.set_index(["first", "second"])
    assert pairs.loc[("lexicon", "self-report"), "n"] == results.agents["run_id"].size


def test_labels_of_people_are_compared(results: Results, tmp_path: Path) -> None:
    store = tmp_path / "own.sqlite"
    own = osim.run(load_experiment(SPEC), str(store))
    sample = draw(own, 6)
    keep(own, sample, {"ann": sample.texts.set_index("code")["value"]}, "human")
    row = instrument_tables(own)[0].frame.set_index(["first", "second"]).loc["lexicon", "people"]
    assert (row["n"], row["equal"], row["shift"]) == (6, 1.0, 0.0)


def test_a_table_takes_the_readings_of_the_instrument_that_is_named(results: Results) -> None:
    usual = table(results.ordered_runs, results.metrics).frame["bias"]
    other = read_by(results, BLUNT)
    assert set(other.runs["classifier"]) == {BLUNT}
    assert table(other.ordered_runs, other.metrics).frame["bias"].tolist() == pytest.approx((-usual).tolist())
    key = other.runs["instrument_id"].iloc[0]
    assert set(read_by(results, key[:8]).runs["instrument_id"]) == {key}
    with pytest.raises(
        SpecError, match=r"'nobody' is no instrument of stance here; valid: lexicon \(id \w{6}\), tests"
    ):
        read_by(results, "nobody")


def test_a_shift_that_one_instrument_alone_reads_is_said(results: Results) -> None:
    """A mirror never agrees; what an agent answers before and after may."""
    turns = transcript_data(results, shifts=1000)["turns"]
    run = results.runs["run_id"].iloc[0]
    asked = results.opinions[(results.opinions["kind"] == "self-report") & (results.opinions["run_id"] == run)]
    answers = asked[asked["classifier"] == "lexicon"].sort_values("turn").groupby("agent")["value"]
    moved = (answers.last() - answers.first()).to_dict()
    assert {bool(turn["alone"]) for turn in turns} == {True, False}
    for turn in turns:
        change, own = turn["change"], moved[turn["agent"]]
        said = "" if change * own > 0 else f"by lexicon alone; {BLUNT} {-change:+g}, self-report {own:+g}"
        assert turn["alone"] == said
    told = osim.transcript(results, shifts=1000)
    assert all(f"change {turn['change']:+g} ({turn['alone']})" in told for turn in turns if turn["alone"])


def test_one_reading_is_nothing_to_compare(tmp_path: Path) -> None:
    alone = osim.run(load_experiment(SMALL), str(tmp_path / "small.sqlite"))
    with pytest.raises(SpecError, match="only have readings by lexicon; add others with `opinionsim measure`"):
        instrument_tables(alone)


def test_characters_that_turn_a_line_are_spelled_out_in_every_form(tmp_path: Path) -> None:
    told = GivenReplies(lambda prompt: "I strongly believe\u202e Theory XYZ.")
    spec = changed(SPEC, model={"name": "given"}, measurement={"instruments": INSTRUMENTS})
    divided = instrument_tables(osim.run(load_experiment(spec), str(tmp_path / "s.sqlite"), chat_model=told))[-1]
    assert divided.name == "divided-texts"
    for form in ("text", "markdown", "latex", "csv"):
        assert "\u202e" not in divided.to_form(form, 100)
    assert divided.frame["text"].str.contains(r"\\u202e").all()


def test_an_instrument_that_reads_whole_replies_is_named_so(tmp_path: Path) -> None:
    got = {"variable": "stance", "classifier": "lexicon", "texts": ["report"]}
    spec = changed(SPEC, measurement={"instruments": [got, {**got, "replies": "whole"}]})
    (row,) = instrument_tables(osim.run(load_experiment(spec), str(tmp_path / "s.sqlite")))[0].frame.to_dict("records")
    assert {row["first"], row["second"]} == {"lexicon", "lexicon (whole replies)"}
