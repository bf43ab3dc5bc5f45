"""Which chat models play the agents: one for all, several in shares, or one for each value of an attribute."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from opinionsim.documents import DocumentModel
from opinionsim.errors import SpecError
from opinionsim.personas import Persona

__all__ = [
    "AnyModelSpec",
    "ByAttributeSpec",
    "ClassicModelSpec",
    "ModelSpec",
    "Options",
    "RepliesSpec",
    "SharedModelSpec",
    "agent_label",
    "assign_models",
    "model_label",
    "models_of",
]

_MAX_INT = 2**63 - 1

_SECRET = re.compile(r"(api[-_]?key|secret|password|authorization|(access|auth|bearer)[-_]?token)", re.IGNORECASE)
#: An address with a name and password in it.
_SIGNED_IN = re.compile(r"://[^/\s@]+:[^/\s@]+@")


def _no_secrets(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse credentials: a specification is copied into stores and manifests."""
    for key, value in options.items():
        # The name of an environment variable is no secret.
        if _SECRET.search(key) and not key.lower().endswith("_env"):
            raise ValueError(
                f"{key!r} looks like a credential; those are read from the environment and never from a specification"
            )
        if isinstance(value, str) and _SIGNED_IN.search(value):
            raise ValueError(
                f"{key!r} holds an address with a password in it; credentials are read from the environment and never "
                "from a specification"
            )
        if isinstance(value, dict):
            _no_secrets(value)
    return options


Options = Annotated[dict[str, Any], AfterValidator(_no_secrets)]


def _no_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse what has a field of its own beside the options."""
    for name in ("name", "temperature", "max_tokens"):
        if name in options:
            raise ValueError(f"{name!r} is a field of model, beside options: write model.{name}")
    return options


class ReaskSpec(DocumentModel):
    """Ask again, and keep what comes last."""

    reask: int = Field(ge=1, le=100)
    """How many times at most."""


_ReplyPolicy = Literal["keep", "fail"] | ReaskSpec


class RepliesSpec(DocumentModel):
    """What is done about replies that are no answers. Those kept are measured as missing and flagged to readers."""

    refused: _ReplyPolicy = "keep"
    """The model declined, or a filter of its provider withheld the text."""
    empty: _ReplyPolicy = "keep"
    """No text arrived."""
    truncated: _ReplyPolicy = "keep"
    """The reply was cut off at max_tokens."""

    def policy(self) -> Mapping[Any, Any]:
        """The form that :class:`opinionsim.llm.Endpoint` takes."""
        stated = {"refused": self.refused, "empty": self.empty, "truncated": self.truncated}
        return {name: todo.reask if isinstance(todo, ReaskSpec) else todo for name, todo in stated.items()}


def _spelled_replies(value: Any) -> Any:
    """Read ``fail`` and ``{reask: 2}`` as said of all three."""
    if isinstance(value, str) or (isinstance(value, dict) and set(value) == {"reask"}):
        return dict.fromkeys(("refused", "empty", "truncated"), value)
    return value


class ModelSpec(DocumentModel):
    """The chat model that plays the agents."""

    name: str = Field("scripted", min_length=1)
    """`scripted`, provider and model as in `openai:gpt-4o-mini`, or `hf:` and the path or name of local weights."""
    temperature: float | None = Field(0.7, ge=0, le=2)
    """Sampling temperature; null leaves it to the model, as those need that take none."""
    max_tokens: int | None = Field(300, ge=1, le=_MAX_INT)
    """Longest reply; null leaves it to the provider."""
    options: Annotated[Options, AfterValidator(_no_fields)] = Field(default_factory=dict)
    """Further arguments of the model, such as base_url or reasoning_effort."""
    replies: Annotated[
        RepliesSpec, BeforeValidator(_spelled_replies, json_schema_input_type=_ReplyPolicy | RepliesSpec)
    ] = Field(default_factory=RepliesSpec)
    """What is done about refused, empty and truncated replies: `keep`, `fail`, or `{reask: k}`; for all or for each."""


class SharedModelSpec(ModelSpec):
    """One of several chat models, and its share of the agents."""

    share: float = Field(gt=0)
    """Relative to the sum of all shares."""


class ByAttributeSpec(DocumentModel):
    """A chat model for each value of an attribute of the personas."""

    by: str = Field(min_length=1)
    """The attribute."""
    models: dict[str, ModelSpec] = Field(min_length=1)
    """Value to model."""
    otherwise: ModelSpec | None = None
    """For agents whose persona has none of these values; null makes such an agent an error."""


class ClassicModelSpec(DocumentModel):
    """A classic model, whose agents are numbers that follow an equation."""

    classic: str = Field(min_length=1)
    """Name of the model; `opinionsim list abm` lists them."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Its parameters and scheme options by name; those in units of opinion are in units of the scale."""


