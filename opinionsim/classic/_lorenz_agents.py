"""Agents and networks of Lorenz, Neumann & Schroeder 2021: attitudes, groups, differing parameters, and followers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opinionsim.errors import SpecError
from opinionsim.networks import Network

#: Part of the largest variance of a number in [0, 1] that differences between agents may have.
_MOST_VARIANCE = 0.95


def lorenz_agents(
    n: int,
    rng: np.random.Generator | int,
    *,
    alpha: float = 0.2,
    rho: float = 0.0,
    theta: float = 0.01,
    latitude: float = 0.5,
    alpha_sd: float = 0.0,
    rho_sd: float = 0.0,
    theta_sd: float = 0.0,
    latitude_sd: float = 0.0,
    sd: float = 1.0,
    spread: float = 0.0,
    range: tuple[float, float] = (-3.5, 3.5),
) -> dict[str, Any]:
    """Draw the agents of the model ``lorenz``.

    Parameters
    ----------
    n : int
        Number of agents, > 0.
    rng : numpy.random.Generator or int
        Generator of the random numbers, or its seed.
    alpha, rho, theta : float
        Means of the agents' parameters, in [0, 1].
    latitude : float
        Mean latitude of acceptance, > 0, in units of opinion.
    alpha_sd, rho_sd, theta_sd : float
        Standard deviations of their Beta distributions, >= 0. With 0, or with a mean of 0 or 1, all agents have the
        mean. Variances are limited to 0.95 m (1 - m), where m is the mean.
    latitude_sd : float
        Standard deviation of the Gamma distribution of latitudes, >= 0.
    sd : float
        Standard deviation of initial opinions within a group, > 0.
    spread : float
        Distance between the means of initial opinions of the two groups, >= 0.
    range : (float, float)
        Range of opinions.

    Returns
    -------
    dict
        Arguments of :func:`simulate`: ``initial`` (n,), normal around the middle of the range -/+ spread/2 and cut off
        at its ends; ``group`` (n,), 0 or 1 with equal probability; the other parameters, each a number or (n,);
        ``range``.

    Raises
    ------
    SpecError
        If a number is out of its range.

    Examples
    --------
    >>> import numpy as np, opinionsim as osim
    >>> agents = osim.classic.lorenz_agents(500, np.random.default_rng(1), rho=0.9, rho_sd=0.03, spread=1)
    >>> found = osim.classic.simulate("lorenz", 500, steps=50, seed=1, k=10, **agents)
    """
    rng = np.random.default_rng(rng)
    _check(n >= 1, "n", "at least 1", n)
    for name, mean in (("alpha", alpha), ("rho", rho), ("theta", theta)):
        _check(0 <= mean <= 1, name, "from 0 to 1", mean)
    deviations = {"alpha_sd": alpha_sd, "rho_sd": rho_sd, "theta_sd": theta_sd, "latitude_sd": latitude_sd}
    for name, value in {**deviations, "spread": spread}.items():
        _check(value >= 0, name, "at least 0", value)
    _check(latitude > 0, "latitude", "above 0", latitude)
    _check(sd > 0, "sd", "above 0", sd)
    low, high = range
    group = rng.integers(2, size=n)
    initial = np.clip(rng.normal((low + high) / 2 + (group - 0.5) * spread, sd), low, high)
    shares = {"alpha": (alpha, alpha_sd), "rho": (rho, rho_sd), "theta": (theta, theta_sd)}
    drawn = {name: _beta(mean, deviation, n, rng) for name, (mean, deviation) in shares.items()}
    latitudes = _gamma(latitude, latitude_sd, n, rng)
    return {
        "initial": initial,
        "group": group,
        **drawn,
        "latitude": latitudes,
        "sd": sd,
        "spread": spread,
        "range": range,
    }


def _check(right: bool, name: str, valid: str, value: float) -> None:
    if not right:
        raise SpecError(f"{name} must be {valid}; got {value!r:.60}")


def _beta(mean: float, sd: float, n: int, rng: np.random.Generator) -> float | np.ndarray:
    """Numbers in [0, 1] of a mean and a standard deviation."""
    most = mean * (1 - mean)
    if sd == 0 or most == 0:
        return mean
    size = most / min(sd**2, _MOST_VARIANCE * most) - 1
    return rng.beta(mean * size, (1 - mean) * size, n)


def _gamma(mean: float, sd: float, n: int, rng: np.random.Generator) -> float | np.ndarray:
    """Positive numbers of a mean and a standard deviation."""
    if sd == 0:
        return mean
    # Shapes near 0 yield numbers too small for a float, and latitudes must be positive.
    return np.maximum(rng.gamma((mean / sd) ** 2, sd**2 / mean, n), np.finfo(float).tiny)


def follower_network(
    n: int,
    rng: np.random.Generator | int,
    *,
    following: int = 5,
    friends: int = 5,
    friendship: str = "random",
) -> Network:
    """Draw a network of followers, in which agents with many followers attract more, and of mutual friends.

    Agents join one after another. Each follows `following` of the agents before it, or all of them if there are fewer.
    They are drawn without repetition in proportion to 1 plus the number of their followers. A follower hears the agent
    it follows. Friends hear each other.

    Parameters
    ----------
    n : int
        Number of agents, > 0.
    rng : numpy.random.Generator or int
        Generator of the random numbers, or its seed.
    following : int
        Number of agents that each agent follows, >= 0.
    friends : int
        Number of friends of each agent, >= 0: the mean (``random``), the exact number, rounded down to an even one
        (``ring``), or the mean size of cliques (``cliques``).
    friendship : str
        ``random`` connects each pair with probability friends/(n - 1), ``ring`` the nearest agents on a circle, and
        ``cliques`` all agents within groups that they choose at random.

    Returns
    -------
    Network
        A directed network. Some agents, such as the first, may hear nobody, so simulate with ``isolates="keep"``.

    Raises
    ------
    SpecError
        If a number is out of its range, or `friendship` is unknown.
    """
    rng = np.random.default_rng(rng)
    _check(n >= 1, "n", "at least 1", n)
    _check(following >= 0, "following", "at least 0", following)
    _check(0 <= friends < n, "friends", f"from 0 to n - 1 = {n - 1}", friends)
    drawn = {"random": _random_friends, "ring": _ring_of_friends, "cliques": _cliques}
    if friendship not in drawn:
        raise SpecError(f"friendship must be one of {', '.join(drawn)}; got {friendship!r:.60}")
    followed, follower = _follow(n, rng, following)
    one, other = drawn[friendship](n, rng, friends) if friends else (np.empty(0, dtype=np.int64),) * 2
    speakers, listeners = np.concatenate([followed, one, other]), np.concatenate([follower, other, one])
    return Network.from_edges(np.stack([speakers, listeners], axis=1), n, directed=True)


def _follow(n: int, rng: np.random.Generator, following: int) -> tuple[np.ndarray, np.ndarray]:
    """The agents followed, and their followers, one pair for each tie."""
    # Agents stand in the pool once, and once more for each follower: a place in it is drawn in proportion.
    pool = np.empty(n * (following + 1), dtype=np.int64)
    size, found = 0, []
    for agent in np.arange(n):
        if agent <= following:
            chosen = np.arange(agent)
        else:
            distinct: dict[int, None] = {}
            while len(distinct) < following:
                distinct.update(dict.fromkeys(pool[rng.integers(size, size=following)].tolist()))
            # Later ones of a round are left out in the order in which they were drawn.
            chosen = np.fromiter(distinct, dtype=np.int64, count=len(distinct))[:following]
        pool[size : size + chosen.size] = chosen
        pool[size + chosen.size] = agent
        size += chosen.size + 1
        found.append(chosen)
    return np.concatenate(found), np.repeat(np.arange(n), [chosen.size for chosen in found])


def _random_friends(n: int, rng: np.random.Generator, friends: int) -> tuple[np.ndarray, np.ndarray]:
    total = n * (n - 1) // 2
    codes = rng.choice(total, rng.binomial(total, min(1.0, friends / (n - 1))), replace=False)
    # Pairs in the order (0, 1), (0, 2), (1, 2), (0, 3), ...
    later = ((1 + np.sqrt(1 + 8.0 * codes)) / 2).astype(np.int64)
    return codes - later * (later - 1) // 2, later


def _ring_of_friends(n: int, rng: np.random.Generator, friends: int) -> tuple[np.ndarray, np.ndarray]:
    agents, distances = np.arange(n), np.arange(1, friends // 2 + 1)
    return np.repeat(agents, distances.size), ((agents[:, None] + distances) % n).ravel()


def _cliques(n: int, rng: np.random.Generator, friends: int) -> tuple[np.ndarray, np.ndarray]:
    clique = rng.integers(max(1, math.floor(n / friends + 0.5)), size=n)
    order = np.argsort(clique, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(clique[order])) + 1)
    pairs = [np.array(np.triu_indices(group.size, 1)) for group in members]
    joined = [group[places] for group, places in zip(members, pairs, strict=True)]
    one, other = np.concatenate(joined, axis=1)
    return one, other
