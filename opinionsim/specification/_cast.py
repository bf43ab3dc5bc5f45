"""The cast of a run: who takes part, which instructions each member gets, and which model plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opinionsim.engine import Direction
from opinionsim.errors import SpecError
from opinionsim.personas import BARE, Persona, Population
from opinionsim.prompts import CognitionFields, Conditions
from opinionsim.schedules import MODERATOR, selector_of
from opinionsim.specification._fields import CognitionSpec, ExperimentSpec
from opinionsim.specification._member_fields import MemberSpec, RoleSpec, SeatSpec
from opinionsim.specification._model_fields import ModelSpec
from opinionsim.surveys import Survey


@dataclass(frozen=True)
class Cast:
    """The members of a run's cast before it begins.

    Attributes
    ----------
    population : Population
        Persona and assigned opinion of each participant.
    names : tuple of str, length N
        Names of the participants.
    directions : tuple of Direction, length N
        Instructions that only this participant gets.
    others : dict of str to Direction
        The same for the other members, by role, in their order.
    models : tuple of ModelSpec, length N + number of others
        The model that plays each member; empty if no prompt asks the agents.
    """

    population: Population
    names: tuple[str, ...]
    directions: tuple[Direction, ...]
    others: dict[str, Direction]
    models: tuple[ModelSpec, ...]


def conditions_of(spec: ExperimentSpec) -> Conditions:
    """What varies the prompts of the participants."""
    stated = {name: getattr(spec.cognition, name) for name in CognitionFields.model_fields}
    stated |= {"world": spec.world, "persona_shown": spec.population.shown, "masked": bool(spec.topic.masked)}
    if not spec.interaction.role_play:
        # The bare model: no person, no room, no bias (A12).
        stated |= {"confirmation_bias": "none", "world": "open", "persona_shown": "none"}
    return Conditions(**stated)


def participant_names(spec: ExperimentSpec, personas: tuple[Persona, ...] = ()) -> tuple[str, ...]:
    """Names of participants: those of the cast if there are any, otherwise those of their personas.

    A member of a cast without a name goes by its number, or by the respondent that it plays.
    """
    if not spec.cast:
        return tuple(persona.name for persona in personas)
    drawn = personas or (BARE,) * len(spec.cast)
    return tuple(
        each.name or persona.name or spec.interaction.unnamed(agent)
        for agent, (each, persona) in enumerate(zip(spec.cast, drawn, strict=True))
    )


def known_participants(spec: ExperimentSpec, personas: Sequence[Persona]) -> tuple[Persona, ...]:
    """Participants as events can name them: by name, and by attributes, including recorded ones."""
    names = participant_names(spec, tuple(personas))
    return tuple(
        replace(persona, name=name, attributes={**persona.record, **persona.attributes}, record={})
        for persona, name in zip(personas, names, strict=True)
    )


def cast_of(spec: ExperimentSpec, population: Population, models: Callable[[], tuple[ModelSpec, ...]]) -> Cast:
    """The cast of a run.

    Parameters
    ----------
    spec : ExperimentSpec
        Specification of the run.
    population : Population
        Drawn personas and opinions of the participants.
    models : callable
        Assigns the experiment's models to the participants.
    """
    names = participant_names(spec, population.personas)
    # No model is asked for a text or a person: any model of the run stands for the one that these do not have.
    unasked: Any = next(iter(spec.chat_models), spec.model)
    if spec.cast:
        directions = tuple(_direction(spec, each, name) for each, name in zip(spec.cast, names, strict=True))
        # Others are shown its name; the prompts of the agent itself say who it is by its persona.
        hidden = tuple(replace(persona, name="") for persona in population.personas)
        population = Population(hidden, population.opinions)
        assigned = tuple(
            each.model or (spec.model if each.text is None and each.seat is None else unasked) for each in spec.cast
        )
    else:
        told = Direction(template=spec.population.template, instructions=spec.interaction.guidance)
        directions = (told,) * len(population)
        assigned = models()
    # A moderator comes last: it acts around a schedule that has its own roles.
    roles = _roles(spec)
    others = {
        role: _told(each, role.capitalize(), persona=each.persona, values=each.values, instructions=each.instructions)
        for role, each in roles.items()
    }
    for each in roles.values():
        assigned = (*assigned, each.model or (spec.model.chat_models[0] if each.seat is None else unasked))
    return Cast(population, names, directions, others, assigned)  # type: ignore[arg-type]


def cast_respondents(spec: ExperimentSpec, survey: Survey, rng: np.random.Generator) -> dict[int, Persona]:
    """Respondents of a survey that members of a cast play, by agent.

    Members with the same query are drawn together, in the order of the queries. No respondent is drawn twice unless
    the survey allows it.

    Raises
    ------
    SpecError
        If too few respondents are left for a query.
    """
    weighted = spec.survey is None or spec.survey.weighting == "draw"
    again = spec.survey is not None and spec.survey.replace
    wanted: dict[str | None, list[int]] = {}
    for agent, each in enumerate(spec.cast):
        if each.drawn:
            wanted.setdefault(each.query_of(survey), []).append(agent)
    taken: list[int] = []
    found: dict[int, Persona] = {}
    for query, agents in wanted.items():
        without = () if again else taken
        try:
            drawn = survey.draw(len(agents), rng, query, weighted=weighted, replace=again, without=without)
        except SpecError as error:
            left = f" after earlier members took {len(taken)}" if taken else ""
            raise SpecError(f"cast.{agents[0]}: {error}{left}") from None
        taken += drawn.rows.tolist()
        found.update(zip(agents, drawn.personas.personas, strict=True))
    return found


def cast_personas(spec: ExperimentSpec, drawn: Callable[[int, MemberSpec], Persona]) -> tuple[Persona, ...]:
    """The personas of a cast: those written out, and those that `drawn` finds in the survey."""
    return tuple(
        drawn(agent, each) if each.drawn else BARE if each.persona is None else Persona("", background=each.persona)
        for agent, each in enumerate(spec.cast)
    )


def _roles(spec: ExperimentSpec) -> dict[str, RoleSpec]:
    """Roles beside the participants, in the order of the cast."""
    return {role: spec.roles[role] for role in (*spec.interaction.others, MODERATOR) if role in spec.roles}


def seat_numbers(spec: ExperimentSpec) -> dict[int, SeatSpec]:
    """The seats of a run, by number in its cast."""
    roles = list(_roles(spec))
    return {
        member if isinstance(member, int) else spec.size + roles.index(member): seat
        for member, seat in spec.seats.items()
    }


def _direction(spec: ExperimentSpec, each: MemberSpec, name: str) -> Direction:
    return _told(
        each,
        name,
        template=each.template or ("anes" if each.drawn else None),
        instructions=each.instructions or spec.interaction.guidance,
        draws=each.draws,
        selector=None if each.selector is None else selector_of(each.selector),
    )


def _told(each: MemberSpec | RoleSpec, author: str, **own: Any) -> Direction:
    """What a member is told, and does, apart from the others."""
    # What a person at a seat is told in front of each question; None for members that no person plays.
    invitation = None if each.seat is None else each.seat.invitation or ""
    return Direction(
        system=each.system, without=each.without, task=each.task, author=author, invitation=invitation, **own
    )


def reader_notes(spec: ExperimentSpec) -> Iterator[str]:
    """Sentences about anything in an interaction or a cast that may surprise a reader of the specification."""
    interaction = spec.interaction
    if not interaction.remembers and spec.cognition.memory != CognitionSpec().memory:
        yield f"Agents of {interaction.kind!r} do not remember: cognition.memory has no effect."
    yield from interaction.notes(spec.size, spec.replicates)
    if spec.has_topic and not spec.instruments:
        may = ", ".join(kind for kind, codes in spec.ratable.items() if codes)
        rest = f"; to code texts, list their kinds in measurement.texts, valid: {may}" if may else ""
        yield f"No act of {interaction.kind!r} states an opinion, so no opinion is coded{rest}."
    told = zip(participant_names(spec), spec.cast, strict=True)
    own = [name for name, each in told if each.task not in (None, spec.task)]
    if own and spec.task:
        yield f"These members have their own task instead of the experiment's: {', '.join(own)}."
