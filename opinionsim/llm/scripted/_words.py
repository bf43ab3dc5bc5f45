"""The parameters and sentences of the scripted model, independent of LangChain."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from statistics import NormalDist
from struct import Struct
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar, get_args

from opinionsim.errors import SpecError
from opinionsim.llm import phrases
from opinionsim.opinions import OpinionScale

_T = TypeVar("_T")

_CHOICE = re.compile(re.escape(phrases.pick_one(0)).replace("0", r"(\d+)"))


#: Layout of a hash as four numbers, and the standard normal distribution.
_FOUR_WORDS, _STANDARD = Struct("<4Q"), NormalDist()


def _uniforms(key: str) -> Iterator[float]:
    """Numbers uniform in the open interval (0, 1), without end."""
    for block in count():
        for word in _FOUR_WORDS.unpack(hashlib.sha256(f"{key}:{block}".encode()).digest()):
            yield ((word >> 12) + 0.5) / 2**52


class Draws:
    """Random numbers that depend only on a key, in any process."""

    __slots__ = ("uniform",)

    uniform: Callable[[], float]
    """Uniform in the open interval (0, 1)."""

    def __init__(self, key: str) -> None:
        self.uniform = _uniforms(key).__next__

    def normal(self) -> float:
        """Standard normal."""
        return _STANDARD.inv_cdf(self.uniform())

    def pick(self, options: Sequence[_T]) -> _T:
        """One of the options, all equally likely."""
        return options[int(self.uniform() * len(options))]


class Understood(Protocol):
    """The parts of a prompt that a reply uses."""

    @property
    def act(self) -> str:
        """Name of the template that states the task."""

    @property
    def name(self) -> str:
        """The agent's name; empty if the prompt gives none."""

    @property
    def received(self) -> Sequence[int | None]:
        """Levels of the posts now shown."""

    @property
    def masked(self) -> bool:
        """Whether the prompt calls the claim by its masked name."""


def say(prompt: Understood, level: int, draws: Draws) -> str:
    """The reply to a prompt that expresses a level."""
    subject = phrases.MASKED if prompt.masked else phrases.PLAIN
    again = draws.pick((subject, phrases.MASKED_AGAIN)) if prompt.masked else subject
    write = _WRITERS.get(prompt.act, _report)
    return " ".join([phrases.capitalised(sentence) for sentence in write(prompt, level, subject, again, draws)])


def _post(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """A stance, mostly with a sentence before or after it."""
    stance = draws.pick(phrases.POSTS[level]).replace("{x}", subject)
    opener = draws.pick(phrases.OPENERS).replace("{x}", subject)
    closer = draws.pick(phrases.CLOSERS)
    return draws.pick(([stance], [opener, stance], [stance, closer], [opener, stance, closer]))


def _report(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """Steps of reasoning in the first person, then the stance."""
    me = f"I, {prompt.name}," if prompt.name else "I"
    posts = "post" if len(prompt.received) == 1 else "posts"
    return [
        draws.pick(phrases.LEADS).replace("{x}", subject).replace("{me}", me),
        draws.pick(phrases.FIRST),
        draws.pick(phrases.READ if prompt.received else phrases.ALONE).replace("{posts}", posts),
        draws.pick(phrases.CONCLUSIONS),
        draws.pick(phrases.REPORTS[level]).replace("{x}", again),
    ]


def _probe(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """The stance alone."""
    return [draws.pick(phrases.REPORTS[level]).replace("{x}", subject)]


def _reflection(prompt: Understood, level: int, subject: str, again: str, draws: Draws) -> list[str]:
    """A few sentences on the experience that end in the stance."""
    return [
        draws.pick(phrases.REMEMBERED).replace("{x}", subject),
        draws.pick(phrases.REFLECTIONS),
        draws.pick(phrases.REPORTS[level]).replace("{x}", again),
    ]


_Writer = Callable[[Understood, int, str, str, Draws], list[str]]
_WRITERS: Mapping[str, _Writer] = MappingProxyType(
    {"write": _post, "probe": _probe, "reflect_first": _reflection, "reflect": _reflection}
)


def choice(task: str) -> int:
    """The number of texts that a task asks to choose from; 0 if it asks for no choice."""
    found = _CHOICE.search(task)
    return int(found[1]) if found else 0


#: Positions at which the model refuses, and what it refuses.
_Side = Literal["both", "negative", "positive"]
_Refused = Literal["all", "posts"]


@dataclass(frozen=True, slots=True)
class ScriptedParameters:
    """Parameters of the scripted model.

    Parameters
    ----------
    susceptibility : float
        Share of the distance to a received post by which the position moves, in [0, 1]. Default 0.4.
    noise : float
        Standard deviation of the drawn opinion around the position at temperature 1, in scale units, >= 0. The
        temperature multiplies it. Default 0.1. Agents remember what they say, so noise accumulates.
    pull : float or None
        Point of the scale to which the position drifts, regardless of the posts read; None (default) for no drift. It
        never depends on the topic.
    pull_strength : float
        Share of the distance to `pull` by which each report moves the position, in [0, 1]. Default 0.3; no effect if
        `pull` is None.
    weak_bias : float
        Under weak confirmation bias, the weight of a post from the other side of neutral, in [0, 1].
        Default 0.4.
    strong_bias : float
        The same under strong confirmation bias. Default 0, which ignores such posts.
    refusal_rate : float
        Probability that a reply is a refusal, in [0, 1]. Default 0.
    refusal_side : {"both", "negative", "positive"}
        Side of neutral on which the position must be for a refusal. Default both.
    refusal_of : {"all", "posts"}
        Whether it can refuse any reply, or only posts. Default all.

    Raises
    ------
    SpecError
        If a value is not a number or out of range.
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
        The scale of the replies.
    preset, temperature, parameters
        As for :class:`ScriptedChatModel`.
    others : collection of str
        Valid options that are not parameters.
    **options : Any
        Single parameters; they override those of the preset.

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
