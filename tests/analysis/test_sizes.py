"""Sizes of studies by the variance of a pilot."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from opinionsim.analysis import differences, study_sizes, unit_frame
from opinionsim.errors import SpecError
from opinionsim.specification import AnalysisSpec, ContrastSpec
from tests.support.units import measured_runs

RISES = ContrastSpec(measure="diversity", of="strong - none")
ANALYSIS = AnalysisSpec(contrasts={"D rises": RISES})


def _pilot(topics: str, blocks: int, *, nested: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(3)
    places = product(topics, range(blocks))
    of_topics = {topic: rng.normal() for topic in topics}
    values = {(topic, block): 0.5 + 0.3 * (of_topics[topic] + rng.normal()) for topic, block in places}
    return measured_runs(
        {"topic": topic, "block": f"{topic} {block}" if nested else str(block), "replicate": block}
        | {"confirmation_bias": level, "diversity": 1 + (value if level == "strong" else 0)}
        for (topic, block), value in values.items()
        for level in ("none", "strong")
    )


def test_replicates_of_one_topic_follow_the_t_interval() -> None:
    runs, metrics = _pilot("a", 6, nested=False)
    name, own, sizes = study_sizes(runs, metrics, ANALYSIS, 0.1, (1, 6))
    assert (name, own.units) == ("D rises", "6 blocks")
    pilot = sizes[sizes["variance"] == "pilot"].set_index("size")
    n = int(pilot.loc["more replicates", "replicates"])

    def half(n: int) -> float:
        return float(stats.t.ppf(0.975, n - 1)) * own.sd / math.sqrt(n)

    assert half(n) <= 0.1 < half(n - 1)
    assert pilot.loc["more replicates", "half_width"] == pytest.approx(half(n))
    assert pilot.loc["as specified", "half_width"] == pytest.approx(own.high - own.mean)
    assert pilot.loc["more replicates", "share"] == n / 6
    assert "more topics" not in pilot.index


def test_the_detectable_effect_has_a_power_of_80_percent() -> None:
    _, own, sizes = study_sizes(*_pilot("a", 6, nested=False), ANALYSIS, 0.1, (1, 6))
    n, effect = (sizes.loc[1, name] for name in ("replicates", "detectable"))
    critical, ncp = stats.t.ppf(0.975, n - 1), effect / own.sd * math.sqrt(n)
    assert stats.nct.sf(critical, n - 1, ncp) == pytest.approx(0.8, abs=1e-4)


def test_differences_of_differences_have_the_half_width_and_the_power_that_were_planned() -> None:
    """2,000 studies of the size that a pilot of 500 blocks asks for, with values that vary as the pilot's do."""
    rng, cells = np.random.default_rng(5), list(product(("none", "strong"), ("reflective", "cumulative")))

    def drawn(blocks: int) -> np.ndarray:
        # A block has an effect of its own on all its runs, and one on the difference of bias.
        shared = rng.normal(0, 0.5, (blocks, 1)) + rng.normal(0, 0.3, (blocks, 1)) * np.array([0, 0, 1, 1])
        return shared + rng.normal(0, 0.2, (blocks, 4))

    pilot = measured_runs(
        {"topic": "a", "block": str(block), "confirmation_bias": bias, "memory": memory, "bias": value}
        for block, values in enumerate(drawn(500))
        for (bias, memory), value in zip(cells, values, strict=True)
    )
    analysis = AnalysisSpec(contrasts={"x": ContrastSpec(interaction=("memory", "confirmation_bias"))})
    _, own, sizes = study_sizes(*pilot, analysis, 0.25, (1, 500))
    n, half, effect = sizes.set_index("size").loc["more replicates", ["replicates", "half_width", "detectable"]].iloc[0]
    assert own.sd == pytest.approx(0.2 * math.sqrt(4), rel=0.1)
    studies = drawn(2000 * int(n)).reshape(2000, int(n), 4) @ np.array([1, -1, -1, 1]) + effect
    halves = stats.sem(studies, axis=1) * float(stats.t.ppf(0.975, n - 1))
    assert halves.mean() == pytest.approx(half, rel=0.1)
    assert (np.abs(studies.mean(axis=1)) > halves).mean() == pytest.approx(0.8, abs=0.08)


def test_the_upper_bound_exceeds_the_true_deviation_with_80_percent_confidence() -> None:
    _, own, sizes = study_sizes(*_pilot("a", 6, nested=False), ANALYSIS, 0.1, (1, 6))
    bound = sizes.loc[sizes["variance"] == "upper bound", "sd"].iloc[0]
    assert bound == pytest.approx(own.sd * math.sqrt(5 / stats.chi2.ppf(0.2, 5)))
    more = sizes.set_index(["variance", "size"])["replicates"]
    assert more["upper bound", "more replicates"] > more["pilot", "more replicates"]


