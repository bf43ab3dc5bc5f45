"""The interaction of classic models."""

from __future__ import annotations

from typing import Literal

from opinionsim.errors import SpecError
from opinionsim.registry import part
from opinionsim.schedules._interaction import NetworkedInteraction, Setting
from opinionsim.schedules._turns import AnySchedule


@part("interaction", name="native")
class NativeInteraction(NetworkedInteraction):
    """Agents of a classic model meet as the model defines: in pairs, in groups or all at once."""

    played_by = ("equations",)
    native = True

    isolates: Literal["error", "keep"] = "error"
    """What happens if an agent has no partner: `error` stops the run, and `keep` leaves its opinion unchanged."""

    @property
    def when_alone(self) -> str:  # type: ignore[override]
        """Treatment of agents without a partner."""
        return self.isolates

    def steps_for(self, size: int) -> int:
        """Steps T: sweeps of one elementary update per agent, so one exposure is one sweep."""
        return self.steps if self.steps is not None else round(self.exposures or 0.0)

    def turns_a_step(self, size: int) -> int:
        """As many as agents."""
        return size

    def schedule(self, setting: Setting) -> AnySchedule:
        """Raise an error: the model, not a schedule, decides which agents meet."""
        raise SpecError("'native' is for classic models", "interaction.kind")
