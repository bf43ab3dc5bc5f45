"""Contrasts of conditions, as a specification declares them."""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import opinionsim as osim
from opinionsim.analysis import contrast_tables, differences, effect, unit_frame
from opinionsim.errors import SpecError
from opinionsim.metrics import permutation_test
from opinionsim.specification import AnalysisSpec, ContrastSpec, load_experiment
from tests.support.units import measured_runs

TOPICS, BLOCKS = ("a", "b", "c", "d", "e"), ("0", "1", "2")
BY = ("framing", "confirmation_bias")
RISES = ContrastSpec(measure="diversity", of="strong - none")


def _frames(*, nested: bool = False, **values: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two framings and two strengths of bias: B follows the framing, and D the strength."""
    rng = np.random.default_rng(4)
    rows = []
    for topic, block in product(TOPICS, BLOCKS):
        shared = rng.normal(0, 0.3, 2)
        for framing, bias in product(("truth", "falsehood"), ("none", "strong")):
            pull = 0.4 if framing == "truth" else -0.2
            rows.append(
                {"topic": topic, "block": f"{topic} {block}" if nested else block, "framing": framing}
                | {"confirmation_bias": bias, "replicate": int(block)}
                | {"bias": pull + shared[0] + rng.normal(0, 0.1)}
                | {"diversity": 0.6 + 0.5 * (bias == "strong") + shared[1] + rng.normal(0, 0.1)}
                | values
            )
    return measured_runs(rows)


def test_a_unit_frame_has_one_value_a_condition_topic_and_block() -> None:
    runs, metrics = _frames()
    again = pd.concat([runs, runs.assign(run_id=runs["run_id"] + "'")])
    twice = pd.concat([metrics, metrics.assign(run_id=metrics["run_id"] + "'", bias=metrics["bias"] + 2)])
    units = unit_frame(again, twice)
    assert list(units) == [
        "framing",
        "confirmation_bias",
        "evidence",
        "topic",
        "block",
        "bias",
        "diversity",
        "withheld",
    ]
    assert len(units) == len(runs)
    # Redraws of a block are averaged.
    np.testing.assert_allclose(units["bias"], unit_frame(runs, metrics)["bias"] + 1)


def test_differences_are_taken_within_topic_and_block_and_averaged_over_what_is_not_named() -> None:
    runs, metrics = _frames()
    units = unit_frame(runs, metrics)
    found = differences(units, BY, RISES).set_index(["topic", "block"])["value"]
    wide = units.pivot_table(index=["topic", "block"], columns=list(BY), values="diversity")
    by_hand = wide.xs("strong", axis=1, level=1).mean(axis=1) - wide.xs("none", axis=1, level=1).mean(axis=1)
    pd.testing.assert_series_equal(found, by_hand, check_names=False)
    one = ContrastSpec(
        measure="diversity",
        of="truth & strong - truth & none",
    )
    alone = differences(units, BY, one).set_index(["topic", "block"])["value"]
    pd.testing.assert_series_equal(alone, wide["truth", "strong"] - wide["truth", "none"], check_names=False)


def test_truth_pull_and_agreement_bias_are_made_of_both_framings() -> None:
    runs, metrics = _frames()
    units = unit_frame(runs, metrics)
    wide = units.pivot_table(index=["topic", "block"], columns=list(BY), values="bias")
    for measure, sign in (("truth-pull", -1), ("agreement-bias", 1)):
        found = differences(units, BY, ContrastSpec(measure=measure, of={"confirmation_bias": "none"}))
        by_hand = (wide["truth", "none"] + sign * wide["falsehood", "none"]) / 2
        np.testing.assert_allclose(found["value"], by_hand)
    grows = ContrastSpec(measure="truth-pull", of="strong - none")
    change = (
        wide["truth", "strong"] - wide["falsehood", "strong"] - wide["truth", "none"] + wide["falsehood", "none"]
    ) / 2
    np.testing.assert_allclose(differences(units, BY, grows)["value"], change)


def test_a_difference_of_differences_by_hand() -> None:
    """Strong less none is 1, 2, 3 over truth and 0.5 over falsehood."""
    by_bias = {("truth", "none"): (0, 0, 0), ("truth", "strong"): (1, 2, 3)}
    by_bias |= {("falsehood", "none"): (-1, 0, 1), ("falsehood", "strong"): (-0.5, 0.5, 1.5)}
    rows = [
        {"topic": "t", "block": str(block), "framing": framing, "confirmation_bias": bias, "bias": value}
        for (framing, bias), values in by_bias.items()
        for block, value in enumerate(values)
    ]
    units = unit_frame(*measured_runs(rows))
    units.attrs["limits"] = {"bias": (-2.0, 2.0)}
    for told in ({"of": ("truth & strong - truth & none", "falsehood & strong - falsehood & none")},
                 {"interaction": ("confirmation_bias", "framing")}):  # fmt: skip
        found = effect(units, BY, ContrastSpec(**told))
        sign = 1 if "of" in told else -1  # truth comes first
        np.testing.assert_allclose(found.differences["value"], sign * np.array([0.5, 1.5, 2.5]))
        half = float(stats.t.ppf(0.975, 2)) / math.sqrt(3)
        own = found.estimate
        assert sorted(np.multiply(sign, (own.low, own.high))) == pytest.approx([1.5 - half, 1.5 + half])
    # The interval ends where the four conditions can be: not at 4, as for one difference, but at 8.
    wide = units.assign(
        bias=np.where(units["confirmation_bias"] == "strong", 2.0, -2.0) * (units["framing"] == "truth")
    )
    wide.loc[(wide["block"] == "0") & (wide["framing"] == "truth"), "bias"] *= -1
    own = effect(wide, BY, ContrastSpec(interaction=("framing", "confirmation_bias"))).estimate
    assert (own.low, own.high) == (-8, 8)


@settings(max_examples=20)
@given(
    values=st.lists(st.integers(-8, 8), min_size=24, max_size=24),
    lost=st.sets(st.integers(0, 23), max_size=5),
    measure=st.sampled_from(["bias", "truth-pull"]),
)
def test_an_interaction_is_the_difference_of_two_contrasts_and_lacks_what_either_lacks(
    values: list[int], lost: set[int], measure: str
) -> None:
    """Three blocks or six, which lack runs, of both framings or one, under two strengths of bias and two memories."""
    sides = ("truth", "falsehood") if measure == "truth-pull" else ("truth",)
    cells = product(map(str, range(6 // len(sides))), sides, ("none", "strong"), ("reflective", "cumulative"))
    by = ("framing", "confirmation_bias", "memory")
    rows = [
        (*cell, value / 4) for number, (cell, value) in enumerate(zip(cells, values, strict=True)) if number not in lost
    ]
    units = pd.DataFrame(rows, columns=["block", *by, "bias"]).assign(topic="t", evidence="model")

    def of(*told: str) -> dict[str, float]:
        # It is refused where no block has all of these runs.
        with suppress(SpecError):
            found = differences(units, by, ContrastSpec(measure=measure, of=told))
            return found.set_index("block")["value"].dropna().to_dict()
        return {}

    pairs = [(f"strong & {memory}", f"none & {memory}") for memory in ("cumulative", "reflective")]
    one, other = (of(*pair) for pair in pairs)
    both = of(*(" - ".join(pair) for pair in pairs))
    assert both == pytest.approx({block: one[block] - other[block] for block in one if block in other})


@pytest.mark.parametrize("nested", [False, True])
def test_whether_blocks_are_nested_is_read_from_the_runs(nested: bool) -> None:
    runs, metrics = _frames(nested=nested)
    found = effect(unit_frame(runs, metrics), BY, RISES).estimate
    assert found.unit == ("topic" if nested else "topic and block")
    assert found.mean == pytest.approx(0.5, abs=0.15)


def test_an_unfinished_run_leaves_its_pair_out_and_the_number_is_told() -> None:
    runs, metrics = _frames(nested=True)
    lost = runs.index[(runs["topic"] == "a") & (runs["replicate"] == 1)][0]
    runs.loc[lost, "status"] = "incomplete"
    found = effect(unit_frame(runs, metrics), BY, RISES)
    assert found.differences["value"].isna().sum() == 1
    assert (found.estimate.left_out, found.estimate.units) == (1, "5 topics")


def test_a_sign_flip_test_is_for_independent_units_alone() -> None:
    runs, metrics = _frames(nested=True)
    found = effect(unit_frame(runs, metrics), BY, RISES)
    by_topic = found.differences.groupby("topic")["value"].mean()
    p, least = found.sign_flips()
    assert p == permutation_test(by_topic, np.zeros(5), paired=True).p_value
    assert least == 2 / 2**5
    crossed = effect(unit_frame(*_frames()), BY, RISES)
    assert all(map(math.isnan, crossed.sign_flips()))
    pooled = effect(unit_frame(runs, metrics), BY, RISES, estimand="these-topics")
    assert all(map(math.isnan, pooled.sign_flips()))


def _table(analysis: AnalysisSpec | None, **values: Any) -> Any:
    (made,) = contrast_tables(*_frames(nested=True, **values), analysis)
    return made


ANALYSIS = AnalysisSpec(
    primary="D rises",
    smallest=0.2,
    contrasts={
        "pull": ContrastSpec(measure="truth-pull"),
        "B falls": ContrastSpec(of="strong - none"),
        "D rises": RISES,
    },
)


def test_the_primary_p_value_stands_and_secondary_ones_are_adjusted() -> None:
    made = _table(ANALYSIS)
    frame = made.frame.set_index("contrast")
    assert list(frame.index) == ["D rises", "pull", "B falls"]
    assert list(frame["role"]) == ["primary", "secondary", "secondary"]
    assert frame.loc["D rises", "p"] == frame.loc["D rises", "p_reported"]
    assert frame.loc["pull", "p_reported"] == min(2 * frame.loc["pull", "p"], frame.loc["B falls", "p_reported"])
    assert frame.loc["D rises", "finding"] == "larger"
    assert frame.loc["B falls", "finding"] == "equivalent"
    for column in ("estimand", "unit", "n", "method", "level"):
        assert frame[column].notna().all()
    assert any("Holm 1979" in note for note in made.notes)


def test_the_table_as_printed() -> None:
    made = _table(ANALYSIS)
    assert made.header == (
        ("contrast", "role", "difference [95 % CI]", "d_z [95 % CI]", "p", "sign-flip p", "finding"),
    )
    values = differences(unit_frame(*_frames(nested=True)), BY, RISES).groupby("topic")["value"].mean()
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert made.rows[0][:3] == ("D rises", "primary", f"{values.mean():.2f} [{low:.2f}, {high:.2f}]")
    assert made.rows[0][5:] == ("0.062", "larger")
    assert made.notes[1] == (
        "Interval: 95% confidence, about topics like these, from which the studied topics are a sample. "
        "Independent unit: topic (5 topics). Method: t over topic means."
    )


def test_without_a_declaration_contrasts_of_framings_are_exploratory() -> None:
    made = _table(None)
    names = ["truth pull: none", "truth pull: strong", "agreement bias: none", "agreement bias: strong"]
    assert list(made.frame["contrast"]) == names
    assert set(made.frame["role"]) == {"exploratory"}
    runs, metrics = _frames()
    one = runs["framing"] == "truth"
    assert contrast_tables(runs[one], metrics[one]) == []


@pytest.mark.parametrize("evidence", ["scripted", "mixed"])
def test_a_scripted_stand_in_has_no_p_value_and_no_finding(evidence: str) -> None:
    made = _table(ANALYSIS, evidence=evidence)
    assert made.frame[["p", "p_reported", "p_sign_flip", "d_z"]].isna().all(axis=None)
    assert not made.frame["finding"].any()
    assert made.header[0] == ("contrast", "role", "difference [95 % CI]")
    assert any(note.startswith("No p-value and no finding: scripted results") for note in made.notes)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            {"confirmation_bias": "weak"},
            "x: no complete run has confirmation_bias = weak; complete runs have confirmation_bias: none, strong",
        ),
        ({"memory": "none"}, "x: 'memory' is no condition of these runs; valid: framing, confirmation_bias"),
        ({"topic": "a"}, "'topic' is no condition"),
    ],
)
def test_contrasts_of_unknown_conditions_are_refused(condition: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        differences(unit_frame(*_frames()), BY, ContrastSpec(of=condition), "x")


def test_conditions_that_differ_in_more_than_is_named_are_refused() -> None:
    units = unit_frame(*_frames())
    ragged = units[(units["framing"] == "truth") | (units["confirmation_bias"] == "none")]
    with pytest.raises(SpecError, match="also differ in confirmation_bias"):
        differences(ragged, BY, ContrastSpec(of="truth - falsehood"))


def test_conditions_that_share_no_block_are_refused() -> None:
    runs, metrics = _frames()
    runs["block"] = runs["block"] + runs["confirmation_bias"]
    with pytest.raises(SpecError, match=r"share no block .* independent_over"):
        differences(unit_frame(runs, metrics), BY, RISES)
    with pytest.raises(SpecError, match="'polarization' is no metric of these runs"):
        unit_frame(runs, metrics, ["polarization"])


def test_of_a_sweep_under_way_a_declared_contrast_says_why_it_has_no_value() -> None:
    runs, metrics = _frames()
    runs.loc[runs["confirmation_bias"] == "strong", "status"] = "pending"
    runs.loc[runs["framing"] == "falsehood", "status"] = "pending"
    (made,) = contrast_tables(runs, metrics, AnalysisSpec(contrasts={"D rises": RISES}))
    assert made.rows == (("D rises", "secondary", "\N{EN DASH}"),)
    assert any("no complete run has confirmation_bias = strong" in note for note in made.notes)
    assert contrast_tables(runs, metrics) == []


@pytest.mark.parametrize(
    ("few", "why"),
    [
        # There are 100 blocks.
        ({"none": 0, "strong": 0}, ""),
        ({"none": 4, "strong": 4}, ""),
        ({"none": 0, "strong": 5}, ""),
        ({"none": 0, "strong": 6}, "loses its 100 blocks unequally"),
        ({"none": 5, "strong": 5}, "loses a tenth of its 100 blocks or more"),
        ({"none": 100, "strong": 0}, "no run has a value of diversity"),
    ],
)
def test_a_contrast_that_loses_blocks_is_withheld(few: dict[str, int], why: str) -> None:
    """The first blocks of strong bias, and the last ones of none, have too few measured agents."""
    rows = []
    for level, block in product(few, range(100)):
        withheld = block < few[level] if level == "strong" else block >= 100 - few[level]
        value = math.nan if withheld else 0.5 + (level == "strong") + 0.001 * (block % 7)
        rows.append({"topic": "t", "block": str(block), "confirmation_bias": level, "diversity": value})
    runs, metrics = measured_runs(rows)
    metrics = metrics.assign(withheld=metrics["diversity"].isna())
    (made,) = contrast_tables(runs, metrics, AnalysisSpec(contrasts={"D rises": RISES}))
    assert (made.rows[0][2] == "\N{EN DASH}") == bool(why)
    assert why in " ".join(made.notes)
    kept = 100 - sum(few.values())
    assert why or made.frame["left_out"].iloc[0] == 100 - kept


def test_conditions_carried_out_on_other_days_or_answered_by_other_models_are_named() -> None:
    runs, metrics = _frames()
    strong = runs["confirmation_bias"] == "strong"
    runs["begun_at"] = 1.7e9 + 86_400 * strong
    calls = pd.DataFrame({"run_id": runs["run_id"], "model": strong.map({True: "m-0613", False: "m-0301"})})

    answered = SimpleNamespace(answered={"m": ["m-0301", "m-0613"]}, calls=calls)
    by_framing = ContrastSpec(of="truth - falsehood")
    analysis = AnalysisSpec(contrasts={"D rises": RISES, "truth": by_framing})
    (made,) = contrast_tables(runs, metrics, analysis, results=answered)  # type: ignore[arg-type]
    (note,) = (each for each in made.notes if "its conditions also differ in" in each)
    days, models = "(2023-11-15 against 2023-11-14)", "(m-0613 against m-0301)"
    told = f"the days on which their runs were begun {days} and the models that answered {models}"
    assert note.startswith(f"D rises: its conditions also differ in {told},")
    (made,) = contrast_tables(runs.assign(evidence="scripted"), metrics.assign(evidence="scripted"), analysis)
    assert not any("its conditions also differ in" in each for each in made.notes)


def test_a_fork_is_compared_with_its_source_and_a_control_beside_it(tmp_path: Path) -> None:
    """Cells of several grids lack one another's axes; of a field that is swept as a whole, labels are levels."""
    dyadic, cell = {"kind": "dyadic", "steps": 6}, "interaction=dyadic"
    event = {"label": "news", "value": [{"kind": "message", "step": 4, "text": "Theory XYZ is false."}]}
    contrasts: dict[str, Any] = {
        "news less source": {"of": "news - interaction=dyadic"},
        "news less not set": {"of": "news - events=not set & interaction=dyadic"},
        "long less source": {"of": "long - dyadic"},
    }
    spec = {
        **{"name": "forks", "replicates": 3, "population": {"size": 4}, "interaction": dyadic},
        **{"topic": {"name": "t-rex"}, "measurement": {"classifier": "lexicon"}},
        "sweep": [
            {"interaction": [dyadic, {"label": "long", "value": {"kind": "dyadic", "steps": 9}}]},
            {"fork": [{"cell": cell, "step": 4}], "events": [event]},
            {"fork": [{"cell": cell, "step": 4}], "cognition.confirmation_bias": ["strong"]},
        ],
        "analysis": {"contrasts": contrasts},
    }
    results = osim.run(load_experiment(spec), str(tmp_path / "forks.sqlite"))
    means = results.metrics.merge(
        results.runs[["run_id", "cell", "sweep.interaction", "events"]], on=["run_id", "cell"]
    )
    means = means[means["kind"] == "report"]
    by_label = means.groupby("sweep.interaction")["bias"].mean()
    of_news = means.loc[means["events"] == "news", "bias"].mean()
    (made,) = contrast_tables(results.runs, results.metrics, AnalysisSpec(**spec["analysis"]))
    found = made.frame.set_index("contrast")["difference"]
    assert found["news less source"] == pytest.approx(of_news - by_label["dyadic"])
    assert found["news less not set"] == found["news less source"]
    assert found["long less source"] == pytest.approx(by_label["long"] - by_label["dyadic"])


def test_an_interval_of_a_contrast_ends_where_its_conditions_do() -> None:
    """Diversity from 0 to 2: strong less none is at most 2, though t reaches to 4.2."""
    rows = [
        {"bias": level, "topic": "t", "block": str(block), "evidence": "model", "diversity": value}
        for level, values in (("none", [0.0, 0.0, 0.0]), ("strong", [0.0, 2.0, 2.0]))
        for block, value in enumerate(values)
    ]
    units = pd.DataFrame(rows)
    contrast = ContrastSpec(measure="diversity", of=({"bias": "strong"}, {"bias": "none"}))
    free = effect(units, ["bias"], contrast).estimate
    units.attrs["limits"] = {"diversity": (0.0, 2.0)}
    found = effect(units, ["bias"], contrast).estimate
    assert free.high == pytest.approx(4.2, abs=0.01)
    assert (found.mean, found.low, found.high, found.p_value) == (free.mean, free.low, 2.0, free.p_value)
