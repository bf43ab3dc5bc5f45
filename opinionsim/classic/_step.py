"""The one-step view of a model: what it says of the next opinion of whoever has received messages."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._model import ClassicModel
from opinionsim.classic._process import check_range
from opinionsim.classic._registry import find_model
from opinionsim.classic._transition import Transition
from opinionsim.errors import SpecError

__all__ = ["transition"]


def transition(
    model: str | ClassicModel,
    before: ArrayLike,
    messages: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    range: tuple[float, float] | None = None,
    **parameters: Any,
) -> Transition:
    """How a model distributes the next opinion of receivers, given what came before.

    Parameters
    ----------
    model : str or ClassicModel
        Its name.
    before : array_like (T,)
        Opinion of each receiver before.
    messages : array_like (T,) or (T, m)
        Opinions received: one each, or m of them, as the model takes; NaN where there are fewer, which models whose
        agents meet in pairs do not take.
    weights : array_like (T, m), optional
        Of the messages, for models that weigh them; default all 1.
    start : array_like (T,), optional
        Initial opinion of each receiver, for models that go back to it.
    range : (float, float), optional
        Range of opinions; default that of the model.
    **parameters
        Of the model, each a number or (T,): those of the receivers.

    Returns
    -------
    Transition
        Of T receivers. It is written independently of the kernel, which tests compare it with.

    Raises
    ------
    SpecError
        If shapes disagree, an opinion is missing or out of range, or a parameter is unknown or out of range.
    """
    found = find_model(model)
    own = np.atleast_1d(np.asarray(before, dtype=float))
    received = np.asarray(messages, dtype=float)
    received = received[:, None] if received.ndim == 1 else np.atleast_2d(received)
    if own.ndim != 1 or received.shape[0] != own.size:
        raise SpecError(
            f"before must be (T,) and messages (T,) or (T, m); got shapes {own.shape} and {np.shape(messages)}"
        )
    span = check_range(found.range if range is None else range, endless=not np.isfinite(found.range).all())
    _check_given(own, received, span, missing=found.update is None)
    given = None if weights is None else np.asarray(weights, dtype=float)
    if given is not None and given.shape != received.shape:
        raise SpecError(f"weights must have the shape of messages, {received.shape}; got {given.shape}")
    unknown = sorted(set(parameters) - set(found.declared))
    if unknown:
        raise SpecError(f"{found.name} has no parameter {unknown[0]!r}; valid: {', '.join(found.declared) or 'none'}")
    values = found.with_defaults(parameters, span)
    p = found.parameters(**{name: each.array(name, values[name], own.size) for name, each in found.declared.items()})
    if start is None:
        return found.transition(own, received, given, p, span)
    if "start" not in signature(found.transition).parameters:
        raise SpecError(f"{found.name} does not go back to initial opinions; leave start out")
    first = np.asarray(start, dtype=float)
    if first.shape != own.shape:
        raise SpecError(f"start must have the shape of before, {own.shape}; got {first.shape}")
    return found.transition(own, received, given, p, span, start=first)


def _check_given(own: np.ndarray, received: np.ndarray, span: tuple[float, float], missing: bool) -> None:
    """Refuse opinions that are none; messages may be `missing` where a model takes any number of them."""
    low, high = span
    for name, values in (("before", own), ("messages", received)):
        wrong = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if missing and name == "messages":
            wrong &= ~np.isnan(values)
        if wrong.any():
            raise SpecError(f"{name} must be opinions from {low:g} to {high:g}; got {values[wrong][0]:g}")
