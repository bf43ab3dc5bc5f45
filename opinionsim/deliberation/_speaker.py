"""Common base of agents and moderators: a task, instructions, a chat model, and a history of calls."""

from __future__ import annotations

import copy
import inspect
import pprint
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Self

from langchain_core.language_models import BaseChatModel

from opinionsim.errors import SpecError
from opinionsim.llm import ModelClient, own_model
from opinionsim.prompts import Texts, load_pack
from opinionsim.registry import name_of, part

#: What follows a last reply that is refused or empty.
NoAnswer = Literal["fail", "skip"]

#: Providers of models that are commonly named without one, by the beginning of the name.
_PROVIDERS = {"gpt": "openai", "chatgpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai"}
_PROVIDERS |= {"claude": "anthropic", "gemini": "google_genai", "mistral": "mistralai"}
#: Selectors that were marked here, by the id of the function, which is kept with its name.
_MARKED: dict[int, tuple[Any, str]] = {}


@cache
def texts() -> Texts:
    """The named texts of the prompt pack of deliberation."""
    found = load_pack("deliberation").named
    if found is None:
        raise SpecError("the prompt pack deliberation has no texts.yaml")
    return found


class Speaker(ABC):
    """Base of agents and moderators: a description that no run changes, and the calls of its runs.

    Parameters
    ----------
    task : str or None
        Its task.
    combination_instructions : str or None
        Instructions for using the responses that it sees, as in the specification.
    model : str or BaseChatModel
        Its chat model.
    kwargs : mapping or None
        Settings of a model given by name.

    Attributes
    ----------
    task, combination_instructions, model
        As given.
    model_name : str
        The name of its chat model.
    """

    def __init__(
        self,
        task: str | None,
        combination_instructions: str | None,
        model: str | BaseChatModel,
        kwargs: Mapping[str, Any] | None,
    ) -> None:
        self.task = task
        self.combination_instructions = combination_instructions
        self.model = model
        self.model_name = ModelClient(model).name if isinstance(model, BaseChatModel) else _checked_name(model)
        self._kwargs = _checked_kwargs(kwargs, model)
        self._history: dict[tuple[str, str, int], dict[str, Any]] = {}

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change what it was made with."""
        if name in vars(self):
            raise AttributeError(f"{name} of {type(self).__name__} is read-only; create another one")
        super().__setattr__(name, value)

    def _like(self, **changed: Any) -> Self:
        """One like it with other attributes and the same history."""
        twin = copy.copy(self)
        vars(twin).update(changed)
        return twin

    @property
    def kwargs(self) -> dict[str, Any]:
        """Settings of its chat model."""
        return dict(self._kwargs)

    @property
    @abstractmethod
    def system_instructions(self) -> str | None:
        """Its system message, in which ${task} may stand for the task; None without one."""

    @abstractmethod
    def member(self, name: str | None, task: str | None, model: str, no_answer: NoAnswer) -> dict[str, Any]:
        """Return its entry in the cast of a specification.

        Parameters
        ----------
        name : str or None
            Name that other agents see with its answers.
        task : str or None
            Task of the experiment; the entry states its own task if that differs.
        model : str
            Name of its chat model there.
        no_answer : {"fail", "skip"}
            What follows a last reply that is refused or empty.
        """

    @property
    def history(self) -> list[dict[str, Any]] | None:
        """Its turns in the runs in which it took part; prompts do not show them.

        Each turn has ``prompts`` (``system``, None without one, and ``user``), ``response`` and ``model``. If there are
        several replies, ``all_responses`` lists them. ``status`` is present if the reply is not an answer. Before the
        first call, the history is None, with a warning.
        """
        if not self._history:
            warnings.warn("there is no history yet; process a task first", stacklevel=2)
            return None
        return list(self._history.values())

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """The prompts of its turns."""
        return [entry["prompts"] for entry in self._history.values()]

    @property
    def responses(self) -> list[str]:
        """Its responses in its turns."""
        return [entry["response"] for entry in self._history.values()]

    @property
    def info(self) -> dict[str, Any]:
        """Its description and its calls."""
        return {
            "task": self.task,
            "system_instructions": self.system_instructions,
            "combination_instructions": self.combination_instructions,
            "model": self.model_name,
            "kwargs": self.kwargs,
            "history": list(self._history.values()),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({pprint.pformat(self.info, sort_dicts=False, width=110)})"

    def _stated(self, model: str, no_answer: NoAnswer, **fields: Any) -> dict[str, Any]:
        """Fields of a specification that are not None, and its chat model, by the name that it has there."""
        options = self.kwargs
        own = {name: options.pop(name, None) for name in ("temperature", "max_tokens")}
        replies = {status: {"then": no_answer} for status in ("refused", "off_role", "empty")}
        stated = {name: value for name, value in fields.items() if value is not None}
        return {**stated, "model": {"name": model, **own, "options": options, "replies": replies}}

    def remember(self, place: tuple[str, str, int], entry: dict[str, Any]) -> None:
        """Add a turn to the history, replacing an earlier copy from the same store and run."""
        self._history[place] = entry


def _checked_kwargs(kwargs: Mapping[str, Any] | None, model: object) -> dict[str, Any]:
    """Settings of a model by name; one given as an object has its own."""
    if kwargs is None:
        return {}
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise SpecError(f"kwargs must be a mapping of settings by name, such as {{'temperature': 1}}; got {kwargs!r}")
    if kwargs and isinstance(model, BaseChatModel):
        raise SpecError("kwargs have no effect on a chat model given as an object; set them when you create it")
    return dict(kwargs)


def _checked_name(model: object) -> str:
    """The name of a chat model, which has a provider unless it is scripted or one of the user's own."""
    if not isinstance(model, str) or not model.strip():
        name = name_of(model) if callable(model) else None
        if not isinstance(name, str):
            raise SpecError(
                "model must be a name such as 'openai:gpt-4o' or 'scripted', or a LangChain chat model; "
                f"got {model!r:.80}"
            )
        return name
    if model == "scripted" or ":" in model or own_model(model):
        return model
    if "/" in model:
        meant = f"write {model.replace('/', ':', 1)!r}"
    else:
        begins = [provider for beginning, provider in _PROVIDERS.items() if model.startswith(beginning)]
        meant = f"write {begins[0] + ':' + model!r}" if begins else "write 'PROVIDER:MODEL', as in 'openai:gpt-4o'"
    raise SpecError(f"model {model!r} has no provider: {meant}, or use 'scripted', which needs no key")


def selector_name(selector: str | Callable[[Sequence[str]], Any] | None) -> str | None:
    """Return the name of a selector in a specification; an unmarked function gets a mark for this process.

    Raises
    ------
    SpecError
        If the argument is neither the name of a selector nor a plain function.
    """
    if selector is None or isinstance(selector, str):
        return selector
    if not callable(selector) or inspect.iscoroutinefunction(selector):
        raise SpecError(f"response_selector must be a plain function or the name of a selector; got {selector!r:.80}")
    try:
        return str(name_of(selector))
    except SpecError:
        pass  # it is not marked
    if id(selector) not in _MARKED:
        function, name = selector, f"function-{len(_MARKED) + 1}"

        def choose(texts: Sequence[str]) -> Any:
            return function(list(texts))

        part("selector", name=name, version=1)(choose)
        _MARKED[id(selector)] = (selector, name)
    return _MARKED[id(selector)][1]


def only_here(name: str) -> bool:
    """Whether a selector's name belongs to a function that only this process knows."""
    return any(name == marked for _, marked in _MARKED.values())
