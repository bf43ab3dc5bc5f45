"""What a specification says of its analysis: contrasts of conditions it has, and no word of it in a run's identity."""

from __future__ import annotations

from typing import Any

import pytest

from opinionsim.errors import SpecError
from opinionsim.specification import analysis_of, design_id, load_experiment

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
STRONG, NONE = {"cognition.confirmation_bias": "strong"}, {"cognition.confirmation_bias": "none"}


def _loaded(**contrast: Any) -> Any:
    return load_experiment({**SPEC, "analysis": {"primary": "x", "contrasts": {"x": contrast}}})


def test_the_analysis_enters_no_identity() -> None:
    plain, declared = load_experiment(SPEC), _loaded(of=STRONG, less=NONE)
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
    analysis = {"contrasts": {"x": {"of": STRONG, "less": NONE}}}
    with pytest.raises(SpecError, match=r"differ in population\.size too; give both the same levels"):
        load_experiment({**SPEC, "sweep": lists, "analysis": analysis})
    analysis["contrasts"]["x"] = {side: {**of, "population.size": 4} for side, of in (("of", STRONG), ("less", NONE))}
    assert load_experiment({**SPEC, "sweep": lists, "analysis": analysis}).spec.analysis.contrasts


def test_terms_of_contrasts() -> None:
    several = _loaded(measure="polarization", of=STRONG, less={"population.size": [4, 6], **NONE}).spec.analysis
    assert several.contrasts["x"].terms == (
        (1.0, {"cognition.confirmation_bias": ("strong",)}),
        (-1.0, {"population.size": (4, 6), "cognition.confirmation_bias": ("none",)}),
    )
    pull = _loaded(measure="truth-pull", of=STRONG, less=NONE).spec.analysis.contrasts["x"]
    assert pull.quantity == "bias"
    assert [(weight, side["topic.framing"]) for weight, side in pull.terms] == [
        (0.5, ("truth",)),
        (-0.5, ("falsehood",)),
        (-0.5, ("truth",)),
        (0.5, ("falsehood",)),
    ]


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        ({"measure": "diversty", "of": STRONG, "less": NONE}, r"mean diversity\?\) is not measured; valid: bias,"),
        ({"of": {"cognition.confirmation_bias": "weak"}}, "confirmation_bias is never 'weak'; valid: none, strong"),
        ({"of": STRONG, "less": {"cognition.memory": "none"}}, "cognition.memory.* is no condition that varies"),
        ({"of": {"topic.name": "t-rex"}}, "'topic.name'.* is no condition that varies"),
        ({"measure": "diversity", "of": STRONG}, "less must say what to subtract"),
        ({"of": STRONG, "less": STRONG}, "nothing is left to compare"),
        ({"measure": "truth-pull", "of": {"topic.framing": "truth"}}, "cannot be named for truth-pull"),
        ({"of": STRONG, "smallest": 0}, "smallest"),
        ({"off": STRONG}, "off"),
    ],
)  # fmt: skip
def test_a_contrast_of_what_there_is_not_is_refused(contrast: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message) as raised:
        _loaded(**contrast)
    assert str(raised.value).count("\n") == 0


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
    analysis = {"primary": "x", "contrasts": {"x": {"of": STRONG, "less": NONE}}}
    with pytest.raises(SpecError, match=message):
        load_experiment({**SPEC, "analysis": analysis, **changes})
