"""Runs whose agents follow an equation: a classic model with the schedule, network and opinions of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opinionsim.classic import Process, RecordedActor, Setup, check_opinions, find_model, meeting_actors, set_up
from opinionsim.engine import Actor
from opinionsim.errors import SpecError
from opinionsim.networks import Network
from opinionsim.schedules import AdaptiveSchedule, AnySchedule, Snapshots
from opinionsim.specification._fields import ExperimentSpec


@dataclass(frozen=True, eq=False)
class Equation:
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
        if self.moments is None:
            return meeting_actors(self.setup, self.opinions, self.seed, self.replicate)
        steps = (0, *self.moments)
        return [RecordedActor(agent, steps, values.tolist()) for agent, values in enumerate(self._record.T)]


def equation_of(
    spec: ExperimentSpec,
    seed: int,
    replicate: int,
    network: Network | None,
    opinions: Sequence[float | None],
    schedule: AnySchedule | None,
) -> tuple[Equation, AnySchedule]:
    """Return a classic model as the agents of one run, and the schedule by which they state their opinions.

    Parameters
    ----------
    spec : ExperimentSpec
        The specification of the run, whose model is a classic one.
    seed, replicate : int
        Root and replicate of the random streams.
    network : Network or None
        Ties between agents; None if all agents hear each other.
    opinions : sequence of float
        Initial opinions.
    schedule : StaticSchedule or AdaptiveSchedule or None
        Schedule of the interaction, as for language-model agents; None for the native one of the model.

    Raises
    ------
    SpecError
        If the model is unknown or does not fit the specification.
    """
    size = spec.size
    joined = Network.of(size) if network is None else network
    setup = _set_up(spec, joined)
    values = check_opinions(setup.model, np.array(opinions, dtype=float), size, setup.range)
    if schedule is not None and setup.model.update is not None:
        return Equation(setup, values, seed, replicate, None), schedule
    if schedule is None:
        steps = spec.interaction.steps_for(size)
        moments = tuple(range(1, steps + 1))
    else:
        steps, moments = schedule.steps, _model_steps(schedule, size)
    return Equation(setup, values, seed, replicate, moments), Snapshots(size, steps, moments)


def _model_steps(schedule: AnySchedule, size: int) -> tuple[int, ...]:
    """Steps of the schedule after which as many updates have happened as in 1, 2, ... steps of the model."""
    if isinstance(schedule, AdaptiveSchedule):
        return ()
    updates = np.bincount([turn.step for turn in schedule.turns() if turn.reads], minlength=schedule.steps + 1)
    done = np.cumsum(updates)
    ends = np.searchsorted(done, size * np.arange(1, done[-1] // size + 1))
    # A step with more updates than agents ends several steps of the model; they count as one.
    return tuple(dict.fromkeys(ends.tolist()))


def check_equation(spec: ExperimentSpec) -> None:
    """Refuse a classic model that cannot be carried out as specified.

    Parameters
    ----------
    spec : ExperimentSpec
        The specification of a run, whose model is a classic one.

    Raises
    ------
    SpecError
        If the model does not fit; names the field.
    """
    setup = _set_up(spec, Network.of(max(2, spec.size)))
    model = setup.model
    kind = spec.interaction.kind
    if model.states == "two" and len(spec.scale.points) != 2:
        raise SpecError(
            f"{model.name} has two opinions, but the scale has {len(spec.scale.points)} points; set "
            "scale: {points: [-1, 1]}",
            "model.classic",
        )
    if model.states == "two" and spec.population.continuous:
        raise SpecError(
            f"{model.name} has two opinions, but "
            f"{spec.population.initial_opinions!r} draws any value between; use another distribution, such as uniform",
            "population.initial_opinions",
        )
    if model.update is None and spec.interaction.adaptive:
        raise SpecError(
            f"{kind!r} needs agents that meet in pairs, unlike {model.name}; valid: native, dyadic, broadcast",
            "interaction.kind",
        )


def _set_up(spec: ExperimentSpec, network: Network) -> Setup:
    named = spec.model.equation
    if named is None:
        raise SpecError("is not a classic model", "model")
    try:
        model = find_model(named.classic)
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
    settings = named.parameters
    if model.update is not None and not spec.interaction.native:
        given = [name for name in settings if name in model.schemes]
        if given:
            raise SpecError(
                f"interaction kind {spec.interaction.kind!r} already determines who meets whom and "
                "when; remove this option, or use kind: native",
                f"model.parameters.{given[0]}",
            )
    scale = spec.scale.scale()
    try:
        return set_up(
            model, network, span=(scale.lowest, scale.highest), settings=settings, isolates=spec.interaction.when_alone
        )
    except SpecError as error:
        raise SpecError(str(error), "model.parameters") from None
