"""The classic models by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from opinionsim.classic._declaration import ClassicModel
from opinionsim.errors import SpecError, meant
from opinionsim.registry import Catalogue, find, is_path

#: Every classic model of the package by name, loaded when it is asked for.
MODELS: Mapping[str, ClassicModel] = Catalogue("classic_model")


@cache
def _own(path: str) -> ClassicModel:
    """A model of the user's own, which is called by the path from which others can import it."""
    found: ClassicModel = find("classic_model", path).target
    return replace(found, name=path)


def find_model(model: str | ClassicModel) -> ClassicModel:
    """Find a model by its name, or your own model by its import path.

    Raises
    ------
    SpecError
        If no model has that name.
    """
    if isinstance(model, ClassicModel):
        return model
    if isinstance(model, str) and is_path(model):
        return _own(model)
    if isinstance(model, str) and model in MODELS:
        return MODELS[model]
    raise SpecError(f"unknown classic model {model!r:.60}{meant(str(model), MODELS)}; valid: {', '.join(MODELS)}")
