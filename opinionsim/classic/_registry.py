"""The classic models by name."""

from __future__ import annotations

from difflib import get_close_matches

from opinionsim.classic import (
    _activity_driven,
    _algorithmic_bias,
    _biased_assimilation,
    _coda,
    _deffuant,
    _hegselmann_krause,
    _jager_amblard,
    _linear,
    _lorenz,
    _majority,
    _qvoter,
    _sznajd,
    _voter,
    _weighted_linear,
)
from opinionsim.classic._model import ClassicModel
from opinionsim.errors import SpecError

__all__ = ["MODELS", "find_model"]

#: Every classic model by name, in the order in which documentation lists them.
MODELS: dict[str, ClassicModel] = {model.name: model for model in (
    _voter.MODEL,
    _qvoter.MODEL,
    _majority.MODEL,
    _sznajd.MODEL,
    _coda.MODEL,
    *_linear.MODELS,
    _biased_assimilation.MODEL,
    _deffuant.MODEL,
    _hegselmann_krause.MODEL,
    _algorithmic_bias.MODEL,
    _weighted_linear.MODEL,
    _jager_amblard.MODEL,
    _lorenz.MODEL,
    _activity_driven.MODEL,
)}  # fmt: skip


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
        close = get_close_matches(str(model), MODELS, 1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise SpecError(f"unknown classic model {model!r:.60}{meant}; valid: {', '.join(MODELS)}")
    return MODELS[model]
