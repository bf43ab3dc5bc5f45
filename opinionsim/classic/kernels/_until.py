"""Events that end a run before its last step: nothing can change, all agree, or little changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from opinionsim.classic.kernels._stepping import Stop
from opinionsim.errors import SpecError
from opinionsim.foundation.compilation import allocating, inlined

#: Distance between opinions that agree, as a part of the range, of models in which they never become equal.
_AGREEING = 1e-3


class Until(NamedTuple):
    """The event that ends a run.

    Attributes
    ----------
    event : str
        ``frozen``: no cluster can change, and none is wider than the tolerance; ``consensus``: all opinions agree;
        ``change``: no opinion moved farther in a step than the tolerance.
    tolerance : float
        Largest width of a cluster, largest distance between opinions that agree, or largest change.
    """

    event: str
    tolerance: float = 0.0

    @property
    def plain(self) -> Any:
        """The event as in specifications."""
        return "frozen" if self == FROZEN else {self.event: self.tolerance}


#: The end of runs whose clusters may be as wide as they are.
FROZEN = Until("frozen", np.inf)


def read_until(given: Any, span: tuple[float, float], *, discrete: bool) -> Until | None:
    """Read the event that a specification names.

    Parameters
    ----------
    given : None, str or mapping
        ``frozen``, ``{frozen: width}``, ``consensus``, ``{consensus: tolerance}`` or ``{change: tolerance}``. In
        discrete models, opinions agree if they are equal; in other models, by default, if they are no farther apart
        than a thousandth of the range.
    span : (float, float)
        Range of opinions.
    discrete : bool
        Whether the model is discrete.

    Raises
    ------
    SpecError
        If the event is unknown or its tolerance is not valid.
    """
    if given is None or isinstance(given, Until):
        return given
    valid = "valid: frozen, {frozen: WIDTH}, consensus, {consensus: TOLERANCE}, {change: TOLERANCE}"
    if given == "frozen":
        return FROZEN
    if given == "consensus":
        width = span[1] - span[0]
        return Until("consensus", 0.0 if discrete else _AGREEING * (width if np.isfinite(width) else 1.0))
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in ("frozen", "consensus", "change"):
        raise SpecError(f"must be the event that ends a run; got {given!r:.60}; {valid}", "until")
    ((event, tolerance),) = given.items()
    number = isinstance(tolerance, (int, float, np.number)) and not isinstance(tolerance, bool)
    if not (number and np.isfinite(tolerance) and tolerance >= 0 and (tolerance > 0 or event == "consensus")):
        least = "of at least 0" if event == "consensus" else "above 0"
        raise SpecError(f"{event} must be a number {least}, in units of opinion; got {tolerance!r:.60}", "until")
    return Until(event, float(tolerance))


@allocating
def one_number(opinions, contacts, p):
    """Allocate memory for the number of the agent, or the place, at which the next check starts."""
    return np.zeros(1, dtype=np.int64)


@inlined
def _apart(opinions, one, other, width):
    """The largest distance of two agents in any dimension."""
    most = 0.0
    for d in range(width):
        most = max(most, abs(opinions[one * width + d] - opinions[other * width + d]))
    return most


@allocating
def _agreed(opinions, previous, contacts, p, timing, memory):
    """Look for an agent that disagrees with the first one, beginning with the one that did so last."""
    numbers, n = opinions.reshape(-1), contacts.n
    width, begun = numbers.size // n, memory[0]
    for looked in range(n):
        agent = begun + looked
        agent -= n * np.int64(agent >= n)
        if _apart(numbers, np.int64(0), agent, width) > timing.tolerance:
            memory[0] = agent
            return False
    # All are near the first one; two on either side of it may still be apart.
    for d in range(width):
        low, high = numbers[d], numbers[d]
        for agent in range(n):
            low, high = min(low, numbers[agent * width + d]), max(high, numbers[agent * width + d])
        if high - low > timing.tolerance:
            return False
    return True


@allocating
def _settled(opinions, previous, contacts, p, timing, memory):
    """Whether no opinion has moved farther than the tolerance."""
    now, last = opinions.reshape(-1), previous.reshape(-1)
    most = 0.0
    for place in range(now.size):
        most = max(most, abs(now[place] - last[place]))
    return most <= timing.tolerance


CONSENSUS = Stop(_agreed, one_number)
CHANGE = Stop(_settled, one_number, compares=True)
