"""Variants of a specification, and what is refused before money is spent."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.specification import load_experiment, manifest
from tests.analysis.test_robustness import SPEC


def variant(change: dict[str, Any], label: str = "v") -> dict[str, Any]:
    return {"label": label, "change": change}


def load(*variants: dict[str, Any], **values: Any) -> Any:
    return load_experiment({**SPEC, "robustness": list(variants), **values})


def test_a_variant_has_other_runs_in_the_same_conditions_and_blocks() -> None:
    experiment = load(variant({"cognition.memory": "reflective"}), variant({"interaction.network": "ring"}, "w"))
    assert [each.changed_level for each in experiment.spec.robustness] == ["agent", "system"]
    for other in experiment.variants.values():
        assert {run.run_id for run in other.runs}.isdisjoint(run.run_id for run in experiment.runs)
        assert [(run.block, run.cell.label) for run in other.runs] == [
            (run.block, run.cell.label) for run in experiment.runs
        ]
        assert other.spec.name == experiment.spec.name


def test_variants_change_no_run_of_the_specification_itself() -> None:
    plain = load_experiment({**SPEC, "robustness": []})
    experiment = load(variant({"prompts.variant": "second"}))
    assert [run.run_id for run in experiment.runs] == [run.run_id for run in plain.runs]
    again = load_experiment(manifest(experiment))
    assert [run.run_id for run in again.variants["v"].runs] == [run.run_id for run in experiment.variants["v"].runs]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cognition.memory": "cumulative"}, "variant 'v' changes nothing: its runs are those of the specification"),
        ({"replicates": 3}, "variant 'v' changes replicates, part of the design"),
        ({"measurement.classifier": "lexicon"}, "variant 'v' changes measurement.classifier, part of the design"),
        ({"cognition.confirmation_bias": "weak"}, "is set by the sweep axis"),
        ({"model.temprature": 1}, "variant 'v': model.temprature: unknown field"),
        ({"prompts.variant": "sixth"}, "variant 'v'.*no wording 'sixth'"),
        ({}, "robustness.0..change: must have at least 1 entry"),
    ],
)
def test_what_is_no_variant_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem) as refused:
        load(variant(change))
    assert len(str(refused.value).split("\n")) == 1


def test_two_variants_that_are_one_are_refused() -> None:
    with pytest.raises(SpecError, match="'w' changes nothing: its runs are those of variant 'v'"):
        load(variant({"model.temperature": 1}), variant({"model.temperature": 1.0}, "w"))
    with pytest.raises(SpecError, match="labels two variants"):
        load(variant({"model.temperature": 1}), variant({"model.temperature": 0.9}))


def test_conditions_that_have_draws_of_their_own_make_no_variant() -> None:
    with pytest.raises(SpecError, match="changes the design"):
        load(variant({"model.temperature": 1}), independent_over=["topic.name", "model.temperature"])


def test_variants_and_choices_need_a_contrast_and_what_is_measured() -> None:
    with pytest.raises(SpecError, match=r"set analysis\.primary"):
        load(variant({"model.temperature": 1}), analysis={})
    with pytest.raises(SpecError, match="choices apply to the primary contrast"):
        load(analysis={"choices": {"last": [1, 2]}})
    with pytest.raises(SpecError, match=r"choices\.texts: 'prob' is not measured"):
        load(analysis={**SPEC["analysis"], "choices": {"texts": ["prob"]}})
