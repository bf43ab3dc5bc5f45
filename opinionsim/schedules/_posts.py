"""Interactions in which agents read posts of others."""

from __future__ import annotations

from opinionsim.schedules._dyadic_acts import REVIEW, WRITE
from opinionsim.schedules._interaction import NetworkedInteraction, Setting
from opinionsim.schedules._turns import named


class PostsInteraction(NetworkedInteraction):
    """Base of interactions in which agents write posts, and review posts of others.

    No agent receives a refused or empty post. Refusals therefore change which agents are heard, and so the measured
    opinions, even without any influence; see docs/missing.md.
    """

    acts = named(WRITE, REVIEW)

    def check(self, setting: Setting) -> None:
        """Refuse a network on which no agent can speak to another."""
        _ = setting.neighbours
