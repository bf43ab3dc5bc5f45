"""The one-step view of any model: the distribution of the next opinions of agents that receive messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.classic._model import ClassicModel
from opinionsim.classic._process import check_names, check_range
from opinionsim.classic._registry import find_model
from opinionsim.classic._transition import Received, Transition
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
    """The distribution of the next opinion of receivers, given what came before.

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
        Weights of messages, for models that weigh them; default all 1.
    start : array_like (T,), optional
        Initial opinion of each receiver, for models that go back to it.
    range : (float, float), optional
        Range of opinions; default that of the model.
    **parameters
        Parameters of the model, those of the receivers: each a number or (T,).

    Returns
    -------
    Transition
        The distribution of each of T receivers. It is written independently of the kernel, which tests compare it with.

    Raises
    ------
    SpecError
        If shapes disagree, an opinion is missing or out of range, or a parameter is unknown or out of range.
    """
    found = find_model(model)
    own = np.atleast_1d(np.asarray(before, dtype=float))
    said = np.asarray(messages, dtype=float)
    said = said[:, None] if said.ndim == 1 else np.atleast_2d(said)
    if own.ndim != 1 or said.shape[0] != own.size:
        raise SpecError(
            f"before must be (T,) and messages (T,) or (T, m); got shapes {own.shape} and {np.shape(messages)}"
        )
    span = check_range(found.range if range is None else range, endless=not np.isfinite(found.range).all())
    _check_given(own, said, span, missing=found.update is None)
    given = np.ones(said.shape) if weights is None else np.asarray(weights, dtype=float)
    if given.shape != said.shape:
        raise SpecError(f"weights must have the shape of messages, {said.shape}; got {given.shape}")
    check_names(found, parameters, schemes=False)
    p = found.arrays(found.with_defaults(parameters, span), own.size, span)
    first = None if start is None else np.asarray(start, dtype=float)
    if first is not None and "start" not in found.needs:
        raise SpecError(f"{found.name} does not go back to initial opinions; leave start out")
    if first is not None and first.shape != own.shape:
        raise SpecError(f"start must have the shape of before, {own.shape}; got {first.shape}")

    def encoded(opinions: np.ndarray) -> np.ndarray:
        return found.units.encode(opinions, span)

    present = ~np.isnan(said)
    received = Received(
        encoded(own),
        np.where(present, encoded(said), 0.0),
        present,
        np.where(present, given, 0.0),
        None if first is None else encoded(first),
        span,
    )
    found_next = found.transition(received, p)
    if not isinstance(found_next, Transition):
        found_next = Transition(found_next[:, None], np.ones((own.size, 1)))
    values = found.units.decode(found_next.values, span)
    # An opinion that an agent holds already is that very number, whatever the way there and back rounds.
    for held, opinions in ((received.own, own), (received.start, first)):
        if held is not None and opinions is not None:
            values = np.where(found_next.values == held[:, None], opinions[:, None], values)
    density = found_next.density
    decoded = None if density is None else lambda opinions: density(encoded(np.asarray(opinions)))
    return Transition(values, found_next.probabilities, decoded)


def _check_given(own: np.ndarray, received: np.ndarray, span: tuple[float, float], missing: bool) -> None:
    """Refuse opinions that are none; messages may be `missing` where a model takes any number of them."""
    low, high = span
    for name, values in (("before", own), ("messages", received)):
        wrong = ~(np.isfinite(values) & (values >= low) & (values <= high))
        if missing and name == "messages":
            wrong &= ~np.isnan(values)
        if wrong.any():
            raise SpecError(f"{name} must be opinions from {low:g} to {high:g}; got {values[wrong][0]:g}")
