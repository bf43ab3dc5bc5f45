"""Schedule of recorded states, in which every agent states its opinion at given steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opinionsim.errors import SpecError
from opinionsim.schedules._dyadic_acts import REPORT_ONCE
from opinionsim.schedules._turns import Schedule, Turn, named


class Snapshots(Schedule):
    """Every agent states its opinion after each of the given steps.

    Parameters
    ----------
    n_agents : int
        N >= 1.
    steps : int
        T >= 0.
    moments : sequence of int
        Steps after which opinions are stated, ascending, within 1..T.
    """

    acts = named(REPORT_ONCE)

    def __init__(self, n_agents: int, steps: int, moments: Sequence[int]) -> None:
        rising = all(earlier < later for earlier, later in zip([0, *moments], [*moments, steps + 1], strict=True))
        if n_agents < 1 or steps < 0 or not rising:
            raise SpecError(
                f"snapshots need at least one agent, steps >= 0 and ascending moments within them; got N = {n_agents}, "
                f"T = {steps}, moments {list(moments)!r:.60}"
            )
        self.n_agents = n_agents
        self.steps = steps
        self._moments = tuple(moments)

    def turns(self) -> Iterator[Turn]:
        """One ``report-once`` per agent at each moment."""
        for place, step in enumerate(self._moments):
            for agent in range(self.n_agents):
                yield Turn(place * self.n_agents + agent, step, agent, "report-once")
