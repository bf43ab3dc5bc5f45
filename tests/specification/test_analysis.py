"""What a specification says of its analysis: contrasts of conditions it has, and no word of it in a run's identity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.specification import analysis_of, design_id, load_experiment, manifest

SPEC: dict[str, Any] = {
    "name": "small",
    "topic": {"name": "t-rex"},
    "interaction": {"kind": "dyadic", "steps": 4},
    "measurement": {"metrics": ["polarization"]},
    "sweep": {
        "topic.framing": ["falsehood", "truth"],
        "cognition.confirmation_bias": ["none", "strong"],
        "population.size": [4, 6],
    },
}
BIAS = "cognition.confirmation_bias"
STRONG, NONE = {"cognition.confirmation_bias": "strong"}, {"cognition.confirmation_bias": "none"}


def _loaded(**contrast: Any) -> Any:
    return load_experiment({**SPEC, "analysis": {"primary": "x", "contrasts": {"x": contrast}}})


def test_the_analysis_enters_no_identity() -> None:
    plain, declared = load_experiment(SPEC), _loaded(of=[STRONG, NONE])
    assert [run.run_id for run in declared.runs] == [run.run_id for run in plain.runs]
    assert design_id(declared) == design_id(plain)
    stored = declared.spec.model_dump(mode="json")
    assert analysis_of(stored) == declared.spec.analysis
    assert analysis_of({}) == plain.spec.analysis


def test_conditions_that_differ_in_more_than_is_named_are_refused_before_the_runs() -> None:
    grids = [
        {"cognition.confirmation_bias": ["none", "strong"], "population.size": [4]},
        {**STRONG, "population.size": [6]},
    ]
    lists = [{path: value if isinstance(value, list) else [value] for path, value in grid.items()} for grid in grids]
    analysis = {"contrasts": {"x": {"of": [STRONG, NONE]}}}
    with pytest.raises(SpecError, match=r"differ in population\.size; use the same levels"):
        load_experiment({**SPEC, "sweep": lists, "analysis": analysis})
    analysis["contrasts"]["x"] = {"of": [{**side, "population.size": 4} for side in (STRONG, NONE)]}
    assert load_experiment({**SPEC, "sweep": lists, "analysis": analysis}).spec.analysis.contrasts


def test_terms_of_contrasts() -> None:
    several = _loaded(measure="polarization", of=[STRONG, {"population.size": [4, 6], **NONE}]).spec.analysis
    assert several.contrasts["x"].terms == (
        (1.0, {"cognition.confirmation_bias": ("strong",)}),
        (-1.0, {"population.size": (4, 6), "cognition.confirmation_bias": ("none",)}),
    )
    pull = _loaded(measure="truth-pull", of=[STRONG, NONE]).spec.analysis.contrasts["x"]
    assert pull.quantity == "bias"
    assert [(weight, side["topic.framing"]) for weight, side in pull.terms] == [
        (0.5, ("truth",)),
        (-0.5, ("falsehood",)),
        (-0.5, ("truth",)),
        (0.5, ("falsehood",)),
    ]


@pytest.mark.parametrize(
    "contrast",
    [
        {"of": ["strong & truth - none & truth", "strong & falsehood - none & falsehood"]},
        {"of": [[f"{BIAS}={bias} & topic.framing = {side}" for bias in ("strong", "none")]
                for side in ("truth", "falsehood")]},
        {"of": [[{BIAS: bias, "topic.framing": side} for bias in ("strong", "none")]
                for side in ("truth", "falsehood")]},
        {"interaction": [BIAS, "topic.framing"]},
    ],
)  # fmt: skip
def test_a_difference_of_differences_is_the_same_in_every_notation(contrast: dict[str, Any]) -> None:
    """Weights are +1, -1, -1 and +1; the record has the axes, so that later levels cannot make them ambiguous."""
    experiment = _loaded(**contrast)
    found = experiment.spec.analysis.contrasts["x"]
    cells = [(side, bias) for side in ("truth", "falsehood") for bias in ("strong", "none")]
    assert found.terms == tuple(
        (weight, {BIAS: (bias,), "topic.framing": (side,)})
        for weight, (side, bias) in zip((1, -1, -1, 1), cells, strict=True)
    )
    said = [f"{BIAS} = {bias} and topic.framing = {side}" for side, bias in cells]
    assert found.words == f"({said[0]} less {said[1]}) less ({said[2]} less {said[3]})"
    stored = json.loads(json.dumps(manifest(experiment)["spec"]))
    assert analysis_of(stored).contrasts["x"] == found
    assert load_experiment({**stored, "topic": SPEC["topic"]}).spec.analysis.contrasts["x"] == found


def test_levels_that_are_no_text_are_named_as_yaml_writes_them() -> None:
    sweep = {"topic.masked": [True, False], "population.size": [4, 6]}
    spec = {**SPEC, "topic": {"name": "t-rex", "framing": "truth"}, "sweep": sweep}
    contrasts = {"x": {"of": "topic.masked=true - false"}, "y": {"of": [6, 4]}}
    found = load_experiment({**spec, "analysis": {"contrasts": contrasts}}).spec.analysis.contrasts
    assert found["x"].words == "topic.masked = True less topic.masked = False"
    assert found["y"].words == "population.size = 6 less population.size = 4"


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        ({"measure": "diversty", "of": "strong - none"}, r"mean diversity\?\) is not measured; valid: bias,"),
        ({"of": {"cognition.confirmation_bias": "weak"}}, "confirmation_bias is never 'weak'; valid: none, strong"),
        ({"of": [STRONG, {"cognition.memory": "none"}]}, "cognition.memory.* is not a condition that varies"),
        ({"of": {"topic.name": "t-rex"}}, "'topic.name'.* is not a condition that varies"),
        ({"measure": "diversity", "of": STRONG}, "of must subtract a condition"),
        ({"of": "strong - strong"}, "or two that differ"),
        ({"measure": "truth-pull", "of": {"topic.framing": "truth"}}, "cannot be used with truth-pull"),
        ({"of": STRONG, "smallest": 0}, "smallest"),
        ({"off": STRONG}, "off"),
        ({"of": "weak - none"}, "'weak' is not a level of a condition that varies; valid: .*bias: none, strong"),
        ({"of": "strong - strong - none"}, "'strong - strong - none' is not a level of a condition"),
        ({"of": "strong & none - truth"}, "'strong & none' has two levels of cognition.confirmation_bias"),
        ({"of": ["strong", "none", "none"]}, "or two that differ, the second of which"),
        ({"of": ["strong - none", "truth"]}, "of cannot mix conditions and differences"),
        ({"of": ["strong", STRONG]}, "or two that differ"),
        ({"of": "truth - falsehood", "measure": "truth-pull"}, "cannot be used with truth-pull"),
        ({"interaction": [BIAS, "topic.framing"], "measure": "truth-pull"}, "cannot be used with truth-pull"),
        ({"interaction": [BIAS, "topic.framing"], "of": "strong - none"}, "of and interaction both say"),
        ({"interaction": [BIAS]}, "at least 2 entries"),
        ({"interaction": [BIAS, BIAS]}, "given twice"),
        ({"interaction": [BIAS, "topic.framming"]}, r"did you mean topic\.framing\?.* is not a condition that varies"),
        ({"interaction": [BIAS, "cognition.memory"]}, "'cognition.memory'.* is not a condition that varies"),
    ],
)  # fmt: skip
def test_a_contrast_of_what_there_is_not_is_refused(contrast: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=rf"^specification: analysis\.contrasts\.x.*{message}") as raised:
        _loaded(**contrast)
    assert str(raised.value).count("\n") == 0


def test_an_interaction_is_refused_where_its_four_conditions_are_not_told_or_not_there() -> None:
    interaction = {"analysis": {"contrasts": {"x": {"interaction": [BIAS, "cognition.memory"]}}}}
    several = {BIAS: ["none", "weak", "strong"], "cognition.memory": ["none", "cumulative"]}
    with pytest.raises(SpecError, match=rf"{BIAS} has 3 levels \(none, weak, strong\).* as in of: (.*)") as raised:
        load_experiment({**SPEC, "sweep": several, **interaction})
    of = json.loads(str(raised.value).partition("as in of: ")[2])
    # Advice that is followed works.
    assert load_experiment({**SPEC, "sweep": several, "analysis": {"contrasts": {"x": {"of": of}}}})
    with pytest.raises(SpecError, match=f"'none' is a level of {BIAS} and cognition.memory; write {BIAS}=none"):
        load_experiment({**SPEC, "sweep": several, "analysis": {"contrasts": {"x": {"of": "strong - none"}}}})
    grids = [
        {BIAS: ["none", "strong"], "cognition.memory": ["none"]},
        {**{BIAS: ["none"]}, "cognition.memory": ["cumulative"]},
    ]
    with pytest.raises(SpecError, match=f"no cell has {BIAS} = strong and cognition.memory = cumulative"):
        load_experiment({**SPEC, "sweep": grids, **interaction})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"independent_over": ["cognition.confirmation_bias"]}, "share no block"),
        ({"analysis": {"primary": "y", "contrasts": {"x": {"of": STRONG}}}}, "got 'y'; valid: x"),
        ({"analysis": {"smallest": 0.2}}, "no effect without contrasts"),
        ({"analysis": {"choices": {}}}, "choices"),
        ({"sweep": {"topic.name": ["t-rex"]}}, "no condition is swept"),
    ],
)
def test_an_analysis_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    analysis = {"primary": "x", "contrasts": {"x": {"of": [STRONG, NONE]}}}
    with pytest.raises(SpecError, match=message):
        load_experiment({**SPEC, "analysis": analysis, **changes})
