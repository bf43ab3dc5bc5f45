"""The lanes of a study: what its replies cost, and how long they take, if they are bought through each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opinionsim.llm import Price

if TYPE_CHECKING:
    from opinionsim.planning._forecast import ModelForecast

#: Lanes in the order of a reply's speed.
LANES = ("now", "flex", "batch")
#: Minutes that a round of batches is assumed to take: the median, the mean and the time of 90 % of batches. OpenRouter
#: states the first and the last for 230,000 batches (https://openrouter.ai/blog/announcements/batch-api, read
#: 2026-11-29). The mean is that of a lognormal distribution with these two, cut off at 24 hours.
ROUND_MINUTES = (7, 27, 60)


@dataclass(frozen=True)
class LaneCost:
    """What all calls to one model cost through a lane.

    Attributes
    ----------
    cost : float
        Money, in the currency of the price table, including `reask_cost`.
    cached_tokens : int
        Tokens of prompts that the provider's cache is expected to serve.
    reask_cost : float
        Money for calls after a rejected reply that are made at once at the list price; 0 except for batches.
    """

    cost: float
    cached_tokens: int = 0
    reask_cost: float = 0.0


@dataclass(frozen=True)
class LaneForecast:
    """What a study takes if it buys all replies through a lane.

    Attributes
    ----------
    lane : str
        Name of the lane.
    cost : float or None
        Money, in the currency of the price table; None if `lacking` names a model.
    cached_tokens : int
        Tokens of prompts that providers' caches are expected to serve.
    reask_cost : float
        Part of `cost` for calls after a rejected reply that are made at once at the list price.
    lacking : tuple of str
        Labels of models that do not have the lane.
    rounds : tuple of (int, int), or None
        Fewest and most rounds of batches, which are equal if no schedule is adaptive; None for other lanes.
    times_s : tuple of float
        Seconds: the bounds of the forecast, or for batches the most rounds at each of ``ROUND_MINUTES``. Empty if not
        known.
    """

    lane: str
    cost: float | None
    cached_tokens: int = 0
    reask_cost: float = 0.0
    lacking: tuple[str, ...] = ()
    rounds: tuple[int, int] | None = None
    times_s: tuple[float, ...] = ()


def costs_by_lane(
    price: Price, received: int, written: int, cached: int, calls_per_reply: float
) -> dict[str, LaneCost]:
    """What calls to a model cost through each lane that it has.

    Parameters
    ----------
    price : Price
        The list price.
    received, written : int
        Tokens of all prompts and of all replies.
    cached : int
        Number of `received` that the provider's cache serves if replies come within minutes.
    calls_per_reply : float
        Calls for each reply that is kept. All but the first leave the lane of batches.

    Returns
    -------
    dict of str to LaneCost
        By lane. A model that costs nothing costs nothing in any lane.
    """
    found, free = {}, not (price.input or price.output)
    for lane in LANES:
        if lane != "now" and not free and lane not in price.lanes:
            continue
        batch = lane == "batch"
        share = 1 / calls_per_reply if batch else 1.0
        outlived = batch and not (lane in price.lanes and price.lanes[lane].cached)
        served = 0 if outlived else round(share * cached)
        reasked = (1 - share) * price.cost(received, written)
        bought = share * price.at(lane).cost(received, written) - price.at(lane).saved(served)
        found[lane] = LaneCost(bought + reasked, served, reasked)
    return found


def forecast_lanes(
    models: Sequence[ModelForecast], rounds: tuple[int, int], times_s: Mapping[str, tuple[float, ...]]
) -> tuple[LaneForecast, ...]:
    """The lanes of a study, as far as one of its models has them.

    Parameters
    ----------
    models : sequence of ModelForecast
        The forecast for each model.
    rounds : tuple of (int, int)
        Fewest and most rounds of batches.
    times_s : mapping of str to tuple of float
        Bounds of the time, in seconds, of the lanes whose latency is known.

    Returns
    -------
    tuple of LaneForecast
        Empty if no model has a cheaper lane, or if a price is unknown.
    """
    offered = {lane for model in models if model.cost for lane in model.lanes}
    if not offered - {"now"} or any(model.cost is None for model in models):
        return ()
    found = []
    for lane in (lane for lane in LANES if lane in offered):
        bought = [model.lanes[lane] for model in models if lane in model.lanes]
        lacking = tuple(model.label for model in models if lane not in model.lanes)
        batch = lane == "batch"
        found.append(
            LaneForecast(
                lane,
                None if lacking else sum(each.cost for each in bought),
                sum(each.cached_tokens for each in bought),
                sum(each.reask_cost for each in bought),
                lacking,
                rounds if batch else None,
                tuple(60.0 * minutes * rounds[1] for minutes in ROUND_MINUTES) if batch else times_s.get(lane, ()),
            )
        )
    return tuple(found)
