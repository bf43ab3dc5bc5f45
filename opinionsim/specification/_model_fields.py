"""The endpoints of the agents: one chat model, several in shares, one for each value of an attribute, or others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator, ConfigDict, Discriminator, Field, RootModel, Tag
from pydantic_core.core_schema import CoreSchema, definitions_schema, no_info_plain_validator_function

from opinionsim.conduct import ReplyPolicy
from opinionsim.errors import SpecError
from opinionsim.foundation.documents import MAX_INT, DocumentModel, KeyPath
from opinionsim.foundation.redaction import kept
from opinionsim.personas import Persona, Population
from opinionsim.registry import Options, built_in, names

if TYPE_CHECKING:
    from opinionsim.engine import Actor
    from opinionsim.schedules import AnySchedule, Setting
    from opinionsim.specification._fields import ExperimentSpec


def _no_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that have a field of their own."""
    for name in ("name", "temperature", "max_tokens", "max_reply_bytes"):
        if name in options:
            raise ValueError(f"{name!r} belongs to model, not to options; set model.{name}")
    return options


@dataclass(frozen=True, eq=False)
class RunEndpoint:
    """What acts for the agents of one run that no prompt asks.

    Attributes
    ----------
    evidence : str
        Kind of evidence of their texts.
    told : str
        What they do, as in ``follow an equation (NAME)``.
    schedule : StaticSchedule or AdaptiveSchedule
        The turns in which they state their opinions.
    """

    evidence: str
    told: str
    schedule: AnySchedule

    def work_out(self) -> None:
        """Compute in advance what takes time; blocks. By default, do nothing."""

    def actors(self) -> Sequence[Actor]:
        """The actor of each agent, before its first turn."""
        raise NotImplementedError


