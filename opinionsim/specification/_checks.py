"""Checks of the specification of one run and of all that it refers to, before any call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import numpy as np

from opinionsim.engine import Direction, conditions_of_others
from opinionsim.errors import MeasurementError, OpinionSimError, ScheduleError, SpecError
from opinionsim.foundation.documents import Document, KeyPath, fields_at, spell_path
from opinionsim.foundation.streams import canonical_json
from opinionsim.llm import own_model
from opinionsim.personas import BARE, PersonaSet, Population, draw_population
from opinionsim.prompts import Addressee
from opinionsim.registry import NamedPart, find, names
from opinionsim.schedules import MODERATOR, PARTICIPANT, Interaction, check_acts, check_names
from opinionsim.specification._cast import cast_of, cast_personas, cast_respondents, conditions_of, known_participants
from opinionsim.specification._event_fields import EventError, check_events
from opinionsim.specification._fields import ExperimentSpec, conflicts
from opinionsim.specification._identity import RUN_FIELDS, TOP_FIELDS, setting_of
from opinionsim.specification._own_parts import naming_own_part
from opinionsim.specification._resources import Resources, is_path
from opinionsim.specification._survey_fields import draws_personas, draws_respondents, uses_survey

#: Fields of coding, on which no run depends.
_MEASURED = tuple(("measurement", field) for field in ("classifier", "texts", "instruments", "metrics"))

#: What is wrong with a field, in words or as the error that says so.
_Problem = tuple[KeyPath, str | OpinionSimError]


class Checks:
    """Checks specifications against everything they refer to; equal populations are checked once."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._populations: dict[str, list[_Problem]] = {}
        #: Values of each condition of the cells so far, by prompt pack.
        self._told: dict[str, dict[str, dict[Any, None]]] = {}

    def check(self, spec: ExperimentSpec, document: Document) -> None:
        """Raise one error with all problems of a specification of one run whose fields are each valid.

        Raises
        ------
        SpecError
            One line a problem.
        """
        found = list(_parts(spec))
        with nullcontext() if found else naming_own_part(spec):
            found = found or [*conflicts(spec), *self._separating(spec, document)] or list(self._references(spec))
        if found:
            raise SpecError.joined(placed for each in found for placed in _placed(document, *each))

    def _separating(self, spec: ExperimentSpec, document: Document) -> Iterator[_Problem]:
        """Entries of `independent_over` that name no field of a run."""
        for position, path in enumerate(spec.independent_over):
            place: KeyPath = ("independent_over", position)
            keys = tuple(path.split("."))
            if keys[0] not in TOP_FIELDS or keys[:2] in _MEASURED:
                yield place, f"{path!r} is not a field of a run; valid: fields under {', '.join(RUN_FIELDS)}"
                continue
            for depth, key in enumerate(keys):
                valid = fields_at(ExperimentSpec, keys[:depth], document.value)
                if valid and key not in valid:
                    yield (
                        place,
                        f"{path!r} is not a field of a run; valid after {'.'.join(keys[:depth])}: {', '.join(valid)}",
                    )
                    break

    def _references(self, spec: ExperimentSpec) -> Iterator[_Problem]:
        """References that cannot be found, or do not fit."""
        truth = None
        try:
            topic = self.resources.topic(spec.topic)
        except SpecError as error:
            yield ("topic",), error
        else:
            try:
                truth = topic.claim(spec.topic.framing).truth(spec.scale.scale())
            except SpecError as error:
                yield ("topic", "framing"), error
        yield from self._cast(spec) if spec.cast else self._population(spec)
        # Where no pack is named, the way of interacting brings the words.
        worded: KeyPath = ("prompts",) if "prompts" in spec.model_fields_set else ("interaction", "kind")
        unbound = list(_attempt(worded, lambda: self._wording(spec)))
        yield from unbound or (self._briefs(spec) if spec.model.prompted else ())
        yield from self._events(spec)
        interaction, size = spec.interaction, spec.size
        with suppress(SpecError):  # a topic that cannot be found is an error of its own
            setting = setting_of(spec, self.resources, self.resources.claim(spec), names=self._names(spec) or ())
            yield from _attempt(("interaction",), lambda: interaction.check(setting))
        network = interaction.contacts
        if network is not None:
            yield from _attempt(
                ("interaction", "network"), lambda: network.check(size, self.resources.network, self._names(spec))
            )
        yield from _attempt(("model",), partial(spec.model.check, spec))
        if metrics := spec.measurement.metrics:
            # Metrics import pandas, which few specifications need.
            from opinionsim.metrics import check_metrics

            yield from _attempt(("measurement", "metrics"), lambda: check_metrics(metrics, spec.scale.scale(), truth))

    def _wording(self, spec: ExperimentSpec) -> None:
        """Check what the run uses of its prompt pack, and that cells which differ in a condition differ in words."""
        pack, conditions = self.resources.pack(spec.pack), conditions_of(spec)
        if not spec.model.prompted:
            return
        # Agents without memory need no wording of one.
        keeps = any(act.memory != "none" for act in spec.acts)
        acts = [*spec.acts, *spec.acts_of_persons]
        memory = spec.cognition.memory.found("memory").target
        pack.bind(acts, memory.templates if keeps else (), conditions)
        if spec.roles:
            pack.bind(acts, (), conditions_of_others(conditions.masked))
        told = self._told.setdefault(spec.pack, {})
        for name, value in conditions:
            values = told.setdefault(name, {})
            if values and value not in values:
                pack.check_effects(spec.acts, {name: (*values, value)}, conditions)
            values[value] = None

    def _briefs(self, spec: ExperimentSpec) -> Iterator[_Problem]:
        """Texts that members of the cast are addressed with and the prompt pack does not have."""
        pack = self.resources.pack(spec.pack)
        own = conditions_of(spec)
        automatic = spec.moderator is not None and spec.moderator.automatic
        try:
            claim = self.resources.claim(spec)
        except SpecError:  # an error of its own
            return

        def address(direction: Direction, role: str = PARTICIPANT) -> None:
            conditions = own if role == PARTICIPANT else conditions_of_others(own.masked)
            told = Addressee(spec.scale.scale(), conditions, claim=claim, task=spec.task, brief=direction, role=role)
            pack.for_agent(told)
            task = spec.task if direction.task is None else direction.task
            if role == MODERATOR and (automatic or spec.interaction.needs_task) and claim is None and not task.strip():
                raise SpecError("is required, because a moderator answers a task; set it here or for all", "task")

        population = Population.bare(len(spec.cast) or 1)
        cast = cast_of(spec, population, tuple)
        shared = spec.interaction.guidance
        if shared is not None:
            # Told once, and not of every agent that has them.
            unusable = list(
                _attempt(("interaction", "instructions"), partial(address, Direction(instructions=shared, task="T")))
            )
            yield from unusable
            if unusable:
                return
        for place, direction in enumerate(cast.directions[: len(spec.cast) or 1]):
            where: KeyPath = ("cast", place) if spec.cast else ("population",)
            yield from _attempt(where, partial(address, direction))
        for role, direction in cast.others.items():
            yield from _attempt(("roles", role), partial(address, direction, role))
            if role == MODERATOR and automatic and pack.named is None:
                yield ("roles", role, "automatic"), f"needs a prompt pack with texts.yaml; {spec.pack!r} has none"

    def _cast(self, spec: ExperimentSpec) -> Iterator[_Problem]:
        """Members of a cast whom no respondent of the survey matches."""
        if not uses_survey(spec):
            return
        where: KeyPath = ("survey",)
        try:
            survey = self.resources.survey(spec)
            for place, each in enumerate(spec.cast):
                where = ("cast", place, "query" if each.group is None else "group")
                if each.drawn:
                    survey.matching(each.query_of(survey))
            where = ("cast",)
            cast_respondents(spec, survey, _any_rng())
        except SpecError as error:
            yield where, error

    def _events(self, spec: ExperimentSpec) -> Iterator[_Problem]:
        """The first event to nobody, or with texts that cannot be read."""
        if not spec.events or spec.population.continuous:
            return
        size = spec.size
        try:
            if spec.cast:
                given = cast_personas(spec, lambda agent, member: BARE)
            else:
                given = self.resources.candidates(spec).personas
        except SpecError:  # an error of its own
            return
        players = known_participants(spec, given if spec.interaction.role_play else Population.bare(size).personas)
        # Agents have the personas in their order, each as often as the others, or these are drawn.
        known = players * (size // len(players)) if size % len(players) == 0 else players
        try:
            check_events(spec.events, known, size, self.resources.messages)
        except EventError as error:
            yield error.keys, error.problem

    def _names(self, spec: ExperimentSpec) -> tuple[str, ...] | None:
        """Names that a network may use; None where personas cannot be read, which is an error of its own."""
        try:
            return self.resources.names(spec)
        except SpecError:
            return None

    def _population(self, spec: ExperimentSpec) -> Iterator[_Problem]:
        """Problems of personas: not found, off the scale, without attributes, or not fit for the initial opinions."""
        population = spec.population
        if draws_respondents(spec):
            unread = list(_attempt(("survey",), lambda: self.resources.survey(spec)))
            yield from unread
            if unread:
                return
        try:
            personas = self.resources.candidates(spec)
        except SpecError as error:
            yield ("population", "query" if draws_respondents(spec) else "personas"), error
            return
        points = spec.scale.points
        # The package's sets have opinions on five points and serve every scale: opinions off the scale are allowed.
        own = draws_personas(spec) or not isinstance(population.personas, str) or is_path(population.personas)
        for persona in personas.personas if own and population.initial_opinions != "none" else ():
            if persona.opinion is not None and persona.opinion not in points:
                yield (
                    ("population", "personas"),
                    f"the opinion {persona.opinion} of persona {persona.name!r} is not on the scale; "
                    f"valid: {', '.join(map(str, points))}",
                )
                return
        bare = [persona.name for persona in personas.personas if not persona.attributes]
        if population.shown == "demographics" and bare:
            yield (
                ("population", "shown"),
                f"'demographics' needs attributes for every persona; {bare[0]!r} has none; valid: full, name, none",
            )
        if draws_personas(spec):
            if unfit := list(_attempt(("population", "size"), lambda: self.resources.drawn(spec, _any_rng()))):
                yield from unfit
                return
            without = sum(persona.opinion is None for persona in personas.personas)
            if population.initial_opinions == "personas" and without:
                yield (
                    ("population", "initial_opinions"),
                    f"'personas' needs an opinion for each persona; {without} of {len(personas.personas)} have none",
                )
                return
        survey = None if spec.survey is None else spec.survey.model_dump(mode="json")
        key = canonical_json([population.model_dump(mode="json"), spec.scale.points, survey])
        if key not in self._populations:
            drawing = partial(_draw, spec, personas)
            self._populations[key] = list(_attempt(("population", "initial_opinions"), drawing))
        yield from self._populations[key]
        if not self._populations[key]:
            role_play = spec.interaction.role_play
            players = personas.personas if role_play else Population.bare(1).personas
            for keys, problem in spec.model.problems(players, spec.size):
                yield ("model", *keys), problem


def _parts(spec: ExperimentSpec) -> Iterator[_Problem]:
    """Problems of parts: they do not exist, do not take their options, or declare what is not valid."""
    yield from _attempt(("interaction", "kind"), partial(_check_declared, spec.interaction))
    if spec.model.prompted:
        yield from _attempt(("cognition", "memory"), partial(spec.cognition.memory.found, "memory"))
        yield from _attempt(("cognition", "selector"), partial(spec.cognition.selector.found, "selector"))
        for number, member in enumerate(spec.cast):
            if member.selector is not None:
                yield from _attempt(("cast", number, "selector"), partial(member.selector.found, "selector"))
        for model in spec.chat_models:
            if own_model(model.name):
                yield from _attempt(("model", "name"), partial(find, "chat_model", model.name))
    measurement = spec.measurement
    classifiers: dict[KeyPath, NamedPart | None] = {("classifier",): measurement.classifier}
    for i, each in enumerate(measurement.instruments):
        classifiers["instruments", i, "classifier"] = each.classifier
    for place, classifier in classifiers.items():
        if classifier is not None:
            yield from _attempt(("measurement", *place), partial(classifier.found, "classifier"))
    for i, metric in enumerate(measurement.metrics):
        yield from _attempt(("measurement", "metrics", i), partial(metric.found, "metric"))


def _check_declared(interaction: Interaction) -> None:
    """Refuse acts and names that a way of interacting declares in another form than expected, and unknown parts.

    Built-in parts are looked up by name alone, which loads none of them.
    """
    where = type(interaction).__name__
    check_acts(where, interaction.acts)
    for name in ("others", "tables", "frames", "figures"):
        check_names(f"{where}.{name}", getattr(interaction, name))
    parts = [(f"acts: {act.name!r}", "scripted", act.scripted) for act in interaction.acts.values()]
    parts += [("tables", "table", each) for each in interaction.tables]
    parts += [("figures", "figure", each) for each in interaction.figures]
    for name, kind, part in [*parts, ("record", "record", interaction.record)]:
        if part and part not in names(kind):
            try:
                find(kind, part)
            except SpecError as error:
                raise error.at(f"{where}.{name}") from None


def _draw(spec: ExperimentSpec, personas: PersonaSet) -> None:
    """Draw a population, to see whether it can be drawn."""
    if not spec.population.continuous:
        draw_population(
            personas,
            spec.size,
            scale=spec.scale.scale(),
            initial_opinions=spec.population.distribution,
            assignment=spec.population.assignment,
            opinions_rng=_any_rng(),
            assignment_rng=_any_rng(),
        )


def _any_rng() -> np.random.Generator:
    """A random stream where only it counts whether a draw is possible."""
    return np.random.default_rng(0)


def _attempt(keys: KeyPath, ask: Callable[[], object]) -> Iterator[_Problem]:
    """The problem that `ask` raises, if it raises one."""
    try:
        ask()
    except (SpecError, MeasurementError, ScheduleError) as error:
        yield keys, error


def _placed(document: Document, keys: KeyPath, problem: str | OpinionSimError) -> Iterator[SpecError]:
    """Errors about a field; where their outermost place is the field or one inside it, about that one."""
    if isinstance(problem, str):
        yield document.error(keys, problem)
        return
    field = spell_path(keys)
    for each in problem.problems:
        first, inner = next(iter(each.places), ""), each.places[1:]
        if first == keys[-1] or f"{first}.".startswith(f"{field}."):
            yield document.error(
                (*keys, *first.split(".")[len(keys) :]), ": ".join(filter(None, (*inner, each.unplaced)))
            )
        else:
            yield document.error(keys, str(each))
