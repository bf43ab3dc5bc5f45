"""The schedule of each way of interacting, and the acts of its agents, known before any of it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from opinionsim.experiments._model_spec import ClassicModelSpec
from opinionsim.experiments._spec import (
    BoundedConfidenceSpec,
    BroadcastSpec,
    DyadicSpec,
    ExperimentSpec,
    ExternalSpec,
    FeedSpec,
    IndependentSpec,
    NoRolePlaySpec,
    RememberedSpec,
    RewiringSpec,
    SimilaritySpec,
)
from opinionsim.schedules import (
    PROBE,
    SELF_REPORT,
    ActSpec,
    BoundedConfidenceDyads,
    Broadcast,
    Dyads,
    Exposure,
    Feed,
    IndependentReports,
    RememberedReports,
    RewiringDyads,
    Schedule,
    SimilarityDyads,
)

__all__ = ["SCHEDULES", "acts_of"]

#: The schedule of each way of interacting of language-model agents.
SCHEDULES: Mapping[type, type[Schedule]] = MappingProxyType(
    {
        DyadicSpec: Dyads,
        BroadcastSpec: Broadcast,
        SimilaritySpec: SimilarityDyads,
        BoundedConfidenceSpec: BoundedConfidenceDyads,
        RewiringSpec: RewiringDyads,
        FeedSpec: Feed,
        IndependentSpec: IndependentReports,
        NoRolePlaySpec: IndependentReports,
        RememberedSpec: RememberedReports,
        ExternalSpec: Exposure,
    }
)


def acts_of(spec: ExperimentSpec) -> list[ActSpec]:
    """The acts of a run's turns, known without drawing its schedule; none where agents follow an equation."""
    if isinstance(spec.model, ClassicModelSpec):
        return []
    probe, asked = spec.measurement.probe, spec.measurement.self_report
    own = SCHEDULES.get(type(spec.interaction), Schedule)
    acts = list(getattr(own, "acts", {}).values())
    acts += [PROBE] if probe.before or probe.after else []
    return acts + ([SELF_REPORT] if asked.before or asked.after else [])
