"""The classic models by name."""

from __future__ import annotations

from importlib import import_module

from opinionsim.classic._model import ClassicModel
from opinionsim.errors import SpecError, meant

#: Modules that hold models, in the order in which documentation lists them.
_MODULES = ("_voter", "_noisy_voter", "_qvoter", "_majority", "_sznajd", "_coda", "_linear", "_biased_assimilation",
            "_deffuant", "_hegselmann_krause", "_algorithmic_bias", "_weighted_confidence", "_axelrod",
            "_weighted_linear", "_jager_amblard", "_lorenz", "_cognitive", "_activity_driven", "_holme_newman",
            "_rewiring")  # fmt: skip
#: Every classic model by name.
MODELS: dict[str, ClassicModel] = {
    model.name: model
    for module in _MODULES
    for model in vars(import_module(f"opinionsim.classic.models.{module}")).values()
    if isinstance(model, ClassicModel)
}


def find_model(model: str | ClassicModel) -> ClassicModel:
    """A model by its name.

    Raises
    ------
    SpecError
        If there is none of that name.
    """
    if isinstance(model, ClassicModel):
        return model
    if not isinstance(model, str) or model not in MODELS:
        raise SpecError(f"unknown classic model {model!r:.60}{meant(model, MODELS)}; valid: {', '.join(MODELS)}")
    return MODELS[model]
