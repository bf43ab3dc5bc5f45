"""Agents that follow an equation: a form of the field ``model``, how they meet by themselves, and those of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from opinionsim.classic._registry import find_model
from opinionsim.classic.kernels._process import Process, Setup, check_opinions, set_up
from opinionsim.errors import SpecError
from opinionsim.foundation.documents import KeyPath
from opinionsim.networks import Network
from opinionsim.registry import part
from opinionsim.schedules import REPORT_ONCE, AdaptiveSchedule, NetworkedInteraction, Schedule, Turn, named
from opinionsim.specification import EndpointSpec, RunEndpoint

if TYPE_CHECKING:
    from opinionsim.engine import Actor
    from opinionsim.schedules import AnySchedule, Setting
    from opinionsim.specification import ExperimentSpec


@part("interaction", name="native")
class NativeInteraction(NetworkedInteraction):
    """Agents of a classic model meet as the model defines: in pairs, in groups or all at once."""

    played_by = ("equations",)

    isolates: Literal["error", "keep"] = "error"
    """What happens if an agent has no partner: `error` stops the run, and `keep` leaves its opinion unchanged."""

    def steps_for(self, size: int) -> int:
        """Steps T: sweeps of one elementary update per agent, so one exposure is one sweep."""
        return self.steps if self.steps is not None else round(self.exposures or 0.0)

    def turns_a_step(self, size: int) -> int:
        """As many as agents."""
        return size

    def schedule(self, setting: Setting) -> AnySchedule:
        """Raise an error: the model, not a schedule, decides which agents meet."""
        raise SpecError("'native' is for classic models", "interaction.kind")


@part("endpoint", name="classic")
class ClassicModelSpec(EndpointSpec):
    """A classic model, whose agents follow an equation."""

    words: ClassVar[str] = "classic model"
    players: ClassVar[str] = "equations"
    evidence: ClassVar[str] = "equation"
    names: ClassVar[str] = "classic_model"
    allows_more: ClassVar[str] = "`opinionsim abm` and {classic: NAME} allow more"

    classic: str = Field(min_length=1)
    """Name of the model; `opinionsim list abm` lists them."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters and scheme options by name. Opinions in them are in units of the scale."""

    @property
    def label(self) -> str:
        """The name of the model."""
        return self.classic

    def conflicts(self, spec: ExperimentSpec) -> Iterator[tuple[KeyPath, str]]:
        """Agents without initial opinions."""
        if spec.population.initial_opinions == "none":
            problem = f"'none' is only for chat models; {self.classic!r} needs initial opinions"
            yield ("population", "initial_opinions"), problem

    def check(self, spec: ExperimentSpec) -> None:
        """Refuse a model that cannot be carried out as specified; names the field."""
        model = self._set_up(spec, Network.of(max(2, spec.size))).model
        if model.states == "two" and len(spec.scale.points) != 2:
            raise SpecError(
                f"{model.name} has two opinions, but the scale has {len(spec.scale.points)} points; set "
                "scale: {points: [-1, 1]}",
                "model.classic",
            )
        if model.states == "two" and spec.population.continuous:
            raise SpecError(
                f"{model.name} has two opinions, but {spec.population.initial_opinions!r} draws any value between; use "
                "another distribution, such as uniform",
                "population.initial_opinions",
            )
        if model.update is None and spec.interaction.adaptive:
            raise SpecError(
                f"{spec.interaction.kind!r} needs agents that meet in pairs, unlike {model.name}; "
                "valid: native, dyadic, broadcast",
                "interaction.kind",
            )

    def for_run(self, spec: ExperimentSpec, setting: Setting, made: Callable[[], AnySchedule]) -> Equation:
        """The model as the agents of a run, who meet by its schedule, or state their opinions after steps of the model.

        Blocks that are independent of others have random streams of their own.
        """
        met = None if isinstance(spec.interaction, NativeInteraction) else made()
        size, replicate = setting.size, setting.replicate
        setup = self._set_up(spec, Network.of(size) if setting.network is None else setting.network)
        opinions = check_opinions(setup.model, setting.assigned, size, setup.range)
        seed = int(setting.draws("classic").integers(2**32)) if spec.independent_over else spec.seed
        moments: tuple[int, ...] | None = None
        if met is None:
            moments = tuple(range(1, spec.interaction.steps_for(size) + 1))
            met = Snapshots(size, len(moments), moments)
        elif setup.model.update is None:
            moments = _model_steps(met, size)
            met = Snapshots(size, met.steps, moments)
        told = f"follow an equation ({setup.model.title})"
        return Equation(self.evidence, told, met, setup, opinions, seed, replicate, moments)

    def _set_up(self, spec: ExperimentSpec, network: Network) -> Setup:
        isolates = spec.interaction.isolates if isinstance(spec.interaction, NativeInteraction) else None
        try:
            model = find_model(self.classic)
        except SpecError as error:
            raise SpecError(str(error), "model.classic") from None
        if model.states == "traits":
            raise SpecError(
                f"agents of {model.name} have several traits instead of an opinion on a scale; "
                f"simulate it with opinionsim abm {model.name}, or opinionsim.classic.simulate",
                "model.classic",
            )
        if model.ties is not None:
            raise SpecError(
                f"{model.name} changes ties, which runs of a specification cannot record for classic models; "
                "simulate it with opinionsim abm or osim.classic.simulate",
                "model.classic",
            )
        fixed = model.schemes if model.update is not None and isolates is None else ()
        if given := next((name for name in self.parameters if name in fixed), ""):
            raise SpecError(
                f"interaction kind {spec.interaction.kind!r} already determines who meets whom and when; "
                "remove this option, or use kind: native",
                f"model.parameters.{given}",
            )
        scale = spec.scale.scale()
        span = (scale.lowest, scale.highest)
        try:
            return set_up(model, network, span=span, settings=self.parameters, isolates=isolates or "keep")
        except SpecError as error:
            raise SpecError(str(error), "model.parameters") from None


