"""Forecasts beside finished runs of the scripted model."""

from __future__ import annotations

from typing import Any

import pytest

import opinionsim as osim
from opinionsim.specification import load_experiment
from tests.support.examples import few
from tests.support.judge import Bench, judge_model
from tests.support.running import SMALL, changed, ended

_JUDGE = {"name": "chat", "options": {"model": "maker:judge", "max_tokens": 10}}
_ASKED = {"probe": {"before": 1, "after": 2}, "self_report": {"before": 1, "after": 1}}
_SHARES = [{"name": "scripted", "share": 1, "options": {"pull": 2}}, {"name": "scripted", "share": 2}]
_BY = {"by": "gender", "models": {"male": {"name": "scripted", "options": {"pull": 2}}}, "otherwise": {}}


def _instrument(variable: str, **fields: Any) -> dict[str, Any]:
    return {"variable": variable, "classifier": _JUDGE, "texts": ["report", "post"], **fields}


STATIC: dict[str, dict[str, Any]] = {
    "dyadic": {"interaction": {"kind": "dyadic", "steps": 12}},
    "ring, probes, self-reports": {
        "interaction": {"kind": "dyadic", "steps": 8, "network": "ring"},
        "measurement": _ASKED,
    },
    "reflective": {"cognition": {"memory": "reflective"}, "measurement": _ASKED},
    "reflective as run": {"cognition": {"memory": "reflective-as-run"}},
    "no memory": {"cognition": {"memory": "none"}},
    "token budget": {"cognition": {"token_budget": 150}, "interaction": {"kind": "dyadic", "steps": 16}},
    "reflective, token budget": {"cognition": {"memory": "reflective", "token_budget": 40}},
    "strong bias, unmasked": {
        "topic": {"name": "t-rex", "masked": False},
        "cognition": {"confirmation_bias": "strong", "world": "open"},
    },
    "broadcast": {"interaction": {"kind": "broadcast", "steps": 3}},
    "broadcast on a network": {
        "population": {"size": 8},
        "interaction": {"kind": "broadcast", "steps": 5, "network": {"kind": "erdos-renyi", "p": 0.4}},
        "replicates": 4,
    },
    "external": {"interaction": {"kind": "external", "steps": 8, "messages": ["One.", "Two, three, four."]}},
    "independent": {"interaction": {"kind": "independent", "reports": 3}, "measurement": _ASKED},
    "no role-play": {"interaction": {"kind": "no-role-play", "reports": 4}},
    "remembered": {"interaction": {"kind": "remembered", "exposures": 2}},
    "models in shares": {"population": {"size": 6}, "model": _SHARES, "replicates": 3},
    "models by attribute": {"model": _BY},
    "judge": {"measurement": {"classifier": _JUDGE, **_ASKED}},
    "judge with context": {"measurement": {"instruments": [_instrument("stance", context=True)]}},
    "judge of pairs": {"measurement": {"instruments": [_instrument("agreement", about="reads")]}},
    "sweep": {
        "replicates": 2,
        "sweep": {
            "topic.name": ["flat-earth", "t-rex", "talking-to-the-dead"],
            "cognition.confirmation_bias": ["none", "weak"],
            "measurement.classifier": ["lexicon", _JUDGE],
        },
    },
    "feed": {"interaction": {"kind": "feed", "steps": 8, "posts": 2}},
    "judged similarity": {
        "interaction": {"kind": "similarity", "steps": 8},
        "measurement": {"classifier": _JUDGE, "texts": ["report"]},
    },
}
ADAPTIVE: dict[str, dict[str, Any]] = {
    "bounded confidence": {"interaction": {"kind": "bounded-confidence", "steps": 12, "confidence": 1.0}},
    "rewiring": {"interaction": {"kind": "rewiring", "steps": 12, "tolerance": 1.0, "network": "ring"}},
}


@pytest.fixture(autouse=True)
def _bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge by the name of ``maker:judge``, to which neither key nor network leads."""
    monkeypatch.setattr("opinionsim.classifiers._chat._loaded", lambda *arguments: judge_model(Bench()))


@pytest.mark.parametrize("name", few([*STATIC, *ADAPTIVE], 10))
def test_a_forecast_is_what_runs_of_the_scripted_model_take(name: str) -> None:
    spec = changed(SMALL, **{**STATIC, **ADAPTIVE}[name])
    experiment = load_experiment(spec)
    summary = ended(experiment, "taken.sqlite")
    assert summary.complete == summary.total
    # Replies are as long, and words have as many tokens, as the runs show.
    forecast, taken = osim.plan(experiment, store="taken.sqlite"), summary.paid
    assert osim.plan(experiment).calls == forecast.calls
    if name in ADAPTIVE:
        assert 0 < taken.calls <= forecast.calls
        assert taken.input_tokens <= 1.05 * forecast.input_tokens
    else:
        assert forecast.calls == taken.calls
        assert forecast.input_tokens == pytest.approx(taken.input_tokens, rel=0.05)
        assert forecast.output_tokens == pytest.approx(taken.output_tokens, rel=0.05)
    assert forecast.missing.calls == 0
