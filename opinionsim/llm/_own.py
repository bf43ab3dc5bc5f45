"""Chat models without a provider: users' models by import path, and models with weights in this process."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opinionsim.errors import SpecError
from opinionsim.registry import find, is_path, known, places

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def own_model(name: str) -> bool:
    """Whether a name refers to a user's chat model.

    Such a name is the import path ``package.module:Name``, which differs from ``provider:model`` by the dot in its
    module, or the name of a marked object in this process.
    """
    return known("chat_model", name) or (is_path(name) and "." in name.partition(":")[0])


def in_process(name: str) -> bool:
    """Whether a name refers to a model with weights in this process.

    Such a model costs nothing, sends nothing, and identifies its weights in every reply.
    """
    kind, _, model = name.partition(":")
    return bool(model) and kind in places("local")


def module_of(name: str) -> ModuleType:
    """The module that loads a model into this process (:mod:`opinionsim.local`)."""
    kind = name.partition(":")[0]
    return places("local")[kind].imported("local", kind)


def load_own_model(name: str, settings: Mapping[str, Any], options: Mapping[str, Any]) -> BaseChatModel:
    """Load a user's chat model.

    Parameters
    ----------
    name : str
        Import path of the model.
    settings : mapping
        Temperature and maximum length of a reply, if the model accepts them.
    options : mapping
        Further arguments of the model.

    Raises
    ------
    SpecError
        If there is no such model, it does not accept the options, it fails, or it is not a LangChain chat model.
    """
    from langchain_core.language_models import BaseChatModel

    part = find("chat_model", name)
    taken = part.arguments()
    part.check_options(options)
    given = {key: value for key, value in settings.items() if key in taken and value is not None}
    found = part.build(**given, options=options)
    if not isinstance(found, BaseChatModel):
        raise SpecError(f"chat model {name!r} must be a langchain_core BaseChatModel; it made a {type(found).__name__}")
    return found