@dataclass(frozen=True, eq=False)
class Equation(RunEndpoint):
    """A classic model as the agents of one run.

    Attributes
    ----------
    setup : Setup
        The model, its parameters, and the network.
    opinions : ndarray (N,)
        Initial opinions.
    seed, replicate : int
        Root and replicate of the random streams.
    moments : tuple of int or None
        Steps of the run at which a step of the model ends; None if the schedule of the run determines who meets.
    """

    setup: Setup
    opinions: np.ndarray
    seed: int
    replicate: int
    moments: tuple[int, ...] | None

    @cached_property
    def _record(self) -> np.ndarray:
        """Initial opinions and those after every step of the model, (steps + 1, N)."""
        process = Process(self.setup, self.opinions, self.seed, self.replicate)
        return np.concatenate([self.opinions[None], process.advance(len(self.moments or ()))])

    def work_out(self) -> None:
        """Compute the trajectory in advance, which takes time; blocks."""
        if self.moments is not None:
            _ = self._record

    def actors(self) -> Sequence[Actor]:
        """The actor of each agent, before its first turn."""
        from opinionsim.classic._actors import RecordedActor, meeting_actors

        if self.moments is None:
            return meeting_actors(self.setup, self.opinions, self.seed, self.replicate)
        steps = (0, *self.moments)
        return [RecordedActor(agent, steps, values.tolist()) for agent, values in enumerate(self._record.T)]


class Snapshots(Schedule):
    """N agents state their opinions after each of some of T steps, which `moments` lists, ascending, within 1..T."""

    acts = named(REPORT_ONCE)

    def __init__(self, n_agents: int, steps: int, moments: Sequence[int]) -> None:
        self.n_agents, self.steps, self._moments = n_agents, steps, tuple(moments)

    def turns(self) -> Iterator[Turn]:
        """One ``report-once`` per agent at each moment."""
        for place, step in enumerate(self._moments):
            for agent in range(self.n_agents):
                yield Turn(place * self.n_agents + agent, step, agent, "report-once")


def _model_steps(schedule: AnySchedule, size: int) -> tuple[int, ...]:
    """Steps of the schedule after which as many updates have happened as in 1, 2, ... steps of the model."""
    if isinstance(schedule, AdaptiveSchedule):
        return ()
    updates = np.bincount([turn.step for turn in schedule.turns() if turn.reads], minlength=schedule.steps + 1)
    done = np.cumsum(updates)
    ends = np.searchsorted(done, size * np.arange(1, done[-1] // size + 1))
    # A step with more updates than agents ends several steps of the model; they count as one.
    return tuple(dict.fromkeys(ends.tolist()))
