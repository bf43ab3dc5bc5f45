"""A way of interacting outside the package, in which agents speak one after another."""

from __future__ import annotations

from typing import Any, Literal

import opinionsim as osim
from opinionsim.schedules import ActSpec, SteppedInteraction, Turn, named


@osim.part("interaction")
class Talk(SteppedInteraction):
    """In each step every agent speaks once, in an order drawn for the run or that of the cast."""

    acts = named(ActSpec("respond", template="review", kind="response"))
    order: Literal["drawn", "cast"] = "drawn"
    reading: Literal["nobody", "last", "all", "first"] = "last"

    def turns(self, setting: Any) -> Any:
        order = [*range(setting.size)] if self.order == "cast" else setting.rng.permutation(setting.size).tolist()
        for turn in range(self.steps_for(setting.size) * setting.size):
            earlier = tuple(range(turn))
            reads = {"nobody": (), "last": earlier[-1:], "all": earlier, "first": earlier[:1]}[self.reading]
            yield Turn(turn, turn // setting.size + 1, order[turn % setting.size], "respond", reads)
