"""Control in which posts are off topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from opinionsim.registry import part
from opinionsim.schedules._dyadic import Dyads
from opinionsim.schedules._external import OutsideInteraction
from opinionsim.schedules._interaction import Setting
from opinionsim.schedules._turns import External, Turn


@part("interaction", name="placebo")
class Placebo(OutsideInteraction, Dyads):
    """Control: random dyads in which listeners read an off-topic post instead of the speaker's post.

    Pairs, turns and the agents' posts are those of `dyadic` in the same block. No agent reads the speaker's post;
    instead, the listener reviews a post from outside that the prompt presents as a stranger's.
    """

    messages: str | tuple[str, ...] | None = None  # type: ignore[assignment]
    """The off-topic posts, or the path of a file: YAML or JSON with a list under `messages`, or otherwise one post per
    line. Null uses built-in posts about everyday life."""

    @property
    def given(self) -> str | tuple[str, ...]:
        """The posts, or the path of their file."""
        if self.messages is not None:
            return self.messages
        return tuple(Path(__file__).with_name("off_topic.txt").read_text(encoding="utf-8").splitlines())

    def turns(self, setting: Setting) -> Iterator[Turn]:
        """A ``write`` and a ``review`` per step. An agent sees all posts once before it sees any of them again."""
        # A stream of their own, so that the pairs stay those of dyads.
        rng, names = setting.stream("placebo"), list(self.externals(setting))
        unread: dict[int, list[str]] = {}
        for turn in super().turns(setting):
            name = names[(turn.step - 1) % len(names)]
            if turn.act == "review" and self.order == "random":
                left = unread.get(turn.agent) or rng.permutation(names).tolist()
                name, *unread[turn.agent] = left
            yield replace(turn, reads=(External(name),)) if turn.act == "review" else turn