def _form(value: Any) -> str:
    """How models are given."""
    if isinstance(value, (list, tuple)):
        return "shares"
    if isinstance(value, ClassicModelSpec) or (isinstance(value, dict) and "classic" in value):
        return "classic"
    by = isinstance(value, ByAttributeSpec) or (isinstance(value, dict) and "by" in value)
    return "by attribute" if by else "one"


AnyModelSpec = Annotated[
    Annotated[ModelSpec, Tag("one")]
    | Annotated[tuple[SharedModelSpec, ...], Field(min_length=1), Tag("shares")]
    | Annotated[ByAttributeSpec, Tag("by attribute")]
    | Annotated[ClassicModelSpec, Tag("classic")],
    Discriminator(_form),
]

_AnyModel = ModelSpec | tuple[SharedModelSpec, ...] | ByAttributeSpec | ClassicModelSpec


def models_of(model: _AnyModel) -> tuple[ModelSpec, ...]:
    """All chat models that may play an agent; none, where agents follow an equation."""
    if isinstance(model, ClassicModelSpec):
        return ()
    if isinstance(model, ByAttributeSpec):
        return (*model.models.values(), *([model.otherwise] if model.otherwise is not None else []))
    return (model,) if isinstance(model, ModelSpec) else model


def model_label(model: _AnyModel) -> str:
    """The names of the models, in order, as one text."""
    if isinstance(model, ClassicModelSpec):
        return model.classic
    return " + ".join(dict.fromkeys(each.name for each in models_of(model)))


def agent_label(model: ModelSpec, among: _AnyModel) -> str:
    """The name of one of the models, with the settings that tell it from others of that name.

    Parameters
    ----------
    model : ModelSpec
        Who plays an agent.
    among : ModelSpec, tuple of SharedModelSpec, or ByAttributeSpec
        All that play agents of the run.

    Returns
    -------
    str
        As in ``openai:gpt-4o-mini`` or ``scripted (pull=2)``.
    """
    namesakes = [_settings(each) for each in models_of(among) if each.name == model.name]
    own = _settings(model)
    telling = [name for name in own if any(other.get(name) != own[name] for other in namesakes)]
    said = ", ".join(f"{name}={own[name]}" for name in telling)
    return f"{model.name} ({said})" if said else model.name


def _settings(model: ModelSpec) -> dict[str, str]:
    """What a model is set to, in words."""
    stated = {"temperature": model.temperature, "max_tokens": model.max_tokens, **model.options}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in stated.items()}


def assign_models(
    model: ModelSpec | tuple[SharedModelSpec, ...] | ByAttributeSpec,
    personas: Sequence[Persona],
    rng: np.random.Generator,
) -> tuple[ModelSpec, ...]:
    """The model that plays each agent.

    Parameters
    ----------
    model : ModelSpec, tuple of SharedModelSpec, or ByAttributeSpec
        As specified.
    personas : sequence of Persona, length N
        Of the agents.
    rng : numpy.random.Generator
        Deals out shares; numbers are those of the largest remainders, so that they differ by chance only in who.

    Raises
    ------
    SpecError
        If a persona has no value that a model is given for.
    """
    if isinstance(model, ModelSpec):
        return (model,) * len(personas)
    if isinstance(model, ByAttributeSpec):
        return tuple(_by_value(model, personas))
    numbers = _numbers([each.share for each in model], len(personas))
    for each, number in zip(model, numbers, strict=True):
        if not number:
            raise SpecError(f"model: a share of {each.share:g} gives {each.name!r} none of {len(personas)} agents")
    dealt = np.repeat(np.arange(len(model)), numbers)
    return tuple(model[int(which)] for which in rng.permutation(dealt))


def _by_value(model: ByAttributeSpec, personas: Sequence[Persona]) -> Iterator[ModelSpec]:
    for persona in personas:
        value = persona.attributes.get(model.by)
        found = model.models.get(str(value), model.otherwise)
        if found is None:
            known = ", ".join(map(repr, persona.attributes)) or "none"
            lacks = f"has no attribute {model.by!r}, only {known}"
            has = f"has {model.by} = {value!r}" if value is not None else lacks
            raise SpecError(
                f"model: persona {persona.name!r} {has}; give it a model, or one under otherwise; "
                f"valid: {', '.join(map(repr, model.models))}"
            )
        yield found


def _numbers(shares: Sequence[float], size: int) -> list[int]:
    """Whole numbers nearest to shares of `size`, by largest remainder; ties go to the first."""
    exact = [share / sum(shares) * size for share in shares]
    numbers = [int(each) for each in exact]
    order = sorted(range(len(shares)), key=lambda which: numbers[which] - exact[which])
    for which in order[: size - sum(numbers)]:
        numbers[which] += 1
    return numbers