@pytest.mark.parametrize("nested", [True, False])
def test_topics_that_are_a_sample_can_be_added_to(nested: bool) -> None:
    pilot = _pilot("abcde", 4, nested=nested)
    _, own, sizes = study_sizes(*pilot, ANALYSIS, 1.0, (5, 4))
    wanted = 0.9 * sizes["half_width"].iloc[0]
    _, own, sizes = study_sizes(*pilot, ANALYSIS, wanted, (5, 4))
    found = sizes[sizes["variance"] == "pilot"].set_index("size")
    if nested:
        # As the study is specified the interval to be expected is the pilot's own.
        assert found.loc["as specified", "half_width"] == pytest.approx(own.high - own.mean)
    assert found.loc["more topics", "topics"] > 5
    assert (found["half_width"].iloc[1:].dropna() <= wanted).all()


def test_what_no_number_attains_is_missing() -> None:
    """Topics differ, blocks do not: more replicates leave the interval as long as it is."""
    levels = {topic: 0.2 * number for number, topic in enumerate("abcd")}
    runs, metrics = measured_runs(
        {"topic": topic, "block": f"{topic} {block}", "replicate": block, "confirmation_bias": level}
        | {"diversity": 1 + (levels[topic] if level == "strong" else 0)}
        for topic, block, level in product("abcd", range(3), ("none", "strong"))
    )
    _, _, sizes = study_sizes(runs, metrics, ANALYSIS, 0.1, (4, 3))
    assert sizes.set_index(["variance", "size"])["replicates"].isna()["pilot", "more replicates"]


def test_a_half_width_is_of_a_contrast_and_of_a_pilot_with_enough_units() -> None:
    runs, metrics = _pilot("a", 2, nested=False)
    with pytest.raises(
        SpecError, match=r"the pilot has no interval of 'D rises': too few independent units \(2 blocks\)"
    ):
        study_sizes(runs, metrics, ANALYSIS, 0.1, (1, 2))
    with pytest.raises(SpecError, match=r"declare it as analysis\.primary"):
        study_sizes(runs, metrics, AnalysisSpec(), 0.1, (1, 2))
    with pytest.raises(SpecError, match="positive"):
        study_sizes(runs, metrics, ANALYSIS, 0.0, (1, 2))


def test_sizes_are_of_the_design_of_the_study_whatever_that_of_the_pilot() -> None:
    pilot = _pilot("abcde", 6, nested=False)
    _, own, crossed = study_sizes(*pilot, ANALYSIS, 0.2, (5, 6))
    assert own.spread is not None
    assert own.spread.components is not None
    _, _, nested = study_sizes(*pilot, ANALYSIS, 0.2, (5, 6), design="nested")
    topics, blocks, rest = own.spread.components
    error = math.sqrt((topics + (blocks + rest) / 6) / 5)
    assert nested["half_width"].iloc[0] == pytest.approx(float(stats.t.ppf(0.975, 4)) * error)
    assert nested["half_width"].iloc[0] != pytest.approx(crossed["half_width"].iloc[0])
    these = ANALYSIS.model_copy(update={"estimand": "these-topics"})
    _, _, nested = study_sizes(*pilot, these, 0.2, (5, 6), design="nested")
    wide = differences(unit_frame(*pilot), ["confirmation_bias"], RISES).pivot(index="topic", columns="block")["value"]
    within = wide.var(axis=1, ddof=1)
    error, df = math.sqrt(float(within.mean()) / 30), 5 * within.sum() ** 2 / (within**2).sum()
    assert nested["half_width"].iloc[0] == pytest.approx(float(stats.t.ppf(0.975, df)) * error)
    with pytest.raises(SpecError, match=r"list topic\.name in independent_over"):
        study_sizes(*_pilot("abcde", 6, nested=True), ANALYSIS, 0.2, (5, 6), design="crossed")


def test_sizes_are_about_what_the_study_is_about() -> None:
    """A pilot of two topics does not tell how the topics of a study differ; one of three may be about its own alone."""
    with pytest.raises(SpecError, match=r"no interval of 'D rises': too few independent units \(2 topics, 6 blocks\)"):
        study_sizes(*_pilot("ab", 6, nested=False), ANALYSIS, 0.2, (5, 6))
    _, own, _ = study_sizes(*_pilot("abc", 6, nested=False), ANALYSIS, 0.2, (1, 6))
    assert own.estimand == "these-topics"
