"""The one-step view of any model: the distribution of the next opinions of agents that receive messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._declaration import ClassicModel
from opinionsim.classic._registry import find_model
from opinionsim.classic._transition import Received, Transition
from opinionsim.classic.kernels._process import check_names
from opinionsim.errors import SpecError


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
    """Compute the distribution of receivers' next opinions, given their opinions and messages.

    Parameters
    ----------
    model : str or ClassicModel
        The model or its name.
    before : array_like (T,)
        Previous opinion of each receiver; (T, F) if opinions are traits of F features.
    messages : array_like (T,) or (T, m)
        Received opinions: one per receiver, or m for models that use several. NaN marks a missing one, except in models
        whose agents meet in pairs. (T, F), one per receiver, if opinions are traits.
    weights : array_like (T, m), optional
        Weights of messages, for models that use weights; by default all 1.
    start : array_like (T,), optional
        Initial opinion of each receiver, for models that use it.
    range : (float, float), optional
        Range of opinions; default that of the model.
    **parameters
        Parameters of the model for the receivers: each a number or (T,).

    Returns
    -------
    Transition
        The distribution of each of T receivers. Its code is independent of the kernel, and tests compare the two.

    Raises
    ------
    SpecError
        If shapes disagree, an opinion is missing or out of range, or a parameter is unknown or out of range.
    """
    found = find_model(model)
    check_names(found, parameters, schemes=False)
    span = found.span(range, parameters)
    own, said = _shaped(found, before, messages, parameters)
    _check_given(own, said, span, missing=found.update is None and found.states != "traits")
    given = np.ones(said.shape[:2]) if weights is None else np.asarray(weights, dtype=float)
    if given.shape != said.shape[:2]:
        raise SpecError(f"weights must have the same shape as messages, {said.shape[:2]}; got {given.shape}")
    p = found.arrays(found.with_defaults(parameters, span), len(own), span)
    first = None if start is None else np.asarray(start, dtype=float)
    if first is not None and "start" not in found.needs:
        raise SpecError(f"{found.name} does not use initial opinions; leave start out")
    if first is not None and first.shape != own.shape:
        raise SpecError(f"start must have the same shape as before, {own.shape}; got {first.shape}")

    def encoded(opinions: np.ndarray) -> np.ndarray:
        return found.units.encode(opinions, span)

    absent = np.isnan(said)
    present = ~absent.reshape(*said.shape[:2], -1).any(axis=2)
    received = Received(
        encoded(own),
        np.where(absent, 0.0, encoded(said)),
        present,
        np.where(present, given, 0.0),
        None if first is None else encoded(first),
        span,
    )
    found_next = found.transition(received, p)
    if not isinstance(found_next, Transition):
        found_next = Transition(found_next[:, None], np.ones((len(own), 1)))
    values = found.units.decode(found_next.values, span)
    # An opinion that an agent holds already is that very number, whatever the way there and back rounds.
    for held, opinions in ((received.own, own), (received.start, first)):
        if held is not None and opinions is not None:
            values = np.where(found_next.values == held[:, None], opinions[:, None], values)
    density = found_next.density
    decoded = None if density is None else lambda opinions: density(encoded(np.asarray(opinions)))
    return Transition(values, found_next.probabilities, decoded)


def _shaped(
    model: ClassicModel, before: ArrayLike, messages: ArrayLike, parameters: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Opinions before, (T,), and messages, (T, m); (T, F) and (T, 1, F) of models of traits."""
    own, said = np.atleast_1d(np.asarray(before, dtype=float)), np.asarray(messages, dtype=float)
    if model.states == "traits":
        features = parameters.get("features", model.declared["features"].default)
        if own.ndim != 2 or own.shape[1] != features or said.shape != own.shape:
            shapes = f"{own.shape} and {said.shape}"
            raise SpecError(f"before and messages must be (T, features), (T, {features}); got shapes {shapes}")
        return own, said[:, None]
    said = said[:, None] if said.ndim == 1 else np.atleast_2d(said)
    if own.ndim != 1 or said.shape[0] != own.size:
        raise SpecError(
            f"before must be (T,) and messages (T,) or (T, m); got shapes {own.shape} and {np.shape(messages)}"
        )
    return own, said


def _check_given(own: np.ndarray, received: np.ndarray, span: tuple[float, float], missing: bool) -> None:
    """Refuse opinions that are none; messages may be `missing` where a model takes any number of them."""
    low, high = span
    for name, values in (("before", own), ("messages", received)):
        wrong = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if missing and name == "messages":
            wrong &= ~np.isnan(values)
        if wrong.any():
            raise SpecError(f"{name} must be opinions from {low:g} to {high:g}; got {values[wrong][0]:g}")
