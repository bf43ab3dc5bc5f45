"""Control in which agents read the messages that agents of another run read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opinionsim.messages import Message
from opinionsim.registry import part
from opinionsim.schedules._dyadic_acts import PROBE, REVIEW, SELF_REPORT
from opinionsim.schedules._interaction import Setting, SteppedInteraction
from opinionsim.schedules._source_cell import SourceCell
from opinionsim.schedules._turns import External, Turn, named

if TYPE_CHECKING:
    from opinionsim.measurement import Text


@part("interaction", name="yoked")
class Yoked(SteppedInteraction):
    """Control: each agent reviews what its counterpart read in another run, and no agent writes or answers posts.

    An agent's counterpart is the agent with the same number in the next replicate of another cell; the last replicate
    uses the first. The other cell may have another kind of interaction, and its runs are carried out first.
    """

    acts = named(REVIEW)
    played_by = ("chat models",)
    yoked = True

    source: SourceCell
    """The other cell, as in `{cell: "interaction=dyadic"}`. It must have the same number of agents and at least as many
    steps."""

    def counterparts(self, replicate: int, n: int) -> Sequence[int]:
        """The next replicate; for the last one, the first."""
        return ((replicate + 1) % n,)

    def takes(self, size: int, runs: Sequence[Mapping[int, Text]]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Step, agent and texts of each turn in which a counterpart read something, without off-record questions."""
        for _, each in sorted(runs[0].items()):
            site, asked = each.site, each.kind in (PROBE.kind, SELF_REPORT.kind)
            if each.received and not asked and site.agent < size and 1 <= site.step <= self.steps_for(size):
                yield site.step, site.agent, each.received

    def externals(self, setting: Setting) -> Mapping[str, Message | str]:
        """The texts read, numbered from 0."""
        return {
            f"read-{place}": text for place, text in enumerate(text for _, _, texts in setting.read for text in texts)
        }

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``review`` for each turn in which a counterpart read something, in the same step."""
        place = 0
        for index, (step, agent, texts) in enumerate(setting.read):
            reads = tuple(External(f"read-{each}") for each in range(place, place + len(texts)))
            place += len(texts)
            yield Turn(index, step, agent, REVIEW.name, reads)
