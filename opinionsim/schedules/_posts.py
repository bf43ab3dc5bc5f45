"""Interactions in which agents read posts of others."""

from __future__ import annotations

from opinionsim.schedules._dyadic_acts import REVIEW, WRITE
from opinionsim.schedules._interaction import NetworkedInteraction, Setting
from opinionsim.schedules._turns import named


class PostsInteraction(NetworkedInteraction):
    """Base of interactions in which agents write posts, and review posts of others.

    A post that is refused or empty is received by nobody. Who is heard then depends on who refuses, and so do the
    opinions that are measured, even if nobody is influenced: see docs/missing.md.
    """

    acts = named(WRITE, REVIEW)

    def check(self, setting: Setting) -> None:
        """Refuse a network on which nobody can speak to anybody."""
        _ = setting.neighbours