class Agents:
    """Base of all forms of the field ``model``; what it declares holds for agents that chat models play."""

    words: ClassVar[str] = "chat model"
    """Name of the form in a sentence."""
    players: ClassVar[str] = "chat models"
    """Kind of the agents, as :attr:`opinionsim.schedules.Interaction.played_by` names it."""
    prompted: ClassVar[bool] = True
    """Whether prompts ask the agents. Others state numbers, which the classifier `exact` reads. They have no acts,
    wording, memory, roles, events or calls, need no topic, and can start with any numbers."""
    evidence: ClassVar[str] = ""
    """Kind of evidence of texts of agents that no prompt asks."""
    names: ClassVar[str] = ""
    """Kind of part that the label of such a form names."""
    allows_more: ClassVar[str] = ""
    """Advice in the error about more agents than language models can play."""

    @property
    def told(self) -> str:
        """The form and its label, for errors."""
        return f"the {self.words} {self.label!r}"

    def conflicts(self, spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
        """Fields of a specification that do not fit agents that no prompt asks, and the problems; by default none."""
        yield from ()

    def check(self, spec: ExperimentSpec) -> None:
        """Raise a SpecError if it cannot be carried out as specified; by default, do nothing."""

    def for_run(self, spec: ExperimentSpec, setting: Setting, made: Callable[[], AnySchedule]) -> RunEndpoint:
        """What acts for the agents of one run that no prompt asks.

        Parameters
        ----------
        spec : ExperimentSpec
            The specification of the run.
        setting : Setting
            Its size, network, initial opinions and random streams.
        made : callable
            Makes the schedule of the interaction, as for chat models.

        Raises
        ------
        SpecError
            If the agents do not fit the specification.
        """
        raise NotImplementedError

    @property
    def chat_models(self) -> tuple[ModelSpec, ...]:
        """All chat models that may play an agent; empty if no prompt asks the agents."""
        return ()

    @property
    def label(self) -> str:
        """The names of the models, in order, as one text."""
        return " + ".join(dict.fromkeys(each.name for each in self.chat_models))

    def assign(self, personas: Sequence[Persona], rng: np.random.Generator) -> tuple[ModelSpec, ...]:
        """The model that plays each agent; the same for all unless there are several.

        Parameters
        ----------
        personas : sequence of Persona, length N
            The personas of the agents.
        rng : numpy.random.Generator
            Assigns shares at random.

        Raises
        ------
        SpecError
            If a persona has no model, or a share gives a model no agent.
        """
        return self.chat_models * len(personas)

    def problems(self, personas: Sequence[Persona], size: int) -> Iterator[tuple[KeyPath, str]]:
        """Problems with agents drawn from these personas, each with its field inside ``model``."""
        try:
            self.assign(personas, np.random.default_rng(0))
        except SpecError as error:
            yield (), str(error)


class ModelSpec(DocumentModel, Agents):
    """The chat model that plays the agents."""

    name: str = Field("scripted", min_length=1)
    """`scripted`, provider and model as in `openai:gpt-4o-mini`, `gguf:` followed by the path of a file, or `hf:`
    followed by a name or folder."""
    temperature: float | None = Field(0.7, ge=0, le=2)
    """Sampling temperature. Null sends no temperature, which some models require."""
    max_tokens: int | None = Field(1000, ge=1, le=MAX_INT)
    """Maximum length of a reply in tokens. Null leaves it to the provider. Prompts request at most half as many words,
    unless `cognition.post_words` is null."""
    max_reply_bytes: int = Field(8_000_000, ge=1_000, le=MAX_INT)
    """Maximum size of a reply in uncompressed bytes. A larger reply ends its run."""
    options: Annotated[Options, AfterValidator(_no_fields)] = Field(default_factory=dict)
    """Further arguments of the model, such as `base_url` or `reasoning_effort`."""
    replies: ReplyPolicy = Field(default_factory=ReplyPolicy)
    """How to handle refused, empty and truncated replies."""

    @property
    def chat_models(self) -> tuple[ModelSpec, ...]:
        """The model itself."""
        return (self,)

    def identity(self) -> dict[str, Any]:
        """Fields that differ from their defaults, without the name of the variable that holds a key."""
        fields = self.model_dump(mode="json", exclude_defaults=True, exclude={"options", "replies", "max_reply_bytes"})
        options = kept({name: value for name, value in self.options.items() if name != "api_key_env"})
        replies = self.replies.identity()
        return {**fields, **({"options": options} if options else {}), **({"replies": replies} if replies else {})}


class SharedModelSpec(ModelSpec):
    """One of several chat models, and its share of the agents."""

    share: float = Field(gt=0)
    """Share of the agents, relative to the sum of all shares."""


class SharedModelsSpec(RootModel[Annotated[tuple[SharedModelSpec, ...], Field(min_length=1)]], Agents):
    """Several chat models, each with a share of the agents."""

    model_config = ConfigDict(frozen=True, strict=True)

    @property
    def chat_models(self) -> tuple[ModelSpec, ...]:
        """All models."""
        return self.root

    def identity(self) -> list[Any]:
        """Identity fields of each model, with its share."""
        return [each.identity() for each in self.root]

    def assign(self, personas: Sequence[Persona], rng: np.random.Generator) -> tuple[ModelSpec, ...]:
        """The model of each agent, by chance; the number of agents of each model is fixed, by largest remainder."""
        numbers = _numbers([each.share for each in self.root], len(personas))
        for each, number in zip(self.root, numbers, strict=True):
            if not number:
                raise SpecError(
                    f"a share of {each.share:g} gives {each.name!r} none of {len(personas)} agents", "model"
                )
        dealt = np.repeat(np.arange(len(self.root)), numbers)
        return tuple(self.root[int(which)] for which in rng.permutation(dealt))

    def problems(self, personas: Sequence[Persona], size: int) -> Iterator[tuple[KeyPath, str]]:
        """Shares that give a model no agent."""
        yield from super().problems(Population.bare(size).personas, size)


class ByAttributeSpec(DocumentModel, Agents):
    """A chat model for each value of an attribute of the personas."""

    by: str = Field(min_length=1)
    """Name of the attribute."""
    models: dict[str, ModelSpec] = Field(min_length=1)
    """Model for each value."""
    otherwise: ModelSpec | None = None
    """Model for personas with none of these values. With null, such personas are an error."""

    @property
    def chat_models(self) -> tuple[ModelSpec, ...]:
        """The models of all values, and that of `otherwise`."""
        return (*self.models.values(), *([] if self.otherwise is None else [self.otherwise]))

    def identity(self) -> dict[str, Any]:
        """The attribute, and the identity of each model."""
        models = {value: each.identity() for value, each in self.models.items()}
        otherwise = {} if self.otherwise is None else {"otherwise": self.otherwise.identity()}
        return {"by": self.by, "models": models, **otherwise}

    def assign(self, personas: Sequence[Persona], rng: np.random.Generator) -> tuple[ModelSpec, ...]:
        """The model for each persona's value."""
        return tuple(map(self._model_of, personas))

    def _model_of(self, persona: Persona) -> ModelSpec:
        value = persona.traits.get(self.by)
        found = self.models.get(str(value), self.otherwise)
        if found is None:
            known = ", ".join(map(repr, persona.traits)) or "none"
            lacks = f"has no attribute {self.by!r}, only {known}"
            has = f"has {self.by} = {value!r}" if value is not None else lacks
            raise SpecError(
                f"persona {persona.name!r} {has}; set a model for it or under otherwise; "
                f"valid: {', '.join(map(repr, self.models))}",
                "model",
            )
        return found

    def problems(self, personas: Sequence[Persona], size: int) -> Iterator[tuple[KeyPath, str]]:
        """Values that no persona has, and personas without a model: any of them may be drawn."""
        present = {str(persona.traits.get(self.by)) for persona in personas}
        for value in self.models:
            if value not in present and any(self.by in persona.traits for persona in personas):
                valid = ", ".join(sorted(present - {"None"}))
                yield ("models", value), f"no persona has {self.by} = {value!r}; valid: {valid}"
        yield from super().problems(personas, size)


class EndpointSpec(DocumentModel, Agents):
    """Base of the forms that slices bring: parts of kind ``endpoint``, each named after a field that it alone has."""

    prompted: ClassVar[bool] = False

    def identity(self) -> dict[str, Any]:
        """Fields that differ from their defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def form_of(cls, value: Any) -> type[DocumentModel]:
        """The form whose own field a mapping has; without one, any."""
        forms = endpoints() if cls is EndpointSpec else {}
        own = [form for name, form in forms.items() if isinstance(value, Mapping) and name in value]
        return [cls, *forms.values(), *own][-1]

    @classmethod
    def read(cls, value: Any) -> Any:
        """Turn a mapping of a specification into an object of the form whose field it has."""
        return value if isinstance(value, cls) else cls.form_of(value).model_validate_json(json.dumps(value))


def endpoints() -> dict[str, type[EndpointSpec]]:
    """The forms that slices bring, by the field that each alone has."""
    return {name: each.target for name, each in built_in("endpoint").items()}


def agent_label(model: ModelSpec, models: Sequence[ModelSpec]) -> str:
    """The name of a model, with the settings that distinguish it from others of that name.

    Returns
    -------
    str
        As in ``openai:gpt-4o-mini`` or ``scripted (pull=2)``.
    """
    namesakes = [_settings(each) for each in models if each.name == model.name]
    own = _settings(model)
    telling = [name for name in own if any(other.get(name) != own[name] for other in namesakes)]
    said = ", ".join(f"{name}={own[name]}" for name in telling)
    return f"{model.name} ({said})" if said else model.name


def _form(value: Any) -> str:
    """The form in which models are given."""
    if isinstance(value, (list, tuple, SharedModelsSpec)):
        return "shares"
    given = value.keys() if isinstance(value, dict) else {*getattr(type(value), "model_fields", ())}
    return "endpoint" if given & {*names("endpoint")} else "by attribute" if "by" in given else "one"


class _OfSlices:
    """How the forms that slices bring are read and described, which loads no slice before that."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        return no_info_plain_validator_function(EndpointSpec.read)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> dict[str, Any]:
        forms = [handler(definitions_schema(form.__pydantic_core_schema__, [])) for form in endpoints().values()]
        return forms[0] if len(forms) == 1 else {"anyOf": forms} if forms else {"not": {}}


AnyModelSpec = Annotated[
    Annotated[ModelSpec, Tag("one")]
    | Annotated[SharedModelsSpec, Tag("shares")]
    | Annotated[ByAttributeSpec, Tag("by attribute")]
    | Annotated[EndpointSpec, _OfSlices, Tag("endpoint")],
    Discriminator(_form),
]


def _settings(model: ModelSpec) -> dict[str, str]:
    """Settings of a model by name, as texts."""
    stated = {"temperature": model.temperature, "max_tokens": model.max_tokens, **kept(model.options)}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in stated.items()}


def _numbers(shares: Sequence[float], size: int) -> list[int]:
    """Whole numbers nearest to shares of `size`, by largest remainder; ties go to the first."""
    exact = [share / sum(shares) * size for share in shares]
    numbers = [int(each) for each in exact]
    order = sorted(range(len(shares)), key=lambda which: numbers[which] - exact[which])
    for which in order[: size - sum(numbers)]:
        numbers[which] += 1
    return numbers
