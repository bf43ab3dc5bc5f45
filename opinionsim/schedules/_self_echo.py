"""Control in which agents read their own posts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opinionsim.registry import part
from opinionsim.schedules._dyadic import Dyads
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._turns import Turn


@part("interaction", name="self-echo")
class SelfEcho(Dyads):
    """Control: random dyads in which the listener reads its own last post, presented as a stranger's.

    Pairs are those of `dyadic` in the same block. A listener that has not written yet has nothing to read and does not
    act in that step.
    """

    reads_earlier = True

    played_by = ("chat models",)

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``write`` and usually a ``review`` per step."""
        written: dict[int, int] = {}
        index = 0
        for turn in super().turns(setting):
            if turn.act == "write":
                written[turn.agent] = index
                turn = replace(turn, index=index)
            elif turn.agent in written:
                turn = replace(turn, index=index, reads=(written[turn.agent],))
            else:
                continue
            index += 1
            yield turn
