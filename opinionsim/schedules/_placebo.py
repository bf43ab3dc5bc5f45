"""The control in which posts are about something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from opinionsim.registry import part
from opinionsim.schedules._dyadic import Dyads
from opinionsim.schedules._external import OutsideInteraction
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._turns import Turn

#: Posts of strangers about nothing that anybody disputes.
_OFF_TOPIC = tuple(Path(__file__).with_name("placebo.txt").read_text(encoding="utf-8").splitlines())


@part("interaction", name="placebo")
class Placebo(OutsideInteraction, Dyads):
    """Control: random dyads in which an off-topic post is read in the place of every post.

    Pairs, turns and what agents write are those of `dyadic` in the same block. The speaker writes its post, which
    nobody reads; the listener reviews one from outside, as a stranger's.
    """

    messages: str | tuple[str, ...] | None = None  # type: ignore[assignment]
    """The off-topic posts, or the path of a file: YAML or JSON with a list under messages, otherwise one a line. Null
    takes some posts of everyday life."""

    @property
    def given(self) -> str | tuple[str, ...]:
        """The posts, or the path of their file."""
        return _OFF_TOPIC if self.messages is None else self.messages

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``write`` and a ``review`` a step."""
        # A stream of their own, so that the pairs stay those of dyads.
        shown = self.shown(setting, setting.stream("placebo"))
        for turn in super().turns(setting):
            yield replace(turn, reads=(shown[turn.step - 1],)) if turn.act == "review" else turn
