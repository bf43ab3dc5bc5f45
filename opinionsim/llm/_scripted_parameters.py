"""The parameters of the scripted model, which can be checked without the model."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from opinionsim.errors import SpecError
from opinionsim.opinions import OpinionScale

#: Positions at which the model refuses, and what it refuses.
_Side = Literal["both", "negative", "positive"]
_Refused = Literal["all", "posts"]


@dataclass(frozen=True, slots=True)
class ScriptedParameters:
    """What the scripted model does with what it reads.

    Parameters
    ----------
    susceptibility : float
        Share of the distance to a received post that the position moves, in [0, 1]. Default 0.4.
    noise : float
        Standard deviation of the drawn opinion around the position at temperature 1, in scale units, >= 0;
        it is multiplied by the temperature. Default 0.1. What is said is what is remembered, so noise adds up.
    pull : float or None
        Point of the scale the position drifts to whatever is read; None (default) for no drift. Never
        looked up from the topic.
    pull_strength : float
        Share of the distance to `pull` that is moved with each report, in [0, 1]. Default 0.3; without
        effect while `pull` is None.
    weak_bias : float
        Under weak confirmation bias, the weight of a post from the other side of neutral, in [0, 1].
        Default 0.4.
    strong_bias : float
        The same under strong confirmation bias. Default 0: such posts are dismissed.
    refusal_rate : float
        Probability that a reply is a refusal, in [0, 1]. Default 0.
    refusal_side : {"both", "negative", "positive"}
        Side of neutral on which its position must be for it to refuse. Default both.
    refusal_of : {"all", "posts"}
        Whether it refuses any reply, or only to write posts. Default all.

    Raises
    ------
    SpecError
        If a value is no number or out of its range.
    """

    susceptibility: float = 0.4
    noise: float = 0.1
    pull: float | None = None
    pull_strength: float = 0.3
    weak_bias: float = 0.4
    strong_bias: float = 0.0
    refusal_rate: float = 0.0
    refusal_side: _Side = "both"
    refusal_of: _Refused = "all"

    def __post_init__(self) -> None:
        for name in ("susceptibility", "pull_strength", "weak_bias", "strong_bias", "refusal_rate"):
            _check(name, getattr(self, name), 0.0, 1.0, "a number from 0 to 1")
        for name, choices in (("refusal_side", _Side), ("refusal_of", _Refused)):
            if (value := getattr(self, name)) not in (valid := get_args(choices)):
                raise SpecError(f"scripted model: {name} must be one of {', '.join(valid)}; got {value!r}")
        _check("noise", self.noise, 0.0, math.inf, "a finite number of scale units, 0 or more")
        if self.pull is not None:
            _check("pull", self.pull, -math.inf, math.inf, "a point of the scale, or none")


def _check(name: str, value: object, low: float, high: float, valid: str) -> None:
    """Raise a SpecError unless `value` is a finite number in [low, high]."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (math.isfinite(value) and low <= value <= high):  # type: ignore[arg-type, operator]
        raise SpecError(f"scripted model: {name} must be {valid}; got {value!r}")


#: Named parameter sets. ``influence`` moves towards the posts it reads and drifts nowhere; ``attractor`` barely
#: listens and drifts to a point, here -1, a stated choice that stands for no topic's truth.
PRESETS: Mapping[str, ScriptedParameters] = MappingProxyType(
    {
        "influence": ScriptedParameters(),
        "attractor": ScriptedParameters(susceptibility=0.05, pull=-1.0),
    }
)


def settle(
    scale: OpinionScale,
    *,
    preset: str = "influence",
    temperature: float = 0.7,
    parameters: ScriptedParameters | None = None,
    others: Collection[str] = (),
    **options: Any,
) -> ScriptedParameters:
    """The parameters of a scripted model.

    Parameters
    ----------
    scale : OpinionScale
        The scale it speaks on.
    preset, temperature, parameters
        As of :class:`ScriptedChatModel`.
    others : collection of str
        Valid options that are no parameters.
    **options : Any
        Single parameters; they go before those of the preset.

    Raises
    ------
    SpecError
        If an option is unknown or a value out of its range, or `pull` off the scale.
    """
    if preset not in PRESETS:
        raise SpecError(f"scripted model: preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    _check("temperature", temperature, 0.0, math.inf, "a finite number, 0 or more")
    names = [each.name for each in fields(ScriptedParameters)]
    unknown = sorted(set(options) - set(names) - set(others))
    if unknown:
        valid = ", ".join(["preset", "temperature", *names])
        raise SpecError(f"scripted model: unknown option {unknown[0]!r}; valid options are {valid}")
    chosen = {name: options[name] for name in names if name in options}
    settled = replace(PRESETS[preset] if parameters is None else parameters, **chosen)
    check_pull(settled, scale)
    return settled


def check_pull(parameters: ScriptedParameters, scale: OpinionScale) -> None:
    """Raise a SpecError unless the pull, if any, lies on the scale."""
    if parameters.pull is not None:
        valid = f"a point of the scale, from {scale.lowest} to {scale.highest}, or none"
        _check("pull", parameters.pull, scale.lowest, scale.highest, valid)
