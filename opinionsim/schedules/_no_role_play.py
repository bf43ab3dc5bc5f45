"""The control in which the bare chat model reports."""

from __future__ import annotations

from opinionsim.registry import part
from opinionsim.schedules._independent import IndependentReports


@part("interaction", name="no-role-play")
class NoRolePlayInteraction(IndependentReports):
    """Control: the bare chat model reports, playing nobody."""

    role_play = False
