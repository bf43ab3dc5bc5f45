"""Figures of the command line, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opinionsim.registry import Part

#: Arguments of figures that are options of the command.
OPTIONS = ("where", "by", "metric", "value", "x", "y", "kind", "wording", "run")


def check_arguments(figure: Part, given: Mapping[str, Any]) -> None:
    """Check settings against the arguments of a figure's function.

    Raises
    ------
    SpecError
        If the function has no such argument, a value has the wrong type, or a required argument is missing.
    """
    from inspect import Parameter
    from typing import get_type_hints

    from pydantic import create_model

    from opinionsim.foundation.documents import DocumentModel, validate

    sorts = get_type_hints(figure.target)
    fields: dict[str, Any] = {
        _option(each.name): (sorts.get(each.name, Any), ... if each.default is Parameter.empty else each.default)
        for each in list(figure.arguments().values())[1:]
        if each.name != "ax" and each.kind is not Parameter.VAR_KEYWORD
    }
    spelled = {_option(name): value for name, value in given.items()}
    validate(create_model("Settings", __base__=DocumentModel, **fields), spelled, f"figure {figure.name}")


def _option(argument: str) -> str:
    """Spell an argument of a figure as the command line does."""
    return f"--{'metric' if argument == 'value' else argument}" if argument in OPTIONS else f"--set {argument}"
